//! Image columns that say what the key says: who knows the key need not read them.

use crate::event::columns::OP_MASK;
use crate::event::{EventColumns, Op};
use crate::id::ColumnId;
use crate::key::{KeyPart, key_parts};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use std::sync::Arc;

/// Columns that have a bit.
const COLUMNS_MAX: u32 = 64;

/// A bit for each of the columns `key`, in the order of the key, whose value is what the key says in every
/// row that writes it.
pub(crate) fn keyed_columns(events: &EventColumns, key: &[ColumnId]) -> u64 {
    let mut columns: Vec<(usize, ColumnId, &ArrayRef)> = key
        .iter()
        .enumerate()
        .filter(|(_, id)| id.0 < COLUMNS_MAX)
        .filter_map(|(part, id)| Some((part, *id, events.image(*id)?)))
        .filter(|(_, _, array)| matches!(array.data_type(), DataType::Int64 | DataType::Utf8))
        .collect();
    let (keys, masks, ops) = (events.key(), events.mask().values(), events.op().values());
    let mut parts: Vec<KeyPart<'_>> = Vec::new();
    let mut last: Option<&[u8]> = None;
    for row in 0..events.len() {
        if ops[row] & OP_MASK >= Op::Delete as u8 {
            continue;
        }
        let bytes = keys.value(row);
        if last != Some(bytes) {
            parts.clear();
            parts.extend(key_parts(bytes));
            last = Some(bytes);
        }
        columns.retain(|(part, id, array)| {
            masks[row] >> id.0 & 1 == 0 || parts.get(*part).is_some_and(|p| says(p, array, row))
        });
        if columns.is_empty() {
            return 0;
        }
    }
    columns.iter().fold(0, |bits, (_, id, _)| bits | 1 << id.0)
}

/// Whether a row of a column has the value that a part of its key stands for.
fn says(part: &KeyPart<'_>, array: &ArrayRef, row: usize) -> bool {
    if array.is_null(row) {
        return false;
    }
    match part {
        KeyPart::Int(n) => array.as_primitive_opt::<Int64Type>().is_some_and(|a| a.value(row) == *n),
        KeyPart::Text(text) => array.as_string_opt::<i32>().is_some_and(|a| a.value(row) == text),
        KeyPart::Other => false,
    }
}

/// A part of a key as a column of one row; `None` if it has another type.
pub(crate) fn column_of_part(part: &KeyPart<'_>, ty: &DataType) -> Option<ArrayRef> {
    match (part, ty) {
        (KeyPart::Int(n), DataType::Int64) => Some(Arc::new(Int64Array::from_value(*n, 1))),
        (KeyPart::Text(text), DataType::Utf8) => Some(Arc::new(StringArray::from_iter_values([text]))),
        _ => None,
    }
}
