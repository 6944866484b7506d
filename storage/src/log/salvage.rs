//! Giving up the end of a damaged log, on request only: where it would be cut, what goes with that, and the cut. What
//! is cut is copied first.

use super::chain::genesis;
use super::error::{Damage, LogError};
use super::header::{self, FrameHead, StoreId};
use super::layout::segment;
use super::open::segment_ids;
use super::read::{Start, beginning, check_joint, frame_at, parse, point_after};
use super::reader::{ChainPoint, SegmentReader, joins};
use crate::disk::{Disk, DiskError};
use crate::time::CommitSeq;
use std::path::{Path, PathBuf};

/// Where a damaged log would be cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The first damage; everything from there on goes.
    pub damage: Damage,
    /// The last commit that stays; 0 if none does.
    pub last: CommitSeq,
    /// Commits that can still be read behind the damage, ascending. Others there may be unreadable.
    pub readable: Vec<CommitSeq>,
    /// Segments of which something goes, each with the byte from which on.
    pub parts: Vec<(u64, u64)>,
    /// Bytes that go.
    pub bytes: u64,
}

impl Cut {
    /// Looks for damage behind `start`; `None` if there is none, or only a torn tail, which every opening for writing
    /// cuts off. Changes nothing.
    ///
    /// # Errors
    /// Of the disk; [`LogError::Damaged`] if `start` itself is damaged; for a log of another store or a newer version.
    pub fn find(
        disk: &dyn Disk,
        dir: &Path,
        store_id: StoreId,
        start: Start,
    ) -> Result<Option<Cut>, LogError> {
        let ids = segment_ids(disk, dir)?;
        let open =
            |id: u64| SegmentReader::open(disk, &header::segment_path(dir, id), id, store_id, u64::MAX);
        let (mut point, mut next, mut offset) = (beginning(genesis(store_id)), 1, segment::END as u64);
        if let Start::After(place) = start {
            let (_, place, after) = frame_at(&mut open(place.segment)?, place)?;
            (point, next, offset) = (after, place.segment, place.end());
        }
        let mut first = matches!(start, Start::Oldest);
        while next <= ids.last().copied().unwrap_or(0) {
            let is_last = ids.last() == Some(&next);
            if !ids.contains(&next) {
                let path = header::segment_path(dir, next);
                let damage = Damage { path, segment: next, offset: 0, what: "the segment is missing".into() };
                return Cut::at(disk, dir, store_id, (damage, point.sequence), &ids).map(Some);
            }
            let mut reader = open(next)?;
            if let Some((damage, is_torn)) = walk(&mut reader, (first, is_last), &mut offset, &mut point)? {
                let found = (!is_torn).then(|| Cut::at(disk, dir, store_id, (damage, point.sequence), &ids));
                return found.transpose();
            }
            (first, next, offset) = (true, next + 1, segment::END as u64);
        }
        Ok(None)
    }

    fn at(
        disk: &dyn Disk,
        dir: &Path,
        store_id: StoreId,
        (damage, last): (Damage, u64),
        ids: &[u64],
    ) -> Result<Cut, LogError> {
        let (mut readable, mut parts, mut bytes) = (Vec::new(), Vec::new(), 0);
        for id in ids.iter().copied().filter(|id| *id >= damage.segment) {
            let from = if id == damage.segment { damage.offset } else { 0 };
            let mut reader =
                SegmentReader::open(disk, &header::segment_path(dir, id), id, store_id, u64::MAX)?;
            parts.push((id, from));
            bytes += reader.len.saturating_sub(from);
            let mut at = from;
            while let Some(place) = reader.find_frame(at, last)? {
                let Ok(raw) = reader.frame(place)? else { break };
                if parse(&reader, &raw, place).is_ok() {
                    readable.push(CommitSeq(raw.prefix.sequence));
                }
                at = place + raw.prefix.frame_bytes();
            }
        }
        readable.sort_unstable();
        readable.dedup();
        Ok(Cut { damage, last: CommitSeq(last), readable, parts, bytes })
    }

    /// Copies what goes to `aside`, a new directory, and then cuts: the newest segment first, so that whatever stops it
    /// leaves a log that is damaged in the same place, and the cut can be made again. The copies.
    ///
    /// # Errors
    /// Of the disk.
    pub fn make(&self, disk: &dyn Disk, dir: &Path, aside: &Path) -> Result<Vec<PathBuf>, DiskError> {
        disk.create_dir(aside)?;
        let mut copies = Vec::new();
        for (id, from) in &self.parts {
            let path = header::segment_path(dir, *id);
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let copy = aside.join(if *from > 0 { format!("{name}.from-{from}") } else { name });
            let bytes = disk.map(&path)?;
            let mut file = disk.create(&copy)?;
            file.write_at(0, &bytes[usize::try_from(*from).unwrap_or(usize::MAX).min(bytes.len())..])?;
            file.sync()?;
            copies.push(copy);
        }
        disk.sync_dir(aside)?;
        if let Some(parent) = aside.parent() {
            disk.sync_dir(parent)?;
        }
        for (id, from) in self.parts.iter().rev() {
            let path = header::segment_path(dir, *id);
            if *from < segment::END as u64 {
                disk.remove(&path)?;
            } else {
                let mut file = disk.open_write(&path)?;
                file.set_len(*from)?;
                file.sync()?;
            }
            disk.sync_dir(dir)?;
        }
        Ok(copies)
    }
}

/// Follows the frames of a segment; the first damage, and whether it is a torn tail.
fn walk(
    reader: &mut SegmentReader,
    (with_header, is_last): (bool, bool),
    offset: &mut u64,
    point: &mut ChainPoint,
) -> Result<Option<(Damage, bool)>, LogError> {
    if with_header {
        let joint = match reader.header()? {
            Ok(header) => check_joint(reader, &header, point).err(),
            Err(bad) => Some(reader.header_error(bad)),
        };
        match joint {
            None => {}
            Some(LogError::Damaged(damage)) => {
                let is_torn = is_last && reader.find_frame(0, 0)?.is_none();
                return Ok(Some((damage, is_torn)));
            }
            Some(other) => return Err(other),
        }
    }
    while *offset < reader.len {
        let what: String = match reader.frame(*offset)? {
            Ok(raw) => {
                let head = FrameHead::decode(&raw.bytes)
                    .map_err(|what| LogError::NewerVersion { path: reader.path(), what })?;
                match joins(&raw, &head, point) {
                    Ok(()) => {
                        *point = point_after(&raw, &head);
                        *offset += raw.prefix.frame_bytes();
                        continue;
                    }
                    // Frames of older contents may stand behind the end; a newer one is damage wherever it stands.
                    Err(what) if raw.prefix.sequence > point.sequence => {
                        return Ok(Some((reader.damage(*offset, what), false)));
                    }
                    Err(what) => what,
                }
            }
            Err(what) => what.to_owned(),
        };
        let is_torn = is_last && reader.find_frame(*offset, point.sequence)?.is_none();
        return Ok(Some((reader.damage(*offset, what), is_torn)));
    }
    Ok(None)
}
