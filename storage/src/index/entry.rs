//! Tables of the file, and the bytes of one value in it.

use super::error::Fault;
use crate::id::TableId;
use redb::TableDefinition;
use xxhash_rust::xxh3::Xxh3;

/// Version of the tables and bytes in here.
pub(super) const INDEX_FORMAT_VERSION: u32 = 1;

/// What the index knows of itself.
pub(super) const META: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("meta");
pub(super) const META_STORE: &[u8] = b"store";
pub(super) const META_FORMAT: &[u8] = b"format";
/// Seed of the checksums of [`META`]; those of a table have its number, which is 32 bits.
pub(super) const META_SEED: u64 = 1 << 32;

pub(super) type ByKey<'a> = TableDefinition<'a, &'static [u8], &'static [u8]>;

/// Names of the redb tables of one table of the store.
pub(super) struct Names {
    /// Entries by key.
    pub keys: String,
    /// The table that [`Names::keys`] is rewritten into; never left behind by a commit.
    pub next: String,
    /// Where [`META`] says what is applied.
    pub applied: Vec<u8>,
}

impl Names {
    pub(super) fn new(TableId(n): TableId) -> Names {
        let applied = [b"applied ".as_slice(), &n.to_be_bytes()].concat();
        Names { keys: format!("keys {n}"), next: format!("next {n}"), applied }
    }

    pub(super) fn keys(&self) -> ByKey<'_> {
        TableDefinition::new(&self.keys)
    }

    pub(super) fn next(&self) -> ByKey<'_> {
        TableDefinition::new(&self.next)
    }
}

const SUM_BYTES: usize = 8;

/// Fills `out` with the value as it is stored: checksum of key and value, value.
pub(super) fn seal(out: &mut Vec<u8>, seed: u64, key: &[u8], value: &[u8]) {
    out.clear();
    out.extend_from_slice(&sum(seed, key, value).to_le_bytes());
    out.extend_from_slice(value);
}

/// The value of stored bytes, if it is what was stored under `key`.
pub(super) fn unseal<'a>(bytes: &'a [u8], seed: u64, key: &[u8]) -> Result<&'a [u8], Fault> {
    match bytes.split_first_chunk::<SUM_BYTES>() {
        Some((found, value)) if u64::from_le_bytes(*found) == sum(seed, key, value) => Ok(value),
        _ => Err(Fault::Damaged("a value has a wrong checksum".into())),
    }
}

fn sum(seed: u64, key: &[u8], value: &[u8]) -> u64 {
    let mut hash = Xxh3::with_seed(seed);
    hash.update(&(key.len() as u64).to_le_bytes());
    hash.update(key);
    hash.update(value);
    hash.digest()
}

pub(super) fn seed(table: TableId) -> u64 {
    table.0 as u64
}
