//! Files that are not what was written.

use super::super::entry::Names;
use super::memory::MemoryFile;
use super::*;
use redb::ReadableTable;
use std::path::Path;

const KEYS: u32 = 1200;

/// A closed file of three commits to two tables, and what is right at each `applied`.
fn closed_file() -> (Vec<u8>, BTreeMap<u64, Model>) {
    let (_dir, path) = place();
    let index = open(&path);
    let mut model = Model::new();
    let mut states = BTreeMap::from([(0, Model::new())]);
    for (n, step) in [(1, 1), (2, 9), (3, 2)] {
        let changes = round(KEYS, n, step);
        apply(&mut model, &changes);
        rewrite(&index, T, n, &changes).expect("rewrite");
        rewrite(&index, OTHER, n, &changes).expect("rewrite");
        states.insert(n, model.clone());
    }
    drop(index);
    (std::fs::read(&path).expect("the file"), states)
}

#[derive(Default, Debug)]
struct Tally {
    damaged: u32,
    errors: u32,
    right: u32,
}

/// Opens the bytes and asks for every key: right, or an error. Without a check a key may also hide.
fn try_bytes(bytes: Vec<u8>, states: &BTreeMap<u64, Model>, tally: &mut Tally, check: bool, what: &str) {
    let opened = Index::open_backend(MemoryFile::new(bytes), Path::new("index.redb"), opening(check));
    let index = match opened {
        Ok(index) => index,
        Err(e) => {
            assert!(e.is_damaged(), "{what}: {e}");
            tally.damaged += 1;
            return;
        }
    };
    for table in [T, OTHER] {
        let Ok(applied) = index.applied(table) else {
            tally.errors += 1;
            continue;
        };
        let model = states.get(&applied.commit).unwrap_or_else(|| panic!("{what}: applied {applied:?}"));
        for n in 0..KEYS + 50 {
            match index.get(table, &key(n)) {
                Ok(None) if !check => tally.errors += u32::from(model.contains_key(&key(n))),
                Ok(found) => assert_eq!(found.as_ref(), model.get(&key(n)), "{what}: key {n}"),
                Err(_) => tally.errors += 1,
            }
        }
    }
    tally.right += 1;
}

/// A fixed sequence of numbers (xorshift).
fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    }
}

#[test]
fn fault_d7_a_flipped_bit_never_gives_a_wrong_answer() {
    let (bytes, states) = closed_file();
    let seed = 0x9e37_79b9_7f4a_7c15;
    let (mut next, mut tally) = (numbers(seed), Tally::default());
    let bits = bytes.len() as u64 * 8;
    try_bytes(bytes.clone(), &states, &mut tally, true, "no flip");
    assert_eq!((tally.right, tally.damaged, tally.errors), (1, 0, 0));
    let header = (0..320 * 8).step_by(9);
    let flips: Vec<u64> = (0..750).map(|_| next(bits)).chain(header).collect();
    println!("D7: {} flipped bits of an index, seed {seed:#x}", flips.len());
    assert!(flips.len() > 1000);
    for bit in flips {
        let mut bytes = bytes.clone();
        bytes[bit as usize / 8] ^= 1 << (bit % 8);
        for check in [true, false] {
            try_bytes(bytes.clone(), &states, &mut tally, check, &format!("bit {bit}, check: {check}"));
        }
    }
    println!("D7: {tally:?}, each with and without a check of the pages");
    assert!(tally.damaged > 100 && tally.right > 100, "the flips bite, and not all: {tally:?}");
}

#[test]
fn fault_d8_a_shortened_file_never_gives_a_wrong_answer() {
    let (bytes, states) = closed_file();
    let mut tally = Tally::default();
    for at in (1..bytes.len()).step_by(bytes.len() / 60) {
        try_bytes(bytes[..at].to_vec(), &states, &mut tally, true, &format!("cut at {at}"));
    }
    assert!(tally.damaged > 30, "{tally:?}");
}

#[test]
fn fault_d8_files_that_are_no_index_are_damaged_and_can_be_made_again() {
    let (_dir, path) = place();
    let mut next = numbers(7);
    let random: Vec<u8> = (0..100_000).map(|_| next(256) as u8).collect();
    let foreign = {
        let (_dir, path) = place();
        let opening = IndexOpening { store_id: "another store", ..opening(true) };
        drop(Index::open(&RealDisk, &path, opening).expect("open"));
        std::fs::read(&path).expect("the file")
    };
    let unfinished = {
        let (_dir, path) = place();
        drop(redb::Database::create(&path).expect("a file without a description"));
        std::fs::read(&path).expect("the file")
    };
    for (what, bytes) in
        [("random", random), ("foreign", foreign), ("text", b"hello\n".to_vec()), ("unfinished", unfinished)]
    {
        std::fs::write(&path, bytes).expect("write");
        let e = try_open(&path).expect_err(what);
        assert!(e.is_damaged(), "{what}: {e}");
        assert!(what != "foreign" || e.to_string().contains("another store"), "{e}");
        Index::remove(&RealDisk, &path).expect("remove");
        drop(open(&path));
        Index::remove(&RealDisk, &path).expect("remove");
    }
}

#[test]
fn an_empty_file_is_a_new_index_and_a_link_is_none() {
    let (dir, path) = place();
    std::fs::write(&path, b"").expect("write");
    let index = open(&path);
    assert_eq!(index.applied(T).expect("applied"), Applied::default());
    drop(index);
    drop(open(&path));
    let link = dir.path().join("link.redb");
    std::os::unix::fs::symlink(&path, &link).expect("link");
    let e = try_open(&link).expect_err("a link");
    assert!(e.is_damaged(), "{e}");
}

/// Damage that redb cannot see, as it wrote the page itself.
#[test]
fn a_wrong_value_is_found_by_its_own_checksum() {
    let (_dir, path) = place();
    let index = open(&path);
    rewrite(&index, T, 1, &round(10, 1, 1)).expect("rewrite");
    let names = Names::new(T);
    index
        .change(|txn| {
            let mut keys = txn.open_table(names.keys())?;
            let mut flipped = keys.get(key(3).as_slice())?.expect("an entry").value().to_vec();
            let stray = keys.get(key(4).as_slice())?.expect("an entry").value().to_vec();
            *flipped.last_mut().expect("bytes") ^= 1;
            keys.insert(key(3).as_slice(), flipped.as_slice())?;
            keys.insert(key(5).as_slice(), stray.as_slice())?;
            keys.insert(key(6).as_slice(), b"short".as_slice())?;
            Ok(())
        })
        .expect("change");
    for n in [3, 5, 6] {
        let e = index.get(T, &key(n)).expect_err("a damaged entry");
        assert!(e.is_damaged(), "key {n}: {e}");
    }
    assert_eq!(index.get(T, &key(4)).expect("get"), Some(value(4, 1)));
    assert_eq!(index.verify().expect("verify").len(), 3);
}
