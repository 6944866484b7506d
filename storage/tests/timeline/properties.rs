//! Random histories of every kind against the model.

use crate::bridge::{Table, both_ways};
use asofdb_storage::time::FOREVER;
use asofdb_storage::timeline::{Belief, Bound};
use asofdb_testkit::{Model, Rectangle, Shape, generate};
use proptest::prelude::*;

/// Points of every key on the grid of all breakpoints and the tick before the first.
fn check_points(model: Model) {
    let table = Table::new(model);
    let model = &table.model;
    let truncates = table.truncates();
    let before = |breaks: Vec<i64>| breaks.first().map(|b| b - 1).into_iter().chain(breaks).collect();
    let valids: Vec<i64> = before(model.valid_breaks());
    let systems: Vec<i64> = before(model.system_breaks());
    for key in model.keys() {
        let history = table.history(&truncates, key);
        for v in valids.iter().copied().chain([FOREVER]) {
            for s in systems.iter().copied().chain([FOREVER]) {
                for n in [1, 2, u64::MAX] {
                    let bound = Bound { valid: v, system: s, commit: n };
                    let row = model.row(key, (v != FOREVER).then_some(v), s, n);
                    let row = row.map(|r| r.into_values().collect::<Vec<_>>());
                    assert_eq!(table.row(&history, &bound), Ok(row), "key {key} at {bound:?}");
                }
            }
        }
    }
}

/// Versions of every belief and rectangles of every key, tracking all and one column.
fn check_rows(model: Model) {
    let table = Table::new(model);
    let model = &table.model;
    let truncates = table.truncates();
    let mut belief = Belief::new();
    for key in model.keys() {
        let history = table.history(&truncates, key);
        for n in [2, u64::MAX] {
            for tracked in [None, Some(&[0][..])] {
                for s in model.system_breaks() {
                    let versions = table.versions(&history, &mut belief, (s, n), tracked);
                    assert_eq!(versions, model.versions(key, s, n, tracked), "key {key} at {s}");
                }
                let rows = both_ways(&table, key, n, tracked);
                assert_eq!(rows, model.rectangles(key, n, tracked), "key {key}");
                check_cover(&rows, model, key, n, tracked.is_none());
            }
        }
    }
}

/// Rule B10: rectangles never overlap and together say what points say.
fn check_cover(rows: &[Rectangle], model: &Model, key: u32, commit: u64, values: bool) {
    for v in model.valid_breaks() {
        for s in model.system_breaks() {
            let within = |(start, end): (i64, i64), t: i64| start <= t && t < end;
            let mut over = rows.iter().filter(|r| within(r.valid, v) && within(r.system, s));
            let (first, second) = (over.next(), over.next());
            assert!(second.is_none(), "{first:?} and {second:?} overlap");
            let row = model.row(key, Some(v), s, commit);
            assert_eq!(first.is_some(), row.is_some(), "key {key} at ({v}, {s})");
            if let (Some(rectangle), Some(row), true) = (first, row, values) {
                let shown: Vec<_> = row.values().map(|c| c.shown()).collect();
                assert_eq!(rectangle.image, shown, "key {key} at ({v}, {s})");
            }
        }
    }
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

fn snapshots() -> Shape {
    Shape { truncates: true, ties: true, unknown: true, keys: 2, ..Shape::ordinary() }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn ordinary_points(model in generate::model(Shape::ordinary())) {
        check_points(model);
    }

    #[test]
    fn ordinary_rows(model in generate::model(Shape { unknown: true, ties: true, ..Shape::ordinary() })) {
        check_rows(model);
    }

    #[test]
    fn longer_rows(model in generate::model(Shape { changes_max: 40, times: 15, ..Shape::ordinary() })) {
        check_rows(model);
    }

    #[test]
    fn bounded_rows_b13(model in generate::model(Shape { bounded: true, ..Shape::ordinary() })) {
        check_points(model.clone());
        check_rows(model);
    }

    #[test]
    fn truncated_rows_b7(model in generate::model(snapshots())) {
        check_points(model.clone());
        check_rows(model);
    }

    #[test]
    fn moved_rows_b8(
        model in generate::model(Shape { moves: true, keys: 3, unknown: true, ..Shape::ordinary() })
    ) {
        check_points(model.clone());
        check_rows(model);
    }

    #[test]
    fn rows_with_leaves_b5(
        model in generate::model(Shape { objects: true, unknown: true, ties: true, ..Shape::ordinary() })
    ) {
        check_points(model.clone());
        check_rows(model);
    }

    #[test]
    fn rows_of_everything_with_leaves_b5(
        model in generate::model(Shape { objects: true, ..Shape::everything() })
    ) {
        check_points(model.clone());
        check_rows(model);
    }

    #[test]
    fn rows_of_everything(model in generate::model(Shape::everything())) {
        check_points(model.clone());
        check_rows(model);
    }

    #[test]
    fn wide_rows(
        model in generate::model(Shape { columns: 70, times: 3, changes_max: 5, unknown: true, ..Shape::ordinary() })
    ) {
        check_points(model.clone());
        check_rows(model);
    }
}
