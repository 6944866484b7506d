//! Flushing the memory table to runs: all of it, or what had come when it was full.

use super::catalog::Catalog;
use super::error::Error;
use super::maintain::replace_memory;
use super::manifest::Manifest;
use super::memory::MemoryBatch;
use super::runs::RunSource;
use super::scan::extend_batch;
use super::shared::{Shared, locked};
use super::view::View;
use crate::id::TableId;
use crate::run::{MergeInput, RunFormat};
use crate::schema::TableMeta;
use crate::time::CommitSeq;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What is known of the commit at which the memory table was full, so that the worker flushes what was
/// there then: with all that came until it gets to it, every flush would be larger than the one before,
/// and commits would wait longer for it.
#[derive(Debug, Default)]
pub(crate) struct Full {
    next: Option<(CommitSeq, Arc<Catalog>)>,
    /// The last commit that a flush took, or is about to.
    taken: CommitSeq,
}

impl Shared {
    /// Notes that the memory table is full as of `view`, if it is.
    pub fn mark_full(&self, view: &View) {
        let mut full = locked(&self.full);
        if full.next.is_none() && self.is_full_behind(view, full.taken, 100) {
            full.next = Some((view.commit, view.catalog.clone()));
        }
    }

    /// Flushes what was in memory when it was full; false if it was not, or all of that was flushed since.
    pub fn flush_full(&self) -> Result<bool, Error> {
        let Some((commit, catalog)) = ({
            let mut full = locked(&self.full);
            full.taken = full.next.as_ref().map_or(full.taken, |(commit, _)| *commit);
            full.next.take()
        }) else {
            return Ok(false);
        };
        let manifest = locked(&self.manifest);
        if commit.0 <= manifest.flushed {
            return Ok(false);
        }
        let view = self.view();
        let part = as_of(&view, commit, catalog);
        let view = part.as_ref().unwrap_or(&view);
        self.flush_view(manifest, view, (0, self.options.encoded_rows_min)).map(|()| true)
    }

    /// Writes everything in memory to runs, one per table.
    pub fn flush(&self) -> Result<(), Error> {
        self.flush_at(0, self.options.encoded_rows_min)
    }

    /// The same, to runs of a level; those of level 0 are encoded if they have `encoded_rows_min` rows.
    pub fn flush_at(&self, level: u8, encoded_rows_min: usize) -> Result<(), Error> {
        let manifest = locked(&self.manifest);
        self.flush_view(manifest, &self.view(), (level, encoded_rows_min))
    }

    /// Flushes what `view` has in memory, which must be all that was committed up to its commit.
    fn flush_view(
        &self,
        mut manifest: std::sync::MutexGuard<'_, Manifest>,
        view: &View,
        form: (u8, usize),
    ) -> Result<(), Error> {
        let mut written: Vec<(TableId, Vec<Arc<MemoryBatch>>, Arc<RunSource>)> = Vec::new();
        let mut next = manifest.clone();
        for (id, table) in view.tables.iter().filter(|(_, t)| !t.memory.is_empty()) {
            let Some(meta) = view.catalog.tables.get(id) else { continue };
            let run = self.write_memory(view, meta, &table.memory, form)?;
            written.push((*id, table.memory.clone(), run));
        }
        if written.is_empty() && next.flushed == view.commit.0 {
            return Ok(());
        }
        self.record(&mut next, view);
        next.runs.extend(written.iter().map(|(_, _, run)| run.meta().clone()));
        self.store_manifest(&mut next, &view.commits)?;
        *manifest = next;
        self.keyed.behind.store(true, Ordering::SeqCst);
        if self.options.index {
            // A worker that waits for work without an end learns that the index is behind.
            self.signal.wake();
        }
        self.replace_tables(|tables| {
            for (id, parts, run) in written {
                replace_memory(tables, id, &parts, None);
                let entry = tables.entry(id).or_default();
                let mut table = (**entry).clone();
                table.runs.push(run);
                *entry = Arc::new(table);
            }
        });
        Ok(())
    }

    /// Brings the parts of the manifest that are not runs up to a view whose events are all in runs.
    pub fn record(&self, manifest: &mut Manifest, view: &View) {
        manifest.flushed = view.commit.0;
        manifest.next_run = self.next_run.load(Ordering::SeqCst);
        manifest.set_catalog(&view.catalog);
    }

    /// Writes memory batches of a table to a run.
    pub fn write_memory(
        &self,
        view: &View,
        meta: &TableMeta,
        memory: &[Arc<MemoryBatch>],
        (level, encoded_rows_min): (u8, usize),
    ) -> Result<Arc<RunSource>, Error> {
        let schema = meta.schema();
        let mut inputs = Vec::with_capacity(memory.len());
        let rows: usize = memory.iter().map(|b| b.events).sum();
        let format = if level == 0 && rows < encoded_rows_min { RunFormat::Ipc } else { RunFormat::Parquet };
        for batch in memory {
            inputs.push(MergeInput::batch(extend_batch(&batch.sorted()?.plain, &batch.schema, schema)?));
        }
        self.write_run(view, meta, (level, format), inputs)
    }
}

/// What `view` has of the commits up to `commit`, whose catalog is `catalog`; `None` where a batch goes
/// beyond it, or has columns that the catalog does not know.
fn as_of(view: &View, commit: CommitSeq, catalog: Arc<Catalog>) -> Option<View> {
    let mut part = View { commit, catalog, ..view.clone() };
    for (id, table) in &mut part.tables {
        let mut table_then = (**table).clone();
        table_then.memory.retain(|batch| batch.first <= commit);
        let version = part.catalog.tables.get(id).map_or(0, |meta| meta.schema().version);
        if table_then.memory.iter().any(|b| b.commit > commit || b.schema.version > version) {
            return None;
        }
        *table = Arc::new(table_then);
    }
    Some(part)
}

#[cfg(test)]
#[path = "flush_tests.rs"]
mod tests;
