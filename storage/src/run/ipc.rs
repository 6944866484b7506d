//! Run files in Arrow IPC: columns are used where they are mapped, each checked when it is first
//! asked for and then kept.

use super::check::CheckedFile;
use super::error::RunError;
use super::meta::ChunkMeta;
use arrow::array::{Array, ArrayRef};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::{FileDecoder, read_footer_length};
use arrow::ipc::{Block, MetadataVersion, root_as_footer, root_as_message};
use std::sync::{Arc, OnceLock};

/// Bytes of the length and the magic behind the footer.
const TRAILER_BYTES: usize = 10;
/// Bytes of the continuation mark and the length before a message.
const PREFIX_BYTES: usize = 8;

/// The decoded footer of a file and what was used of its columns.
#[derive(Debug)]
pub(crate) struct IpcFile {
    schema: SchemaRef,
    version: MetadataVersion,
    chunks: Vec<IpcChunk>,
}

#[derive(Debug)]
struct IpcChunk {
    block: Block,
    rows: usize,
    columns: Vec<OnceLock<ArrayRef>>,
}

impl IpcFile {
    pub fn open(file: &CheckedFile, chunks: &[ChunkMeta]) -> Result<IpcFile, RunError> {
        let short = || file.damaged("is too short for an Arrow file");
        let tail = file.bytes_len().checked_sub(TRAILER_BYTES).ok_or_else(short)?;
        let trailer = file.checked(tail, TRAILER_BYTES)?;
        let trailer: [u8; TRAILER_BYTES] = trailer[..].try_into().map_err(|_| short())?;
        let length = read_footer_length(trailer).map_err(|e| file.decoding(&e))?;
        let start = tail.checked_sub(length).ok_or_else(short)?;
        let footer = file.checked(start, length)?;
        let footer = root_as_footer(&footer).map_err(|e| file.damaged(e.to_string()))?;
        let schema = Arc::new(fb_to_schema(footer.schema().ok_or_else(|| file.damaged("has no schema"))?));
        let blocks: Vec<Block> =
            footer.recordBatches().map(|b| b.iter().copied().collect()).unwrap_or_default();
        if blocks.len() != chunks.len() {
            return Err(file.damaged("has another number of chunks than its sidecar"));
        }
        let columns = || schema.fields().iter().map(|_| OnceLock::new()).collect();
        let chunks = blocks.into_iter().zip(chunks);
        let chunks =
            chunks.map(|(block, c)| IpcChunk { block, rows: c.rows as usize, columns: columns() }).collect();
        Ok(IpcFile { version: footer.version(), schema: schema.clone(), chunks })
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// A column of a chunk.
    pub fn column(&self, file: &CheckedFile, chunk: usize, column: usize) -> Result<ArrayRef, RunError> {
        let cell = &self.chunks[chunk].columns[column];
        if let Some(array) = cell.get() {
            return Ok(array.clone());
        }
        let array = self.decode(file, chunk, column)?;
        Ok(cell.get_or_init(|| array).clone())
    }

    /// A column of a chunk, without keeping it.
    pub fn decode(&self, file: &CheckedFile, chunk: usize, column: usize) -> Result<ArrayRef, RunError> {
        let chunk = &self.chunks[chunk];
        let block = &chunk.block;
        let (start, head) = (block.offset() as usize, block.metaDataLength() as usize);
        let message = file.checked(start, head)?;
        let message = message.get(PREFIX_BYTES..).ok_or_else(|| file.damaged("a chunk has no header"))?;
        let message = root_as_message(message).map_err(|e| file.damaged(e.to_string()))?;
        let batch = message.header_as_record_batch();
        let buffers =
            batch.and_then(|b| b.buffers()).ok_or_else(|| file.damaged("a chunk has no columns"))?;
        let first: usize = self.schema.fields()[..column].iter().map(|f| buffers_of(f.data_type())).sum();
        let count = buffers_of(self.schema.field(column).data_type());
        for buffer in buffers.iter().skip(first).take(count) {
            file.checked(start + head + buffer.offset() as usize, buffer.length() as usize)?;
        }
        // The decoder reads the header and the buffers of the one column, which are checked.
        let bytes = Buffer::from(file.unchecked(start, head + block.bodyLength() as usize)?);
        let decoder = FileDecoder::new(self.schema.clone(), self.version).with_projection(vec![column]);
        let batch = decoder.read_record_batch(block, &bytes).map_err(|e| file.decoding(&e))?;
        match batch.and_then(|b| b.columns().first().cloned()) {
            Some(array) if array.len() == chunk.rows => Ok(array),
            _ => Err(file.damaged("a chunk has another number of rows than its sidecar says")),
        }
    }
}

/// Buffers that a column of this type has in a message: validity and values, with offsets between.
fn buffers_of(ty: &DataType) -> usize {
    match ty {
        DataType::Utf8 | DataType::Binary => 3,
        _ => 2,
    }
}
