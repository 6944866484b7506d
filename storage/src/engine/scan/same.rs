//! Equality of single values of Arrow arrays.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::*;

/// Whether two values that are not NULL are equal. Both arrays have the same type. Floats are equal
/// by their bits, so that NaN equals itself and a change from 0 to -0 shows.
pub(crate) fn same_value(a: &ArrayRef, i: usize, b: &ArrayRef, j: usize) -> bool {
    macro_rules! primitive {
        ($t:ty) => {
            a.as_primitive::<$t>().value(i) == b.as_primitive::<$t>().value(j)
        };
    }
    if a.data_type() != b.data_type() {
        return false;
    }
    match a.data_type() {
        DataType::Boolean => a.as_boolean().value(i) == b.as_boolean().value(j),
        DataType::Int64 => primitive!(Int64Type),
        DataType::Float64 => {
            let bits = |x: &ArrayRef, at| x.as_primitive::<Float64Type>().value(at).to_bits();
            bits(a, i) == bits(b, j)
        }
        DataType::Decimal128(..) => primitive!(Decimal128Type),
        DataType::Date32 => primitive!(Date32Type),
        DataType::Timestamp(TimeUnit::Microsecond, _) => primitive!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => primitive!(TimestampNanosecondType),
        DataType::Utf8 => a.as_string::<i32>().value(i) == b.as_string::<i32>().value(j),
        DataType::Binary => a.as_binary::<i32>().value(i) == b.as_binary::<i32>().value(j),
        _ => a.slice(i, 1) == b.slice(j, 1),
    }
}
