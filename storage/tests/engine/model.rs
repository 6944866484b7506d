//! Every answer of the engine equals the model's: fresh, reopened, compacted, shrunk, with an index that was
//! made anew, rebuilt from a shrunk log.

use crate::table::*;
use asofdb_storage::disk::{Disk, SimDisk};
use asofdb_storage::engine::{Bounds, Engine, EngineOptions, OpenMode, Snapshot};
use asofdb_storage::log::{Log, LogSettings, Start};
use asofdb_storage::time::{CommitSeq, FOREVER};
use asofdb_testkit::{Model, Shape, generate};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

fn check(engine: &Engine, model: &Model, state: &str) {
    check_snapshot(&engine.pin(), model, state);
}

fn check_snapshot(snapshot: &Snapshot, model: &Model, state: &str) {
    let columns = model.columns as usize;
    let mut asked = Vec::new();
    let before = |breaks: Vec<i64>| breaks.first().map(|b| b - 1).into_iter().chain(breaks).chain([FOREVER]);
    for commit in [1, 2, 3] {
        for valid in before(model.valid_breaks()) {
            for system in before(model.system_breaks()) {
                let expected = expected_rows(model, valid, system, commit);
                let at = format!("{state}, valid {valid}, system {system}, commit {commit}");
                assert_eq!(rows(snapshot, columns, valid, system, commit), expected, "scan, {at}");
                let bounds = Bounds { valid, system, commit: CommitSeq(commit) };
                assert_eq!(looked_up(snapshot, &model.keys(), bounds, columns), expected, "points, {at}");
                asked.extend(model.keys().into_iter().chain([EXTRA_KEY as u32]).map(|key| (key, bounds)));
            }
        }
        let expected = expected_intervals(model, commit);
        assert_eq!(intervals(snapshot, columns, commit), expected, "intervals, {state}, commit {commit}");
    }
    let expected: Vec<_> = asked.iter().map(|(key, bounds)| expected_row(model, *key, *bounds)).collect();
    for (piece, singles) in [(1, false), (5, false), (5, true), (usize::MAX, false)] {
        let found = passed(snapshot, &asked, piece, singles, columns);
        assert_eq!(found, expected, "{state}, in pieces of {piece}, looked up: {singles}");
    }
}

/// Opens the store with a log that is left in full.
fn open_keeping(disk: &SimDisk) -> Engine {
    let keeping = EngineOptions { keep_log: true, ..options(3) };
    Engine::open_with(Path::new("/store"), OpenMode::Write, keeping, components(disk))
        .expect("the same store")
}

fn check_all(model: &Model) {
    let disk = SimDisk::new();
    let engine = open(&disk).expect("a new store");
    for seq in 1..=3 {
        engine.commit(commit_of(model, seq)).expect("a commit");
    }
    check(&engine, model, "fresh");
    drop(engine);
    let engine = open_keeping(&disk);
    check(&engine, model, "reopened");
    engine.compact().expect("compaction");
    check(&engine, model, "compacted");
    drop(engine);
    check_shrunk(&disk, model);
}

/// The states of a store whose log has given up its rows.
fn check_shrunk(disk: &SimDisk, model: &Model) {
    let engine = open(disk).expect("the same store");
    let before = engine.pin();
    engine.compact().expect("compaction");
    check_snapshot(&before, model, "a snapshot of before shrinking");
    drop(before);
    check(&engine, model, "shrunk");
    assert_no_rows_in_log(disk);
    assert_sound(&engine, "shrunk");
    drop(engine);
    let removed = disk.remove(Path::new("/store/index.redb"));
    assert_eq!(removed.is_ok(), !model.changes.is_empty(), "an index of what there is");
    let engine = open(disk).expect("the same store");
    check(&engine, model, "reopened after shrinking, with a new index");
    engine.rebuild().expect("a rebuild");
    check(&engine, model, "rebuilt after shrinking");
    assert_no_rows_in_log(disk);
    assert_sound(&engine, "rebuilt after shrinking");
    engine.compact().expect("compaction");
    check(&engine, model, "compacted again");
    assert_sound(&engine, "compacted again");
}

fn assert_sound(engine: &Engine, state: &str) {
    let report = engine.verify(None).expect("verification");
    assert_eq!((report.damage, report.frames), (vec![], 3), "{state}");
    let full = engine.verify_full().expect("verification");
    assert_eq!((full.damage, full.commits), (vec![], 3), "{state}");
}

/// Every event of the log is in runs only.
fn assert_no_rows_in_log(disk: &SimDisk) {
    let dir = Path::new("/store/log");
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let id = Log::store_id_of(&*disk, dir).expect("an id").expect("a log");
    let settings = LogSettings { writable: false, ..LogSettings::new(id) };
    let (log, _) = Log::open(disk, dir, settings).expect("the log");
    for frame in log.read_from(Start::Oldest).expect("a reader") {
        let (_, frame) = frame.expect("a frame");
        let rows = frame.blocks.iter().filter(|b| !b.is_empty()).count();
        assert_eq!(rows, 0, "blocks of commit {} that kept their rows", frame.sequence);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ordinary_histories(model in generate::model(Shape { keys: 3, ..Shape::ordinary() })) {
        check_all(&model);
    }

    #[test]
    fn histories_with_leaves_b5(
        model in generate::model(Shape { keys: 2, objects: true, ..Shape::ordinary() })
    ) {
        check_all(&model);
    }

    #[test]
    fn histories_of_everything_with_leaves_b5(
        model in generate::model(Shape { objects: true, ..Shape::everything() })
    ) {
        check_all(&model);
    }

    #[test]
    fn histories_of_everything(model in generate::model(Shape::everything())) {
        check_all(&model);
    }
}
