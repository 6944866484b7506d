//! Parquet and Arrow IPC streams, for programs.

use super::{Renderer, Sink};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::StreamWriter;
use asofdb::export::ParquetFile as Writer;
use std::error::Error;
use std::io;

/// Writes an Arrow IPC stream.
pub struct ArrowFile {
    out: Option<Sink>,
    writer: Option<StreamWriter<Sink>>,
}

impl ArrowFile {
    /// A stream to `out`.
    pub fn new(out: Sink) -> ArrowFile {
        ArrowFile { out: Some(out), writer: None }
    }
}

fn second_result() -> io::Error {
    io::Error::other("a file holds one result; run one question at a time")
}

/// Keeps the kind of an input/output error that is wrapped: a closed pipe must stay one.
fn io_error(error: impl Error + Send + Sync + 'static) -> io::Error {
    let mut inner: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(cause) = inner {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return io::Error::new(io.kind(), error.to_string());
        }
        inner = cause.source();
    }
    io::Error::other(error)
}

impl Renderer for ArrowFile {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        let out = self.out.take().ok_or_else(second_result)?;
        self.writer = Some(StreamWriter::try_new(out, schema).map_err(io_error)?);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), |w| w.write(batch).map_err(io_error))
    }

    fn end(&mut self) -> io::Result<Vec<String>> {
        if let Some(mut writer) = self.writer.take() {
            writer.finish().map_err(io_error)?;
            writer.into_inner().map_err(io_error)?.flush()?;
        }
        Ok(Vec::new())
    }
}

/// Writes a Parquet file.
pub struct ParquetFile {
    out: Option<Sink>,
    writer: Option<Writer<Sink>>,
}

impl ParquetFile {
    /// A file to `out`.
    pub fn new(out: Sink) -> ParquetFile {
        ParquetFile { out: Some(out), writer: None }
    }
}

impl Renderer for ParquetFile {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        let out = self.out.take().ok_or_else(second_result)?;
        self.writer = Some(Writer::new(out, schema.clone()).map_err(io_error)?);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), |w| w.write(batch).map_err(io_error))
    }

    fn end(&mut self) -> io::Result<Vec<String>> {
        if let Some(writer) = self.writer.take() {
            writer.finish().map_err(io_error)?.flush()?;
        }
        Ok(Vec::new())
    }
}
