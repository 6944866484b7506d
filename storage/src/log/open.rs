//! Opening a log: finding its end, cutting a torn tail, refusing damage.

use super::append::Log;
use super::chain::genesis;
use super::error::{Damage, LogError};
use super::header::{self, BadHeader, FrameHead, SegmentHeader, StoreId};
use super::layout::{SEGMENT_BYTES_MAX_DEFAULT, segment};
use super::read::{FramePlace, Start, beginning, check_joint, frame_at, place_of, point_after};
use super::reader::{ChainPoint, SegmentReader, joins};
use super::shrink::remove_unfinished;
use crate::disk::{Disk, DiskFile};
use crate::time::CommitSeq;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to open a log.
#[derive(Clone, Copy, Debug)]
pub struct LogSettings {
    /// Id of the store; part of every checksum.
    pub store_id: [u8; 16],
    /// A segment is closed before it would grow beyond this.
    pub segment_bytes_max: u64,
    /// Open for appending. Only one process may, see [`Disk::lock`]. Others read what is there and
    /// change nothing.
    pub writable: bool,
    /// Where to start looking for the end: after a frame that is known to be whole, or at the
    /// oldest. What comes before is taken as it is.
    pub start: Start,
    /// A commit that is known to have been acknowledged; a log that ends before it is refused.
    pub floor: CommitSeq,
}

impl LogSettings {
    /// Opens for appending, looks at everything.
    pub fn new(store_id: [u8; 16]) -> LogSettings {
        LogSettings {
            store_id,
            segment_bytes_max: SEGMENT_BYTES_MAX_DEFAULT,
            writable: true,
            start: Start::Oldest,
            floor: CommitSeq(0),
        }
    }
}

/// A torn tail: bytes of a commit that was never acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Where the tail started, and why it is no frame.
    pub place: Damage,
    /// Number of bytes.
    pub bytes: u64,
}

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "dropped {} bytes of an unfinished commit: {}", self.bytes, self.place)
    }
}

/// What opening found.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Frames that were looked at.
    pub frames: u64,
    /// The last frame; `None` if there is none.
    pub last: Option<FramePlace>,
    /// A tail that was cut off, or left alone where the log is open for reading only.
    pub dropped: Option<Dropped>,
}

/// The end of the log as the scan finds it.
struct Scan {
    point: ChainPoint,
    last: Option<FramePlace>,
    frames: u64,
    /// Segment and byte of the end.
    end: (u64, u64),
    dropped: Option<Dropped>,
    /// The segment of the end is of a version that new rows may not go into.
    outdated: bool,
}

pub(super) fn open(
    disk: Arc<dyn Disk>,
    dir: &Path,
    settings: LogSettings,
) -> Result<(Log, Recovered), LogError> {
    let ids = prepare(&*disk, dir, &settings)?;
    let scan = scan(&*disk, dir, &settings, &ids)?;
    if scan.point.sequence < settings.floor.0 {
        return Err(LogError::EndsTooEarly {
            dir: dir.to_path_buf(),
            last: scan.point.sequence,
            floor: settings.floor.0,
        });
    }
    let recovered = Recovered { frames: scan.frames, last: scan.last, dropped: scan.dropped.clone() };
    let mut log = Log {
        disk,
        dir: dir.to_path_buf(),
        settings,
        file: None,
        end: scan.end,
        point: scan.point,
        last: scan.last,
        outdated: scan.outdated,
        in_doubt: false,
    };
    if settings.writable {
        log.file = Some(ready_for_append(&log, &scan, ids.last().copied())?);
        log.end = if log.end.0 == 0 { (1, segment::END as u64) } else { log.end };
        if let Some(dropped) = &scan.dropped
            && dropped.place.segment != scan.end.0
        {
            log.end = (dropped.place.segment, segment::END as u64);
        }
        log.outdated &= log.end.1 > segment::END as u64;
    }
    Ok((log, recovered))
}

/// Makes the directory where needed and lists the segments, which are numbered without a gap.
fn prepare(disk: &dyn Disk, dir: &Path, settings: &LogSettings) -> Result<Vec<u64>, LogError> {
    if !disk.exists(dir)? {
        if !settings.writable {
            return Ok(Vec::new());
        }
        disk.create_dir(dir)?;
    }
    if settings.writable {
        remove_unfinished(disk, dir)?;
    }
    let ids = segment_ids(disk, dir)?;
    if ids.is_empty()
        && settings.writable
        && let Some(parent) = dir.parent()
    {
        disk.sync_dir(parent)?;
    }
    match ids.iter().zip(1..).find(|(id, want)| *id != want) {
        Some((_, gap)) => Err(LogError::Missing { segment: gap, path: header::segment_path(dir, gap) }),
        None => Ok(ids),
    }
}

/// Numbers of the segments in a directory, ascending.
pub(super) fn segment_ids(disk: &dyn Disk, dir: &Path) -> Result<Vec<u64>, LogError> {
    let mut ids: Vec<u64> = disk.list(dir)?.iter().filter_map(|p| header::segment_id(p)).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

fn scan(disk: &dyn Disk, dir: &Path, settings: &LogSettings, ids: &[u64]) -> Result<Scan, LogError> {
    let open =
        |id: u64| SegmentReader::open(disk, &header::segment_path(dir, id), id, settings.store_id, u64::MAX);
    let point = beginning(genesis(settings.store_id));
    let mut scan = Scan { point, last: None, frames: 0, end: (0, 0), dropped: None, outdated: false };
    let mut first = 1;
    if let Start::After(after) = settings.start {
        if !ids.contains(&after.segment) {
            let path = header::segment_path(dir, after.segment);
            return Err(LogError::Missing { segment: after.segment, path });
        }
        let mut reader = open(after.segment)?;
        scan.outdated = reader.sound_header()?.outdated;
        let place;
        (_, place, scan.point) = frame_at(&mut reader, after)?;
        (scan.last, scan.end) = (Some(place), (place.segment, place.end()));
        let is_last = ids.last() == Some(&place.segment);
        scan.frames(&mut reader, is_last)?;
        first = place.segment + 1;
    }
    for id in ids.iter().copied().filter(|id| *id >= first) {
        let mut reader = open(id)?;
        let is_last = ids.last() == Some(&id);
        match reader.header()? {
            Ok(header) => {
                check_joint(&reader, &header, &scan.point)?;
                scan.outdated = header.outdated;
            }
            Err(bad) if is_last => {
                scan.unborn(&mut reader, bad)?;
                break;
            }
            Err(bad) => return Err(reader.header_error(bad)),
        }
        scan.end = (id, segment::END as u64);
        scan.frames(&mut reader, is_last)?;
    }
    Ok(scan)
}

impl Scan {
    /// Follows the frames of one segment from `self.end` on.
    fn frames(&mut self, reader: &mut SegmentReader, is_last: bool) -> Result<(), LogError> {
        while self.end.1 < reader.len {
            let offset = self.end.1;
            let what = match reader.frame(offset)? {
                Ok(raw) => {
                    let head = FrameHead::decode(&raw.bytes)
                        .map_err(|what| LogError::NewerVersion { path: reader.path(), what })?;
                    match joins(&raw, &head, &self.point) {
                        Ok(()) => {
                            let place = place_of(&raw, offset);
                            self.point = point_after(&raw, &head);
                            (self.last, self.end.1) = (Some(place), place.end());
                            self.frames += 1;
                            continue;
                        }
                        Err(what) if raw.prefix.sequence > self.point.sequence => {
                            return Err(LogError::Damaged(reader.damage(offset, what)));
                        }
                        Err(what) => what,
                    }
                }
                Err(what) => what.to_string(),
            };
            self.torn(reader, offset, what, is_last)?;
            break;
        }
        Ok(())
    }

    /// Decides whether bytes that are no frame are a torn tail.
    fn torn(
        &mut self,
        reader: &mut SegmentReader,
        offset: u64,
        what: String,
        is_last: bool,
    ) -> Result<(), LogError> {
        if !is_last {
            let what = format!("{what}, and newer segments follow");
            return Err(LogError::Damaged(reader.damage(offset, what)));
        }
        if let Some(next) = reader.find_frame(offset, self.point.sequence)? {
            let what = format!("{what}, and a whole frame follows at byte {next}");
            return Err(LogError::Damaged(reader.damage(offset, what)));
        }
        self.dropped = Some(Dropped { place: reader.damage(offset, what), bytes: reader.len - offset });
        Ok(())
    }

    /// The last segment has no sound header: its creation was cut short, unless frames stand in it.
    fn unborn(&mut self, reader: &mut SegmentReader, bad: BadHeader) -> Result<(), LogError> {
        let BadHeader::Damaged(what) = bad else { return Err(reader.header_error(bad)) };
        if reader.find_frame(0, 0)?.is_some() {
            return Err(reader.header_error(bad));
        }
        self.dropped = Some(Dropped { place: reader.damage(0, what), bytes: reader.len });
        Ok(())
    }
}

/// Cuts a torn tail, or makes the segment that is missing, and makes sure that what stands at the
/// end is durable.
fn ready_for_append(log: &Log, scan: &Scan, last_id: Option<u64>) -> Result<Box<dyn DiskFile>, LogError> {
    let (disk, dir, store_id) = (&*log.disk, log.dir.as_path(), log.settings.store_id);
    let Some(last_id) = last_id else {
        return create_segment(disk, dir, store_id, 1, &scan.point);
    };
    let path = header::segment_path(dir, last_id);
    let empty = scan.end.1 == segment::END as u64 && scan.dropped.is_none();
    if last_id != scan.end.0 || scan.outdated && empty {
        disk.remove(&path)?;
        disk.sync_dir(dir)?;
        return create_segment(disk, dir, store_id, last_id, &scan.point);
    }
    let mut file = disk.open_write(&path)?;
    if scan.dropped.is_some() {
        file.set_len(scan.end.1)?;
    }
    refresh_tail(&mut *file, scan)?;
    disk.sync_dir(dir)?;
    Ok(file)
}

/// Writes the last frame (or the header of an empty segment) once more and syncs it. If its first
/// sync failed, the system may show the bytes without ever having brought them to the medium.
fn refresh_tail(file: &mut dyn DiskFile, scan: &Scan) -> Result<(), LogError> {
    let (start, end) = match scan.last {
        Some(place) if place.segment == scan.end.0 => (place.offset, place.end()),
        _ => (0, segment::END as u64),
    };
    let mut bytes = vec![0; (end - start) as usize];
    file.read_at(start, &mut bytes)?;
    file.write_at(start, &bytes)?;
    file.sync()?;
    Ok(())
}

/// Makes a segment that continues `point`: header, then its name, both durable.
pub(super) fn create_segment(
    disk: &dyn Disk,
    dir: &Path,
    store_id: StoreId,
    id: u64,
    point: &ChainPoint,
) -> Result<Box<dyn DiskFile>, LogError> {
    let header = SegmentHeader {
        store_id,
        id,
        first_sequence: point.sequence + 1,
        instant_before: point.instant_us,
        head_before: point.head,
        shrunk: false,
        outdated: false,
    };
    let mut file = disk.create(&header::segment_path(dir, id))?;
    file.write_at(0, &header.encode())?;
    file.sync()?;
    disk.sync_dir(dir)?;
    Ok(file)
}

/// The id of the store that the segments in `dir` belong to; `None` if no segment tells, and none has frames.
pub(super) fn store_id_of(disk: &dyn Disk, dir: &Path) -> Result<Option<StoreId>, LogError> {
    let mut silent = None;
    for id in segment_ids(disk, dir)? {
        let path: PathBuf = header::segment_path(dir, id);
        let file = disk.open(&path)?;
        let len = file.len()?;
        if len < segment::END as u64 {
            continue;
        }
        let mut bytes = [0; segment::END];
        file.read_at(0, &mut bytes)?;
        let found = header::get(&bytes, segment::STORE_ID);
        match SegmentHeader::decode(&bytes, found, id) {
            Ok(_) => return Ok(Some(found)),
            // A header is durable before the first frame is written: what stands behind this one was acknowledged.
            Err(bad) if len > segment::END as u64 => silent = silent.or(Some((path, id, found, bad))),
            Err(_) => {}
        }
    }
    let Some((path, id, found, bad)) = silent else { return Ok(None) };
    Err(SegmentReader::open(disk, &path, id, found, u64::MAX)?.header_error(bad))
}
