//! One query result as one Parquet file.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::io::Write;

/// Writes batches of one schema to a Parquet file, compressed with zstd.
pub struct ParquetFile<W: Write + Send> {
    writer: ArrowWriter<W>,
}

impl<W: Write + Send> ParquetFile<W> {
    /// Begins a file; nothing is complete before [`ParquetFile::finish`].
    ///
    /// # Errors
    /// If a type of the schema has no Parquet form.
    pub fn new(out: W, schema: SchemaRef) -> Result<Self, ParquetError> {
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        Ok(ParquetFile { writer: ArrowWriter::try_new(out, schema, Some(properties))? })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// If writing fails or the batch has another schema.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        self.writer.write(batch)
    }

    /// Writes the footer and hands the output back.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(self) -> Result<W, ParquetError> {
        self.writer.into_inner()
    }
}
