//! How many rows histories make, and how long large ones take.

use crate::bridge::{Table, both_ways};
use asofdb_storage::event::Op;
use asofdb_storage::time::FOREVER;
use asofdb_storage::timeline::{
    Belief, Bound, CHAIN_HOPS_MAX, EventOrder, KeyEvent, KeyHistory, Limits, Rectangles, Scratch,
    TimelineError, Tracked, Writer,
};
use asofdb_testkit::{Change, Model};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Far above what is needed, far below what a quadratic answer would take.
const SOON: Duration = Duration::from_secs(2);

fn event(i: u64, valid: i64, system: i64) -> KeyEvent<'static> {
    let order = EventOrder { valid_from: valid, ties: None, system, origin_rank: 0, position: i, ordinal: 0 };
    KeyEvent::new(order, 1 + i, i)
}

fn partial(i: u64, valid: i64, system: i64, column: u32) -> KeyEvent<'static> {
    KeyEvent { full: false, mask: 1 << column, ..event(i, valid, system) }
}

/// Half of the events write column 1 at late valid times, then the others column 0 at earlier rising
/// ones: each of those rewrites every later row.
fn adversarial() -> KeyHistory<'static> {
    let mut history = KeyHistory::new(2, true, &[]);
    history.begin_key();
    for i in 0..5_000 {
        history.push(partial(i, 10_000 + i as i64, i as i64, 1));
        history.push(partial(5_000 + i, i as i64, 5_000 + i as i64, 0));
    }
    history.finish();
    history
}

fn row_of(history: &KeyHistory<'_>, writer: Writer) -> Option<u64> {
    match writer {
        Writer::Event(number) => Some(history.event(number).row),
        _ => None,
    }
}

fn stream(history: &KeyHistory<'_>, limits: &Limits) -> Result<u64, TimelineError> {
    let mut rows = 0;
    let emit = |_: asofdb_storage::timeline::Rectangle<'_>| {
        rows += 1;
        ControlFlow::Continue(())
    };
    let same = |_, a, b| row_of(history, a) == row_of(history, b);
    _ = Rectangles::new().stream(history, u64::MAX, Tracked::All, limits, same, emit)?;
    Ok(rows)
}

#[test]
fn an_adversarial_key_answers_points_and_refuses_rectangles() {
    let history = adversarial();
    let began = Instant::now();
    let mut writers = [Writer::Null; 2];
    let mut scratch = Scratch::default();
    let decided = history.resolve(&Bound::LATEST, &[0, 1], &mut writers, &mut scratch).expect("no chain");
    let newest = decided.map(|n| history.event(n).row);
    let rows = writers.map(|w| row_of(&history, w));
    assert_eq!((newest, rows), (Some(4_999), [Some(9_999), Some(4_999)]));
    let old = Bound { valid: 12_000, system: 7_000, commit: u64::MAX };
    history.resolve(&old, &[0, 1], &mut writers, &mut scratch).expect("no chain");
    assert_eq!(writers.map(|w| row_of(&history, w)), [Some(7_000), Some(2_000)]);
    let limits = Limits { rows_max: 100_000, ..Limits::default() };
    let refused = stream(&history, &limits);
    assert_eq!(refused, Err(TimelineError::TooManyRows { rows_max: 100_000 }));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn steps_are_limited_where_beliefs_are_computed_one_by_one() {
    let mut history = KeyHistory::new(2, true, &[]);
    history.begin_key();
    for i in 0..10_000 {
        history.push(KeyEvent { valid_to: 30_000 - i, ..partial(i as u64, i, i, (i % 2) as u32) });
    }
    history.finish();
    let began = Instant::now();
    let limits = Limits { steps_max: 10_000_000, ..Limits::default() };
    assert_eq!(stream(&history, &limits), Err(TimelineError::TooManySteps { steps_max: 10_000_000 }));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn large_keys_in_order_are_cheap() {
    let mut history = KeyHistory::new(3, true, &[]);
    history.begin_key();
    for i in 0..100_000 {
        history.push(event(i, i as i64, i as i64));
    }
    history.finish();
    let began = Instant::now();
    let limits = |rows_max| Limits { rows_max, ..Limits::default() };
    assert_eq!(stream(&history, &limits(199_999)), Ok(199_999));
    let refused = Err(TimelineError::TooManyRows { rows_max: 199_998 });
    assert_eq!(stream(&history, &limits(199_998)), refused);
    let same = |_, _, _| false;
    let mut belief = Belief::new();
    let computed = belief.compute(&history, FOREVER, u64::MAX, Tracked::All, u64::MAX, same);
    assert_eq!((computed, belief.versions().len()), (Ok(()), 100_000));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn a_consumer_can_stop() {
    let history = adversarial();
    let mut rows = 0;
    let emit = |_: asofdb_storage::timeline::Rectangle<'_>| {
        rows += 1;
        if rows == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let end =
        Rectangles::new().stream(&history, u64::MAX, Tracked::All, &Limits::default(), |_, _, _| false, emit);
    assert_eq!((end, rows), (Ok(ControlFlow::Break(())), 10));
}

/// A row that moves between two keys, each time as a partial update.
fn bouncing(moves: u64) -> KeyHistory<'static> {
    let mut history = KeyHistory::new(2, true, &[]);
    for key in 0..2u64 {
        history.begin_key();
        if key == 0 {
            history.push(event(0, 0, 0));
        }
        for i in 1..=moves {
            let away = KeyEvent { op: Op::MovedAway, ..event(i, i as i64, 0) };
            let to = KeyEvent { previous: Some(1 - key as u32), ..partial(i, i as i64, 0, 0) };
            history.push(if i % 2 == key { to } else { away });
        }
    }
    history.finish();
    history
}

#[test]
fn chains_of_key_changes_are_followed_up_to_a_limit_b8() {
    let resolve = |moves| {
        let (history, mut writers) = (bouncing(moves), [Writer::Null; 2]);
        let decided = history.resolve(&Bound::LATEST, &[0, 1], &mut writers, &mut Scratch::default());
        decided.map(|_| writers.map(|w| row_of(&history, w)))
    };
    let hops_max = CHAIN_HOPS_MAX;
    assert_eq!(resolve(hops_max as u64), Ok([Some(hops_max as u64), Some(0)]));
    assert_eq!(resolve(hops_max as u64 + 2), Err(TimelineError::ChainTooLong { hops_max }));
}

/// Two events at one place that each claim to come from the other's key.
#[test]
fn a_cycle_of_key_changes_ends_b8() {
    let mut history = KeyHistory::new(2, true, &[]);
    for old_key in [1, 0] {
        history.begin_key();
        history.push(KeyEvent { previous: Some(old_key), ..partial(1, 5, 5, 0) });
    }
    history.finish();
    let mut writers = [Writer::Unknown; 2];
    let decided = history.resolve(&Bound::LATEST, &[0, 1], &mut writers, &mut Scratch::default());
    assert_eq!((decided, writers), (Ok(Some(0)), [Writer::Event(0), Writer::Null]));
}

/// Nests and combs of facts with their own end make 3n - 2 rectangles.
#[test]
fn combs_and_nests_reach_the_bound_of_full_images() {
    for n in 2..40i64 {
        let nested = |i: i64| Change { valid_to: Some(2 * n - i), ..Change::upsert(0, i, i, &[(0, i)]) };
        let comb = |i: i64| {
            let valid = if i == 0 { 0 } else { 2 * (n - i) };
            Change { valid_to: (i > 0).then_some(valid + 1), ..Change::upsert(0, valid, i, &[(0, i)]) }
        };
        let count = |make: &dyn Fn(i64) -> Change| {
            let positioned = |i: i64| Change { position: i as u64, ..make(i) };
            let changes = (0..n).map(positioned).collect();
            let table = Table::new(Model { columns: 1, system_declared: true, changes });
            both_ways(&table, 0, u64::MAX, None).len() as i64
        };
        assert_eq!(count(&nested), 3 * n - 2);
        assert_eq!(count(&comb), 3 * n - 2);
    }
}

/// Facts with their own end have no such bound: each wide fact shows in every gap of the later ones.
#[test]
fn wide_facts_under_a_comb_pass_the_bound_of_full_images_b13() {
    let n = 10i64;
    let tooth =
        |i: i64| Change { valid_to: Some(2 * i + 101), ..Change::upsert(0, 2 * i + 100, 0, &[(0, i)]) };
    let wide = |i: i64| Change::upsert(0, i, i + 1, &[(0, 100 + i)]);
    let changes = (0..n).map(tooth).chain((0..n).map(wide)).enumerate();
    let changes = changes.map(|(i, c)| Change { position: i as u64, ..c }).collect();
    let table = Table::new(Model { columns: 1, system_declared: true, changes });
    let rows = both_ways(&table, 0, u64::MAX, None);
    assert_eq!(rows, table.model.rectangles(0, u64::MAX, None));
    assert!(rows.len() as i64 > 3 * (2 * n) - 2, "{} rows", rows.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]

    #[test]
    fn full_images_make_at_most_3n_less_2_rectangles(
        facts in proptest::collection::vec((0i64..30, 0i64..30, proptest::option::of(0i64..4)), 1..20)
    ) {
        let change = |(i, (valid, system, value)): (usize, &(i64, i64, Option<i64>))| {
            let change = match value {
                Some(value) => Change::upsert(0, *valid, *system, &[(0, *value)]),
                None => Change::delete(0, *valid, *system),
            };
            Change { position: i as u64, ..change }
        };
        let changes: Vec<Change> = facts.iter().enumerate().map(change).collect();
        let n = changes.len();
        let table = Table::new(Model { columns: 1, system_declared: true, changes });
        prop_assert!(both_ways(&table, 0, u64::MAX, None).len() <= 3 * n - 2);
    }
}
