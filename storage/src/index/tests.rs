//! The index against a map, and what the other tests share.

mod collisions;
mod damage;
mod faults;
mod memory;
mod row;

use super::*;
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

fn open(path: &std::path::Path) -> Index {
    Index::open(path, STORE, CACHE_BYTES).expect("open")
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
        index.rewrite(T, n * 10, changes.into_iter()).expect("rewrite");
        assert_eq!(index.applied(T).expect("applied"), n * 10);
        assert_is(&index, T, 3100, &model);
        drop(index);
        let index = open(&path);
        assert_eq!(index.applied(T).expect("applied"), n * 10);
        assert_is(&index, T, 3100, &model);
    }
    assert!(model.len() > 1000 && model.len() < 3000, "removals took place");
}

#[test]
fn tables_are_apart_and_cleared_one_by_one() {
    let (_dir, path) = place();
    let index = open(&path);
    assert_eq!(index.applied(T).expect("applied"), 0);
    assert_eq!(index.get(T, b"nothing").expect("get"), None);
    index.rewrite(T, 5, [(key(1), Some(b"one".to_vec()))].into_iter()).expect("rewrite");
    index.rewrite(OTHER, 6, [(key(1), Some(b"other".to_vec()))].into_iter()).expect("rewrite");
    assert_eq!(index.get(T, &key(1)).expect("get"), Some(b"one".to_vec()));
    assert_eq!(index.get(OTHER, &key(1)).expect("get"), Some(b"other".to_vec()));
    index.clear(T).expect("clear");
    assert_eq!(index.get(T, &key(1)).expect("get"), None);
    assert_eq!((index.applied(T).expect("applied"), index.entries(T).expect("entries")), (0, 0));
    assert_eq!((index.applied(OTHER).expect("applied"), index.entries(OTHER).expect("entries")), (6, 1));
    assert!(index.bytes().expect("bytes") > 0);
}

#[test]
fn the_last_of_several_changes_of_a_key_counts() {
    let (_dir, path) = place();
    let index = open(&path);
    let put = |v: &[u8]| (key(1), Some(v.to_vec()));
    index.rewrite(T, 1, [put(b"a"), put(b"b")].into_iter()).expect("rewrite");
    assert_eq!(index.get(T, &key(1)).expect("get"), Some(b"b".to_vec()));
    index.rewrite(T, 2, [put(b"c"), (key(1), None)].into_iter()).expect("rewrite");
    assert_eq!(index.get(T, &key(1)).expect("get"), None);
    index.rewrite(T, 3, [(key(1), None), put(b"")].into_iter()).expect("rewrite");
    assert_eq!(index.get(T, &key(1)).expect("get"), Some(Vec::new()));
    index.rewrite(T, 4, std::iter::empty()).expect("rewrite");
    assert_eq!(index.applied(T).expect("applied"), 4);
    assert_eq!(index.get(T, &key(1)).expect("get"), Some(Vec::new()));
}

#[test]
fn the_file_is_private_and_open_once() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, path) = place();
    let index = open(&path);
    assert_eq!(std::fs::metadata(&path).expect("file").permissions().mode() & 0o777, 0o600);
    let second = Index::open(&path, STORE, CACHE_BYTES).expect_err("open twice");
    assert!(matches!(second, IndexError::Busy { .. }), "{second}");
    drop(index);
    Index::remove(&path).expect("remove");
    assert!(!path.exists());
    Index::remove(&path).expect("remove again");
}
