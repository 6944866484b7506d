//! Eight bytes at once: strings without escapes, and runs of digits.

/// What stands behind an opening quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// A string without escapes and control characters; the place of its closing quote.
    Plain(usize),
    /// Something else, or the end of the text.
    Other,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The high bit of each byte that is zero; right for the lowest one at least.
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// Looks for the quote that closes the string whose first byte is at `from`.
#[inline]
pub fn plain_string(bytes: &[u8], from: usize) -> Scanned {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quotes = zeros(word ^ (b'"' as u64 * ONES));
        let escapes = zeros(word ^ (b'\\' as u64 * ONES));
        let controls = word.wrapping_sub(0x20 * ONES) & !word & HIGHS;
        let found = quotes | escapes | controls;
        if found != 0 {
            at += found.trailing_zeros() as usize / 8;
            return if bytes[at] == b'"' { Scanned::Plain(at) } else { Scanned::Other };
        }
        at += 8;
    }
    while let Some(b) = bytes.get(at) {
        match b {
            b'"' => return Scanned::Plain(at),
            b'\\' | 0..0x20 => return Scanned::Other,
            _ => at += 1,
        }
    }
    Scanned::Other
}

/// The digits from `at` on behind those of `before`, and where they end; `None` if there is none or are
/// more than `most`, which is at most 18 together with the digits of `before`.
#[inline]
pub fn decimal_digits(bytes: &[u8], from: usize, before: u64, most: usize) -> Option<(u64, usize)> {
    let (mut n, mut at) = (before, from);
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk).wrapping_sub(b'0' as u64 * ONES);
        if (word | word.wrapping_add((0x80 - 10) * ONES)) & HIGHS != 0 || at + 8 - from > most {
            break;
        }
        n = n * 100_000_000 + eight_digits(word);
        at += 8;
    }
    while let Some(digit) = bytes.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        if at - from == most {
            return None;
        }
        n = n * 10 + digit as u64;
        at += 1;
    }
    (at > from).then_some((n, at))
}

/// Where the digits end that begin at `from`.
#[inline]
pub fn digits_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk) ^ (b'0' as u64 * ONES);
        // A digit is 0 to 9 now; adding does not carry where no byte is above 0x7f.
        let others = (word | (word & !HIGHS).wrapping_add((0x80 - 10) * ONES)) & HIGHS;
        if others != 0 {
            return at + others.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count()
}

/// The number that eight bytes with one digit each are, the first one lowest.
fn eight_digits(word: u64) -> u64 {
    let pairs = (word.wrapping_mul(10) + (word >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul(10_000) + (fours >> 32)) & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_at_the_first_quote_unless_something_comes_before() {
        let slow = |bytes: &[u8]| match bytes.iter().position(|b| matches!(b, b'"' | b'\\' | 0..0x20)) {
            Some(at) if bytes[at] == b'"' => Scanned::Plain(at),
            _ => Scanned::Other,
        };
        for special in 0..=255u8 {
            for length in 0..20 {
                for at in 0..length {
                    for quote in [at, 7, 15, 19] {
                        let mut bytes = vec![b'a'; length];
                        bytes[at] = special;
                        bytes.resize(20, 0x7f);
                        bytes[quote] = if quote == at { special } else { b'"' };
                        assert_eq!(plain_string(&bytes, 0), slow(&bytes), "{bytes:?}");
                        assert_eq!(plain_string(&bytes[..length], 0), slow(&bytes[..length]), "{bytes:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn digits_end_at_the_first_byte_that_is_none() {
        for other in 0..=255u8 {
            for length in 0..20 {
                for at in 0..=length {
                    let mut bytes: Vec<u8> = (0..length).map(|i| b'0' + (i * 7 % 10) as u8).collect();
                    bytes.insert(at, other);
                    bytes.push(other);
                    for from in 0..=at {
                        let slow = bytes[from..].iter().position(|b| !b.is_ascii_digit());
                        let slow = slow.map_or(bytes.len(), |n| from + n);
                        assert_eq!(digits_end(&bytes, from), slow, "{bytes:?} from {from}");
                    }
                }
            }
        }
    }

    #[test]
    fn digits_are_the_number_they_spell() {
        let text = "12345678901234567890";
        for from in 0..text.len() {
            for to in from..=text.len() {
                for behind in ["", "x", "/", ":", ".5", "        ", "\u{80}\u{ff}abcdefgh"] {
                    let all = format!("{}{behind}", &text[from..to]);
                    let digits = to - from;
                    let wanted =
                        (1..=18).contains(&digits).then(|| (text[from..to].parse().unwrap(), digits));
                    assert_eq!(decimal_digits(all.as_bytes(), 0, 0, 18), wanted, "{all}");
                }
            }
        }
        assert_eq!(decimal_digits(b"25", 0, 7, 2), Some((725, 2)));
        assert_eq!(decimal_digits(b"250000000", 0, 7, 8), None);
        assert_eq!(decimal_digits(b"2", 0, 7, 0), None);
    }
}
