//! asofdb: an embedded, single-node bitemporal change store.

pub mod change;
pub mod format;
pub mod source;
