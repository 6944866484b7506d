//! Values by the names of their PostgreSQL types. What does not fit its type, as infinity or a time in
//! another DateStyle than ISO, stays the text it was sent as.

use crate::format::fields::{Reject, untyped_cell};
use crate::format::json::{self, Raw, RawText};
use crate::format::number::{exact, with_scale};
use crate::format::scratch::Scratch;
use crate::format::time_text::{self, TimeText};
use asofdb_storage::value::Cell;

/// The cell of a value whose type is called `name`; an empty name is a type that nobody told.
///
/// # Errors
/// If it is a number beyond every type.
pub fn cell<'a>(name: &str, raw: &Raw<'a>, scratch: &mut Scratch<'a>) -> Result<Cell<'a>, Reject> {
    let (base, modifier) = parts(name);
    let typed = match (base, raw) {
        (_, Raw::Null) => Some(Cell::Null),
        ("smallint" | "integer" | "bigint" | "oid" | "int2" | "int4" | "int8", _) => {
            digits(raw).and_then(|text| text.parse().ok()).map(Cell::Int)
        }
        ("numeric" | "decimal", _) => return numeric(modifier, raw, scratch),
        ("real" | "double precision" | "float4" | "float8", _) => {
            digits(raw).and_then(float).map(Cell::Float)
        }
        ("bytea", Raw::Text(t)) => bytes(t.resolve(scratch), scratch),
        ("date" | "timestamp" | "timestamp without time zone", Raw::Text(t))
        | ("timestamptz" | "timestamp with time zone", Raw::Text(t)) => time(base, t.resolve(scratch)),
        ("json" | "jsonb", Raw::Text(t)) => {
            let text = t.resolve(scratch);
            json::single(text).is_ok().then_some(Cell::Json(text))
        }
        _ => None,
    };
    match typed {
        Some(cell) => Ok(cell),
        None => untyped_cell(raw, scratch),
    }
}

/// A type's name without its modifier, and the modifier: `numeric(5,3)` is `numeric` and `5,3`. A modifier
/// in the middle, as in `timestamp(3) with time zone`, is one of times, which need none.
fn parts(name: &str) -> (&str, &str) {
    let Some((base, rest)) = name.split_once('(') else { return (name, "") };
    match (base, rest.split_once(')')) {
        (base, Some((modifier, ""))) => (base, modifier),
        ("timestamp", Some((_, " without time zone"))) => ("timestamp", ""),
        ("timestamp", Some((_, " with time zone"))) => ("timestamptz", ""),
        _ => ("", ""),
    }
}

/// A number's text, also one in quotes (`numeric-data-types-as-string`).
fn digits<'a>(raw: &Raw<'a>) -> Option<&'a str> {
    match *raw {
        Raw::Number(text) | Raw::Text(RawText { text, escaped: false }) => Some(text),
        _ => None,
    }
}

fn float(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ if text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E')) => {
            text.parse().ok().filter(|v: &f64| v.is_finite())
        }
        _ => None,
    }
}

/// A decimal with its declared scale; the digits as text where they are more than a decimal holds.
fn numeric<'a>(modifier: &str, raw: &Raw<'a>, scratch: &mut Scratch<'a>) -> Result<Cell<'a>, Reject> {
    let Some(text) = digits(raw) else { return untyped_cell(raw, scratch) };
    let scale = modifier.split_once(',').and_then(|(_, scale)| scale.trim().parse().ok());
    Ok(match exact(text) {
        Some((unscaled, own)) => with_scale(unscaled, own, scale.unwrap_or(own as i64)),
        None => Cell::Text(text),
    })
}

/// Bytes in hexadecimal digits, with or without `\x` before them.
fn bytes<'a>(text: &str, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    let digits = text.strip_prefix("\\x").unwrap_or(text).as_bytes();
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let decoded: Option<Vec<u8>> =
        digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect();
    Some(Cell::Bytes(scratch.put(&decoded?)))
}

fn time(base: &str, text: &str) -> Option<Cell<'static>> {
    Some(match (base, time_text::parse(text)?) {
        ("date", TimeText::Date(days)) => Cell::Date(days),
        ("timestamptz" | "timestamp with time zone", TimeText::Instant(t)) if t.exact => Cell::Instant(t.us),
        ("timestamp" | "timestamp without time zone", TimeText::Local(t)) if t.exact => Cell::Timestamp(t.us),
        _ => return None,
    })
}
