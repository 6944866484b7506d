//! The library behind the shell: opens stores, makes sessions of them, and turns the library's
//! errors into ours.

mod session;

use crate::backend::Backend;
use crate::outcome::{Exit, Failure, Outcome};
use asofdb::intake::{FileMessages, KafkaMessages, Messages, PullMessages, PullOptions};
use asofdb::source::KafkaOptions;
use asofdb::{ErrorKind, IntakeOptions, IntakeReport, MemoryBudget, Store};
use asofdb_storage::engine::{EngineOptions, OpenMode, Quarantined};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The clock, microseconds since 1970.
pub fn now() -> i64 {
    chrono::Utc::now().timestamp_micros()
}

/// A session over the store in `path`, opened for reading.
/// With `explain`, empty answers say why.
pub fn session(path: &Path, params: &[(String, String)], explain: bool) -> Outcome<Arc<dyn Backend>> {
    Ok(Arc::new(session::Live::open(&reader(path)?, params, explain)?))
}

/// Makes the store in `path` if there is none and `statement` is one that may: `CREATE ...`.
pub fn made_for(path: &Path, statement: &str) -> Outcome<Made> {
    let before = Before::look(path);
    let creates = statement.split_whitespace().next().is_some_and(|w| w.eq_ignore_ascii_case("create"));
    let made = creates && before != Before::Something;
    if made {
        drop(writer(path)?);
    }
    Ok(Made { path: path.to_owned(), before: if made { before } else { Before::Something } })
}

/// A store that may have been made for a statement; it goes where nothing came of that.
pub struct Made {
    path: PathBuf,
    before: Before,
}

impl Drop for Made {
    fn drop(&mut self) {
        if self.before != Before::Something
            && let Ok(store) = open(&self.path, OpenMode::Write)
            && store.commit().0 == 0
        {
            self.before.restore(&self.path);
        }
    }
}

/// What is taken into a store.
pub enum Input {
    /// Files, globs, directories, `-` for standard input.
    Files(Vec<String>),
    /// Topics of Kafka.
    Topics(KafkaOptions),
    /// A table of a database.
    Pull(PullOptions),
}

impl Input {
    /// Opens it; `there` is the store, if there is one already.
    fn open(&self, options: &IntakeOptions, there: Option<&Store>) -> asofdb::Result<Box<dyn Messages>> {
        let catalog = there.map(Store::catalog).unwrap_or_default();
        match self {
            Input::Files(files) => {
                let stdin = files.iter().any(|f| f == "-");
                let stdin = stdin.then(|| Box::new(std::io::stdin()) as Box<dyn Read + Send>);
                Ok(Box::new(FileMessages::open(files, options, stdin, &catalog)?))
            }
            Input::Topics(kafka) => Ok(Box::new(KafkaMessages::open(kafka.clone(), options, &catalog)?)),
            Input::Pull(pull) => {
                Ok(Box::new(PullMessages::open(pull, options, there.map(|s| s.engine().pin()))?))
            }
        }
    }
}

/// Takes `input` into the store in `path`, which is made if there is none; a source that is not
/// there makes no store. `opened` is called with the store before anything is taken.
pub fn ingest(
    path: &Path,
    input: &Input,
    options: &IntakeOptions,
    opened: &mut dyn FnMut(&Store) -> Outcome,
    progress: &mut dyn FnMut(&asofdb::Progress) -> ControlFlow<()>,
) -> Outcome<IntakeReport> {
    let before = Before::look(path);
    let there = if path.exists() { Some(writer(path)?) } else { None };
    let mut messages = input.open(options, there.as_ref()).map_err(|e| failure(&e))?;
    let store = match there {
        Some(store) => store,
        None => writer(path)?,
    };
    let _owner = listen(&store);
    let taken = opened(&store)
        .and_then(|()| store.ingest_messages(&mut *messages, options, progress).map_err(|e| failure(&e)));
    if taken.is_err() && store.commit().0 == 0 {
        // The lock is still ours, so that nobody else's commits can be in there.
        before.restore(path);
    }
    taken
}

/// Takes statements of other processes while the store is held for long; a note if that is not possible.
pub fn listen(store: &Store) -> Option<asofdb::sql::Owner> {
    store.listen().map_err(|e| crate::log::info(|| e.to_string())).ok()
}

/// What was there before a command that may make a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    EmptyDirectory,
    Something,
}

impl Before {
    fn look(path: &Path) -> Before {
        match std::fs::read_dir(path) {
            Ok(mut entries) => match entries.next() {
                None => Before::EmptyDirectory,
                Some(_) => Before::Something,
            },
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Before::Nothing,
            Err(_) => Before::Something,
        }
    }

    /// Takes a store without commits away that the command made for nothing. What cannot be removed
    /// stays: it is an empty store.
    fn restore(self, path: &Path) {
        match self {
            Before::Something => {}
            Before::Nothing => drop(std::fs::remove_dir_all(path)),
            Before::EmptyDirectory => {
                for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
                    let path = entry.path();
                    let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
                    drop(if is_dir { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) });
                }
            }
        }
    }
}

/// What `--memory` said.
static MEMORY: OnceLock<MemoryBudget> = OnceLock::new();

/// Sets the memory of all stores that this process opens; only the first call counts.
pub fn set_memory(memory: MemoryBudget) {
    MEMORY.get_or_init(|| memory);
}

/// What other processes are told of this one: its command, and none of its arguments, which may be secrets.
fn command() -> String {
    let name =
        std::env::args().nth(1).filter(|word| word.chars().all(|c| c.is_ascii_alphabetic() || c == '-'));
    name.map_or("asof".to_owned(), |name| format!("asof {name}"))
}

fn open(path: &Path, mode: OpenMode) -> asofdb::Result<Store> {
    let memory = MEMORY.get().copied().unwrap_or_default();
    let options = EngineOptions { command: command(), ..memory.engine_options() };
    Ok(Store::open_with(path, mode, options)?.with_memory(memory))
}

/// Opens a store to write to it; makes it if it is not there.
pub fn writer(path: &Path) -> Outcome<Store> {
    crate::log::info(|| format!("opening {} to write", path.display()));
    open(path, OpenMode::Create).map_err(|e| failure(&e))
}

/// Opens a store that is there to keep it in order.
pub fn upkeep(path: &Path) -> Outcome<Store> {
    upkeep_keeping(path, EngineOptions::default().keep_log)
}

/// The same; with `keep_log` the log is not shrunk.
pub fn upkeep_keeping(path: &Path, keep_log: bool) -> Outcome<Store> {
    crate::log::info(|| format!("opening {} for upkeep", path.display()));
    let memory = MEMORY.get().copied().unwrap_or_default();
    let options = EngineOptions { keep_log, command: command(), ..memory.engine_options() };
    Store::open_with(path, OpenMode::Write, options).map_err(|e| open_failure(path, &e))
}

/// Opens a store after its damaged log was cut.
pub fn salvage(path: &Path) -> Outcome<(Store, asofdb_storage::engine::Salvaged)> {
    crate::log::info(|| format!("cutting the log of {}", path.display()));
    Store::salvage(path, MEMORY.get().copied().unwrap_or_default()).map_err(|e| open_failure(path, &e))
}

/// Closes a store that was written to. What fails then loses nothing, and is told.
pub fn close(store: Store) -> Outcome {
    let path = store.engine().dir().display().to_string();
    store.close().map_err(|e| {
        let failure = failure(&e);
        let message = format!("closing the store failed: {}", failure.message);
        Failure { message, ..failure }.hint(format!(
            "every commit is stored; 'asof compact {path}' does the rest when the cause is mended"
        ))
    })
}

/// An error of the engine.
pub fn engine_failure(e: asofdb_storage::engine::Error) -> Failure {
    failure(&e.into())
}

/// Opens a store that is there for questions.
pub fn reader(path: &Path) -> Outcome<Store> {
    crate::log::info(|| format!("opening {} to read", path.display()));
    open(path, OpenMode::Read).map_err(|e| open_failure(path, &e))
}

/// A store that is not there is wrong usage.
fn open_failure(path: &Path, e: &asofdb::Error) -> Failure {
    let failure = failure(e);
    match path.exists() {
        true => failure,
        false => Failure { exit: Exit::Usage, ..failure },
    }
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

/// Where a quarantined message came from.
pub fn place_of(message: &Quarantined) -> String {
    match (&message.file, message.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => format!("{file} row {}", message.position),
        (None, Some(line)) => format!("{}:{line}", message.stream),
        (None, None) => format!("{} offset {}", message.stream, message.position),
    }
}
