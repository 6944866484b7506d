//! Rows of Parquet files. A damaged file is an error of the file, not of a row; the reader's panics
//! are caught and are errors too.

mod cells;

use super::Format;
use super::dms::{DmsFile, Parts};
use super::fields::Reject;
use super::options::FormatOptions;
use super::scratch::ScratchBuffer;
use super::shaped::Shape;
use crate::change::{Column, Decoded, Message};
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::error::ArrowError;
use cells::cell;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Type as PhysicalType;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 4096;
/// Room for the text of one row's times and documents, to begin with.
const ROW_BYTES: usize = 64 << 10;

/// Reads the rows of one file.
pub(crate) struct ParquetRows {
    reader: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>,
    batch: Option<Batch>,
    row: u64,
    scratch: ScratchBuffer,
    parts: Parts<'static>,
    dms: Option<DmsFile>,
    shape: Option<Shape>,
    names: Vec<String>,
}

struct Batch {
    names: Vec<String>,
    columns: Vec<ArrayRef>,
    rows: usize,
    next: usize,
}

impl ParquetRows {
    /// Opens a file at a row.
    ///
    /// # Errors
    /// In words, if it is not Parquet or damaged.
    pub fn open(file: File, row: u64) -> Result<ParquetRows, String> {
        let mut names = Vec::new();
        let reader = guarded(|| {
            let options = ArrowReaderOptions::new();
            let found = ArrowReaderMetadata::load(&file, options).map_err(|e| e.to_string())?;
            let schema = without_int96(&found);
            names = schema.fields().iter().map(|f| f.name().clone()).collect();
            let options = ArrowReaderOptions::new().with_schema(schema);
            let metadata =
                ArrowReaderMetadata::try_new(found.metadata().clone(), options).map_err(|e| e.to_string())?;
            let offset =
                usize::try_from(row).map_err(|_| "the row to resume at is beyond the file".to_owned())?;
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
                .with_batch_size(BATCH_ROWS)
                .with_offset(offset)
                .build()
                .map_err(|e| e.to_string())
        })?;
        Ok(ParquetRows { names, ..ParquetRows::over(Box::new(reader), row) })
    }

    /// Rows that are in memory already.
    pub fn of_batches(batches: &[RecordBatch]) -> ParquetRows {
        let batches: Vec<_> = batches.iter().filter(|b| b.num_rows() > 0).cloned().map(Ok).collect();
        ParquetRows::over(Box::new(batches.into_iter()), 0)
    }

    fn over(
        reader: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>,
        row: u64,
    ) -> ParquetRows {
        let scratch = ScratchBuffer::default();
        ParquetRows {
            reader,
            batch: None,
            row,
            scratch,
            parts: Parts::default(),
            dms: None,
            shape: None,
            names: Vec::new(),
        }
    }

    /// The file is one of AWS DMS.
    pub fn set_dms(&mut self, path: &str) {
        self.dms = Some(DmsFile::of_path(path));
    }

    /// Rows have columns about themselves, if their format says so, or their names where none is declared.
    /// The answer is the format.
    pub fn set_shape(&mut self, declared: Option<Format>) -> Format {
        self.shape = match declared {
            None => Shape::of_names(|name| self.names.iter().any(|n| n == name)),
            Some(format) => Shape::of_format(format),
        };
        self.shape.map_or(Format::Parquet, Shape::format)
    }

    /// Reads up to `rows_max` rows, hands each over with its number, and says how many there were;
    /// 0 at the end.
    ///
    /// # Errors
    /// In words, if the file is damaged.
    pub fn read(
        &mut self,
        options: &FormatOptions,
        rows_max: u64,
        sink: &mut dyn FnMut(u64, Decoded<'_>),
    ) -> Result<u64, String> {
        if self.batch.as_ref().is_none_or(|b| b.next == b.rows) {
            let reader = &mut self.reader;
            self.batch = match guarded(|| reader.next().transpose().map_err(|e| e.to_string()))? {
                Some(batch) => Some(Batch::of(&batch)?),
                None => return Ok(0),
            };
        }
        let Some(mut batch) = self.batch.take() else { return Ok(0) };
        let count = ((batch.rows - batch.next) as u64).min(rows_max);
        for _ in 0..count {
            self.one(options, &batch, sink);
            batch.next += 1;
            self.row += 1;
        }
        self.batch = Some(batch);
        Ok(count)
    }

    fn one(&mut self, options: &FormatOptions, batch: &Batch, sink: &mut dyn FnMut(u64, Decoded<'_>)) {
        let ParquetRows { row, scratch, parts, dms, shape, .. } = self;
        let mut p = std::mem::take(parts).recycled();
        let nested = batch.columns.iter().map(|c| cells::text_bytes(c, batch.next)).sum::<usize>();
        let mut scratch = scratch.scratch(ROW_BYTES + nested * 2);
        let message = Message { position: *row, ..Message::default() };
        let mut change = || {
            for (name, array) in batch.names.iter().zip(&batch.columns) {
                let cell = guarded(|| cell(array, batch.next, &mut scratch))
                    .map_err(|reason| Reject::new(format!("column `{name}`: {reason}")))?;
                p.columns.push(Column { name, cell });
            }
            p.change(dms.as_ref(), *shape, options, &message, &mut scratch)
        };
        let change = change();
        match change {
            _ if scratch.overflowed() => {
                let reject = Reject::new("the row needs more room than it should");
                sink(*row, Decoded::Quarantine(reject.fault()));
            }
            Ok(change) => p.hand_out(change, &mut |decoded| sink(*row, decoded)),
            Err(reject) => sink(*row, Decoded::Quarantine(reject.fault())),
        }
        *parts = p.recycled();
    }
}

impl Batch {
    fn of(batch: &RecordBatch) -> Result<Batch, String> {
        let names = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
        let plain = |array: &ArrayRef| match array.data_type() {
            DataType::Dictionary(_, value) => {
                guarded(|| arrow::compute::cast(array, value).map_err(|e| e.to_string()))
            }
            _ => Ok(array.clone()),
        };
        let columns = batch.columns().iter().map(plain).collect::<Result<_, String>>()?;
        Ok(Batch { names, columns, rows: batch.num_rows(), next: 0 })
    }
}

/// The file's schema with INT96 as microseconds: nanoseconds would wrap around outside of 1677 to
/// 2262 without a word.
fn without_int96(found: &ArrowReaderMetadata) -> Arc<Schema> {
    let parquet = found.metadata().file_metadata().schema_descr();
    let roots = parquet.root_schema().get_fields();
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let fields = found.schema().fields().iter().enumerate().map(|(i, field)| {
        let int96 =
            roots.get(i).is_some_and(|t| t.is_primitive() && t.get_physical_type() == PhysicalType::INT96);
        if int96 {
            Arc::new(Field::new(field.name(), micros.clone(), field.is_nullable()))
        } else {
            field.clone()
        }
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), found.schema().metadata().clone()))
}

/// Runs code of the reader on data that nobody has checked.
fn guarded<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("the file is damaged".to_owned()))
}

#[cfg(test)]
#[path = "parquet_tests.rs"]
mod tests;
