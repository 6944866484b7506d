//! What a merge reads: sorted batches in memory and runs.

use super::error::RunError;
use super::meta::{Constant, Constants};
use super::order::{EventOrder, OrderColumns, SortRow};
use super::packing::KeyPacking;
use super::read::{RunBatches, RunReader};
use super::widen::widen_column;
use crate::event::columns::META_COLUMNS;
use crate::event::event_schema;
use crate::schema::TableSchema;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, Int64Type, SchemaRef, UInt8Type, UInt32Type, UInt64Type};
use std::sync::Arc;

/// Something sorted in the order of runs.
pub struct MergeInput {
    batches: RunBatches,
    /// Schema that the image columns have; `None` = that of the target.
    schema: Option<Arc<TableSchema>>,
    constants: Constants,
    /// Least key that is not empty.
    pub(crate) key_min: Vec<u8>,
    /// Greatest key.
    pub(crate) key_max: Vec<u8>,
}

/// A batch in the types of the target, with what is needed to compare its rows.
pub(crate) struct Prepared {
    pub columns: Vec<ArrayRef>,
    pub order: OrderColumns,
    pub rows: Vec<SortRow>,
    /// Estimated bytes of one row.
    pub row_bytes: usize,
}

impl MergeInput {
    /// A batch that has the physical schema of the target.
    pub fn batch(batch: RecordBatch) -> MergeInput {
        let constants = constants_of(&batch);
        let keys = batch.column(0).as_binary_opt::<i32>();
        let first = keys.and_then(|keys| keys.iter().flatten().find(|k| !k.is_empty()));
        let last = keys.and_then(|keys| keys.iter().next_back().flatten());
        let (key_min, key_max) = (first.unwrap_or_default().to_vec(), last.unwrap_or_default().to_vec());
        MergeInput {
            batches: Box::new(std::iter::once(Ok(batch))),
            schema: None,
            constants,
            key_min,
            key_max,
        }
    }

    /// A run whose image columns have the types of `schema`.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run(reader: &RunReader, schema: Arc<TableSchema>) -> Result<MergeInput, RunError> {
        let all = event_schema(&schema);
        let names: Vec<&str> = all.fields().iter().map(|f| f.name().as_str()).collect();
        let meta = reader.meta();
        Ok(MergeInput {
            batches: reader.scan_once(&names)?,
            schema: Some(schema),
            constants: meta.constants.clone(),
            key_min: meta.key_min.clone(),
            key_max: meta.key_max.clone(),
        })
    }

    /// The value that a column of the target has in every row, if it has one.
    pub(crate) fn constant(&self, column: usize, name: &str) -> Option<Constant> {
        let columns = self.schema.as_ref().map(|s| META_COLUMNS + s.columns.len());
        match columns {
            Some(own) if column >= own => Some(Constant::Null),
            _ => self.constants.get(name).copied(),
        }
    }

    /// The next batch that has rows.
    pub(crate) fn next(
        &mut self,
        schema: &TableSchema,
        target: &SchemaRef,
        order: EventOrder<'_>,
        packing: &KeyPacking,
    ) -> Result<Option<Prepared>, RunError> {
        let next = self.batches.find(|b| b.as_ref().map_or(true, |b| b.num_rows() > 0));
        let Some(batch) = next.transpose()? else { return Ok(None) };
        let row_bytes = bytes_of(&batch) / batch.num_rows();
        let columns = self.conform(&batch, schema, target)?;
        let batch = RecordBatch::try_new(target.clone(), columns)?;
        let order = OrderColumns::new(&batch, order)?;
        let rows = (0..order.len()).map(|i| SortRow::new(&order, i, packing)).collect();
        Ok(Some(Prepared { columns: batch.columns().to_vec(), order, rows, row_bytes }))
    }

    /// The target's columns in its types.
    fn conform(
        &self,
        batch: &RecordBatch,
        schema: &TableSchema,
        target: &SchemaRef,
    ) -> Result<Vec<ArrayRef>, RunError> {
        let mut columns = Vec::with_capacity(target.fields().len());
        for (i, field) in target.fields().iter().enumerate() {
            let Some(array) = batch.column_by_name(field.name()) else {
                columns.push(new_null_array(field.data_type(), batch.num_rows()));
                continue;
            };
            let image = i.checked_sub(META_COLUMNS);
            let types = image
                .and_then(|c| Some((self.schema.as_ref()?.columns.get(c)?.ty, schema.columns.get(c)?.ty)));
            columns.push(match types {
                Some((old, new)) if old != new => widen_column(array, field.name(), old, new)?,
                _ => array.clone(),
            });
        }
        Ok(columns)
    }
}

/// Bytes of the values of a batch that may be a part of a larger one.
fn bytes_of(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|c| c.to_data().get_slice_memory_size().unwrap_or(0)).sum()
}

/// Columns that have one value in a whole batch: NULL, or before the image columns a number. The key
/// is never one.
fn constants_of(batch: &RecordBatch) -> Constants {
    let mut found = Constants::new();
    for (i, column) in batch.columns().iter().enumerate().skip(1) {
        let constant = match column.null_count() {
            _ if column.is_empty() => None,
            n if n == column.len() => Some(Constant::Null),
            0 if i < META_COLUMNS => number(column),
            _ => None,
        };
        found.extend(constant.map(|c| (batch.schema_ref().field(i).name().clone(), c)));
    }
    found
}

/// The one value of a column of whole numbers without NULLs.
pub(super) fn number(column: &ArrayRef) -> Option<Constant> {
    fn one<T: Copy + PartialEq>(values: &[T]) -> Option<T> {
        let first = *values.first()?;
        values.iter().all(|v| *v == first).then_some(first)
    }
    match column.data_type() {
        DataType::Int64 => one(column.as_primitive::<Int64Type>().values()).map(Constant::Int),
        DataType::UInt8 => one(column.as_primitive::<UInt8Type>().values()).map(|v| Constant::Uint(v.into())),
        DataType::UInt32 => {
            one(column.as_primitive::<UInt32Type>().values()).map(|v| Constant::Uint(v.into()))
        }
        DataType::UInt64 => one(column.as_primitive::<UInt64Type>().values()).map(Constant::Uint),
        _ => None,
    }
}
