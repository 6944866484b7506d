//! Comparing values with the expected answers of the shared corpus.

use crate::memory::Row;
use asofdb_storage::value::{Value, write_text};
use base64::Engine;
use serde_json::Value as Json;

/// Trailing zeros of a fraction say nothing: `.100Z` is `.1Z`.
fn without_zeros(time: &str) -> String {
    let (body, zone) = match time.strip_suffix('Z') {
        Some(body) => (body, "Z"),
        None => (time, ""),
    };
    let body = match body.contains('.') {
        true => body.trim_end_matches('0').trim_end_matches('.'),
        false => body,
    };
    format!("{body}{zone}")
}

/// The text of a value, as the corpus writes it.
pub fn text_of(value: &Value) -> String {
    let mut text = String::new();
    write_text(&mut text, &value.as_cell());
    match value {
        Value::Timestamp(_) | Value::TimestampNs(_) | Value::Instant(_) => without_zeros(&text),
        _ => text,
    }
}

fn number_matches(text: &str, expected: &str) -> bool {
    if text == expected {
        return true;
    }
    let exact = |t: &str| t.len() < 16 || t.contains(['.', 'e', 'E']);
    match (text.parse::<f64>(), expected.parse::<f64>()) {
        (Ok(a), Ok(b)) => exact(text) && exact(expected) && a == b,
        _ => false,
    }
}

fn instant(text: &str) -> Option<i64> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(|t| t.timestamp_micros())
}

/// Whether a stored value is the expected one; `None` is an unknown value.
pub fn matches(value: Option<&Value>, expected: &Json) -> bool {
    if expected.get("$unavailable").is_some() {
        return value.is_none();
    }
    let Some(value) = value else { return false };
    match (expected, value) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(e), Value::Bool(v)) => e == v,
        (Json::Number(e), Value::Int(_) | Value::Decimal { .. } | Value::Float(_)) => {
            number_matches(&text_of(value), &e.to_string())
        }
        (Json::String(e), Value::Json(v)) => {
            e == v || serde_json::from_str::<Json>(e).ok() == serde_json::from_str::<Json>(v).ok()
        }
        (Json::String(_), Value::Bytes(_) | Value::Null) => false,
        (Json::String(e), Value::Instant(v)) => instant(e) == Some(*v),
        (Json::String(e), Value::Timestamp(_) | Value::TimestampNs(_)) => without_zeros(e) == text_of(value),
        (Json::String(e), _) => *e == text_of(value),
        (Json::Object(o), Value::Bytes(v)) => {
            let wanted = o.get("$b64").and_then(Json::as_str);
            wanted == Some(base64::engine::general_purpose::STANDARD.encode(v).as_str())
        }
        // Without a schema nothing tells base64 from text: the value stays as it was sent.
        (Json::Object(o), Value::Text(v)) => o.get("$b64").and_then(Json::as_str) == Some(v),
        (Json::Object(_) | Json::Array(_), Value::Json(v)) => {
            serde_json::from_str::<Json>(v).is_ok_and(|v| v == *expected)
        }
        _ => false,
    }
}

/// What is wrong with a row, column by column; empty = nothing. Columns that are not expected may
/// only be NULL.
pub fn differences(row: &Row, expected: &Json) -> Vec<String> {
    let Some(expected) = expected.as_object() else { return vec![format!("{expected} is no row")] };
    let mut out = Vec::new();
    for (name, e) in expected {
        let stored = row.get(name).cloned().unwrap_or(Some(Value::Null));
        if !matches(stored.as_ref(), e) {
            out.push(format!("{name}: {stored:?} is not {e}"));
        }
    }
    for (name, v) in row.iter().filter(|(name, v)| !expected.contains_key(*name) && **v != Some(Value::Null))
    {
        out.push(format!("{name}: {v:?} is not expected"));
    }
    out
}

/// Finds for every expected row one of its own; says what is left over.
pub fn compare_rows(rows: &[Row], expected: &[Json]) -> Vec<String> {
    let mut left: Vec<&Row> = rows.iter().collect();
    let mut out = Vec::new();
    for e in expected {
        match left.iter().position(|row| differences(row, e).is_empty()) {
            Some(at) => {
                left.remove(at);
            }
            None => {
                let nearest = left.iter().map(|row| differences(row, e)).min_by_key(Vec::len);
                out.push(format!("no row {e}; nearest: {nearest:?}"));
            }
        }
    }
    out.extend(left.iter().map(|row| format!("one row too many: {row:?}")));
    out
}
