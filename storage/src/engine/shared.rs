//! What all handles of an open store share.

use super::api::{EngineOptions, OpenMode};
use super::commits::CommitsFiles;
use super::error::{Error, ErrorKind};
use super::flush::Full;
use super::keyed::Keyed;
use super::manifest::Manifest;
use super::view::{TableView, View};
use crate::clock::{Clock, Entropy, OsEntropy, SystemClock};
use crate::disk::{Disk, DiskLock, RealDisk};
use crate::id::TableId;
use crate::log::{Log, LogSettings};
use crate::run::ColumnCache;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::time::Duration;

/// The parts of the world that the engine is given.
#[derive(Clone, Debug)]
pub struct Components {
    /// File system.
    pub disk: Arc<dyn Disk>,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Random bytes.
    pub entropy: Arc<dyn Entropy>,
    /// What other processes are told of the holder of the store, mostly a command line.
    pub command: String,
}

impl Components {
    /// The real ones of this machine.
    pub fn real(command: impl Into<String>) -> Components {
        Components {
            disk: Arc::new(RealDisk),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
            command: command.into(),
        }
    }
}

/// State of the one writer.
#[derive(Debug)]
pub(crate) struct Writer {
    pub log: Log,
    pub last_at: i64,
    /// A commit failed: whether it counts is only known after reopening.
    pub in_doubt: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Shared {
    pub dir: PathBuf,
    pub mode: OpenMode,
    /// Identity of the store, 32 hexadecimal digits.
    pub store_id: String,
    pub components: Components,
    pub options: EngineOptions,
    pub view: RwLock<Arc<View>>,
    /// `None` in a store that was opened for reading.
    pub writer: Mutex<Option<Writer>>,
    /// Held while runs are written or replaced.
    pub manifest: Mutex<Manifest>,
    pub commits_files: CommitsFiles,
    /// Number for the next run file.
    pub next_run: AtomicU64,
    /// Bytes of runs written since the store was opened: by flushes, and by merges.
    pub written: [AtomicU64; 2],
    /// When the memory table was full.
    pub full: Mutex<Full>,
    /// Held while runs are merged.
    pub merging: Mutex<()>,
    /// Held while segments of the log are written anew.
    pub shrinking: Mutex<()>,
    pub keyed: Keyed,
    pub signal: Signal,
    pub stopping: AtomicBool,
    /// What was cut off the end of the log when the store was opened.
    pub recovered: Option<String>,
    pub log_settings: LogSettings,
    /// Decoded columns of runs.
    pub columns: Arc<ColumnCache>,
    /// Released when the last handle goes.
    pub lock: Option<Box<dyn DiskLock>>,
}

/// Tells the worker that there is work, and committers that memory was freed.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SignalState {
    work: bool,
    rounds: u64,
    failed: Option<Error>,
    merge_failed: Option<Error>,
    /// Why there is no worker any more that could free memory.
    ended: Option<Error>,
}

/// A lock whose holder panicked still guards consistent data: everything behind our locks is
/// replaced as a whole.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Signal {
    pub fn wake(&self) {
        locked(&self.state).work = true;
        self.changed.notify_all();
    }

    /// Waits for work or for `stopping`; gives up after `patience`. Whether there is work.
    pub fn wait_for_work(&self, stopping: &AtomicBool, patience: Option<Duration>) -> bool {
        let mut state = locked(&self.state);
        while !state.work && !stopping.load(Ordering::SeqCst) {
            let Some(patience) = patience else {
                state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
                continue;
            };
            let waited = self.changed.wait_timeout(state, patience);
            let (after, waited) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
            state = after;
            if waited.timed_out() {
                break;
            }
        }
        std::mem::take(&mut state.work)
    }

    /// Whether work waits.
    pub fn has_work(&self) -> bool {
        locked(&self.state).work
    }

    /// Says that a round of work is over.
    pub fn round_done(&self, failed: Option<Error>) {
        let mut state = locked(&self.state);
        state.rounds += 1;
        state.failed = failed;
        self.changed.notify_all();
    }

    /// Says how merging went.
    pub fn merged(&self, failed: Option<Error>) {
        locked(&self.state).merge_failed = failed;
    }

    /// Says that the worker is gone: whoever waits for it gets this error.
    pub fn ended(&self, why: Error) {
        locked(&self.state).ended = Some(why);
        self.changed.notify_all();
    }

    /// Why there is no worker, or the error of the last round, or of the last merging.
    pub fn failure(&self) -> Option<Error> {
        let state = locked(&self.state);
        let failures = [&state.ended, &state.failed, &state.merge_failed];
        failures.into_iter().flatten().next().cloned()
    }

    /// Has the worker work for as long as `full` says so, or gives the error of its last round.
    pub fn wait_while(&self, full: impl Fn() -> bool) -> Result<(), Error> {
        let mut state = locked(&self.state);
        let mut rounds = state.rounds;
        while full() {
            if state.rounds > rounds {
                rounds = state.rounds;
                state.failed.clone().map_or(Ok(()), Err)?;
            }
            state.ended.clone().map_or(Ok(()), Err)?;
            state.work = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        Ok(())
    }
}

impl Shared {
    pub fn view(&self) -> Arc<View> {
        self.view.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Publishes a view made from the current one. Callers hold the writer lock, so that no commit
    /// is lost in between.
    pub fn publish(&self, view: View) {
        *self.view.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = Arc::new(view);
    }

    /// Replaces the parts of some tables in the current view.
    pub fn replace_tables(
        &self,
        change: impl FnOnce(&mut std::collections::BTreeMap<TableId, Arc<TableView>>),
    ) {
        let _writer = locked(&self.writer);
        let mut view = (*self.view()).clone();
        change(&mut view.tables);
        self.publish(view);
    }

    pub fn runs_dir(&self) -> PathBuf {
        self.dir.join("runs")
    }

    pub fn log_dir(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// An error where the store was opened for reading.
    pub fn read_only(&self) -> Error {
        Error::new(ErrorKind::Invalid, format!("{} was opened for reading only", self.dir.display()))
    }
}
