//! Tables that hold columns which no longer tell what the source sent (rule B14): a decimal that
//! became text has lost its digits, a text that became JSON which texts were numbers. Their rows are
//! taken from the log again, under the schema they have now. One mechanism for commits, opening and
//! rebuilding.

use super::commit::add_rows;
use super::error::Error;
use super::history::History;
use super::manifest::Manifest;
use super::replay::gather;
use super::runs::RunSource;
use super::shared::{Shared, locked};
use super::view::View;
use crate::id::TableId;
use crate::log::Start;
use crate::run::widens_exactly;
use crate::schema::TableSchema;
use std::sync::{Arc, MutexGuard};

impl View {
    /// Tables with a run or a batch in memory whose columns cannot follow the latest schema.
    pub fn stale_tables(&self) -> Vec<TableId> {
        let stale = |id: &TableId| {
            let (Some(meta), Some(parts)) = (self.catalog.tables.get(id), self.tables.get(id)) else {
                return false;
            };
            let follows = |old: &TableSchema| {
                let pairs = old.columns.iter().zip(&meta.schema().columns);
                pairs.into_iter().all(|(a, b)| widens_exactly(a.ty, b.ty))
            };
            parts.runs.iter().any(|r| !follows(&r.schema)) || parts.memory.iter().any(|b| !follows(&b.schema))
        };
        self.tables.keys().copied().filter(stale).collect()
    }

    /// The runs of some tables.
    pub fn runs_of(&self, tables: &[TableId]) -> Vec<Arc<RunSource>> {
        tables.iter().filter_map(|id| self.tables.get(id)).flat_map(|t| t.runs.iter().cloned()).collect()
    }
}

impl Shared {
    /// `view` with the rows of `tables` from the log, under their latest schemas, in memory.
    pub fn anew(&self, mut view: View, tables: &[TableId]) -> Result<View, Error> {
        let history = History::of(&view);
        for id in tables {
            view.tables.insert(*id, Arc::default());
        }
        for frame in history.fill(self.open_log()?.read_from(Start::Oldest)?, Some(tables)) {
            let (_, frame, rows) = frame?;
            if frame.sequence > view.commit {
                break;
            }
            for rows in rows {
                add_rows(&mut view, rows?)?;
            }
            gather(&mut view)?;
        }
        Ok(view)
    }

    /// Writes the rows of `tables`, which are in memory, to new runs and gives up the `old` ones.
    pub fn replace_runs(
        &self,
        mut manifest: MutexGuard<'_, Manifest>,
        tables: &[TableId],
        old: &[Arc<RunSource>],
    ) -> Result<(), Error> {
        // Until the flush has stored the manifest, the one on disk names the old runs, and opening
        // finds them stale again.
        manifest.runs.retain(|r| !tables.contains(&r.table));
        drop(manifest);
        // What the log has given up goes to runs that are its only copy.
        let shrunk = self.segments().list()?.iter().any(|s| s.shrunk);
        self.flush_at(u8::from(shrunk), self.options.encoded_rows_min)?;
        self.remove_runs(old)
    }

    /// Takes the rows of stale tables anew, after frames were replayed.
    pub fn renew_stale(&self, writable: bool) -> Result<(), Error> {
        let manifest = locked(&self.manifest);
        let writer = locked(&self.writer);
        let view = self.view();
        let tables = view.stale_tables();
        if tables.is_empty() {
            return Ok(());
        }
        let old = view.runs_of(&tables);
        self.publish(self.anew((*view).clone(), &tables)?);
        drop(writer);
        if writable { self.replace_runs(manifest, &tables, &old) } else { Ok(()) }
    }
}
