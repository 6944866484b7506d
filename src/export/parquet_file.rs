//! One Parquet file, written batch by batch.

use super::options::ExportCompression;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::io::Write;

/// Writes batches of one schema to a Parquet file.
pub struct ParquetFile<W: Write + Send> {
    writer: ArrowWriter<W>,
}

/// What distinguishes the files of an export from those of an answer.
#[derive(Clone, Debug)]
pub(crate) struct FileForm {
    pub compression: ExportCompression,
    pub row_group_rows_max: usize,
    /// What a file says of itself.
    pub notes: Vec<(String, String)>,
}

impl<W: Write + Send> ParquetFile<W> {
    /// Begins a file, compressed with zstd; nothing is complete before [`ParquetFile::finish`].
    ///
    /// # Errors
    /// If a type of the schema has no Parquet form.
    pub fn new(out: W, schema: SchemaRef) -> Result<Self, ParquetError> {
        let compression = ExportCompression::default();
        ParquetFile::with_form(
            out,
            schema,
            &FileForm { compression, row_group_rows_max: 1 << 20, notes: Vec::new() },
        )
    }

    pub(crate) fn with_form(out: W, schema: SchemaRef, form: &FileForm) -> Result<Self, ParquetError> {
        let FileForm { compression, row_group_rows_max, notes } = form;
        let notes = notes.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        let properties = WriterProperties::builder()
            .set_compression(compression.codec())
            .set_max_row_group_row_count(Some(*row_group_rows_max))
            .set_created_by(concat!("asofdb ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(notes))
            .build();
        Ok(ParquetFile { writer: ArrowWriter::try_new(out, schema, Some(properties))? })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// If writing fails or the batch has another schema.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        self.writer.write(batch)
    }

    /// Memory that rows of the open row group take, bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.writer.memory_size()
    }

    /// Bytes the file will have, about.
    pub(crate) fn bytes(&self) -> u64 {
        (self.writer.bytes_written() + self.writer.in_progress_size()) as u64
    }

    /// Ends the open row group early.
    pub(crate) fn end_row_group(&mut self) -> Result<(), ParquetError> {
        self.writer.flush()
    }

    /// Writes the footer and hands the output back.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(self) -> Result<W, ParquetError> {
        self.writer.into_inner()
    }
}
