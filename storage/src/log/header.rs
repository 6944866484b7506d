//! Headers of segments and frames, and their checksums.

use super::chain::Head;
use super::layout::*;
use crc32fast::Hasher;
use std::path::{Path, PathBuf};

/// The number that every checksum starts from: bytes of another store, or pasted by somebody who
/// does not know the id, are no frame of this one.
pub(super) type StoreId = [u8; 16];

pub(super) fn put<const N: usize>(to: &mut [u8], at: usize, bytes: [u8; N]) {
    to[at..at + N].copy_from_slice(&bytes);
}

pub(super) fn get<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&from[at..at + N]);
    out
}

pub(super) fn get_u32(from: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(get(from, at))
}

pub(super) fn get_u64(from: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(get(from, at))
}

/// Path of a segment.
pub(super) fn segment_path(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:0digits$}{SEGMENT_SUFFIX}", digits = SEGMENT_DIGITS))
}

/// Number of the segment that a file name stands for; `None` for other files.
pub(super) fn segment_id(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_suffix(SEGMENT_SUFFIX)?;
    let plain = digits.len() >= SEGMENT_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|id| plain && *id > 0)
}

/// The header of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub store_id: StoreId,
    pub id: u64,
    pub first_sequence: u64,
    pub instant_before: i64,
    pub head_before: Head,
    /// Whether frames were written anew without the rows of some blocks.
    pub shrunk: bool,
    /// Whether rows that are written now may not go into it.
    pub outdated: bool,
}

/// Why bytes are not a segment header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadHeader {
    Damaged(&'static str),
    Newer(u32),
    OtherStore(StoreId),
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> [u8; segment::END] {
        let mut out = [0; segment::END];
        put(&mut out, 0, SEGMENT_MAGIC);
        let version = if self.shrunk { SEGMENT_SHRUNK } else { SEGMENT_WHOLE };
        put(&mut out, segment::VERSION, version.to_le_bytes());
        put(&mut out, segment::HEADER_BYTES, (segment::END as u32).to_le_bytes());
        put(&mut out, segment::STORE_ID, self.store_id);
        put(&mut out, segment::ID, self.id.to_le_bytes());
        put(&mut out, segment::FIRST_SEQUENCE, self.first_sequence.to_le_bytes());
        put(&mut out, segment::INSTANT_BEFORE, self.instant_before.to_le_bytes());
        put(&mut out, segment::HEAD_BEFORE, self.head_before.0);
        let crc = crc32fast::hash(&out[..segment::CRC]);
        put(&mut out, segment::CRC, crc.to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8], store_id: StoreId, id: u64) -> Result<SegmentHeader, BadHeader> {
        let bad = |what| Err(BadHeader::Damaged(what));
        if bytes.len() < segment::END {
            return bad("the segment header ends too early");
        }
        if bytes[..8] != SEGMENT_MAGIC {
            return bad("this is not a segment of a log");
        }
        if crc32fast::hash(&bytes[..segment::CRC]) != get_u32(bytes, segment::CRC) {
            return bad("the checksum of the segment header is wrong");
        }
        if bytes[segment::CRC + 4..segment::END] != [0; 4] {
            return bad("the segment header does not end with zeros");
        }
        let version = get_u32(bytes, segment::VERSION);
        if version > LOG_FORMAT_VERSION {
            return Err(BadHeader::Newer(version));
        }
        let found = get(bytes, segment::STORE_ID);
        if found != store_id {
            return Err(BadHeader::OtherStore(found));
        }
        if get_u64(bytes, segment::ID) != id {
            return bad("the segment has another number than its file name says");
        }
        Ok(SegmentHeader {
            store_id,
            id,
            first_sequence: get_u64(bytes, segment::FIRST_SEQUENCE),
            instant_before: i64::from_le_bytes(get(bytes, segment::INSTANT_BEFORE)),
            head_before: Head(get(bytes, segment::HEAD_BEFORE)),
            shrunk: matches!(version, SEGMENT_SHRUNK | SEGMENT_SHRUNK_BEFORE),
            outdated: matches!(version, SEGMENT_WHOLE_BEFORE | SEGMENT_SHRUNK_BEFORE),
        })
    }
}

/// The first bytes of a frame, which say how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FramePrefix {
    pub segment: u64,
    pub length: u64,
    pub sequence: u64,
}

impl FramePrefix {
    /// Bytes of the whole frame.
    pub(super) fn frame_bytes(&self) -> u64 {
        frame::PREFIX_END as u64 + self.length
    }

    /// Reads and checks the prefix of a frame.
    pub(super) fn decode(bytes: &[u8], store_id: StoreId) -> Result<FramePrefix, &'static str> {
        if bytes.len() < frame::PREFIX_END {
            return Err("a frame header ends too early");
        }
        if bytes[..4] != FRAME_MAGIC {
            return Err("there is no frame");
        }
        if header_crc(bytes, store_id) != get_u32(bytes, frame::HEADER_CRC) {
            return Err("the checksum of the frame header is wrong");
        }
        let length = get_u64(bytes, frame::LENGTH);
        let least = (frame::BODY - frame::PREFIX_END) as u64;
        if length < least || length > FRAME_BYTES_MAX {
            return Err("the length of the frame is out of bounds");
        }
        let (segment, sequence) = (get_u64(bytes, frame::SEGMENT_ID), get_u64(bytes, frame::SEQUENCE));
        Ok(FramePrefix { segment, length, sequence })
    }

    /// Writes the prefix over the first bytes of `out`.
    pub(super) fn encode(&self, out: &mut [u8], store_id: StoreId) {
        put(out, 0, FRAME_MAGIC);
        put(out, frame::SEGMENT_ID, self.segment.to_le_bytes());
        put(out, frame::LENGTH, self.length.to_le_bytes());
        put(out, frame::SEQUENCE, self.sequence.to_le_bytes());
        let crc = header_crc(out, store_id);
        put(out, frame::HEADER_CRC, crc.to_le_bytes());
    }
}

fn header_crc(bytes: &[u8], store_id: StoreId) -> u32 {
    let mut crc = Hasher::new();
    crc.update(&store_id);
    crc.update(&bytes[frame::SEGMENT_ID..frame::PREFIX_END]);
    crc.finalize()
}

/// The checksum of a whole frame, given that of its body (all from [`frame::BODY`] on).
pub(super) fn frame_crc(bytes: &[u8], store_id: StoreId, body: &Hasher) -> u32 {
    let mut crc = Hasher::new();
    crc.update(&store_id);
    crc.update(&bytes[frame::SEGMENT_ID..frame::PREFIX_END]);
    crc.update(&bytes[frame::KIND..frame::BODY]);
    crc.combine(body);
    crc.finalize()
}

/// The checksum of a body.
pub(super) fn body_crc(body: &[u8]) -> Hasher {
    let mut crc = Hasher::new();
    crc.update(body);
    crc
}

/// Whether the checksum of a whole frame is right.
pub(super) fn crc_is_right(bytes: &[u8], store_id: StoreId) -> bool {
    frame_crc(bytes, store_id, &body_crc(&bytes[frame::BODY..])) == get_u32(bytes, frame::CRC)
}

/// What the header of a frame says beyond its prefix.
#[derive(Clone, Debug)]
pub(super) struct FrameHead {
    pub sparse: bool,
    pub instant_us: i64,
    pub secret: [u8; 32],
    pub previous: Head,
    pub head: Head,
    pub sections: u32,
    pub blocks: u32,
}

impl FrameHead {
    /// Writes all of the header between prefix and body but the checksum.
    pub(super) fn encode(&self, out: &mut [u8]) {
        out[frame::KIND] = KIND_COMMIT;
        out[frame::FLAGS] = if self.sparse { FLAG_SPARSE } else { 0 };
        put(out, frame::RESERVED, [0; 2]);
        put(out, frame::INSTANT, self.instant_us.to_le_bytes());
        put(out, frame::SECRET, self.secret);
        put(out, frame::PREVIOUS, self.previous.0);
        put(out, frame::HEAD, self.head.0);
        put(out, frame::SECTIONS, self.sections.to_le_bytes());
        put(out, frame::BLOCKS, self.blocks.to_le_bytes());
    }

    /// Reads the header of a frame whose checksum is right. The error says what only a newer
    /// version knows.
    pub(super) fn decode(bytes: &[u8]) -> Result<FrameHead, String> {
        match bytes[frame::KIND] {
            KIND_COMMIT => {}
            KIND_CHECKPOINT => return Err("the log holds a checkpoint frame".into()),
            other => return Err(format!("the log holds a frame of kind {other}")),
        }
        let flags = bytes[frame::FLAGS];
        if flags & !FLAG_SPARSE != 0 || get::<2>(bytes, frame::RESERVED) != [0; 2] {
            return Err(format!("the log holds a frame with flags {flags:#04x}"));
        }
        Ok(FrameHead {
            sparse: flags & FLAG_SPARSE != 0,
            instant_us: i64::from_le_bytes(get(bytes, frame::INSTANT)),
            secret: get(bytes, frame::SECRET),
            previous: Head(get(bytes, frame::PREVIOUS)),
            head: Head(get(bytes, frame::HEAD)),
            sections: get_u32(bytes, frame::SECTIONS),
            blocks: get_u32(bytes, frame::BLOCKS),
        })
    }
}
