//! One file of an export while it is written. Rows go in by batches of one size, so that the same rows
//! make the same bytes however the store handed them over.

use super::manifest::ExportedFile;
use super::parquet_file::{FileForm, ParquetFile};
use super::place::{OutFile, Place};
use crate::error::{Error, Result};
use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{BatchCoalescer, take_record_batch};
use arrow::datatypes::SchemaRef;
use std::collections::BTreeMap;
use std::path::Path;

/// Rows that are handed to the encoder at once.
const BATCH_ROWS: usize = 8_192;

/// A file that takes rows.
pub(crate) struct OpenFile {
    writer: ParquetFile<OutFile>,
    batches: BatchCoalescer,
    path: String,
    partition: BTreeMap<String, Option<String>>,
    rows: u64,
    /// When it last took rows, in calls.
    pub used: u64,
}

pub(crate) fn wrong(what: &str, path: &str, e: &dyn std::fmt::Display) -> Error {
    Error::failed(format!("cannot {what} {path}: {e}"))
}

impl OpenFile {
    /// Creates the file `path` below `dir`.
    pub fn create(
        place: &Place,
        dir: &Path,
        path: String,
        schema: &SchemaRef,
        form: &FileForm,
        partition: BTreeMap<String, Option<String>>,
    ) -> Result<OpenFile> {
        let whole = dir.join(&path);
        if let Some(parent) = whole.parent() {
            place.create_dirs(parent)?;
        }
        let out = place.create(&whole)?;
        let writer =
            ParquetFile::with_form(out, schema.clone(), form).map_err(|e| wrong("begin", &path, &e))?;
        let batches = BatchCoalescer::new(schema.clone(), BATCH_ROWS);
        Ok(OpenFile { writer, batches, path, partition, rows: 0, used: 0 })
    }

    /// Appends the rows of a batch with these numbers; `None` = all.
    pub fn write(&mut self, batch: &RecordBatch, rows: Option<Vec<u32>>) -> Result<()> {
        let failed = |path: &str, e: &dyn std::fmt::Display| wrong("write", path, e);
        let batch = match rows {
            None => batch.clone(),
            Some(rows) => {
                take_record_batch(batch, &UInt32Array::from(rows)).map_err(|e| failed(&self.path, &e))?
            }
        };
        self.rows += batch.num_rows() as u64;
        self.batches.push_batch(batch).map_err(|e| failed(&self.path, &e))?;
        while let Some(full) = self.batches.next_completed_batch() {
            self.writer.write(&full).map_err(|e| failed(&self.path, &e))?;
        }
        Ok(())
    }

    pub fn memory_bytes(&self) -> usize {
        self.writer.memory_bytes() + self.batches.size()
    }

    /// Bytes the file will have, about.
    pub fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Makes room in memory.
    pub fn end_row_group(&mut self) -> Result<()> {
        self.writer.end_row_group().map_err(|e| wrong("write", &self.path, &e))
    }

    /// Completes the file and makes it durable.
    pub fn close(mut self) -> Result<ExportedFile> {
        let failed = |e: &dyn std::fmt::Display| wrong("write", &self.path, e);
        self.batches.finish_buffered_batch().map_err(|e| failed(&e))?;
        while let Some(rest) = self.batches.next_completed_batch() {
            self.writer.write(&rest).map_err(|e| failed(&e))?;
        }
        let out = self.writer.finish().map_err(|e| wrong("write", &self.path, &e))?;
        let written = out.close()?;
        Ok(ExportedFile {
            path: self.path,
            rows: self.rows,
            bytes: written.bytes,
            sha256: written.sha256,
            partition: self.partition,
        })
    }
}
