//! What can be wrong with an index.

use crate::disk::{DiskError, DiskOp};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Why the index gave no answer or took no change.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The file is not an index of this store, or not any more. Remove it and make it again from the
    /// runs; nothing is lost.
    #[error("the index is damaged and has to be made again: {what}")]
    Damaged {
        /// What is wrong, and with which file.
        what: String,
    },
    /// Another handle or process has the index open for writing. The file is left as it is.
    #[error("the index {} is open in another process; close that one first", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// An earlier change failed. Whether it counts is seen when the index is opened again.
    #[error("an earlier change of the index failed and is in doubt; open the index again")]
    InDoubt,
    /// The disk refused a call.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A change that the index cannot take; nothing was written.
    #[error("the index cannot take a change: {0}")]
    Refused(String),
    /// The caller ended a change before it was whole; nothing was written.
    #[error("a change of the index was ended")]
    Stopped,
}

impl IndexError {
    /// Whether the file should be removed and made again.
    pub fn is_damaged(&self) -> bool {
        matches!(self, IndexError::Damaged { .. })
    }
}

/// A fault inside of the index, before the file is named.
#[derive(Debug)]
pub(super) enum Fault {
    Redb(Box<redb::Error>),
    Damaged(String),
    Panic(String),
    /// An error that came with the changes.
    Caller(IndexError),
}

macro_rules! from_redb {
    ($($error:ty),*) => {
        $(impl From<$error> for Fault {
            fn from(e: $error) -> Fault {
                Fault::Redb(Box::new(e.into()))
            }
        })*
    };
}

from_redb!(
    redb::DatabaseError,
    redb::TransactionError,
    redb::TableError,
    redb::StorageError,
    redb::CommitError,
    redb::CursorError
);

impl Fault {
    pub(super) fn at(self, path: &Path) -> IndexError {
        let damaged = |what: &dyn std::fmt::Display| IndexError::Damaged {
            what: format!("{}: {what}", path.display()),
        };
        match self {
            Fault::Caller(e) => e,
            Fault::Damaged(what) => damaged(&what),
            Fault::Panic(what) => damaged(&format!("reading it failed unexpectedly ({what})")),
            Fault::Redb(e) => match *e {
                redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => {
                    IndexError::Busy { path: path.to_path_buf() }
                }
                redb::Error::ValueTooLarge(n) => {
                    IndexError::Refused(format!("a row of {n} bytes is too large"))
                }
                redb::Error::PreviousIo
                | redb::Error::DatabaseClosed
                | redb::Error::TransactionPoisoned
                | redb::Error::LockPoisoned(_) => IndexError::InDoubt,
                // Errors without a number of the system are redb's own: not a database, too short.
                redb::Error::Io(e) if e.raw_os_error().is_some() => {
                    IndexError::Disk(DiskError::new(DiskOp::Write, path, e))
                }
                e => damaged(&e),
            },
        }
    }
}

/// Runs `work`; a panic inside of it, as redb may have upon a damaged file, becomes a fault.
pub(super) fn guard<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Fault::Panic(words(panic))))
}

fn words(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(s) => *s,
        Err(other) => other.downcast_ref::<&str>().unwrap_or(&"no message").to_string(),
    }
}
