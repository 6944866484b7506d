//! Reading frames of one segment, one after the other, with few and bounded reads.

use super::chain::Head;
use super::error::{Damage, LogError};
use super::header::{self, BadHeader, FramePrefix, SegmentHeader, StoreId};
use super::layout::{FRAME_MAGIC, LOG_FORMAT_VERSION, frame, segment};
use crate::disk::{Disk, DiskFile};
use bytes::Bytes;
use std::path::PathBuf;

/// Bytes that are read at once, if the file has them.
const WINDOW_BYTES: u64 = 1 << 20;

/// Where a reader stands in the chain: what the next frame must join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChainPoint {
    pub sequence: u64,
    pub instant_us: i64,
    pub head: Head,
}

/// Reads from one segment. The length is that at opening or less.
#[derive(Debug)]
pub(super) struct SegmentReader {
    file: Box<dyn DiskFile>,
    pub id: u64,
    pub store_id: StoreId,
    pub len: u64,
    window: Bytes,
    window_start: u64,
}

/// A frame whose checksum is right, not parsed yet.
#[derive(Debug)]
pub(super) struct RawFrame {
    pub prefix: FramePrefix,
    pub bytes: Bytes,
}

impl SegmentReader {
    pub(super) fn open(
        disk: &dyn Disk,
        path: &std::path::Path,
        id: u64,
        store_id: StoreId,
        len_max: u64,
    ) -> Result<SegmentReader, LogError> {
        let file = disk.open(path)?;
        let len = file.len()?.min(len_max);
        Ok(SegmentReader { file, id, store_id, len, window: Bytes::new(), window_start: 0 })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.file.path().to_path_buf()
    }

    pub(super) fn damage(&self, offset: u64, what: impl Into<String>) -> Damage {
        Damage { path: self.path(), segment: self.id, offset, what: what.into() }
    }

    /// Bytes `offset..offset + n`, or as many of them as the file has.
    fn bytes(&mut self, offset: u64, n: u64) -> Result<Bytes, LogError> {
        let end = offset.saturating_add(n).min(self.len);
        let n = end.saturating_sub(offset);
        let window_end = self.window_start + self.window.len() as u64;
        if offset < self.window_start || end > window_end {
            let read = n.max(WINDOW_BYTES).min(self.len - offset.min(self.len));
            let mut buffer = vec![0; read as usize];
            self.file.read_at(offset, &mut buffer)?;
            (self.window, self.window_start) = (Bytes::from(buffer), offset);
        }
        let start = (offset - self.window_start) as usize;
        Ok(self.window.slice(start..start + n as usize))
    }

    /// What is in memory from `offset` on, if that is enough for a header; else a new window.
    fn rest_of_window(&mut self, offset: u64) -> Result<Bytes, LogError> {
        let window_end = self.window_start + self.window.len() as u64;
        let rest = window_end.saturating_sub(offset);
        let near = offset >= self.window_start && rest >= frame::BODY as u64;
        self.bytes(offset, if near { rest } else { WINDOW_BYTES })
    }

    /// The header of the segment.
    pub(super) fn header(&mut self) -> Result<Result<SegmentHeader, BadHeader>, LogError> {
        let bytes = self.bytes(0, segment::END as u64)?;
        Ok(SegmentHeader::decode(&bytes, self.store_id, self.id))
    }

    /// The header, or the error that a header gives that must be right.
    pub(super) fn sound_header(&mut self) -> Result<SegmentHeader, LogError> {
        self.header()?.map_err(|bad| self.header_error(bad))
    }

    /// Whether the segment was shrunk: its frames then stand elsewhere than they were written to.
    pub(super) fn is_shrunk(&mut self) -> Result<bool, LogError> {
        Ok(self.header()?.is_ok_and(|header| header.shrunk))
    }

    pub(super) fn header_error(&self, bad: BadHeader) -> LogError {
        let hex = |id: StoreId| crate::hex::encode(&id);
        match bad {
            BadHeader::Damaged(what) => LogError::Damaged(self.damage(0, what)),
            BadHeader::Newer(version) => LogError::NewerVersion {
                path: self.path(),
                what: format!("its log format is {version}, this version knows up to {LOG_FORMAT_VERSION}"),
            },
            BadHeader::OtherStore(found) => {
                LogError::OtherStore { path: self.path(), found: hex(found), own: hex(self.store_id) }
            }
        }
    }

    /// The frame at `offset`, which is before the end. The inner error says why there is none.
    pub(super) fn frame(&mut self, offset: u64) -> Result<Result<RawFrame, &'static str>, LogError> {
        let start = self.bytes(offset, frame::PREFIX_END as u64)?;
        let prefix = match FramePrefix::decode(&start, self.store_id) {
            Ok(prefix) if prefix.segment != self.id => return Ok(Err("the frame is of another segment")),
            Ok(prefix) => prefix,
            Err(what) => return Ok(Err(what)),
        };
        if prefix.frame_bytes() > self.len - offset {
            return Ok(Err("the frame ends beyond the end of the file"));
        }
        let bytes = self.bytes(offset, prefix.frame_bytes())?;
        if !header::crc_is_right(&bytes, self.store_id) {
            return Ok(Err("the checksum of the frame is wrong"));
        }
        Ok(Ok(RawFrame { prefix, bytes }))
    }

    /// The first place from `offset` on where a whole frame of this segment stands with a higher
    /// sequence than `after`: proof that bytes before it were damaged and not just never written.
    pub(super) fn find_frame(&mut self, offset: u64, after: u64) -> Result<Option<u64>, LogError> {
        let mut at = offset;
        while self.len.saturating_sub(at) >= frame::BODY as u64 {
            let bytes = self.rest_of_window(at)?;
            let Some(found) = bytes.windows(4).position(|w| w == FRAME_MAGIC) else {
                at += bytes.len() as u64 - 3;
                continue;
            };
            at += found as u64;
            if at < self.len
                && let Ok(raw) = self.frame(at)?
                && raw.prefix.sequence > after
            {
                return Ok(Some(at));
            }
            at += 1;
        }
        Ok(None)
    }
}

/// Whether a frame joins the chain at `point`. Compares what is written; hashes nothing.
pub(super) fn joins(raw: &RawFrame, head: &header::FrameHead, point: &ChainPoint) -> Result<(), String> {
    let sequence = raw.prefix.sequence;
    if sequence != point.sequence + 1 {
        return Err(format!("commit {sequence} follows commit {}", point.sequence));
    }
    if head.previous != point.head {
        return Err(format!("commit {sequence} belongs to another history than the commit before it"));
    }
    if head.instant_us <= point.instant_us {
        return Err(format!("the instant of commit {sequence} is not after that of the commit before it"));
    }
    Ok(())
}
