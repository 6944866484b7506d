//! Tables without a key (rule B15) against the model.

use crate::bridge::Table;
use asofdb_storage::time::FOREVER;
use asofdb_storage::timeline::{Bound, Limits, RowHistory, RowRectangle, TimelineError};
use asofdb_testkit::{Change, Model, Shape, generate};
use proptest::prelude::*;
use std::ops::ControlFlow;

fn rectangles(table: &Table, key: u32, commit: u64) -> Vec<RowRectangle> {
    let truncates = table.truncates();
    let history = table.history(&truncates, key);
    let mut rows = Vec::new();
    let end = RowHistory::new().rectangles(&history, commit, &Limits::default(), |row| {
        rows.push(row);
        ControlFlow::Continue(())
    });
    assert_eq!(end, Ok(ControlFlow::Continue(())));
    rows
}

fn check(model: Model) {
    let table = Table::new(model);
    let model = &table.model;
    let truncates = table.truncates();
    let mut rows = RowHistory::new();
    for key in model.keys() {
        let history = table.history(&truncates, key);
        for n in [2, u64::MAX] {
            let rectangles = rectangles(&table, key, n);
            check_maximal(&rectangles);
            for s in model.system_breaks() {
                let belief =
                    rows.instances(&history, s, n, &Limits::default()).expect("no limit met").to_vec();
                let joined = |a: &i64| belief.iter().any(|b| b.start == *a);
                assert!(!belief.iter().any(|i| joined(&i.end)), "{belief:?} has rows that are one");
                for v in model.valid_breaks().into_iter().chain([FOREVER]) {
                    let expected = model.count(key, (v != FOREVER).then_some(v), s, n);
                    let bound = Bound { valid: v, system: s, commit: n };
                    assert_eq!(rows.count(&history, &bound), expected as u64, "{bound:?}");
                    let within = |start: i64, end: i64, t: i64| start <= t && (t < end || end == FOREVER);
                    let over = belief.iter().filter(|i| within(i.start, i.end, v)).count();
                    assert_eq!(over, expected, "{bound:?}");
                    let over = rectangles.iter().filter(|r| {
                        within(r.instance.start, r.instance.end, v) && within(r.system_start, r.system_end, s)
                    });
                    assert_eq!(over.count(), expected, "{bound:?}");
                }
            }
        }
    }
}

/// No rectangle goes on where an equal one ends.
fn check_maximal(rectangles: &[RowRectangle]) {
    for a in rectangles {
        let interval = |r: &RowRectangle| (r.instance.start, r.instance.end);
        let next = rectangles.iter().find(|b| interval(a) == interval(b) && a.system_end == b.system_start);
        assert!(next.is_none(), "{a:?} goes on as {next:?}");
        assert!(a.instance.start < a.instance.end && a.system_start < a.system_end, "{a:?} is empty");
    }
}

fn keyless(changes: &[Change]) -> Table {
    let positioned = |(i, c): (usize, &Change)| Change { position: i as u64, ..c.clone() };
    let changes = changes.iter().enumerate().map(positioned).collect();
    Table::new(Model { columns: 0, system_declared: true, changes })
}

fn seen(table: &Table) -> Vec<[i64; 4]> {
    let rows = rectangles(table, 0, u64::MAX).into_iter();
    rows.map(|r| [r.instance.start, r.instance.end, r.system_start, r.system_end]).collect()
}

#[test]
fn the_oldest_equal_row_ends_first_b15() {
    let add = |valid, system| Change::upsert(0, valid, system, &[]);
    let table = keyless(&[add(10, 1), add(20, 2), Change::delete(0, 30, 3)]);
    assert_eq!(seen(&table), [[10, FOREVER, 1, 3], [10, 30, 3, FOREVER], [20, FOREVER, 2, FOREVER]]);
    let table = keyless(&[add(10, 1), add(10, 1), add(10, 2)]);
    assert_eq!(
        seen(&table),
        [[10, FOREVER, 1, FOREVER], [10, FOREVER, 1, FOREVER], [10, FOREVER, 2, FOREVER]]
    );
}

#[test]
fn an_update_to_an_equal_row_is_no_change() {
    let mut update = Change::upsert(0, 20, 2, &[]);
    update.previous = Some(0);
    let table = keyless(&[Change::upsert(0, 10, 1, &[]), update]);
    assert_eq!(seen(&table), [[10, FOREVER, 1, FOREVER]]);
}

#[test]
fn a_delete_of_nothing_does_nothing_b15() {
    let table = keyless(&[Change::delete(0, 5, 1), Change::upsert(0, 10, 1, &[])]);
    assert_eq!(seen(&table), [[10, FOREVER, 1, FOREVER]]);
}

#[test]
fn limits_hold_for_equal_rows() {
    let table = keyless(&vec![Change::upsert(0, 10, 1, &[]); 100]);
    let limits = Limits { rows_max: 99, ..Limits::default() };
    let end = RowHistory::new().rectangles(&table.history(&[], 0), 9, &limits, |_| ControlFlow::Continue(()));
    assert_eq!(end, Err(TimelineError::TooManyRows { rows_max: 99 }));
    let mut changes = vec![Change::upsert(0, 10, 1, &[]); 100];
    changes.extend((0..100).map(|i| Change::delete(0, 20, i)));
    let limits = Limits { steps_max: 1_000, ..Limits::default() };
    let table = keyless(&changes);
    let end = RowHistory::new().rectangles(&table.history(&[], 0), 9, &limits, |_| ControlFlow::Continue(()));
    assert_eq!(end, Err(TimelineError::TooManySteps { steps_max: 1_000 }));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn counts_and_rows_of_equal_rows(model in generate::model(Shape { columns: 0, ..Shape::ordinary() })) {
        check(model);
    }

    #[test]
    fn counts_with_ends_and_truncates(
        model in generate::model(Shape { columns: 0, bounded: true, truncates: true, ..Shape::ordinary() })
    ) {
        check(model);
    }

    #[test]
    fn rows_that_are_only_added(
        model in generate::model(Shape { columns: 0, ..Shape::ordinary() })
            .prop_map(|mut m| { m.changes.retain(|c| c.act == asofdb_testkit::Act::Upsert); m })
    ) {
        check(model);
    }
}
