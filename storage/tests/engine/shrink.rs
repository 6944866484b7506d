//! A log that gave up the rows which compacted runs have: what must not be lost, and what is said where
//! it is.

use crate::hook::HookDisk;
use crate::power::{manifest_counts, model};
use crate::table::*;
use crate::widen;
use asofdb_storage::disk::sim::Fault;
use asofdb_storage::disk::{Disk, SimDisk};
use asofdb_storage::engine::{Engine, EngineOptions, ErrorKind, OpenMode, Shrunk};
use asofdb_storage::time::FOREVER;
use asofdb_testkit::{Cell as ModelCell, Model};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const STORE: &str = "/store";

fn check_model(engine: &Engine, model: &Model, commits: u64, place: &str) {
    let snapshot = engine.pin();
    assert_eq!(snapshot.commit().0, commits, "{place}");
    assert_eq!(snapshot.commits().expect("commits").len() as u64, commits, "{place}");
    let expected = expected_rows(model, FOREVER, FOREVER, commits);
    assert_eq!(rows(&snapshot, 2, FOREVER, FOREVER, commits), expected, "{place}");
    assert_eq!(intervals(&snapshot, 2, commits), expected_intervals(model, commits), "{place}");
}

fn check(engine: &Engine, commits: u64, place: &str) {
    check_model(engine, &model(), commits, place);
}

fn assert_sound(engine: &Engine, place: &str) {
    assert_eq!(engine.verify(None).expect("verification").damage, Vec::<String>::new(), "{place}");
    assert_eq!(engine.verify_full().expect("verification").damage, Vec::<String>::new(), "{place}");
}

/// Settings that leave the log in full.
fn keeping() -> EngineOptions {
    EngineOptions { keep_log: true, ..options(3) }
}

fn open_with(disk: &SimDisk, mode: OpenMode, options: EngineOptions) -> Engine {
    Engine::open_with(Path::new(STORE), mode, options, components(disk)).expect("the store")
}

/// A compacted store with two segments of the log, none shrunk.
fn compacted() -> SimDisk {
    let disk = SimDisk::new();
    let small = EngineOptions { segment_bytes_max: 900, ..keeping() };
    let engine = open_with(&disk, OpenMode::Create, small);
    for seq in 1..=6 {
        engine.commit(commit_of(&model(), seq)).expect("a commit");
    }
    engine.compact().expect("compaction");
    drop(engine);
    assert!(files(&disk, "log").len() > 1, "several segments");
    disk.settled_copy()
}

/// The same, shrunk.
fn shrunk() -> SimDisk {
    let disk = compacted();
    let done = open(&disk).expect("the store").shrink_log().expect("a smaller log");
    assert_eq!((done.segments, done.blocks_kept), (files(&disk, "log").len() as u64 - 1, 0));
    assert!(done.bytes_after < done.bytes_before, "{done:?}");
    disk.settled_copy()
}

fn files(disk: &SimDisk, dir: &str) -> Vec<PathBuf> {
    disk.list(&Path::new(STORE).join(dir)).expect("a list")
}

fn file(disk: &SimDisk, dir: &str, ending: &str) -> PathBuf {
    let found = files(disk, dir).into_iter().find(|p| p.display().to_string().ends_with(ending));
    found.expect("the file is there")
}

#[test]
fn a_power_cut_while_the_log_shrinks_loses_nothing() {
    let base = compacted();
    let whole = base.settled_copy();
    open(&whole).expect("the store").shrink_log().expect("a smaller log");
    let operations = whole.operations();
    assert!(operations > 20, "only {operations} operations");
    for n in 1..=operations {
        let disk = base.settled_copy();
        disk.cut_power_after(n);
        let _ = open(&disk).and_then(|engine| engine.shrink_log());
        for seed in 0..4 {
            let image = disk.crash_image(seed);
            let place = format!("cut after operation {n}, seed {seed}");
            manifest_counts(&image, &place);
            let engine = open(&image).unwrap_or_else(|e| panic!("{place}: {e}"));
            let is_left = |p: &PathBuf| p.extension().is_some_and(|e| e == "tmp");
            assert!(!files(&image, "log").iter().any(is_left), "{place}: left over files are removed");
            check(&engine, 6, &place);
            assert_sound(&engine, &place);
            engine.shrink_log().unwrap_or_else(|e| panic!("{place}: {e}"));
            assert_eq!(engine.status().expect("status").log_events_shrunk, 12, "{place}");
            assert_sound(&engine, &place);
        }
    }
}

#[test]
fn any_call_that_fails_while_the_log_shrinks_leaves_a_whole_store() {
    let base = compacted();
    let whole = base.settled_copy();
    open(&whole).expect("the store").shrink_log().expect("a smaller log");
    let mut failed = 0;
    for n in 1..=whole.operations() {
        for takes_effect in [false, true] {
            let disk = base.settled_copy();
            let engine = open(&disk).expect("the store");
            let (kind, operation) = (io::ErrorKind::Other, disk.operations() + n);
            disk.set_fault(Fault { operation, kind, forever: false, takes_effect });
            let place = format!("operation {n} fails, takes effect: {takes_effect}");
            let done = engine.shrink_log();
            disk.clear_fault();
            failed += u64::from(done.is_err());
            check(&engine, 6, &place);
            check(&open(&disk.crash_image(0)).expect("the store"), 6, &format!("{place}, power cut"));
            drop(engine);
            let engine = open(&disk).unwrap_or_else(|e| panic!("{place}: {e}"));
            engine.commit(extra_commit(&model(), 7)).unwrap_or_else(|e| panic!("{place}: {e}"));
            engine.compact().unwrap_or_else(|e| panic!("{place}: {e}"));
            assert_sound(&engine, &place);
        }
    }
    assert!(failed > 20, "only {failed} attempts failed");
}

#[test]
fn the_log_does_not_shrink_while_the_manifest_is_in_doubt() {
    let base = compacted();
    let (mut shrank, mut left) = (0, 0);
    for n in 1.. {
        let disk = base.settled_copy();
        let engine = open(&disk).expect("the store");
        engine.commit(extra_commit(&model(), 7)).expect("a commit");
        let (kind, operation) = (io::ErrorKind::Other, disk.operations() + n);
        disk.set_fault(Fault { operation, kind, forever: false, takes_effect: true });
        let flushed = engine.flush();
        disk.clear_fault();
        match engine.shrink_log().expect("no fault any more").segments {
            _ if flushed.is_ok() => break,
            0 => left += 1,
            _ => shrank += 1,
        }
        let engine = open(&disk.crash_image(n)).expect("the store");
        assert_eq!(engine.pin().commit().0, 7, "operation {n}");
        assert_sound(&engine, &format!("operation {n}"));
    }
    assert!(shrank > 0 && left > 0, "shrank {shrank} times, left {left} times");
}

#[test]
fn readers_see_whole_states_while_the_log_shrinks() {
    let hooked = HookDisk::new(&compacted());
    let engine = open_hooked(&hooked, OpenMode::Write, options(3)).expect("the store");
    let looked = Arc::new(AtomicU64::new(0));
    let (count, disk) = (looked.clone(), hooked.disk.clone());
    let open_long = open_with(&disk, OpenMode::Read, options(3));
    hooked.set(move |op, path| {
        let place = format!("before {op:?} of {}", path.display());
        check(&open_with(&disk, OpenMode::Read, options(3)), 6, &place);
        check(&open_long, 6, &place);
        assert_sound(&open_long, &place);
        count.fetch_add(1, Ordering::SeqCst);
    });
    engine.shrink_log().expect("a smaller log");
    hooked.clear();
    assert!(looked.load(Ordering::SeqCst) > 20, "shrinking was looked at in its midst");
    check(&engine, 6, "shrunk");
}

#[test]
fn snapshots_and_readers_of_before_go_on_after_the_log_has_shrunk() {
    let disk = SimDisk::new();
    let roomy = EngineOptions { memory_events_max: 1000, ..options(3) };
    let engine = open_with(&disk, OpenMode::Create, roomy.clone());
    for seq in 1..=6 {
        engine.commit(commit_of(&model(), seq)).expect("a commit");
    }
    let (pinned, reader) = (engine.pin(), open_with(&disk, OpenMode::Read, roomy));
    assert_eq!(reader.status().expect("status").memory_events, 12, "no run has them");
    engine.compact().expect("compaction");
    engine.commit(extra_commit(&model(), 7)).expect("a commit");
    engine.compact().expect("compaction");
    assert_eq!(engine.status().expect("status").log_events_shrunk, 13);
    let expected = expected_rows(&model(), FOREVER, FOREVER, 6);
    assert_eq!(rows(&pinned, 2, FOREVER, FOREVER, 6), expected, "a snapshot of before");
    check(&reader, 6, "a reader of before");
    // It makes the rows that the log has no more out of what it has in memory.
    assert_eq!(reader.verify_full().expect("verification").damage, Vec::<String>::new());
    assert_eq!(pinned.commits().expect("commits").len(), 6);
}

#[test]
fn the_version_of_a_segment_says_whether_it_was_shrunk() {
    let version = |disk: &SimDisk, path: &PathBuf| disk.peek(path).expect("a segment")[8..12].to_vec();
    let (whole, disk) = (compacted(), shrunk());
    let mut segments = files(&disk, "log");
    segments.sort();
    let last = segments.pop().expect("a segment");
    assert_eq!(version(&disk, &last), [3, 0, 0, 0], "the one that is written to");
    assert!(!segments.is_empty());
    for path in &segments {
        let file = path.file_name().expect("a name").to_owned();
        // What an older version does not know it refuses.
        assert_eq!(version(&disk, path), [4, 0, 0, 0], "{file:?}");
        assert_eq!(version(&whole, path), [3, 0, 0, 0], "{file:?}");
    }
}

#[test]
fn shrinking_goes_on_beside_commits_and_leaves_what_is_not_compacted() {
    let disk = compacted();
    let engine = open(&disk).expect("the store");
    // In memory, and in a run that was flushed and not compacted.
    engine.commit(extra_commit(&model(), 7)).expect("a commit");
    let done = engine.shrink_log().expect("a smaller log");
    assert!(done.segments >= 1, "{done:?}");
    let before = engine.status().expect("status");
    assert!(before.log_events_shrunk < 12, "the segment of the newest commit stays: {before:?}");
    engine.flush().expect("a flush");
    assert_eq!(engine.shrink_log().expect("nothing"), Shrunk::default());
    engine.commit(extra_commit(&model(), 8)).expect("a commit");
    engine.compact().expect("compaction");
    assert_eq!(engine.status().expect("status").log_events_shrunk, 14);
    assert_eq!(engine.shrink_log().expect("nothing more"), Shrunk::default());
    assert_sound(&engine, "all shrunk");
}

#[test]
fn a_log_that_is_to_be_kept_is_kept() {
    let disk = compacted();
    let logs = |disk: &SimDisk| -> Vec<_> { files(disk, "log").iter().map(|p| disk.peek(p)).collect() };
    let before = logs(&disk);
    let engine = open_with(&disk, OpenMode::Write, keeping());
    engine.compact().expect("compaction");
    assert_eq!(engine.shrink_log().expect("nothing"), Shrunk::default());
    assert_eq!(engine.status().expect("status").log_events_shrunk, 0);
    drop(engine);
    assert!(logs(&disk) == before, "the log is as it was");
}

#[test]
fn columns_that_widen_after_the_log_was_shrunk_show_what_was_sent() {
    for cells in widen::chains() {
        let types = widen::types_of(&cells);
        let expected = widen::shown(&cells, &types);
        let disk = SimDisk::new();
        let engine = open(&disk).expect("a store");
        for (i, cell) in cells.iter().enumerate() {
            widen::commit(&engine, i, &types, *cell);
            engine.compact().expect("compaction");
            assert_eq!(engine.status().expect("status").log_events_shrunk, i as u64 + 1, "{cells:?}");
            assert_sound(&engine, &format!("{cells:?} up to {i}"));
        }
        assert_eq!(widen::values(&engine), expected, "shrunk: {cells:?}");
        drop(engine);
        let engine = open(&disk).expect("the store");
        engine.rebuild().expect("a rebuild");
        assert_eq!(widen::values(&engine), expected, "rebuilt: {cells:?}");
        assert_sound(&engine, &format!("rebuilt: {cells:?}"));
    }
}

#[test]
fn a_flipped_bit_in_a_run_that_is_the_only_copy_is_found_and_nothing_thrown_away() {
    let base = shrunk();
    let run = file(&base, "runs", ".parquet");
    let bytes = base.peek(&run).expect("the run");
    for at in (0..bytes.len()).step_by(bytes.len() / 40) {
        let disk = base.settled_copy();
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        disk.overwrite(&run, changed);
        let engine = open_with(&disk, OpenMode::Write, EngineOptions { index: false, ..options(3) });
        let damage = engine.verify(None).expect("verification").damage;
        assert!(damage.iter().any(|d| d.contains("run-")), "byte {at}: {damage:?}");
        assert!(!engine.verify_full().expect("verification").damage.is_empty(), "byte {at}");
        let before = (files(&disk, "runs"), disk.peek(&Path::new(STORE).join("manifest")));
        let error = engine.rebuild().expect_err("the rows are in the damaged run only");
        assert_eq!(error.kind, ErrorKind::Damaged, "byte {at}: {error}");
        assert!(error.message.contains("run-"), "byte {at}: {error}");
        assert_eq!(
            before,
            (files(&disk, "runs"), disk.peek(&Path::new(STORE).join("manifest"))),
            "byte {at}"
        );
    }
}

#[test]
fn a_changed_value_is_found_by_the_chain_although_every_digest_was_made_anew() {
    // The same store, made with another value: secrets and times are the same, and so are the lengths.
    let of_value = |value| {
        let mut model = model();
        *model.changes[0].cells.get_mut(&0).expect("a value") = ModelCell::Int(value);
        model
    };
    // No times of the model, which a row would take from its head.
    let (one, other) = (of_value(50), of_value(51));
    let plain = || EngineOptions { index: false, ..options(3) };
    let make = |model: &Model| {
        let disk = SimDisk::new();
        let engine = open_with(&disk, OpenMode::Create, plain());
        for seq in 1..=6 {
            engine.commit(commit_of(model, seq)).expect("a commit");
        }
        engine.compact().expect("compaction");
        drop(engine);
        disk
    };
    let (disk, forged) = (make(&one), make(&other));
    let manifest = Path::new(STORE).join("manifest");
    for path in files(&forged, "runs").into_iter().chain([manifest]) {
        disk.overwrite(&path, forged.peek(&path).expect("a file"));
    }
    let engine = open_with(&disk, OpenMode::Read, plain());
    check_model(&engine, &other, 6, "the forged store answers as its runs say");
    assert_eq!(engine.verify(None).expect("verification").damage, Vec::<String>::new(), "digests are right");
    let damage = engine.verify_full().expect("verification").damage;
    let told = damage.iter().filter(|d| d.contains("commit 1:") && d.contains("table t")).count();
    assert_eq!((told, damage.len()), (1, 1), "{damage:?}");
    drop(engine);
    let engine = open_with(&disk, OpenMode::Write, plain());
    let error = engine.rebuild().expect_err("not what was committed");
    assert!(error.message.contains("commit 1:"), "{error}");
}

#[test]
fn a_shrunk_store_without_its_manifest_is_refused() {
    let base = shrunk();
    let manifest = Path::new(STORE).join("manifest");
    for missing in [true, false] {
        let disk = base.settled_copy();
        match missing {
            true => disk.remove(&manifest).expect("removed"),
            false => disk.overwrite(&manifest, b"no manifest".to_vec()),
        }
        for mode in [OpenMode::Read, OpenMode::Write, OpenMode::Create] {
            let before = (files(&disk, "runs"), files(&disk, "log"));
            let error = Engine::open_with(Path::new(STORE), mode, options(3), components(&disk));
            let error = error.expect_err("runs are not known");
            assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
            assert!(error.message.contains("manifest") && error.message.contains("shrunk"), "{error}");
            assert_eq!(before, (files(&disk, "runs"), files(&disk, "log")));
        }
    }
}

#[test]
fn a_lost_list_of_commits_is_made_again_from_a_shrunk_log() {
    let base = shrunk();
    for missing in [true, false] {
        let disk = base.settled_copy();
        let list = file(&disk, "", "commits-000000000001");
        match missing {
            true => disk.remove(&list).expect("removed"),
            false => disk.overwrite(&list, b"no list".to_vec()),
        }
        check(&open_with(&disk, OpenMode::Read, options(3)), 6, "a reader");
        let engine = open(&disk).expect("the store");
        check(&engine, 6, "a writer");
        engine.commit(extra_commit(&model(), 7)).expect("a commit");
        engine.compact().expect("compaction");
        assert_sound(&engine, "written anew");
        drop(engine);
        let engine = open(&disk).expect("the store");
        assert_eq!(engine.status().expect("status").events, 13);
    }
}
