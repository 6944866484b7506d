//! The model against answers worked out by hand.

use asofdb_testkit::{Cell, Change, Model, Object, Rectangle};

const OPEN: i64 = i64::MAX;

fn rectangle(valid: (i64, i64), system: (i64, i64), value: i64) -> Rectangle {
    Rectangle { valid, system, image: vec![Some(value)] }
}

fn worked_example() -> Model {
    let changes = vec![
        Change::upsert(1, 101, 105, &[(0, 1)]),
        Change::upsert(1, 216, 220, &[(0, 2)]),
        Change::upsert(1, 205, 225, &[(0, 3)]),
        Change::delete(1, 230, 230),
    ];
    Model { columns: 1, system_declared: true, changes }
}

#[test]
fn the_worked_example_has_six_rows() {
    let mut expected = vec![
        rectangle((101, OPEN), (105, 220), 1),
        rectangle((101, 216), (220, 225), 1),
        rectangle((101, 205), (225, OPEN), 1),
        rectangle((205, 216), (225, OPEN), 3),
        rectangle((216, OPEN), (220, 230), 2),
        rectangle((216, 230), (230, OPEN), 2),
    ];
    expected.sort();
    assert_eq!(worked_example().rectangles(1, u64::MAX, None), expected);
}

#[test]
fn the_worked_example_answers_points() {
    let model = worked_example();
    let value = |v, s| model.row(1, v, s, u64::MAX).map(|row| row[&0]);
    assert_eq!(value(Some(210), OPEN), Some(Cell::Int(3)));
    assert_eq!(value(Some(210), 222), Some(Cell::Int(1)));
    assert_eq!(value(Some(240), OPEN), None);
    assert_eq!(value(None, OPEN), None);
    assert_eq!(value(None, 229), Some(Cell::Int(2)));
}

#[test]
fn a_key_change_takes_the_row_along() {
    let mut moved = Change::partial(2, 20, 2, &[(1, 7)]);
    (moved.previous, moved.position) = (Some(1), 1);
    let changes = vec![Change::upsert(1, 10, 1, &[(0, 5), (1, 6)]), moved];
    let model = Model { columns: 2, system_declared: true, changes };
    assert_eq!(model.row(1, None, OPEN, u64::MAX), None);
    let row = model.row(2, None, OPEN, u64::MAX).map(|row| row.into_values().collect::<Vec<_>>());
    assert_eq!(row, Some(vec![Cell::Int(5), Cell::Int(7)]));
    assert_eq!(model.keys(), [1, 2]);
}

#[test]
fn leaves_are_laid_over_the_object_below() {
    let with = |old: &str, newer: &str| Object::of(old).with(Object::of(newer)).text();
    assert_eq!(
        with(r#"{"a":1,"b":{"x":1}}"#, r#"{"b":{"y":2,"x":null}}"#),
        r#"{"a":1,"b":{"x":null,"y":2}}"#
    );
    assert_eq!(with(r#"{"b":{"y":1,"x":2}}"#, r#"{"a":{},"b":0}"#), r#"{"b":0,"a":{}}"#);
    let text = r#"{"a":{"x":1,"y":null},"b":{"y":2,"x":0}}"#;
    assert_eq!(Object::text_of(Object::of(text).code()).as_deref(), Some(text));
    assert_eq!(Object::text_of(12), None);
    let leaves = |valid, text: &str| {
        let cells = [(0, Cell::Leaves(Object::of(text)))].into();
        Change { cells, ..Change::partial(1, valid, 0, &[]) }
    };
    let changes = vec![leaves(10, r#"{"a":1}"#), leaves(20, r#"{"b":2}"#)];
    let model = Model { columns: 1, system_declared: true, changes };
    let row = model.row(1, None, OPEN, u64::MAX).map(|row| row[&0]);
    assert_eq!(row, Some(Cell::Object(Object::of(r#"{"a":1,"b":2}"#))));
}
