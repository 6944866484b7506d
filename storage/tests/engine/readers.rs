//! Readers of another process beside a writer that replaces runs.

use crate::hook::HookDisk;
use crate::power::model;
use crate::table::*;
use asofdb_storage::disk::{Disk, SimDisk};
use asofdb_storage::engine::{Engine, ErrorKind, OpenMode, Snapshot};
use asofdb_storage::time::FOREVER;
use std::path::Path;

fn filled(disk: &SimDisk, commits: u64) -> Engine {
    let engine = open(disk).expect("a new store");
    for seq in 1..=commits {
        engine.commit(commit_of(&model(), seq)).expect("a commit");
    }
    engine
}

fn check(snapshot: &Snapshot, place: &str) {
    let commit = snapshot.commit().0;
    let expected = expected_rows(&model(), FOREVER, FOREVER, commit);
    assert_eq!(rows(snapshot, 2, FOREVER, FOREVER, commit), expected, "{place}");
    assert_eq!(intervals(snapshot, 2, commit), expected_intervals(&model(), commit), "{place}");
}

#[test]
fn a_reader_opens_while_runs_are_replaced() {
    let mut replaced = 0;
    for rebuild in [false, true] {
        for n in 0.. {
            let disk = SimDisk::new();
            let writer = filled(&disk, 5);
            let hooked = HookDisk::new(&disk);
            let (mut calls, mut done) = (0, false);
            let (sender, receiver) = std::sync::mpsc::channel();
            hooked.set(move |_, _| {
                if calls == n {
                    writer.commit(commit_of(&model(), 6)).expect("a commit");
                    if rebuild { writer.rebuild() } else { writer.compact().map(|_| ()) }.expect("new runs");
                    done = true;
                }
                calls += 1;
                sender.send(done).expect("the test listens");
            });
            let place = format!("runs are replaced before call {n}, rebuild: {rebuild}");
            let reader = open_hooked(&hooked, OpenMode::Read, options(3));
            hooked.clear();
            let reader = reader.unwrap_or_else(|e| panic!("{place}: {e}"));
            check(&reader.pin(), &place);
            let runs = reader.status().expect("status").tables[0].runs;
            assert!(runs > 0, "{place}: its manifest and list of commits count");
            if receiver.try_iter().last() != Some(true) {
                break;
            }
            replaced += 1;
        }
    }
    assert!(replaced > 30, "runs were replaced at {replaced} places");
}

#[test]
fn an_open_reader_keeps_its_runs() {
    let disk = SimDisk::new();
    let writer = filled(&disk, 5);
    let reader = Engine::open_with(Path::new("/store"), OpenMode::Read, options(3), components(&disk));
    let reader = reader.expect("a reader");
    writer.commit(commit_of(&model(), 6)).expect("a commit");
    writer.compact().expect("compaction");
    writer.rebuild().expect("a rebuild");
    drop(writer);
    check(&reader.pin(), "after the runs were replaced");
    assert_eq!(reader.pin().commit().0, 5, "the reader stays at its commit");
}

#[test]
fn a_missing_run_is_damage_where_nobody_replaced_it() {
    let disk = SimDisk::new();
    filled(&disk, 5).compact().expect("compaction");
    for path in disk.list(Path::new("/store/runs")).expect("a list") {
        disk.remove(&path).expect("removed");
    }
    let before = disk.operations();
    let opened = Engine::open_with(Path::new("/store"), OpenMode::Read, options(3), components(&disk));
    let error = opened.expect_err("a run is missing");
    assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
    assert!(error.message.contains("run-"), "{error}");
    assert!(disk.operations() - before < 60, "the reader gave up at once");
}
