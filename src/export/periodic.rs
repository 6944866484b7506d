//! Exports again and again while events come in, on a thread of its own.

use super::generation::Target;
use super::options::ExportOptions;
use super::place::Place;
use super::run::{ExportReport, export_set};
use crate::error::{Error, ErrorKind, Result};
use asofdb_storage::engine::Engine;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Generations that stay beside the current one, for readers that are at them.
const KEPT: usize = 1;

/// How the rounds end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With one last export.
    Export,
    /// At once.
    Leave,
}

/// Hears of every round that exported something or failed.
type Hear = dyn FnMut(&Result<ExportReport>) + Send;

/// All tables of a store, exported at an interval. Every round is of one commit and takes the place of
/// the round before in one step, for all tables together; a round without a new commit is left out. A
/// round that fails changes nothing: it is reported, and the next one tries again.
///
/// Dropped without [`PeriodicExport::finish`] it ends without a last round.
#[derive(Debug)]
pub struct PeriodicExport {
    end: SyncSender<End>,
    leave: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Option<ExportReport>>>>,
}

impl PeriodicExport {
    pub(crate) fn start(
        engine: Engine,
        dest: &Path,
        options: ExportOptions,
        every: Duration,
        hear: Box<Hear>,
    ) -> Result<PeriodicExport> {
        options.validate()?;
        let target = Target::open(Place::default(), dest, "all-tables", KEPT)?;
        let (end, ended) = sync_channel(1);
        let leave = Arc::new(AtomicBool::new(false));
        let mut rounds = Rounds { engine, target, options, hear, leave: leave.clone(), done: None };
        let work = move || loop {
            match ended.recv_timeout(every) {
                Err(RecvTimeoutError::Timeout) => {
                    // An error was reported; the next round tries again.
                    let _ = rounds.round();
                }
                Ok(End::Export) => {
                    rounds.leave.store(false, Ordering::SeqCst);
                    return rounds.round();
                }
                Ok(End::Leave) | Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        };
        let thread = std::thread::Builder::new()
            .name("asof-export-rounds".into())
            .spawn(work)
            .map_err(|e| Error::failed(format!("cannot start a thread for the export: {e}")))?;
        Ok(PeriodicExport { end, leave, thread: Some(thread) })
    }

    /// Ends the rounds with one last export, unless the last round was of the newest commit already.
    /// Returns what that export wrote.
    ///
    /// # Errors
    /// Of the last export; the one before it is in place then.
    pub fn finish(mut self) -> Result<Option<ExportReport>> {
        self.close(End::Export)
    }

    fn close(&mut self, end: End) -> Result<Option<ExportReport>> {
        let Some(thread) = self.thread.take() else { return Ok(None) };
        // A round that is under way is of an older commit by now.
        self.leave.store(true, Ordering::SeqCst);
        // The thread has ended already only if it failed, and says so below.
        let _ = self.end.send(end);
        match thread.join() {
            Ok(done) => done,
            Err(_) => Err(Error::failed("the export failed: a fault of asofdb")),
        }
    }
}

impl Drop for PeriodicExport {
    fn drop(&mut self) {
        let _ = self.close(End::Leave);
    }
}

struct Rounds {
    engine: Engine,
    target: Target,
    options: ExportOptions,
    hear: Box<Hear>,
    leave: Arc<AtomicBool>,
    /// The commit of the last round that was published.
    done: Option<u64>,
}

impl Rounds {
    /// Exports if there is something new.
    fn round(&mut self) -> Result<Option<ExportReport>> {
        let snapshot = self.engine.pin();
        let catalog = snapshot.catalog().clone();
        let tables: Vec<&str> = catalog.tables.values().map(|t| t.name.as_str()).collect();
        if tables.is_empty() || self.done == Some(snapshot.commit().0) {
            return Ok(None);
        }
        let leave = self.leave.clone();
        let stop = move || leave.load(Ordering::SeqCst);
        let result = export_set(&snapshot, &tables, &self.target, &self.options, &mut |_| match stop() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        match &result {
            Ok(report) => self.done = Some(report.commit),
            Err(e) if e.kind() == ErrorKind::Cancelled => return Ok(None),
            Err(_) => {}
        }
        (self.hear)(&result);
        result.map(Some)
    }
}
