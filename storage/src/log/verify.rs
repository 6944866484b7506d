//! Checking everything: checksums, content hashes, the chain, and a head kept elsewhere.

use super::chain::{Head, genesis};
use super::error::{Damage, LogError};
use super::frame::Frame;
use super::header::{self, FrameHead, StoreId};
use super::layout::segment;
use super::open::segment_ids;
use super::read::{beginning, check_joint, parse, point_after};
use super::reader::{ChainPoint, RawFrame, SegmentReader, joins};
use crate::disk::Disk;
use crate::time::CommitSeq;
use std::path::Path;

/// What [`super::Log::verify`] found.
#[derive(Clone, Debug)]
pub struct VerifyReport {
    /// Segments that were read.
    pub segments: u64,
    /// Frames that were read.
    pub frames: u64,
    /// Rows that are in the log.
    pub rows: u64,
    /// Rows that were committed and are no longer in the log: erased or digested.
    pub rows_gone: u64,
    /// Everything that is not as it was written, in order.
    pub damage: Vec<Damage>,
    /// Bytes of an unfinished commit at the very end; opening for writing cuts them off.
    pub torn_tail: Option<Damage>,
    /// Number of the last whole frame.
    pub last: CommitSeq,
    /// Head of the chain after it.
    pub head: Head,
    /// The head that was asked for.
    pub expected: Option<Head>,
    /// The commit that it is the head of; `None` if it is not in the chain.
    pub expected_at: Option<CommitSeq>,
}

impl VerifyReport {
    /// Whether nothing is damaged and the head that was asked for, if any, is in the chain.
    pub fn is_clean(&self) -> bool {
        self.damage.is_empty() && (self.expected.is_none() || self.expected_at.is_some())
    }

    fn meet(&mut self, head: Head, sequence: u64) {
        if self.expected == Some(head) {
            self.expected_at = Some(CommitSeq(sequence));
        }
    }
}

/// Reads the segments in `dir` up to `end` (segment and byte), or all of them.
pub(super) fn verify(
    disk: &dyn Disk,
    dir: &Path,
    store_id: StoreId,
    end: Option<(u64, u64)>,
    expected: Option<Head>,
) -> Result<VerifyReport, LogError> {
    let start = genesis(store_id);
    let mut report = VerifyReport {
        segments: 0,
        frames: 0,
        rows: 0,
        rows_gone: 0,
        damage: Vec::new(),
        torn_tail: None,
        last: CommitSeq(0),
        head: start,
        expected,
        expected_at: None,
    };
    report.meet(start, 0);
    let ids = if disk.exists(dir)? { segment_ids(disk, dir)? } else { Vec::new() };
    let last_id = end.map_or(ids.last().copied().unwrap_or(0), |(id, _)| id);
    let mut walk = Walk { report, point: Some(beginning(start)) };
    let mut expected_id = 1;
    for id in ids.iter().copied().filter(|id| *id <= last_id) {
        walk.gap(dir, expected_id..id);
        expected_id = id + 1;
        let len_max = end.filter(|(last, _)| *last == id).map_or(u64::MAX, |(_, len)| len);
        let path = header::segment_path(dir, id);
        let mut reader = SegmentReader::open(disk, &path, id, store_id, len_max)?;
        walk.segment(&mut reader, id == last_id)?;
    }
    walk.gap(dir, expected_id..last_id.saturating_add(1));
    Ok(walk.report)
}

struct Walk {
    report: VerifyReport,
    /// Where the chain stands; `None` after damage, when the next frame is taken as it is.
    point: Option<ChainPoint>,
}

impl Walk {
    fn damage(&mut self, reader: &SegmentReader, offset: u64, what: impl Into<String>) {
        self.report.damage.push(reader.damage(offset, what));
    }

    /// Notes segments that are not there. One entry for all: file names can make a gap very wide.
    fn gap(&mut self, dir: &Path, missing: std::ops::Range<u64>) {
        if missing.is_empty() {
            return;
        }
        let what = match missing.end - missing.start {
            1 => "the segment is missing".to_string(),
            n => format!("the segment and {} after it are missing", n - 1),
        };
        let (path, segment) = (header::segment_path(dir, missing.start), missing.start);
        self.report.damage.push(Damage { path, segment, offset: 0, what });
        self.point = None;
    }

    fn note(&mut self, error: LogError, reader: &SegmentReader, offset: u64) -> Result<(), LogError> {
        match error {
            LogError::Disk(e) => return Err(e.into()),
            LogError::Damaged(damage) => self.report.damage.push(damage),
            other => self.damage(reader, offset, other.to_string()),
        }
        Ok(())
    }

    fn segment(&mut self, reader: &mut SegmentReader, is_last: bool) -> Result<(), LogError> {
        self.report.segments += 1;
        match reader.header()? {
            Ok(header) => {
                if let Some(point) = &self.point
                    && let Err(e) = check_joint(reader, &header, point)
                {
                    self.note(e, reader, 0)?;
                    self.point = None;
                }
            }
            Err(header::BadHeader::Damaged(what)) if is_last && reader.find_frame(0, 0)?.is_none() => {
                self.report.torn_tail = Some(reader.damage(0, what));
                return Ok(());
            }
            Err(bad) => {
                let error = reader.header_error(bad);
                self.note(error, reader, 0)?;
                self.point = None;
            }
        }
        let mut offset = segment::END as u64;
        while offset < reader.len {
            offset = match reader.frame(offset)? {
                Ok(raw) => {
                    self.frame(reader, &raw, offset)?;
                    offset + raw.prefix.frame_bytes()
                }
                Err(what) => match self.resume(reader, offset, what, is_last)? {
                    Some(next) => next,
                    None => return Ok(()),
                },
            };
        }
        Ok(())
    }

    /// Notes bytes that are no frame; gives the place of the next frame in the segment.
    fn resume(
        &mut self,
        reader: &mut SegmentReader,
        offset: u64,
        what: &str,
        is_last: bool,
    ) -> Result<Option<u64>, LogError> {
        let after = self.report.last.0;
        let next = reader.find_frame(offset, after)?;
        if next.is_none() && is_last {
            self.report.torn_tail = Some(reader.damage(offset, what));
        } else {
            self.damage(reader, offset, what);
            self.point = None;
        }
        Ok(next)
    }

    fn frame(&mut self, reader: &SegmentReader, raw: &RawFrame, offset: u64) -> Result<(), LogError> {
        self.report.frames += 1;
        let head = match FrameHead::decode(&raw.bytes) {
            Ok(head) => head,
            Err(what) => {
                self.damage(reader, offset, format!("{what}, which needs a newer version"));
                self.point = None;
                return Ok(());
            }
        };
        if let Some(point) = &self.point
            && let Err(what) = joins(raw, &head, point)
        {
            self.damage(reader, offset, what);
        }
        match parse(reader, raw, offset) {
            Ok(frame) => self.content(reader, &frame, offset),
            Err(e) => self.note(e, reader, offset)?,
        }
        self.report.last = CommitSeq(raw.prefix.sequence);
        self.report.head = head.head;
        self.point = Some(point_after(raw, &head));
        Ok(())
    }

    fn content(&mut self, reader: &SegmentReader, frame: &Frame, offset: u64) {
        for block in &frame.blocks {
            self.report.rows += block.len() as u64;
            self.report.rows_gone += block.committed_rows as u64 - block.len() as u64;
        }
        if frame.computed_head() == Some(frame.head) {
            self.report.meet(frame.head, frame.sequence.0);
        } else {
            let what = format!("the content of commit {} does not match its hash", frame.sequence);
            self.damage(reader, offset, what);
        }
    }
}
