//! Values of extended JSON (version 2, canonical and relaxed, and what version 1 wrote).

use crate::format::fields::{Reject, untyped_cell};
use crate::format::json::{self, Member, Raw, RawText};
use crate::format::number::{exact, json_number};
use crate::format::scratch::Scratch;
use crate::format::time_text::{self, TimeText};
use asofdb_storage::value::{Cell, write_json};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;

/// The cell of a value.
///
/// # Errors
/// If it is a number beyond every type.
pub fn cell<'a>(raw: &Raw<'a>, scratch: &mut Scratch<'a>) -> Result<Cell<'a>, Reject> {
    let Raw::Nested { text, .. } = *raw else { return untyped_cell(raw, scratch) };
    if let Some(cell) = special(text, scratch) {
        return Ok(cell);
    }
    let mut out = String::new();
    write_nested(text, &mut out, scratch)?;
    Ok(Cell::Json(scratch.put_str(|all| all.push_str(&out))))
}

/// Appends a value as JSON without the types of extended JSON.
pub fn write_value<'a>(raw: &Raw<'a>, out: &mut String, scratch: &mut Scratch<'a>) -> Result<(), Reject> {
    match *raw {
        Raw::Null => out.push_str("null"),
        Raw::Bool(v) => out.push_str(if v { "true" } else { "false" }),
        Raw::Number(digits) => out.push_str(digits),
        Raw::Text(t) => write_quoted(t, out),
        Raw::Nested { text, .. } => match special(text, scratch) {
            Some(Cell::Text(text)) => write_json(out, &Cell::Text(text)),
            Some(Cell::Bytes(bytes)) => write_json(out, &Cell::Text(&STANDARD.encode(bytes))),
            Some(cell) => write_json(out, &cell),
            None => write_nested(text, out, scratch)?,
        },
    }
    Ok(())
}

/// Appends a text as it stood between its quotes.
pub fn write_quoted(text: RawText<'_>, out: &mut String) {
    out.push('"');
    out.push_str(text.text);
    out.push('"');
}

/// The depth is that of the text, which the scanner bounds.
fn write_nested<'a>(text: &'a str, out: &mut String, scratch: &mut Scratch<'a>) -> Result<(), Reject> {
    let mut members = Vec::new();
    let object = text.starts_with('{');
    if object {
        json::members(text, &mut members)?;
    } else {
        json::elements(text, &mut members)?;
    }
    out.push(if object { '{' } else { '[' });
    for (i, member) in members.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        if object {
            write_quoted(member.name, out);
            out.push(':');
        }
        write_value(&member.value, out, scratch)?;
    }
    out.push(if object { '}' } else { ']' });
    Ok(())
}

/// The value of an object whose names begin with a dollar; `None` if it is another object or an array.
fn special<'a>(text: &'a str, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    let inside = text.strip_prefix('{')?.trim_start();
    if !inside.starts_with("\"$") {
        return None;
    }
    let mut members = Vec::new();
    json::members(text, &mut members).ok()?;
    let [first, rest @ ..] = members.as_slice() else { return None };
    if rest.len() > 1 {
        return None;
    }
    value_of(first, rest.first(), scratch)
}

fn value_of<'a>(
    first: &Member<'a>,
    second: Option<&Member<'a>>,
    scratch: &mut Scratch<'a>,
) -> Option<Cell<'a>> {
    let name = first.name.text;
    if let Some(second) = second {
        return match (name, second.name.text) {
            ("$binary", "$type") => binary(text(first)?, text(second)?, scratch),
            ("$type", "$binary") => binary(text(second)?, text(first)?, scratch),
            ("$regex", "$options") => regex(text(first)?, text(second)?, scratch),
            ("$code", "$scope") => Some(Cell::Text(text(first)?.resolve(scratch))),
            _ => None,
        };
    }
    Some(match (name, first.value) {
        ("$oid" | "$symbol" | "$code" | "$uuid", Raw::Text(t)) => Cell::Text(t.resolve(scratch)),
        ("$numberLong" | "$numberInt", Raw::Text(t)) => Cell::Int(t.text.parse().ok()?),
        ("$numberLong" | "$numberInt", Raw::Number(digits)) => Cell::Int(digits.parse().ok()?),
        ("$numberDouble", Raw::Text(t)) => double(t.text)?,
        ("$numberDouble", Raw::Number(digits)) => json_number(digits)?,
        ("$numberDecimal", Raw::Text(t)) => match exact(t.text) {
            Some((unscaled, scale)) => Cell::Decimal { unscaled, scale },
            None => Cell::Text(t.resolve(scratch)),
        },
        ("$date", value) => date(&value, scratch)?,
        ("$timestamp", Raw::Nested { text, .. }) => {
            let Raw::Number(seconds) = json::member(text, "t")? else { return None };
            Cell::Instant(seconds.parse::<i64>().ok()?.checked_mul(1_000_000)?)
        }
        ("$binary", Raw::Nested { text: inner, .. }) => {
            let Raw::Text(base64) = json::member(inner, "base64")? else { return None };
            let Raw::Text(kind) = json::member(inner, "subType")? else { return None };
            binary(base64, kind, scratch)?
        }
        ("$regularExpression", Raw::Nested { text: inner, .. }) => {
            let Raw::Text(pattern) = json::member(inner, "pattern")? else { return None };
            let Raw::Text(options) = json::member(inner, "options")? else { return None };
            regex(pattern, options, scratch)?
        }
        ("$undefined", _) => Cell::Null,
        ("$minKey", _) => Cell::Text("BsonMinKey"),
        ("$maxKey", _) => Cell::Text("BsonMaxKey"),
        _ => return None,
    })
}

fn text<'a>(member: &Member<'a>) -> Option<RawText<'a>> {
    match member.value {
        Raw::Text(t) => Some(t),
        _ => None,
    }
}

/// A double as other numbers of JSON are read, so that one column can hold whole and broken numbers.
fn double(text: &str) -> Option<Cell<'static>> {
    Some(match text {
        "NaN" => Cell::Float(f64::NAN),
        "Infinity" => Cell::Float(f64::INFINITY),
        "-Infinity" => Cell::Float(f64::NEG_INFINITY),
        digits => match json::single(digits) {
            Ok(Raw::Number(digits)) => json_number(digits)?,
            _ => return None,
        },
    })
}

/// Milliseconds, as a number, in a `$numberLong`, or as text.
fn date<'a>(value: &Raw<'a>, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    let ms = match *value {
        Raw::Number(digits) => digits.parse::<i64>().ok()?,
        Raw::Text(t) => match time_text::parse(t.text)? {
            TimeText::Instant(t) if t.exact => return Some(Cell::Instant(t.us)),
            _ => return None,
        },
        Raw::Nested { text, .. } => match special(text, scratch)? {
            Cell::Int(ms) => ms,
            _ => return None,
        },
        _ => return None,
    };
    ms.checked_mul(1_000).map(Cell::Instant)
}

/// Bytes; those of the subtype 4 are a UUID.
fn binary<'a>(base64: RawText<'a>, kind: RawText<'a>, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    let bytes = STANDARD.decode(base64.resolve(scratch)).ok()?;
    if kind.text.trim_start_matches('0') == "4" && bytes.len() == 16 {
        return Some(Cell::Text(scratch.put_str(|out| {
            for (i, b) in bytes.iter().enumerate() {
                let dash = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
                let written = write!(out, "{dash}{b:02x}");
                debug_assert!(written.is_ok(), "writing to a string cannot fail");
            }
        })));
    }
    Some(Cell::Bytes(scratch.put(&bytes)))
}

fn regex<'a>(pattern: RawText<'a>, options: RawText<'a>, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    let (pattern, options) = (pattern.resolve(scratch), options.resolve(scratch));
    Some(Cell::Text(scratch.put_str(|out| {
        for part in ["/", pattern, "/", options] {
            out.push_str(part);
        }
    })))
}
