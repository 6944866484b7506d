//! Collects, per projected column, which loaded row its value comes from, and gathers the values in
//! one pass per column.

use super::loaded::Loaded;
use crate::engine::error::{Error, ErrorKind};
use crate::event::image_column_name;
use crate::id::ColumnId;
use crate::schema::TableSchema;
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

/// Rows of a result batch.
pub(crate) const BATCH_ROWS: usize = 8192;

/// The slot of a value that is NULL because nobody wrote it.
pub(crate) const NULL_SLOT: u32 = u32::MAX;

/// The slot of a value that was made for the result, see [`Gather::make`].
const MADE_SLOT: u32 = u32::MAX - 1;

/// Bytes of the column that a result of one row may keep alive.
const ROW_BYTES_MAX: usize = 64 << 10;

/// Values of a result under construction.
#[derive(Debug)]
pub(crate) struct Gather {
    /// Physical names of the gathered columns.
    names: Vec<String>,
    schema: SchemaRef,
    picks: Vec<Vec<(u32, u32)>>,
    /// Texts that stand in no loaded batch, by column; empty as long as there are none.
    made: Vec<Vec<String>>,
    rows: usize,
}

/// The Arrow schema of the projected columns.
pub(crate) fn projected_fields(schema: &TableSchema, projection: &[ColumnId]) -> Result<Vec<Field>, Error> {
    let field = |id: &ColumnId| {
        let column = schema.columns.get(id.0 as usize);
        column.map(|c| Field::new(&c.name, c.ty.arrow(), true)).ok_or_else(|| {
            Error::new(ErrorKind::Invalid, format!("column number {} is not in the schema", id.0))
        })
    };
    projection.iter().map(field).collect()
}

impl Gather {
    pub fn new(schema: &TableSchema, projection: &[ColumnId], extra: &[Field]) -> Result<Gather, Error> {
        let names = projection.iter().map(|id| image_column_name(*id)).collect();
        Ok(Gather::physical(names, projected_fields(schema, projection)?, extra))
    }

    /// Gathers the physical columns `names` as `fields`; `extra` are given when a batch is made.
    pub fn physical(names: Vec<String>, mut fields: Vec<Field>, extra: &[Field]) -> Gather {
        debug_assert_eq!(names.len(), fields.len(), "a field for each gathered column");
        fields.extend_from_slice(extra);
        let picks = vec![Vec::new(); names.len()];
        Gather { names, schema: Arc::new(Schema::new(fields)), picks, made: Vec::new(), rows: 0 }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS
    }

    /// Adds a row; `pick` gives the slot and row of the value of each projected column.
    pub fn push(&mut self, mut pick: impl FnMut(usize) -> (u32, u32)) {
        for (i, picks) in self.picks.iter_mut().enumerate() {
            picks.push(pick(i));
        }
        self.rows += 1;
    }

    /// Adds rows of which nothing is gathered.
    pub fn count(&mut self, rows: usize) {
        self.rows += rows;
    }

    /// Keeps a text for gathered column `i`; returns what to pick for it until the next batch is made.
    pub fn make(&mut self, i: usize, text: &str) -> (u32, u32) {
        self.made.resize(self.names.len(), Vec::new());
        self.made[i].push(text.to_owned());
        (MADE_SLOT, self.made[i].len() as u32 - 1)
    }

    /// Makes a batch of what was added, with `extra` columns behind, and starts anew. `slots` are
    /// the loaded batches by slot number.
    pub fn emit(&mut self, slots: &[Arc<Loaded>], extra: Vec<ArrayRef>) -> Result<RecordBatch, Error> {
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for (i, name) in self.names.iter().enumerate() {
            let ty = self.schema.field(i).data_type();
            let made = self.made.get(i).map_or(&[][..], Vec::as_slice);
            columns.push(gather_column(slots, name, ty, made, &self.picks[i])?);
            self.picks[i].clear();
        }
        self.made.clear();
        columns.extend(extra);
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        self.rows = 0;
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map_err(internal)
    }
}

/// An error that means a fault of ours, not of the caller or the disk.
pub(crate) fn internal(e: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Invalid, format!("internal error while building a result: {e}"))
}

fn gather_column(
    slots: &[Arc<Loaded>],
    name: &str,
    ty: &DataType,
    made: &[String],
    picks: &[(u32, u32)],
) -> Result<ArrayRef, Error> {
    if let [(slot, row)] = *picks
        && made.is_empty()
    {
        let array = slots.get(slot as usize).and_then(|l| l.batch().column_by_name(name));
        match array {
            None => return Ok(new_null_array(ty, 1)),
            // One row is not worth keeping much else for.
            Some(array) if array.get_buffer_memory_size() <= ROW_BYTES_MAX => {
                return Ok(array.slice(row as usize, 1));
            }
            Some(_) => {}
        }
    }
    let nulls = new_null_array(ty, 1);
    let made = StringArray::from_iter_values(made);
    let made = (!made.is_empty() && *ty == DataType::Utf8).then_some(made);
    let mut arrays: Vec<&dyn Array> = vec![nulls.as_ref()];
    arrays.extend(made.iter().map(|a| a as &dyn Array));
    let mut place = vec![0usize; slots.len()];
    for (slot, loaded) in slots.iter().enumerate() {
        if let Some(array) = loaded.batch().column_by_name(name) {
            place[slot] = arrays.len();
            arrays.push(array.as_ref());
        }
    }
    let indices: Vec<(usize, usize)> = picks
        .iter()
        .map(|(slot, row)| match place.get(*slot as usize) {
            None if *slot == MADE_SLOT && made.is_some() => (1, *row as usize),
            Some(0) | None => (0, 0),
            Some(at) => (*at, *row as usize),
        })
        .collect();
    interleave(&arrays, &indices).map_err(internal)
}
