//! Image columns of an older schema version under a newer one (rule B14).

use super::error::RunError;
use crate::value::{Cell, ColumnType, write_json, write_text};
use arrow::array::*;
use arrow::datatypes::{Date32Type, Decimal128Type, Int64Type, TimestampMicrosecondType};
use std::sync::Arc;

const DAY_US: i64 = 86_400_000_000;

/// The values of a column of type `from` as a column of type `to`, exactly as if the events were
/// decoded again under the newer schema. `name` is the physical name, for messages.
///
/// # Errors
/// [`RunError::NeedsReplay`] where the stored values do not tell what the source sent: a decimal
/// column forgets how many digits each number had, a text column which of its texts were numbers, a
/// timestamp column which of its values were dates.
pub fn widen_column(
    array: &ArrayRef,
    name: &str,
    from: ColumnType,
    to: ColumnType,
) -> Result<ArrayRef, RunError> {
    use ColumnType::*;
    if from == to || from.arrow() == to.arrow() && matches!((from, to), (Decimal { .. }, Decimal { .. })) {
        return Ok(array.clone());
    }
    if array.null_count() == array.len() {
        return Ok(new_null_array(&to.arrow(), array.len()));
    }
    let refuse = || RunError::NeedsReplay { column: name.to_owned(), from, to };
    match (from, to) {
        (Int64, Decimal { scale, .. }) => {
            let ints = array.as_primitive::<Int64Type>();
            scaled(ints.iter().map(|v| v.map(i128::from)), scale, to).ok_or_else(refuse)
        }
        (Decimal { scale: old, .. }, Decimal { scale, .. }) if old <= scale => {
            scaled(array.as_primitive::<Decimal128Type>().iter(), scale - old, to).ok_or_else(refuse)
        }
        (Date, Timestamp | Instant) => {
            let days = array.as_primitive::<Date32Type>();
            let us: PrimitiveArray<TimestampMicrosecondType> = days.unary(|d| d as i64 * DAY_US);
            Ok(Arc::new(us.with_data_type(to.arrow())))
        }
        (Bool | Int64 | Float64 | Bytes | Date | TimestampNs, Text) => Ok(written(array, from, write_text)),
        (Bool | Int64 | Float64 | Bytes | Date | TimestampNs, Json) => Ok(written(array, from, write_json)),
        _ => Err(refuse()),
    }
}

/// Whether [`widen_column`] can always follow a column from one type to the other.
pub fn widens_exactly(from: ColumnType, to: ColumnType) -> bool {
    use ColumnType::*;
    match (from, to) {
        (a, b) if a == b => true,
        (Null, _) | (Int64, Decimal { .. }) | (Date, Timestamp | Instant) => true,
        (Decimal { scale: a, .. }, Decimal { scale: b, .. }) => a <= b,
        (Bool | Int64 | Float64 | Bytes | Date | TimestampNs, Text | Json) => true,
        _ => false,
    }
}

fn scaled(values: impl Iterator<Item = Option<i128>>, steps: u8, to: ColumnType) -> Option<ArrayRef> {
    let factor = 10i128.checked_pow(steps as u32)?;
    let mut builder = Decimal128Builder::with_capacity(values.size_hint().0).with_data_type(to.arrow());
    for value in values {
        builder.append_option(match value {
            Some(v) => Some(v.checked_mul(factor)?),
            None => None,
        });
    }
    Some(Arc::new(builder.finish()))
}

fn written(array: &ArrayRef, from: ColumnType, write: fn(&mut String, &Cell<'_>)) -> ArrayRef {
    let mut builder = StringBuilder::with_capacity(array.len(), array.len() * 8);
    let mut scratch = String::new();
    for i in 0..array.len() {
        if array.is_null(i) {
            builder.append_null();
            continue;
        }
        scratch.clear();
        write(&mut scratch, &cell_at(array, from, i));
        builder.append_value(&scratch);
    }
    Arc::new(builder.finish())
}

/// The value of row `i` of an image column as a cell; NULL for NULL.
pub fn cell_at(array: &ArrayRef, ty: ColumnType, i: usize) -> Cell<'_> {
    use arrow::datatypes::*;
    if array.is_null(i) {
        return Cell::Null;
    }
    match ty {
        ColumnType::Bool => Cell::Bool(array.as_boolean().value(i)),
        ColumnType::Int64 => Cell::Int(array.as_primitive::<Int64Type>().value(i)),
        ColumnType::Decimal { scale, .. } => {
            Cell::Decimal { unscaled: array.as_primitive::<Decimal128Type>().value(i), scale }
        }
        ColumnType::Float64 => Cell::Float(array.as_primitive::<Float64Type>().value(i)),
        ColumnType::Date => Cell::Date(array.as_primitive::<Date32Type>().value(i)),
        ColumnType::Timestamp => Cell::Timestamp(array.as_primitive::<TimestampMicrosecondType>().value(i)),
        ColumnType::TimestampNs => {
            Cell::TimestampNs(array.as_primitive::<TimestampNanosecondType>().value(i))
        }
        ColumnType::Instant => Cell::Instant(array.as_primitive::<TimestampMicrosecondType>().value(i)),
        ColumnType::Null | ColumnType::Text => Cell::Text(array.as_string::<i32>().value(i)),
        ColumnType::Json => Cell::Json(array.as_string::<i32>().value(i)),
        ColumnType::Bytes => Cell::Bytes(array.as_binary::<i32>().value(i)),
    }
}
