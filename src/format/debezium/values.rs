//! Values of semantic types, from their parts.

use super::Encoding;
use crate::format::fields::Reject;
use crate::format::json;
use crate::format::number::{from_twos_complement, scaled};
use crate::format::scratch::Scratch;
use crate::format::time_text::{self, TimeText};
use asofdb_storage::value::Cell;

/// What stands for a value that was not sent.
pub const PLACEHOLDER: &str = "__debezium_unavailable_value";
/// The same in base64.
pub const PLACEHOLDER_BASE64: &str = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==";
/// The placeholder of large columns within arrays and maps: text, bytes, numbers, UUIDs, hstore.
pub const PLACEHOLDERS_NESTED: [&str; 5] = [
    "[\"__debezium_unavailable_value\"]",
    "[\"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==\"]",
    "[95,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,108,117,101]",
    "[\"b68a35a7-17ad-35b3-af2a-ae46edb4545a\"]",
    "{\"__debezium_unavailable_value\":\"__debezium_unavailable_value\"}",
];

/// Longest unscaled integer of a decimal, in bytes.
const DECIMAL_BYTES_MAX: usize = 256;

/// Whether a text says that its column keeps its value.
#[inline]
pub fn is_placeholder_text(text: &str) -> bool {
    text == PLACEHOLDER || text == PLACEHOLDER_BASE64
}

/// A time of day in these units per second.
pub fn time_of_day<'a>(units: i64, per_second: u32, scratch: &mut Scratch<'a>) -> Cell<'a> {
    Cell::Text(scratch.put_str(|out| time_text::write_time_of_day(out, units, per_second)))
}

/// A text whose encoding gives it a meaning.
pub fn semantic_text<'a>(encoding: Encoding, text: &'a str, scratch: &mut Scratch<'a>) -> Cell<'a> {
    match encoding {
        Encoding::ZonedTimestamp => match time_text::parse(text) {
            Some(TimeText::Instant(t)) if t.exact => Cell::Instant(t.us),
            _ => Cell::Text(text),
        },
        Encoding::Json if json::single(text).is_ok() => Cell::Json(text),
        Encoding::Uuid if text.bytes().any(|b| b.is_ascii_uppercase()) => {
            Cell::Text(scratch.put_str(|out| out.push_str(&text.to_ascii_lowercase())))
        }
        _ => Cell::Text(text),
    }
}

/// A decimal cell, or the digits as text where they are more than a decimal holds.
pub fn unscaled_cell<'a>(bytes: &[u8], scale: i64, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    if let Some(cell) = from_twos_complement(bytes).and_then(|n| scaled(n, scale)) {
        return Some(cell);
    }
    if bytes.len() > DECIMAL_BYTES_MAX || scale.unsigned_abs() > 1_000 {
        return None;
    }
    Some(Cell::Text(scratch.put_str(|out| write_wide(out, bytes, scale))))
}

/// Writes a two's complement integer of any length with a point.
fn write_wide(out: &mut String, bytes: &[u8], scale: i64) {
    let negative = bytes.first().is_some_and(|b| *b >= 0x80);
    let mut size: Vec<u8> = bytes.to_vec();
    if negative {
        let mut carry = true;
        for b in size.iter_mut().rev() {
            (*b, carry) = (!*b).overflowing_add(carry as u8);
        }
    }
    let mut digits = Vec::new();
    while size.iter().any(|b| *b != 0) {
        let mut rest = 0u32;
        for b in &mut size {
            let n = rest << 8 | *b as u32;
            *b = (n / 10) as u8;
            rest = n % 10;
        }
        digits.push(b'0' + rest as u8);
    }
    let fraction = scale.max(0) as usize;
    while digits.len() <= fraction {
        digits.push(b'0');
    }
    if negative {
        out.push('-');
    }
    for (i, d) in digits.iter().enumerate().rev() {
        out.push(*d as char);
        if i == fraction && fraction > 0 {
            out.push('.');
        }
    }
    (0..(-scale).max(0)).for_each(|_| out.push('0'));
}

/// A wall-clock time in these units per second.
///
/// # Errors
/// If it is beyond the range of times.
pub fn timestamp(units: i64, per_second: u32) -> Result<Cell<'static>, Reject> {
    let range = || Reject::new(format!("the timestamp {units} is beyond the range of times"));
    Ok(match per_second {
        1_000 => Cell::Timestamp(units.checked_mul(1_000).ok_or_else(range)?),
        1_000_000 => Cell::Timestamp(units),
        _ => Cell::TimestampNs(units),
    })
}
