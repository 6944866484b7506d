//! What spares a look-up the keys and key columns of a run: filters, heads of the sparse index, columns that say
//! what the key says.

use super::*;
use crate::key::{KeyPart, key_bytes, key_parts};
use crate::run::heads::Heads;
use proptest::prelude::*;

/// The row of a key (number, text, another number) and one more column.
fn row(i: u64, number: i64, text: &str, change: impl FnOnce(&mut Vec<(ColumnId, Cell<'_>)>)) -> Vec<u8> {
    let cells = [Cell::Int(number), Cell::Text(text), Cell::Int(-number), Cell::Text("other")];
    let mut cells: Vec<_> = cells.iter().enumerate().map(|(c, cell)| (ColumnId(c as u32), *cell)).collect();
    change(&mut cells);
    let mut head = EventHead::new(Op::Upsert, OriginId(0), i);
    head.full = false;
    head.valid_from = Some(i as i64);
    let mut row = Vec::new();
    encode_row(&mut row, &head, &cells);
    row
}

fn keyed_schema() -> TableSchema {
    let types = [ColumnType::Int64, ColumnType::Text, ColumnType::Int64, ColumnType::Text];
    TableSchema { key: vec![ColumnId(2), ColumnId(0), ColumnId(1)], ..schema(1, &types) }
}

fn text_of(i: u64) -> String {
    if i.is_multiple_of(9) { format!("with \0 and {i}") } else { format!("text {i}") }
}

/// The key columns of a run of 1200 rows of 300 keys, with one more row.
fn keyed(format: RunFormat, other: Option<Vec<u8>>) -> u64 {
    let mut rows: Vec<Vec<u8>> =
        (0..1200).map(|i| row(i, (i / 4) as i64 - 150, &text_of(i / 4), |_| ())).collect();
    rows.extend(other);
    let sorted = naive_sort(&decode(&rows, &keyed_schema(), 1), order(false));
    let (disk, dir) = sim();
    let meta = write(&disk, &dir, spec(1, format), &keyed_schema(), &sorted);
    let reader = open(&disk, &dir, &meta).expect("open");
    reader.keyed(meta.rows / 2)
}

#[test]
fn columns_that_say_what_the_key_says_are_known() {
    assert_eq!(keyed(RunFormat::Parquet, None), 0b111);
    assert_eq!(keyed(RunFormat::Ipc, None), 0, "flushed runs are read where they are mapped");
    let other = |change: fn(&mut Vec<(ColumnId, Cell<'_>)>)| {
        keyed(RunFormat::Parquet, Some(row(5000, 7, "x", change)))
    };
    assert_eq!(other(|_| ()), 0b111);
    assert_eq!(other(|cells| cells.truncate(3)), 0b111);
    // A text that is a number is the same key as that number.
    assert_eq!(other(|cells| cells[1].1 = Cell::Text("5")), 0b101);
    assert_eq!(other(|cells| cells[1].1 = Cell::Text("5.0")), 0b111);
}

#[test]
fn every_key_passes_the_filter_of_its_chunk_and_few_others_do() {
    let rows: Vec<Vec<u8>> = (0..3000).map(|i| row(i, (i / 3) as i64, &text_of(i / 3), |_| ())).collect();
    let sorted = naive_sort(&decode(&rows, &keyed_schema(), 1), order(false));
    for format in [RunFormat::Ipc, RunFormat::Parquet] {
        let (disk, dir) = sim();
        let meta = write(&disk, &dir, spec(1, format), &keyed_schema(), &sorted);
        let reader = open(&disk, &dir, &meta).expect("open");
        reader.verify().expect("what was written");
        let place = reader.chunks()[0].filter.expect("a filter");
        assert_eq!(place.bytes, 1000u64.div_ceil(25) * 32, "{format:?}");
        let key = |n: i64, text: &str| key_bytes([&Cell::Int(-n), &Cell::Int(n), &Cell::Text(text)]);
        for n in 0..1000 {
            assert!(!reader.find_key(&key(n, &text_of(n as u64))).expect("a search").is_empty());
        }
        let passed = (0..1000).filter(|n| reader.may_have(&key(*n, "none")).expect("a look")).count();
        assert!(passed < 40, "{passed} of 1000 other keys in {format:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn heads_find_the_place_of_a_key(
        keys in proptest::collection::vec(proptest::collection::vec(0u8..3, 0..12), 0..40),
        beginning in proptest::collection::vec(any::<u8>(), 0..4),
        asked in proptest::collection::vec(0u8..3, 0..14),
    ) {
        let key = |k: &Vec<u8>| [&beginning[..], k].concat();
        let mut all: Vec<Vec<u8>> = keys.iter().map(key).collect();
        all.sort();
        let sparse: Vec<SparseKey> =
            all.iter().enumerate().map(|(i, k)| SparseKey { row: i as u64, key: k.clone() }).collect();
        let heads = Heads::new(&sparse);
        for asked in [key(&asked), asked.clone(), [&beginning[..], &[255; 9]].concat()] {
            prop_assert_eq!(heads.below(&sparse, &asked), all.iter().filter(|k| **k < asked).count());
        }
    }

    #[test]
    fn parts_of_a_key_are_what_it_was_made_of(
        number in any::<i64>(),
        text in "[a-c\u{0}\u{ff}é]{0,6}",
        bytes in proptest::collection::vec(any::<u8>(), 0..30),
        cut in 0usize..40,
    ) {
        let text = format!("t{text}");
        let cells = [Cell::Null, Cell::Int(number), Cell::Text(&text), Cell::Bytes(&bytes)];
        let key = key_bytes(cells.iter().chain([&Cell::Text(&text)]));
        let parts: Vec<KeyPart<'_>> = key_parts(&key).collect();
        let expected = KeyPart::Text(text.as_str().into());
        let expected =
            [KeyPart::Other, KeyPart::Int(number), expected.clone(), KeyPart::Other, expected];
        prop_assert_eq!(&parts[..], &expected[..]);
        let cut = cut.min(key.len());
        prop_assert!(key_parts(&key[..cut]).zip(&expected).all(|(a, b)| a == *b));
        let _ = key_parts(&bytes).count();
    }
}
