//! Stored values as the cells of an older schema: what a column shows, as a column of the type it had
//! when the event was committed would show it.
//!
//! A column only ever widens (rule B14), and wider columns keep more of what was sent. So the value
//! that an event has in a column of its own time follows from the value it has in any later one, and is
//! the same whichever later one that is. Nothing else may play a part here: what is made of it has to
//! come out the same after every widening to come.

use super::recipe::Habit;
use crate::value::{Cell, ColumnType, DECIMAL_DIGITS_MAX};
use arrow::array::*;
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{NaiveDate, NaiveDateTime};

const DAY_US: i64 = 86_400_000_000;

/// An image column by the type it is stored in.
pub(crate) enum Image<'a> {
    Bool(&'a BooleanArray),
    Int(&'a Int64Array),
    Decimal(&'a Decimal128Array, u8),
    Float(&'a Float64Array),
    Date(&'a Date32Array),
    Micros(&'a TimestampMicrosecondArray),
    Nanos(&'a TimestampNanosecondArray),
    Text(&'a StringArray),
    Json(&'a StringArray),
    Bytes(&'a BinaryArray),
}

impl<'a> Image<'a> {
    /// A column of type `ty`; `None` if the array is of another.
    pub(crate) fn new(array: &'a ArrayRef, ty: ColumnType) -> Option<Image<'a>> {
        if *array.data_type() != ty.arrow() {
            return None;
        }
        Some(match array.data_type() {
            DataType::Boolean => Image::Bool(array.as_boolean()),
            DataType::Int64 => Image::Int(array.as_primitive()),
            DataType::Decimal128(_, scale) => Image::Decimal(array.as_primitive(), *scale as u8),
            DataType::Float64 => Image::Float(array.as_primitive()),
            DataType::Date32 => Image::Date(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Image::Micros(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Image::Nanos(array.as_primitive()),
            DataType::Utf8 if ty == ColumnType::Json => Image::Json(array.as_string()),
            DataType::Utf8 => Image::Text(array.as_string()),
            DataType::Binary => Image::Bytes(array.as_binary()),
            _ => return None,
        })
    }

    pub(crate) fn is_valid(&self, i: usize) -> bool {
        match self {
            Image::Bool(a) => a.is_valid(i),
            Image::Int(a) => a.is_valid(i),
            Image::Decimal(a, _) => a.is_valid(i),
            Image::Float(a) => a.is_valid(i),
            Image::Date(a) => a.is_valid(i),
            Image::Micros(a) => a.is_valid(i),
            Image::Nanos(a) => a.is_valid(i),
            Image::Text(a) | Image::Json(a) => a.is_valid(i),
            Image::Bytes(a) => a.is_valid(i),
        }
    }

    /// Gives `take` the value of row `i`, which has one, as a cell of a column of type `then`.
    pub(crate) fn cell<R>(
        &self,
        i: usize,
        then: ColumnType,
        habit: Habit,
        take: impl FnOnce(&Cell<'_>) -> R,
    ) -> R {
        match *self {
            Image::Bool(a) => take(&Cell::Bool(a.value(i))),
            Image::Int(a) => take(&number(a.value(i) as i128, 0, then, habit)),
            Image::Decimal(a, scale) => take(&number(a.value(i), scale, then, habit)),
            Image::Float(a) => take(&float(a.value(i))),
            Image::Date(a) => take(&Cell::Date(a.value(i))),
            Image::Micros(a) => take(&micros(a.value(i), then)),
            Image::Nanos(a) => take(&Cell::TimestampNs(a.value(i))),
            Image::Text(a) => of_text(a.value(i), then, habit, take),
            Image::Json(a) if then == ColumnType::Json => json_cell(a.value(i), take),
            Image::Json(a) => match unquoted(a.value(i)) {
                Some(text) => of_text(&text, then, habit, take),
                None => of_text(a.value(i), then, habit, take),
            },
            Image::Bytes(a) => take(&Cell::Bytes(a.value(i))),
        }
    }
}

/// A number as it was sent to a column of type `then`: of equal numbers always the same cell.
pub(crate) fn number(mut unscaled: i128, mut scale: u8, then: ColumnType, habit: Habit) -> Cell<'static> {
    while scale > 0 && unscaled % 10 == 0 {
        (unscaled, scale) = (unscaled / 10, scale - 1);
    }
    if let (ColumnType::Decimal { scale: wanted, .. }, true) = (then, habit.has(Habit::FIXED_SCALE))
        && let Some(steps) = wanted.checked_sub(scale)
        && let Some(factor) = 10i128.checked_pow(steps as u32)
        && let Some(unscaled) = unscaled.checked_mul(factor)
    {
        return Cell::Decimal { unscaled, scale: wanted };
    }
    match i64::try_from(unscaled) {
        Ok(n) if scale == 0 => Cell::Int(n),
        _ => Cell::Decimal { unscaled, scale },
    }
}

/// Texts tell neither the payload of a NaN nor the sign of a zero everywhere.
fn float(v: f64) -> Cell<'static> {
    Cell::Float(if v.is_nan() {
        f64::NAN
    } else if v == 0.0 {
        0.0
    } else {
        v
    })
}

fn micros(us: i64, then: ColumnType) -> Cell<'static> {
    match then {
        ColumnType::Date => Cell::Date(us.div_euclid(DAY_US) as i32),
        ColumnType::Instant => Cell::Instant(us),
        _ => Cell::Timestamp(us),
    }
}

fn of_text<R>(text: &str, then: ColumnType, habit: Habit, take: impl FnOnce(&Cell<'_>) -> R) -> R {
    let digits = text.strip_prefix("\\x").filter(|_| then == ColumnType::Bytes);
    match digits.and_then(crate::hex::decode) {
        Some(bytes) => take(&Cell::Bytes(&bytes)),
        None => take(&text_cell(text, then, habit)),
    }
}

/// What a text column holds, as a cell of a column of type `then`. A text that none of its cells has
/// stays a text.
pub(crate) fn text_cell(text: &str, then: ColumnType, habit: Habit) -> Cell<'_> {
    let found = match then {
        ColumnType::Null | ColumnType::Text | ColumnType::Json | ColumnType::Bytes => None,
        ColumnType::Bool => text.parse().ok().map(Cell::Bool),
        ColumnType::Int64 | ColumnType::Decimal { .. } => {
            digits(text).map(|(unscaled, scale)| number(unscaled, scale, then, habit))
        }
        ColumnType::Float64 => text.parse().ok().map(float),
        ColumnType::Date => date(text).map(Cell::Date),
        ColumnType::Timestamp => timestamp(text).map(Cell::Timestamp),
        ColumnType::Instant => timestamp(text.strip_suffix('Z').unwrap_or(text)).map(Cell::Instant),
        ColumnType::TimestampNs => nanos(text).map(Cell::TimestampNs),
    };
    found.unwrap_or(Cell::Text(text))
}

/// The digits of a number and how many stand after the point.
fn digits(text: &str) -> Option<(i128, u8)> {
    let bare = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = bare.split_once('.').unwrap_or((bare, ""));
    let all = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !all(whole) || !all(fraction) || fraction.len() > DECIMAL_DIGITS_MAX as usize {
        return None;
    }
    let mut unscaled = 0i128;
    for b in whole.bytes().chain(fraction.bytes()) {
        unscaled = unscaled.checked_mul(10)?.checked_add((b - b'0') as i128)?;
    }
    Some((if bare.len() < text.len() { -unscaled } else { unscaled }, fraction.len() as u8))
}

fn date(text: &str) -> Option<i32> {
    if let Some(days) = text.strip_suffix('d') {
        return days.parse().ok();
    }
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    i32::try_from(date.signed_duration_since(NaiveDate::default()).num_days()).ok()
}

fn moment(text: &str) -> Option<NaiveDateTime> {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok()
}

fn timestamp(text: &str) -> Option<i64> {
    if let Some(us) = text.strip_suffix("us") {
        return us.parse().ok();
    }
    match moment(text) {
        Some(moment) => Some(moment.and_utc().timestamp_micros()),
        None => (date(text)? as i64).checked_mul(DAY_US),
    }
}

fn nanos(text: &str) -> Option<i64> {
    moment(text)?.and_utc().timestamp_nanos_opt()
}

fn unquoted(json: &str) -> Option<String> {
    json.starts_with('"').then(|| serde_json::from_str(json).ok()).flatten()
}

/// Which kind of cell a JSON document most likely was.
fn json_cell<R>(json: &str, take: impl FnOnce(&Cell<'_>) -> R) -> R {
    match json.as_bytes().first() {
        Some(b'"') => match unquoted(json) {
            Some(text) => take(&Cell::Text(&text)),
            None => take(&Cell::Json(json)),
        },
        Some(b'-' | b'0'..=b'9') => take(&match digits(json) {
            Some((n, 0)) => i64::try_from(n).map_or(Cell::Decimal { unscaled: n, scale: 0 }, Cell::Int),
            Some((unscaled, scale)) => Cell::Decimal { unscaled, scale },
            None => Cell::Json(json),
        }),
        Some(b't' | b'f') => match json.parse() {
            Ok(v) => take(&Cell::Bool(v)),
            Err(_) => take(&Cell::Json(json)),
        },
        _ => take(&Cell::Json(json)),
    }
}
