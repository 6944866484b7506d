//! Where bytes come from, and the identity of what was read (rule C1).

mod blocks;
mod detect;
mod file;
mod files;
mod kdump;
mod natural;
mod paths;
mod position;

pub use file::PlacedSink;
pub use files::{FileOptions, FileSource};
pub use natural::natural_order;
pub use position::{Notice, Place, SourceError, SourcePosition};

#[cfg(test)]
mod tests;
