//! The bytes of a run file: encoded, digested block by block, written.

use super::coding::properties;
use super::error::RunError;
use super::meta::{DIGEST_BLOCK_BYTES, RunFormat};
use super::row_groups::RowGroups;
use crate::disk::{DiskError, DiskFile};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::FileWriter;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes after which a file is synced: a device that gets everything at the end has whoever waits for the
/// run, and for the log beside it, wait for all of it.
const SYNC_BYTES: usize = 8 << 20;

/// Bytes on their way to the file, hashed block by block.
struct Sink {
    format: RunFormat,
    file: Box<dyn DiskFile>,
    offset: u64,
    /// Bytes since the file was synced last.
    unsynced: usize,
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
        let mut written = self.file.write_at(self.offset, bytes);
        self.unsynced += bytes.len();
        if self.unsynced >= SYNC_BYTES {
            written = written.and_then(|()| self.file.sync());
            self.unsynced = 0;
        }
        if let Err(e) = written {
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
    /// Waits for the first chunk, which says how columns are encoded.
    Waiting(Sink, SchemaRef),
    Parquet(RowGroups<Sink>),
    /// After beginning a file failed.
    Failed,
}

impl Writer {
    /// The writer of a Parquet file that begins with `first`.
    fn begun(self, first: Option<&RecordBatch>) -> Result<Writer, RunError> {
        let Writer::Waiting(sink, schema) = self else { return Ok(self) };
        let properties = properties(first)?;
        Ok(Writer::Parquet(RowGroups::new(sink, schema, properties)?))
    }
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
            unsynced: 0,
            block: Vec::with_capacity(DIGEST_BLOCK_BYTES),
            digests: Vec::new(),
            failure: failure.clone(),
        };
        let writer = match format {
            RunFormat::Ipc => FileWriter::try_new(sink, schema).map(Writer::Ipc).map_err(RunError::from),
            RunFormat::Parquet => Ok(Writer::Waiting(sink, schema.clone())),
        };
        let writer = writer.map_err(|e| cause(&failure, e))?;
        Ok(Encoder { writer, failure })
    }

    pub fn write(&mut self, chunk: &RecordBatch) -> Result<(), RunError> {
        if let Writer::Waiting(..) = self.writer {
            let waiting = std::mem::replace(&mut self.writer, Writer::Failed);
            self.writer = waiting.begun(Some(chunk)).map_err(|e| cause(&self.failure, e))?;
        }
        let written = match &mut self.writer {
            Writer::Ipc(w) => w.write(chunk).map_err(RunError::from),
            Writer::Parquet(w) => w.write(chunk),
            Writer::Waiting(..) | Writer::Failed => Err(not_begun()),
        };
        written.map_err(|e| cause(&self.failure, e))
    }

    /// Writes bytes behind the chunks so far that no reader of the format looks at; returns where they begin.
    /// In an IPC file no chunk may follow.
    pub fn append(&mut self, bytes: &[u8]) -> Result<u64, RunError> {
        let appended = match &mut self.writer {
            Writer::Ipc(w) => {
                let at = w.get_ref().offset + w.get_ref().block.len() as u64;
                w.get_mut().write_all(bytes).map(|()| at).map_err(|e| RunError::from(ArrowError::from(e)))
            }
            Writer::Parquet(w) => w.append(bytes).map_err(|e| RunError::from(ArrowError::from(e))),
            Writer::Waiting(..) | Writer::Failed => Err(not_begun()),
        };
        appended.map_err(|e| cause(&self.failure, e))
    }

    /// Writes the footer and syncs.
    pub fn finish(self) -> Result<Written, RunError> {
        let writer = self.writer.begun(None).map_err(|e| cause(&self.failure, e))?;
        let sink = match writer {
            Writer::Ipc(mut w) => w.finish().and_then(|()| w.into_inner()).map_err(RunError::from),
            Writer::Parquet(w) => w.into_inner(),
            Writer::Waiting(..) | Writer::Failed => Err(not_begun()),
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

fn not_begun() -> RunError {
    RunError::Encoder("the file could not be begun".into())
}
