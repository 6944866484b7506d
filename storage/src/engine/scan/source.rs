//! What a scan reads: sorted sources of one table, in memory or in run files.

use crate::engine::error::Error;
use crate::run::{ChunkMeta, RunMeta};
use crate::schema::TableSchema;
use arrow::array::RecordBatch;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// Batches of consecutive rows of a source, with the asked columns by name.
pub(crate) type BatchIter = Box<dyn Iterator<Item = Result<RecordBatch, Error>> + Send>;

/// What the rows of a source may hold; lets a scan leave out columns and checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    pub valid_from: (i64, i64),
    pub system: (i64, i64),
    pub commit: (u64, u64),
    /// Some event ends by itself (rule B13).
    pub bounded: bool,
    /// Some event authors only some columns, or has placeholders.
    pub partial: bool,
    /// Some event changes a key.
    pub moves: bool,
    /// Some event has tie-breaks.
    pub ties: bool,
    /// Some event writes a column leaf by leaf (rule B5).
    pub leaves: bool,
}

/// Rows sorted by key, then rule B3 descending, with the physical columns of
/// [`crate::event::columns`] and a dense `key_no`.
pub(crate) trait SortedSource: Debug + Send + Sync {
    fn rows(&self) -> usize;
    fn traits(&self) -> Traits;
    /// The run that it is and the chunks of it; `None` in memory.
    fn run(&self) -> Option<(&RunMeta, &[ChunkMeta])> {
        None
    }
    /// First row whose key is not below `key`.
    fn lower_bound(&self, key: &[u8]) -> Result<usize, Error>;
    /// Rows of `key`; empty where it has none.
    fn find_key(&self, key: &[u8]) -> Result<Range<usize>, Error>;
    /// Batches of the rows `rows`, with the columns of `columns` that the source has; image columns
    /// in the types of `schema`.
    fn scan(
        &self,
        columns: &[String],
        rows: Range<usize>,
        schema: &Arc<TableSchema>,
    ) -> Result<BatchIter, Error>;
    /// All rows of `key`, with `key`, a `key_no` that is the same in all of them, and the columns of
    /// `columns` that the source has; image columns in the types of `schema`. `None` where it has no rows.
    fn rows_of_key(
        &self,
        key: &[u8],
        columns: &[&str],
        schema: &Arc<TableSchema>,
    ) -> Result<Option<RecordBatch>, Error>;
    /// Prepares reading rows by number with those of `columns` that the source has, but `key` and `key_no`;
    /// image columns in the types of `schema`. `known` are columns that will be brought along.
    fn row_reader(
        self: Arc<Self>,
        columns: &[&str],
        known: &[&str],
        schema: &Arc<TableSchema>,
    ) -> Result<Arc<dyn RowReader>, Error>;
    /// Columns that have the value of the key where a row writes them, as far as it is known of the rows
    /// around row `row` in the types of `schema`: a bit each.
    fn keyed(&self, _row: usize, _schema: &TableSchema) -> u64 {
        0
    }
    /// Up to `n - 1` ascending keys that split the rows into about equal parts.
    fn split_keys(&self, n: usize) -> Result<Vec<Vec<u8>>, Error>;
}

/// Reads some columns of few rows of a source, by number.
pub(crate) trait RowReader: Debug + Send + Sync {
    /// Some rows; `known` has the columns of them that were said to be known, and may be left out if none were.
    fn rows(&self, rows: Range<usize>, known: Option<&RecordBatch>) -> Result<RecordBatch, Error>;
}

impl Traits {
    /// What the rows of any of some sources may hold.
    pub fn of_all(all: &[Traits]) -> Traits {
        fn span<T: Ord + Copy>(all: &[Traits], of: impl Fn(&Traits) -> (T, T), none: T) -> (T, T) {
            let least = all.iter().map(|t| of(t).0).min();
            (least.unwrap_or(none), all.iter().map(|t| of(t).1).max().unwrap_or(none))
        }
        let any = |f: fn(&Traits) -> bool| all.iter().any(f);
        Traits {
            valid_from: span(all, |t| t.valid_from, 0),
            system: span(all, |t| t.system, 0),
            commit: span(all, |t| t.commit, 0),
            bounded: any(|t| t.bounded),
            partial: any(|t| t.partial),
            moves: any(|t| t.moves),
            ties: any(|t| t.ties),
            leaves: any(|t| t.leaves),
        }
    }
}
