//! The format document and the constants change together.

use sha2::{Digest, Sha256};

const DOCUMENT: &str = include_str!("../../../../docs/on-disk-format.md");
const LAYOUT: &str = include_str!("../layout.rs");
const ROW: &str = include_str!("../../event/row.rs");
const HEAD: &str = include_str!("../../event/head.rs");

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
    let hash: String = hasher.finalize().iter().map(|b| format!("{b:02x}")).collect();
    assert!(
        DOCUMENT.contains(&format!("log constants: `{hash}`")),
        "constants of the log or of rows changed: put docs/on-disk-format.md right, its list of changes \
         included, and then this hash into it: {hash}"
    );
}
