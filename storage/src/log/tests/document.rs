//! The format document and the constants change together.

use super::*;
use sha2::{Digest, Sha256};

const DOCUMENT: &str = include_str!("../../../../docs/on-disk-format.md");
const LAYOUT: &str = include_str!("../layout.rs");
const ROW: &str = include_str!("../../event/row.rs");
const HEAD: &str = include_str!("../../event/head.rs");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn hash(parts: &[&[u8]]) -> Vec<u8> {
    Sha256::digest(parts.concat()).to_vec()
}

/// The item of a source that starts with `start` and ends with a brace at the start of a line.
fn item<'a>(source: &'a str, start: &str) -> &'a str {
    let from = source.find(start).unwrap_or_else(|| panic!("{start} is not in the source any more"));
    let len = source[from..].find("\n}").expect("an item ends");
    &source[from..from + len]
}

#[test]
fn the_document_describes_these_constants() {
    let mut hasher = Sha256::new().chain_update(LAYOUT);
    for (source, start) in
        [(ROW, "mod flag {"), (ROW, "mod tag {"), (HEAD, "pub enum Op {"), (HEAD, "pub enum TimeSource {")]
    {
        hasher.update(item(source, start));
    }
    let hash = hex(&hasher.finalize());
    assert!(
        DOCUMENT.contains(&format!("log constants: `{hash}`")),
        "constants of the log or of rows changed: put docs/on-disk-format.md right, its list of changes \
         included, and then this hash into it: {hash}"
    );
}

#[test]
fn heads_are_computed_as_the_document_says() {
    let disk = new_disk();
    let (log, _) = log_with(&disk, LogSettings::new(STORE), 1);
    let key = secret(1).0;
    let rows = rows_of(1, "row");
    let u32s = |n: u32| n.to_le_bytes();
    let row_salts = hash(&[&key, &[1], &u32s(0), &0u64.to_le_bytes()]);
    let section_salts = hash(&[&key, &[2], &u32s(0), &0u64.to_le_bytes()]);
    let section = hash(&[&section_salts[..16], b"positions 1"]);
    let section = hash(&[b"asofdb section 1", &[1], &section]);
    let commitments = [hash(&[&row_salts[..16], &rows[0]]), hash(&[&row_salts[16..], &rows[1]])].concat();
    let block = hash(&[b"asofdb rows 1", &u32s(1), &u32s(1), &u32s(2), &commitments]);
    let before = hash(&[b"asofdb chain 1", &STORE]);
    let after = hash(&[
        b"asofdb frame 1",
        &before,
        &1u64.to_le_bytes(),
        &instant(1).to_le_bytes(),
        &u32s(1),
        &section,
        &u32s(1),
        &block,
    ]);
    assert_eq!(rows.len(), 2);
    assert_eq!(log.head().to_string(), hex(&after));
}

/// A change of this hash is a change of the format: raise the version and say so in the document.
#[test]
fn the_bytes_of_a_segment_stay_as_they_are() {
    let disk = new_disk();
    let (log, _) = log_with(&disk, LogSettings::new(STORE), 6);
    let frame = log.read_frame(log.last().expect("a frame")).expect("frame");
    let sparse = sparse_frame(&frame, STORE, 1, |_, i| i == 1, |s| s.kind == 2).expect("sparse");
    assert_eq!(
        hex(&hash(&[&bytes_of(&disk, 1), &sparse])),
        "027a69717a1bec7cbf011fe2d53f5c2cf3fa5c48cfe92cae8cfde0c272b98513"
    );
}
