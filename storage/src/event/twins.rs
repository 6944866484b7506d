//! Columns that have the same 64-bit values: a time that is also a column, or also the event's own time.
//! They share one buffer, and what is done with the values is done once.

use arrow::array::{Array, ArrayRef, make_array};
use arrow::datatypes::DataType;

/// Whether values are 64 bits wide and plain.
fn is_wide(ty: &DataType) -> bool {
    matches!(ty, DataType::Int64 | DataType::UInt64 | DataType::Timestamp(_, _))
}

/// Whether two columns without NULLs stand on the same values in memory.
pub(crate) fn are_twins(a: &ArrayRef, b: &ArrayRef) -> bool {
    let plain = |c: &ArrayRef| is_wide(c.data_type()) && c.null_count() == 0;
    if !plain(a) || !plain(b) || a.len() != b.len() {
        return false;
    }
    let (a, b) = (a.to_data(), b.to_data());
    a.offset() == b.offset() && a.buffers()[0].as_ptr() == b.buffers()[0].as_ptr()
}

/// The values of `column`, which has 64-bit ones, as a column of type `ty`; `None` if that has others.
pub(crate) fn twin_of(column: &ArrayRef, ty: &DataType) -> Option<ArrayRef> {
    if !is_wide(ty) || !is_wide(column.data_type()) {
        return None;
    }
    column.to_data().into_builder().data_type(ty.clone()).build().ok().map(make_array)
}

/// `column` on the buffer of the first of `others` that has the same values.
pub(crate) fn shared(column: ArrayRef, others: &[&ArrayRef]) -> ArrayRef {
    if column.null_count() > 0 {
        return column;
    }
    let same = |other: &&ArrayRef| {
        let twin = twin_of(other, column.data_type())?;
        (twin.null_count() == 0 && twin.to_data() == column.to_data()).then_some(twin)
    };
    others.iter().find_map(same).unwrap_or(column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, Int64Array, TimestampMicrosecondArray};
    use std::sync::Arc;

    #[test]
    fn equal_values_are_held_once_whatever_they_count() {
        let times: ArrayRef = Arc::new(Int64Array::from(vec![5, 7, 9]));
        let equal: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![5, 7, 9]).with_timezone("UTC"));
        let column = shared(equal.clone(), &[&times]);
        assert_eq!(&column, &equal);
        assert!(are_twins(&column, &times) && !are_twins(&equal, &times));
        assert!(!are_twins(&column.slice(1, 2), &times.slice(0, 2)));
        assert!(are_twins(&column.slice(1, 2), &times.slice(1, 2)));
    }

    #[test]
    fn other_values_nulls_and_widths_stay_what_they_are() {
        let times: ArrayRef = Arc::new(Int64Array::from(vec![5, 7]));
        let others: [ArrayRef; 4] = [
            Arc::new(Int64Array::from(vec![5, 8])),
            Arc::new(Int64Array::from(vec![Some(5), None])),
            Arc::new(Int32Array::from(vec![5, 7])),
            Arc::new(Int64Array::from(vec![5])),
        ];
        for other in others {
            let column = shared(other.clone(), &[&times]);
            assert_eq!(&column, &other);
            assert!(!are_twins(&column, &times), "{other:?}");
        }
        assert!(twin_of(&times, &DataType::Int32).is_none());
    }
}
