//! Passes over keys with many events and over many keys, which take several batches and several pieces.

use crate::table::*;
use asofdb_storage::disk::SimDisk;
use asofdb_storage::engine::{Bounds, Engine, EngineOptions, OpenMode};
use asofdb_storage::time::{CommitSeq, FOREVER};
use asofdb_testkit::{Change, Model};
use std::collections::HashMap;
use std::path::Path;

const KEYS: u32 = 12_000;
/// A key with more events than a batch has rows.
const HOT_KEY: u32 = 7_777;
const HOT_EVENTS: i64 = 9_000;

/// A number that looks random.
fn mixed(n: u64) -> u64 {
    let n = (n ^ n >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
}

/// Three commits; late on both axes, with deletes and bounded rows.
fn model() -> Model {
    let mut changes = Vec::new();
    let time = |n: u64| (mixed(n) % 1_000) as i64;
    for seq in 1..=3 {
        for key in (0..KEYS).filter(|key| !mixed(u64::from(*key) * 7 + seq).is_multiple_of(3)) {
            let n = u64::from(key) * 31 + seq;
            let change = match mixed(n) % 8 {
                0 => Change::delete(key, time(n), time(n + 1)),
                1..4 => Change::partial(key, time(n), time(n + 1), &[(1, -(n as i64))]),
                4 => Change {
                    valid_to: Some(time(n) + 50),
                    ..Change::upsert(key, time(n), time(n + 1), &[(0, 5)])
                },
                _ => Change::upsert(key, time(n), time(n + 1), &[(0, n as i64), (1, 1)]),
            };
            changes.push(Change { commit: seq, ..change });
        }
        for i in 0..HOT_EVENTS / 3 {
            let n = 1_000_000 + i as u64 * 3 + seq;
            let change = match mixed(n) % 20 {
                0 => Change::delete(HOT_KEY, time(n), time(n + 1)),
                1..18 => Change::partial(HOT_KEY, time(n), time(n + 1), &[(1, n as i64)]),
                _ => Change::upsert(HOT_KEY, time(n), time(n + 1), &[(0, n as i64), (1, 2)]),
            };
            changes.push(Change { commit: seq, ..change });
        }
    }
    (0..).zip(&mut changes).for_each(|(position, change)| change.position = position);
    Model { columns: 2, system_declared: true, changes }
}

fn questions() -> Vec<(u32, Bounds)> {
    let bounds = |n: u64| Bounds {
        valid: if mixed(n).is_multiple_of(9) { FOREVER } else { (mixed(n + 1) % 1_100) as i64 },
        system: if mixed(n + 2).is_multiple_of(9) { FOREVER } else { (mixed(n + 3) % 1_100) as i64 },
        commit: CommitSeq(1 + mixed(n + 4) % 3),
    };
    let any = (0..15_000u64).map(|n| ((mixed(n) % u64::from(KEYS + 2_000)) as u32, bounds(n * 5)));
    any.chain((0..12).map(|n| (HOT_KEY, bounds(n * 11 + 3)))).collect()
}

fn check(engine: &Engine, expected: &[Option<Vec<Option<i64>>>], asked: &[(u32, Bounds)], state: &str) {
    let snapshot = engine.pin();
    for piece in [100, 6_000, usize::MAX] {
        let found = passed(&snapshot, asked, piece, false, 2);
        for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert_eq!(found, expected, "{state}, pieces of {piece}: {:?}", asked[number]);
        }
    }
}

#[test]
fn passes_answer_as_the_model_whatever_the_pieces() {
    let model = model();
    let asked = questions();
    let mut by_key: HashMap<u32, Model> = HashMap::new();
    for change in &model.changes {
        let none = || Model { columns: 2, system_declared: true, changes: Vec::new() };
        by_key.entry(change.key).or_insert_with(none).changes.push(change.clone());
    }
    let expected: Vec<_> = asked
        .iter()
        .map(|(key, bounds)| by_key.get(key).and_then(|model| expected_row(model, *key, *bounds)))
        .collect();
    let rows = expected.iter().flatten().count();
    assert!(rows > 1_000, "the questions find rows: {rows}");
    let disk = SimDisk::new();
    let options = EngineOptions { memory_events_max: 25_000, index: false, ..options(0) };
    let engine = Engine::open_with(Path::new("/store"), OpenMode::Create, options, components(&disk));
    let engine = engine.expect("a new store");
    for seq in 1..=3 {
        engine.commit(commit_of(&model, seq)).expect("a commit");
    }
    check(&engine, &expected, &asked, "as taken in");
    engine.compact().expect("compaction");
    check(&engine, &expected, &asked, "compacted");
}
