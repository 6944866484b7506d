use super::*;
use crate::disk::SimDisk;
use crate::engine::fixtures::{COMMIT_EVENTS, commit, open, small_memory, table, try_commit, try_open};
use crate::engine::{CommitRequest, EngineOptions};
use crate::value::ColumnType;

/// Commits after which the memory table is full. Nobody works in the background of these tests.
const FULL: i64 = 4;

fn options() -> EngineOptions {
    small_memory(FULL as usize * COMMIT_EVENTS, true)
}

fn store(commits: std::ops::RangeInclusive<i64>) -> (SimDisk, Shared) {
    let disk = SimDisk::new();
    let store = open(&disk, options());
    commits.for_each(|seq| commit(&store, seq));
    (disk, store)
}

fn flushed(store: &Shared) -> i64 {
    locked(&store.manifest).flushed as i64
}

/// Commits of which something is in memory.
fn in_memory(store: &Shared) -> Vec<i64> {
    let view = store.view();
    view.tables.values().flat_map(|t| &t.memory).map(|b| b.commit.0 as i64).collect()
}

/// What is wrong with a store of so many commits.
fn damage(store: &Shared, commits: i64) -> Vec<String> {
    let report = store.verify_full().expect("verification");
    assert_eq!(report.commits as i64, commits);
    assert_eq!(report.events as i64, commits * COMMIT_EVENTS as i64);
    report.damage
}

#[test]
fn what_came_after_memory_was_full_stays_in_memory() {
    let (disk, store) = store(1..=FULL + 1);
    assert!(store.flush_full().expect("a flush"));
    assert_eq!((flushed(&store), in_memory(&store)), (FULL, vec![FULL + 1]));
    assert_eq!(damage(&store, FULL + 1), Vec::<String>::new());
    assert!(!store.flush_full().expect("nothing to flush"));
    (FULL + 2..=2 * FULL).for_each(|seq| commit(&store, seq));
    assert_eq!(flushed(&store), FULL);
    assert!(store.flush_full().expect("full again"));
    assert_eq!((flushed(&store), in_memory(&store)), (2 * FULL, vec![]));
    commit(&store, 2 * FULL + 1);
    drop(store);
    let again = open(&disk, options());
    assert_eq!(damage(&again, 2 * FULL + 1), Vec::<String>::new());
    assert_eq!(again.view().catalog.positions["source/s"], 2 * FULL + 1);
}

#[test]
fn what_is_being_flushed_does_not_make_memory_full_again() {
    let (_, store) = store(1..=FULL);
    let mark = locked(&store.full).next.take().expect("full");
    locked(&store.full).taken = mark.0;
    commit(&store, FULL + 1);
    assert!(locked(&store.full).next.is_none());
}

#[test]
fn everything_is_flushed_where_a_batch_goes_beyond_the_commit() {
    let (_, store) = store(1..=FULL + 1);
    let view = store.view();
    let parts = &view.tables[&TableId(0)].memory;
    let merged = Arc::new(MemoryBatch::merged(&parts[1..]).expect("a batch"));
    store.replace_tables(|tables| replace_memory(tables, TableId(0), &parts[1..], Some(merged)));
    assert!(store.flush_full().expect("a flush"));
    assert_eq!((flushed(&store), in_memory(&store)), (FULL + 1, vec![]));
    assert_eq!(damage(&store, FULL + 1), Vec::<String>::new());
}

#[test]
fn a_schema_that_came_later_is_not_taken_for_what_was_there() {
    let (disk, store) = store(1..=FULL);
    let change =
        CommitRequest { catalog: vec![table(2, &[ColumnType::Int64; 3])], ..CommitRequest::default() };
    store.commit(change).expect("another column");
    try_commit(&store, FULL + 1).expect("a commit");
    assert!(store.flush_full().expect("a flush"));
    let version = |store: &Shared| locked(&store.manifest).tables[0].schema().version;
    assert_eq!((flushed(&store), version(&store)), (FULL, 1));
    drop(store);
    let again = open(&disk, options());
    assert_eq!(again.view().catalog.tables[&TableId(0)].schema().version, 2);
    assert_eq!(again.verify_full().expect("verification").damage, Vec::<String>::new());
}

#[test]
fn a_flush_of_everything_leaves_nothing_to_flush() {
    let (_, store) = store(1..=FULL + 1);
    store.flush().expect("a flush");
    assert!(!store.flush_full().expect("nothing to flush"));
    assert_eq!(flushed(&store), FULL + 1);
}

/// A flush of everything, or of what was there when memory was full, with the worker gathering in the middle.
#[test]
fn batches_that_are_being_flushed_are_not_put_into_others() {
    for commits in [FULL - 1, FULL + 1] {
        let (disk, store) = store(1..=commits);
        let view = match locked(&store.full).next.take() {
            Some((commit, catalog)) => as_of(&store.view(), commit, catalog).expect("a part"),
            None => (*store.view()).clone(),
        };
        std::thread::scope(|threads| {
            let manifest = locked(&store.manifest);
            let gathering = threads.spawn(|| store.gather_memory());
            gathering.join().expect("no panic").expect("nothing gathered, and no wait");
            store.flush_view(manifest, &view, (0, 0)).expect("a flush");
        });
        assert_eq!(flushed(&store), view.commit.0 as i64);
        assert_eq!(in_memory(&store), (view.commit.0 as i64 + 1..=commits).collect::<Vec<_>>());
        assert_eq!(damage(&store, commits), Vec::<String>::new());
        store.flush().expect("a flush");
        drop(store);
        assert_eq!(damage(&open(&disk, options()), commits), Vec::<String>::new());
    }
}

#[test]
fn whoever_waits_sorts_each_batch_once() {
    let (_, store) = store(1..=3);
    let sorted = || store.view().tables[&TableId(0)].memory.iter().filter(|b| b.is_sorted()).count();
    for n in 0..3 {
        assert_eq!(sorted(), n);
        assert!(store.sort_one().expect("rows"));
    }
    assert!(!store.sort_one().expect("nothing to sort"));
    assert_eq!(sorted(), 3);
}

#[test]
fn a_power_cut_during_a_flush_of_a_part_loses_nothing() {
    let mut n = 0;
    loop {
        n += 1;
        let (disk, store) = store(1..=FULL + 1);
        disk.cut_power_after(disk.operations() + n);
        let result = store.flush_full();
        for seed in 0..4 {
            let image = disk.crash_image(seed);
            let again = try_open(&image, options()).expect("the store opens");
            assert_eq!(damage(&again, FULL + 1), Vec::<String>::new(), "operation {n}, seed {seed}");
            assert!(result.is_err() || flushed(&again) >= FULL);
        }
        if result.is_ok() {
            break;
        }
    }
    assert!(n > 8, "{n} operations");
}
