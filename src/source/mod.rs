//! Where bytes come from, and the identity of what was read (rule C1).

mod ahead;
mod avro_file;
mod blocks;
mod compression;
mod detect;
mod file;
mod files;
pub(crate) mod kafka;
mod kdump;
mod kept;
mod kept_schemas;
mod known;
mod live;
mod paths;
mod position;
pub(crate) mod pull;
mod registry;
pub(crate) mod schemas;

pub use asofdb_storage::timeline::natural_cmp as natural_order;
pub use file::PlacedSink;
pub use files::{FileOptions, FileSource};
pub use kafka::{KafkaOptions, Start, Until};
pub use kdump::Record;
pub use kept::{KeptMessages, Reading};
pub(crate) use kept_schemas::shown as shown_schemas;
pub use live::{Live, LiveClock};
pub use position::{Notice, Place, SourceError, SourcePosition};
pub use pull::is_address as is_database;
pub use registry::Registry;

#[cfg(test)]
mod tests;
