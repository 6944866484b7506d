//! The open index of a store, if there is one.

use crate::engine::api::OpenMode;
use crate::engine::shared::{Shared, locked};
use crate::engine::view::View;
use crate::id::TableId;
use crate::index::{Applied, Index, IndexError, IndexOpening};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Name of the file.
const INDEX: &str = "index.redb";

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Keyed {
    state: RwLock<State>,
    /// Held while the file is written, removed or checked.
    pub upkeep: Mutex<()>,
    /// Whether runs may hold more than the index.
    pub behind: AtomicBool,
    failure: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
enum State {
    /// Nobody has tried to open it.
    #[default]
    Untried,
    /// There is none that answers.
    None,
    Open(Arc<Index>),
}

impl Keyed {
    fn set(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Why the index was not kept up, if the last attempt failed.
    pub fn failure(&self) -> Option<String> {
        locked(&self.failure).clone()
    }

    pub fn set_failure(&self, failure: Option<String>) {
        *locked(&self.failure) = failure;
    }
}

impl Shared {
    pub fn index_path(&self) -> PathBuf {
        self.dir.join(INDEX)
    }

    /// The index for questions. A store that was opened for reading opens it with the first one.
    pub fn index(&self) -> Option<Arc<Index>> {
        match &*self.keyed.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Open(index) => return Some(index.clone()),
            State::None => return None,
            State::Untried if self.mode != OpenMode::Read || !self.options.index => return None,
            State::Untried => {}
        }
        let opened = Index::open_reading(&*self.components.disk, &self.index_path(), self.index_opening());
        // Whatever is wrong with it is the writer's to mend.
        let index = opened.ok().flatten().map(Arc::new);
        self.keyed.set(index.clone().map_or(State::None, State::Open));
        index
    }

    fn index_opening(&self) -> IndexOpening<'_> {
        IndexOpening { store_id: &self.store_id, cache_bytes: self.options.index_cache_bytes, check: false }
    }

    /// Opens the index of the one writer if there is a file. Takes time after an unclean close.
    pub fn open_index(&self) {
        if self.mode == OpenMode::Read || !self.options.index {
            return;
        }
        self.keyed.behind.store(true, Ordering::SeqCst);
        let _one = locked(&self.keyed.upkeep);
        if let Ok(Some(1..)) = self.components.disk.len(&self.index_path()) {
            // Upkeep makes again what cannot be opened.
            let _ = self.index_for_writing();
        }
    }

    /// The index for changes; makes an empty one if need be. Callers hold the upkeep lock.
    pub fn index_for_writing(&self) -> Result<Arc<Index>, IndexError> {
        if let State::Open(index) = &*self.keyed.state.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(index.clone());
        }
        let opened = Index::open(&*self.components.disk, &self.index_path(), self.index_opening());
        let index = Arc::new(opened?);
        self.keyed.set(State::Open(index.clone()));
        Ok(index)
    }

    /// Gives the index up. Its file stays.
    pub fn close_index(&self) {
        self.keyed.set(State::None);
    }
}

/// The instant of a commit.
fn commit_at(view: &View, commit: u64) -> Option<i64> {
    let commits = view.commits.read().unwrap_or_else(PoisonError::into_inner);
    let at = usize::try_from(commit.checked_sub(1)?).ok()?;
    (commit <= view.commit.0).then(|| commits.get(at).map(|c| c.info.at))?
}

/// Whether what an index reflects is a part of the history that the log has. One that is ahead of the log
/// or was made beside another one is not.
pub(crate) fn is_of_history(view: &View, applied: Applied) -> bool {
    commit_at(view, applied.commit) == Some(applied.at)
}

/// What an index of a table reflects that holds all events of its runs; `None` where there are no runs,
/// or where keys depend on events of other keys, which an index could not follow.
pub(crate) fn reflected(view: &View, table: TableId) -> Option<Applied> {
    use crate::engine::scan::SortedSource;
    let (meta, parts) = (view.catalog.tables.get(&table)?, view.tables.get(&table)?);
    let apart = !meta.schema().key.is_empty() && parts.runs.iter().all(|r| !r.traits().moves);
    let commit = parts.runs.iter().map(|r| r.traits().commit.1).max().filter(|_| apart)?;
    Some(Applied { commit, at: commit_at(view, commit)?, schema: meta.schema().version })
}
