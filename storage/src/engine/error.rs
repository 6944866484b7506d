//! Errors of the engine: few kinds that tell the caller what to do, with a rich message.

use std::fmt;

/// What an error asks of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request makes no sense for this store: unknown table, wrong bound, wrong option.
    Invalid,
    /// There is no store, or there is one already.
    NotFound,
    /// Another process holds the store; the message names it.
    Busy,
    /// The store is damaged, or of a newer format; the message names the place.
    Damaged,
    /// A file operation failed. After a failed write the state is in doubt: reopen the store.
    Io,
    /// A limit was reached; the message names it and its value.
    Limit,
    /// Not built yet; the message says what is missing.
    Unsupported,
}

/// An error of the engine.
#[derive(Clone, Debug)]
pub struct Error {
    /// What it asks of the caller.
    pub kind: ErrorKind,
    /// What happened, and where.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Error {
    /// An error without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), hint: None }
    }

    /// The same error with a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
