//! Any bytes are rows, an ignored message or a fault, exactly once, for every decoder: messages of all formats,
//! cut, spliced, nested and with what numbers and names may be at worst. `ASOF_FUZZ_SECONDS` says for how
//! long each decoder is tried; else it is for a number of messages.

use super::avro::{NoSchema, SchemaSource, SchemaText};
use super::options::{Absent, ColumnChoice};
use super::{CsvDecoder, Decoder, Format, FormatOptions};
use crate::change::{Decoded, Header, Message};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Messages for a decoder where no time is given.
const MESSAGES: usize = 400;
/// A message of a few kilobytes is answered within that, on any machine.
const SLOW: Duration = Duration::from_secs(10);

/// Numbers as a seed gives them.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }

    fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// Every message that the pages of the formats show.
fn samples() -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = vec![b"null".to_vec(), b"{}".to_vec(), b"[]".to_vec(), Vec::new()];
    for page in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/formats")).unwrap() {
        let text = std::fs::read_to_string(page.unwrap().path()).unwrap();
        for block in text.split("```").skip(1).step_by(2) {
            for line in block.lines().filter(|l| l.starts_with('{') || l.contains(',')) {
                out.push(line.as_bytes().to_vec());
                if let Ok(serde_json::Value::Object(record)) = serde_json::from_str(line) {
                    let parts = ["key", "value"].map(|part| record.get(part).and_then(|v| v.as_str()));
                    out.extend(parts.into_iter().flatten().map(|part| part.as_bytes().to_vec()));
                }
            }
        }
    }
    assert!(out.len() > 60, "the pages have examples: {}", out.len());
    out
}

/// What stands in a value's place.
const EVIL: [&str; 26] = [
    "null",
    "true",
    "-0",
    "1e999",
    "-1e-999",
    "9223372036854775808",
    "-9223372036854775809",
    "0.1e1",
    "99999999999999999999999999999999999999999.5",
    "NaN",
    "\"\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "{}",
    "[]",
    "[[]]",
    "{\"\":{}}",
    "\"9999-99-99T99:99:99Z\"",
    "\"-292277-01-01T00:00:00Z\"",
    "\"AAAA\"",
    "\"0x\"",
    "\"__debezium_unavailable_value\"",
    "{\"$numberDecimal\":\"NaN\"}",
    "253402300800000",
    "\"\u{fffd}\"",
    "1",
];

fn cut(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let (a, b) = (dice.below(bytes.len() + 1), dice.below(bytes.len() + 1));
    bytes.drain(a.min(b)..a.max(b));
}

/// Puts something else where a value stands: behind a colon, up to the next comma or bracket.
fn replace_value(bytes: &mut Vec<u8>, with: &[u8], dice: &mut Dice) {
    let colons: Vec<usize> = (0..bytes.len()).filter(|i| bytes[*i] == b':').collect();
    let Some(at) = colons.get(dice.below(colons.len())).map(|at| at + 1) else { return };
    let end = (at..bytes.len()).find(|i| matches!(bytes[*i], b',' | b'}' | b']')).unwrap_or(bytes.len());
    bytes.splice(at..end, with.iter().copied());
}

fn mutate(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    match dice.below(9) {
        0 => bytes.truncate(dice.below(bytes.len() + 1)),
        1 => cut(bytes, dice),
        2 => replace_value(bytes, dice.one_of(&EVIL).as_bytes(), dice),
        3 => replace_value(bytes, other, dice),
        // A member that is there twice.
        4 => {
            let member = format!(
                "\"{}\":{},",
                dice.one_of(&["op", "id", "after", "data", "ts", "type"]),
                dice.one_of(&EVIL)
            );
            let braces: Vec<usize> = (0..bytes.len()).filter(|i| bytes[*i] == b'{').collect();
            if let Some(at) = braces.get(dice.below(braces.len())) {
                bytes.splice(at + 1..at + 1, member.bytes());
            }
        }
        5 => {
            let depth = [3, 70, 200, 50_000][dice.below(4)];
            let (open, close) = if dice.below(2) == 0 { ("[", "]") } else { ("{\"a\":", "}") };
            let nested = open.repeat(depth) + "1" + &close.repeat(if dice.below(3) == 0 { 0 } else { depth });
            replace_value(bytes, nested.as_bytes(), dice);
        }
        6 => {
            let at = dice.below(other.len() + 1);
            bytes.truncate(dice.below(bytes.len() + 1));
            bytes.extend_from_slice(&other[at..]);
        }
        7 => {
            for _ in 0..=dice.below(4) {
                let at = dice.below(bytes.len());
                if let Some(b) = bytes.get_mut(at) {
                    *b = dice.below(256) as u8;
                }
            }
        }
        _ => {
            let at = dice.below(bytes.len() + 1);
            let digits = "7".repeat([5, 40, 400, 20_000][dice.below(4)]);
            bytes.splice(at..at, digits.bytes());
        }
    }
}

const SCHEMAS: [&str; 4] = [
    r#"{"type":"record","name":"R","fields":[{"name":"id","type":"long"},{"name":"t","type":["null","string",{"type":"array","items":["null","R"]}]},{"name":"m","type":{"type":"map","values":"bytes"}},{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":40,"scale":3}}]}"#,
    r#"{"type":"array","items":"null"}"#,
    r#"{"type":"record","name":"Envelope","fields":[{"name":"before","type":["null",{"type":"record","name":"V","fields":[{"name":"id","type":"int"},{"name":"n","type":["null","double"]}]}]},{"name":"after","type":["null","V"]},{"name":"op","type":"string"},{"name":"ts_ms","type":["null","long"]}]}"#,
    r#"{"type":"record","name":"S","fields":[{"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}},{"name":"f","type":{"type":"fixed","name":"F","size":9}},{"name":"u","type":{"type":"int","logicalType":"date"}},{"name":"s","type":"S2"},{"name":"w","type":"float"}]}"#,
];

#[derive(Debug)]
struct Schemas;

impl SchemaSource for Schemas {
    fn schema(&self, id: u64) -> Result<Arc<SchemaText>, NoSchema> {
        let schema = SCHEMAS.get(id as usize).ok_or_else(|| NoSchema::Unknown("none".into()))?;
        Ok(Arc::new(SchemaText { schema: (*schema).to_owned(), references: Vec::new() }))
    }
}

fn options(careful: bool) -> FormatOptions {
    let plain = FormatOptions { schemas: Some(Arc::new(Schemas)), ..FormatOptions::default() };
    match careful {
        false => plain,
        true => FormatOptions {
            op: Some("op".into()),
            valid: Some("at:ms".parse().unwrap()),
            valid_end: Some("until".parse().unwrap()),
            system: Some("ts".parse().unwrap()),
            tie_break: vec!["id".into(), "n".into()],
            operation_id: Some("id".into()),
            absent: Some(Absent::Unchanged),
            ignore_null: Some(ColumnChoice::All),
            delete_when: Some("deleted = true or id > 7".parse().unwrap()),
            zone: Some(chrono_tz::Europe::Berlin),
            ..plain
        },
    }
}

/// Anything that answers messages.
type Answers<'d> = dyn FnMut(&Message<'_>, &mut dyn FnMut(Decoded<'_>)) + 'd;

fn try_out(name: &str, framed: bool, decode: &mut Answers<'_>) {
    let samples = samples();
    let seconds = std::env::var("ASOF_FUZZ_SECONDS").ok().and_then(|s| s.parse::<u64>().ok());
    let began = Instant::now();
    let mut dice = Dice(name.bytes().fold(7, |seed, b| seed.wrapping_mul(31) + u64::from(b)));
    let (mut messages, mut counts) = (0, [0; 3]);
    while seconds.map_or(messages < MESSAGES, |s| began.elapsed().as_secs() < s) {
        let other = dice.below(samples.len());
        let mut value = samples[dice.below(samples.len())].clone();
        for _ in 0..dice.below(5) {
            mutate(&mut value, &samples[other], &mut dice);
        }
        if framed {
            value = (0..dice.below(40))
                .map(|_| [0, 1, 2, 3, 0x80, 0xff, dice.below(256) as u8][dice.below(7)])
                .collect();
            value.splice(0..0, [0, 0, 0, 0, dice.below(5) as u8]);
        }
        let header = |name| Header { name, value: &samples[other] };
        let headers = [header("ce_specversion"), header("ce_type"), header("__debezium.oldkey")];
        let message = Message {
            key: (dice.below(3) == 0).then_some(samples[other].as_slice()),
            value: (dice.below(50) > 0).then_some(value.as_slice()),
            headers: &headers[..dice.below(4)],
            position: messages as u64,
            ..Message::default()
        };
        let (mut answers, from) = (0, Instant::now());
        decode(&message, &mut |decoded| {
            answers += 1;
            counts[match decoded {
                Decoded::Changes(_) => 0,
                Decoded::Ignored(_) | Decoded::Repeat(_) => 1,
                Decoded::Quarantine(_) => 2,
            }] += 1;
        });
        let shown = || String::from_utf8_lossy(&value[..value.len().min(500)]).into_owned();
        assert_eq!(answers, 1, "{name}, message {messages}: {}", shown());
        assert!(from.elapsed() < SLOW, "{name}, message {messages}: {:?} for {}", from.elapsed(), shown());
        messages += 1;
    }
    println!("{name}: {messages} messages, {counts:?} rows, ignored and faults");
    assert!(counts[2] > 0, "{name}: nothing was wrong");
}

#[test]
fn any_bytes_are_answered_once_by_every_decoder() {
    for (name, format) in super::kind::NAMES {
        for careful in [false, true] {
            let options = options(careful);
            if let Some(mut decoder) = Decoder::new(*format, options) {
                try_out(name, format.is_framed(), &mut |message, sink| match decoder.ready(message) {
                    Ok(()) => decoder.decode(message, sink),
                    Err(unready) => panic!("{name}: {unready:?}"),
                });
            }
        }
    }
}

#[test]
fn any_bytes_are_answered_once_by_every_decoder_of_csv() {
    let header = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    for (name, format, columns) in [
        ("csv", Format::Csv, header(&["id", "op", "at", "until", "ts"])),
        ("ticdc-csv", Format::TicdcCsv, header(&["id", "v"])),
        ("dms", Format::Dms, header(&["Op", "ts", "id"])),
        (
            "delta-cdf",
            Format::DeltaCdf,
            header(&["id", "_change_type", "_commit_version", "_commit_timestamp"]),
        ),
        ("fivetran", Format::Fivetran, header(&["id", "_fivetran_deleted", "_fivetran_synced"])),
    ] {
        for careful in [false, true] {
            let (mut decoder, options) =
                (CsvDecoder::new(format, columns.clone(), "a/b/c.csv"), options(careful));
            try_out(name, false, &mut |message, sink| decoder.decode(&options, message, sink));
        }
    }
}
