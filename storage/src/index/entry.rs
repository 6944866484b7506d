//! Tables of the file, and the bytes of one value in it.

use super::error::Fault;
use crate::id::TableId;
use redb::TableDefinition;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

/// Version of the tables and bytes in here.
pub(super) const INDEX_FORMAT_VERSION: u32 = 1;

/// What the index knows of itself.
pub(super) const META: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("meta");
pub(super) const META_STORE: &[u8] = b"store";
pub(super) const META_FORMAT: &[u8] = b"format";
/// Seed of the checksums of [`META`]; those of a table have its number, which is 32 bits.
pub(super) const META_SEED: u64 = 1 << 32;

pub(super) type ByHash<'a> = TableDefinition<'a, &'static [u8; 16], &'static [u8]>;
pub(super) type ByKey<'a> = TableDefinition<'a, &'static [u8], &'static [u8]>;

/// Hash of a key's bytes.
pub(super) type KeyHash = fn(&[u8]) -> u128;

pub(super) fn key_hash(key: &[u8]) -> u128 {
    xxh3_128(key)
}

/// Names of the redb tables of one table of the store.
pub(super) struct Names {
    /// Entries by hash of the key.
    pub keys: String,
    /// Entries by full key, of keys whose hash another key has taken.
    pub more: String,
    /// The table that [`Names::keys`] is rewritten into; never left behind by a commit.
    pub next: String,
    /// Where [`META`] says what is applied.
    pub applied: Vec<u8>,
}

impl Names {
    pub(super) fn new(TableId(n): TableId) -> Names {
        let applied = [b"applied ".as_slice(), &n.to_be_bytes()].concat();
        Names { keys: format!("keys {n}"), more: format!("more {n}"), next: format!("next {n}"), applied }
    }

    pub(super) fn keys(&self) -> ByHash<'_> {
        TableDefinition::new(&self.keys)
    }

    pub(super) fn more(&self) -> ByKey<'_> {
        TableDefinition::new(&self.more)
    }

    pub(super) fn next(&self) -> ByHash<'_> {
        TableDefinition::new(&self.next)
    }
}

const SUM_BYTES: usize = 8;
const HEAD_BYTES: usize = SUM_BYTES + 4;

/// Fills `out` with the value as it is stored: checksum of the rest, length of the key, key, value.
pub(super) fn seal(out: &mut Vec<u8>, seed: u64, key: &[u8], value: &[u8]) -> Result<(), Fault> {
    let key_bytes = u32::try_from(key.len()).map_err(|_| redb::StorageError::ValueTooLarge(key.len()))?;
    out.clear();
    out.extend_from_slice(&[0; SUM_BYTES]);
    out.extend_from_slice(&key_bytes.to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
    let sum = xxh3_64_with_seed(&out[SUM_BYTES..], seed);
    out[..SUM_BYTES].copy_from_slice(&sum.to_le_bytes());
    Ok(())
}

/// Key and value of stored bytes.
pub(super) fn unseal(bytes: &[u8], seed: u64) -> Result<(&[u8], &[u8]), Fault> {
    let wrong = || Fault::Damaged("a value has a wrong checksum".into());
    let (sum, rest) = bytes.split_first_chunk::<SUM_BYTES>().ok_or_else(wrong)?;
    if u64::from_le_bytes(*sum) != xxh3_64_with_seed(rest, seed) {
        return Err(wrong());
    }
    let (key_bytes, rest) = rest.split_first_chunk::<{ HEAD_BYTES - SUM_BYTES }>().ok_or_else(wrong)?;
    rest.split_at_checked(u32::from_le_bytes(*key_bytes) as usize).ok_or_else(wrong)
}

pub(super) fn seed(table: TableId) -> u64 {
    table.0 as u64
}
