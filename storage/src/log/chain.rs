//! Commitments, salts and the hash chain.

use super::layout::*;
use sha2::{Digest, Sha256};
use std::fmt;

pub(super) type Hash = [u8; HASH_BYTES];
pub(super) type Salt = [u8; SALT_BYTES];

/// The head of the chain after some commit: stands for the whole history up to it. Shown and read
/// as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Head(pub [u8; HASH_BYTES]);

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::hex::write(f, &self.0)
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Head({self})")
    }
}

impl std::str::FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Head, String> {
        crate::hex::decode_array(text)
            .map(Head)
            .ok_or_else(|| format!("a head is 64 hexadecimal digits, not {text:?}"))
    }
}

/// The head of an empty store.
pub fn genesis(store_id: [u8; 16]) -> Head {
    Head(Sha256::new().chain_update(DOMAIN_GENESIS).chain_update(store_id).finalize().into())
}

/// The secret that the salts of a frame come from: 32 random bytes, new for every frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FrameSecret(pub [u8; 32]);

// Secrets do not belong into logs.
impl fmt::Debug for FrameSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrameSecret(..)")
    }
}

/// Salts of a run of items, two from each hash.
pub(super) struct Salts<'a> {
    secret: &'a FrameSecret,
    domain: u8,
    list: u32,
    pair: Option<(u64, Hash)>,
}

impl Salts<'_> {
    /// Salts of the rows of block number `block`.
    pub(super) fn rows(secret: &FrameSecret, block: u32) -> Salts<'_> {
        Salts { secret, domain: DOMAIN_SALT_ROWS, list: block, pair: None }
    }

    /// Salts of the sections.
    pub(super) fn sections(secret: &FrameSecret) -> Salts<'_> {
        Salts { secret, domain: DOMAIN_SALT_SECTIONS, list: 0, pair: None }
    }

    pub(super) fn get(&mut self, i: u64) -> Salt {
        let number = i / 2;
        let pair = match self.pair {
            Some((n, pair)) if n == number => pair,
            _ => {
                let digest = Sha256::new()
                    .chain_update(self.secret.0)
                    .chain_update([self.domain])
                    .chain_update(self.list.to_le_bytes())
                    .chain_update(number.to_le_bytes())
                    .finalize();
                self.pair.insert((number, digest.into())).1
            }
        };
        let mut salt = [0; SALT_BYTES];
        let start = (i % 2) as usize * SALT_BYTES;
        salt.copy_from_slice(&pair[start..start + SALT_BYTES]);
        salt
    }
}

/// The commitment to one row or to the bytes of one section.
pub(super) fn commitment(salt: &Salt, bytes: &[u8]) -> Hash {
    Sha256::new().chain_update(salt).chain_update(bytes).finalize().into()
}

pub(super) fn section_hash(kind: u8, commitment: &Hash) -> Hash {
    Sha256::new().chain_update(DOMAIN_SECTION).chain_update([kind]).chain_update(commitment).finalize().into()
}

/// The root over the commitments of a block, taken one after the other.
pub(super) struct BlockHasher(Sha256);

impl BlockHasher {
    pub(super) fn new(table: u32, schema_version: u32, rows: u32) -> BlockHasher {
        let hasher = Sha256::new()
            .chain_update(DOMAIN_BLOCK)
            .chain_update(table.to_le_bytes())
            .chain_update(schema_version.to_le_bytes())
            .chain_update(rows.to_le_bytes());
        BlockHasher(hasher)
    }

    pub(super) fn add(&mut self, commitment: &[u8]) {
        self.0.update(commitment);
    }

    pub(super) fn root(self) -> Hash {
        self.0.finalize().into()
    }
}

/// The root over the rows of a block, for handing to [`super::FrameBuilder::rows_hashed`]. This is
/// most of the work of sealing a frame; blocks are independent, so any thread may do any of them.
///
/// `ends` are the ends of the rows within `bytes`; `block` counts the blocks of the frame from 0.
///
/// # Panics
/// If the ends do not ascend or go beyond the bytes.
pub fn hash_rows(
    secret: &FrameSecret,
    block: u32,
    table: crate::id::TableId,
    schema_version: u32,
    ends: &[u32],
    bytes: &[u8],
) -> [u8; HASH_BYTES] {
    let mut salts = Salts::rows(secret, block);
    let mut hasher = BlockHasher::new(table.0, schema_version, ends.len() as u32);
    let mut start = 0;
    for (i, end) in ends.iter().enumerate() {
        let row = &bytes[start..*end as usize];
        hasher.add(&commitment(&salts.get(i as u64), row));
        start = *end as usize;
    }
    hasher.root()
}

/// The head after a frame.
pub(super) fn frame_head(
    previous: &Head,
    sequence: u64,
    instant_us: i64,
    sections: &[Hash],
    blocks: &[Hash],
) -> Head {
    let mut hasher = Sha256::new()
        .chain_update(DOMAIN_FRAME)
        .chain_update(previous.0)
        .chain_update(sequence.to_le_bytes())
        .chain_update(instant_us.to_le_bytes());
    for list in [sections, blocks] {
        hasher.update((list.len() as u32).to_le_bytes());
        list.iter().for_each(|hash| hasher.update(hash));
    }
    Head(hasher.finalize().into())
}
