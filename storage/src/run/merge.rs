//! Merging sorted inputs of one table into one run.

use super::error::RunError;
use super::meta::{Constants, RunMeta};
use super::order::{EventOrder, OrderColumns, SortRow};
use super::read::{RunBatches, RunReader};
use super::widen::widen_column;
use super::write::{RunSpec, RunWriter, constants_of};
use crate::disk::Disk;
use crate::event::event_schema;
use crate::schema::TableSchema;
use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::SchemaRef;
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

/// Rows of the batches that are handed to the writer.
const OUT_ROWS: usize = 65_536;

/// Something sorted in the order of runs.
pub struct MergeInput {
    batches: RunBatches,
    /// Schema that the image columns have.
    schema: Option<Arc<TableSchema>>,
    constants: Constants,
}

impl MergeInput {
    /// A batch that has the physical schema of the target.
    pub fn batch(batch: RecordBatch) -> MergeInput {
        let constants = constants_of(&batch);
        MergeInput { batches: Box::new(std::iter::once(Ok(batch))), schema: None, constants }
    }

    /// A run whose image columns have the types of `schema`.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run(reader: &RunReader, schema: Arc<TableSchema>) -> Result<MergeInput, RunError> {
        let all = event_schema(&schema);
        let names: Vec<&str> = all.fields().iter().map(|f| f.name().as_str()).collect();
        let batches = reader.scan(&names, 0..reader.meta().rows)?;
        Ok(MergeInput { batches, schema: Some(schema), constants: reader.meta().constants.clone() })
    }
}

struct Cursor {
    input: MergeInput,
    batch: RecordBatch,
    columns: OrderColumns,
    head: SortRow,
    row: usize,
    /// Number of the batch among those of the output under construction.
    slot: usize,
}

/// Merges sorted inputs into a new run of `schema`, and writes it.
///
/// # Errors
/// [`RunError::NeedsReplay`] where stored values cannot follow the schema; the errors of reading and
/// writing. No file has its final name then.
pub fn merge_runs(
    disk: &dyn Disk,
    dir: &Path,
    spec: RunSpec,
    schema: &TableSchema,
    order: EventOrder<'_>,
    inputs: Vec<MergeInput>,
) -> Result<RunMeta, RunError> {
    let constants = shared_constants(&inputs);
    let mut writer = RunWriter::new(disk, dir, spec, schema, constants)?;
    let mut merge =
        Merge { schema, target: event_schema(schema), order, cursors: Vec::new(), batches: Vec::new() };
    for input in inputs {
        if let Some(cursor) = merge.open(input)? {
            merge.cursors.push(cursor);
        }
    }
    while let Some(batch) = merge.next()? {
        writer.write(batch)?;
    }
    writer.finish()
}

/// Columns that have the same one value in every input.
fn shared_constants(inputs: &[MergeInput]) -> Constants {
    let Some((first, rest)) = inputs.split_first() else { return Constants::new() };
    let mut shared = first.constants.clone();
    shared.retain(|name, value| rest.iter().all(|i| i.constants.get(name) == Some(value)));
    shared
}

struct Merge<'a> {
    schema: &'a TableSchema,
    target: SchemaRef,
    order: EventOrder<'a>,
    cursors: Vec<Cursor>,
    /// Batches that rows of the output under construction come from.
    batches: Vec<RecordBatch>,
}

impl Merge<'_> {
    fn open(&mut self, mut input: MergeInput) -> Result<Option<Cursor>, RunError> {
        let Some(batch) = self.load(&mut input)? else { return Ok(None) };
        let columns = OrderColumns::new(&batch, self.order)?;
        let head = SortRow::new(&columns, 0, 0);
        Ok(Some(Cursor { input, batch, columns, head, row: 0, slot: usize::MAX }))
    }

    fn load(&self, input: &mut MergeInput) -> Result<Option<RecordBatch>, RunError> {
        loop {
            match input.batches.next().transpose()? {
                None => return Ok(None),
                Some(b) if b.num_rows() == 0 => continue,
                Some(b) => return self.conform(b, input.schema.as_deref()).map(Some),
            }
        }
    }

    /// Brings a batch to the target's columns and types.
    fn conform(&self, batch: RecordBatch, from: Option<&TableSchema>) -> Result<RecordBatch, RunError> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.target.fields().len());
        for (i, field) in self.target.fields().iter().enumerate() {
            let Some(array) = batch.column_by_name(field.name()) else {
                columns.push(new_null_array(field.data_type(), batch.num_rows()));
                continue;
            };
            let column = i.checked_sub(crate::event::columns::META_COLUMNS);
            let types = column.and_then(|c| Some((from?.columns.get(c)?.ty, self.schema.columns.get(c)?.ty)));
            columns.push(match types {
                Some((old, new)) if old != new => widen_column(array, field.name(), old, new)?,
                _ => array.clone(),
            });
        }
        Ok(RecordBatch::try_new(self.target.clone(), columns)?)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, RunError> {
        if self.cursors.is_empty() {
            return Ok(None);
        }
        if self.cursors.len() == 1 && self.cursors[0].row == 0 {
            let batch = self.cursors[0].batch.clone();
            self.advance(0, batch.num_rows())?;
            return Ok(Some(batch));
        }
        let mut picks: Vec<(usize, usize)> = Vec::with_capacity(OUT_ROWS);
        self.batches.clear();
        self.cursors.iter_mut().for_each(|c| c.slot = usize::MAX);
        while picks.len() < OUT_ROWS && !self.cursors.is_empty() {
            let first = self.first();
            let c = &mut self.cursors[first];
            if c.slot == usize::MAX {
                c.slot = self.batches.len();
                self.batches.push(c.batch.clone());
            }
            picks.push((c.slot, c.row));
            self.advance(first, 1)?;
        }
        self.gather(&picks).map(Some)
    }

    fn first(&self) -> usize {
        let mut best = 0;
        for i in 1..self.cursors.len() {
            let (a, b) = (&self.cursors[i], &self.cursors[best]);
            if a.head.compare(&a.columns, &b.head, &b.columns, 0, self.order) == Ordering::Less {
                best = i;
            }
        }
        best
    }

    fn advance(&mut self, i: usize, rows: usize) -> Result<(), RunError> {
        self.cursors[i].row += rows;
        if self.cursors[i].row < self.cursors[i].batch.num_rows() {
            let c = &mut self.cursors[i];
            c.head = SortRow::new(&c.columns, c.row, 0);
            return Ok(());
        }
        let mut cursor = self.cursors.swap_remove(i);
        if let Some(batch) = self.load(&mut cursor.input)? {
            cursor.columns = OrderColumns::new(&batch, self.order)?;
            cursor.head = SortRow::new(&cursor.columns, 0, 0);
            (cursor.batch, cursor.row, cursor.slot) = (batch, 0, usize::MAX);
            self.cursors.push(cursor);
        }
        Ok(())
    }

    fn gather(&self, picks: &[(usize, usize)]) -> Result<RecordBatch, RunError> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.target.fields().len());
        for i in 0..self.target.fields().len() {
            let arrays: Vec<&dyn Array> = self.batches.iter().map(|b| b.column(i).as_ref()).collect();
            if arrays.iter().all(|a| a.null_count() == a.len()) {
                columns.push(new_null_array(self.target.field(i).data_type(), picks.len()));
                continue;
            }
            columns.push(interleave(&arrays, picks)?);
        }
        Ok(RecordBatch::try_new(self.target.clone(), columns)?)
    }
}
