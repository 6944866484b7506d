//! The keyed index: what a key's newest row is, without a look into the runs.
//!
//! One redb file, derived from log and runs. It may be thrown away at any time: whatever is wrong
//! with it is [`IndexError::Damaged`], upon which the caller removes the file ([`Index::remove`])
//! and makes it again. Every value carries a checksum that covers its key, so a damaged index gives
//! errors and no wrong rows; a damaged page may hide a key, so that no row means nothing.
//! `docs/on-disk-format.md` has the tables and bytes.

mod backend;
mod entry;
mod error;
mod file;
mod read;
mod row;
mod verify;
mod write;

pub use error::IndexError;
pub use file::{Index, IndexOpening};
pub use read::{Applied, Values};
pub use row::OpenRow;
pub use write::{Change, Extent};

#[cfg(test)]
mod tests;
