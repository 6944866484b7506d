//! What happens beside a merge: commits, flushes, and columns that widen.

use crate::hook::HookDisk;
use crate::power::model;
use crate::table::*;
use crate::widen::{commit as widening_commit, values};
use asofdb_storage::disk::SimDisk;
use asofdb_storage::engine::{Engine, EngineOptions, OpenMode};
use asofdb_storage::time::FOREVER;
use asofdb_storage::value::{Cell, ColumnType};
use std::sync::mpsc::channel;

/// A store whose worker finds nothing to do, so that the test decides what happens when.
fn quiet(disk: &HookDisk) -> Engine {
    let options = EngineOptions { background: true, ..options(1_000) };
    open_hooked(disk, OpenMode::Create, options).expect("a store")
}

/// Calls `act` before the `n`th operation on the file of a run under construction, once; false if
/// there were not so many.
fn during(disk: &HookDisk, n: usize, act: impl Fn() + Send + 'static, merge: impl FnOnce()) -> bool {
    let (mut calls, (sender, receiver)) = (0, channel());
    disk.set(move |_, path| {
        if path.starts_with("/store/runs") && path.extension().is_some_and(|e| e == "tmp") {
            if calls == n {
                act();
                sender.send(()).expect("the test listens");
            }
            calls += 1;
        }
    });
    merge();
    disk.clear();
    receiver.try_recv().is_ok()
}

#[test]
fn commits_and_flushes_go_on_beside_a_merge() {
    let mut places = 0;
    for n in 0.. {
        let disk = SimDisk::new();
        let hooked = HookDisk::new(&disk);
        let engine = quiet(&hooked);
        for seq in 1..=4 {
            engine.commit(commit_of(&model(), seq)).expect("a commit");
            engine.flush().expect("a flush");
        }
        let writer = engine.clone();
        let act = move || {
            writer.commit(commit_of(&model(), 5)).expect("a commit beside a merge");
            writer.flush().expect("a flush beside a merge");
            writer.commit(commit_of(&model(), 6)).expect("another commit");
        };
        let compact = || assert_eq!(engine.compact().expect("a merge"), 1);
        let acted = during(&hooked, n, act, compact);
        let last = if acted { 6 } else { 4 };
        let status = engine.status().expect("status");
        assert_eq!(
            status.tables[0].runs,
            if acted { 2 } else { 1 },
            "place {n}: the merged run and the flushed one"
        );
        for state in ["merged", "reopened"] {
            let engine =
                if state == "merged" { engine.clone() } else { open(&disk.crash_image(0)).expect("open") };
            let snapshot = engine.pin();
            assert_eq!(snapshot.commit().0, last, "{state}, place {n}");
            let expected = expected_rows(&model(), FOREVER, FOREVER, last);
            assert_eq!(rows(&snapshot, 2, FOREVER, FOREVER, last), expected, "{state}, place {n}");
        }
        if !acted {
            break;
        }
        places += 1;
    }
    assert!(places > 3, "{places} places");
}

#[test]
fn a_merge_whose_runs_were_replaced_is_given_up() {
    let types = [ColumnType::Decimal { integer: 1, scale: 2 }; 3].into_iter().chain([ColumnType::Text]);
    let types: Vec<ColumnType> = types.collect();
    let decimal = |unscaled| Cell::Decimal { unscaled, scale: 2 };
    let expected: Vec<Option<String>> = ["1.00", "1.10", "1.20", "abc"].map(|t| Some(t.to_owned())).to_vec();
    let mut places = 0;
    for n in 0.. {
        let disk = SimDisk::new();
        let hooked = HookDisk::new(&disk);
        let engine = quiet(&hooked);
        for i in 0..3 {
            widening_commit(&engine, i, &types, decimal(100 + 10 * i as i128));
            engine.flush().expect("a flush");
        }
        let (writer, all) = (engine.clone(), types.clone());
        let act = move || widening_commit(&writer, 3, &all, Cell::Text("abc"));
        let acted = during(&hooked, n, act, || {
            engine.compact().expect("a merge");
        });
        if !acted {
            break;
        }
        places += 1;
        assert_eq!(values(&engine), expected, "place {n}");
        drop(engine);
        assert_eq!(values(&open(&disk).expect("open")), expected, "place {n}, reopened");
    }
    assert!(places > 3, "{places} places");
}

#[test]
fn commits_do_not_wait_for_merging_behind_them() {
    let disk = SimDisk::new();
    let hooked = HookDisk::new(&disk);
    let options = EngineOptions { background: true, ..options(1) };
    let engine = open_hooked(&hooked, OpenMode::Create, options).expect("a store");
    let ((started, begun), (go, gone)) = (channel(), channel::<()>());
    hooked.set(move |_, _| {
        if std::thread::current().name() == Some("asofdb-merger") {
            // Both are over once the test lets the merge go on.
            let _ = started.send(());
            let _ = gone.recv();
        }
    });
    let (writer, (done, ended)) = (engine.clone(), channel());
    let commits = std::thread::spawn(move || {
        writer.commit(commit_of(&model(), 1)).expect("a commit");
        let (mut seq, mut more) = (1, None);
        while more != Some(0) {
            seq += 1;
            writer.commit(extra_commit(&model(), seq)).expect("a commit");
            more = more.map(|n: u32| n - 1).or_else(|| begun.try_recv().is_ok().then_some(30));
        }
        done.send(seq).expect("the test listens");
    });
    let last = ended.recv_timeout(std::time::Duration::from_secs(60)).expect("commits beside a merge");
    commits.join().expect("commits");
    drop(go);
    assert_eq!(engine.pin().commit().0, last);
    drop(engine);
    let engine = open(&disk).expect("open");
    let status = engine.status().expect("status");
    assert_eq!(status.commit, last);
    // Of flushed runs fewer than eight are left, of merged ones fewer than four a level; without merges there
    // would be more than twenty.
    assert!(status.tables[0].runs < 8 + 2 * 3, "{} runs", status.tables[0].runs);
}

#[test]
fn closing_leaves_little_that_is_in_no_run() {
    let first = model().changes.iter().filter(|c| c.commit == 1).count();
    let counted = first + 2 + 3 * 20;
    for (most, left) in [(counted - 1, 0), (counted, first as u64 + 2)] {
        let disk = SimDisk::new();
        let hooked = HookDisk::new(&disk);
        let options = EngineOptions { background: true, closing_events_max: most, ..options(1_000) };
        let engine = open_hooked(&hooked, OpenMode::Create, options).expect("a store");
        engine.commit(commit_of(&model(), 1)).expect("a commit");
        for seq in 2..=3 {
            engine.commit(extra_commit(&model(), seq)).expect("a commit");
        }
        drop(engine);
        let image = disk.crash_image(0);
        let reading = EngineOptions { background: false, ..EngineOptions::default() };
        let engine = open_hooked(&HookDisk::new(&image), OpenMode::Read, reading).expect("open");
        let status = engine.status().expect("status");
        assert_eq!((status.events, status.memory_events), (first as u64 + 2, left), "at most {most}");
        assert_eq!(rows(&engine.pin(), 2, FOREVER, FOREVER, 3).len(), 3, "at most {most}");
    }
}

#[test]
fn what_flushes_and_merges_wrote_is_counted() {
    let disk = SimDisk::new();
    let engine = quiet(&HookDisk::new(&disk));
    let written = || {
        let status = engine.status().expect("status");
        let runs: u64 = status.tables.iter().map(|t| t.run_bytes).sum();
        (status.flushed_bytes, status.merged_bytes, runs)
    };
    assert_eq!(written(), (0, 0, 0));
    for seq in 1..=2 {
        engine.commit(commit_of(&model(), seq)).expect("a commit");
        engine.flush().expect("a flush");
    }
    let (flushed, merged, runs) = written();
    assert_eq!((flushed, merged), (runs, 0), "what was flushed is there");
    assert!(flushed > 0);
    assert_eq!(engine.compact().expect("a merge"), 1);
    let (again, merged, runs) = written();
    assert_eq!((again, merged), (flushed, runs), "the merge wrote what is there now");
}
