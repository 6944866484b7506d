//! What the SQL layer asks of a store: the calls of [`Snapshot`], behind a trait so that tests can
//! put something small in its place.

use super::error::SqlError;
use asofdb_storage::engine::{
    Bounds, Catalog, CommitInfo, CommitRequest, Engine, Error, PointRequest, Quarantined, ScanCounts,
    ScanRequest, ScanStream, Snapshot, SortedPoints, Touch, Touching, Why,
};
use asofdb_storage::id::{ColumnId, TableId};
use asofdb_storage::schema::TableSchema;
use asofdb_storage::time::CommitSeq;
use datafusion::arrow::array::RecordBatch;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// A store at one commit; see [`Snapshot`] for what each call promises.
pub trait Reader: Debug + Send + Sync {
    /// The pinned commit; 0 in an empty store.
    fn commit(&self) -> CommitSeq;
    /// The instant of the pinned commit, if there is one.
    fn commit_at(&self) -> Option<i64>;
    /// The catalog at the pinned commit.
    fn catalog(&self) -> &Arc<Catalog>;
    /// All commits up to the pinned one, oldest first.
    fn commits(&self) -> Result<Vec<CommitInfo>, Error>;
    /// The newest commit whose instant is at or before `at`; 0 if there is none.
    fn commit_at_or_before(&self, at: i64) -> CommitSeq;
    /// Quarantined messages with the commit that stored each, oldest first.
    fn quarantine(&self) -> Result<Vec<(CommitSeq, Quarantined)>, Error>;
    /// Answers a question that yields many rows, counting what is read.
    fn scan(&self, request: &ScanRequest, counts: &Arc<ScanCounts>) -> Result<Vec<ScanStream>, Error>;
    /// The keys that have certain events, where that is less work than reading all of them.
    fn touched(
        &self,
        table: TableId,
        asked: &Touching,
        counts: &Arc<ScanCounts>,
    ) -> Result<Option<Vec<Touch>>, Error>;
    /// Answers many point questions in one pass, counting what is read.
    fn points(
        &self,
        table: TableId,
        requests: &[PointRequest],
        projection: &[ColumnId],
        counts: &Arc<ScanCounts>,
    ) -> Result<(Vec<u32>, RecordBatch), Error>;
    /// Begins to answer point questions in the order of their keys, counting what is read.
    fn sorted_points(
        &self,
        table: TableId,
        projection: &[ColumnId],
        counts: &Arc<ScanCounts>,
    ) -> Result<SortedPoints, Error>;
    /// Which events gave a column of a row its value.
    fn why(
        &self,
        table: TableId,
        key: &[u8],
        column: ColumnId,
        bounds: Bounds,
        schema: &Arc<TableSchema>,
    ) -> Result<Why, Error>;
    /// Up to `n - 1` ascending keys that divide a table into about equal parts.
    fn split_keys(&self, table: TableId, n: usize) -> Result<Vec<Vec<u8>>, Error>;
}

impl Reader for Snapshot {
    fn commit(&self) -> CommitSeq {
        Snapshot::commit(self)
    }

    fn commit_at(&self) -> Option<i64> {
        Snapshot::commit_at(self)
    }

    fn catalog(&self) -> &Arc<Catalog> {
        Snapshot::catalog(self)
    }

    fn commits(&self) -> Result<Vec<CommitInfo>, Error> {
        Snapshot::commits(self)
    }

    fn commit_at_or_before(&self, at: i64) -> CommitSeq {
        Snapshot::commit_at_or_before(self, at)
    }

    fn quarantine(&self) -> Result<Vec<(CommitSeq, Quarantined)>, Error> {
        Snapshot::quarantine(self)
    }

    fn scan(&self, request: &ScanRequest, counts: &Arc<ScanCounts>) -> Result<Vec<ScanStream>, Error> {
        Snapshot::scan_counted(self, request, counts)
    }

    fn touched(
        &self,
        table: TableId,
        asked: &Touching,
        counts: &Arc<ScanCounts>,
    ) -> Result<Option<Vec<Touch>>, Error> {
        Snapshot::touched(self, table, asked, counts)
    }

    fn points(
        &self,
        table: TableId,
        requests: &[PointRequest],
        projection: &[ColumnId],
        counts: &Arc<ScanCounts>,
    ) -> Result<(Vec<u32>, RecordBatch), Error> {
        Snapshot::points_counted(self, table, requests, projection, counts)
    }

    fn sorted_points(
        &self,
        table: TableId,
        projection: &[ColumnId],
        counts: &Arc<ScanCounts>,
    ) -> Result<SortedPoints, Error> {
        Snapshot::sorted_points(self, table, projection, Some(counts))
    }

    fn why(
        &self,
        table: TableId,
        key: &[u8],
        column: ColumnId,
        bounds: Bounds,
        schema: &Arc<TableSchema>,
    ) -> Result<Why, Error> {
        Snapshot::why(self, table, key, column, bounds, schema)
    }

    fn split_keys(&self, table: TableId, n: usize) -> Result<Vec<Vec<u8>>, Error> {
        Snapshot::split_keys(self, table, n)
    }
}

/// Where a session takes its readers from: each query pins one commit for all its tables.
pub trait ReaderSource: Debug + Send + Sync {
    /// Pins the newest commit.
    fn pin(&self) -> Result<Arc<dyn Reader>, Error>;

    /// Changes the store by the commit that `make` gives for its newest catalog; `None` = there is nothing
    /// to change. Where another process holds the store, `statement`, which `make` stands for, is handed
    /// to it.
    ///
    /// # Errors
    /// Those of `make` and of the store; `Unsupported` where nothing can be changed through this source.
    fn change(&self, _statement: &str, _make: &mut MakeChange<'_>) -> Result<Changed, SqlError> {
        Err(SqlError::unsupported("this session only asks questions"))
    }
}

/// Gives the commit that changes a store, for its newest catalog.
pub type MakeChange<'m> = dyn FnMut(&Catalog) -> Result<Option<CommitRequest>, SqlError> + 'm;

/// What came of a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Changed {
    /// It was committed, or there was nothing to change.
    Here(Option<CommitInfo>),
    /// The process that holds the store did it, and says this.
    Elsewhere(String),
}

/// One change at a time: what it was made for is still so when it is committed.
static CHANGES: Mutex<()> = Mutex::new(());

/// Makes a change of a store that is open to write and commits it.
pub(crate) fn change_engine(engine: &Engine, make: &mut MakeChange<'_>) -> Result<Changed, SqlError> {
    let _one = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let request = make(Engine::pin(engine).catalog())?;
    Ok(Changed::Here(request.map(|request| engine.commit(request)).transpose()?))
}

impl ReaderSource for Engine {
    fn pin(&self) -> Result<Arc<dyn Reader>, Error> {
        Ok(Arc::new(Engine::pin(self)))
    }

    fn change(&self, _statement: &str, make: &mut MakeChange<'_>) -> Result<Changed, SqlError> {
        change_engine(self, make)
    }
}
