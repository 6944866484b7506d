//! What can be wrong with a log.

use crate::disk::DiskError;
use std::path::PathBuf;

/// A place of the log that does not hold what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Number of the segment.
    pub segment: u64,
    /// First byte of the frame or header that is damaged.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Damage { path, segment, offset, what } = self;
        write!(f, "segment {segment} ({}) at byte {offset}: {what}", path.display())
    }
}

/// Why a log could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The disk refused a call.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Bytes that were acknowledged are not what was written. Nothing was changed.
    #[error(
        "the log is damaged in {0}. The file was left as it is; restore it from a backup, or run \
         verify for a list of all damage"
    )]
    Damaged(Damage),
    /// A segment is missing between others or at the end.
    #[error(
        "segment {segment} of the log is missing ({}); put the file back from a backup", path.display()
    )]
    Missing {
        /// Number of the segment.
        segment: u64,
        /// Where it should be.
        path: PathBuf,
    },
    /// The log ends before a commit that is known to have been acknowledged.
    #[error(
        "the log in {} ends at commit {last}, but commit {floor} was acknowledged; a part of the log \
         was lost or an older copy was put back", dir.display()
    )]
    EndsTooEarly {
        /// Directory of the log.
        dir: PathBuf,
        /// Last commit found.
        last: u64,
        /// Commit that must be there.
        floor: u64,
    },
    /// The file belongs to another store.
    #[error("{} belongs to another store (its id is {found}, ours {own})", path.display())]
    OtherStore {
        /// The file.
        path: PathBuf,
        /// Store id in the file, in hexadecimal.
        found: String,
        /// Store id that was expected.
        own: String,
    },
    /// Something that only a newer version understands.
    #[error("{} needs a newer version of asofdb: {what}", path.display())]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// What this version does not know.
        what: String,
    },
    /// An earlier append failed. Whether its commit counts is decided when the log is opened again.
    #[error("an earlier commit failed and is in doubt; close the store and open it again")]
    InDoubt,
    /// The log was opened for reading only.
    #[error("the log was opened for reading only")]
    ReadOnly,
    /// A frame that the log cannot take; nothing was written.
    #[error("a commit cannot be written: {0}")]
    Refused(String),
}

impl LogError {
    /// The damage, if that is what it is.
    pub fn damage(&self) -> Option<&Damage> {
        match self {
            LogError::Damaged(damage) => Some(damage),
            _ => None,
        }
    }
}
