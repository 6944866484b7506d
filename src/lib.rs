//! asofdb: an embedded, single-node bitemporal change store.
#![doc = include_str!("../docs/embedding.md")]

pub mod change;
pub mod count;
pub mod error;
pub mod export;
pub mod flow;
pub mod format;
pub mod intake;
pub mod memory;
pub mod near;
pub mod options;
pub mod quarantine;
pub mod source;
pub mod sql;
pub mod store;
mod table;

pub use arrow;
pub use asofdb_storage::{time, value};
pub use error::{Error, ErrorKind, Result};
pub use export::{ExportOptions, ExportReport};
pub use intake::{IntakeReport, Progress};
pub use memory::MemoryBudget;
pub use options::IntakeOptions;
pub use quarantine::QuarantineEntry;
pub use store::Store;
pub use table::{KeyLookUp, Table};
