//! asofdb: an embedded, single-node bitemporal change store.

pub mod change;
pub mod export;
pub mod format;
pub mod source;

pub use asofdb_storage::time;
