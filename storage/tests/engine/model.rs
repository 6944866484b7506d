//! Every answer of the engine equals the model's: fresh, reopened, compacted, rebuilt.

use crate::table::*;
use asofdb_storage::disk::SimDisk;
use asofdb_storage::engine::{Bounds, Engine};
use asofdb_storage::time::{CommitSeq, FOREVER};
use asofdb_testkit::{Model, Shape, generate};
use proptest::prelude::*;

fn check(engine: &Engine, model: &Model, state: &str) {
    let snapshot = engine.pin();
    let columns = model.columns as usize;
    let before = |breaks: Vec<i64>| breaks.first().map(|b| b - 1).into_iter().chain(breaks).chain([FOREVER]);
    for commit in [1, 2, 3] {
        for valid in before(model.valid_breaks()) {
            for system in before(model.system_breaks()) {
                let expected = expected_rows(model, valid, system, commit);
                let at = format!("{state}, valid {valid}, system {system}, commit {commit}");
                assert_eq!(rows(&snapshot, columns, valid, system, commit), expected, "scan, {at}");
                let bounds = Bounds { valid, system, commit: CommitSeq(commit) };
                assert_eq!(looked_up(&snapshot, &model.keys(), bounds, columns), expected, "points, {at}");
            }
        }
        let expected = expected_intervals(model, commit);
        assert_eq!(intervals(&snapshot, columns, commit), expected, "intervals, {state}, commit {commit}");
    }
}

fn check_all(model: &Model) {
    let disk = SimDisk::new();
    let engine = open(&disk).expect("a new store");
    for seq in 1..=3 {
        engine.commit(commit_of(model, seq)).expect("a commit");
    }
    check(&engine, model, "fresh");
    drop(engine);
    let engine = open(&disk).expect("the same store");
    check(&engine, model, "reopened");
    engine.compact().expect("compaction");
    check(&engine, model, "compacted");
    engine.rebuild().expect("a rebuild");
    check(&engine, model, "rebuilt");
    let report = engine.verify(None).expect("verification");
    assert_eq!((report.damage, report.frames), (vec![], 3));
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
