//! Places of messages, positions to resume from, and what a source reports.

use super::kdump::Record;
use super::kept::Reading;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// Stands for stream, origin and their generations: equal numbers that are not 0 mean the same, within
    /// a process.
    pub number: u64,
    /// Name of the stream: the path of a file or directory, `topic/partition` of a Kafka dump
    /// (after the path of the dump and a `#`), or the declared name of standard input.
    pub stream: &'a str,
    /// How many streams of this name with other content came before (rule B3): a path that returns
    /// with other content is a new stream.
    pub stream_generation: u32,
    /// The part of the stream inside which positions are plain numbers: the path of a file within
    /// its directory, empty for streams of one part. Origins rank in natural order
    /// ([`super::natural_order`]), then by generation.
    pub origin: &'a str,
    /// How many origins of this name with other content came before.
    pub origin_generation: u32,
    /// Row within the origin counted from 0, or offset of a topic partition.
    pub position: u64,
    /// The file as it was opened, for people.
    pub file: &'a str,
    /// Line of the file counted from 1, or row counted from 1 where there are no lines.
    pub line: u64,
    /// Byte of the file (after decompression) at which the message begins; 0 where there is none.
    pub byte: u64,
    /// The message as it came; empty where there is no such thing (rows of Parquet).
    pub raw: &'a [u8],
    /// The record that `raw` is only the value of.
    pub record: Option<Record<'a>>,
}

impl<'a> Place<'a> {
    /// A place in a stream of one part, which is no file; without the message.
    pub fn in_stream(stream: &'a str, position: u64) -> Place<'a> {
        Place {
            number: 0,
            stream,
            stream_generation: 0,
            origin: "",
            origin_generation: 0,
            position,
            file: "",
            line: 0,
            byte: 0,
            raw: &[],
            record: None,
        }
    }

    /// The message as it is kept: as it came, or a record of a topic as a line of a dump.
    pub fn kept(&self) -> Cow<'a, [u8]> {
        match &self.record {
            None => Cow::Borrowed(self.raw),
            Some(record) => Cow::Owned(record.line()),
        }
    }
}

/// Places that the process has numbered.
static NUMBERED: AtomicU64 = AtomicU64::new(0);

/// A number for [`Place::number`] that no other place has.
pub(super) fn place_number() -> u64 {
    NUMBERED.fetch_add(1, Ordering::Relaxed) + 1
}

/// How far an origin was read: stored in the commit that holds its messages (rule C3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePosition {
    /// See [`Place::stream`].
    pub stream: String,
    /// See [`Place::stream_generation`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stream_generation: u32,
    /// See [`Place::origin`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// See [`Place::origin_generation`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub origin_generation: u32,
    /// The next position to be delivered.
    pub next: u64,
    /// Bytes of the file (after decompression) that were read; 0 for topic partitions.
    #[serde(default)]
    pub bytes: u64,
    /// Digest of those bytes: `xxh3:` and 128 bits in hexadecimal digits, or (older) SHA-256 in digits alone;
    /// for a topic partition of its last message, 64 bits in hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Lines that were read.
    #[serde(default)]
    pub lines: u64,
    /// Standard input: SHA-256 of the bytes at its start, at most 64 KiB of those read. It
    /// cannot be read twice to compare all of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub head: String,
    /// How its messages are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
    /// What its next messages depend on, where a format has such a thing: a transaction that has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<serde_json::Value>,
    /// Topic partitions: the end of the partition when this was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
}

/// Bytes at the start of standard input by which it is known again.
pub(super) const HEAD_BYTES: usize = 64 << 10;

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Something about a source that people should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// What `--format auto` found.
    Detected {
        /// The file.
        file: String,
        /// What it is.
        format: super::super::format::Format,
    },
    /// A file has the content of another one; both are taken.
    SameContent {
        /// The file.
        file: String,
        /// The stream and origin that had the content before.
        other: String,
    },
    /// A path came back with other content: it is a new stream or origin.
    OtherContent {
        /// The file.
        file: String,
    },
    /// A path was passed over.
    Skipped {
        /// The path.
        file: String,
        /// Why.
        reason: String,
    },
}

/// A source that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct SourceError {
    /// The file, glob or directory.
    pub file: String,
    /// What happened.
    pub reason: String,
    /// What may help; empty = nothing to say.
    pub hint: String,
}

impl SourceError {
    pub(super) fn new(file: impl Into<String>, reason: impl ToString) -> SourceError {
        SourceError { file: file.into(), reason: reason.to_string(), hint: String::new() }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> SourceError {
        self.hint = hint.into();
        self
    }
}
