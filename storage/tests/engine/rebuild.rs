//! Rebuilding beside readers and commits, and what a failure in the middle of it leaves.

use crate::hook::HookDisk;
use crate::power::{manifest_counts, model};
use crate::table::*;
use asofdb_storage::disk::sim::Fault;
use asofdb_storage::disk::{Disk, SimDisk};
use asofdb_storage::engine::{Engine, EngineOptions, ErrorKind, OpenMode};
use asofdb_storage::time::FOREVER;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Asserts that a store has all of the first `commits` commits of the model.
fn check(engine: &Engine, commits: u64, place: &str) {
    let (model, snapshot) = (model(), engine.pin());
    assert_eq!(snapshot.commit().0, commits, "{place}");
    assert_eq!(snapshot.commits().expect("commits").len() as u64, commits, "{place}");
    let expected = expected_rows(&model, FOREVER, FOREVER, commits);
    assert_eq!(rows(&snapshot, 2, FOREVER, FOREVER, commits), expected, "{place}");
    assert_eq!(intervals(&snapshot, 2, commits), expected_intervals(&model, commits), "{place}");
}

fn fill(engine: &Engine, commits: std::ops::RangeInclusive<u64>) {
    for seq in commits {
        engine.commit(commit_of(&model(), seq)).expect("a commit");
    }
}

/// A store with runs of two levels and some events in memory.
fn filled() -> SimDisk {
    let disk = SimDisk::new();
    let engine = open(&disk).expect("a new store");
    fill(&engine, 1..=4);
    engine.compact().expect("compaction");
    fill(&engine, 5..=6);
    drop(engine);
    disk.settled_copy()
}

fn run_files(disk: &SimDisk) -> usize {
    disk.list(Path::new("/store/runs")).expect("a list").len()
}

#[test]
fn readers_see_whole_states_while_a_store_is_rebuilt() {
    let hooked = HookDisk::new(&filled());
    let engine = open_hooked(&hooked, OpenMode::Write, options(3)).expect("the store");
    let looked = Arc::new(AtomicU64::new(0));
    let (reader, count) = (engine.clone(), looked.clone());
    hooked.set(move |op, path| {
        check(&reader, 6, &format!("before {op:?} of {}", path.display()));
        count.fetch_add(1, Ordering::SeqCst);
    });
    engine.rebuild().expect("a rebuild");
    hooked.clear();
    assert!(looked.load(Ordering::SeqCst) > 30, "the rebuild was looked at in its midst");
    check(&engine, 6, "rebuilt");
    drop(engine);
    check(&open(&hooked.disk).expect("the store"), 6, "reopened");
}

#[test]
fn a_commit_in_the_middle_of_a_rebuild_is_kept() {
    let operations = {
        let disk = filled();
        let engine = Engine::open_with(Path::new("/store"), OpenMode::Write, options(100), components(&disk));
        let engine = engine.expect("the store");
        engine.rebuild().expect("a rebuild");
        disk.operations()
    };
    let mut committed = 0;
    for n in 0..operations {
        let hooked = HookDisk::new(&filled());
        // What a commit does must not wait for the rebuild: it runs inside of it.
        let engine = open_hooked(&hooked, OpenMode::Write, options(100)).expect("the store");
        let (writer, before) = (engine.clone(), hooked.disk.operations());
        let done = Arc::new(Mutex::new(0));
        let count = done.clone();
        let disk = hooked.disk.clone();
        hooked.set(move |_, path| {
            let mut count = count.lock().expect("no panic");
            // The log is read with commits held up for a moment: a hook must not wait there.
            if path.starts_with("/store/runs") && disk.operations() - before == n && *count == 0 {
                writer.commit(extra_commit(&model(), 7)).expect("a commit beside the rebuild");
                *count = 1;
            }
        });
        engine.rebuild().expect("a rebuild");
        hooked.clear();
        let done = *done.lock().expect("no panic");
        committed += done;
        for (engine, place) in [(Some(engine), "rebuilt"), (None, "reopened")] {
            let engine = engine.unwrap_or_else(|| open(&hooked.disk).expect("the store"));
            let snapshot = engine.pin();
            assert_eq!(snapshot.commit().0, 6 + done, "{place}, commit before operation {n}");
            let found = rows(&snapshot, 2, FOREVER, FOREVER, 7);
            let new = found.iter().filter(|r| r[0] == Some(EXTRA_KEY)).count() as u64;
            assert_eq!(new, done, "{place}, commit before operation {n}");
        }
    }
    assert!(committed > 10, "only {committed} commits came in the middle");
}

#[test]
fn commits_of_another_thread_are_all_kept() {
    let disk = filled();
    let engine = open(&disk).expect("the store");
    let stop = Arc::new(AtomicBool::new(false));
    let (writer, stopped) = (engine.clone(), stop.clone());
    let committer = std::thread::spawn(move || {
        let mut seq = 6;
        while !stopped.load(Ordering::SeqCst) || seq < 20 {
            seq += 1;
            writer.commit(extra_commit(&model(), seq)).expect("a commit beside rebuilds");
        }
        seq
    });
    for _ in 0..5 {
        engine.rebuild().expect("a rebuild");
    }
    stop.store(true, Ordering::SeqCst);
    let last = committer.join().expect("no panic");
    let count = |engine: &Engine| {
        let status = engine.status().expect("status");
        (status.commit, status.events)
    };
    assert_eq!(count(&engine), (last, 12 + last - 6));
    drop(engine);
    assert_eq!(count(&open(&disk).expect("the store")), (last, 12 + last - 6), "reopened");
}

#[test]
fn a_power_cut_in_a_rebuild_leaves_a_whole_store() {
    let base = filled();
    let whole = base.settled_copy();
    open(&whole).expect("the store").rebuild().expect("a rebuild");
    let operations = whole.operations();
    assert!(operations > 60, "only {operations} operations");
    for n in 1..=operations {
        let disk = base.settled_copy();
        disk.cut_power_after(n);
        let _ = open(&disk).and_then(|engine| engine.rebuild());
        for seed in 0..4 {
            let image = disk.crash_image(seed);
            let place = format!("cut after operation {n}, seed {seed}");
            manifest_counts(&image, &place);
            let engine = open(&image).unwrap_or_else(|e| panic!("{place}: {e}"));
            check(&engine, 6, &place);
            let status = engine.status().expect("status");
            let runs: u64 = status.tables.iter().map(|t| t.runs).sum();
            assert_eq!(run_files(&image) as u64, 2 * runs, "{place}: left over files are removed");
            let names = image.list(Path::new("/store")).expect("a list");
            let lists = names.iter().filter(|p| p.display().to_string().contains("/commits-")).count();
            assert_eq!(lists, 1, "{place}: left over lists are removed");
        }
    }
}

#[test]
fn a_rebuild_that_fails_changes_nothing() {
    let base = filled();
    let whole = base.settled_copy();
    open(&whole).expect("the store").rebuild().expect("a rebuild");
    let mut failed = 0;
    for n in 1..=whole.operations() {
        for takes_effect in [false, true] {
            let disk = base.settled_copy();
            let engine = open(&disk).expect("the store");
            let (kind, operation) = (io::ErrorKind::Other, disk.operations() + n);
            disk.set_fault(Fault { operation, kind, forever: false, takes_effect });
            let place = format!("operation {n} of the rebuild fails, takes effect: {takes_effect}");
            let rebuilt = engine.rebuild();
            disk.clear_fault();
            if let Err(e) = rebuilt {
                assert_eq!(e.kind, ErrorKind::Io, "{place}: {e}");
                failed += 1;
            }
            check(&engine, 6, &place);
            check(&open(&disk.crash_image(0)).expect("the store"), 6, &format!("{place}, power cut"));
            engine.commit(extra_commit(&model(), 7)).unwrap_or_else(|e| panic!("{place}: {e}"));
            engine.compact().unwrap_or_else(|e| panic!("{place}: {e}"));
            drop(engine);
            let engine = open(&disk).unwrap_or_else(|e| panic!("{place}: {e}"));
            assert_eq!(engine.status().expect("status").events, 13, "{place}");
            assert_eq!(engine.verify(None).expect("verification").damage, Vec::<String>::new(), "{place}");
        }
    }
    assert!(failed > 50, "only {failed} rebuilds failed");
}

#[test]
fn what_a_killed_rebuild_left_is_removed_after_its_manifest_is_durable() {
    let base = filled();
    let whole = base.settled_copy();
    open(&whole).expect("the store").rebuild().expect("a rebuild");
    for n in 1..=whole.operations() {
        let disk = base.settled_copy();
        let engine = open(&disk).expect("the store");
        let (kind, operation) = (io::ErrorKind::Other, disk.operations() + n);
        disk.set_fault(Fault { operation, kind, forever: true, takes_effect: true });
        let _ = engine.rebuild();
        drop(engine);
        disk.clear_fault();
        // The process was killed; the names that it gave are seen, and not all of them durable. (With an
        // index they would become so when it is opened.)
        let options = EngineOptions { index: false, ..options(3) };
        let opened = Engine::open_with(Path::new("/store"), OpenMode::Write, options, components(&disk));
        drop(opened.expect("the store"));
        for seed in 0..3 {
            let place = format!("killed after operation {n} of a rebuild, opened, power cut {seed}");
            let opened = open(&disk.crash_image(seed));
            check(&opened.unwrap_or_else(|e| panic!("{place}: {e}")), 6, &place);
        }
    }
}
