//! The log itself: appending frames and handing out readers.

use super::build::SealedFrame;
use super::chain::Head;
use super::error::LogError;
use super::frame::Frame;
use super::header;
use super::layout::segment;
use super::open::{self, LogSettings, Recovered};
use super::read::{self, FramePlace, LogReader, Start};
use super::reader::{ChainPoint, SegmentReader};
use super::verify::{self, VerifyReport};
use crate::disk::{Disk, DiskFile};
use crate::time::CommitSeq;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open log.
#[derive(Debug)]
pub struct Log {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) settings: LogSettings,
    /// The last segment; `None` if the log is open for reading only.
    pub(super) file: Option<Box<dyn DiskFile>>,
    /// Segment and byte of the end; segment 0 = there is none.
    pub(super) end: (u64, u64),
    pub(super) point: ChainPoint,
    pub(super) last: Option<FramePlace>,
    /// The last segment is of a version that new rows may not go into.
    pub(super) outdated: bool,
    pub(super) in_doubt: bool,
}

impl Log {
    /// Opens the log in `dir`, whose parent must exist. A torn tail is cut off and reported.
    ///
    /// # Errors
    /// [`LogError::Damaged`] with segment and byte for damage that is no torn tail; nothing is
    /// changed then. [`LogError::EndsTooEarly`] if the log ends before [`LogSettings::floor`].
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: LogSettings,
    ) -> Result<(Log, Recovered), LogError> {
        open::open(disk, dir, settings)
    }

    /// The id of the store that the log in `dir` belongs to; `None` if no segment tells.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn store_id_of(disk: &dyn Disk, dir: &Path) -> Result<Option<[u8; 16]>, LogError> {
        open::store_id_of(disk, dir)
    }

    /// Directory of the segments.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The last frame; `None` if there is none.
    pub fn last(&self) -> Option<FramePlace> {
        self.last
    }

    /// Number of the last commit, 0 if there is none.
    pub fn last_sequence(&self) -> CommitSeq {
        CommitSeq(self.point.sequence)
    }

    /// Instant of the last commit, microseconds; `i64::MIN` if there is none.
    pub fn last_instant_us(&self) -> i64 {
        self.point.instant_us
    }

    /// Head of the chain after the last commit.
    pub fn head(&self) -> Head {
        Head(self.point.head.0)
    }

    /// Whether an append has failed, so that only opening again tells what the log holds.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Writes a frame as commit `sequence`, which is the last one plus 1, at `instant_us`, which is
    /// after that of the last one. It is durable when this returns Ok: one write, one sync.
    ///
    /// # Errors
    /// [`LogError::Refused`] for a wrong number or instant: nothing was written. After any error of
    /// the disk the commit is in doubt, and every later append fails with [`LogError::InDoubt`]
    /// until the log is opened again.
    pub fn append(
        &mut self,
        frame: SealedFrame,
        sequence: CommitSeq,
        instant_us: i64,
    ) -> Result<FramePlace, LogError> {
        self.check(sequence, instant_us)?;
        self.in_doubt = true;
        self.rotate_for(frame.len() as u64)?;
        let (id, offset) = self.end;
        let previous = self.point.head;
        let (bytes, head) = frame.place(self.settings.store_id, id, sequence.0, instant_us, previous);
        let file = self.file.as_mut().ok_or(LogError::ReadOnly)?;
        file.write_at(offset, &bytes)?;
        file.sync()?;
        self.in_doubt = false;
        let place = FramePlace { segment: id, offset, bytes: bytes.len() as u64, sequence };
        self.end.1 = place.end();
        self.point = ChainPoint { sequence: sequence.0, instant_us, head };
        self.last = Some(place);
        Ok(place)
    }

    fn check(&self, sequence: CommitSeq, instant_us: i64) -> Result<(), LogError> {
        if self.file.is_none() {
            return Err(LogError::ReadOnly);
        }
        if self.in_doubt {
            return Err(LogError::InDoubt);
        }
        if sequence.0 != self.point.sequence + 1 {
            let last = self.point.sequence;
            return Err(LogError::Refused(format!("commit {sequence} cannot follow commit {last}")));
        }
        if instant_us <= self.point.instant_us {
            let last = self.point.instant_us;
            return Err(LogError::Refused(format!("its instant {instant_us} is not after {last}")));
        }
        Ok(())
    }

    /// Starts a new segment if a frame of `bytes` bytes would make this one too long, or if it is of an older
    /// version.
    fn rotate_for(&mut self, bytes: u64) -> Result<(), LogError> {
        let offset = self.end.1;
        let room = self.settings.segment_bytes_max;
        let fits = !self.outdated && offset.saturating_add(bytes) <= room;
        if offset == segment::END as u64 || fits {
            return Ok(());
        }
        self.next_segment()
    }

    /// Starts a new segment, unless the last one has no frame yet.
    ///
    /// # Errors
    /// Of the disk: appends then fail until the log is opened again.
    pub fn roll(&mut self) -> Result<(), LogError> {
        if self.file.is_none() {
            return Err(LogError::ReadOnly);
        }
        if self.in_doubt {
            return Err(LogError::InDoubt);
        }
        if self.end.1 > segment::END as u64 {
            self.in_doubt = true;
            self.next_segment()?;
            self.in_doubt = false;
        }
        Ok(())
    }

    /// Segment and byte of the end.
    pub fn end(&self) -> (u64, u64) {
        self.end
    }

    fn next_segment(&mut self) -> Result<(), LogError> {
        let id = self.end.0;
        let (disk, store_id) = (&*self.disk, self.settings.store_id);
        self.file = Some(open::create_segment(disk, &self.dir, store_id, id + 1, &self.point)?);
        self.end = (id + 1, segment::END as u64);
        self.outdated = false;
        Ok(())
    }

    /// The frames from `start` to the present end. The reader stands on its own: it may go to
    /// another thread and does not see later appends.
    ///
    /// # Errors
    /// If `start` is not there or the disk refuses.
    pub fn read_from(&self, start: Start) -> Result<LogReader, LogError> {
        let (disk, dir) = (self.disk.clone(), self.dir.clone());
        if self.end.0 == 0 {
            return Ok(LogReader { disk, dir, store_id: self.settings.store_id, end: self.end, at: None });
        }
        LogReader::new(disk, dir, self.settings.store_id, 1, self.end, start)
    }

    /// The frame at a place that the log gave.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if it does not stand there.
    pub fn read_frame(&self, place: FramePlace) -> Result<Frame, LogError> {
        let path = header::segment_path(&self.dir, place.segment);
        let store_id = self.settings.store_id;
        let mut reader = SegmentReader::open(&*self.disk, &path, place.segment, store_id, place.end())?;
        let (raw, place, _) = read::frame_at(&mut reader, place)?;
        read::parse(&reader, &raw, place.offset)
    }

    /// Reads everything, recomputes every hash and lists all damage. With a `head` that was kept
    /// elsewhere it also tells whether the history that the head stands for is in the chain.
    ///
    /// # Errors
    /// If the disk refuses; damage is no error here.
    pub fn verify(&self, head: Option<Head>) -> Result<VerifyReport, LogError> {
        verify::verify(&*self.disk, &self.dir, self.settings.store_id, Some(self.end), head)
    }

    /// [`Log::verify`] for a log that cannot be opened.
    ///
    /// # Errors
    /// If the disk refuses; damage is no error here.
    pub fn verify_unopened(
        disk: &dyn Disk,
        dir: &Path,
        store_id: [u8; 16],
        head: Option<Head>,
    ) -> Result<VerifyReport, LogError> {
        verify::verify(disk, dir, store_id, None, head)
    }
}
