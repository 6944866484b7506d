//! The quick way through flat JSON objects that look like those before: names are predicted instead of
//! looked up, and values are read in the same pass.
//!
//! Whatever is unusual (an escape, an exponent, a number of many digits, a nested value, a name that comes
//! twice, anything that is not JSON) is left to [`super::json`], which answers the same for all the rest and
//! is what tests compare with.

use super::swar::{Scanned, decimal_digits, plain_string};
use crate::change::Column;
use asofdb_storage::value::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// Names that are remembered; messages with others take the slow way.
const NAMES_MAX: usize = 512;
/// Names that are tried in their order before all are searched.
const AHEAD: usize = 8;
/// Digits of a number whose value surely fits 64 bits.
const DIGITS_MAX: usize = 18;

/// The last number that was given to a dictionary.
static DICTIONARIES: AtomicU32 = AtomicU32::new(0);

/// The names that messages of one decoder had, numbered in the order of their first appearance.
#[derive(Debug)]
pub struct Layout {
    /// Number of the dictionary, different from that of any other one in the process; never 0.
    pub dictionary: u32,
    names: Vec<Name>,
    /// Number of the current message.
    message: u64,
}

#[derive(Debug)]
struct Name {
    /// `"name":`
    literal: Vec<u8>,
    /// Its first 8 bytes and which bits of them count.
    head: u64,
    mask: u64,
    /// Its last 8 bytes, where it has more than those.
    tail: u64,
    /// The last message that had it.
    seen: u64,
}

/// The number of another dictionary.
pub fn dictionary() -> u32 {
    DICTIONARIES.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
}

impl Default for Layout {
    fn default() -> Layout {
        Layout { dictionary: dictionary(), names: Vec::new(), message: 0 }
    }
}

impl Layout {
    /// Reads the object that `text` consists of: its members with the numbers of their names. False if the
    /// slow way has to be taken; then `columns` and `numbers` mean nothing.
    pub fn scan<'a>(&mut self, text: &'a str, columns: &mut Vec<Column<'a>>, numbers: &mut Vec<u16>) -> bool {
        self.scan_at(text, 0, columns, numbers) == Some(text.len())
    }

    /// The same for the object that begins at byte `from` of a text; where it ends.
    pub fn scan_at<'a>(
        &mut self,
        text: &'a str,
        from: usize,
        columns: &mut Vec<Column<'a>>,
        numbers: &mut Vec<u16>,
    ) -> Option<usize> {
        self.message += 1;
        let bytes = text.as_bytes();
        if bytes.get(from) != Some(&b'{') {
            return None;
        }
        let (mut at, mut predicted) = (from + 1, 0);
        loop {
            let number = self.find(bytes, at, predicted).or_else(|| self.learn(bytes, at))?;
            let name = &mut self.names[number];
            if name.seen == self.message {
                return None;
            }
            name.seen = self.message;
            let end = at + name.literal.len();
            let (cell, next) = value(text, space(bytes, end))?;
            columns.push(Column { name: &text[at + 1..end - 2], cell });
            numbers.push(number as u16);
            match bytes.get(next) {
                Some(b',') => at = space(bytes, next + 1),
                Some(b'}') => return Some(next + 1),
                _ => return None,
            }
            predicted = number + 1;
        }
    }

    /// Names by number.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.names.iter().map(|n| &n.literal[1..n.literal.len() - 2])
    }

    /// The number of the name that stands at `at`, tried from `predicted` on.
    fn find(&self, bytes: &[u8], at: usize, predicted: usize) -> Option<usize> {
        let rest = bytes.get(at..)?;
        let word = first_word(rest);
        let is = |name: &Name| {
            let length = name.literal.len();
            let tail = |rest: &[u8]| rest.get(length - 8..).is_some_and(|t| first_word(t) == name.tail);
            word & name.mask == name.head
                && (length <= 8 || tail(rest) && (length <= 16 || rest.starts_with(&name.literal)))
        };
        let ahead = self.names.iter().enumerate().skip(predicted).take(AHEAD).find(|(_, n)| is(n));
        ahead.or_else(|| self.names.iter().enumerate().find(|(_, n)| is(n))).map(|(i, _)| i)
    }

    /// Takes note of the name that stands at `at`, if it has no escapes.
    fn learn(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        if bytes.get(at) != Some(&b'"') || self.names.len() == NAMES_MAX {
            return None;
        }
        let Scanned::Plain(end) = plain_string(bytes, at + 1) else { return None };
        if bytes.get(end + 1) != Some(&b':') {
            return None;
        }
        let literal = bytes[at..end + 2].to_vec();
        let mask = if literal.len() >= 8 { u64::MAX } else { (1 << (8 * literal.len())) - 1 };
        let tail = literal.len().checked_sub(8).map_or(0, |from| first_word(&literal[from..]));
        self.names.push(Name { head: first_word(&literal) & mask, mask, tail, literal, seen: 0 });
        Some(self.names.len() - 1)
    }
}

/// Past one space, as many senders put behind colons and commas.
fn space(bytes: &[u8], at: usize) -> usize {
    at + (bytes.get(at) == Some(&b' ')) as usize
}

/// The first 8 bytes, little-endian; zeros behind the end.
fn first_word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => bytes.iter().rev().fold(0, |word, b| word << 8 | *b as u64),
    }
}

/// The value that begins at `at` and where it ends; `None` for the slow way.
#[inline]
fn value(text: &str, at: usize) -> Option<(Cell<'_>, usize)> {
    let bytes = text.as_bytes();
    match bytes.get(at)? {
        b'"' => match plain_string(bytes, at + 1) {
            Scanned::Plain(end) => Some((Cell::Text(&text[at + 1..end]), end + 1)),
            Scanned::Other => None,
        },
        b'-' | b'0'..=b'9' => number(bytes, at),
        b'n' => bytes[at..].starts_with(b"null").then_some((Cell::Null, at + 4)),
        b't' => bytes[at..].starts_with(b"true").then_some((Cell::Bool(true), at + 4)),
        b'f' => bytes[at..].starts_with(b"false").then_some((Cell::Bool(false), at + 5)),
        _ => None,
    }
}

/// A number of at most [`DIGITS_MAX`] digits without an exponent, as [`super::number::json_number`] has it.
#[inline]
fn number(bytes: &[u8], at: usize) -> Option<(Cell<'static>, usize)> {
    let negative = bytes[at] == b'-';
    let first = at + negative as usize;
    let (whole, end) = decimal_digits(bytes, first, 0, DIGITS_MAX)?;
    let digits = end - first;
    if digits > 1 && bytes[first] == b'0' {
        return None;
    }
    let signed = |n: u64| if negative { -(n as i64) } else { n as i64 };
    match bytes.get(end) {
        Some(b'.') => {
            let (all, after) = decimal_digits(bytes, end + 1, whole, DIGITS_MAX - digits)?;
            if let Some(b'e' | b'E') = bytes.get(after) {
                return None;
            }
            let scale = (after - end - 1) as u8;
            Some((Cell::Decimal { unscaled: signed(all) as i128, scale }, after))
        }
        Some(b'e' | b'E') => None,
        _ => Some((Cell::Int(signed(whole)), end)),
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
