//! Files that come and grow while they are read: which may still be written to, and which need no second
//! look.

use super::compression::is_compressed;
use super::detect::{Container, detect};
use super::paths::Input;
use crate::format::{Format, FormatOptions};
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Bytes of a file by which it is told what it is.
const HEAD_BYTES: usize = 64 << 10;

/// Reads the wall clock, microseconds since 1970.
pub type LiveClock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// How files are read that come and grow meanwhile: see [`super::FileOptions::live`].
#[derive(Clone)]
pub struct Live {
    /// The clock that the files' times of change are held against.
    pub clock: LiveClock,
    /// A file that was changed less than this ago may still be written to.
    pub quiet: Duration,
    /// What the names of streams begin with: what one reader took is new to another.
    pub prefix: String,
}

/// What tells a file that was changed from one that was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    changed_ns: i128,
}

impl Stamp {
    pub fn of(metadata: &Metadata) -> Stamp {
        let changed_ns = match metadata.modified().map(|t| t.duration_since(UNIX_EPOCH)) {
            Ok(Ok(after)) => after.as_nanos() as i128,
            Ok(Err(before)) => -(before.duration().as_nanos() as i128),
            // A file system without such times: every file is at rest.
            Err(_) => 0,
        };
        Stamp { bytes: metadata.len(), changed_ns }
    }
}

impl Live {
    /// Whether a file may still be written to. A change that lies far in the future is one of another
    /// clock, and says nothing.
    pub(super) fn is_fresh(&self, stamp: Stamp) -> bool {
        let age_ns = (self.clock)() as i128 * 1_000 - stamp.changed_ns;
        age_ns.unsigned_abs() < self.quiet.as_nanos()
    }

    /// Whether the file at `path` may be written to now.
    pub(super) fn is_growing(&self, path: &Path) -> bool {
        path.metadata().is_ok_and(|m| self.is_fresh(Stamp::of(&m)))
    }

    /// Whether nothing of a fresh file can be read yet: it counts only as a whole, or has no whole line.
    pub(super) fn is_unripe(
        &self,
        input: &Input,
        stamp: Stamp,
        declared: Option<Format>,
        options: &FormatOptions,
    ) -> io::Result<bool> {
        if !self.is_fresh(stamp) {
            return Ok(false);
        }
        let mut head = Vec::new();
        File::open(&input.path)?.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        if head.is_empty() || is_compressed(&head) {
            return Ok(true);
        }
        Ok(match detect(&input.shown(), &head, declared, options).0 {
            Container::Array | Container::Parquet | Container::AvroFile => true,
            Container::Lines | Container::Kdump | Container::Csv => !head.contains(&b'\n'),
        })
    }
}

/// Files that were read to their end and at rest by then.
#[derive(Debug, Default)]
pub(super) struct Seen {
    files: HashMap<PathBuf, Stamp>,
}

impl Seen {
    /// Whether the file is as it was when it had been read.
    pub fn has(&self, path: &Path) -> bool {
        let Some(stamp) = self.files.get(path) else { return false };
        path.metadata().is_ok_and(|m| Stamp::of(&m) == *stamp)
    }

    /// Notes a file that was read to its end.
    pub fn put(&mut self, path: PathBuf, stamp: Stamp) {
        self.files.insert(path, stamp);
    }

    /// Forgets files that are not there any more.
    pub fn keep(&mut self, there: &[Input]) {
        if self.files.len() > there.len() {
            let there: std::collections::HashSet<&Path> = there.iter().map(|i| i.path.as_path()).collect();
            self.files.retain(|path, _| there.contains(path.as_path()));
        }
    }
}
