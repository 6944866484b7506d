//! Tables as Parquet that any engine can read: see `docs/export.md`.
//!
//! An export is a question ([`question`]) whose rows are split into partitions and files ([`split`],
//! [`hive`]), written beside what readers see ([`generation`], [`place`]) with a list of what was
//! written ([`manifest`]), and then put in its place in one step.

mod file;
mod generation;
mod hive;
mod manifest;
mod options;
mod parquet_file;
mod periodic;
mod place;
mod question;
mod run;
mod split;

pub use manifest::{ExportedFile, Manifest};
pub use options::{ExportCompression, ExportLayout, ExportOptions, ExportOrder};
pub use parquet_file::ParquetFile;
pub use periodic::PeriodicExport;
pub use run::{ExportProgress, ExportReport, ExportedTable};

pub(crate) use run::export;

#[cfg(test)]
mod fault_tests;
