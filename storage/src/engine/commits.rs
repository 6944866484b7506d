//! The list of commits on disk: a file beside the manifest to which every flush appends, so that a
//! flush costs what is new and not what there is.
//!
//! A line that names the store, then blocks. A block is a line with its measures and its digest, and a
//! JSON document for each commit on a line of its own. Each digest covers the one before it; the
//! manifest names the last one that counts, so what it counts on is what was written. Bytes behind that
//! are left over from a flush that did not come to its end, and are written over.

use super::catalog::CommitInfo;
use super::error::{Error, ErrorKind};
use super::manifest::Manifest;
use super::shared::Shared;
use super::view::CommitList;
use crate::disk::Disk;
use crate::log::FramePlace;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A commit with the place of its frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommitRecord {
    pub info: CommitInfo,
    pub place: FramePlace,
}

/// The part of a file that counts, as the manifest names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommitsPart {
    /// Number of the file; 0 = there is none.
    pub file: u64,
    /// Commits in the part.
    pub commits: u64,
    /// Length of the part.
    pub bytes: u64,
    /// Digest of its last block, in hexadecimal.
    pub digest: String,
}

/// What the one writer remembers of its files.
#[derive(Debug)]
pub(crate) struct CommitsFiles {
    /// Number for the next file. Never given twice, so that no manifest, also none that was stored in
    /// vain, finds other commits under a name than it counts on.
    next: AtomicU64,
    /// A write failed: the manifest on disk may count on bytes behind those that are known here.
    in_doubt: AtomicBool,
}

impl CommitsFiles {
    /// The state after opening, with the greatest number that was ever given.
    pub fn new(last: u64) -> CommitsFiles {
        CommitsFiles { next: AtomicU64::new(last.saturating_add(1)), in_doubt: AtomicBool::new(false) }
    }

    /// Whether it is not known which manifest is on disk.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Ordering::SeqCst)
    }
}

const NAME: &str = "commits-";

/// Name of the file with a number.
pub(crate) fn file_name(file: u64) -> String {
    format!("{NAME}{file:012}")
}

/// The number of a file in the directory of a store, if it is a list of commits.
pub(crate) fn file_number(path: &Path) -> Option<u64> {
    let number = path.file_name()?.to_str()?.strip_prefix(NAME)?;
    number.bytes().all(|b| b.is_ascii_digit()).then(|| number.parse().ok())?
}

fn first_line(store_id: &str) -> String {
    format!("asofdb commits 1 {store_id}\n")
}

fn measures(first: u64, commits: u64, bytes: u64) -> String {
    format!("block {first} {commits} {bytes}")
}

/// Digest of a block; `before` is that of the block before it, or of the first line.
fn digest(before: &str, measures: &str, body: &[u8]) -> String {
    let hasher = Sha256::new().chain_update(before).chain_update(measures).chain_update(b"\n");
    crate::hex::encode(&hasher.chain_update(body).finalize())
}

impl CommitsPart {
    /// Appends commits, durably. A part of no file begins the file with the number `new`.
    fn append(
        &self,
        disk: &dyn Disk,
        dir: &Path,
        store_id: &str,
        new: u64,
        records: &[CommitRecord],
    ) -> Result<CommitsPart, Error> {
        let mut body = Vec::new();
        for record in records {
            serde_json::to_writer(&mut body, record).map_err(|e| {
                Error::new(ErrorKind::Invalid, format!("the list of commits cannot be written: {e}"))
            })?;
            body.push(b'\n');
        }
        let measures = measures(self.commits + 1, records.len() as u64, body.len() as u64);
        let is_new = self.file == 0;
        let line = first_line(store_id);
        let before = if is_new { digest("", "", line.as_bytes()) } else { self.digest.clone() };
        let digest = digest(&before, &measures, &body);
        let mut bytes = if is_new { line.into_bytes() } else { Vec::new() };
        bytes.extend_from_slice(format!("{measures} {digest}\n").as_bytes());
        bytes.append(&mut body);
        let file = if is_new { new } else { self.file };
        let path = dir.join(file_name(file));
        let mut handle = if is_new { disk.create(&path)? } else { disk.open_write(&path)? };
        handle.write_at(self.bytes, &bytes)?;
        handle.sync()?;
        if is_new {
            disk.sync_dir(dir)?;
        }
        let commits = self.commits + records.len() as u64;
        Ok(CommitsPart { file, commits, bytes: self.bytes + bytes.len() as u64, digest })
    }

    /// The commits of the part.
    ///
    /// # Errors
    /// `Damaged` if the file is missing or not what was written; `Io`.
    pub fn read(&self, disk: &dyn Disk, dir: &Path, store_id: &str) -> Result<Vec<CommitRecord>, Error> {
        if self.file == 0 {
            return Ok(Vec::new());
        }
        let path = dir.join(file_name(self.file));
        let damaged =
            |what: String| Error::new(ErrorKind::Damaged, format!("{}: {what}", path.display())).hint(HINT);
        if !disk.exists(&path)? {
            return Err(damaged("is missing".into()));
        }
        let handle = disk.open(&path)?;
        let len = handle.len()?;
        if len < self.bytes {
            return Err(damaged(format!("has {len} bytes, the manifest counts on {}", self.bytes)));
        }
        let whole = || damaged(format!("{} bytes are too many for this machine", self.bytes));
        let mut bytes = vec![0; usize::try_from(self.bytes).map_err(|_| whole())?];
        handle.read_at(0, &mut bytes)?;
        self.parse(&bytes, store_id).map_err(|(at, what)| damaged(format!("byte {at}: {what}")))
    }

    /// The commits of a file's bytes; an error has the byte where a block begins that is not right.
    fn parse(&self, bytes: &[u8], store_id: &str) -> Result<Vec<CommitRecord>, (usize, String)> {
        let line = first_line(store_id);
        if !bytes.starts_with(line.as_bytes()) {
            return Err((0, "is no list of commits of this store".into()));
        }
        let mut records = Vec::new();
        let mut before = digest("", "", line.as_bytes());
        let mut at = line.len();
        while at < bytes.len() {
            let block = Block::of(&bytes[at..], &before).ok_or((at, "its digest is wrong".into()))?;
            for line in block.body.split_inclusive(|b| *b == b'\n') {
                let record: CommitRecord = serde_json::from_slice(line).map_err(|e| (at, e.to_string()))?;
                let next = records.len() as u64 + 1;
                if record.info.seq != next {
                    return Err((at, format!("commit {} stands where {next} should", record.info.seq)));
                }
                records.push(record);
            }
            (before, at) = (block.digest, at + block.bytes);
        }
        if before != self.digest || records.len() as u64 != self.commits {
            return Err((at, "ends with another block than the manifest counts on".into()));
        }
        Ok(records)
    }
}

/// What to do about a list that is not right.
pub(crate) const HINT: &str = "run `asof rebuild` to derive it from the log again";

/// A block whose digest is right.
struct Block<'b> {
    body: &'b [u8],
    digest: String,
    /// Length with its line.
    bytes: usize,
}

impl<'b> Block<'b> {
    /// The block at the beginning of `bytes`.
    fn of(bytes: &'b [u8], before: &str) -> Option<Block<'b>> {
        let end = bytes.iter().position(|b| *b == b'\n')?;
        let (measures, found) = std::str::from_utf8(&bytes[..end]).ok()?.rsplit_once(' ')?;
        let len: usize = measures.rsplit_once(' ')?.1.parse().ok()?;
        let body = bytes.get(end + 1..end.checked_add(1)?.checked_add(len)?)?;
        let digest = digest(before, measures, body);
        (digest == found).then_some(Block { body, digest, bytes: end + 1 + len })
    }
}

/// The lists of commits in the directory of a store but the one that counts.
pub(crate) fn other_lists(disk: &dyn Disk, dir: &Path, part: &CommitsPart) -> Result<Vec<PathBuf>, Error> {
    let paths = disk.list(dir)?.into_iter();
    Ok(paths.filter(|path| file_number(path).is_some_and(|file| file != part.file)).collect())
}

impl Shared {
    /// Writes the commits up to `next.flushed` that are not on disk yet. The manifest that counts on
    /// them is still to be stored, and [`Shared::commits_stored`] to be called after that.
    pub fn write_commits(&self, next: &mut Manifest, commits: &CommitList) -> Result<(), Error> {
        if self.commits_files.in_doubt.swap(true, Ordering::SeqCst) {
            // What is behind the known part may count by now, and must not be written over.
            next.commits = CommitsPart::default();
        }
        let records = {
            let commits = commits.read().unwrap_or_else(PoisonError::into_inner);
            commits[next.commits.commits as usize..next.flushed as usize].to_vec()
        };
        if records.is_empty() {
            return Ok(());
        }
        let new = match next.commits.file {
            0 => self.commits_files.next.fetch_add(1, Ordering::SeqCst),
            file => file,
        };
        let disk = &*self.components.disk;
        next.commits = next.commits.append(disk, &self.dir, &self.store_id, new, &records)?;
        Ok(())
    }

    /// Says that a manifest is in place; `before` is the part that the one before it counted on.
    pub fn commits_stored(&self, manifest: &Manifest, before: &CommitsPart) {
        self.commits_files.in_doubt.store(false, Ordering::SeqCst);
        if manifest.commits.file != before.file {
            let disk = &*self.components.disk;
            let others = other_lists(disk, &self.dir, &manifest.commits).unwrap_or_default();
            // What cannot be removed now is removed when the store is opened again.
            others.iter().for_each(|path| drop(disk.remove(path)));
        }
    }

    /// Replaces the manifest on disk, after the list of commits that it counts on.
    pub fn store_manifest(&self, next: &mut Manifest, commits: &CommitList) -> Result<(), Error> {
        let before = next.commits.clone();
        self.write_commits(next, commits)?;
        next.store(&*self.components.disk, &self.dir)?;
        self.commits_stored(next, &before);
        Ok(())
    }
}

#[cfg(test)]
#[path = "commits_tests.rs"]
mod tests;
