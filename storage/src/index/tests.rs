//! The index against a map, and what the other tests share.

mod damage;
mod faults;
mod memory;
mod row;

use super::*;
use crate::disk::{RealDisk, SimDisk};
use crate::id::TableId;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tempfile::TempDir;

const STORE: &str = "00112233445566778899aabbccddeeff";
const CACHE_BYTES: usize = 4 << 20;
const T: TableId = TableId(1);
const OTHER: TableId = TableId(2);

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Changes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("index.redb");
    (dir, path)
}

fn opening(check: bool) -> IndexOpening<'static> {
    IndexOpening { store_id: STORE, cache_bytes: CACHE_BYTES, check }
}

fn try_open(path: &std::path::Path) -> Result<Index, IndexError> {
    Index::open(&RealDisk, path, opening(true))
}

fn open(path: &std::path::Path) -> Index {
    try_open(path).expect("open")
}

fn at(commit: u64) -> Applied {
    Applied { commit, at: -5 - commit as i64, schema: 3 }
}

/// Applies changes that are about as many as given.
fn rewrite(index: &Index, table: TableId, commit: u64, changes: &Changes) -> Result<(), IndexError> {
    index.rewrite(table, at(commit), Extent::Keys(changes.len() as u64), changes.iter().cloned().map(Ok))
}

fn key(n: u32) -> Vec<u8> {
    format!("key {n:08}").into_bytes()
}

fn value(n: u32, round: u64) -> Vec<u8> {
    format!("value {round} of {n} {}", "x".repeat(n as usize % 40)).into_bytes()
}

/// Puts and removals of one round over keys `0..keys`, in key order.
fn round(keys: u32, round: u64, step: u32) -> Changes {
    let removed = |n: u32| (n / step + round as u32).is_multiple_of(3) && round > 1;
    (0..keys).step_by(step as usize).map(|n| (key(n), (!removed(n)).then(|| value(n, round)))).collect()
}

fn apply(model: &mut Model, changes: &Changes) {
    for (key, value) in changes {
        match value {
            Some(v) => model.insert(key.clone(), v.clone()),
            None => model.remove(key),
        };
    }
}

fn assert_is(index: &Index, table: TableId, keys: u32, model: &Model) {
    for n in 0..keys {
        let found = index.get(table, &key(n)).expect("get");
        assert_eq!(found.as_ref(), model.get(&key(n)), "key {n}");
    }
    assert_eq!(index.entries(table).expect("entries"), model.len() as u64);
    assert_eq!(index.verify().expect("verify"), Vec::<String>::new());
}

#[test]
fn rounds_of_changes_are_those_of_a_map_and_survive_reopening() {
    let (_dir, path) = place();
    let mut model = Model::new();
    // Steps of 1 rewrite the table, steps of 7 change it in place.
    for (n, step) in [(1, 1), (2, 7), (3, 1), (4, 11), (5, 2)] {
        let index = open(&path);
        let changes = round(3000, n, step);
        apply(&mut model, &changes);
        rewrite(&index, T, n * 10, &changes).expect("rewrite");
        assert_eq!(index.applied(T).expect("applied"), at(n * 10));
        assert_is(&index, T, 3100, &model);
        drop(index);
        let index = open(&path);
        assert_eq!(index.applied(T).expect("applied"), at(n * 10));
        assert_is(&index, T, 3100, &model);
    }
    assert!(model.len() > 1000 && model.len() < 3000, "removals took place");
}

#[test]
fn tables_are_apart_and_cleared_one_by_one() {
    let (_dir, path) = place();
    let index = open(&path);
    assert_eq!(index.applied(T).expect("applied"), Applied::default());
    assert_eq!(index.get(T, b"nothing").expect("get"), None);
    rewrite(&index, T, 5, &vec![(key(1), Some(b"one".to_vec()))]).expect("rewrite");
    rewrite(&index, OTHER, 6, &vec![(key(1), Some(b"other".to_vec()))]).expect("rewrite");
    assert_eq!(index.get(T, &key(1)).expect("get"), Some(b"one".to_vec()));
    assert_eq!(index.get(OTHER, &key(1)).expect("get"), Some(b"other".to_vec()));
    index.clear(T).expect("clear");
    assert_eq!(index.get(T, &key(1)).expect("get"), None);
    assert_eq!((index.applied(T).expect("applied").commit, index.entries(T).expect("entries")), (0, 0));
    assert_eq!(
        (index.applied(OTHER).expect("applied").commit, index.entries(OTHER).expect("entries")),
        (6, 1)
    );
}

#[test]
fn everything_is_replaced_where_the_extent_says_so() {
    let (_dir, path) = place();
    let index = open(&path);
    rewrite(&index, T, 1, &round(100, 1, 1)).expect("rewrite");
    let mut model = Model::new();
    let changes = round(100, 1, 3);
    apply(&mut model, &changes);
    index.rewrite(T, at(2), Extent::All, changes.into_iter().map(Ok)).expect("rewrite");
    assert_is(&index, T, 110, &model);
}

#[test]
fn a_change_that_is_ended_or_out_of_order_changes_nothing() {
    let (_dir, path) = place();
    let index = open(&path);
    let mut model = Model::new();
    let first = round(50, 1, 1);
    apply(&mut model, &first);
    rewrite(&index, T, 1, &first).expect("rewrite");
    for extent in [Extent::All, Extent::Keys(50), Extent::Keys(1)] {
        let put = |n| Ok((key(n), Some(b"new".to_vec())));
        let ended = index.rewrite(T, at(2), extent, [put(1), Err(IndexError::Stopped)].into_iter());
        assert!(matches!(ended, Err(IndexError::Stopped)), "{ended:?}");
        for changes in [[put(1), put(1)], [put(2), put(1)]] {
            let refused = index.rewrite(T, at(2), extent, changes.into_iter());
            assert!(matches!(refused, Err(IndexError::Refused(_))), "{refused:?}");
        }
        assert_eq!(index.applied(T).expect("applied"), at(1));
        assert_is(&index, T, 60, &model);
    }
}

#[test]
fn a_reader_beside_the_writer_follows_it() {
    let (_dir, path) = place();
    assert!(Index::open_reading(&RealDisk, &path, opening(false)).expect("no file").is_none());
    let index = open(&path);
    let (mut model, changes) = (Model::new(), round(500, 1, 1));
    apply(&mut model, &changes);
    rewrite(&index, T, 1, &changes).expect("rewrite");
    let reader = Index::open_reading(&RealDisk, &path, opening(false)).expect("open").expect("a reader");
    assert_is(&reader, T, 510, &model);
    let changes = round(500, 2, 3);
    apply(&mut model, &changes);
    rewrite(&index, T, 2, &changes).expect("rewrite");
    assert_eq!(reader.applied(T).expect("applied"), at(2));
    assert_is(&reader, T, 510, &model);
    let refused = rewrite(&reader, T, 3, &changes).expect_err("a reader");
    assert!(matches!(refused, IndexError::Refused(_)), "{refused}");
}

#[test]
fn an_index_lives_on_a_simulated_disk() {
    let disk = SimDisk::new();
    let path = std::path::Path::new("/index.redb");
    let (mut model, changes) = (Model::new(), round(300, 1, 1));
    apply(&mut model, &changes);
    rewrite(&Index::open(&disk, path, opening(true)).expect("open"), T, 1, &changes).expect("rewrite");
    for check in [false, true] {
        assert_is(&Index::open(&disk, path, opening(check)).expect("open"), T, 310, &model);
    }
}

#[test]
fn the_file_is_private_and_open_once() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, path) = place();
    let index = open(&path);
    assert_eq!(std::fs::metadata(&path).expect("file").permissions().mode() & 0o777, 0o600);
    let second = try_open(&path).expect_err("open twice");
    assert!(matches!(second, IndexError::Busy { .. }), "{second}");
    drop(index);
    Index::remove(&RealDisk, &path).expect("remove");
    assert!(!path.exists());
    Index::remove(&RealDisk, &path).expect("remove again");
}
