//! What intake asks of a store.

use asofdb_storage::engine::{Catalog, CommitInfo, CommitRequest, Engine, Error, StoredEvent};
use asofdb_storage::id::TableId;
use std::collections::HashMap;
use std::sync::Arc;

/// A store as intake sees it: the engine, or a stand-in for tests.
pub trait Sink: Sync {
    /// The catalog at the newest commit.
    fn catalog(&self) -> Arc<Catalog>;
    /// The instant of the newest commit, microseconds.
    fn commit_at(&self) -> Option<i64>;
    /// Stores a commit; it is on disk when this returns (rule C4).
    ///
    /// # Errors
    /// Those of the store; after one nothing more may be committed.
    fn commit(&self, request: CommitRequest) -> Result<CommitInfo, Error>;
    /// The stored events of keys, in the order of `keys`; the empty key has the truncates.
    ///
    /// # Errors
    /// Those of the store.
    fn key_events(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Vec<StoredEvent>>, Error>;
    /// The operation ids of all stored events with the hash of their content.
    ///
    /// # Errors
    /// Those of the store.
    fn operation_ids(&self, table: TableId) -> Result<HashMap<Vec<u8>, u64>, Error>;
}

impl Sink for Engine {
    fn catalog(&self) -> Arc<Catalog> {
        self.pin().catalog().clone()
    }

    fn commit_at(&self) -> Option<i64> {
        self.pin().commit_at()
    }

    fn commit(&self, request: CommitRequest) -> Result<CommitInfo, Error> {
        Engine::commit(self, request)
    }

    fn key_events(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Vec<StoredEvent>>, Error> {
        self.pin().key_events(table, keys)
    }

    fn operation_ids(&self, table: TableId) -> Result<HashMap<Vec<u8>, u64>, Error> {
        self.pin().operation_ids(table)
    }
}
