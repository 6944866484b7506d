//! Columns that are written leaf by leaf (rule B5), with rows worked out by hand, in every order of
//! arrival.

use crate::bridge::{Table, both_ways, permutations};
use asofdb_storage::time::FOREVER;
use asofdb_storage::timeline::{Belief, Bound};
use asofdb_testkit::{Cell, Change, Model, Object};

const OPEN: i64 = FOREVER;

fn object(text: &str) -> Option<i64> {
    Some(Object::of(text).code())
}

/// A partial upsert that writes the leaves of column 0.
fn leaves(valid: i64, system: i64, text: &str) -> Change {
    cell(valid, system, Cell::Leaves(Object::of(text)))
}

fn cell(valid: i64, system: i64, cell: Cell) -> Change {
    let mut change = Change::partial(0, valid, system, &[]);
    change.cells.insert(0, cell);
    change
}

fn in_every_order(changes: &[Change], mut check: impl FnMut(&Table)) {
    permutations(changes.len(), &mut |order| {
        let mut changes: Vec<Change> = order.iter().map(|i| changes[*i].clone()).collect();
        for (i, change) in changes.iter_mut().enumerate() {
            (change.position, change.commit) = (i as u64, 1 + i as u64 / 2);
        }
        check(&Table::new(Model { columns: 1, system_declared: true, changes }));
    });
}

/// Checks start, end and value of the interval rows of the latest belief, and the latest row.
fn expect_scd2(changes: &[Change], rows: &[(i64, i64, Option<i64>)], tracked: Option<&[u32]>) {
    let expected: Vec<_> = rows.iter().map(|(start, end, value)| (*start, *end, vec![*value])).collect();
    in_every_order(changes, |table| {
        let history = table.history(&[], 0);
        let latest = table.versions(&history, &mut Belief::new(), (OPEN, u64::MAX), tracked);
        assert_eq!(latest, expected, "{:#?}", table.model);
        let row = table.row(&history, &Bound::LATEST).expect("no chain").map(|cells| cells[0].shown());
        assert_eq!(row, rows.last().filter(|r| r.1 == OPEN).map(|r| r.2));
    });
}

#[test]
fn leaves_are_last_writer_wins_each_b5() {
    let all = [
        leaves(10, 10, r#"{"a":1,"b":{"x":1,"y":1}}"#),
        leaves(20, 20, r#"{"b":{"y":2}}"#),
        leaves(30, 30, r#"{"a":null}"#),
        leaves(15, 40, r#"{"b":{"x":3}}"#),
    ];
    let rows = [
        (10, 15, object(r#"{"a":1,"b":{"x":1,"y":1}}"#)),
        (15, 20, object(r#"{"a":1,"b":{"x":3,"y":1}}"#)),
        (20, 30, object(r#"{"a":1,"b":{"x":3,"y":2}}"#)),
        (30, OPEN, object(r#"{"a":null,"b":{"x":3,"y":2}}"#)),
    ];
    expect_scd2(&all, &rows, None);
}

#[test]
fn whole_values_deletes_and_gaps_end_what_leaves_inherit_b5() {
    let all = [
        leaves(10, 0, r#"{"a":1}"#),
        cell(20, 0, Cell::Int(7)),
        leaves(30, 0, r#"{"b":1}"#),
        Change::delete(0, 40, 0),
        leaves(50, 0, r#"{"a":2}"#),
        cell(60, 0, Cell::Object(Object::of(r#"{"b":2}"#))),
    ];
    let rows = [
        (10, 20, object(r#"{"a":1}"#)),
        (20, 30, Some(7)),
        (30, 40, object(r#"{"b":1}"#)),
        (50, 60, object(r#"{"a":2}"#)),
        (60, OPEN, object(r#"{"b":2}"#)),
    ];
    expect_scd2(&all, &rows, None);
}

#[test]
fn rows_are_equal_by_their_merged_values_b9() {
    let all = [
        leaves(10, 0, r#"{"a":1,"b":1}"#),
        leaves(20, 0, r#"{"b":1}"#),
        leaves(30, 0, r#"{"b":2}"#),
        cell(40, 0, Cell::Object(Object::of(r#"{"a":1,"b":2}"#))),
    ];
    let rows = [(10, 30, object(r#"{"a":1,"b":1}"#)), (30, OPEN, object(r#"{"a":1,"b":2}"#))];
    expect_scd2(&all, &rows, None);
    expect_scd2(&all, &rows, Some(&[0]));
    expect_scd2(&all, &[(10, OPEN, object(r#"{"a":1,"b":2}"#))], Some(&[]));
}

#[test]
fn late_leaves_rewrite_later_beliefs_only_b10() {
    let all = [leaves(10, 100, r#"{"a":1}"#), leaves(20, 200, r#"{"b":1}"#), leaves(15, 300, r#"{"a":2}"#)];
    let expected = [
        ((10, OPEN), (100, 200), r#"{"a":1}"#),
        ((10, 20), (200, 300), r#"{"a":1}"#),
        ((10, 15), (300, OPEN), r#"{"a":1}"#),
        ((15, 20), (300, OPEN), r#"{"a":2}"#),
        ((20, OPEN), (200, 300), r#"{"a":1,"b":1}"#),
        ((20, OPEN), (300, OPEN), r#"{"a":2,"b":1}"#),
    ];
    let mut expected: Vec<_> = expected.iter().map(|(v, s, text)| (*v, *s, object(text))).collect();
    expected.sort_unstable();
    in_every_order(&all, |table| {
        let rows = both_ways(table, 0, u64::MAX, None).into_iter();
        let mut rows: Vec<_> = rows.map(|r| (r.valid, r.system, r.image[0])).collect();
        rows.sort_unstable();
        assert_eq!(rows, expected);
    });
}

#[test]
fn leaves_are_inherited_from_the_old_key_b8() {
    let moved = Change { previous: Some(1), ..leaves(20, 20, r#"{"b":2}"#) };
    let old = Change { key: 1, ..leaves(10, 10, r#"{"a":1,"b":1}"#) };
    let late = Change { key: 1, ..leaves(15, 30, r#"{"a":3}"#) };
    in_every_order(&[old, moved, late], |table| {
        let history = table.history(&[], 0);
        let value = |system| {
            let bound = Bound { system, ..Bound::LATEST };
            table.row(&history, &bound).expect("no chain").and_then(|cells| cells[0].shown())
        };
        assert_eq!((value(20), value(30)), (object(r#"{"a":1,"b":2}"#), object(r#"{"a":3,"b":2}"#)));
    });
}
