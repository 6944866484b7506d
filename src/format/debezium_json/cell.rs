//! Values of columns by their encoding. A value that does not fit its declared encoding is read as
//! JSON shows it, so that nothing is lost; column types widen (rule B14).

use crate::format::debezium::Encoding;
use crate::format::debezium::values::{
    PLACEHOLDERS_NESTED, is_placeholder_text, semantic_text, time_of_day, timestamp, unscaled_cell,
};
use crate::format::fields::{Reject, untyped_cell};
use crate::format::json::{self, Raw, RawText};
use crate::format::number::{exact, rescaled};
use crate::format::scratch::Scratch;
use asofdb_storage::value::Cell;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

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
        (Encoding::Time(per_second), Raw::Number(text)) => {
            text.parse().ok().map(|units| time_of_day(units, per_second, scratch))
        }
        (Encoding::Timestamp(per_second), Raw::Number(text)) => match text.parse() {
            Ok(units) => Some(timestamp(units, per_second)?),
            Err(_) => None,
        },
        (Encoding::ZonedTimestamp | Encoding::Json | Encoding::Uuid, Raw::Text(t)) => {
            Some(semantic_text(encoding, t.resolve(scratch), scratch))
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
