//! The file system as a component: one seam for production, crash tests and fault injection.
//!
//! Promises every implementation keeps: a file's bytes are durable once [`DiskFile::sync`] returned
//! Ok; a name is durable once [`Disk::sync_dir`] of its directory returned Ok; nothing else is.
//! After a failed sync a handle is poisoned and refuses everything but reads, because the system
//! may have thrown the unwritten bytes away and would call a second sync a success.

mod error;
mod lock;
mod map;
mod real;
pub mod sim;

pub use error::{DiskError, DiskOp};
pub use lock::{LockHolder, LockState};
pub use real::RealDisk;
pub use sim::SimDisk;

use bytes::Bytes;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// What the store needs of a file system. Directories and files are made private to the user.
pub trait Disk: Send + Sync + Debug {
    /// Creates a file that must not exist yet (mode 0600), for reading and writing.
    fn create(&self, path: &Path) -> Result<Box<dyn DiskFile>, DiskError>;

    /// Opens an existing regular file for reading. Symbolic links are refused.
    fn open(&self, path: &Path) -> Result<Box<dyn DiskFile>, DiskError>;

    /// Opens an existing regular file for reading and writing. Symbolic links are refused.
    fn open_write(&self, path: &Path) -> Result<Box<dyn DiskFile>, DiskError>;

    /// The whole file as bytes that need no reading first: a memory map where there is one. The
    /// file must never be changed or shortened afterwards; it may be removed.
    fn map(&self, path: &Path) -> Result<Bytes, DiskError>;

    /// Gives a file another name in one step, over any file that has it already.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<(), DiskError>;

    /// The paths in a directory, sorted.
    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, DiskError>;

    /// Creates a directory (mode 0700); Ok if there is one. The parent must exist.
    fn create_dir(&self, dir: &Path) -> Result<(), DiskError>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> Result<(), DiskError>;

    /// The length of a file or anything else of that name; `None` if there is nothing.
    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError>;

    /// Takes the lock that the file `path` stands for and writes `holder` into it, creating the
    /// file if need be. The lock ends when the result is dropped or the process dies.
    ///
    /// # Errors
    /// [`DiskError::is_locked`] tells that another has it; the message names the holder.
    fn lock(&self, path: &Path, holder: &LockHolder) -> Result<Box<dyn DiskLock>, DiskError>;

    /// Who last wrote into the lock file `path`; `None` if it cannot be told.
    fn lock_holder(&self, path: &Path) -> Option<LockHolder>;

    /// Whether somebody has the lock now. Looking takes nothing from anybody.
    fn lock_state(&self, path: &Path) -> LockState;

    /// Whether paths are those of the operating system, so that a library can open them by itself.
    fn is_system(&self) -> bool {
        false
    }

    /// Whether there is anything called `path`.
    fn exists(&self, path: &Path) -> Result<bool, DiskError> {
        Ok(self.len(path)?.is_some())
    }

    /// The whole file, copied into memory.
    fn read(&self, path: &Path) -> Result<Vec<u8>, DiskError> {
        let file = self.open(path)?;
        let mut bytes = vec![0; error::to_usize(file.len()?, path)?];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    }
}

/// An open file.
pub trait DiskFile: Send + Sync + Debug {
    /// Where the file was opened.
    fn path(&self) -> &Path;

    /// The length in bytes.
    fn len(&self) -> Result<u64, DiskError>;

    /// Whether the file holds no bytes.
    fn is_empty(&self) -> Result<bool, DiskError> {
        Ok(self.len()? == 0)
    }

    /// Fills `out` from byte `offset` on; an error if the file ends before.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError>;

    /// Writes `bytes` from byte `offset` on, in one call where the system allows it.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// Sets the length; new bytes are zero.
    fn set_len(&mut self, len: u64) -> Result<(), DiskError>;

    /// Makes bytes and length durable (`fdatasync`). An error poisons the handle.
    fn sync(&mut self) -> Result<(), DiskError>;
}

/// A lock that is held until it is dropped.
pub trait DiskLock: Send + Sync + Debug {
    /// The lock file.
    fn path(&self) -> &Path;
}

#[cfg(test)]
mod tests;
