//! Writing sealed segments anew without the rows that live elsewhere.
//!
//! The shrunk form is written beside the segment, synced, and takes its name in one step. Frames keep
//! their sections, secret and heads, so the chain goes on; of a block whose rows live in runs the root
//! over its commitments is left, and a recipe to make the rows again. The root is computed from the
//! rows while they are there, and compared with the head of the frame.

use super::build::{finish, put_block_header, put_lengths};
use super::error::{Damage, LogError};
use super::frame::{BlockForm, Frame};
use super::header::{self, FrameHead, SegmentHeader, StoreId, body_crc};
use super::layout::*;
use super::open::segment_ids;
use super::parse::parse_frame;
use super::read::{LogReader, Start, check_joint};
use super::reader::SegmentReader;
use super::sparse::put_digested;
use crate::disk::Disk;
use crate::time::CommitSeq;
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// The segments of a log on disk, apart from the handle that appends to the last of them.
#[derive(Clone, Debug)]
pub struct Segments {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    store_id: StoreId,
}

/// A segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub id: u64,
    /// First commit in it.
    pub first: CommitSeq,
    /// Whether it was shrunk.
    pub shrunk: bool,
    /// Length of its file.
    pub bytes: u64,
}

impl Segments {
    /// Those in `dir`, of the store with this id.
    pub fn new(disk: Arc<dyn Disk>, dir: &Path, store_id: [u8; 16]) -> Segments {
        Segments { disk, dir: dir.to_owned(), store_id }
    }

    /// All of them with a sound header, by number.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn list(&self) -> Result<Vec<Segment>, LogError> {
        let mut found = Vec::new();
        if !self.disk.exists(&self.dir)? {
            return Ok(found);
        }
        for id in segment_ids(&*self.disk, &self.dir)? {
            let file = self.disk.open(&header::segment_path(&self.dir, id))?;
            let (bytes, mut start) = (file.len()?, [0; segment::END]);
            if bytes < segment::END as u64 {
                continue;
            }
            file.read_at(0, &mut start)?;
            if let Ok(header) = SegmentHeader::decode(&start, self.store_id, id) {
                let SegmentHeader { first_sequence, shrunk, .. } = header;
                found.push(Segment { id, first: CommitSeq(first_sequence), shrunk, bytes });
            }
        }
        Ok(found)
    }

    /// The frames of one segment, which must not be the last.
    ///
    /// # Errors
    /// If it is not there or the disk refuses.
    pub fn frames(&self, id: u64) -> Result<LogReader, LogError> {
        let (disk, dir) = (self.disk.clone(), self.dir.clone());
        LogReader::new(disk, dir, self.store_id, id, (id, u64::MAX), Start::Oldest)
    }

    /// Writes the shrunk form of a segment that must not be the last, aside and durably. `recipes` says
    /// for every block of a frame how its rows can be made again, or that it has to stay as it is.
    /// [`Segments::replace`] then puts it in the place of the segment.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if the segment is damaged or what stands in it does not give its heads; the
    /// disk's, and those of `recipes`.
    pub fn write_shrunk<E: From<LogError>>(
        &self,
        id: u64,
        mut recipes: impl FnMut(&Frame) -> Result<Vec<Option<Bytes>>, E>,
    ) -> Result<(), E> {
        let header = self.open(id)?.sound_header()?;
        self.discard(id)?;
        let path = self.temporary(id);
        let mut file = self.disk.create(&path).map_err(LogError::from)?;
        let mut bytes = SegmentHeader { shrunk: true, ..header }.encode().to_vec();
        let mut offset = 0;
        for frame in self.frames(id)? {
            let (place, frame) = frame?;
            let wrong = |what: &str| {
                let path = header::segment_path(&self.dir, id);
                LogError::Damaged(Damage { path, segment: id, offset: place.offset, what: what.into() })
            };
            let recipes = recipes(&frame)?;
            let shrunk = shrunk_frame(&frame, self.store_id, id, &recipes)
                .ok_or_else(|| wrong("a frame lacks what its chain needs"))?;
            let shrunk = Bytes::from(shrunk);
            let head = parse_frame(&shrunk, frame.sequence.0);
            if !head.is_ok_and(|f| f.computed_head() == Some(frame.head)) {
                return Err(wrong("the content of the frame does not match its hash").into());
            }
            bytes.extend_from_slice(&shrunk);
            if bytes.len() >= WRITE_BYTES {
                file.write_at(offset, &bytes).map_err(LogError::from)?;
                offset += bytes.len() as u64;
                bytes.clear();
            }
        }
        file.write_at(offset, &bytes).map_err(LogError::from)?;
        file.sync().map_err(LogError::from)?;
        self.check_shrunk(id)?;
        Ok(())
    }

    /// Reads the shrunk form once more: it must go on to the next segment as the whole one does.
    fn check_shrunk(&self, id: u64) -> Result<(), LogError> {
        let open = |path: &Path, id| SegmentReader::open(&*self.disk, path, id, self.store_id, u64::MAX);
        let mut reader = open(&self.temporary(id), id)?;
        let end = LogReader::end_of(&mut reader)?;
        let mut next = open(&header::segment_path(&self.dir, id + 1), id + 1)?;
        let header = next.sound_header()?;
        check_joint(&next, &header, &end)
    }

    /// Puts the shrunk form in the place of the segment. Readers that have the segment open go on with
    /// it.
    ///
    /// # Errors
    /// The disk's: then one of the two stands there.
    pub fn replace(&self, id: u64) -> Result<(), LogError> {
        self.disk.rename(&self.temporary(id), &header::segment_path(&self.dir, id))?;
        self.disk.sync_dir(&self.dir)?;
        Ok(())
    }

    /// Removes the shrunk form of a segment, if it was written and not put in its place.
    ///
    /// # Errors
    /// The disk's.
    pub fn discard(&self, id: u64) -> Result<(), LogError> {
        let path = self.temporary(id);
        if self.disk.exists(&path)? {
            self.disk.remove(&path)?;
        }
        Ok(())
    }

    fn open(&self, id: u64) -> Result<SegmentReader, LogError> {
        let path = header::segment_path(&self.dir, id);
        SegmentReader::open(&*self.disk, &path, id, self.store_id, u64::MAX)
    }

    fn temporary(&self, id: u64) -> PathBuf {
        let mut path = header::segment_path(&self.dir, id).into_os_string();
        path.push(SHRINKING_SUFFIX);
        path.into()
    }
}

/// Removes what a shrinking that did not come to its end has left.
pub(super) fn remove_unfinished(disk: &dyn Disk, dir: &Path) -> Result<(), LogError> {
    for path in disk.list(dir)? {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let whole = name.strip_suffix(SHRINKING_SUFFIX);
        if whole.is_some_and(|name| header::segment_id(Path::new(name)).is_some()) {
            disk.remove(&path)?;
        }
    }
    Ok(())
}

/// The bytes of `frame` without the rows of the blocks that have a recipe. `None` if the frame lacks
/// what it takes, which parsing rules out.
fn shrunk_frame(
    frame: &Frame,
    store_id: StoreId,
    segment: u64,
    recipes: &[Option<Bytes>],
) -> Option<Vec<u8>> {
    let Some(secret) = frame.secret else {
        // What erasing has left stays as it is.
        return super::sparse_frame(frame, store_id, segment, |_, _| false, |_| false);
    };
    let mut out = vec![0; frame::BODY];
    for section in &frame.sections {
        let bytes = section.bytes.as_ref()?;
        out.extend_from_slice(&[section.kind, SECTION_PLAIN, 0, 0]);
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    }
    for (i, block) in frame.blocks.iter().enumerate() {
        let recipe = recipes.get(i)?;
        match (block.form, recipe) {
            (BlockForm::Rows, None) => {
                let (rows, start) = (block.committed_rows, out.len());
                let fields = [block.table.0, block.schema_version, rows, rows, 0, block.bytes.len() as u32];
                put_block_header(&mut out, BLOCK_ROWS, fields);
                put_lengths(&mut out, &block.ends, start);
                out.extend_from_slice(&block.bytes);
            }
            _ => {
                let root = block.root(Some(&secret), i as u32)?;
                put_digested(&mut out, block, &root, recipe.as_ref().unwrap_or(&block.recipe));
            }
        }
    }
    let fields = FrameHead {
        sparse: false,
        instant_us: frame.instant_us,
        secret: secret.0,
        previous: frame.previous,
        head: frame.head,
        sections: frame.sections.len() as u32,
        blocks: frame.blocks.len() as u32,
    };
    let body = body_crc(&out[frame::BODY..]);
    finish(&mut out, store_id, segment, frame.sequence.0, &fields, &body);
    Some(out)
}
