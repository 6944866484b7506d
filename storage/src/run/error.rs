//! Errors of runs.

use crate::value::ColumnType;
use std::path::PathBuf;

/// What can go wrong with runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A batch does not have the physical schema of events, or is not in the order of runs.
    #[error("not a batch of events: {0}")]
    NotEvents(String),
    /// The file system refused something.
    #[error(transparent)]
    Disk(#[from] crate::disk::DiskError),
    /// A file of a run is missing, damaged, cut short or not the one the manifest means. Nothing of
    /// the damaged part was parsed. The run can be built again from the log.
    #[error("{}: the run is damaged: {what}; it can be rebuilt from the log", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A newer version of asofdb wrote the run.
    #[error("{}: was written by a newer version of asofdb, in form {form}", file.display())]
    Newer {
        /// The run file.
        file: PathBuf,
        /// Its form.
        form: u32,
    },
    /// A column widened in a way that the stored values cannot follow: the digits or the form that
    /// the source sent are only in the log.
    #[error("column {column} widened from {} to {}, which needs the events of the log", from.name(), to.name())]
    NeedsReplay {
        /// Physical name of the column.
        column: String,
        /// Its type in the run.
        from: ColumnType,
        /// Its type now.
        to: ColumnType,
    },
    /// The thread that encodes could not be started, or stopped without a word.
    #[error("encoding a run: {0}")]
    Encoder(String),
    /// Arrow refused a batch.
    #[error("columns of a run: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
    /// Parquet refused to write or read.
    #[error("Parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
}
