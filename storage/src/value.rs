//! Column types, the lattice along which inferred columns widen, and single values.

use arrow::datatypes::{DataType, TimeUnit};
use serde::{Deserialize, Serialize};

/// The most digits a decimal column can hold; beyond that a column widens to text.
pub const DECIMAL_DIGITS_MAX: u8 = 38;

/// Digits that every 64-bit integer fits in.
const INT64_DIGITS: u8 = 19;

/// Rounds a number of digits before the point up to the next step of a short ladder.
fn integer_digits(digits: u8) -> u8 {
    match digits {
        0..=6 => 6,
        7..=12 => 12,
        13..=18 => 18,
        d => d + d % 2,
    }
}

/// The type of a column (rule B14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// Nothing but NULL was seen yet. Shown as text.
    Null,
    /// True or false.
    Bool,
    /// 64-bit signed integer.
    Int64,
    /// Fixed-point number of up to 38 digits, `scale` of them after the point.
    Decimal {
        /// Room for digits before the point, rounded up by [`integer_digits`] so that a column
        /// does not change its type with every longer number.
        integer: u8,
        /// Digits after the point; `integer + scale` is at most [`DECIMAL_DIGITS_MAX`].
        scale: u8,
    },
    /// IEEE 754 double.
    Float64,
    /// Days since 1970-01-01.
    Date,
    /// Wall-clock time without a zone, microseconds since 1970-01-01T00:00:00.
    Timestamp,
    /// Wall-clock time without a zone, nanoseconds since 1970-01-01T00:00:00.
    TimestampNs,
    /// An instant, microseconds since 1970-01-01T00:00:00Z.
    Instant,
    /// UTF-8 text.
    Text,
    /// Uninterpreted bytes.
    Bytes,
    /// A JSON document as text; objects and arrays of the source.
    Json,
}

impl ColumnType {
    /// The Arrow type that holds the column in memory, in runs and in results.
    pub fn arrow(self) -> DataType {
        match self {
            ColumnType::Bool => DataType::Boolean,
            ColumnType::Int64 => DataType::Int64,
            ColumnType::Decimal { scale, .. } => DataType::Decimal128(DECIMAL_DIGITS_MAX, scale as i8),
            ColumnType::Float64 => DataType::Float64,
            ColumnType::Date => DataType::Date32,
            ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            ColumnType::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, None),
            ColumnType::Instant => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            ColumnType::Null | ColumnType::Text | ColumnType::Json => DataType::Utf8,
            ColumnType::Bytes => DataType::Binary,
        }
    }

    /// A decimal type with room for `integer` digits before and `scale` after the point, or text
    /// where no decimal column can hold both.
    pub fn decimal(integer: u8, scale: u8) -> ColumnType {
        let integer = integer_digits(integer);
        if integer as u16 + scale as u16 <= DECIMAL_DIGITS_MAX as u16 {
            ColumnType::Decimal { integer, scale }
        } else {
            ColumnType::Text
        }
    }

    /// The name used in DDL, `\d` and messages.
    pub fn name(self) -> String {
        match self {
            ColumnType::Null => "null".into(),
            ColumnType::Bool => "boolean".into(),
            ColumnType::Int64 => "bigint".into(),
            ColumnType::Decimal { scale, .. } => format!("decimal({DECIMAL_DIGITS_MAX},{scale})"),
            ColumnType::Float64 => "double".into(),
            ColumnType::Date => "date".into(),
            ColumnType::Timestamp => "timestamp".into(),
            ColumnType::TimestampNs => "timestamp_ns".into(),
            ColumnType::Instant => "timestamptz".into(),
            ColumnType::Text => "text".into(),
            ColumnType::Bytes => "bytes".into(),
            ColumnType::Json => "json".into(),
        }
    }

    /// The least type that holds the values of both (rule B14). Commutative, associative and
    /// idempotent, so the type of a column does not depend on the order in which values came.
    pub fn join(self, other: ColumnType) -> ColumnType {
        use ColumnType::*;
        match (self, other) {
            (a, b) if a == b => a,
            (Null, t) | (t, Null) => t,
            (Json, _) | (_, Json) => Json,
            (Decimal { integer: a, scale: s }, Decimal { integer: b, scale: t }) => {
                ColumnType::decimal(a.max(b), s.max(t))
            }
            (Int64, Decimal { integer, scale }) | (Decimal { integer, scale }, Int64) => {
                ColumnType::decimal(integer.max(INT64_DIGITS), scale)
            }
            (Date, Timestamp) | (Timestamp, Date) => Timestamp,
            (Date, Instant) | (Instant, Date) => Instant,
            _ => Text,
        }
    }
}

/// One value outside of Arrow: keys, prepared points, slow paths, tests.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// A boolean.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// `unscaled / 10^scale`; the scale is the value's own, as it was sent.
    Decimal {
        /// The digits without the point.
        unscaled: i128,
        /// Digits after the point.
        scale: u8,
    },
    /// A double.
    Float(f64),
    /// Days since 1970-01-01.
    Date(i32),
    /// Zone-less microseconds.
    Timestamp(i64),
    /// Zone-less nanoseconds.
    TimestampNs(i64),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Instant(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A JSON document.
    Json(String),
}

impl Value {
    /// The least column type that holds this value.
    pub fn column_type(&self) -> ColumnType {
        self.as_cell().column_type()
    }

    /// The same value, borrowed.
    pub fn as_cell(&self) -> Cell<'_> {
        match self {
            Value::Null => Cell::Null,
            Value::Bool(v) => Cell::Bool(*v),
            Value::Int(v) => Cell::Int(*v),
            Value::Decimal { unscaled, scale } => Cell::Decimal { unscaled: *unscaled, scale: *scale },
            Value::Float(v) => Cell::Float(*v),
            Value::Date(v) => Cell::Date(*v),
            Value::Timestamp(v) => Cell::Timestamp(*v),
            Value::TimestampNs(v) => Cell::TimestampNs(*v),
            Value::Instant(v) => Cell::Instant(*v),
            Value::Text(v) => Cell::Text(v),
            Value::Bytes(v) => Cell::Bytes(v),
            Value::Json(v) => Cell::Json(v),
        }
    }
}

/// The state of one column in one event (rule B6), borrowing from the message it was decoded from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// The event does not speak of the column.
    Unchanged,
    /// The source sent a placeholder: the column keeps its value, and is unknown if it has none.
    Unknown,
    /// SQL NULL.
    Null,
    /// See [`Value::Bool`].
    Bool(bool),
    /// See [`Value::Int`].
    Int(i64),
    /// See [`Value::Decimal`].
    Decimal {
        /// The digits without the point.
        unscaled: i128,
        /// Digits after the point, at most 38.
        scale: u8,
    },
    /// See [`Value::Float`].
    Float(f64),
    /// See [`Value::Date`].
    Date(i32),
    /// See [`Value::Timestamp`].
    Timestamp(i64),
    /// See [`Value::TimestampNs`].
    TimestampNs(i64),
    /// See [`Value::Instant`].
    Instant(i64),
    /// See [`Value::Text`].
    Text(&'a str),
    /// See [`Value::Bytes`].
    Bytes(&'a [u8]),
    /// See [`Value::Json`].
    Json(&'a str),
    /// A JSON object of which only the leaves it names are written; the others keep their values
    /// (rule B5). In an event that is a full image it is a whole value.
    Leaves(&'a str),
}

impl Cell<'_> {
    /// The least column type that holds this cell.
    #[inline]
    pub fn column_type(&self) -> ColumnType {
        match self {
            Cell::Unchanged | Cell::Unknown | Cell::Null => ColumnType::Null,
            Cell::Bool(_) => ColumnType::Bool,
            Cell::Int(_) => ColumnType::Int64,
            Cell::Decimal { unscaled, scale } => {
                let digits = match u64::try_from(unscaled.unsigned_abs()) {
                    Ok(small) => small.checked_ilog10(),
                    Err(_) => unscaled.unsigned_abs().checked_ilog10(),
                };
                let digits = digits.map_or(1, |d| d as u8 + 1);
                ColumnType::decimal(digits.saturating_sub(*scale), *scale)
            }
            Cell::Float(_) => ColumnType::Float64,
            Cell::Date(_) => ColumnType::Date,
            Cell::Timestamp(_) => ColumnType::Timestamp,
            Cell::TimestampNs(_) => ColumnType::TimestampNs,
            Cell::Instant(_) => ColumnType::Instant,
            Cell::Text(_) => ColumnType::Text,
            Cell::Bytes(_) => ColumnType::Bytes,
            Cell::Json(_) | Cell::Leaves(_) => ColumnType::Json,
        }
    }

    /// An owned copy; `None` for [`Cell::Unchanged`] and [`Cell::Unknown`].
    pub fn to_value(&self) -> Option<Value> {
        Some(match *self {
            Cell::Unchanged | Cell::Unknown => return None,
            Cell::Null => Value::Null,
            Cell::Bool(v) => Value::Bool(v),
            Cell::Int(v) => Value::Int(v),
            Cell::Decimal { unscaled, scale } => Value::Decimal { unscaled, scale },
            Cell::Float(v) => Value::Float(v),
            Cell::Date(v) => Value::Date(v),
            Cell::Timestamp(v) => Value::Timestamp(v),
            Cell::TimestampNs(v) => Value::TimestampNs(v),
            Cell::Instant(v) => Value::Instant(v),
            Cell::Text(v) => Value::Text(v.to_owned()),
            Cell::Bytes(v) => Value::Bytes(v.to_owned()),
            Cell::Json(v) | Cell::Leaves(v) => Value::Json(v.to_owned()),
        })
    }
}

/// The digits and scale of a text that is the canonical spelling of a number: no sign but `-`, no
/// leading zero, no trailing zero after the point, no exponent, not `-0`, at most 38 digits.
pub fn canonical_number(text: &str) -> Option<(i128, u8)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    let fraction = match fraction {
        Some(f) if !all_digits(f) || f.ends_with('0') => return None,
        Some(f) => f,
        None => "",
    };
    if whole.len() + fraction.len() > DECIMAL_DIGITS_MAX as usize || text == "-0" {
        return None;
    }
    let mut unscaled = 0i128;
    for b in whole.bytes().chain(fraction.bytes()) {
        unscaled = unscaled * 10 + (b - b'0') as i128;
    }
    if text.starts_with('-') {
        unscaled = -unscaled;
    }
    Some((unscaled, fraction.len() as u8))
}

/// Appends the text form of a cell: what a column that widened to text holds. Numbers keep the
/// digits they were sent with; times are ISO 8601; bytes are `\x` and hexadecimal digits. NULL,
/// unknown and unchanged cells append nothing.
pub fn write_text(out: &mut String, cell: &Cell<'_>) {
    use std::fmt::Write;
    let written = match cell {
        Cell::Unchanged | Cell::Unknown | Cell::Null => Ok(()),
        Cell::Bool(v) => write!(out, "{v}"),
        Cell::Int(v) => write!(out, "{v}"),
        Cell::Decimal { unscaled, scale } => write_decimal(out, *unscaled, *scale),
        Cell::Float(v) => write_float(out, *v),
        Cell::Date(d) => match chrono::DateTime::from_timestamp(*d as i64 * 86_400, 0) {
            Some(t) => write!(out, "{}", t.format("%Y-%m-%d")),
            None => write!(out, "{d}d"),
        },
        Cell::Timestamp(us) => match chrono::DateTime::from_timestamp_micros(*us) {
            Some(t) => write!(out, "{}", t.format("%Y-%m-%dT%H:%M:%S%.f")),
            None => write!(out, "{us}us"),
        },
        Cell::TimestampNs(ns) => {
            write!(out, "{}", chrono::DateTime::from_timestamp_nanos(*ns).format("%Y-%m-%dT%H:%M:%S%.f"))
        }
        Cell::Instant(us) => write!(out, "{}", crate::time::format_instant(*us)),
        Cell::Text(s) | Cell::Json(s) | Cell::Leaves(s) => out.write_str(s),
        Cell::Bytes(b) => {
            out.push_str("\\x");
            crate::hex::write(out, b)
        }
    };
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

fn write_decimal(out: &mut String, unscaled: i128, scale: u8) -> std::fmt::Result {
    use std::fmt::Write;
    if scale == 0 {
        return write!(out, "{unscaled}");
    }
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale as usize + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
    write!(out, "{sign}{whole}.{fraction}")
}

fn write_float(out: &mut String, v: f64) -> std::fmt::Result {
    use std::fmt::Write;
    let size = v.abs();
    if v.is_nan() {
        out.write_str("NaN")
    } else if v.is_infinite() {
        out.write_str(if v > 0.0 { "Infinity" } else { "-Infinity" })
    } else if size != 0.0 && !(1e-5..1e17).contains(&size) {
        write!(out, "{v:e}")
    } else {
        write!(out, "{v}")
    }
}

/// Appends the JSON form of a cell: what a column that widened to JSON holds.
pub fn write_json(out: &mut String, cell: &Cell<'_>) {
    match cell {
        Cell::Unchanged | Cell::Unknown | Cell::Null => out.push_str("null"),
        Cell::Bool(_) | Cell::Int(_) | Cell::Decimal { .. } => write_text(out, cell),
        Cell::Float(v) if v.is_finite() => write_text(out, cell),
        Cell::Json(s) | Cell::Leaves(s) => out.push_str(s),
        other => {
            let mut text = String::new();
            write_text(&mut text, other);
            out.push_str(&serde_json::Value::String(text).to_string());
        }
    }
}
