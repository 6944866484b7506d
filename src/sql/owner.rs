//! Statements that another process hands to the owner of a store: a socket in the store's directory takes
//! one statement a connection, as a line of JSON, and answers with another line. Who may open the store may
//! connect; nothing but statements that change the catalog is taken.

use super::error::{SqlError, SqlErrorKind};
use super::flow::read_flow;
use super::flow_answer::changed;
use super::token::{Place, StatementLimits, check_limits, tokenize};
use asofdb_storage::engine::{self, Engine};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The socket's name in the store's directory.
const SOCKET: &str = "socket";
/// Longer requests and answers are refused.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// How long the owner waits for a statement that was announced.
const REQUEST_WAIT: Duration = Duration::from_secs(2);
/// How long the owner is waited for: it may be within a commit.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    version: u32,
    statement: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    /// What was done.
    Done(String),
    /// Why it was not.
    Refused { message: String, hint: Option<String>, place: Option<(u64, u64, u64)>, kind: String },
}

/// While it lives, other processes can have statements carried out here.
#[derive(Debug)]
pub struct Owner {
    dir: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Owner {
    /// Listens in the store's directory for `engine`, which is open to write.
    ///
    /// # Errors
    /// Those of the operating system, and if something else has the socket's name.
    pub(crate) fn listen(dir: &Path, engine: Engine) -> io::Result<Owner> {
        let path = dir.join(SOCKET);
        match fs::symlink_metadata(&path) {
            // The one that held the store before was killed.
            Ok(m) if m.file_type().is_socket() => fs::remove_file(&path)?,
            Ok(_) => return Err(io::Error::other(format!("{} is no socket", path.display()))),
            Err(_) => {}
        }
        let listener = at_short_path(dir, |path| UnixListener::bind(path))?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let serve = move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                // Who went away needs no answer.
                let _ = stream.and_then(|stream| answer(stream, &engine));
            }
        };
        let thread = std::thread::Builder::new().name("asof-owner".into()).spawn(serve)?;
        Ok(Owner { dir: dir.to_owned(), stop, thread: Some(thread) })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let woken = at_short_path(&self.dir, |path| UnixStream::connect(path)).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            // What it panicked over was one statement.
            let _ = thread.join();
        }
        let _ = fs::remove_file(self.dir.join(SOCKET));
    }
}

/// Calls `act` with a path of the socket that is short enough for addresses of sockets, which end at about
/// 100 bytes.
fn at_short_path<T>(dir: &Path, act: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    let held = File::open(dir)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    match short.exists() {
        true => act(&short.join(SOCKET)),
        false => act(&dir.join(SOCKET)),
    }
}

fn answer(mut stream: UnixStream, engine: &Engine) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_WAIT))?;
    stream.set_write_timeout(Some(REQUEST_WAIT))?;
    let request = read_line(&stream)?;
    let reply = match carried_out(&request, engine) {
        Ok(said) => Reply::Done(said),
        Err(e) => Reply::Refused {
            kind: kind_name(e.kind).to_owned(),
            message: e.message,
            hint: e.hint,
            place: e.place.map(|p| (p.line, p.column, p.length)),
        },
    };
    write_line(&mut stream, &reply)
}

fn carried_out(request: &str, engine: &Engine) -> Result<String, SqlError> {
    let request: Request = serde_json::from_str(request)
        .map_err(|e| SqlError::invalid(format!("what was handed over cannot be read: {e}")))?;
    if request.version != 1 {
        return Err(SqlError::unsupported("another version of asof holds the store"));
    }
    let tokens = tokenize(&request.statement)?;
    check_limits(&request.statement, &tokens, &StatementLimits::default())?;
    match read_flow(&tokens)? {
        Some((statement, place)) => changed(engine, &request.statement, &statement, place),
        None => Err(SqlError::unsupported("only statements that change the catalog are handed over")),
    }
}

/// Has the owner of the store in `dir` carry a statement out; `None` if no owner listens.
pub(super) fn hand_over(dir: &Path, statement: &str) -> Option<Result<String, SqlError>> {
    let is_socket = fs::symlink_metadata(dir.join(SOCKET)).is_ok_and(|m| m.file_type().is_socket());
    if !is_socket {
        return None;
    }
    let stream = at_short_path(dir, |path| UnixStream::connect(path)).ok()?;
    Some(asked(stream, statement).unwrap_or_else(|e| {
        let busy = SqlErrorKind::Storage(engine::ErrorKind::Busy);
        Err(SqlError::new(busy, format!("the process that holds the store gave no answer: {e}"))
            .hint("whether the statement was carried out is not known: look at flows(), then try again"))
    }))
}

fn asked(mut stream: UnixStream, statement: &str) -> io::Result<Result<String, SqlError>> {
    stream.set_read_timeout(Some(ANSWER_WAIT))?;
    stream.set_write_timeout(Some(ANSWER_WAIT))?;
    write_line(&mut stream, &Request { version: 1, statement: statement.to_owned() })?;
    let reply = read_line(&stream)?;
    Ok(match serde_json::from_str::<Reply>(&reply).map_err(io::Error::other)? {
        Reply::Done(said) => Ok(said),
        Reply::Refused { message, hint, place, kind } => Err(SqlError {
            kind: kind_of(&kind),
            message,
            place: place.map(|(line, column, length)| Place { line, column, length }),
            hint,
        }),
    })
}

fn write_line(stream: &mut UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn read_line(stream: &UnixStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut line)?;
    match line.pop() {
        Some('\n') => Ok(line),
        _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the line has no end")),
    }
}

/// Kinds as they are handed over.
const KINDS: [(&str, SqlErrorKind); 6] = [
    ("syntax", SqlErrorKind::Syntax),
    ("invalid", SqlErrorKind::Invalid),
    ("unsupported", SqlErrorKind::Unsupported),
    ("limit", SqlErrorKind::Limit),
    ("io", SqlErrorKind::Storage(engine::ErrorKind::Io)),
    ("damaged", SqlErrorKind::Storage(engine::ErrorKind::Damaged)),
];

fn kind_name(kind: SqlErrorKind) -> &'static str {
    KINDS.iter().find(|(_, k)| *k == kind).map_or("execution", |(name, _)| name)
}

fn kind_of(name: &str) -> SqlErrorKind {
    KINDS.iter().find(|(n, _)| *n == name).map_or(SqlErrorKind::Execution, |(_, kind)| *kind)
}
