//! All rows of one key, without reading more of a run than the pages they are in.

use super::deriving::Needs;
use super::error::RunError;
use super::meta::Constant;
use super::read::{Decoded, RunReader, constant_array, indices};
use crate::event::columns::meta_fields;
use arrow::array::*;
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Rows of a key up to which they are read by pages; more are read as a scan reads them.
const FEW_ROWS: u64 = 4096;

/// Columns of a run for look-ups, prepared once for many.
#[derive(Debug)]
pub(crate) struct Prepared {
    columns: Vec<String>,
    /// Which columns of the file, and what they are called.
    wanted: Vec<usize>,
    /// The columns of the file, then those of one value.
    pub(super) schema: SchemaRef,
    /// Columns of one value that is not NULL.
    constants: Vec<(DataType, Constant)>,
    /// Columns that the caller brings.
    known: Vec<String>,
    /// By chunk, what is read for the wanted columns.
    needs: Box<[OnceLock<Needs>]>,
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
        let found = self.rows(&*self.prepared(columns)?, rows, None)?;
        let n = found.num_rows();
        let (mut fields, mut arrays) = (found.schema().fields().to_vec(), found.columns().to_vec());
        fields.push(Arc::new(Field::new("key", DataType::Binary, false)));
        let ends = OffsetBuffer::from_lengths(std::iter::repeat_n(key.len(), n));
        arrays.push(Arc::new(BinaryArray::try_new(ends, key.repeat(n).into(), None)?));
        fields.push(Arc::new(Field::new("key_no", DataType::UInt32, false)));
        arrays.push(Arc::new(UInt32Array::from_value(0, n)));
        let options = RecordBatchOptions::new().with_row_count(Some(n));
        Ok(Some(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?))
    }

    /// Some rows with the prepared columns; `known` has the columns of these rows that were named as known.
    ///
    /// # Errors
    /// [`RunError`].
    pub(crate) fn rows(
        &self,
        prepared: &Prepared,
        rows: Range<u64>,
        known: Option<&RecordBatch>,
    ) -> Result<RecordBatch, RunError> {
        let n = (rows.end - rows.start) as usize;
        if self.one_part(&rows).is_none() {
            return self.rows_of_parts(prepared, rows, known);
        }
        let mut arrays = match self.few(prepared, rows.clone(), known)? {
            Some(arrays) => arrays,
            None => self.many(prepared, rows)?,
        };
        for (ty, value) in &prepared.constants {
            arrays.push(constant_array(ty, *value, n)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(n));
        Ok(RecordBatch::try_new_with_options(prepared.schema.clone(), arrays, &options)?)
    }

    /// As [`RunReader::rows`], chunk by chunk.
    fn rows_of_parts(
        &self,
        prepared: &Prepared,
        rows: Range<u64>,
        known: Option<&RecordBatch>,
    ) -> Result<RecordBatch, RunError> {
        let (mut batches, mut at) = (Vec::new(), rows.start);
        for (_, part) in self.parts(rows.clone()) {
            let n = part.len();
            let known = known.map(|k| k.slice((at - rows.start) as usize, n));
            batches.push(self.rows(prepared, at..at + n as u64, known.as_ref())?);
            at += n as u64;
        }
        Ok(concat_batches(&prepared.schema, &batches)?)
    }

    /// Columns of some rows, as a scan reads them.
    fn many(&self, prepared: &Prepared, rows: Range<u64>) -> Result<Vec<ArrayRef>, RunError> {
        let names: Vec<&str> = prepared.schema.fields().iter().map(|f| f.name().as_str()).collect();
        let batches = self.in_file(&names[..prepared.wanted.len()], rows)?.collect::<Result<Vec<_>, _>>()?;
        match batches.first() {
            Some(first) => Ok(concat_batches(&first.schema(), &batches)?.columns().to_vec()),
            None => Err(self.file().damaged("has fewer rows than its sidecar says")),
        }
    }

    /// Columns of a few rows; `None` if a scan must read them.
    pub(super) fn few(
        &self,
        prepared: &Prepared,
        rows: Range<u64>,
        known: Option<&RecordBatch>,
    ) -> Result<Option<Vec<ArrayRef>>, RunError> {
        let Some((chunk, part)) = self.one_part(&rows) else { return Ok(None) };
        match self.decoded()? {
            Decoded::Ipc(ipc) => {
                let column = |c| Ok(ipc.column(self.file(), chunk, c)?.slice(part.start, part.len()));
                prepared.wanted.iter().map(|c| column(*c)).collect::<Result<Vec<_>, _>>().map(Some)
            }
            Decoded::Parquet(_) if rows.end - rows.start > FEW_ROWS => Ok(None),
            Decoded::Parquet(parquet) => {
                let n = part.len();
                let deriving = &self.derivings(parquet)[chunk];
                let needs = match prepared.needs[chunk].get() {
                    Some(needs) => needs,
                    None => {
                        let known = |name: &str| prepared.known.iter().any(|k| k == name);
                        let needs = deriving.needs(&prepared.wanted, &known)?;
                        prepared.needs[chunk].get_or_init(|| needs)
                    }
                };
                match parquet.few(self.file(), &needs.read, chunk, part)? {
                    Some(arrays) => deriving.columns(&prepared.wanted, needs, &arrays, known, n).map(Some),
                    None => Ok(None),
                }
            }
        }
    }

    /// What [`RunReader::rows_of_key`] reads; the last look-up's is kept.
    pub(super) fn prepared(&self, columns: &[&str]) -> Result<Arc<Prepared>, RunError> {
        let mut last = self.prepared_last();
        if let Some(last) = &*last
            && last.columns.iter().map(String::as_str).eq(columns.iter().copied())
        {
            return Ok(last.clone());
        }
        let prepared = Arc::new(self.prepare(columns, &[])?);
        *last = Some(prepared.clone());
        Ok(prepared)
    }

    /// Prepares reading those of `columns` that the run has, but `key` and `key_no`, and those left out
    /// that are NULL throughout. `known` are columns that the caller will bring.
    ///
    /// # Errors
    /// [`RunError`].
    pub(crate) fn prepare(&self, columns: &[&str], known: &[&str]) -> Result<Prepared, RunError> {
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
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        let (columns, known) = (owned(columns), owned(known));
        let needs = self.chunks().iter().map(|_| OnceLock::new()).collect();
        Ok(Prepared { columns, wanted, schema: Arc::new(Schema::new(fields)), constants, known, needs })
    }
}
