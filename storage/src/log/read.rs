//! Reading the log from any place to its end.

use super::chain::Head;
use super::error::LogError;
use super::frame::Frame;
use super::header::{self, FrameHead, StoreId};
use super::layout::segment;
use super::parse::{ParseError, parse_frame};
use super::reader::{ChainPoint, RawFrame, SegmentReader, joins};
use crate::disk::Disk;
use crate::time::CommitSeq;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// Where a frame stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramePlace {
    /// Number of the segment.
    pub segment: u64,
    /// First byte of the frame in the segment.
    pub offset: u64,
    /// Bytes of the frame.
    pub bytes: u64,
    /// Number of the commit.
    pub sequence: CommitSeq,
}

impl FramePlace {
    /// The byte after the frame.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

/// Where reading starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the oldest frame.
    Oldest,
    /// After this frame, which must stand there.
    After(FramePlace),
}

/// The frames from a place to the end that the log had when the reader was made. Ends after the
/// first error.
#[derive(Debug)]
pub struct LogReader {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) store_id: StoreId,
    /// Segment and byte where reading ends.
    pub(super) end: (u64, u64),
    pub(super) at: Option<Position>,
}

/// The next frame to read.
#[derive(Debug)]
pub(super) struct Position {
    pub reader: SegmentReader,
    pub offset: u64,
    pub point: ChainPoint,
}

impl LogReader {
    /// A reader whose next frame is the one after `start`; `None` stands for the header of `oldest`.
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        store_id: StoreId,
        oldest: u64,
        end: (u64, u64),
        start: Start,
    ) -> Result<LogReader, LogError> {
        let mut log = LogReader { disk, dir, store_id, end, at: None };
        let position = match start {
            Start::Oldest => {
                let mut reader = log.segment(oldest)?;
                let header = reader.sound_header()?;
                let point = point_before(&header);
                Position { reader, offset: segment::END as u64, point }
            }
            Start::After(place) => {
                let mut reader = log.segment(place.segment)?;
                let (_, place, point) = frame_at(&mut reader, place)?;
                Position { reader, offset: place.end(), point }
            }
        };
        log.at = Some(position);
        Ok(log)
    }

    fn segment(&self, id: u64) -> Result<SegmentReader, LogError> {
        let path = header::segment_path(&self.dir, id);
        let open = |len_max| match SegmentReader::open(&*self.disk, &path, id, self.store_id, len_max) {
            Err(LogError::Disk(e)) if e.is_not_found() => {
                Err(LogError::Missing { segment: id, path: path.clone() })
            }
            other => other,
        };
        if id != self.end.0 {
            return open(u64::MAX);
        }
        let mut reader = open(self.end.1)?;
        // The end was a place of the segment as it was written; one that was shrunk is whole.
        if reader.is_shrunk()? { open(u64::MAX) } else { Ok(reader) }
    }

    /// Where the chain stands after the last frame of a segment.
    pub(super) fn end_of(reader: &mut SegmentReader) -> Result<ChainPoint, LogError> {
        let header = reader.sound_header()?;
        let mut point = point_before(&header);
        let mut offset = segment::END as u64;
        while offset < reader.len {
            let damaged =
                |reader: &SegmentReader, what: String| LogError::Damaged(reader.damage(offset, what));
            let raw = reader.frame(offset)?.map_err(|what| damaged(reader, what.into()))?;
            let head = FrameHead::decode(&raw.bytes)
                .map_err(|what| LogError::NewerVersion { path: reader.path(), what })?;
            joins(&raw, &head, &point).map_err(|what| damaged(reader, what))?;
            point = point_after(&raw, &head);
            offset += raw.prefix.frame_bytes();
        }
        Ok(point)
    }

    fn step(&mut self) -> Result<Option<(FramePlace, Frame)>, LogError> {
        loop {
            let Some(mut position) = self.at.take() else { return Ok(None) };
            let id = position.reader.id;
            if position.offset < position.reader.len {
                let (raw, place) = next_frame(&mut position)?;
                let frame = parse(&position.reader, &raw, place.offset)?;
                self.at = Some(position);
                return Ok(Some((place, frame)));
            }
            if id >= self.end.0 {
                return Ok(None);
            }
            let mut reader = self.segment(id + 1)?;
            let header = reader.sound_header()?;
            check_joint(&reader, &header, &position.point)?;
            self.at = Some(Position { reader, offset: segment::END as u64, point: position.point });
        }
    }
}

impl Iterator for LogReader {
    type Item = Result<(FramePlace, Frame), LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

/// Whether a segment starts where the one before it ended.
pub(super) fn check_joint(
    reader: &SegmentReader,
    header: &header::SegmentHeader,
    point: &ChainPoint,
) -> Result<(), LogError> {
    let joined = header.first_sequence == point.sequence.wrapping_add(1)
        && header.head_before == point.head
        && header.instant_before == point.instant_us;
    if !joined {
        let what = format!("the segment does not continue commit {}", point.sequence);
        return Err(LogError::Damaged(reader.damage(0, what)));
    }
    Ok(())
}

/// Reads the next frame, which must be there, and moves on.
fn next_frame(position: &mut Position) -> Result<(RawFrame, FramePlace), LogError> {
    let Position { reader, offset, point } = position;
    let damaged = |reader: &SegmentReader, what: String| LogError::Damaged(reader.damage(*offset, what));
    let raw = reader.frame(*offset)?.map_err(|what| damaged(reader, what.into()))?;
    let head =
        FrameHead::decode(&raw.bytes).map_err(|what| LogError::NewerVersion { path: reader.path(), what })?;
    joins(&raw, &head, point).map_err(|what| damaged(reader, what))?;
    let place = place_of(&raw, *offset);
    *point = point_after(&raw, &head);
    *offset = place.end();
    Ok((raw, place))
}

pub(super) fn place_of(raw: &RawFrame, offset: u64) -> FramePlace {
    FramePlace {
        segment: raw.prefix.segment,
        offset,
        bytes: raw.prefix.frame_bytes(),
        sequence: CommitSeq(raw.prefix.sequence),
    }
}

pub(super) fn point_after(raw: &RawFrame, head: &FrameHead) -> ChainPoint {
    ChainPoint { sequence: raw.prefix.sequence, instant_us: head.instant_us, head: head.head }
}

/// The frame that is known to stand at `place`, with the place where it stands now: shrinking a segment
/// moves its frames.
pub(super) fn frame_at(
    reader: &mut SegmentReader,
    place: FramePlace,
) -> Result<(RawFrame, FramePlace, ChainPoint), LogError> {
    let (raw, place) = match frame_as_written(reader, place) {
        Err(LogError::Damaged(_)) if reader.is_shrunk()? => moved_frame(reader, place)?,
        other => (other?, place),
    };
    let head =
        FrameHead::decode(&raw.bytes).map_err(|what| LogError::NewerVersion { path: reader.path(), what })?;
    let point = point_after(&raw, &head);
    Ok((raw, place, point))
}

fn frame_as_written(reader: &mut SegmentReader, place: FramePlace) -> Result<RawFrame, LogError> {
    let damaged = |reader: &SegmentReader, what: &str| LogError::Damaged(reader.damage(place.offset, what));
    if place.offset >= reader.len {
        return Err(damaged(reader, "the file ends before a frame that was acknowledged"));
    }
    let raw = reader.frame(place.offset)?.map_err(|what| damaged(reader, what))?;
    match place_of(&raw, place.offset) == place {
        true => Ok(raw),
        false => Err(damaged(reader, "another frame stands there than was acknowledged")),
    }
}

/// Looks for a frame of a shrunk segment by its number.
fn moved_frame(reader: &mut SegmentReader, place: FramePlace) -> Result<(RawFrame, FramePlace), LogError> {
    let mut offset = segment::END as u64;
    while offset < reader.len {
        let damaged = |reader: &SegmentReader, what: &str| LogError::Damaged(reader.damage(offset, what));
        let raw = reader.frame(offset)?.map_err(|what| damaged(reader, what))?;
        let found = place_of(&raw, offset);
        if found.sequence == place.sequence {
            return Ok((raw, found));
        }
        offset = found.end();
    }
    let what = format!("commit {} is missing in the segment, which was shrunk", place.sequence);
    Err(LogError::Damaged(reader.damage(offset, what)))
}

pub(super) fn parse(reader: &SegmentReader, raw: &RawFrame, offset: u64) -> Result<Frame, LogError> {
    parse_frame(&raw.bytes, raw.prefix.sequence).map_err(|e| match e {
        ParseError::Damaged(what) => LogError::Damaged(reader.damage(offset, what)),
        ParseError::Newer(what) => LogError::NewerVersion { path: reader.path(), what },
    })
}

/// The chain where a segment begins.
fn point_before(header: &header::SegmentHeader) -> ChainPoint {
    ChainPoint {
        sequence: header.first_sequence.wrapping_sub(1),
        instant_us: header.instant_before,
        head: header.head_before,
    }
}

/// The chain at the start of a store.
pub(super) fn beginning(head: Head) -> ChainPoint {
    ChainPoint { sequence: 0, instant_us: i64::MIN, head }
}
