//! The bytes of a key that tell keys apart, packed into 16 bytes that order like the key.

use crate::key::key_prefix;

/// Bytes of a key that are looked at.
const LOOKED_AT_MAX: usize = 128;
/// Bytes of a packed key.
const PACKED: usize = 16;

/// How the keys of some rows are packed. Equal packed keys say nothing of keys that are longer than
/// [`KeyPacking::whole`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPacking {
    /// Every key that has one of the first bytes has the same there, up to here.
    skip: usize,
    /// The places of the bytes that differ, where those behind `skip` have gaps; else none.
    places: Vec<u8>,
    /// Keys of at most this length are equal if their packed keys and their lengths are.
    pub whole: usize,
}

impl KeyPacking {
    /// For keys that share what `some` of them share, which must have the least and the greatest. The empty
    /// key shares nothing and sorts before all.
    pub fn between<'a>(some: impl Iterator<Item = &'a [u8]>) -> KeyPacking {
        let skip = shared_prefix(some);
        KeyPacking { skip, places: Vec::new(), whole: skip + PACKED }
    }

    /// For exactly these keys: bytes that all of them have in common are left out wherever they stand.
    pub fn of<'a>(keys: impl Iterator<Item = &'a [u8]>) -> KeyPacking {
        let mut keys = keys.filter(|k| !k.is_empty());
        let Some(first) = keys.next() else { return KeyPacking::between(std::iter::empty()) };
        let mut differ = [0u8; LOOKED_AT_MAX];
        let (mut least, mut most) = (first.len(), first.len());
        for key in keys {
            (least, most) = (least.min(key.len()), most.max(key.len()));
            differ.iter_mut().zip(first.iter().zip(key)).for_each(|(d, (a, b))| *d |= a ^ b);
        }
        // Behind the end of the shortest key every byte counts.
        let counts = |at: &usize| *at >= least || differ[*at] != 0;
        let mut counting = (0..most.min(LOOKED_AT_MAX)).filter(counts);
        let places: Vec<u8> = counting.by_ref().take(PACKED).map(|at| at as u8).collect();
        let whole = match counting.next() {
            Some(next) => next,
            None if most <= LOOKED_AT_MAX => usize::MAX,
            None => LOOKED_AT_MAX,
        };
        let skip = places.first().map_or(0, |at| *at as usize);
        let gaps = places.iter().enumerate().any(|(i, at)| *at as usize != skip + i);
        match gaps || places.is_empty() {
            true => KeyPacking { skip, places, whole },
            false => KeyPacking { skip, places: Vec::new(), whole },
        }
    }

    /// Packs a key.
    #[inline]
    pub fn pack(&self, key: &[u8]) -> u128 {
        if self.places.is_empty() {
            return key_prefix(key.get(self.skip..).unwrap_or(&[]));
        }
        let mut packed = [0; PACKED];
        for (byte, at) in packed.iter_mut().zip(&self.places) {
            *byte = key.get(*at as usize).copied().unwrap_or(0);
        }
        u128::from_be_bytes(packed)
    }
}

/// Number of leading bytes that all keys share, the empty key aside.
fn shared_prefix<'a>(mut keys: impl Iterator<Item = &'a [u8]>) -> usize {
    let Some(first) = keys.by_ref().find(|k| !k.is_empty()) else { return 0 };
    let mut shared = first.len();
    for key in keys.filter(|k| !k.is_empty()) {
        if key.len() < shared || key[..shared] != first[..shared] {
            shared = first.iter().zip(key).take_while(|(a, b)| a == b).count();
        }
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    #[test]
    fn shared_prefix_leaves_the_empty_key_out() {
        let keys: [&[u8]; 4] = [b"", b"abcd", b"abx", b"ab"];
        assert_eq!(shared_prefix(keys.into_iter()), 2);
        assert_eq!(shared_prefix([b"".as_slice()].into_iter()), 0);
        assert_eq!(shared_prefix([b"q".as_slice(), b"q"].into_iter()), 1);
    }

    #[test]
    fn bytes_that_all_keys_have_are_left_out() {
        let keys: [&[u8]; 3] =
            [b"aaaaaaaaaaaaaaaaaaaaXbbbbbbbbbbbbbbbbbbb0", b"", b"aaaaaaaaaaaaaaaaaaaaYbbbbbbbbbbbbbbbbbbb1"];
        let packing = KeyPacking::of(keys.into_iter());
        assert_eq!((packing.places.as_slice(), packing.whole), ([20, 40].as_slice(), usize::MAX));
        assert!(packing.pack(keys[0]) < packing.pack(keys[2]) && packing.pack(keys[1]) == 0);
    }

    fn compare(packing: &KeyPacking, a: &[u8], b: &[u8]) -> Ordering {
        packing.pack(a).cmp(&packing.pack(b)).then_with(|| match a.len().max(b.len()) <= packing.whole {
            true => a.len().cmp(&b.len()),
            false => a.cmp(b),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn packed_keys_order_like_keys(
            shared in prop::collection::vec(0..3u8, 0..24),
            keys in prop::collection::vec((prop::collection::vec(prop::option::weighted(0.3, 0..3u8), 0..24), 0..150usize), 1..8),
        ) {
            // Keys that differ from one another in few places, and in their lengths.
            let key = |(own, length): &(Vec<Option<u8>>, usize)| {
                let mut key = shared.clone();
                key.resize(*length, 7);
                for (at, byte) in own.iter().enumerate() {
                    if let (Some(byte), Some(here)) = (byte, key.get_mut(at * 5)) {
                        *here = *byte;
                    }
                }
                key
            };
            let keys: Vec<Vec<u8>> = keys.iter().map(key).collect();
            let slices = || keys.iter().map(Vec::as_slice);
            for packing in [KeyPacking::of(slices()), KeyPacking::between(slices())] {
                for a in slices() {
                    for b in slices() {
                        prop_assert_eq!(compare(&packing, a, b), a.cmp(b), "{:?} {:?} {:?}", packing, a, b);
                    }
                }
            }
        }
    }
}
