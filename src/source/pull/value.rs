//! Values from the text that a database writes of them: exact, never by way of a double unless they
//! are one there.

use crate::format::number::exact;
use crate::format::time_text::{self, TimeText};
use asofdb_storage::value::Value;

/// What the text of a column means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int,
    Decimal,
    /// Single precision: the shortest decimal that names it.
    Single,
    Double,
    Date,
    /// Wall-clock time.
    Timestamp,
    Instant,
    /// Hexadecimal digits.
    Hex,
    /// Bytes as they are.
    Bytes,
    Json,
    Text,
}

/// The value of a text; the text itself where it is beyond what our types hold, such as `infinity`,
/// `0000-00-00`, or a number of more than 38 digits.
pub(super) fn value(kind: Kind, text: &str) -> Value {
    typed(kind, text).unwrap_or_else(|| Value::Text(text.to_owned()))
}

fn typed(kind: Kind, text: &str) -> Option<Value> {
    Some(match kind {
        Kind::Bool => match text {
            "true" | "t" | "1" => Value::Bool(true),
            "false" | "f" | "0" => Value::Bool(false),
            _ => return None,
        },
        Kind::Int => match text.parse() {
            Ok(n) => Value::Int(n),
            Err(_) => {
                let (unscaled, scale) = exact(text)?;
                Value::Decimal { unscaled, scale }
            }
        },
        Kind::Decimal => {
            let (unscaled, scale) = exact(text)?;
            Value::Decimal { unscaled, scale }
        }
        Kind::Single | Kind::Double => Value::Float(text.parse().ok()?),
        Kind::Date | Kind::Timestamp | Kind::Instant => time(kind, text)?,
        Kind::Hex => Value::Bytes(asofdb_storage::hex::decode(text)?),
        Kind::Json => Value::Json(text.to_owned()),
        Kind::Bytes | Kind::Text => return None,
    })
}

fn time(kind: Kind, text: &str) -> Option<Value> {
    Some(match (kind, time_text::parse(text)?) {
        (Kind::Date, TimeText::Date(days)) => Value::Date(days),
        (Kind::Timestamp, TimeText::Local(t)) if t.exact => Value::Timestamp(t.us),
        (Kind::Instant, TimeText::Instant(t) | TimeText::Local(t)) if t.exact => Value::Instant(t.us),
        _ => return None,
    })
}

/// A double that was of single precision there.
pub(super) fn single(value: f32) -> Value {
    // Digits that name the number, not those of the binary fraction.
    Value::Float(value.to_string().parse().unwrap_or(value as f64))
}
