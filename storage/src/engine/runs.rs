//! Run files as sorted sources.

use super::error::{Error, ErrorKind};
use super::scan::{BatchIter, RowReader, SortedSource, Traits, cast_batch};
use crate::run::{ChunkMeta, Prepared, RunBatches, RunError, RunMeta, RunReader};
use crate::schema::TableSchema;
use crate::time::FOREVER;
use arrow::array::RecordBatch;
use std::ops::Range;
use std::sync::Arc;

/// An open run of a table.
#[derive(Debug)]
pub(crate) struct RunSource {
    pub reader: Arc<RunReader>,
    pub schema: Arc<TableSchema>,
}

impl From<RunError> for Error {
    fn from(e: RunError) -> Error {
        let kind = match &e {
            RunError::Disk(_) => ErrorKind::Io,
            RunError::Damaged { .. } => ErrorKind::Damaged,
            _ => ErrorKind::Invalid,
        };
        let error = Error::new(kind, e.to_string());
        match kind {
            ErrorKind::Damaged => error.hint(
                "run `asof rebuild` to derive the runs from the log again; where the log was shrunk, \
                 restore the store from a copy",
            ),
            _ => error,
        }
    }
}

impl RunSource {
    pub fn meta(&self) -> &RunMeta {
        self.reader.meta()
    }

    /// Batches of the run with its image columns in the types of `schema`.
    fn in_types_of(&self, schema: &Arc<TableSchema>, batches: RunBatches) -> BatchIter {
        let (from, to) = (self.schema.clone(), schema.clone());
        Box::new(batches.map(move |b| cast_batch(&b.map_err(Error::from)?, &from, &to)))
    }
}

impl SortedSource for RunSource {
    fn rows(&self) -> usize {
        self.meta().rows as usize
    }

    fn traits(&self) -> Traits {
        let (meta, flags) = (self.meta(), self.meta().flags);
        let spans = meta.spans;
        Traits {
            valid_from: spans.map_or((0, 0), |s| (s.valid_from.min, s.valid_from.max)),
            system: spans.map_or((0, 0), |s| (s.system.min, s.system.max)),
            commit: spans.map_or((0, 0), |s| (s.commit.min, s.commit.max)),
            bounded: flags.bounded || spans.is_some_and(|s| s.valid_to.min != FOREVER),
            partial: flags.partial || flags.placeholders,
            moves: flags.previous,
            ties: flags.ties,
            leaves: flags.leaves,
        }
    }

    fn run(&self) -> Option<(&RunMeta, &[ChunkMeta])> {
        Some((self.meta(), self.reader.chunks()))
    }

    fn lower_bound(&self, key: &[u8]) -> Result<usize, Error> {
        Ok(self.reader.lower_bound(key)? as usize)
    }

    fn find_key(&self, key: &[u8]) -> Result<Range<usize>, Error> {
        let rows = self.reader.find_key(key)?;
        Ok(rows.start as usize..rows.end as usize)
    }

    fn scan(
        &self,
        columns: &[String],
        rows: Range<usize>,
        schema: &Arc<TableSchema>,
    ) -> Result<BatchIter, Error> {
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let batches = self.reader.scan(&names, rows.start as u64..rows.end as u64)?;
        Ok(self.in_types_of(schema, batches))
    }

    fn rows_of_key(
        &self,
        key: &[u8],
        columns: &[&str],
        schema: &Arc<TableSchema>,
    ) -> Result<Option<RecordBatch>, Error> {
        let rows = self.reader.rows_of_key(key, columns)?;
        rows.map(|batch| cast_batch(&batch, &self.schema, schema)).transpose()
    }

    fn row_reader(
        self: Arc<Self>,
        columns: &[&str],
        known: &[&str],
        schema: &Arc<TableSchema>,
    ) -> Result<Arc<dyn RowReader>, Error> {
        let prepared = self.reader.prepare(columns, known)?;
        Ok(Arc::new(RunRows { prepared, run: self, schema: schema.clone() }))
    }

    fn keyed(&self, row: usize, schema: &TableSchema) -> u64 {
        // A column of another type may show the same value otherwise.
        if self.schema.version == schema.version { self.reader.keyed(row as u64) } else { 0 }
    }

    fn split_keys(&self, n: usize) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.reader.split_keys(n))
    }
}

/// Some columns of a run, in the types of a schema.
#[derive(Debug)]
struct RunRows {
    run: Arc<RunSource>,
    prepared: Prepared,
    schema: Arc<TableSchema>,
}

impl RowReader for RunRows {
    fn rows(&self, rows: Range<usize>, known: Option<&RecordBatch>) -> Result<RecordBatch, Error> {
        let batch = self.run.reader.rows(&self.prepared, rows.start as u64..rows.end as u64, known)?;
        if self.run.schema.version == self.schema.version {
            return Ok(batch);
        }
        cast_batch(&batch, &self.run.schema, &self.schema)
    }
}

/// A run for one pass over all of it: what was read leaves memory again, and displaces nothing from the
/// cache.
#[derive(Debug)]
pub(crate) struct PassingRun(pub Arc<RunSource>);

impl SortedSource for PassingRun {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn traits(&self) -> Traits {
        self.0.traits()
    }

    fn run(&self) -> Option<(&RunMeta, &[ChunkMeta])> {
        self.0.run()
    }

    fn lower_bound(&self, key: &[u8]) -> Result<usize, Error> {
        self.0.lower_bound(key)
    }

    fn find_key(&self, key: &[u8]) -> Result<Range<usize>, Error> {
        self.0.find_key(key)
    }

    fn scan(
        &self,
        columns: &[String],
        rows: Range<usize>,
        schema: &Arc<TableSchema>,
    ) -> Result<BatchIter, Error> {
        if rows != (0..self.rows()) {
            return self.0.scan(columns, rows, schema);
        }
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        Ok(self.0.in_types_of(schema, self.0.reader.scan_once(&names)?))
    }

    fn rows_of_key(
        &self,
        key: &[u8],
        columns: &[&str],
        schema: &Arc<TableSchema>,
    ) -> Result<Option<RecordBatch>, Error> {
        self.0.rows_of_key(key, columns, schema)
    }

    fn row_reader(
        self: Arc<Self>,
        columns: &[&str],
        known: &[&str],
        schema: &Arc<TableSchema>,
    ) -> Result<Arc<dyn RowReader>, Error> {
        self.0.clone().row_reader(columns, known, schema)
    }

    fn split_keys(&self, n: usize) -> Result<Vec<Vec<u8>>, Error> {
        self.0.split_keys(n)
    }
}
