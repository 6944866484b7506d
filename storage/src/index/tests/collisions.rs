//! Keys whose hashes are the same.

use super::*;

/// Few hashes, so that nearly every key shares its own with others.
fn poor_hash(key: &[u8]) -> u128 {
    (super::super::entry::key_hash(key) % 50) << 100
}

fn constant_hash(_: &[u8]) -> u128 {
    7
}

fn check(hash: super::super::entry::KeyHash, keys: u32) {
    let (_dir, path) = place();
    let mut model = Model::new();
    for (n, step) in [(1, 1), (2, 3), (3, 2), (4, 1), (5, 5)] {
        let index = Index::open_hashing(&path, STORE, CACHE_BYTES, hash).expect("open");
        let changes = round(keys, n, step);
        apply(&mut model, &changes);
        index.rewrite(T, n, changes.into_iter()).expect("rewrite");
        assert_is(&index, T, keys + 10, &model);
    }
}

#[test]
fn keys_of_one_hash_stay_apart() {
    check(poor_hash, 300);
    check(constant_hash, 40);
}

#[test]
fn a_key_stands_once_when_the_other_of_its_hash_goes() {
    let (_dir, path) = place();
    let index = Index::open_hashing(&path, STORE, CACHE_BYTES, constant_hash).expect("open");
    let put = |n: u32, v: &[u8]| (key(n), Some(v.to_vec()));
    index.rewrite(T, 1, [put(1, b"a"), put(2, b"b")].into_iter()).expect("rewrite");
    index.rewrite(T, 2, [(key(1), None)].into_iter()).expect("rewrite");
    assert_eq!(index.get(T, &key(2)).expect("get"), Some(b"b".to_vec()));
    index.rewrite(T, 3, [put(2, b"c")].into_iter()).expect("rewrite");
    assert_eq!(index.entries(T).expect("entries"), 1);
    index.rewrite(T, 4, [(key(2), None)].into_iter()).expect("rewrite");
    assert_eq!(index.get(T, &key(2)).expect("get"), None);
    assert_eq!(index.entries(T).expect("entries"), 0);
}
