//! Values of the open protocol by MySQL's numbers of types. What does not fit its type stays as JSON
//! shows it.

use crate::format::fields::{Reject, untyped_cell};
use crate::format::json::{self, Raw};
use crate::format::number::exact;
use crate::format::scratch::Scratch;
use crate::format::time_text::{self, TimeText};
use asofdb_storage::value::Cell;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The flag of columns whose values are bytes, not text.
pub const BINARY: u64 = 1;
/// The flag of columns that tell rows apart.
pub const HANDLE_KEY: u64 = 2;

/// The cell of a value of type `ty`.
///
/// # Errors
/// If it is a number beyond every type.
pub fn cell<'a>(ty: u64, flags: u64, raw: &Raw<'a>, scratch: &mut Scratch<'a>) -> Result<Cell<'a>, Reject> {
    let typed = match *raw {
        Raw::Number(text) if matches!(ty, 4 | 5) => {
            text.parse().ok().filter(|v: &f64| v.is_finite()).map(Cell::Float)
        }
        Raw::Text(text) => {
            let text = text.resolve(scratch);
            Some(of_text(ty, flags & BINARY != 0, text, scratch).unwrap_or(Cell::Text(text)))
        }
        _ => None,
    };
    typed.map_or_else(|| untyped_cell(raw, scratch), Ok)
}

fn of_text<'a>(ty: u64, binary: bool, text: &'a str, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    match ty {
        // Decimals.
        0 | 246 => exact(text).map(|(unscaled, scale)| Cell::Decimal { unscaled, scale }),
        // Dates; zero dates stay text.
        10 | 14 => match time_text::parse(text)? {
            TimeText::Date(days) => Some(Cell::Date(days)),
            _ => None,
        },
        // Character and binary strings.
        15 | 253 | 254 if binary => Some(Cell::Bytes(scratch.put(&unescaped(text)?))),
        // Text and blobs of all sizes.
        249..=252 => {
            let bytes = scratch.put(&STANDARD.decode(text).ok()?);
            if binary { Some(Cell::Bytes(bytes)) } else { std::str::from_utf8(bytes).ok().map(Cell::Text) }
        }
        245 => json::single(text).is_ok().then_some(Cell::Json(text)),
        _ => None,
    }
}

/// Bytes that were written with Go's escapes.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let mut chars = rest[at + 1..].chars();
        let escape = chars.next()?;
        let digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        rest = chars.as_str();
        if digits > 0 {
            let number = u32::from_str_radix(rest.get(..digits)?, 16).ok()?;
            rest = &rest[digits..];
            match escape {
                'x' => out.push(number as u8),
                _ => out.extend(char::from_u32(number)?.to_string().as_bytes()),
            }
            continue;
        }
        out.push(match escape {
            'a' => 7,
            'b' => 8,
            't' => b'\t',
            'n' => b'\n',
            'v' => 11,
            'f' => 12,
            'r' => b'\r',
            '\\' | '"' | '\'' => escape as u8,
            _ => return None,
        });
    }
    out.extend_from_slice(rest.as_bytes());
    Some(out)
}
