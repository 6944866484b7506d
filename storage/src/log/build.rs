//! Building a frame: encoding, hashing and checksums, away from the log and on any thread.

use super::chain::{self, FrameSecret, Hash, Head, Salts};
use super::error::LogError;
use super::header::{FrameHead, FramePrefix, StoreId, body_crc, frame_crc, put};
use super::layout::*;
use crate::event::put_varint;
use crate::id::TableId;

/// Collects the content of one commit. Sections come first, then row blocks.
#[derive(Debug)]
pub struct FrameBuilder {
    secret: FrameSecret,
    /// The frame with room for its header.
    bytes: Vec<u8>,
    sections: Vec<Hash>,
    blocks: Vec<Hash>,
    rows: u64,
}

/// A frame that lacks only its place in the chain. [`super::Log::append`] gives it that.
#[derive(Debug)]
pub struct SealedFrame {
    secret: FrameSecret,
    bytes: Vec<u8>,
    sections: Vec<Hash>,
    blocks: Vec<Hash>,
    body: crc32fast::Hasher,
    rows: u64,
}

impl FrameBuilder {
    /// An empty frame. The secret must be random and new: see [`crate::clock::Entropy`].
    pub fn new(secret: FrameSecret) -> FrameBuilder {
        let bytes = vec![0; frame::BODY];
        FrameBuilder { secret, bytes, sections: Vec::new(), blocks: Vec::new(), rows: 0 }
    }

    /// The secret that [`hash_rows`](super::hash_rows) takes.
    pub fn secret(&self) -> &FrameSecret {
        &self.secret
    }

    /// Bytes of the frame so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the frame holds neither sections nor rows.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == frame::BODY
    }

    /// Number of rows so far.
    pub fn row_count(&self) -> u64 {
        self.rows
    }

    /// Adds a section.
    ///
    /// # Errors
    /// After the first row block, and if the frame grows beyond [`FRAME_BYTES_MAX`].
    pub fn section(&mut self, kind: u8, bytes: &[u8]) -> Result<(), LogError> {
        if !self.blocks.is_empty() {
            return Err(LogError::Refused("sections come before row blocks".into()));
        }
        self.room(bytes.len() + SECTION_HEADER_BYTES)?;
        let number = self.sections.len() as u64;
        let commitment = chain::commitment(&Salts::sections(&self.secret).get(number), bytes);
        self.sections.push(chain::section_hash(kind, &commitment));
        self.bytes.extend_from_slice(&[kind, SECTION_PLAIN, 0, 0]);
        self.bytes.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Adds rows of a table and hashes them. `ends` are the ends of the rows within `bytes`, so the
    /// last is the length of `bytes`; no row is empty. Order and repeats of tables are kept.
    ///
    /// # Errors
    /// If the ends are none, and if the frame grows beyond [`FRAME_BYTES_MAX`].
    pub fn rows(
        &mut self,
        table: TableId,
        schema_version: u32,
        ends: &[u32],
        bytes: &[u8],
    ) -> Result<(), LogError> {
        check_ends(ends, bytes)?;
        let block = self.blocks.len() as u32;
        let root = chain::hash_rows(&self.secret, block, table, schema_version, ends, bytes);
        self.rows_hashed(table, schema_version, ends, bytes, root)
    }

    /// Adds rows whose root another thread has computed with [`hash_rows`](super::hash_rows), for
    /// the block number that they get here. A wrong root shows only in `verify`.
    ///
    /// # Errors
    /// As [`FrameBuilder::rows`].
    pub fn rows_hashed(
        &mut self,
        table: TableId,
        schema_version: u32,
        ends: &[u32],
        bytes: &[u8],
        root: [u8; HASH_BYTES],
    ) -> Result<(), LogError> {
        check_ends(ends, bytes)?;
        self.room(BLOCK_HEADER_BYTES + 5 * ends.len() + bytes.len())?;
        let start = self.bytes.len();
        self.bytes.reserve(BLOCK_HEADER_BYTES + 2 * ends.len() + bytes.len());
        let rows = ends.len() as u32;
        put_block_header(
            &mut self.bytes,
            BLOCK_ROWS,
            [table.0, schema_version, rows, rows, 0, bytes.len() as u32],
        );
        put_lengths(&mut self.bytes, ends, start);
        self.bytes.extend_from_slice(bytes);
        self.blocks.push(root);
        self.rows += ends.len() as u64;
        Ok(())
    }

    fn room(&self, more: usize) -> Result<(), LogError> {
        let total = self.bytes.len() as u64 + more as u64;
        if total > FRAME_BYTES_MAX {
            return Err(LogError::Refused(format!(
                "it would take {total} bytes, the most is {FRAME_BYTES_MAX}; commit fewer events at once"
            )));
        }
        Ok(())
    }

    /// Closes the frame: computes the checksum of its content.
    pub fn seal(self) -> SealedFrame {
        let body = body_crc(&self.bytes[frame::BODY..]);
        let FrameBuilder { secret, bytes, sections, blocks, rows } = self;
        SealedFrame { secret, bytes, sections, blocks, body, rows }
    }
}

impl SealedFrame {
    /// Bytes that the frame takes in the log.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the frame holds neither sections nor rows.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == frame::BODY
    }

    /// Number of rows.
    pub fn row_count(&self) -> u64 {
        self.rows
    }

    /// Gives the frame its place and its head. Cheap: nothing but the header is touched.
    pub(super) fn place(
        mut self,
        store_id: StoreId,
        segment: u64,
        sequence: u64,
        instant_us: i64,
        previous: Head,
    ) -> (Vec<u8>, Head) {
        let head = chain::frame_head(&previous, sequence, instant_us, &self.sections, &self.blocks);
        let fields = FrameHead {
            sparse: false,
            instant_us,
            secret: self.secret.0,
            previous,
            head,
            sections: self.sections.len() as u32,
            blocks: self.blocks.len() as u32,
        };
        finish(&mut self.bytes, store_id, segment, sequence, &fields, &self.body);
        (self.bytes, head)
    }
}

/// Writes header and checksum over the first bytes of a frame.
pub(super) fn finish(
    bytes: &mut [u8],
    store_id: StoreId,
    segment: u64,
    sequence: u64,
    fields: &FrameHead,
    body: &crc32fast::Hasher,
) {
    let length = (bytes.len() - frame::PREFIX_END) as u64;
    FramePrefix { segment, length, sequence }.encode(bytes, store_id);
    fields.encode(bytes);
    let crc = frame_crc(bytes, store_id, body);
    put(bytes, frame::CRC, crc.to_le_bytes());
}

fn check_ends(ends: &[u32], bytes: &[u8]) -> Result<(), LogError> {
    let ascend = ends.first().is_none_or(|e| *e > 0) && ends.windows(2).all(|w| w[0] < w[1]);
    if !ascend || ends.last().map_or(0, |e| *e as usize) != bytes.len() {
        return Err(LogError::Refused("the ends of its rows do not fit their bytes".into()));
    }
    Ok(())
}

/// Fields: table, schema version, rows, kept rows, bytes of the length list, bytes of the rows.
pub(super) fn put_block_header(out: &mut Vec<u8>, form: u8, fields: [u32; 6]) {
    out.extend_from_slice(&[form, 0, 0, 0]);
    fields.iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
}

/// Appends the lengths of the rows and notes the size of the list in the block header at `header`.
pub(super) fn put_lengths(out: &mut Vec<u8>, ends: &[u32], header: usize) {
    let list = out.len();
    let mut start = 0;
    for end in ends {
        put_varint(out, (end - start) as u64);
        start = *end;
    }
    let list_bytes = (out.len() - list) as u32;
    put(out, header + 20, list_bytes.to_le_bytes());
}
