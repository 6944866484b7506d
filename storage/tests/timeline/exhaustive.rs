//! Every history of up to four events, up to the order of their times, against the model.

use crate::bridge::{Table, both_ways};
use asofdb_storage::time::FOREVER;
use asofdb_storage::timeline::{Belief, Bound};
use asofdb_testkit::{Change, Model};

const EVENTS_MAX: usize = 4;

#[derive(Clone, Copy)]
enum Kind {
    Full,
    Partial,
    Delete,
}

/// Ranks with ties for `n` items: every value up to the largest occurs.
fn weak_orders(n: usize) -> Vec<Vec<i64>> {
    let all = (0..n.pow(n as u32)).map(|mut code| {
        let digit = |_| {
            let rank = code % n;
            code /= n;
            rank as i64
        };
        (0..n).map(digit).collect::<Vec<i64>>()
    });
    all.filter(|ranks| (0..*ranks.iter().max().unwrap_or(&0)).all(|r| ranks.contains(&r))).collect()
}

fn change(kind: Kind, i: usize, valid: i64, system: i64, value: i64) -> Change {
    let change = match kind {
        Kind::Full => Change::upsert(0, valid, system, &[(0, value), (1, value + 10)]),
        Kind::Partial => Change::partial(0, valid, system, &[(0, value)]),
        Kind::Delete => Change::delete(0, valid, system),
    };
    Change { position: i as u64, commit: 1 + i as u64, ..change }
}

/// Calls `check` with each history. Events are numbered by valid time (all other numberings are
/// permutations of these) and handed over newest first.
fn every_history(value: impl Fn(usize) -> i64, mut check: impl FnMut(&Table)) -> usize {
    let mut count = 0;
    for n in 1..=EVENTS_MAX {
        let orders = weak_orders(n);
        for valid in orders.iter().filter(|o| o.is_sorted()) {
            let ties = valid.windows(2).any(|w| w[0] == w[1]);
            for system in &orders {
                for code in 0..3usize.pow(n as u32) {
                    let kind =
                        |i: usize| [Kind::Full, Kind::Partial, Kind::Delete][code / 3usize.pow(i as u32) % 3];
                    let changes = (0..n).rev().map(|i| change(kind(i), i, valid[i], system[i], value(i)));
                    let mut model = Model { columns: 2, system_declared: false, changes: changes.collect() };
                    check(&Table::new(model.clone()));
                    count += 1;
                    if ties {
                        model.system_declared = true;
                        check(&Table::new(model));
                        count += 1;
                    }
                }
            }
        }
    }
    count
}

#[test]
fn points_of_every_small_history_b2_b5() {
    let count = every_history(
        |i| i as i64,
        |table| {
            let history = table.history(&[], 0);
            for v in (-1..=EVENTS_MAX as i64).chain([FOREVER]) {
                for s in -1..=EVENTS_MAX as i64 {
                    let bound = Bound { valid: v, system: s, commit: u64::MAX };
                    let row = table.model.row(0, (v != FOREVER).then_some(v), s, u64::MAX);
                    let row = row.map(|r| r.into_values().collect::<Vec<_>>());
                    assert_eq!(table.row(&history, &bound), Ok(row), "{bound:?} of {:#?}", table.model);
                }
            }
        },
    );
    assert!(count > 48_600, "{count} histories");
}

#[test]
fn rows_of_every_small_history_b9_b10() {
    every_history(
        |i| i as i64 / 2,
        |table| {
            let history = table.history(&[], 0);
            let mut belief = Belief::new();
            for tracked in [None, Some(&[1][..])] {
                let latest = table.versions(&history, &mut belief, (FOREVER, u64::MAX), tracked);
                assert_eq!(latest, table.model.versions(0, FOREVER, u64::MAX, tracked));
                let rows = both_ways(table, 0, u64::MAX, tracked);
                assert_eq!(rows, table.model.rectangles(0, u64::MAX, tracked), "{:#?}", table.model);
            }
        },
    );
}
