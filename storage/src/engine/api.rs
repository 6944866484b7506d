//! The engine's calls.

use super::catalog::{Catalog, CommitInfo};
use super::error::Error;
use super::request::{
    Bounds, CommitRequest, PointRequest, Quarantined, ScanRequest, ScanStream, StoredEvent,
};
use crate::id::{ColumnId, TableId};
use crate::time::CommitSeq;
use arrow::array::RecordBatch;
use std::path::Path;
use std::sync::Arc;

/// Settings of a store.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Events that the memory table holds before they are flushed to a run.
    pub memory_events_max: usize,
    /// Bytes of a log segment before the next is begun.
    pub segment_bytes_max: u64,
    /// Cache of the keyed index.
    pub index_cache_bytes: usize,
    /// Flush, merge and index in a background thread; otherwise in `commit` itself.
    pub background: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            memory_events_max: 1_000_000,
            segment_bytes_max: 256 << 20,
            index_cache_bytes: 64 << 20,
            background: true,
        }
    }
}

/// How to open a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// As the one writer; makes the store if there is none.
    Create,
    /// As the one writer; the store must be there.
    Write,
    /// To ask only; beside a writer in another process.
    Read,
}

/// An open store. Cheap to clone; all clones are the same store.
#[derive(Clone, Debug)]
pub struct Engine {}

impl Engine {
    /// Opens the store in directory `dir`.
    ///
    /// # Errors
    /// `NotFound`, `Busy` (names the holder), `Damaged` (names the place), `Io`.
    pub fn open(_dir: &Path, _mode: OpenMode, _options: EngineOptions) -> Result<Engine, Error> {
        unimplemented!()
    }

    /// Pins the newest commit. Never blocks on writers.
    pub fn pin(&self) -> Snapshot {
        unimplemented!()
    }

    /// Stores a commit; when this returns, it is on disk (rule C4) and visible to `pin`.
    ///
    /// # Errors
    /// `Invalid` if the request contradicts the catalog; `Io`, after which the engine refuses
    /// further commits until it is reopened.
    pub fn commit(&self, _request: CommitRequest) -> Result<CommitInfo, Error> {
        unimplemented!()
    }
}

/// A reader's view of the store at one commit. Cheap to clone; never changes.
#[derive(Clone, Debug)]
pub struct Snapshot {}

impl Snapshot {
    /// The pinned commit; 0 in an empty store.
    pub fn commit(&self) -> CommitSeq {
        unimplemented!()
    }

    /// The instant of the pinned commit, if there is one.
    pub fn commit_at(&self) -> Option<i64> {
        unimplemented!()
    }

    /// The catalog at the pinned commit.
    pub fn catalog(&self) -> &Arc<Catalog> {
        unimplemented!()
    }

    /// All commits up to the pinned one, oldest first.
    pub fn commits(&self) -> Result<Vec<CommitInfo>, Error> {
        unimplemented!()
    }

    /// The newest commit whose instant is at or before `at`; 0 if there is none (rounds down).
    pub fn commit_at_or_before(&self, _at: i64) -> CommitSeq {
        unimplemented!()
    }

    /// Quarantined messages with the commit that stored each, oldest first.
    pub fn quarantine(&self) -> Result<Vec<(CommitSeq, Quarantined)>, Error> {
        unimplemented!()
    }

    /// Answers a question that yields many rows, as streams that may run on threads of their own.
    /// Rows of one key never straddle streams; batches hold about 8,192 rows.
    pub fn scan(&self, _request: &ScanRequest) -> Result<Vec<ScanStream>, Error> {
        unimplemented!()
    }

    /// Answers many point questions in one pass. Returns the number of the question each row
    /// answers, ascending, and the rows (projected columns, types of the table's latest schema); a
    /// question without a row has none.
    pub fn points(
        &self,
        _table: TableId,
        _requests: &[PointRequest],
        _projection: &[ColumnId],
    ) -> Result<(Vec<u32>, RecordBatch), Error> {
        unimplemented!()
    }

    /// One row by its key bytes.
    pub fn get(&self, table: TableId, key: &[u8], bounds: Bounds) -> Result<Option<RecordBatch>, Error> {
        let schema = self.catalog().tables.get(&table).map(|t| t.schema().clone());
        let projection: Vec<_> = schema.iter().flat_map(|s| &s.columns).map(|c| c.id).collect();
        let (found, rows) = self.points(table, &[PointRequest { key: key.to_vec(), bounds }], &projection)?;
        Ok((!found.is_empty()).then_some(rows))
    }

    /// The stored events of some keys, each key's in rule B3 order. For intake.
    pub fn key_events(&self, _table: TableId, _keys: &[Vec<u8>]) -> Result<Vec<Vec<StoredEvent>>, Error> {
        unimplemented!()
    }

    /// The operation ids of all stored events of a table with the hash of their content. Looks
    /// through the whole table; intake asks once, and only for ids that are not above all stored ones.
    pub fn operation_ids(&self, _table: TableId) -> Result<std::collections::HashMap<Vec<u8>, u64>, Error> {
        unimplemented!()
    }
}
