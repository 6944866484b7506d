//! Bytes as hexadecimal digits, and back.

use std::fmt::{self, Write};

/// Lowercase hexadecimal digits, two a byte.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    let written = write(&mut out, bytes);
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
    out
}

/// Writes lowercase hexadecimal digits, two a byte.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut impl Write, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|b| write!(out, "{b:02x}"))
}

/// The bytes of hexadecimal digits of either case; `None` for anything else.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |b: &u8| (*b as char).to_digit(16).map(|d| d as u8);
    let digits = text.as_bytes().iter().map(digit).collect::<Option<Vec<u8>>>()?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|p| p[0] << 4 | p[1]).collect())
}

/// The bytes of exactly `2 * N` hexadecimal digits.
pub fn decode_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    decode(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_other_text_does_not() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
        assert_eq!((encode(&[0x0a, 0xff]).as_str(), encode(&[]).as_str()), ("0aff", ""));
        assert_eq!(decode("0AfF"), Some(vec![0x0a, 0xff]));
        for wrong in ["0", "0g", "+1", "0x", "\u{e9}\u{e9}"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        assert_eq!(decode_array::<2>("0aff"), Some([0x0a, 0xff]));
        assert_eq!(decode_array::<3>("0aff"), None);
    }
}
