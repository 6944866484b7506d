//! The engine's calls.

use super::catalog::{Catalog, CommitInfo};
use super::commits::CommitRecord;
use super::error::{Error, ErrorKind};
use super::quarantine::Resolutions;
use super::request::{
    Bounds, CommitRequest, PointRequest, Quarantined, ScanRequest, ScanStream, StoredEvent,
};
use super::scan::{ScanCounts, TableScan, Touch, Touching, Why};
use super::shared::{Components, Shared, locked};
use super::shrink::Shrunk;
use super::upkeep::{Status, VerifyReport};
use super::verify::FullReport;
use super::view::View;
use crate::id::{ColumnId, TableId};
use crate::schema::TableSchema;
use crate::time::CommitSeq;
use arrow::array::RecordBatch;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// Settings of a store.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Events that the memory table holds before they are flushed to a run.
    pub memory_events_max: usize,
    /// Bytes that they may have, as they are logged; in memory they take about three times as many.
    pub memory_bytes_max: usize,
    /// Rows from which on what is flushed is encoded at once, as Parquet. Fewer stay as they are, in Arrow IPC,
    /// and are encoded when they are merged with others.
    pub encoded_rows_min: usize,
    /// Events that may be in no run when the store is closed with a background thread; more are flushed.
    /// A commit counts as another 20.
    pub closing_events_max: usize,
    /// Bytes of a log segment before the next is begun.
    pub segment_bytes_max: u64,
    /// Whether a keyed index is kept, from which questions about the latest state of single keys are
    /// answered. It costs time after every intake and 16 to 29 bytes an event; without it they are answered
    /// from the runs, as all other questions about keys are.
    pub index: bool,
    /// Cache of the keyed index.
    pub index_cache_bytes: usize,
    /// Decoded columns of runs that are kept for the next scan.
    pub column_cache_bytes: usize,
    /// Keep every row in the log. Otherwise [`Engine::compact`] shrinks it: rows that stand in compacted
    /// runs are given up.
    pub keep_log: bool,
    /// Bytes of the last segment from which on compacting seals it, so that it can be shrunk too.
    pub shrink_bytes_min: u64,
    /// What other processes are told of the program that holds the store. No secrets: it is stored.
    pub command: String,
    /// Flush, merge and index in a background thread; otherwise in `commit` itself.
    pub background: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            memory_events_max: 1_250_000,
            memory_bytes_max: 96 << 20,
            encoded_rows_min: 100_000,
            closing_events_max: 20_000,
            segment_bytes_max: 256 << 20,
            index: false,
            index_cache_bytes: 64 << 20,
            column_cache_bytes: 384 << 20,
            keep_log: false,
            shrink_bytes_min: 64 << 10,
            command: "asofdb".into(),
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

/// An open store. Cheap to clone; all clones are the same store, which closes with the last of them
/// and of its snapshots' engine.
#[derive(Clone, Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

impl Inner {
    /// Ends the work behind commits.
    fn end(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.signal.wake();
        if let Some(worker) = self.worker.take() {
            // A worker that panicked has left its last published state behind, which is consistent.
            let _ = worker.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end();
    }
}

impl Engine {
    /// Opens the store in directory `dir` on the real file system.
    ///
    /// # Errors
    /// `NotFound`, `Busy` (names the holder), `Damaged` (names the place), `Io`.
    pub fn open(dir: &Path, mode: OpenMode, options: EngineOptions) -> Result<Engine, Error> {
        let components = Components::real(options.command.clone());
        Engine::open_with(dir, mode, options, components)
    }

    /// Opens the store in directory `dir` of a disk, with a clock and a source of randomness.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_with(
        dir: &Path,
        mode: OpenMode,
        options: EngineOptions,
        components: Components,
    ) -> Result<Engine, Error> {
        let shared = Arc::new(Shared::open(dir, mode, options, components)?);
        let mut worker = None;
        if mode != OpenMode::Read && shared.options.background {
            let work = shared.clone();
            let thread = std::thread::Builder::new().name("asofdb-worker".into()).spawn(move || work.work());
            worker = Some(
                thread.map_err(|e| Error::new(ErrorKind::Io, format!("no thread for the worker: {e}")))?,
            );
        }
        Ok(Engine { inner: Arc::new(Inner { shared, worker }) })
    }

    /// Closes the store and says whether the work behind commits went well: what they left in memory may be
    /// flushed now, and runs merged. Whatever fails here, every commit is on disk, and the next one to open the store
    /// finds it. While there are other handles the store stays open, and the last of them is told.
    ///
    /// # Errors
    /// That of the work that failed last and was not done since; `Io` mostly. Dropping a handle tells nobody.
    pub fn close(self) -> Result<(), Error> {
        let Some(mut inner) = Arc::into_inner(self.inner) else { return Ok(()) };
        inner.end();
        inner.shared.signal.failure().map_or(Ok(()), Err)
    }

    /// The directory of the store.
    pub fn dir(&self) -> &Path {
        &self.inner.shared.dir
    }

    /// The clock that the engine was given: microseconds since 1970-01-01T00:00:00Z.
    pub fn now_us(&self) -> i64 {
        self.inner.shared.components.clock.now_us()
    }

    /// Pins the newest commit. Never blocks on writers.
    pub fn pin(&self) -> Snapshot {
        Snapshot { view: self.inner.shared.view(), shared: self.inner.shared.clone() }
    }

    /// Stores a commit; when this returns, it is on disk (rule C4) and visible to `pin`.
    ///
    /// # Errors
    /// `Invalid` if the request contradicts the catalog; `Io`, after which the engine refuses
    /// further commits until it is reopened.
    pub fn commit(&self, request: CommitRequest) -> Result<CommitInfo, Error> {
        self.inner.shared.commit(request)
    }

    /// Writes what is in memory to runs, merges all runs of each table into one, brings the keyed index
    /// up to them, and shrinks the log ([`Engine::shrink_log`]). Returns the number of merges; 0 if there
    /// was nothing to merge.
    ///
    /// # Errors
    /// `Io`, `Damaged`, `Invalid` in a store opened for reading.
    pub fn compact(&self) -> Result<usize, Error> {
        self.writable()?;
        self.inner.shared.compact()
    }

    /// Has sealed segments of the log give up the rows that stand in compacted runs, unless
    /// [`EngineOptions::keep_log`] says otherwise. What is left makes every row again, to the byte, from
    /// the runs, which are then the only copy of these events.
    ///
    /// # Errors
    /// As [`Engine::compact`]; what was not shrunk then stays as it is.
    pub fn shrink_log(&self) -> Result<Shrunk, Error> {
        self.writable()?;
        self.inner.shared.shrink_log()
    }

    /// Writes what is in memory to runs.
    ///
    /// # Errors
    /// As [`Engine::compact`].
    pub fn flush(&self) -> Result<(), Error> {
        self.writable()?;
        self.inner.shared.flush()?;
        if !self.inner.shared.options.background {
            self.inner.shared.bring_up_index(&|| false);
        }
        Ok(())
    }

    /// Derives runs, manifest and keyed index from the log again, beside readers and commits.
    ///
    /// # Errors
    /// `Damaged` if the log is damaged; the old runs are kept then.
    pub fn rebuild(&self) -> Result<(), Error> {
        self.writable()?;
        self.inner.shared.rebuild()
    }

    /// Checks everything on disk: every frame of the log and the chain of hashes over it, every run,
    /// the manifest with the list of commits, and every entry of the keyed index. `head` is a chain head kept elsewhere, in hexadecimal, that must be in the chain.
    ///
    /// # Errors
    /// `Io`, or `Invalid` if `head` is no head; damage is in the report.
    pub fn verify(&self, head: Option<&str>) -> Result<VerifyReport, Error> {
        self.inner.shared.verify(head)
    }

    /// Derives everything again from the log and compares it with what the store has: the catalog,
    /// the commits and their places, every event of every run and of the memory table, and every entry
    /// of the keyed index. Beside [`Engine::verify`], which checks that every part is as it was written,
    /// this finds parts that were written wrongly. Reads the log once and every run twice.
    ///
    /// # Errors
    /// `Io`, or `Damaged` if the log cannot be read to its end; differences are in the report.
    pub fn verify_full(&self) -> Result<FullReport, Error> {
        self.inner.shared.verify_full()
    }

    /// Sizes and counts.
    ///
    /// # Errors
    /// `Io`.
    pub fn status(&self) -> Result<Status, Error> {
        self.inner.shared.status()
    }

    fn writable(&self) -> Result<(), Error> {
        if locked(&self.inner.shared.writer).is_some() { Ok(()) } else { Err(self.inner.shared.read_only()) }
    }
}

/// A reader's view of the store at one commit. Cheap to clone; never changes.
#[derive(Clone, Debug)]
pub struct Snapshot {
    view: Arc<View>,
    shared: Arc<Shared>,
}

impl Snapshot {
    pub(super) fn parts(&self) -> (&Arc<View>, &Arc<Shared>) {
        (&self.view, &self.shared)
    }

    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// Whether a keyed index is open.
    pub(super) fn has_index(&self) -> bool {
        self.shared.index().is_some()
    }

    /// The pinned commit; 0 in an empty store.
    pub fn commit(&self) -> CommitSeq {
        self.view.commit
    }

    /// The instant of the pinned commit, if there is one.
    pub fn commit_at(&self) -> Option<i64> {
        self.view.commit_at
    }

    /// The catalog at the pinned commit.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.view.catalog
    }

    fn records(&self) -> impl std::ops::Deref<Target = Vec<CommitRecord>> + '_ {
        self.view.commits.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// All commits up to the pinned one, oldest first.
    ///
    /// # Errors
    /// None now; kept for stores whose list of commits is on disk.
    pub fn commits(&self) -> Result<Vec<CommitInfo>, Error> {
        Ok(self.records().iter().take(self.view.commit.0 as usize).map(|r| r.info.clone()).collect())
    }

    /// The newest commit whose instant is at or before `at`; 0 if there is none (rounds down).
    pub fn commit_at_or_before(&self, at: i64) -> CommitSeq {
        let records = self.records();
        let n = (self.view.commit.0 as usize).min(records.len());
        CommitSeq(records[..n].partition_point(|r| r.info.at <= at) as u64)
    }

    /// Quarantined messages with the commit that stored each, oldest first.
    ///
    /// # Errors
    /// `Damaged`, `Io`.
    pub fn quarantine(&self) -> Result<Vec<(CommitSeq, Quarantined)>, Error> {
        let places: Vec<_> = self
            .records()
            .iter()
            .take(self.view.commit.0 as usize)
            .filter(|r| r.info.quarantined > 0)
            .map(|r| r.place)
            .collect();
        self.shared.quarantine(&places)
    }

    /// Which quarantined messages were settled since, and by which commits up to the pinned one.
    pub fn resolutions(&self) -> Resolutions {
        let records = self.records();
        Resolutions::of(records.iter().take(self.view.commit.0 as usize).map(|r| &r.info))
    }

    /// The messages that some commits put aside, oldest first, each commit's in their order.
    ///
    /// # Errors
    /// `Damaged`, `Io`.
    pub fn quarantine_of(&self, commits: &[CommitSeq]) -> Result<Vec<(CommitSeq, Quarantined)>, Error> {
        let places: Vec<_> = {
            let records = self.records();
            let known = commits.iter().filter(|c| **c <= self.view.commit);
            let records = known.filter_map(|c| records.get(c.0.checked_sub(1)? as usize));
            records.filter(|r| r.info.quarantined > 0).map(|r| r.place).collect()
        };
        self.shared.quarantine(&places)
    }

    /// Answers a question that yields many rows, as streams that may run on threads of their own.
    /// Rows of one key never straddle streams; batches hold about 8,192 rows, and more where no column is
    /// asked for.
    ///
    /// # Errors
    /// `Invalid`, `Damaged`, `Io`; later ones come out of the streams.
    pub fn scan(&self, request: &ScanRequest) -> Result<Vec<ScanStream>, Error> {
        if let Some(known) = self.shared.scan_known(&self.view, request)? {
            return Ok(vec![Box::new(std::iter::once(Ok(known)))]);
        }
        TableScan::new(&self.view, request.table)?.scan(request)
    }

    /// As [`Snapshot::scan`], counting what is read, while the streams are read too.
    ///
    /// # Errors
    /// As [`Snapshot::scan`].
    pub fn scan_counted(
        &self,
        request: &ScanRequest,
        counts: &Arc<ScanCounts>,
    ) -> Result<Vec<ScanStream>, Error> {
        let scan = TableScan::new(&self.view, request.table)?.counted(counts);
        if let Some(known) = self.shared.scan_known(&self.view, request)? {
            counts.index_answered(known.num_rows());
            return Ok(vec![Box::new(std::iter::once(Ok(known)))]);
        }
        scan.scan(request)
    }

    /// Answers many point questions in one pass. Returns the number of the question each row
    /// answers, ascending, and the rows (projected columns, types of the table's latest schema); a
    /// question without a row has none. Bounds beyond the pinned commit mean the pinned commit.
    ///
    /// # Errors
    /// `Invalid`, `Damaged`, `Io`.
    pub fn points(
        &self,
        table: TableId,
        requests: &[PointRequest],
        projection: &[ColumnId],
    ) -> Result<(Vec<u32>, RecordBatch), Error> {
        self.shared.points(&self.view, table, requests, projection, None)
    }

    /// As [`Snapshot::points`], counting what is read.
    ///
    /// # Errors
    /// As [`Snapshot::points`].
    pub fn points_counted(
        &self,
        table: TableId,
        requests: &[PointRequest],
        projection: &[ColumnId],
        counts: &Arc<ScanCounts>,
    ) -> Result<(Vec<u32>, RecordBatch), Error> {
        self.shared.points(&self.view, table, requests, projection, Some(counts))
    }

    /// The keys of a table that have events of some commits and valid times, each with the commits, ascending
    /// and without repeats. `None` where reading all events is no more work, or where the table has what was
    /// ruled out; and for a table without a key.
    ///
    /// # Errors
    /// As [`Snapshot::scan`].
    pub fn touched(
        &self,
        table: TableId,
        asked: &Touching,
        counts: &Arc<ScanCounts>,
    ) -> Result<Option<Vec<Touch>>, Error> {
        TableScan::new(&self.view, table)?.counted(counts).touched(asked)
    }

    /// One row by its key bytes.
    ///
    /// # Errors
    /// As [`Snapshot::points`].
    pub fn get(&self, table: TableId, key: &[u8], bounds: Bounds) -> Result<Option<RecordBatch>, Error> {
        let schema = self.catalog().tables.get(&table).map(|t| t.schema().clone());
        let projection: Vec<_> = schema.iter().flat_map(|s| &s.columns).map(|c| c.id).collect();
        let (found, rows) = self.points(table, &[PointRequest { key: key.to_vec(), bounds }], &projection)?;
        Ok((!found.is_empty()).then_some(rows))
    }

    /// Which events gave `column` of the row of `key` its value at a point, or why there is none. Bounds beyond
    /// the pinned commit mean the pinned commit. What events wrote comes in the types of `schema`.
    ///
    /// # Errors
    /// As [`Snapshot::points`]; `Invalid` for a table without a key.
    pub fn why(
        &self,
        table: TableId,
        key: &[u8],
        column: ColumnId,
        bounds: Bounds,
        schema: &Arc<TableSchema>,
    ) -> Result<Why, Error> {
        let bounds = Bounds { commit: bounds.commit.min(self.view.commit), ..bounds };
        TableScan::new(&self.view, table)?.why(key, column, &bounds, schema)
    }

    /// The stored events of some keys, each key's in rule B3 order. For intake.
    ///
    /// # Errors
    /// As [`Snapshot::points`].
    pub fn key_events(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Vec<StoredEvent>>, Error> {
        TableScan::new(&self.view, table)?.key_events(keys)
    }

    /// The content hash of the stored event with this operation id, if there is one. Looks through
    /// the whole table; callers ask only for ids that are not above all stored ones.
    ///
    /// # Errors
    /// As [`Snapshot::points`].
    pub fn operation_ids(&self, table: TableId) -> Result<std::collections::HashMap<Vec<u8>, u64>, Error> {
        TableScan::new(&self.view, table)?.operation_ids()
    }
}
