//! Keeping the index up with the runs, when nothing else is to be done.

use super::changes::Changes;
use super::handle::{is_of_history, reflected};
use crate::engine::api::OpenMode;
use crate::engine::error::{Error, ErrorKind};
use crate::engine::shared::{Shared, locked};
use crate::engine::view::View;
use crate::id::TableId;
use crate::index::{Applied, Index, IndexError};
use std::sync::atomic::Ordering;

impl From<IndexError> for Error {
    fn from(e: IndexError) -> Error {
        let kind = match &e {
            IndexError::Damaged { .. } => ErrorKind::Damaged,
            IndexError::Busy { .. } => ErrorKind::Busy,
            IndexError::InDoubt | IndexError::Disk(_) => ErrorKind::Io,
            IndexError::Refused(_) | IndexError::Stopped => ErrorKind::Invalid,
        };
        Error::new(kind, e.to_string())
    }
}

/// Changes between two looks at whether to stop.
const STOP_INTERVAL: u64 = 1024;

/// Why upkeep ended early.
enum Ended {
    Index(IndexError),
    /// The runs could not be read.
    Runs(Error),
}

impl From<IndexError> for Ended {
    fn from(e: IndexError) -> Ended {
        Ended::Index(e)
    }
}

impl Shared {
    /// Brings the index up to the runs, unless `stop` says that there is something else to do. What it
    /// runs into is shown by `status`; nothing but speed depends on it.
    pub fn bring_up_index(&self, stop: &dyn Fn() -> bool) {
        if !self.options.index || self.mode == OpenMode::Read {
            return;
        }
        let _one = locked(&self.keyed.upkeep);
        let mut result = self.bring_up(stop);
        if let Err(Ended::Index(IndexError::Damaged { .. } | IndexError::InDoubt)) = result {
            // Whatever is wrong with it, it can be made again.
            self.close_index();
            result = match Index::remove(&*self.components.disk, &self.index_path()) {
                Ok(()) => self.bring_up(stop),
                Err(e) => Err(e.into()),
            };
        }
        let failure = match result {
            Ok(()) => None,
            Err(Ended::Index(IndexError::Stopped)) => {
                self.keyed.behind.store(true, Ordering::SeqCst);
                return;
            }
            Err(Ended::Runs(e)) => Some(e.to_string()),
            Err(Ended::Index(e)) => {
                self.close_index();
                Some(e.to_string())
            }
        };
        self.keyed.set_failure(failure.map(|e| format!("the keyed index is not kept up: {e}")));
    }

    /// Removes the index and makes it again.
    pub fn renew_index(&self) {
        let one = locked(&self.keyed.upkeep);
        self.close_index();
        let removed = Index::remove(&*self.components.disk, &self.index_path());
        drop(one);
        match removed {
            Ok(()) => self.bring_up_index(&|| false),
            Err(e) => self.keyed.set_failure(Some(format!("the keyed index cannot be removed: {e}"))),
        }
    }

    fn bring_up(&self, stop: &dyn Fn() -> bool) -> Result<(), Ended> {
        self.keyed.behind.store(false, Ordering::SeqCst);
        let view = self.view();
        if view.tables.values().all(|t| t.runs.is_empty()) {
            return Ok(());
        }
        let index = self.index_for_writing()?;
        view.catalog.tables.keys().try_for_each(|id| self.bring_up_table(&index, &view, *id, stop))
    }

    fn bring_up_table(
        &self,
        index: &Index,
        view: &View,
        table: TableId,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Ended> {
        let from = index.applied(table)?;
        let Some(to) = reflected(view, table) else {
            return if from.commit > 0 { Ok(index.clear(table)?) } else { Ok(()) };
        };
        if from == to {
            return Ok(());
        }
        let from = if is_of_history(view, from) { from } else { Applied::default() };
        let (mut changes, extent) = Changes::new(view, table, from, to).map_err(Ended::Runs)?;
        let (mut failed, mut n) = (None, 0);
        let next = || {
            n += 1;
            if n % STOP_INTERVAL == 0 && stop() {
                return Some(Err(IndexError::Stopped));
            }
            changes
                .next()
                .unwrap_or_else(|e| {
                    failed = Some(e);
                    None
                })
                .map(Ok)
                .or_else(|| failed.is_some().then_some(Err(IndexError::Stopped)))
        };
        let rewritten = index.rewrite(table, to, extent, std::iter::from_fn(next));
        match failed {
            Some(e) => Err(Ended::Runs(e)),
            None => Ok(rewritten?),
        }
    }
}
