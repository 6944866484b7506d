//! All rows of one key, without reading more of a run than the pages they are in.

use super::error::RunError;
use super::meta::Constant;
use super::read::{Decoded, RunReader, constant_array, indices};
use crate::event::columns::meta_fields;
use arrow::array::*;
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a key up to which they are read by pages; more are read as a scan reads them.
const FEW_ROWS: u64 = 4096;

/// Columns of a run for look-ups, prepared once for many.
#[derive(Debug)]
pub(crate) struct Prepared {
    columns: Vec<String>,
    /// Which columns of the file, and what they are called.
    wanted: Vec<usize>,
    /// The columns of the file, then those of one value, then `key` and `key_no`.
    pub(super) schema: SchemaRef,
    /// Columns of one value that is not NULL.
    constants: Vec<(DataType, Constant)>,
}

impl RunReader {
    /// All rows of `key` with the columns of `columns` that the run has, those left out that are NULL
    /// throughout, and `key` and `key_no`; the latter is 0 here. `None` where the key has no rows.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn rows_of_key(&self, key: &[u8], columns: &[&str]) -> Result<Option<RecordBatch>, RunError> {
        let rows = self.find_key(key)?;
        if rows.is_empty() {
            return Ok(None);
        }
        let prepared = self.prepared(columns)?;
        let n = (rows.end - rows.start) as usize;
        let mut arrays = match self.few(&prepared, rows.clone())? {
            Some(arrays) => arrays,
            None => {
                let names: Vec<&str> = prepared.schema.fields().iter().map(|f| f.name().as_str()).collect();
                let names = &names[..prepared.wanted.len()];
                let batches = self.in_file(names, rows)?.collect::<Result<Vec<_>, _>>()?;
                let Some(first) = batches.first() else { return Ok(None) };
                concat_batches(&first.schema(), &batches)?.columns().to_vec()
            }
        };
        for (ty, value) in &prepared.constants {
            arrays.push(constant_array(ty, *value, n)?);
        }
        let ends = OffsetBuffer::from_lengths(std::iter::repeat_n(key.len(), n));
        arrays.push(Arc::new(BinaryArray::try_new(ends, key.repeat(n).into(), None)?));
        arrays.push(Arc::new(UInt32Array::from_value(0, n)));
        let options = RecordBatchOptions::new().with_row_count(Some(n));
        Ok(Some(RecordBatch::try_new_with_options(prepared.schema.clone(), arrays, &options)?))
    }

    /// Columns of a few rows; `None` if a scan must read them.
    pub(super) fn few(
        &self,
        prepared: &Prepared,
        rows: Range<u64>,
    ) -> Result<Option<Vec<ArrayRef>>, RunError> {
        let mut parts = self.parts(rows.clone());
        let (Some((chunk, part)), None) = (parts.next(), parts.next()) else { return Ok(None) };
        match self.decoded()? {
            Decoded::Ipc(ipc) => {
                let column = |c| Ok(ipc.column(self.file(), chunk, c)?.slice(part.start, part.len()));
                prepared.wanted.iter().map(|c| column(*c)).collect::<Result<Vec<_>, _>>().map(Some)
            }
            Decoded::Parquet(_) if rows.end - rows.start > FEW_ROWS => Ok(None),
            Decoded::Parquet(parquet) => {
                let n = part.len();
                let read = |needed: &[usize]| parquet.few(self.file(), needed, chunk, part);
                self.derivings(parquet)[chunk].few(&prepared.wanted, n, read)
            }
        }
    }

    pub(super) fn prepared(&self, columns: &[&str]) -> Result<Arc<Prepared>, RunError> {
        let mut last = self.prepared_last();
        if let Some(last) = &*last
            && last.columns.iter().map(String::as_str).eq(columns.iter().copied())
        {
            return Ok(last.clone());
        }
        let all = match self.decoded()? {
            Decoded::Ipc(ipc) => ipc.schema().clone(),
            Decoded::Parquet(parquet) => parquet.schema().clone(),
        };
        let mut wanted = indices(&all, columns);
        wanted.retain(|c| !matches!(all.field(*c).name().as_str(), "key" | "key_no"));
        let mut fields = all.project(&wanted)?.fields().to_vec();
        let meta = meta_fields();
        let mut constants = Vec::new();
        for (name, value) in &self.meta().constants {
            // A column that is not there is NULL.
            let field = meta.iter().find(|f| f.name() == name && columns.contains(&name.as_str()));
            if let (Some(field), Constant::Int(_) | Constant::Uint(_)) = (field, value) {
                constants.push((field.data_type().clone(), *value));
                fields.push(Arc::new(field.clone()));
            }
        }
        fields.push(Arc::new(Field::new("key", DataType::Binary, false)));
        fields.push(Arc::new(Field::new("key_no", DataType::UInt32, false)));
        let columns = columns.iter().map(|c| (*c).to_owned()).collect();
        let schema = Arc::new(Schema::new(fields));
        let prepared = Arc::new(Prepared { columns, wanted, schema, constants });
        *last = Some(prepared.clone());
        Ok(prepared)
    }
}
