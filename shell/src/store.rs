//! The library behind the shell: opens stores, makes sessions of them, and turns the library's
//! errors into ours.

mod session;

use crate::backend::Backend;
use crate::outcome::{Exit, Failure, Outcome};
use asofdb::intake::FileMessages;
use asofdb::{ErrorKind, IntakeOptions, IntakeReport};
pub use asofdb_storage::engine::OpenMode;
use asofdb_storage::engine::{self, Engine, EngineOptions, Quarantined};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// The clock, microseconds since 1970.
pub fn now() -> i64 {
    chrono::Utc::now().timestamp_micros()
}

/// Opens a store.
pub fn open(path: &Path, mode: OpenMode) -> Outcome<Engine> {
    Engine::open(path, mode, EngineOptions::default()).map_err(|e| {
        let missing = e.kind == engine::ErrorKind::NotFound;
        let failure = engine_failure(e);
        match missing {
            true => Failure { exit: Exit::Usage, ..failure }.hint("asof ingest STORE SOURCE... makes a store; asof demo makes one to play with"),
            false => failure,
        }
    })
}

/// A session over the store in `path`, opened for reading.
pub fn session(path: &Path, params: &[(String, String)]) -> Outcome<Arc<dyn Backend>> {
    Ok(Arc::new(session::Live::open(open(path, OpenMode::Read)?, params)?))
}

/// Takes `sources` into the store in `path`, which is made if there is none; a source that is not
/// there makes no store.
pub fn ingest(
    path: &Path,
    sources: &[String],
    options: &IntakeOptions,
    progress: &mut dyn FnMut(&asofdb::Progress) -> ControlFlow<()>,
) -> Outcome<IntakeReport> {
    let exists = path.exists();
    let engine = if exists { Some(open(path, OpenMode::Create)?) } else { None };
    let catalog = engine.as_ref().map(|e| e.pin().catalog().clone()).unwrap_or_default();
    let stdin = sources.iter().any(|s| s == "-").then(|| Box::new(std::io::stdin()) as Box<dyn Read + Send>);
    let mut messages = FileMessages::open(sources, options, stdin, &catalog).map_err(|e| failure(&e))?;
    let engine = match engine {
        Some(engine) => engine,
        None => open(path, OpenMode::Create)?,
    };
    asofdb::intake::run(&engine, &mut messages, options, progress).map_err(|e| failure(&e))
}

/// An error of the library.
pub fn failure(e: &asofdb::Error) -> Failure {
    let exit = match e.kind() {
        ErrorKind::Usage => Exit::Usage,
        ErrorKind::Busy => Exit::Busy,
        ErrorKind::Damaged => Exit::Damaged,
        ErrorKind::Source => Exit::Source,
        ErrorKind::Timeout => Exit::Timeout,
        ErrorKind::Cancelled => Exit::Cancelled,
        _ => Exit::Failed,
    };
    let mut failure = Failure::new(exit, e.message());
    failure.hints = e.hints().to_vec();
    failure
}

/// An error of the engine.
pub fn engine_failure(e: engine::Error) -> Failure {
    failure(&e.into())
}

/// Where a quarantined message came from.
pub fn place_of(message: &Quarantined) -> String {
    match (&message.file, message.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => format!("{file} row {}", message.position),
        (None, Some(line)) => format!("{}:{line}", message.stream),
        (None, None) => format!("{} offset {}", message.stream, message.position),
    }
}
