//! Values of Arrow arrays as cells.

use crate::format::number::{json_number, scaled};
use crate::format::scratch::Scratch;
use crate::format::time_text::write_time_of_day;
use arrow::array::cast::AsArray;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::*;
use arrow::json::writer::{EncoderOptions, make_encoder};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use asofdb_storage::value::Cell;
use std::fmt::Write;
use std::sync::Arc;

/// The cell of one value of an array without a dictionary.
///
/// # Errors
/// In words, if the value has no cell: a time beyond its range, a type that is not known.
pub fn cell<'a>(array: &'a ArrayRef, row: usize, scratch: &mut Scratch<'a>) -> Result<Cell<'a>, String> {
    if array.is_null(row) {
        return Ok(Cell::Null);
    }
    let range = || "the time is beyond the range of times".to_owned();
    macro_rules! value {
        ($t:ty) => {
            array.as_primitive::<$t>().value(row)
        };
    }
    Ok(match array.data_type() {
        DataType::Null => Cell::Null,
        DataType::Boolean => Cell::Bool(array.as_boolean().value(row)),
        DataType::Int8 => Cell::Int(value!(Int8Type) as i64),
        DataType::Int16 => Cell::Int(value!(Int16Type) as i64),
        DataType::Int32 => Cell::Int(value!(Int32Type) as i64),
        DataType::Int64 => Cell::Int(value!(Int64Type)),
        DataType::UInt8 => Cell::Int(value!(UInt8Type) as i64),
        DataType::UInt16 => Cell::Int(value!(UInt16Type) as i64),
        DataType::UInt32 => Cell::Int(value!(UInt32Type) as i64),
        DataType::UInt64 => {
            let n = value!(UInt64Type);
            i64::try_from(n).map_or(Cell::Decimal { unscaled: n as i128, scale: 0 }, Cell::Int)
        }
        DataType::Float16 => Cell::Float(value!(Float16Type).to_f64()),
        DataType::Float32 => Cell::Float(value!(Float32Type) as f64),
        DataType::Float64 => Cell::Float(value!(Float64Type)),
        DataType::Decimal32(_, s) => decimal(value!(Decimal32Type) as i128, *s)?,
        DataType::Decimal64(_, s) => decimal(value!(Decimal64Type) as i128, *s)?,
        DataType::Decimal128(_, s) => decimal(value!(Decimal128Type), *s)?,
        DataType::Decimal256(_, s) => {
            match value!(Decimal256Type).to_i128().and_then(|n| scaled(n, *s as i64)) {
                Some(cell) => cell,
                None => shown(array, row, scratch)?,
            }
        }
        DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Cell::Text(array.as_string_view().value(row)),
        DataType::Binary => Cell::Bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Cell::Bytes(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => Cell::Bytes(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => Cell::Bytes(array.as_fixed_size_binary().value(row)),
        DataType::Date32 => Cell::Date(value!(Date32Type)),
        DataType::Date64 => {
            let days = value!(Date64Type).div_euclid(86_400_000);
            Cell::Date(i32::try_from(days).map_err(|_| range())?)
        }
        DataType::Timestamp(unit, zone) => {
            let n = match unit {
                TimeUnit::Second => value!(TimestampSecondType),
                TimeUnit::Millisecond => value!(TimestampMillisecondType),
                TimeUnit::Microsecond => value!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => value!(TimestampNanosecondType),
            };
            timestamp(n, *unit, zone.is_some(), scratch).ok_or_else(range)?
        }
        DataType::Time32(TimeUnit::Second) => time(value!(Time32SecondType) as i64, 1, scratch),
        DataType::Time32(_) => time(value!(Time32MillisecondType) as i64, 1_000, scratch),
        DataType::Time64(TimeUnit::Microsecond) => time(value!(Time64MicrosecondType), 1_000_000, scratch),
        DataType::Time64(_) => time(value!(Time64NanosecondType), 1_000_000_000, scratch),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Struct(_)
        | DataType::Map(..) => json(array, row, scratch)?,
        DataType::Duration(_)
        | DataType::Interval(_)
        | DataType::Union(..)
        | DataType::Dictionary(..)
        | DataType::RunEndEncoded(..) => shown(array, row, scratch)?,
    })
}

/// About how many bytes of scratch space a value takes.
pub fn text_bytes(array: &ArrayRef, row: usize) -> usize {
    match array.data_type() {
        DataType::List(_) => nested_bytes(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => nested_bytes(&array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => nested_bytes(&array.as_fixed_size_list().value(row)),
        DataType::Map(..) => {
            let entries: ArrayRef = Arc::new(array.as_map().value(row));
            nested_bytes(&entries)
        }
        DataType::Struct(_) => nested_bytes(&array.slice(row, 1)),
        _ => 256,
    }
}

fn nested_bytes(array: &ArrayRef) -> usize {
    // Names, escapes and hexadecimal digits make text of a value longer than the value.
    let values = array.to_data().get_slice_memory_size().unwrap_or(0);
    4096 + values.saturating_mul(8) + array.len().saturating_mul(256)
}

fn decimal(unscaled: i128, scale: i8) -> Result<Cell<'static>, String> {
    scaled(unscaled, scale as i64).ok_or_else(|| "the decimal has more than 38 digits".to_owned())
}

fn time<'a>(units: i64, per_second: u32, scratch: &mut Scratch<'a>) -> Cell<'a> {
    Cell::Text(scratch.put_str(|out| write_time_of_day(out, units, per_second)))
}

/// Instants of finer than microseconds are text; nothing is cut off.
fn timestamp<'a>(n: i64, unit: TimeUnit, zoned: bool, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    let us = match unit {
        TimeUnit::Second => n.checked_mul(1_000_000)?,
        TimeUnit::Millisecond => n.checked_mul(1_000)?,
        TimeUnit::Microsecond => n,
        TimeUnit::Nanosecond if !zoned => return Some(Cell::TimestampNs(n)),
        TimeUnit::Nanosecond if n % 1_000 == 0 => n / 1_000,
        TimeUnit::Nanosecond => {
            let time = chrono::DateTime::from_timestamp_nanos(n);
            return Some(Cell::Text(scratch.put_str(|out| {
                let written = write!(out, "{}", time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true));
                debug_assert!(written.is_ok(), "writing to a string cannot fail");
            })));
        }
    };
    Some(if zoned { Cell::Instant(us) } else { Cell::Timestamp(us) })
}

fn json<'a>(array: &'a ArrayRef, row: usize, scratch: &mut Scratch<'a>) -> Result<Cell<'a>, String> {
    let field = Arc::new(Field::new("", array.data_type().clone(), true));
    let options = EncoderOptions::default().with_explicit_nulls(true);
    let mut encoder = make_encoder(&field, array.as_ref(), &options).map_err(|e| e.to_string())?;
    let mut text = Vec::new();
    encoder.encode(row, &mut text);
    let text = std::str::from_utf8(scratch.put(&text)).map_err(|_| "the text is not UTF-8".to_owned())?;
    Ok(Cell::Json(text))
}

fn shown<'a>(array: &'a ArrayRef, row: usize, scratch: &mut Scratch<'a>) -> Result<Cell<'a>, String> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options).map_err(|e| e.to_string())?;
    let text = formatter.value(row).try_to_string().map_err(|e| e.to_string())?;
    Ok(match json_number(&text) {
        Some(cell @ Cell::Decimal { .. }) => cell,
        _ => Cell::Text(scratch.put_str(|out| out.push_str(&text))),
    })
}
