//! LEB128 varints, up to eight bytes at once.

/// Bits of a number that eight bytes of a varint hold.
const EIGHT_BYTES_BITS: u32 = 56;
/// The bits that say that a byte is not the last.
const MORE: u64 = 0x8080_8080_8080_8080;

/// Appends a number.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    if n < 0x80 {
        return out.push(n as u8);
    }
    if n < 1 << EIGHT_BYTES_BITS {
        let len = (u64::BITS - n.leading_zeros()).div_ceil(7) as usize;
        let more = MORE & ((1 << (8 * len - 8)) - 1);
        // A copy of a fixed length is one move; what is too much goes again.
        let end = out.len() + len;
        out.extend_from_slice(&(spread(n) | more).to_le_bytes());
        return out.truncate(end);
    }
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// The number that `bytes` begin with and how many of them it takes, if it ends within the first eight and
/// eight are there.
#[inline]
pub fn short_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(*bytes.first_chunk::<8>()?);
    let ends = !word & MORE;
    if ends == 0 {
        return None;
    }
    Some((gather(word & (ends ^ (ends - 1))), ends.trailing_zeros() as usize / 8 + 1))
}

/// Groups of 7 bits, lowest first, as bytes.
fn spread(n: u64) -> u64 {
    let n = (n & 0x0fff_ffff) | (n & 0x00ff_ffff_f000_0000) << 4;
    let n = (n & 0x0000_3fff_0000_3fff) | (n & 0x0fff_c000_0fff_c000) << 2;
    (n & 0x007f_007f_007f_007f) | (n & 0x3f80_3f80_3f80_3f80) << 1
}

/// The lowest 7 bits of each byte side by side: what [`spread`] was made of.
fn gather(bytes: u64) -> u64 {
    let n = (bytes & 0x007f_007f_007f_007f) | (bytes & 0x7f00_7f00_7f00_7f00) >> 1;
    let n = (n & 0x0000_3fff_0000_3fff) | (n & 0x3fff_0000_3fff_0000) >> 2;
    (n & 0x0fff_ffff) | (n & 0x0fff_ffff_0000_0000) >> 4
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One byte after the other.
    fn plain(mut n: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
        out
    }

    #[test]
    fn numbers_of_every_length_are_written_and_read_as_one_byte_after_the_other() {
        let edges = (0..64).flat_map(|bit| [0, 1, 2, 0x55].map(|more| (1u64 << bit).wrapping_sub(1) + more));
        for n in edges.chain([u64::MAX, 0x1234_5678_9abc_def0]) {
            let mut out = vec![7];
            put_varint(&mut out, n);
            let wanted = plain(n);
            assert_eq!(out[1..], wanted, "{n:#x}");
            let short = (wanted.len() <= 8).then_some((n, wanted.len()));
            for behind in [0x00, 0x7f, 0xff] {
                let mut bytes = wanted.clone();
                bytes.resize(12, behind);
                assert_eq!(short_varint(&bytes), short, "{n:#x} before {behind:#x}");
            }
        }
        assert_eq!(short_varint(&[1; 7]), None);
    }
}
