//! What answering a question read, and what it did not have to read.

use super::source::SortedSource;
use crate::run::Used;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Counts of one question, which may come in several calls and on several threads. Counting is by
/// batches.
#[derive(Debug, Default)]
pub struct ScanCounts {
    all: OnceLock<All>,
    events: AtomicU64,
    memory_events: AtomicU64,
    bytes: AtomicU64,
    kept_bytes: AtomicU64,
    indexed: AtomicU64,
    /// Chunks that events were read of: run and number of the chunk.
    chunks: Mutex<BTreeSet<(u64, usize)>>,
}

/// What the table has.
#[derive(Clone, Copy, Debug, Default)]
struct All {
    runs: u64,
    chunks: u64,
    events: u64,
    memory_events: u64,
    bytes: u64,
}

/// What [`ScanCounts`] has counted. What is pruned was not read: keys, times, columns or a limit made it
/// unnecessary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanFigures {
    /// Runs that events were read of.
    pub runs_read: u64,
    /// The other runs of the table.
    pub runs_pruned: u64,
    /// Chunks (row groups of Parquet files, record batches of IPC files) that events were read of.
    pub row_groups_read: u64,
    /// The other chunks of the table's runs.
    pub row_groups_pruned: u64,
    /// Events read of runs; again for each time, where many single keys are asked for.
    pub events_read: u64,
    /// Events of runs and memory that were not read.
    pub events_pruned: u64,
    /// Events read that are in no run yet.
    pub memory_events: u64,
    /// Bytes of run files that were read, as they are stored.
    pub bytes_read: u64,
    /// Bytes of run files whose decoded columns were at hand from an earlier question.
    pub bytes_kept: u64,
    /// Bytes of the table's run files that were neither.
    pub bytes_pruned: u64,
    /// Rows that the keyed index answered; nothing is read for them.
    pub index_rows: u64,
}

impl ScanCounts {
    /// What was counted until now; `None` if no question has begun.
    pub fn figures(&self) -> Option<ScanFigures> {
        let all = *self.all.get()?;
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let (events_read, memory_events) = (of(&self.events), of(&self.memory_events));
        let (bytes_read, bytes_kept) = (of(&self.bytes), of(&self.kept_bytes));
        let chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        let runs_read = chunks.iter().map(|(run, _)| run).collect::<BTreeSet<_>>().len() as u64;
        let row_groups_read = chunks.len() as u64;
        Some(ScanFigures {
            runs_read,
            runs_pruned: all.runs.saturating_sub(runs_read),
            row_groups_read,
            row_groups_pruned: all.chunks.saturating_sub(row_groups_read),
            events_read,
            events_pruned: all.events.saturating_sub(events_read)
                + all.memory_events.saturating_sub(memory_events),
            memory_events,
            bytes_read,
            bytes_kept,
            bytes_pruned: all.bytes.saturating_sub(bytes_read + bytes_kept),
            index_rows: of(&self.indexed),
        })
    }

    /// The sources that the question may read.
    pub(crate) fn begin(&self, sources: &[Arc<dyn SortedSource>]) {
        self.all.get_or_init(|| {
            let mut all = All::default();
            for source in sources {
                match source.run() {
                    None => all.memory_events += source.rows() as u64,
                    Some((meta, chunks)) => {
                        all.runs += 1;
                        all.chunks += chunks.len() as u64;
                        all.events += meta.rows;
                        all.bytes += meta.bytes;
                    }
                }
            }
            all
        });
    }

    /// Rows that the index answered.
    pub(crate) fn index_answered(&self, rows: usize) {
        self.indexed.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub(super) fn used(&self, used: Used) {
        self.bytes.fetch_add(used.read, Ordering::Relaxed);
        self.kept_bytes.fetch_add(used.kept, Ordering::Relaxed);
    }

    /// Events of a source that were read.
    pub(super) fn events(&self, source: &dyn SortedSource, rows: Range<usize>) {
        let Some((meta, chunks)) = source.run() else {
            self.memory_events.fetch_add(rows.len() as u64, Ordering::Relaxed);
            return;
        };
        self.events.fetch_add(rows.len() as u64, Ordering::Relaxed);
        let (start, end) = (rows.start as u64, rows.end as u64);
        let first = chunks.partition_point(|c| c.first_row + c.rows <= start);
        let last = chunks.partition_point(|c| c.first_row < end);
        let mut read = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        read.extend((first..last).map(|chunk| (meta.id, chunk)));
    }
}
