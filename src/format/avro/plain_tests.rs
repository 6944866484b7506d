//! The quick way against the general one, over messages that are right, unusual and wrong.

use super::super::{NoSchema, SchemaSource, SchemaText};
use super::*;
use crate::format::options::{Absent, ColumnChoice, parse_op_map};
use proptest::prelude::*;
use std::sync::Arc;

const FIELDS: [(&str, &str); 11] = [
    ("op", "\"string\""),
    ("t", "\"long\""),
    ("id", "[\"null\",\"long\"]"),
    ("a", "\"int\""),
    ("b", "[\"string\",\"null\"]"),
    ("c", "[\"null\",\"double\"]"),
    ("d", "\"boolean\""),
    ("e", "\"float\""),
    ("f", "\"bytes\""),
    ("g", "[\"null\",\"string\",\"long\"]"),
    ("h", "{\"type\":\"map\",\"values\":\"long\"}"),
];

/// The schema of the fields whose bits are set; its id is `bits`.
#[derive(Debug)]
struct Schemas;

impl SchemaSource for Schemas {
    fn schema(&self, bits: u64) -> Result<Arc<SchemaText>, NoSchema> {
        let chosen = chosen(bits).map(|(name, ty)| format!("{{\"name\":\"{name}\",\"type\":{ty}}}"));
        let fields = chosen.collect::<Vec<_>>().join(",");
        let schema = format!("{{\"type\":\"record\",\"name\":\"R\",\"fields\":[{fields}]}}");
        Ok(Arc::new(SchemaText { schema, references: Vec::new() }))
    }
}

fn chosen(bits: u64) -> impl Iterator<Item = (&'static str, &'static str)> {
    FIELDS.into_iter().enumerate().filter(move |(i, _)| bits >> i & 1 == 1).map(|(_, field)| field)
}

fn long(n: i64, out: &mut Vec<u8>) {
    let mut n = (n << 1 ^ n >> 63) as u64;
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn text(text: &[u8], out: &mut Vec<u8>) {
    long(text.len() as i64, out);
    out.extend_from_slice(text);
}

/// A message of a schema, its values decided by `random`.
fn body(bits: u64, mut random: impl FnMut() -> u64) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, ty) in chosen(bits) {
        let n = random();
        match name {
            "op" => text([&b"i"[..], b"u", b"d", b"-u", b"gone", b"?", b"\xff"][n as usize % 7], &mut out),
            "d" => out.push(if n.is_multiple_of(9) { 2 } else { n as u8 & 1 }),
            "e" => out.extend_from_slice(&(n as f32).to_le_bytes()),
            "f" => text(&n.to_le_bytes()[..n as usize % 8], &mut out),
            "h" => out.extend_from_slice(if n.is_multiple_of(2) { &[0] } else { &[2, 2, b'k', 8, 0] }),
            "a" => long(if n.is_multiple_of(9) { n as i64 } else { n as i32 as i64 }, &mut out),
            "t" => long(n as i64 >> (n % 60), &mut out),
            _ => {
                let branch =
                    n as usize % 16 % 3 % if n.is_multiple_of(31) { 5 } else { 2 + usize::from(name == "g") };
                long(branch as i64, &mut out);
                let is = ty.trim_matches(['[', ']']).split(',').nth(branch).unwrap_or("\"null\"");
                match is {
                    "\"long\"" => long(n as i64, &mut out),
                    "\"double\"" => out.extend_from_slice(&(n as f64 / 7.0).to_le_bytes()),
                    "\"string\"" => text("hé".as_bytes(), &mut out),
                    _ => {}
                }
            }
        }
    }
    out
}

fn options(choice: u16) -> FormatOptions {
    let on = |bit: u16| choice >> bit & 1 == 1;
    FormatOptions {
        schemas: Some(Arc::new(Schemas)),
        op: on(0).then(|| "op".to_owned()),
        op_map: parse_op_map("gone=delete").expect("operations"),
        valid: on(1).then(|| "t:us".parse().expect("a column of times")),
        system: on(2).then(|| "t:ms".parse().expect("a column of times")),
        operation_id: on(3).then(|| "id".to_owned()),
        ignore_null: on(4).then(|| if on(5) { "all" } else { "b, c" }.parse().expect("columns")),
        absent: on(6).then_some(Absent::Unchanged),
        columns: if on(7) { "* except (t, b)".parse().expect("columns") } else { ColumnChoice::All },
        ..FormatOptions::default()
    }
}

/// What a message is, and whether its columns had numbers that are theirs.
fn decoded(decoder: &mut PlainAvro, options: &FormatOptions, message: &Message<'_>) -> (String, bool) {
    decoder.ready(options, message).expect("all schemas are there");
    let mut out = Vec::new();
    let mut numbered = false;
    let names: Vec<Vec<u8>> = decoder.known.names().map(<[u8]>::to_vec).collect();
    decoder.decode(options, message, &mut |d| {
        let Decoded::Changes([change]) = d else { return out.push(format!("{d:?}")) };
        let mut change = *change;
        let numbers = std::mem::take(&mut change.numbered).numbers;
        numbered = !numbers.is_empty();
        assert!(numbers.is_empty() || numbers.len() == change.image.len());
        for (number, column) in numbers.iter().zip(change.image) {
            assert_eq!(names[*number as usize], column.name.as_bytes());
        }
        out.push(format!("{change:?}"));
    });
    assert_eq!(out.len(), 1, "exactly one answer a message");
    (out.remove(0), numbered)
}

/// Decodes both ways; how many messages went the quick one with columns left out.
fn both(choice: u16, messages: &[(u64, u64, u8)]) -> usize {
    let options = options(choice);
    let mut quick = PlainAvro::default();
    let mut general = PlainAvro { roles: OnceCell::from(None), ..PlainAvro::default() };
    let mut left_out = 0;
    for (bits, seed, damage) in messages {
        let mut state = *seed;
        let mut value = vec![0, 0, 0, (bits >> 8) as u8, *bits as u8];
        value.extend(body(*bits, || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 20
        }));
        let at = *damage as usize % value.len();
        match damage % 16 {
            0 => value.truncate(at.max(5)),
            1 => value.push(*damage),
            2 if at >= 5 => value[at] ^= 0x85,
            _ => {}
        }
        let key = [None, Some(&b"k"[..]), Some(b"\0k")][2 - (*damage as usize / 16 % 6).min(2)];
        let message = Message { key, value: Some(&value), broker_time: Some(7), ..Message::default() };
        let of_quick = decoded(&mut quick, &options, &message);
        assert_eq!(of_quick.0, decoded(&mut general, &options, &message).0, "{bits:x} {value:x?}");
        // Columns that were filtered have numbers on the quick way only.
        left_out += usize::from(of_quick.1 && choice >> 4 & 1 == 1);
    }
    left_out
}

/// Mostly one of simple fields with an operation.
fn schema() -> impl Strategy<Value = u64> {
    prop_oneof![4 => (1..512u64).prop_map(|bits| bits | 1), 1 => 1..2048u64]
}

proptest! {
    #[test]
    fn the_quick_way_says_what_the_general_one_says(
        choice in 0..256u16,
        messages in prop::collection::vec((schema(), any::<u64>(), any::<u8>()), 1..40),
    ) {
        both(choice, &messages);
    }
}

#[test]
fn most_messages_go_the_quick_way() {
    let messages: Vec<(u64, u64, u8)> = (0..100).map(|i| (0b1_1111_1100, i * 77_777, 255)).collect();
    assert!(both(0b11_0000, &messages) > 70, "{}", both(0b11_0000, &messages));
}
