//! The log: the truth of a store.
//!
//! Append-only segments of frames, one frame a commit. A frame is acknowledged once it is synced;
//! everything else of the store can be made again from the log. Frames are chained by hashes over
//! per-event salted commitments, so history cannot be changed unseen where somebody keeps a
//! [`Head`] elsewhere, and yet single events can be erased. `docs/on-disk-format.md` has the bytes.
//!
//! Write: [`FrameBuilder`] (hashing and checksums, on any thread) then [`Log::append`] (one write,
//! one sync). Read: [`Log::read_from`]. Audit: [`Log::verify`].

mod append;
mod build;
mod chain;
mod error;
mod frame;
mod header;
mod layout;
mod open;
mod parse;
mod read;
mod reader;
mod salvage;
mod shrink;
mod sparse;
mod verify;

pub use append::Log;
pub use build::{FrameBuilder, SealedFrame};
pub use chain::{FrameSecret, Head, genesis, hash_rows};
pub use error::{Damage, LogError};
pub use frame::{BlockForm, Frame, RowBlock, Section};
pub use layout::{FRAME_BYTES_MAX, LOG_FORMAT_VERSION, SEGMENT_BYTES_MAX_DEFAULT};
pub use open::{Dropped, LogSettings, Recovered};
pub use read::{FramePlace, LogReader, Start};
pub use salvage::Cut;
pub use shrink::{Segment, Segments};
pub use sparse::sparse_frame;
pub use verify::VerifyReport;

#[cfg(test)]
mod tests;
