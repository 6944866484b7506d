//! Errors of the library: a few kinds that tell the caller what to do, with a message and hints.

use asofdb_storage::engine;
use std::fmt;

/// What an error asks of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A statement or call cannot be carried out as it stands.
    Failed,
    /// Options or arguments make no sense; nothing was done.
    Usage,
    /// Another process holds the store; the message names it.
    Busy,
    /// The store is damaged, or of a newer format; the message names the place.
    Damaged,
    /// A source could not be read, or under `strict` an event had to be quarantined.
    Source,
    /// The time that was set for it ran out.
    Timeout,
    /// The caller asked to stop.
    Cancelled,
}

impl ErrorKind {
    /// The exit code of the `asof` command for an error of this kind.
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Failed => 1,
            ErrorKind::Usage => 2,
            ErrorKind::Busy => 3,
            ErrorKind::Damaged => 4,
            ErrorKind::Source => 5,
            ErrorKind::Timeout => 124,
            ErrorKind::Cancelled => 130,
        }
    }
}

/// An error of asofdb.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hints: Vec<String>,
}

/// What the calls of the library return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error without hints.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), hints: Vec::new() }
    }

    /// An error of kind [`ErrorKind::Usage`].
    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Usage, message)
    }

    /// An error of kind [`ErrorKind::Failed`].
    pub fn failed(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Failed, message)
    }

    /// The same error with one more hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hints.push(hint.into());
        self
    }

    /// The same error with a place before its message.
    pub(crate) fn at(mut self, place: &str) -> Error {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// What it asks of the caller.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened, and where.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it; may be empty.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<engine::Error> for Error {
    fn from(e: engine::Error) -> Error {
        let kind = match e.kind {
            engine::ErrorKind::Invalid
            | engine::ErrorKind::NotFound
            | engine::ErrorKind::Io
            | engine::ErrorKind::Limit
            | engine::ErrorKind::Unsupported => ErrorKind::Failed,
            engine::ErrorKind::Busy => ErrorKind::Busy,
            engine::ErrorKind::Damaged => ErrorKind::Damaged,
        };
        Error { kind, message: e.message, hints: e.hint.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_the_engine_keep_their_exit_codes() {
        let code = |k| Error::from(engine::Error::new(k, "x")).kind().exit_code();
        assert_eq!(code(engine::ErrorKind::Busy), 3);
        assert_eq!(code(engine::ErrorKind::Damaged), 4);
        assert_eq!(code(engine::ErrorKind::Invalid), 1);
    }
}
