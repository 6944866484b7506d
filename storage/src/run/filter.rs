//! Filters of keys: whether a key may be in a chunk, for one look at 32 bytes.
//!
//! Blocks of 256 bits; a key sets eight bits of the block that its hash says, one in each word of 32 bits.

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: usize = 32;

/// Keys of a block, at most: some 10 bits for each.
const BLOCK_KEYS: usize = 25;

/// Odd numbers that the hash is multiplied by, one a word.
const SALTS: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// The hash of a key.
pub(crate) fn hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// The filter of the keys with these hashes, at least one block.
pub(crate) fn filter_of(hashes: &[u64]) -> Vec<u8> {
    let mut filter = vec![0; hashes.len().div_ceil(BLOCK_KEYS).max(1) * BLOCK_BYTES];
    let blocks = filter.len() / BLOCK_BYTES;
    for hash in hashes {
        let start = block_of(*hash, blocks) * BLOCK_BYTES;
        for (word, bit) in bits(*hash).enumerate() {
            filter[start + word * 4 + bit / 8] |= 1 << (bit % 8);
        }
    }
    filter
}

/// Where the block of a hash begins in a filter of so many bytes.
pub(crate) fn block_at(hash: u64, filter_bytes: usize) -> usize {
    block_of(hash, filter_bytes / BLOCK_BYTES) * BLOCK_BYTES
}

/// Whether a key with this hash may be among those of the filter; `block` is its block.
pub(crate) fn may_have(hash: u64, block: &[u8]) -> bool {
    let set = |word: usize, bit: usize| block.get(word * 4 + bit / 8).is_none_or(|b| b >> (bit % 8) & 1 == 1);
    bits(hash).enumerate().all(|(word, bit)| set(word, bit))
}

fn block_of(hash: u64, blocks: usize) -> usize {
    (((hash >> 32) * blocks as u64) >> 32) as usize
}

/// The bit that is set in each word.
fn bits(hash: u64) -> impl Iterator<Item = usize> {
    SALTS.iter().map(move |salt| ((hash as u32).wrapping_mul(*salt) >> 27) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(n: u64) -> u64 {
        hash(&n.to_be_bytes())
    }

    #[test]
    fn a_filter_has_its_keys_and_few_others() {
        for n in [0, 1, 24, 25, 26, 5000] {
            let hashes: Vec<u64> = (0..n).map(hash_of).collect();
            let filter = filter_of(&hashes);
            assert!(filter.len() as u64 * 8 <= n * 11 + 256, "{} bytes for {n} keys", filter.len());
            let has = |hash: u64| {
                let at = block_at(hash, filter.len());
                may_have(hash, &filter[at..at + BLOCK_BYTES])
            };
            assert!(hashes.iter().all(|h| has(*h)), "{n} keys");
            let others = (n..n + 10_000).filter(|n| has(hash_of(*n))).count();
            assert!(others < 250, "{others} of 10000 other keys");
        }
    }
}
