//! The keyed index: answers are the same with it and without it, whatever state it is in.

use crate::hook::HookDisk;
use crate::power;
use crate::table::*;
use asofdb_storage::clock::ManualClock;
use asofdb_storage::disk::{Disk, SimDisk};
use asofdb_storage::engine::{Bounds, Components, Engine, EngineOptions, OpenMode};
use asofdb_storage::time::{CommitSeq, FOREVER};
use asofdb_testkit::{Model, Shape, generate};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const INDEX: &str = "/store/index.redb";

fn open_with(disk: &SimDisk, index: bool, memory_events_max: usize) -> Engine {
    let options = EngineOptions { index, ..options(memory_events_max) };
    Engine::open_with(Path::new("/store"), OpenMode::Create, options, components(disk)).expect("a store")
}

fn indexed(engine: &Engine) -> u64 {
    engine.status().expect("status").tables[0].indexed
}

/// Asserts that questions about keys get the model's answers.
fn check(engine: &Engine, model: &Model, state: &str) {
    let (snapshot, columns) = (engine.pin(), model.columns as usize);
    let some = |breaks: Vec<i64>| {
        let first = breaks.first().map(|b| b - 1);
        first.into_iter().chain(breaks).chain([FOREVER - 1, FOREVER]).collect::<Vec<_>>()
    };
    for commit in 1..=snapshot.commit().0 {
        for valid in some(model.valid_breaks()) {
            for system in some(model.system_breaks()) {
                let expected = expected_rows(model, valid, system, commit);
                let at = format!("{state}, valid {valid}, system {system}, commit {commit}");
                let bounds = Bounds { valid, system, commit: CommitSeq(commit) };
                assert_eq!(looked_up(&snapshot, &model.keys(), bounds, columns), expected, "points, {at}");
                assert_eq!(rows_of_keys(&snapshot, &model.keys(), bounds, columns), expected, "scan, {at}");
            }
        }
    }
    let damage = engine.verify(None).expect("verification").damage;
    assert_eq!(damage, Vec::<String>::new(), "{state}");
}

/// Every state that index, runs and memory can be in to each other.
fn check_states(model: &Model) {
    let disk = SimDisk::new();
    let engine = open_with(&disk, true, 1000);
    engine.commit(commit_of(model, 1)).expect("a commit");
    check(&engine, model, "no runs");
    engine.flush().expect("a flush");
    check(&engine, model, "indexed");
    engine.commit(commit_of(model, 2)).expect("a commit");
    check(&engine, model, "events above the index");
    drop(engine);
    let engine = open_with(&disk, false, 1000);
    engine.flush().expect("a flush");
    drop(engine);
    let engine = open_with(&disk, true, 1000);
    check(&engine, model, "runs above the index");
    engine.flush().expect("a flush");
    engine.compact().expect("compaction");
    check(&engine, model, "brought up and compacted");
    let old = engine.pin();
    engine.commit(commit_of(model, 3)).expect("a commit");
    engine.flush().expect("a flush");
    check(&engine, model, "brought up again");
    let bounds = Bounds { valid: FOREVER, system: FOREVER, commit: CommitSeq(3) };
    let found = looked_up(&old, &model.keys(), bounds, model.columns as usize);
    assert_eq!(found, expected_rows(model, FOREVER, FOREVER, 2), "an old snapshot beside a newer index");
    drop((old, engine));
    check(&open_with(&disk, true, 1000), model, "reopened");
    let engine = open_with(&disk, true, 1000);
    engine.rebuild().expect("a rebuild");
    check(&engine, model, "rebuilt");
    drop(engine);
    check(&open_with(&disk, false, 1000), model, "without the index");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ordinary_histories_are_answered_alike(model in generate::model(Shape { keys: 3, ..Shape::ordinary() })) {
        check_states(&model);
    }

    #[test]
    fn histories_with_leaves_are_answered_alike(
        model in generate::model(Shape { keys: 2, objects: true, ..Shape::ordinary() })
    ) {
        check_states(&model);
    }

    #[test]
    fn histories_of_everything_are_answered_alike(model in generate::model(Shape::everything())) {
        check_states(&model);
    }
}

/// A store of the first `commits` commits with an index, each value of the last column raised by `add`.
fn filled(commits: u64, add: i64) -> (SimDisk, Engine) {
    let disk = SimDisk::new();
    let engine = open_with(&disk, true, 1000);
    let mut model = power::model();
    model.changes.iter_mut().flat_map(|c| &mut c.cells).for_each(|(_, cell)| {
        if let asofdb_testkit::Cell::Int(v) = cell {
            *v += add;
        }
    });
    for seq in 1..=commits {
        engine.commit(commit_of(&model, seq)).expect("a commit");
    }
    engine.compact().expect("compaction");
    (disk, engine)
}

fn latest(engine: &Engine) -> Vec<Vec<Option<i64>>> {
    let bounds = Bounds::latest(engine.pin().commit());
    looked_up(&engine.pin(), &power::model().keys(), bounds, 2)
}

fn expected(commits: u64) -> Vec<Vec<Option<i64>>> {
    expected_rows(&power::model(), FOREVER, FOREVER, commits)
}

#[test]
fn look_ups_are_answered_by_the_index_and_verification_compares_it() {
    let (disk, engine) = filled(6, 0);
    assert_eq!((indexed(&engine), latest(&engine)), (6, expected(6)));
    drop(engine);
    // The same store id, commits and instants, but other values: only its runs can tell.
    let (other, engine) = filled(6, 1000);
    let others = latest(&engine);
    drop(engine);
    assert_ne!(others, expected(6));
    disk.overwrite(Path::new(INDEX), other.peek(Path::new(INDEX)).expect("an index"));
    let engine = open_with(&disk, true, 1000);
    assert_eq!(latest(&engine), others, "the answer comes from the index");
    let damage = engine.verify(None).expect("verification").damage;
    assert!(damage.len() == 1 && damage[0].contains("entries of table t are not right"), "{damage:?}");
    assert_eq!(engine.verify_full().expect("verification").damage, damage, "compared with the log");
    engine.rebuild().expect("a rebuild");
    assert_eq!((indexed(&engine), latest(&engine)), (6, expected(6)), "a rebuild makes the index again");
    assert_eq!(engine.verify_full().expect("verification").damage, Vec::<String>::new());
}

#[test]
fn fault_d8_an_index_of_another_history_is_not_used_and_made_again() {
    let (longer, engine) = filled(6, 1000);
    drop(engine);
    let bytes = longer.peek(Path::new(INDEX)).expect("an index");
    let (disk, engine) = filled(4, 0);
    drop(engine);
    disk.overwrite(Path::new(INDEX), bytes);
    let engine = open_with(&disk, true, 1000);
    assert_eq!((indexed(&engine), latest(&engine)), (0, expected(4)), "it is ahead of the log");
    drop(engine);
    // Commits 5 and 6 now come at other instants than in the other history.
    let components = Components { clock: Arc::new(ManualClock::new(9_000_000)), ..components(&disk) };
    let engine = Engine::open_with(Path::new("/store"), OpenMode::Write, options(1000), components);
    let engine = engine.expect("the store");
    for seq in 5..=6 {
        engine.commit(commit_of(&power::model(), seq)).expect("a commit");
    }
    drop(engine);
    let engine = open_with(&disk, false, 1000);
    engine.flush().expect("a flush");
    drop(engine);
    let engine = open_with(&disk, true, 1000);
    assert_eq!(latest(&engine), expected(6), "the number of the commit is right, its instant is not");
    engine.compact().expect("compaction");
    assert_eq!((indexed(&engine), latest(&engine)), (6, expected(6)), "made again");
    assert_eq!(engine.verify(None).expect("verification").damage, Vec::<String>::new());
}

#[test]
fn fault_d8_a_damaged_or_missing_index_costs_no_answer_and_is_made_again() {
    let (disk, engine) = filled(4, 0);
    let older = disk.peek(Path::new(INDEX));
    for seq in 5..=6 {
        engine.commit(commit_of(&power::model(), seq)).expect("a commit");
    }
    engine.compact().expect("compaction");
    drop(engine);
    let whole = disk.peek(Path::new(INDEX)).expect("an index");
    let half = whole[..whole.len() / 2].to_vec();
    let no_index = Some(b"no index".to_vec());
    for bytes in [None, Some(vec![]), no_index, Some(vec![7; 100_000]), Some(half), older] {
        let place = format!("{:?} bytes", bytes.as_ref().map(Vec::len));
        match bytes {
            Some(bytes) => disk.overwrite(Path::new(INDEX), bytes),
            None => disk.remove(Path::new(INDEX)).expect("removed"),
        }
        let engine = open_with(&disk, true, 1000);
        assert_eq!((indexed(&engine), latest(&engine)), (0, expected(6)), "{place}");
        engine.flush().expect("a flush");
        assert_eq!((indexed(&engine), latest(&engine)), (6, expected(6)), "{place}");
        assert_eq!(engine.status().expect("status").background_error, None, "{place}");
    }
}

#[test]
fn fault_d21_a_power_cut_while_the_index_is_written_costs_no_answer() {
    let run = |disk: &SimDisk| -> Result<(), asofdb_storage::engine::Error> {
        let engine = open(disk)?;
        for seq in 1..=6 {
            engine.commit(commit_of(&power::model(), seq))?;
            engine.flush()?;
        }
        engine.compact().map(|_| ())
    };
    let whole = SimDisk::new();
    run(&whole).expect("the whole run");
    let operations = whole.operations();
    let mut used = 0;
    for n in (1..=operations).step_by(operations as usize / 150) {
        let disk = SimDisk::new();
        disk.cut_power_after(n);
        let _ = run(&disk);
        for seed in 0..3 {
            let place = format!("cut after operation {n}, seed {seed}");
            let engine = open(&disk.crash_image(seed)).unwrap_or_else(|e| panic!("{place}: {e}"));
            let commits = engine.pin().commit().0;
            if commits == 0 {
                continue;
            }
            used += u64::from(indexed(&engine) > 0);
            assert_eq!(latest(&engine), expected(commits), "{place}");
            engine.compact().unwrap_or_else(|e| panic!("{place}: {e}"));
            assert_eq!((indexed(&engine) > 0, latest(&engine)), (true, expected(commits)), "{place}");
            let damage = engine.verify(None).expect("verification").damage;
            assert_eq!(damage, Vec::<String>::new(), "{place}");
        }
    }
    println!(
        "D21: {} power cuts, seeds 0 to 2; the index answered after {used}",
        operations.div_ceil(operations / 150)
    );
    assert!(used > 50, "the index was there after {used} cuts");
}

#[test]
fn a_disk_that_refuses_the_index_costs_nothing_else() {
    let hooked = HookDisk::new(&SimDisk::new());
    let engine = open_hooked(&hooked, OpenMode::Create, options(1000)).expect("a store");
    engine.commit(commit_of(&power::model(), 1)).expect("a commit");
    // A directory of that name is in the way.
    hooked.disk.create_dir(Path::new(INDEX)).expect("a directory");
    engine.compact().expect("compaction");
    assert_eq!(latest(&engine), expected(1));
    let failure = engine.status().expect("status").background_error.expect("it is told");
    assert!(failure.contains("keyed index"), "{failure}");
}

/// A store in a real directory, with a worker.
fn real(dir: &Path, mode: OpenMode) -> Engine {
    let options = EngineOptions { memory_events_max: 4, index: true, ..EngineOptions::default() };
    Engine::open_with(dir, mode, options, Components::real("test")).expect("a store")
}

#[test]
fn an_idle_worker_brings_the_index_up_and_readers_use_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().join("store");
    let writer = real(&dir, OpenMode::Create);
    for seq in 1..=6 {
        writer.commit(commit_of(&power::model(), seq)).expect("a commit");
    }
    writer.flush().expect("a flush");
    let patience = Instant::now() + Duration::from_secs(60);
    while indexed(&writer) < 6 && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((indexed(&writer), latest(&writer)), (6, expected(6)));
    let reader = real(&dir, OpenMode::Read);
    assert_eq!((indexed(&reader), latest(&reader)), (6, expected(6)), "beside the writer");
    drop(writer);
    let reader = real(&dir, OpenMode::Read);
    assert_eq!((indexed(&reader), latest(&reader)), (6, expected(6)), "alone");
    assert_eq!(reader.verify(None).expect("verification").damage, Vec::<String>::new());
}

/// Bits of the index flip under a store that was closed in order: no answer is wrong, and what was wrong
/// is found or made again.
#[test]
fn fault_d7_a_flipped_bit_of_the_index_costs_no_answer() {
    let (disk, engine) = filled(6, 0);
    drop(engine);
    let whole = disk.peek(Path::new(INDEX)).expect("an index");
    let (mut used, mut seed) = (0, 0x1234_5678_u64);
    println!("D7: 200 flipped bits under a store, seed {seed:#x}");
    for n in 0..200 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Most of the file is empty pages: half of the flips go where its data is.
        let most = if n % 2 == 0 { whole.len() } else { whole.len() / 8 };
        let bit = (seed >> 20) as usize % (most * 8);
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let disk = disk.settled_copy();
        disk.overwrite(Path::new(INDEX), bytes);
        let engine = open_with(&disk, true, 1000);
        used += u64::from(indexed(&engine) == 6);
        assert_eq!(latest(&engine), expected(6), "bit {bit}");
        engine.rebuild().unwrap_or_else(|e| panic!("bit {bit}: {e}"));
        assert_eq!((indexed(&engine), latest(&engine)), (6, expected(6)), "bit {bit}, made again");
    }
    println!("D7: {used} of them did not keep the index from being opened");
    assert!(used > 20 && used < 200, "{used}");
}
