//! Values of columns by their encoding. A value that does not fit its declared encoding is read as
//! JSON shows it, so that nothing is lost; column types widen (rule B14).

use super::schema::Encoding;
use crate::format::fields::{Reject, untyped_cell};
use crate::format::json::{self, Raw, RawText};
use crate::format::number::{exact, from_twos_complement, rescaled, scaled};
use crate::format::scratch::Scratch;
use crate::format::time_text::{self, TimeText};
use asofdb_storage::value::Cell;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const PLACEHOLDER: &str = "__debezium_unavailable_value";
const PLACEHOLDER_BASE64: &str = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==";
/// The placeholder of large columns within arrays and maps: text, bytes, numbers, UUIDs, hstore.
const PLACEHOLDERS_NESTED: [&str; 5] = [
    "[\"__debezium_unavailable_value\"]",
    "[\"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==\"]",
    "[95,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,108,117,101]",
    "[\"b68a35a7-17ad-35b3-af2a-ae46edb4545a\"]",
    "{\"__debezium_unavailable_value\":\"__debezium_unavailable_value\"}",
];

/// Longest unscaled integer of a decimal, in bytes.
const DECIMAL_BYTES_MAX: usize = 256;

/// The cell of a value.
///
/// # Errors
/// If it is a number beyond every type, or a time beyond the calendar's range.
pub fn cell<'a>(encoding: Encoding, raw: &Raw<'a>, scratch: &mut Scratch<'a>) -> Result<Cell<'a>, Reject> {
    if *raw == Raw::Null {
        return Ok(Cell::Null);
    }
    if is_placeholder(raw) {
        return Ok(Cell::Unknown);
    }
    if encoding == Encoding::Untyped {
        // Columns with JSON come as text, so an object of this shape is the struct of Oracle's numbers.
        if let Raw::Nested { text, .. } = *raw
            && text.starts_with('{')
            && is_variable_scale(text)
            && let Some(cell) = variable_scale(text, scratch)
        {
            return Ok(cell);
        }
        return untyped_cell(raw, scratch);
    }
    match typed(encoding, raw, scratch)? {
        Some(cell) => Ok(cell),
        None => untyped_cell(raw, scratch),
    }
}

/// Whether a text says that its column keeps its value.
#[inline]
pub fn is_placeholder_text(text: &str) -> bool {
    text == PLACEHOLDER || text == PLACEHOLDER_BASE64
}

fn is_placeholder(raw: &Raw<'_>) -> bool {
    match raw {
        Raw::Text(RawText { text, .. }) => is_placeholder_text(text),
        Raw::Nested { text, spaced: false } => PLACEHOLDERS_NESTED.contains(text),
        Raw::Nested { text, spaced: true } if text.len() < 512 => {
            let mut compact = String::new();
            json::compact(text, &mut compact);
            PLACEHOLDERS_NESTED.contains(&compact.as_str())
        }
        _ => false,
    }
}

/// `None` = the value does not fit the encoding.
fn typed<'a>(
    encoding: Encoding,
    raw: &Raw<'a>,
    scratch: &mut Scratch<'a>,
) -> Result<Option<Cell<'a>>, Reject> {
    Ok(match (encoding, *raw) {
        (Encoding::Float, Raw::Number(text)) => {
            text.parse().ok().filter(|v: &f64| v.is_finite()).map(Cell::Float)
        }
        (Encoding::Float, Raw::Text(t)) => special_float(t.text).map(Cell::Float),
        (Encoding::Bytes, Raw::Text(t)) => bytes(t, scratch).map(Cell::Bytes),
        (Encoding::Decimal { scale }, Raw::Text(t)) => decimal(t, scale, scratch),
        (Encoding::Decimal { scale }, Raw::Number(text)) => exact(text).map(|(n, s)| rescaled(n, s, scale)),
        (Encoding::VariableScaleDecimal, Raw::Nested { text, .. }) => variable_scale(text, scratch),
        (Encoding::Date, Raw::Number(text)) => text.parse().ok().map(Cell::Date),
        (Encoding::Time(per_second), Raw::Number(text)) => text.parse().ok().map(|units: i64| {
            Cell::Text(scratch.put_str(|out| time_text::write_time_of_day(out, units, per_second)))
        }),
        (Encoding::Timestamp(per_second), Raw::Number(text)) => match text.parse() {
            Ok(units) => Some(timestamp(units, per_second)?),
            Err(_) => None,
        },
        (Encoding::ZonedTimestamp, Raw::Text(t)) => {
            let text = t.resolve(scratch);
            Some(match time_text::parse(text) {
                Some(TimeText::Instant(t)) if t.exact => Cell::Instant(t.us),
                _ => Cell::Text(text),
            })
        }
        (Encoding::Json, Raw::Text(t)) => {
            let text = t.resolve(scratch);
            Some(if json::single(text).is_ok() { Cell::Json(text) } else { Cell::Text(text) })
        }
        (Encoding::Uuid, Raw::Text(t)) => {
            let text = t.resolve(scratch);
            let upper = text.bytes().any(|b| b.is_ascii_uppercase());
            Some(Cell::Text(if upper {
                scratch.put_str(|out| out.push_str(&text.to_ascii_lowercase()))
            } else {
                text
            }))
        }
        _ => None,
    })
}

fn special_float(text: &str) -> Option<f64> {
    Some(match text {
        "NaN" => f64::NAN,
        "Infinity" | "+Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => return None,
    })
}

fn bytes<'a>(text: RawText<'a>, scratch: &mut Scratch<'a>) -> Option<&'a [u8]> {
    let text = text.resolve(scratch);
    let decoded = STANDARD.decode(text).ok()?;
    Some(scratch.put(&decoded))
}

fn decimal<'a>(text: RawText<'a>, scale: i64, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    let text = text.resolve(scratch);
    match STANDARD.decode(text) {
        Ok(unscaled) if !unscaled.is_empty() => unscaled_cell(&unscaled, scale, scratch),
        _ => exact(text).map(|(n, s)| rescaled(n, s, scale)),
    }
}

fn is_variable_scale(text: &str) -> bool {
    let mut members = Vec::new();
    let listed = text.len() < 1024 && text.contains("\"scale\"") && json::members(text, &mut members).is_ok();
    listed && members.len() == 2 && members.iter().all(|m| matches!(m.name.text, "scale" | "value"))
}

fn variable_scale<'a>(text: &'a str, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    let Raw::Number(scale) = json::member(text, "scale")? else { return None };
    let Raw::Text(value) = json::member(text, "value")? else { return None };
    let value = value.resolve(scratch);
    unscaled_cell(&STANDARD.decode(value).ok()?, scale.parse().ok()?, scratch)
}

/// A decimal cell, or the digits as text where they are more than a decimal holds.
fn unscaled_cell<'a>(bytes: &[u8], scale: i64, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
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

fn timestamp(units: i64, per_second: u32) -> Result<Cell<'static>, Reject> {
    let range = || Reject::new(format!("the timestamp {units} is beyond the range of times"));
    Ok(match per_second {
        1_000 => Cell::Timestamp(units.checked_mul(1_000).ok_or_else(range)?),
        1_000_000 => Cell::Timestamp(units),
        _ => Cell::TimestampNs(units),
    })
}
