//! The keys of a sparse index as numbers: a search among them touches little memory.

use super::meta::SparseKey;

/// First bytes of each key behind what all of them share.
#[derive(Debug)]
pub(crate) struct Heads {
    shared: Vec<u8>,
    heads: Box<[u64]>,
}

impl Heads {
    /// Of ascending keys.
    pub fn new(keys: &[SparseKey]) -> Heads {
        let shared = match (keys.first(), keys.last()) {
            (Some(a), Some(b)) => a.key.iter().zip(&b.key).take_while(|(a, b)| a == b).count(),
            _ => 0,
        };
        let shared = keys.first().map(|k| k.key[..shared].to_vec()).unwrap_or_default();
        let heads = keys.iter().map(|k| head(&k.key[shared.len()..])).collect();
        Heads { shared, heads }
    }

    /// How many of the keys are below `key`; `keys` are those that this was made of.
    pub fn below(&self, keys: &[SparseKey], key: &[u8]) -> usize {
        let Some(rest) = key.strip_prefix(self.shared.as_slice()) else {
            return if key < self.shared.as_slice() { 0 } else { keys.len() };
        };
        let wanted = head(rest);
        let mut at = self.heads.partition_point(|h| *h < wanted);
        let same = self.heads[at..].partition_point(|h| *h == wanted);
        at += keys[at..at + same].partition_point(|k| k.key.as_slice() < key);
        at
    }
}

/// The first bytes of a key as a number; what is not there counts as zeros.
fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let n = key.len().min(8);
    bytes[..n].copy_from_slice(&key[..n]);
    u64::from_be_bytes(bytes)
}
