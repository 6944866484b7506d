//! Runs: immutable, columnar, sorted files of events of one table.
//!
//! Rows are sorted by key, then by rule B3 descending. Small recent runs are uncompressed Arrow IPC, which
//! is scanned without decoding; others are Parquet. Beside each run file stands a sidecar with a
//! digest of every block of the file, the chunks and a sparse key index; the manifest holds the
//! digest of the sidecar. No byte of a block is parsed before its digest was checked.

mod cache;
mod check;
mod coding;
mod derive;
mod deriving;
mod encode;
mod error;
mod filter;
mod heads;
mod input;
mod ipc;
mod kept;
mod keyed;
mod look_up;
mod merge;
mod meta;
mod meter;
mod order;
mod packing;
mod page;
mod parquet;
mod read;
mod reduce;
mod row_groups;
mod sort;
mod sparse;
mod widen;
mod write;

pub use cache::ColumnCache;
pub use derive::{Clock, Derivation, Derivations, Rows};
pub use error::RunError;
pub use input::MergeInput;
pub(crate) use keyed::column_of_part;
pub(crate) use look_up::Prepared;
pub use merge::merge_runs;
pub use meta::{
    ChunkMeta, Constant, Constants, DIGEST_BLOCK_BYTES, FilterPlace, MinMax, RUN_FORM, RunFlags, RunFormat,
    RunMeta, SPARSE_ROWS, Sidecar, SparseKey, TimeSpans, run_of_file,
};
pub(crate) use meter::{Used, plain_bytes};
pub use order::EventOrder;
pub use read::{RunBatches, RunReader};
pub use sort::sort_batch;
pub use widen::{cell_at, widen_column, widens_exactly};
pub use write::{RunSpec, RunWriter};

#[cfg(test)]
mod tests;
