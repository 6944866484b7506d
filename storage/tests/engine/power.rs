//! Power cut at every operation of the disk while commits, flushes, merges and a compaction run.

use crate::table::*;
use asofdb_storage::disk::SimDisk;
use asofdb_storage::engine::{Engine, OpenMode};
use asofdb_storage::time::FOREVER;
use asofdb_testkit::{Change, Model};
use std::path::Path;

/// Twelve events in six commits.
pub fn model() -> Model {
    let mut changes = Vec::new();
    for i in 0..12u64 {
        let key = (i % 4) as u32;
        let mut change = match i % 3 {
            0 => Change::upsert(key, i as i64, i as i64, &[(0, i as i64), (1, 7)]),
            1 => Change::partial(key, 20 - i as i64, i as i64, &[(1, i as i64)]),
            _ => Change::delete(key, 10 + i as i64, i as i64),
        };
        (change.commit, change.position) = (1 + i / 2, i);
        changes.push(change);
    }
    Model { columns: 2, system_declared: true, changes }
}

/// Commits what it can; returns the commits that were acknowledged.
fn run(disk: &SimDisk, model: &Model) -> u64 {
    let mut acknowledged = 0;
    let Ok(engine) = open(disk) else { return 0 };
    for seq in 1..=6 {
        match engine.commit(commit_of(model, seq)) {
            Ok(info) => acknowledged = info.seq,
            // The commit may stand although work behind it failed: the next pin tells.
            Err(_) => return acknowledged,
        }
    }
    let _ = engine.compact();
    acknowledged
}

#[test]
fn fault_d1_d2_a_power_cut_loses_nothing_that_was_acknowledged() {
    let model = model();
    let whole = SimDisk::new();
    assert_eq!(run(&whole, &model), 6);
    let operations = whole.operations();
    assert!(operations > 50, "only {operations} operations");
    println!("D1, D2: {operations} power cuts, {} images of a store, seeds 0 to 9", operations * 10);
    for n in 1..=operations {
        let disk = SimDisk::new();
        disk.cut_power_after(n);
        let acknowledged = run(&disk, &model);
        for seed in 0..10 {
            let image = disk.crash_image(seed);
            manifest_counts(&image, &format!("cut after {n}, seed {seed}"));
            let engine = open(&image).unwrap_or_else(|e| panic!("cut after {n}, seed {seed}: {e}"));
            let found = engine.pin().commit().0;
            let place =
                format!("cut after operation {n}, seed {seed}: {acknowledged} acknowledged, {found} found");
            assert!(found == acknowledged || found == acknowledged + 1, "{place}");
            if found > 0 {
                let expected = expected_rows(&model, FOREVER, FOREVER, found);
                assert_eq!(rows(&engine.pin(), 2, FOREVER, FOREVER, found), expected, "{place}");
                let expected = expected_intervals(&model, found);
                assert_eq!(intervals(&engine.pin(), 2, found), expected, "{place}");
            }
        }
    }
}

/// Asserts that what the manifest on disk counts on is there. (A writer would make it again.)
pub fn manifest_counts(disk: &SimDisk, place: &str) {
    let options = options(3);
    let opened = Engine::open_with(Path::new("/store"), OpenMode::Read, options, components(disk));
    // A store of which nothing was durable is none yet.
    let Ok(reader) = opened else { return };
    let damage = reader.verify(None).expect("verification").damage;
    let told = damage.iter().filter(|d| d.contains("commits-") || d.contains("manifest"));
    assert_eq!(told.collect::<Vec<_>>(), Vec::<&String>::new(), "{place}");
}
