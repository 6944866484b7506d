//! When the keyed index may answer and what brings it up key by key: each test stands for a guard, and
//! says what goes wrong without it.

use crate::table::*;
use crate::widen::commit as widening_commit;
use asofdb_storage::disk::SimDisk;
use asofdb_storage::engine::{Bounds, CatalogChange, Engine, OpenMode, PointRequest};
use asofdb_storage::id::ColumnId;
use asofdb_storage::key::key_bytes;
use asofdb_storage::time::{CommitSeq, FOREVER};
use asofdb_storage::value::{Cell, ColumnType};
use asofdb_testkit::{Change, Model};
use std::path::Path;

/// A store with an index of 40 keys, all written by commit 1 at valid and system time 10.
struct Fixture {
    model: Model,
    engine: Engine,
}

fn open_store(disk: &SimDisk) -> Engine {
    Engine::open_with(Path::new("/store"), OpenMode::Create, options(100_000), components(disk))
        .expect("a store")
}

impl Fixture {
    fn new() -> Fixture {
        let engine = open_store(&SimDisk::new());
        let mut fixture =
            Fixture { model: Model { columns: 2, system_declared: true, changes: Vec::new() }, engine };
        fixture.commit((0..40).map(|key| Change::upsert(key, 10, 10, &[(0, key as i64), (1, 7)])).collect());
        fixture.engine.compact().expect("compaction");
        assert_eq!(fixture.indexed(), 1);
        fixture
    }

    fn commit(&mut self, changes: Vec<Change>) {
        let seq = self.engine.pin().commit().0 + 1;
        for mut change in changes {
            (change.commit, change.position) = (seq, self.model.changes.len() as u64);
            self.model.changes.push(change);
        }
        self.engine.commit(commit_of(&self.model, seq)).expect("a commit");
    }

    fn flush(&self) {
        self.engine.flush().expect("a flush");
    }

    fn indexed(&self) -> u64 {
        self.engine.status().expect("status").tables[0].indexed
    }

    /// Asserts that questions about keys get the model's answers, and that the index is what runs say.
    fn check(&self, state: &str) {
        let (model, snapshot) = (&self.model, self.engine.pin());
        let some = |breaks: Vec<i64>| {
            let before = breaks.first().map(|b| b - 1);
            before.into_iter().chain(breaks).chain([FOREVER]).collect::<Vec<_>>()
        };
        for commit in 1..=snapshot.commit().0 {
            for valid in some(model.valid_breaks()) {
                for system in some(model.system_breaks()) {
                    let place = format!("{state}: valid {valid}, system {system}, commit {commit}");
                    let expected = expected_rows(model, valid, system, commit);
                    let bounds = Bounds { valid, system, commit: CommitSeq(commit) };
                    assert_eq!(looked_up(&snapshot, &model.keys(), bounds, 2), expected, "points, {place}");
                    assert_eq!(rows_of_keys(&snapshot, &model.keys(), bounds, 2), expected, "scan, {place}");
                }
            }
        }
        assert_eq!(self.engine.verify(None).expect("verification").damage, Vec::<String>::new(), "{state}");
    }
}

#[test]
fn bounds_before_what_an_entry_reflects_are_not_answered_from_it() {
    let mut store = Fixture::new();
    store.check("as written");
    // Without a look at the commit bound, commit 1 would be shown the row of commit 2.
    store.commit(vec![Change::partial(3, 10, 10, &[(0, 99)]), Change::delete(5, 10, 10)]);
    store.flush();
    assert_eq!(store.indexed(), 2);
    store.check("keys changed at the times they had");
    store.commit(vec![Change::partial(3, 20, 30, &[(0, 1)]), Change::upsert(6, 5, 40, &[(0, 2)])]);
    store.flush();
    assert_eq!(store.indexed(), 3);
    store.check("keys changed later and late");
}

#[test]
fn events_in_memory_come_before_entries() {
    let mut store = Fixture::new();
    store.commit(vec![
        Change::partial(3, 20, 20, &[(0, 99)]),
        Change::delete(4, 20, 20),
        Change::upsert(77, 20, 20, &[(0, 1)]),
    ]);
    assert_eq!(store.indexed(), 1, "the runs are those that the index reflects");
    store.check("an update, a delete and a new key in memory");
}

#[test]
fn a_truncate_ends_rows_of_keys_that_it_does_not_name() {
    let mut store = Fixture::new();
    store.commit(vec![Change::truncate(20, 20)]);
    assert_eq!(store.indexed(), 1, "the runs are those that the index reflects");
    store.check("a truncate in memory");
    store.commit(vec![Change::upsert(3, 30, 30, &[(0, 5)])]);
    store.check("a truncate and a row after it in memory");
    // Two events are few, and yet every entry has to go.
    store.flush();
    assert_eq!(store.indexed(), 3);
    store.check("a truncate in a run");
    store.commit(vec![Change::upsert(4, 40, 40, &[(0, 6)])]);
    store.flush();
    assert_eq!(store.indexed(), 4);
    store.check("brought up key by key behind a truncate");
}

#[test]
fn a_table_whose_keys_change_has_no_entries() {
    let mut store = Fixture::new();
    let moved = Change { previous: Some(3), ..Change::upsert(100, 20, 20, &[(0, 1)]) };
    store.commit(vec![moved]);
    store.check("a key change in memory");
    // A late event of the old key shows in the row of the new one, which no event in memory names.
    store.commit(vec![Change::partial(3, 15, 15, &[(1, 55)])]);
    store.check("a late event of the old key in memory");
    store.flush();
    assert_eq!(store.indexed(), 0, "rows depend on more than their own key");
    store.check("a key change in a run");
    store.commit(vec![Change::partial(3, 16, 16, &[(1, 56)])]);
    store.check("a late event of the old key, the key change in a run");
    store.flush();
    assert_eq!(store.indexed(), 0);
    store.check("both in runs");
}

#[test]
fn keys_that_changed_are_brought_up_one_by_one() {
    let mut store = Fixture::new();
    for (state, changes) in [
        ("updates", vec![Change::partial(3, 20, 20, &[(0, 1)]), Change::upsert(9, 20, 20, &[(1, 2)])]),
        ("deletes", vec![Change::delete(3, 30, 30), Change::delete(39, 30, 30)]),
        (
            "a deleted key again, a key behind all others",
            vec![Change::upsert(39, 40, 40, &[(0, 3)]), Change::upsert(500, 40, 40, &[(0, 4)])],
        ),
        ("a late event that changes no open row", vec![Change::upsert(9, 15, 50, &[(1, 8)])]),
        ("a bounded row", vec![Change { valid_to: Some(70), ..Change::upsert(8, 60, 60, &[(0, 5)]) }]),
    ] {
        store.commit(changes);
        store.flush();
        assert_eq!(store.indexed(), store.engine.pin().commit().0, "{state}");
        store.check(state);
    }
    // Two commits at once, in two runs.
    store.commit(vec![Change::partial(1, 80, 80, &[(0, 1)])]);
    store.commit(vec![Change::partial(1, 90, 90, &[(1, 2)]), Change::partial(2, 90, 90, &[(1, 3)])]);
    store.flush();
    store.check("two commits at once");
}

#[test]
fn many_keys_that_changed_are_brought_up_in_passes() {
    let disk = SimDisk::new();
    let engine = open_store(&disk);
    let change = |key: u32, seq: u64| {
        let time = 10 * seq as i64;
        let mut change = match (seq, key % 3) {
            (1, _) => Change::upsert(key, time, time, &[(0, key as i64), (1, 7)]),
            (_, 0) => Change::delete(key, time, time),
            _ => Change::partial(key, time, time, &[(1, -(key as i64))]),
        };
        (change.commit, change.position) = (seq, seq * 100_000 + u64::from(key));
        change
    };
    let first = (0..20_000).map(|key| change(key, 1));
    let changes = first.chain((0..20_000).step_by(4).map(|key| change(key, 2))).collect();
    let model = Model { columns: 2, system_declared: true, changes };
    for seq in 1..=2 {
        engine.commit(commit_of(&model, seq)).expect("a commit");
        engine.flush().expect("a flush");
        assert_eq!(engine.status().expect("status").tables[0].indexed, seq);
        assert_eq!(engine.verify(None).expect("verification").damage, Vec::<String>::new(), "commit {seq}");
    }
    let bounds = Bounds::latest(CommitSeq(2));
    let found = looked_up(&engine.pin(), &[0, 1, 4, 8, 12, 19_996], bounds, 2);
    let row = |key: i64, second: i64| vec![Some(key), Some(key), Some(second)];
    assert_eq!(found, [row(1, 7), row(4, -4), row(8, -8), row(19_996, -19_996)]);
}

#[test]
fn entries_follow_a_column_that_widens() {
    let mut types = vec![ColumnType::Int64; 20];
    types.push(ColumnType::Decimal { integer: 18, scale: 2 });
    let engine = open_store(&SimDisk::new());
    for i in 0..20 {
        widening_commit(&engine, i, &types, Cell::Int(i as i64));
    }
    engine.compact().expect("compaction");
    assert_eq!(engine.status().expect("status").tables[0].indexed, 20);
    widening_commit(&engine, 20, &types, Cell::Decimal { unscaled: 150, scale: 2 });
    let shown = |state: &str| {
        for (key, value) in [(3, "3.00"), (20, "1.50")] {
            let bounds = Bounds::latest(engine.pin().commit());
            let row = engine.pin().get(TABLE, &key_bytes([&Cell::Int(key)]), bounds).expect("an answer");
            let row = row.unwrap_or_else(|| panic!("{state}: key {key} is gone"));
            let text = arrow::util::display::array_value_to_string(row.column(1), 0).expect("text");
            assert_eq!(text, value, "{state}, key {key}");
        }
    };
    shown("widened in memory");
    engine.flush().expect("a flush");
    assert_eq!(engine.status().expect("status").tables[0].indexed, 21);
    shown("widened in runs");
    assert_eq!(engine.verify(None).expect("verification").damage, Vec::<String>::new());
}

#[test]
fn a_table_without_a_key_has_no_entries() {
    let engine = open_store(&SimDisk::new());
    let mut changes = vec![Change::upsert(3, 10, 10, &[(0, 1), (1, 7)]); 2];
    (0..).zip(&mut changes).for_each(|(i, c)| (c.commit, c.position) = (1, i));
    let mut request = commit_of(&Model { columns: 2, system_declared: true, changes }, 1);
    for change in &mut request.catalog {
        if let CatalogChange::Table(meta) = change {
            meta.schemas.iter_mut().for_each(|(_, schema)| schema.key.clear());
        }
    }
    engine.commit(request).expect("a commit");
    engine.compact().expect("compaction");
    assert_eq!(engine.status().expect("status").tables[0].indexed, 0);
    // A row is its own key there, and there may be several of it: an entry stands for one.
    let mut key = Vec::new();
    for (column, value) in [(0u32, 3), (1, 1), (2, 7)] {
        key.extend_from_slice(&column.to_be_bytes());
        key.extend_from_slice(&key_bytes([&Cell::Int(value)]));
    }
    let questions = [PointRequest { key, bounds: Bounds::latest(CommitSeq(1)) }];
    let (found, _) = engine.pin().points(TABLE, &questions, &[ColumnId(0)]).expect("an answer");
    assert_eq!(found, [0, 0], "both rows");
}
