//! Values by the type of their column. What does not fit its type stays the text that was sent, so that
//! nothing is lost; column types widen (rule B14).

use super::mysql_type::MysqlType;
use crate::format::fields::{Reject, untyped_cell};
use crate::format::json::{self, Raw};
use crate::format::number::{exact, rescaled};
use crate::format::scratch::Scratch;
use crate::format::time_text::{self, TimeText};
use asofdb_storage::value::Cell;

/// Labels that a set may have; a mask has that many bits.
const SET_LABELS_MAX: usize = 64;

/// The cell of a value.
///
/// # Errors
/// If it is a number beyond every type.
pub fn cell<'a>(ty: &'a MysqlType, raw: &Raw<'a>, scratch: &mut Scratch<'a>) -> Result<Cell<'a>, Reject> {
    let Raw::Text(text) = raw else { return untyped_cell(raw, scratch) };
    let text = text.resolve(scratch);
    Ok(of_text(ty, text, scratch).unwrap_or(Cell::Text(text)))
}

fn of_text<'a>(ty: &'a MysqlType, text: &'a str, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    match ty {
        MysqlType::Text => None,
        MysqlType::Integer => integer(text),
        MysqlType::Float => text.parse().ok().filter(|v: &f64| v.is_finite()).map(Cell::Float),
        MysqlType::Decimal { scale } => {
            let (unscaled, own) = exact(text)?;
            Some(match scale {
                Some(scale) => rescaled(unscaled, own, *scale as i64),
                None => Cell::Decimal { unscaled, scale: own },
            })
        }
        MysqlType::Date => match time_text::parse(text)? {
            TimeText::Date(days) => Some(Cell::Date(days)),
            _ => None,
        },
        MysqlType::Bytes => latin1(text, scratch).map(Cell::Bytes),
        MysqlType::Json => json::single(text).is_ok().then_some(Cell::Json(text)),
        MysqlType::Enum(labels) => {
            let number =
                if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok()? } else { return None };
            match number {
                0usize => Some(Cell::Text("")),
                n => labels.get(n - 1).map(|label| Cell::Text(label)),
            }
        }
        MysqlType::Set(labels) => set(labels, text, scratch),
    }
}

/// An integer of any size; zeros that fill it up are no digits.
fn integer(text: &str) -> Option<Cell<'static>> {
    if text.contains('.') {
        return None;
    }
    let (unscaled, _) = exact(text)?;
    Some(i64::try_from(unscaled).map_or(Cell::Decimal { unscaled, scale: 0 }, Cell::Int))
}

/// The labels of a mask, as MySQL shows them.
fn set<'a>(labels: &[String], text: &str, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let mask: u64 = if digits { text.parse().ok()? } else { return None };
    let known = labels.len().min(SET_LABELS_MAX);
    if known < SET_LABELS_MAX && mask >> known != 0 {
        return None;
    }
    let mut chosen = labels.iter().take(known).enumerate().filter(|(i, _)| mask >> i & 1 == 1);
    Some(Cell::Text(scratch.put_str(|out| {
        out.extend(chosen.next().map(|(_, label)| label.as_str()));
        chosen.for_each(|(_, label)| out.extend([",", label]));
    })))
}

/// Bytes that were sent as one character each; `None` if there are others.
fn latin1<'a>(text: &str, scratch: &mut Scratch<'a>) -> Option<&'a [u8]> {
    if text.is_ascii() {
        return Some(scratch.put(text.as_bytes()));
    }
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c as u32).ok()).collect();
    Some(scratch.put(&bytes?))
}
