//! Work behind the intake: flushing the memory table to runs, merging runs.

use super::error::{Error, ErrorKind};
use super::memory::MemoryBatch;
use super::merging::{Merging, choose};
use super::runs::RunSource;
use super::shared::{Shared, locked};
use super::view::{TableView, View};
use crate::id::TableId;
use crate::run::{EventOrder, MergeInput, RunFormat, RunMeta, RunReader, RunSpec, merge_runs};
use crate::schema::TableMeta;
use crate::time::CommitSeq;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, TryLockError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// How much of what is flushed at once may be in memory before commits wait, in percent.
const MEMORY_PERCENT_MAX: usize = 150;
/// Events that take as long to read from the log as the frame of one commit.
const EVENTS_FOR_COMMIT: usize = 20;
/// How long there must be nothing to do before the keyed index is brought up: it costs a pass over the
/// runs, which must not take time from intake.
const INDEX_PATIENCE: Duration = Duration::from_millis(500);
/// Memory batches of one table before small ones are merged.
const SMALL_BATCHES_MAX: usize = 8;

impl Shared {
    /// Body of the background thread. A panic ends it, and whoever waits for it is told.
    pub fn work(&self) {
        if catch_unwind(AssertUnwindSafe(|| self.work_rounds())).is_err() {
            let what = "the work behind commits panicked; what was committed is stored";
            self.signal.ended(Error::new(ErrorKind::Invalid, what).hint("open the store again"));
        }
    }

    fn work_rounds(&self) {
        self.open_index();
        std::thread::scope(|scope| {
            let mut merger: Option<ScopedJoinHandle<'_, ()>> = None;
            while !self.stopping.load(Ordering::SeqCst) {
                let behind = self.options.index && self.keyed.behind.load(Ordering::SeqCst);
                let work = self.signal.wait_for_work(&self.stopping, behind.then_some(INDEX_PATIENCE));
                if self.stopping.load(Ordering::SeqCst) {
                    break;
                }
                // A merger that has woken this thread may not have ended yet: then it is looked at again.
                let merging = merger.as_ref().is_some_and(|m| !m.is_finished());
                if !work {
                    if !merging {
                        let stop = || self.stopping.load(Ordering::SeqCst) || self.signal.has_work();
                        self.bring_up_index(&stop);
                    }
                    continue;
                }
                let flushed = self.free_memory();
                // Whoever closes the store waits for what runs, not for what could begin.
                if let Ok(true) = flushed
                    && !merging
                    && !self.stopping.load(Ordering::SeqCst)
                {
                    self.join(merger.take());
                    merger = self.merge_beside(scope);
                }
                self.signal.round_done(flushed.err());
            }
            self.join(merger.take());
        });
        self.signal.round_done(self.settle().err());
    }

    fn join(&self, merger: Option<ScopedJoinHandle<'_, ()>>) {
        if merger.is_some_and(|m| m.join().is_err()) {
            self.signal.merged(Some(Error::new(ErrorKind::Invalid, "merging runs panicked")));
        }
    }

    /// Merges what is due on a thread of its own: memory is freed meanwhile, or commits would wait.
    fn merge_beside<'s>(&'s self, scope: &'s Scope<'s, '_>) -> Option<ScopedJoinHandle<'s, ()>> {
        let merge = || {
            self.signal.merged(self.merge(Merging::Due).err());
            // The worker may bring up the index now.
            self.signal.wake();
        };
        let merger = std::thread::Builder::new().name("asofdb-merger".into()).spawn_scoped(scope, merge);
        let failed = |e| Error::new(ErrorKind::Io, format!("no thread for merging: {e}"));
        merger.map_err(|e| self.signal.merged(Some(failed(e)))).ok()
    }

    /// What closing leaves in no run is decoded again by every process that opens the store.
    fn settle(&self) -> Result<(), Error> {
        let (view, flushed) = (self.view(), locked(&self.manifest).flushed);
        let commits = (view.commit.0 - flushed) as usize;
        if memory_events(&view) + commits * EVENTS_FOR_COMMIT <= self.options.closing_events_max {
            return Ok(());
        }
        // Somebody waits: what is left is not encoded now, but when it is merged.
        self.flush_at(0, usize::MAX)?;
        self.merge(Merging::Closing).map(|_| ())
    }

    /// One round of what is due.
    pub fn maintain(&self) -> Result<(), Error> {
        if self.free_memory()? {
            self.merge(Merging::Due)?;
        }
        Ok(())
    }

    /// Keeps what is in memory in few batches, and flushes it when it is full; whether it did.
    fn free_memory(&self) -> Result<bool, Error> {
        if self.flush_full()? {
            return Ok(true);
        }
        self.gather_memory()?;
        let full = self.is_full(&self.view(), 100);
        if full && !self.flush_full()? {
            self.flush()?;
        }
        Ok(full)
    }

    /// Whether the memory table has `percent` of what is flushed at once.
    pub fn is_full(&self, view: &View, percent: usize) -> bool {
        self.is_full_behind(view, CommitSeq(0), percent)
    }

    /// Whether what was committed after `commit` is `percent` of what is flushed at once.
    pub fn is_full_behind(&self, view: &View, commit: CommitSeq, percent: usize) -> bool {
        let (mut events, mut bytes) = (0, 0);
        for batch in view.tables.values().flat_map(|t| &t.memory).filter(|b| b.commit > commit) {
            events += batch.events;
            bytes += batch.bytes;
        }
        let most = |max: usize| max.saturating_mul(percent) / 100;
        events >= most(self.options.memory_events_max) || bytes >= most(self.options.memory_bytes_max)
    }

    /// Called after every commit: hands work to the worker, or does it.
    pub fn after_commit(&self) -> Result<(), Error> {
        if !self.options.background {
            return self.maintain();
        }
        let view = self.view();
        self.mark_full(&view);
        if memory_events(&view) >= self.options.memory_events_max / 4
            || self.is_full(&view, 100)
            || self.crowded(&view)
        {
            self.signal.wake();
        }
        // Intake is faster than the worker: do what the worker would have to, then wait until memory is free.
        let full = || self.is_full(&self.view(), MEMORY_PERCENT_MAX);
        while full() && self.sort_one()? {}
        self.signal.wait_while(full)
    }

    /// Sorts a memory batch that is not sorted yet; false if there is none.
    pub fn sort_one(&self) -> Result<bool, Error> {
        let view = self.view();
        let unsorted = view.tables.values().flat_map(|t| &t.memory).find(|b| !b.is_sorted());
        unsorted.map_or(Ok(false), |batch| batch.sorted().map(|_| true))
    }

    fn crowded(&self, view: &View) -> bool {
        view.tables.values().any(|t| t.memory.len() > SMALL_BATCHES_MAX)
    }

    /// Sorts new memory batches and merges small ones, so that readers find few.
    pub fn gather_memory(&self) -> Result<(), Error> {
        for batch in self.view().tables.values().flat_map(|t| &t.memory) {
            batch.sorted()?;
        }
        // A flush gives up the very batches that it wrote: put into another meanwhile, their events would be
        // in a run and in memory.
        let _manifest = match self.manifest.try_lock() {
            Ok(manifest) => manifest,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Commits go on beside a flush or a rebuild: these batches wait for the next round.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        for (id, table) in &self.view().tables {
            let from = small_tail(&table.memory);
            if table.memory.len() - from < 2 {
                continue;
            }
            let parts = table.memory[from..].to_vec();
            let merged = Arc::new(MemoryBatch::merged(&parts)?);
            self.replace_tables(|tables| replace_memory(tables, *id, &parts, Some(merged)));
        }
        Ok(())
    }

    /// Writes one run of a table out of sorted inputs.
    pub fn write_run(
        &self,
        view: &View,
        meta: &TableMeta,
        (level, format): (u8, RunFormat),
        inputs: Vec<MergeInput>,
    ) -> Result<Arc<RunSource>, Error> {
        let schema = Arc::new(meta.schema().clone());
        let ranks = view.ranks.for_table(meta);
        let order = EventOrder { ranks, system_declared: meta.system_declared };
        // Never given twice: a manifest that was stored in vain may name the run.
        let id = self.next_run.fetch_add(1, Ordering::SeqCst);
        let spec = RunSpec { id, table: meta.id, format, level };
        let (disk, dir) = (self.components.disk.clone(), self.runs_dir());
        let written: RunMeta = merge_runs(&*disk, &dir, spec, &schema, order, inputs)?;
        self.written[usize::from(level > 0)].fetch_add(written.bytes, Ordering::Relaxed);
        let reader = RunReader::open(disk, &dir, &written, self.columns.clone())?;
        reader.trust();
        Ok(Arc::new(RunSource { reader: Arc::new(reader), schema }))
    }

    /// Merges runs, while commits, flushes and changes of schemas go on. Readers keep the runs they
    /// hold; files are removed when the last is done.
    pub fn merge(&self, merging: Merging) -> Result<usize, Error> {
        let _alone = locked(&self.merging);
        let mut merged = 0;
        for (id, meta) in &self.view().catalog.tables {
            // Of everything, what is there now: a merge that ran after the intake would not end.
            let mut rounds = if merging == Merging::Everything { 1 } else { usize::MAX };
            while rounds > 0 {
                let view = self.view();
                let Some(chosen) = view.tables.get(id).and_then(|table| choose(table, merging)) else {
                    break;
                };
                merged += self.merge_chosen(meta.id, &chosen)? as usize;
                rounds -= 1;
            }
        }
        Ok(merged)
    }

    /// Merges some runs of a table into one. False if they were replaced meanwhile by others: then the
    /// new run is given up.
    fn merge_chosen(&self, id: TableId, chosen: &[Arc<RunSource>]) -> Result<bool, Error> {
        let view = self.view();
        let meta = view.catalog.tables.get(&id).ok_or_else(|| {
            Error::new(ErrorKind::Damaged, format!("there are runs of unknown table {}", id.0))
        })?;
        let level = chosen.iter().map(|r| r.meta().level).max().unwrap_or(0) + 1;
        let inputs = chosen.iter().map(|r| MergeInput::run(&r.reader, r.schema.clone()));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let written = self.write_run(&view, meta, (level, RunFormat::Parquet), inputs);
        let mut manifest = locked(&self.manifest);
        let old: Vec<u64> = chosen.iter().map(|r| r.meta().id).collect();
        if !old.iter().all(|id| manifest.runs.iter().any(|r| r.id == *id)) {
            drop(manifest);
            // Their files are gone too, which may be what the merge failed of.
            written.map_or(Ok(()), |run| self.remove_runs(&[run]))?;
            return Ok(false);
        }
        let run = written?;
        let mut next = manifest.clone();
        next.runs.retain(|r| !old.contains(&r.id));
        next.runs.push(run.meta().clone());
        next.next_run = self.next_run.load(Ordering::SeqCst);
        self.store_manifest(&mut next, &view.commits)?;
        *manifest = next;
        self.replace_tables(|tables| {
            let entry = tables.entry(id).or_default();
            let mut table = (**entry).clone();
            table.runs.retain(|r| !old.contains(&r.meta().id));
            table.runs.insert(0, run);
            *entry = Arc::new(table);
        });
        drop(manifest);
        self.remove_runs(chosen)?;
        Ok(true)
    }

    /// Removes the files of runs that are in no manifest any more. Open readers have them mapped.
    pub fn remove_runs(&self, runs: &[Arc<RunSource>]) -> Result<(), Error> {
        let disk = &self.components.disk;
        for run in runs {
            disk.remove(&self.runs_dir().join(run.meta().file_name()))?;
            disk.remove(&self.runs_dir().join(run.meta().sidecar_name()))?;
        }
        disk.sync_dir(&self.runs_dir())?;
        Ok(())
    }
}

/// Events in memory over all tables.
pub(crate) fn memory_events(view: &View) -> usize {
    view.tables.values().flat_map(|t| &t.memory).map(|b| b.events).sum()
}

/// Where the tail of batches begins that are merged into one: sizes then at least halve from batch
/// to batch, so each event is merged a logarithmic number of times.
pub(crate) fn small_tail(memory: &[Arc<MemoryBatch>]) -> usize {
    let mut from = memory.len().saturating_sub(1);
    let mut events = memory.last().map_or(0, |b| b.events);
    while from > 0 && memory[from - 1].events <= 2 * events && events < 100_000 {
        from -= 1;
        events += memory[from].events;
    }
    from
}

/// Puts `new` in the place of `old` batches of a table.
pub(crate) fn replace_memory(
    tables: &mut BTreeMap<TableId, Arc<TableView>>,
    id: TableId,
    old: &[Arc<MemoryBatch>],
    new: Option<Arc<MemoryBatch>>,
) {
    let entry = tables.entry(id).or_default();
    let mut table = (**entry).clone();
    let at = table.memory.iter().position(|b| old.iter().any(|o| Arc::ptr_eq(o, b)));
    table.memory.retain(|b| !old.iter().any(|o| Arc::ptr_eq(o, b)));
    if let (Some(at), Some(new)) = (at, new) {
        table.memory.insert(at, new);
    }
    *entry = Arc::new(table);
}
