//! One value of an Arrow array as text. Instants are RFC 3339 in UTC, integers and decimals are
//! never in scientific form, bytes are `\x` and hexadecimal digits.

use arrow::array::{Array, AsArray};
use arrow::datatypes::*;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::fmt::Write;

/// Appends the text of `array[row]`; returns false, having appended nothing, where it is NULL.
pub fn write_cell(out: &mut String, array: &dyn Array, row: usize) -> bool {
    if array.is_null(row) {
        return false;
    }
    if !write_plain(out, array, row) && !write_time(out, array, row) {
        write_other(out, array, row);
    }
    true
}

/// Whether values of this type are numbers: right-aligned in tables, bare in JSON.
pub fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

fn write_plain(out: &mut String, array: &dyn Array, row: usize) -> bool {
    macro_rules! number {
        ($t:ty) => {
            write!(out, "{}", array.as_primitive::<$t>().value(row)).is_ok()
        };
    }
    match array.data_type() {
        DataType::Utf8 => push(out, array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => push(out, array.as_string::<i64>().value(row)),
        DataType::Utf8View => push(out, array.as_string_view().value(row)),
        DataType::Boolean => push(out, if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => float(out, array.as_primitive::<Float32Type>().value(row) as f64, true),
        DataType::Float64 => float(out, array.as_primitive::<Float64Type>().value(row), false),
        DataType::Decimal128(..) => push(out, &array.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Decimal256(..) => push(out, &array.as_primitive::<Decimal256Type>().value_as_string(row)),
        DataType::Binary => hex(out, array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => hex(out, array.as_binary::<i64>().value(row)),
        DataType::BinaryView => hex(out, array.as_binary_view().value(row)),
        _ => false,
    }
}

fn push(out: &mut String, text: &str) -> bool {
    out.push_str(text);
    true
}

/// The shortest text that reads back as the same number; always with a point or an exponent.
fn float(out: &mut String, value: f64, single: bool) -> bool {
    match single {
        true => write!(out, "{:?}", value as f32).is_ok(),
        false => write!(out, "{value:?}").is_ok(),
    }
}

fn hex(out: &mut String, bytes: &[u8]) -> bool {
    out.push_str("\\x");
    asofdb_storage::hex::write(out, bytes).is_ok()
}

fn write_time(out: &mut String, array: &dyn Array, row: usize) -> bool {
    match array.data_type() {
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().value(row);
            match chrono::DateTime::from_timestamp(days as i64 * 86_400, 0) {
                Some(t) => write!(out, "{}", t.format("%Y-%m-%d")).is_ok(),
                None => write!(out, "{days}d").is_ok(),
            }
        }
        DataType::Timestamp(unit, zone) => {
            let value = timestamp_value(array, row, *unit);
            write_timestamp(out, value, *unit, zone.is_some())
        }
        _ => false,
    }
}

fn timestamp_value(array: &dyn Array, row: usize, unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row),
        TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(row),
        TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().value(row),
        TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().value(row),
    }
}

fn write_timestamp(out: &mut String, value: i64, unit: TimeUnit, zoned: bool) -> bool {
    let time = match unit {
        TimeUnit::Second => chrono::DateTime::from_timestamp(value, 0),
        TimeUnit::Millisecond => chrono::DateTime::from_timestamp_millis(value),
        TimeUnit::Microsecond => chrono::DateTime::from_timestamp_micros(value),
        TimeUnit::Nanosecond => Some(chrono::DateTime::from_timestamp_nanos(value)),
    };
    match time {
        Some(t) => {
            let text = t.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
            push(out, if zoned { &text } else { text.trim_end_matches('Z') })
        }
        None => write!(out, "{value}{}", suffix(unit)).is_ok(),
    }
}

fn suffix(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

/// Nested and rare types, in Arrow's own words.
fn write_other(out: &mut String, array: &dyn Array, row: usize) {
    let options = FormatOptions::default().with_display_error(true);
    match ArrayFormatter::try_new(array, &options) {
        Ok(formatter) => {
            let _ = write!(out, "{}", formatter.value(row));
        }
        Err(e) => out.push_str(&format!("<{e}>")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::*;
    use std::sync::Arc;

    fn text(array: impl Array) -> String {
        let mut out = String::new();
        if !write_cell(&mut out, &array, 0) {
            out.push_str("NULL");
        }
        out
    }

    #[test]
    fn instants_are_rfc_3339_in_utc() {
        let us = 1_796_029_923_500_000;
        let zoned = TimestampMicrosecondArray::from(vec![us]).with_timezone("UTC");
        assert_eq!(text(zoned), "2026-11-30T09:12:03.500Z");
        assert_eq!(text(TimestampMicrosecondArray::from(vec![us])), "2026-11-30T09:12:03.500");
        let far = TimestampMicrosecondArray::from(vec![i64::MAX - 1]).with_timezone("UTC");
        assert_eq!(text(far), "9223372036854775806us");
        assert_eq!(text(Date32Array::from(vec![-1])), "1969-12-31");
    }

    #[test]
    fn integers_and_decimals_are_never_scientific() {
        assert_eq!(text(Int64Array::from(vec![i64::MIN])), "-9223372036854775808");
        assert_eq!(text(UInt64Array::from(vec![u64::MAX])), "18446744073709551615");
        let decimal = Decimal128Array::from(vec![-123]).with_precision_and_scale(38, 10).unwrap();
        assert_eq!(text(decimal), "-0.0000000123");
        assert_eq!(text(Float64Array::from(vec![0.1])), "0.1");
        assert_eq!(text(Float64Array::from(vec![3.0])), "3.0");
    }

    #[test]
    fn nulls_bytes_and_nested_values() {
        assert_eq!(text(StringArray::from(vec![None::<&str>])), "NULL");
        assert_eq!(text(BinaryArray::from(vec![&b"\x00\xff"[..]])), "\\x00ff");
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None])]);
        assert_eq!(text(Arc::new(list) as ArrayRef), "[1, ]");
    }
}
