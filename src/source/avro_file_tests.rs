use crate::change::Decoded;
use crate::source::{FileOptions, FileSource, Notice, Place, SourcePosition};
use std::io::Write;
use std::path::Path;

const SCHEMA: &str =
    r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"s","type":"string"}]}"#;
const SYNC: &[u8] = b"0123456789abcdef";

fn long(n: i64) -> Vec<u8> {
    let mut z = (n << 1 ^ n >> 63) as u64;
    let mut out = Vec::new();
    while z >= 0x80 {
        out.push(z as u8 | 0x80);
        z >>= 7;
    }
    out.push(z as u8);
    out
}

fn bytes(b: &[u8]) -> Vec<u8> {
    [long(b.len() as i64), b.to_vec()].concat()
}

fn header(codec: &str, schema: &str) -> Vec<u8> {
    let meta =
        [bytes(b"avro.codec"), bytes(codec.as_bytes()), bytes(b"avro.schema"), bytes(schema.as_bytes())]
            .concat();
    [b"Obj\x01".to_vec(), long(2), meta, long(0), SYNC.to_vec()].concat()
}

fn packed(codec: &str, data: &[u8]) -> Vec<u8> {
    match codec {
        "deflate" => {
            let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            out.write_all(data).unwrap();
            out.finish().unwrap()
        }
        "snappy" => {
            let mut crc = flate2::Crc::new();
            crc.update(data);
            [snap::raw::Encoder::new().compress_vec(data).unwrap(), crc.sum().to_be_bytes().to_vec()].concat()
        }
        "zstandard" => zstd::encode_all(data, 0).unwrap(),
        _ => data.to_vec(),
    }
}

/// A block of records with these numbers.
fn block(codec: &str, numbers: &[i64]) -> Vec<u8> {
    let records: Vec<u8> = numbers.iter().flat_map(|n| [long(*n), bytes(b"xy")].concat()).collect();
    let data = packed(codec, &records);
    [long(numbers.len() as i64), bytes(&data), SYNC.to_vec()].concat()
}

type Run = (Result<Vec<String>, String>, Vec<SourcePosition>, Vec<Notice>);

fn read(path: &Path, known: Vec<SourcePosition>) -> Run {
    let inputs = [path.to_str().unwrap().to_owned()];
    let mut source = FileSource::open(&inputs, FileOptions::default(), known).unwrap();
    let mut out = Vec::new();
    let mut sink = |place: &Place<'_>, decoded: Decoded<'_>| {
        let Decoded::Changes([c]) = decoded else { panic!("{decoded:?}") };
        out.push(format!("{} {:?} {}", place.position, c.image[0].cell, c.image.len()));
    };
    let result = loop {
        match source.read(1, &mut sink) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(e) => break Err(e.reason),
        }
    };
    (result.map(|()| out), source.take_positions(), source.take_notices())
}

fn read_bytes(content: &[u8]) -> Run {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.avro");
    std::fs::write(&path, content).unwrap();
    read(&path, Vec::new())
}

#[test]
fn records_are_read_however_their_blocks_are_packed() {
    for codec in ["null", "deflate", "snappy", "zstandard"] {
        let file = [header(codec, SCHEMA), block(codec, &[5, -6]), block(codec, &[7])].concat();
        let (read, _, notices) = read_bytes(&file);
        assert_eq!(read.unwrap(), ["0 Int(5) 2", "1 Int(-6) 2", "2 Int(7) 2"], "{codec}");
        assert!(matches!(&notices[..], [Notice::Detected { format, .. }] if format.name() == "avro"));
    }
}

#[test]
fn a_file_that_grew_gives_its_new_records_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.avro");
    let first = [header("deflate", SCHEMA), block("deflate", &[1, 2])].concat();
    std::fs::write(&path, &first).unwrap();
    let (_, known, _) = read(&path, Vec::new());
    assert_eq!(read(&path, known.clone()).0.unwrap(), Vec::<String>::new());
    std::fs::write(&path, [first, block("deflate", &[3])].concat()).unwrap();
    assert_eq!(read(&path, known).0.unwrap(), ["2 Int(3) 2"]);
}

#[test]
fn damage_is_an_error_of_the_file() {
    let fault = |content: &[u8]| read_bytes(content).0.unwrap_err();
    let whole = [header("snappy", SCHEMA), block("snappy", &[5])].concat();
    assert_eq!(fault(&whole[..40]), "ends within its header");
    assert_eq!(fault(&whole[..whole.len() - 1]), "ends within a block");
    let mut other = whole.clone();
    *other.last_mut().unwrap() ^= 1;
    assert!(fault(&other).contains("the mark behind it"));
    let mut other = whole.clone();
    let checksum = whole.len() - SYNC.len() - 1;
    other[checksum] ^= 1;
    assert!(fault(&other).contains("its checksum is another one"));
    assert!(fault(&header("lzo", SCHEMA)).contains("is packed with `lzo`"));
    assert!(fault(&header("null", "{")).contains("its schema cannot be used"));
    let more = [header("null", SCHEMA), long(1), bytes(&[2, 2, b'x', 0]), SYNC.to_vec()].concat();
    assert!(fault(&more).contains("1 bytes are left behind its records"));
    let fewer = [header("null", SCHEMA), long(2), bytes(&[2, 2, b'x']), SYNC.to_vec()].concat();
    assert!(fault(&fewer).contains("a block is damaged"));
    let endless = [header("null", "\"null\""), long(1 << 40), bytes(&[]), SYNC.to_vec()].concat();
    assert!(fault(&endless).contains("more records than its bytes can hold"));
}

#[test]
fn any_flipped_bit_is_records_or_an_error() {
    let whole = [header("deflate", SCHEMA), block("deflate", &[5, 6])].concat();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.avro");
    for at in 4..whole.len() {
        let mut other = whole.clone();
        other[at] ^= 1 << (at % 8);
        std::fs::write(&path, &other).unwrap();
        let inputs = [path.to_str().unwrap().to_owned()];
        let mut source = FileSource::open(&inputs, FileOptions::default(), Vec::new()).unwrap();
        while source.read(1, &mut |_, _| {}).unwrap_or(false) {}
    }
}
