//! Sorting one batch of events into the order of runs.

use super::RunError;
use super::input::number;
use super::order::TIMES;
use super::order::{EventOrder, OrderColumns, SortRow};
use super::packing::KeyPacking;
use crate::event::{are_twins, twin_of};
use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{TakeOptions, take};

/// Sorts a batch of the physical schema by key ascending, then by rule B3 descending: a key's
/// newest event comes first. Truncates have the empty key and so stand before every other row.
/// Rows that are equal in key, order and commit keep no particular order: they are the same event.
///
/// # Errors
/// [`RunError::NotEvents`] if the batch has another schema or an origin has no rank.
pub fn sort_batch(batch: &RecordBatch, order: EventOrder<'_>) -> Result<RecordBatch, RunError> {
    let columns = OrderColumns::new(batch, order)?;
    let rows = sorted_rows(&columns, order);
    if rows.iter().enumerate().all(|(i, r)| r.row as usize == i) {
        return Ok(batch.clone());
    }
    let indices = UInt32Array::from_iter_values(rows.iter().map(|r| r.row));
    drop(rows);
    let options = Some(TakeOptions { check_bounds: false });
    let mut sorted: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
    for (i, column) in batch.columns().iter().enumerate() {
        let twin = TIMES.iter().find(|t| **t < i && are_twins(column, batch.column(**t)));
        let twin = twin.and_then(|t| twin_of(&sorted[*t], column.data_type()));
        sorted.push(match twin {
            Some(twin) => twin,
            None => take_column(column, &indices, options.clone())?,
        });
    }
    Ok(RecordBatch::try_new(batch.schema(), sorted)?)
}

fn sorted_rows(columns: &OrderColumns, order: EventOrder<'_>) -> Vec<SortRow> {
    let packing = KeyPacking::of((0..columns.len()).map(|i| columns.key.value(i)));
    let mut rows: Vec<SortRow> = (0..columns.len()).map(|i| SortRow::new(columns, i, &packing)).collect();
    rows.sort_unstable_by(|a, b| a.compare(columns, b, columns, &packing, order));
    rows
}

/// A column with one value, or with none, looks the same in every order.
fn take_column(
    column: &ArrayRef,
    indices: &UInt32Array,
    options: Option<TakeOptions>,
) -> Result<ArrayRef, RunError> {
    if column.null_count() == column.len() || column.null_count() == 0 && number(column).is_some() {
        return Ok(column.clone());
    }
    Ok(take(column, indices, options)?)
}
