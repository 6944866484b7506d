//! What went wrong with which file.

use std::io;
use std::path::{Path, PathBuf};

/// What was asked of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskOp {
    /// Creating a file.
    Create,
    /// Opening a file.
    Open,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Making bytes durable.
    Sync,
    /// Setting a length.
    SetLen,
    /// Renaming.
    Rename,
    /// Removing.
    Remove,
    /// Listing a directory.
    List,
    /// Creating a directory.
    CreateDir,
    /// Making names durable.
    SyncDir,
    /// Mapping a file into memory.
    Map,
    /// Taking a lock.
    Lock,
    /// Asking for length or existence.
    Stat,
}

impl DiskOp {
    fn words(self) -> &'static str {
        match self {
            DiskOp::Create => "create",
            DiskOp::Open => "open",
            DiskOp::Read => "read",
            DiskOp::Write => "write to",
            DiskOp::Sync => "sync",
            DiskOp::SetLen => "set the length of",
            DiskOp::Rename => "rename",
            DiskOp::Remove => "remove",
            DiskOp::List => "list the directory",
            DiskOp::CreateDir => "create the directory",
            DiskOp::SyncDir => "sync the directory",
            DiskOp::Map => "map",
            DiskOp::Lock => "lock",
            DiskOp::Stat => "look at",
        }
    }
}

/// A call to the disk that failed: the operation, the path and the cause.
#[derive(Debug, thiserror::Error)]
#[error("cannot {} {}: {source}", op.words(), path.display())]
pub struct DiskError {
    /// What was asked.
    pub op: DiskOp,
    /// Of which file.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

impl DiskError {
    pub(crate) fn new(op: DiskOp, path: &Path, source: io::Error) -> DiskError {
        DiskError { op, path: path.to_path_buf(), source }
    }

    /// The kind of the cause.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Whether there is no such file.
    pub fn is_not_found(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }

    /// Whether the lock is held by another.
    pub fn is_locked(&self) -> bool {
        self.op == DiskOp::Lock && self.kind() == io::ErrorKind::WouldBlock
    }

    /// Whether there was no room left on the disk.
    pub fn is_full(&self) -> bool {
        matches!(self.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// A length as an index into memory.
pub(super) fn to_usize(len: u64, path: &Path) -> Result<usize, DiskError> {
    usize::try_from(len).map_err(|_| {
        DiskError::new(DiskOp::Read, path, io::Error::other(format!("{len} bytes do not fit into memory")))
    })
}

/// The error of a handle whose sync failed before.
pub(super) fn poisoned(op: DiskOp, path: &Path) -> DiskError {
    DiskError::new(
        op,
        path,
        io::Error::other("an earlier sync of this file failed, so what it holds is in doubt; open it again"),
    )
}
