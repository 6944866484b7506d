//! What intake asks of a store.

use asofdb_storage::engine::{
    Catalog, CommitInfo, CommitRequest, Engine, Error, ErrorKind, KeyFilter, ScanKind, ScanRequest,
    StoredEvent,
};
use asofdb_storage::event::EventColumns;
use asofdb_storage::id::{OriginId, StreamId, TableId};
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
    /// Every stored event of a table that came from a stream: its place in the stream (origin,
    /// position, number within the message) and its valid time. Reads the whole table; intake asks
    /// only for truncates that stand behind events which are stored already.
    ///
    /// # Errors
    /// Those of the store.
    fn each_event(
        &self,
        table: TableId,
        stream: StreamId,
        take: &mut dyn FnMut((OriginId, u64, u32), i64),
    ) -> Result<(), Error>;
    /// The operation ids of all stored events with the hash of their content. Asked at most once a
    /// table and run, and only once an id came that is not above all before it: integers that grow
    /// need no look-up. Holds every id of the table in memory.
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

    fn each_event(
        &self,
        table: TableId,
        stream: StreamId,
        take: &mut dyn FnMut((OriginId, u64, u32), i64),
    ) -> Result<(), Error> {
        let snapshot = self.pin();
        let Some(meta) = snapshot.catalog().tables.get(&table) else { return Ok(()) };
        let request = ScanRequest {
            table,
            kind: ScanKind::History,
            commit: snapshot.commit(),
            schema: Arc::new(meta.schema().clone()),
            projection: Vec::new(),
            keys: KeyFilter::All,
            partitions: 1,
            rows_per_key_max: usize::MAX,
        };
        let origins = &snapshot.catalog().origins;
        for batch in snapshot.scan(&request)?.into_iter().flatten() {
            let events = EventColumns::new(batch?)
                .map_err(|e| Error::new(ErrorKind::Damaged, format!("events of the store: {e}")))?;
            for i in 0..events.len() {
                let origin = OriginId(events.origin().value(i));
                if origins.get(origin.0 as usize).is_some_and(|o| o.stream == stream) {
                    let place = (origin, events.position().value(i), events.ordinal().value(i));
                    take(place, events.valid_from().value(i));
                }
            }
        }
        Ok(())
    }

    fn operation_ids(&self, table: TableId) -> Result<HashMap<Vec<u8>, u64>, Error> {
        self.pin().operation_ids(table)
    }
}
