//! The keyed index: what a key's newest row is, without a look into the runs.
//!
//! One redb file, derived from log and runs. It may be thrown away at any time: whatever is wrong
//! with it is [`IndexError::Damaged`], upon which the caller removes the file ([`Index::remove`])
//! and makes it again. The whole file is checked when it is opened, and every value carries a
//! checksum and its full key, so a damaged index gives errors and no wrong answers.
//! `docs/on-disk-format.md` has the tables and bytes.

mod entry;
mod error;
mod file;
mod read;
mod row;
mod verify;
mod write;

pub use error::IndexError;
pub use file::Index;
pub use row::OpenRow;

#[cfg(test)]
mod tests;
