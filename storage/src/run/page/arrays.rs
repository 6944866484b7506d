//! Values of pages as arrays of Arrow.

use super::values::Values;
use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::*;
use arrow::error::ArrowError;
use std::sync::Arc;

/// Values with gaps as an array; `None` for types that are not read here.
pub(crate) fn array_of(
    ty: &DataType,
    values: &Values,
    valid: &[bool],
) -> Result<Option<ArrayRef>, ArrowError> {
    let all = values.len() == valid.len();
    let nulls = || (!all).then(|| NullBuffer::from(valid));
    macro_rules! numbers {
        ($t:ty) => {{
            let Values::Numbers(numbers) = values else { return Ok(None) };
            let mut next = numbers.iter();
            let spread = |v: &bool| if *v { next.next().map_or(0, |n| *n) } else { 0 };
            let spread = valid.iter().map(spread).map(|n| n as <$t as ArrowPrimitiveType>::Native);
            let buffer: ScalarBuffer<_> = spread.collect::<Vec<_>>().into();
            Arc::new(PrimitiveArray::<$t>::try_new(buffer, nulls())?.with_data_type(ty.clone())) as ArrayRef
        }};
    }
    Ok(Some(match ty {
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::Date32 => numbers!(Date32Type),
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => numbers!(TimestampNanosecondType),
        DataType::Decimal128(..) if matches!(values, Values::Numbers(_)) => numbers!(Decimal128Type),
        DataType::Decimal128(..) => {
            let mut next = 0;
            let wide = valid.iter().map(|v| {
                next += usize::from(*v);
                if *v { big_endian(values.string(next - 1)) } else { 0 }
            });
            let buffer: ScalarBuffer<i128> = wide.collect::<Vec<_>>().into();
            Arc::new(Decimal128Array::try_new(buffer, nulls())?.with_data_type(ty.clone()))
        }
        DataType::Float64 => {
            let Values::Numbers(numbers) = values else { return Ok(None) };
            let mut next = numbers.iter();
            let spread =
                |v: &bool| if *v { next.next().map_or(0.0, |n| f64::from_bits(*n as u64)) } else { 0.0 };
            let buffer: ScalarBuffer<f64> = valid.iter().map(spread).collect::<Vec<_>>().into();
            Arc::new(Float64Array::try_new(buffer, nulls())?)
        }
        DataType::Boolean => {
            let Values::Numbers(numbers) = values else { return Ok(None) };
            let mut next = numbers.iter();
            let spread = |v: &bool| v.then(|| next.next().is_some_and(|n| *n != 0));
            Arc::new(valid.iter().map(spread).collect::<BooleanArray>())
        }
        DataType::Utf8 | DataType::Binary => {
            let Values::Bytes { ends, bytes } = values else { return Ok(None) };
            let mut next = ends.iter();
            let mut end = 0;
            let mut offsets = vec![0i32];
            for v in valid {
                end = if *v { next.next().map_or(end, |e| *e) } else { end };
                offsets.push(i32::try_from(end).map_err(|_| ArrowError::OffsetOverflowError(end))?);
            }
            let offsets = OffsetBuffer::new(offsets.into());
            match ty {
                DataType::Utf8 => Arc::new(StringArray::try_new(offsets, bytes.clone().into(), nulls())?),
                _ => Arc::new(BinaryArray::try_new(offsets, bytes.clone().into(), nulls())?),
            }
        }
        _ => return Ok(None),
    }))
}

fn big_endian(bytes: &[u8]) -> i128 {
    let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
    bytes.iter().fold(if negative { -1 } else { 0 }, |n, b| n << 8 | i128::from(*b))
}
