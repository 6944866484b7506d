//! The bytes of a run file: encoded, digested block by block, written.

use super::error::RunError;
use super::meta::{DIGEST_BLOCK_BYTES, RunFormat, SPARSE_ROWS};
use crate::disk::{DiskError, DiskFile};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes on their way to the file, hashed block by block.
struct Sink {
    format: RunFormat,
    file: Box<dyn DiskFile>,
    offset: u64,
    block: Vec<u8>,
    digests: Vec<u8>,
    failure: Failure,
}

/// What the disk said when a write failed: an encoder passes on only the text of it.
type Failure = Arc<Mutex<Option<DiskError>>>;

impl Sink {
    fn flush_block(&mut self) -> std::io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.format.put_digest(&mut self.digests, &self.block);
        let block = std::mem::take(&mut self.block);
        let written = self.put(&block);
        self.block = block;
        self.block.clear();
        written
    }

    /// Writes as many whole blocks as there are, as they are; how many bytes.
    fn write_blocks(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let whole = &bytes[..bytes.len() / DIGEST_BLOCK_BYTES * DIGEST_BLOCK_BYTES];
        whole.chunks(DIGEST_BLOCK_BYTES).for_each(|b| self.format.put_digest(&mut self.digests, b));
        self.put(whole)?;
        Ok(whole.len())
    }

    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if let Err(e) = self.file.write_at(self.offset, bytes) {
            let passed_on = std::io::Error::other(e.to_string());
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
            return Err(passed_on);
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.block.is_empty() && bytes.len() >= DIGEST_BLOCK_BYTES {
            return self.write_blocks(bytes);
        }
        let n = bytes.len().min(DIGEST_BLOCK_BYTES - self.block.len());
        self.block.extend_from_slice(&bytes[..n]);
        if self.block.len() == DIGEST_BLOCK_BYTES {
            self.flush_block()?;
        }
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[allow(clippy::large_enum_variant)]
enum Writer {
    Ipc(FileWriter<Sink>),
    Parquet(ArrowWriter<Sink>),
}

/// Encodes chunks into a file.
pub(crate) struct Encoder {
    writer: Writer,
    failure: Failure,
}

/// A file whose bytes are durable.
pub(crate) struct Written {
    pub bytes: u64,
    /// Digest of each block.
    pub digests: Vec<u8>,
}

impl Encoder {
    pub fn new(format: RunFormat, file: Box<dyn DiskFile>, schema: &SchemaRef) -> Result<Encoder, RunError> {
        let failure = Failure::default();
        let sink = Sink {
            format,
            file,
            offset: 0,
            block: Vec::with_capacity(DIGEST_BLOCK_BYTES),
            digests: Vec::new(),
            failure: failure.clone(),
        };
        let writer = match format {
            RunFormat::Ipc => FileWriter::try_new(sink, schema).map(Writer::Ipc).map_err(RunError::from),
            RunFormat::Parquet => ArrowWriter::try_new(sink, schema.clone(), Some(properties()))
                .map(Writer::Parquet)
                .map_err(RunError::from),
        };
        let writer = writer.map_err(|e| cause(&failure, e))?;
        Ok(Encoder { writer, failure })
    }

    pub fn write(&mut self, chunk: &RecordBatch) -> Result<(), RunError> {
        let written = match &mut self.writer {
            Writer::Ipc(w) => w.write(chunk).map_err(RunError::from),
            Writer::Parquet(w) => w.write(chunk).and_then(|()| w.flush()).map_err(RunError::from),
        };
        written.map_err(|e| cause(&self.failure, e))
    }

    /// Writes the footer and syncs.
    pub fn finish(self) -> Result<Written, RunError> {
        let sink = match self.writer {
            Writer::Ipc(mut w) => w.finish().and_then(|()| w.into_inner()).map_err(RunError::from),
            Writer::Parquet(w) => w.into_inner().map_err(RunError::from),
        };
        let sink = sink.and_then(|mut sink| {
            sink.flush_block().map_err(ArrowError::from)?;
            Ok(sink)
        });
        let mut sink = sink.map_err(|e| cause(&self.failure, e))?;
        sink.file.sync()?;
        Ok(Written { bytes: sink.offset, digests: sink.digests })
    }
}

/// The error of the disk if there was one, else what the encoder said.
fn cause(failure: &Failure, said: RunError) -> RunError {
    let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    failure.map_or(said, RunError::Disk)
}

/// Bytes of distinct values of a chunk up to which a column has a dictionary.
const DICTIONARY_BYTES_MAX: usize = 32 << 10;

/// What a compressed page may have at most of its bytes without compression, else it is not compressed.
const COMPRESSION_RATIO_MAX: f64 = 0.9;

fn properties() -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(usize::MAX))
        .set_data_page_row_count_limit(SPARSE_ROWS)
        .set_write_batch_size(SPARSE_ROWS)
        // Pages of the second version stay as they are where compression gains too little for its time.
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_data_page_v2_compression_ratio_threshold(COMPRESSION_RATIO_MAX)
        // A look-up of one key decodes the whole dictionary of each column it reads.
        .set_dictionary_page_size_limit(DICTIONARY_BYTES_MAX)
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None);
    for name in ["key_no", "valid_from", "system", "commit", "position", "event_time"] {
        let path = ColumnPath::from(name);
        builder = builder
            .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
            .set_column_dictionary_enabled(path, false);
    }
    let key = ColumnPath::from("key");
    builder
        .set_column_encoding(key.clone(), Encoding::DELTA_BYTE_ARRAY)
        .set_column_dictionary_enabled(key, false)
        .build()
}
