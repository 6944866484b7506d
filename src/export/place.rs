//! The few things an export asks of a file system, each a step that a test can make fail.

use crate::error::{Error, Result};
use asofdb_storage::hex;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that wait before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// What is asked of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    CreateDir,
    CreateFile,
    Write,
    Sync,
    Rename,
    Link,
    Remove,
}

impl Step {
    fn words(self) -> &'static str {
        match self {
            Step::CreateDir => "create the directory",
            Step::CreateFile => "create",
            Step::Write => "write to",
            Step::Sync => "sync",
            Step::Rename => "rename",
            Step::Link => "link",
            Step::Remove => "remove",
        }
    }
}

/// Asked before every step; an error is the step's.
pub(crate) type Gate = Arc<dyn Fn(Step, &Path) -> io::Result<()> + Send + Sync>;

/// The file system.
#[derive(Clone, Default)]
pub(crate) struct Place {
    gate: Option<Gate>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("gated", &self.gate.is_some()).finish()
    }
}

/// The error of a step, in words.
pub(crate) fn failed(step: Step, path: &Path, e: &io::Error) -> Error {
    let error = Error::failed(format!("cannot {} {}: {e}", step.words(), path.display()));
    match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            error.hint("the disk is full; an earlier export is still in place")
        }
        io::ErrorKind::PermissionDenied => error.hint("write to a directory of your own"),
        _ => error,
    }
}

impl Place {
    #[cfg(test)]
    pub fn gated(gate: Gate) -> Place {
        Place { gate: Some(gate) }
    }

    fn step<T>(&self, step: Step, path: &Path, run: impl FnOnce() -> io::Result<T>) -> Result<T> {
        let allowed = self.gate.as_ref().map_or(Ok(()), |gate| gate(step, path));
        allowed.and_then(|()| run()).map_err(|e| failed(step, path, &e))
    }

    /// Creates a directory and those above it that are missing.
    pub fn create_dirs(&self, dir: &Path) -> Result<()> {
        self.step(Step::CreateDir, dir, || fs::create_dir_all(dir))
    }

    /// Creates a file that is not there yet.
    pub fn create(&self, path: &Path) -> Result<OutFile> {
        let file = self.step(Step::CreateFile, path, || File::create_new(path))?;
        let raw =
            RawFile { file, path: path.to_owned(), place: self.clone(), sha256: Sha256::new(), bytes: 0 };
        Ok(OutFile { out: BufWriter::with_capacity(BUFFER_BYTES, raw) })
    }

    /// Makes the names in a directory durable.
    pub fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.step(Step::Sync, dir, || File::open(dir).and_then(|d| d.sync_all()))
    }

    /// Makes the names in a directory and in all below it durable.
    pub fn sync_tree(&self, dir: &Path) -> Result<()> {
        for entry in self.list(dir)? {
            if entry.is_dir() && !entry.is_symlink() {
                self.sync_tree(&entry)?;
            }
        }
        self.sync_dir(dir)
    }

    /// Gives something another name, over what has it.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.step(Step::Rename, to, || fs::rename(from, to))
    }

    /// Makes `link` lead to `target` in one step, whatever link was there.
    pub fn relink(&self, target: &Path, link: &Path) -> Result<()> {
        let mut name = OsString::from(".");
        name.push(link.file_name().unwrap_or_default());
        name.push(".new-link");
        let fresh = link.with_file_name(name);
        self.step(Step::Link, &fresh, || {
            match fs::remove_file(&fresh) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
            symlink(target, &fresh)
        })?;
        self.rename(&fresh, link)
    }

    /// Removes a directory with all that is in it.
    pub fn remove_tree(&self, dir: &Path) -> Result<()> {
        self.step(Step::Remove, dir, || match fs::remove_dir_all(dir) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        })
    }

    /// The paths in a directory, sorted.
    pub fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let read = || fs::read_dir(dir)?.map(|e| e.map(|e| e.path())).collect::<io::Result<Vec<_>>>();
        let mut paths = read().map_err(|e| Error::failed(format!("cannot list {}: {e}", dir.display())))?;
        paths.sort();
        Ok(paths)
    }
}

#[derive(Debug)]
struct RawFile {
    file: File,
    path: PathBuf,
    place: Place,
    sha256: Sha256,
    bytes: u64,
}

impl Write for RawFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(gate) = &self.place.gate
            && let Err(e) = gate(Step::Write, &self.path)
        {
            // A disk that fails may have taken a part.
            self.file.write_all(&bytes[..bytes.len() / 2])?;
            return Err(e);
        }
        let n = self.file.write(bytes)?;
        self.sha256.update(&bytes[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file that is being written, from front to back.
#[derive(Debug)]
pub(crate) struct OutFile {
    out: BufWriter<RawFile>,
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// What was written to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub bytes: u64,
    /// In hexadecimal.
    pub sha256: String,
}

impl OutFile {
    /// Writes the rest and makes the bytes durable.
    pub fn close(self) -> Result<Written> {
        let path = self.out.get_ref().path.clone();
        let raw = self.out.into_inner().map_err(|e| failed(Step::Write, &path, e.error()))?;
        raw.place.step(Step::Sync, &path, || raw.file.sync_all())?;
        Ok(Written { bytes: raw.bytes, sha256: hex::encode(&raw.sha256.finalize()) })
    }
}
