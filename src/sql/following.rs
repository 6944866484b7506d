//! A store that another process writes to: every statement sees the commits there are when it begins.

use super::error::SqlError;
use super::owner::hand_over;
use super::reader::{Changed, MakeChange, Reader, ReaderSource, change_engine};
use asofdb_storage::engine::{Engine, EngineOptions, Error, ErrorKind, OpenMode};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The files of the log with their sizes: where they are the same, there is no new commit.
type LogState = Vec<(std::ffi::OsString, u64)>;

/// A store opened for reading; it is opened again where its log has grown.
#[derive(Debug)]
pub(crate) struct Following {
    path: PathBuf,
    options: EngineOptions,
    open: Mutex<(Engine, LogState)>,
}

impl Following {
    /// Follows the store in `path`, of which `engine` is open already.
    pub fn new(path: &Path, options: EngineOptions, engine: Engine) -> Following {
        // What `engine` has seen of the log is not known: the first look opens it again.
        Following { path: path.to_owned(), options, open: Mutex::new((engine, LogState::new())) }
    }

    fn log_state(&self) -> LogState {
        let entries = std::fs::read_dir(self.path.join("log")).into_iter().flatten().flatten();
        let mut files: LogState =
            entries.map(|e| (e.file_name(), e.metadata().map_or(0, |m| m.len()))).collect();
        files.sort();
        files
    }
}

impl ReaderSource for Following {
    fn pin(&self) -> Result<Arc<dyn Reader>, Error> {
        let now = self.log_state();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.1 != now {
            *open = (Engine::open(&self.path, OpenMode::Read, self.options.clone())?, now);
        }
        Ok(Arc::new(Engine::pin(&open.0)))
    }

    /// Opens the store to write for as long as that takes, or has its owner carry the statement out.
    fn change(&self, statement: &str, make: &mut MakeChange<'_>) -> Result<Changed, SqlError> {
        match Engine::open(&self.path, OpenMode::Write, self.options.clone()) {
            Ok(engine) => change_engine(&engine, make),
            Err(busy) if busy.kind == ErrorKind::Busy => match hand_over(&self.path, statement) {
                Some(answer) => answer.map(Changed::Elsewhere),
                None => Err(busy.into()),
            },
            Err(e) => Err(e.into()),
        }
    }
}
