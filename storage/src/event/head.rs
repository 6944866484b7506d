//! What an event says beside its column values.

use crate::id::{OriginId, SourceId};
use crate::time::FOREVER;
use crate::value::Cell;

/// The kind of a stored event. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// A new row.
    Insert = 0,
    /// A change of a row.
    Update = 1,
    /// A new row or a change: the source does not tell.
    Upsert = 2,
    /// A row read by a snapshot of the source.
    Read = 3,
    /// The end of a row.
    Delete = 4,
    /// The end of every row of the table (rule B7).
    Truncate = 5,
    /// The old key's side of a key change (rule B8). Never in the log: made when a row with a
    /// previous key is decoded.
    MovedAway = 6,
}

impl Op {
    /// The operation with this on-disk number.
    pub fn from_u8(n: u8) -> Option<Op> {
        use Op::*;
        [Insert, Update, Upsert, Read, Delete, Truncate, MovedAway].into_iter().find(|op| *op as u8 == n)
    }

    /// Whether the event ends rows instead of writing one.
    pub fn ends_row(self) -> bool {
        matches!(self, Op::Delete | Op::Truncate | Op::MovedAway)
    }

    /// The word shown in `_operation`.
    pub fn word(self) -> &'static str {
        match self {
            Op::Insert => "insert",
            Op::Update => "update",
            Op::Upsert => "upsert",
            Op::Read => "read",
            Op::Delete => "delete",
            Op::Truncate => "truncate",
            Op::MovedAway => "moved_away",
        }
    }
}

/// Where an event's valid time comes from (rule A4); shown in `_valid_from_source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TimeSource {
    /// A column declared as valid time.
    Declared = 0,
    /// The source's commit time.
    Source = 1,
    /// The connector's own time.
    Connector = 2,
    /// The broker's time.
    Broker = 3,
    /// The valid time of the key's predecessor in the stream.
    Predecessor = 4,
    /// The commit instant of this store.
    Commit = 5,
    /// A snapshot read: it holds from the beginning.
    Beginning = 6,
}

impl TimeSource {
    /// The source with this on-disk number.
    pub fn from_u8(n: u8) -> Option<TimeSource> {
        use TimeSource::*;
        [Declared, Source, Connector, Broker, Predecessor, Commit, Beginning]
            .into_iter()
            .find(|t| *t as u8 == n)
    }

    /// The word shown in `_valid_from_source`.
    pub fn word(self) -> &'static str {
        match self {
            TimeSource::Declared => "declared",
            TimeSource::Source => "source",
            TimeSource::Connector => "connector",
            TimeSource::Broker => "broker",
            TimeSource::Predecessor => "predecessor",
            TimeSource::Commit => "commit",
            TimeSource::Beginning => "beginning",
        }
    }
}

/// Everything of an event but its cells. Times are microseconds, or plain integers on an integer
/// axis.
#[derive(Clone, Debug, PartialEq)]
pub struct EventHead<'a> {
    /// The kind of change.
    pub op: Op,
    /// A full image: columns that are not given are NULL, not unchanged (rule B5). Implied for
    /// deletes and truncates.
    pub full: bool,
    /// Effective valid time (rules A4, A5), [`crate::time::BEGINNING`] for "from the beginning";
    /// `None` = the commit instant.
    pub valid_from: Option<i64>,
    /// Own valid end of a bounded event (rule B13), [`FOREVER`] if it has none.
    pub valid_to: i64,
    /// The event's own time, before rule A5 moved it.
    pub event_time: Option<i64>,
    /// Where the valid time comes from.
    pub time_source: TimeSource,
    /// Declared system time; `None` = the commit instant.
    pub system: Option<i64>,
    /// Sequence tie-breaks in the encoding of [`crate::key`]; compared as bytes (rule B3).
    pub ties: &'a [u8],
    /// The origin that `position` counts in.
    pub origin: OriginId,
    /// Offset or row within the origin.
    pub position: u64,
    /// Number of this event within its message.
    pub ordinal: u32,
    /// What the envelope says of the source.
    pub source: SourceId,
    /// Usable log position of the source, compared as bytes; empty = none (rule C1).
    pub token: &'a [u8],
    /// Number of this event among the consecutive events of the stream with this token.
    pub token_ordinal: u32,
    /// Operation id, if one is declared.
    pub operation_id: Option<&'a [u8]>,
    /// Transaction of the source.
    pub transaction_id: Option<&'a str>,
    /// The key before this event, in key order, if the event changes it (rule B8); for a table
    /// without a key the whole old row in column order (rule B15).
    pub previous: Option<&'a [Cell<'a>]>,
    /// The source sends a key change as deletes of the old key and a create: deletes of the old key
    /// at the same effective instant do not count when the old row is read (rule B8).
    pub previous_deleted: bool,
    /// The message as it came, if it is to be kept.
    pub raw: Option<&'a [u8]>,
}

impl EventHead<'_> {
    /// A head with nothing but an operation and a place in the stream.
    pub fn new(op: Op, origin: OriginId, position: u64) -> EventHead<'static> {
        EventHead {
            op,
            full: true,
            valid_from: None,
            valid_to: FOREVER,
            event_time: None,
            time_source: TimeSource::Commit,
            system: None,
            ties: &[],
            origin,
            position,
            ordinal: 0,
            source: SourceId(0),
            token: &[],
            token_ordinal: 0,
            operation_id: None,
            transaction_id: None,
            previous: None,
            previous_deleted: false,
            raw: None,
        }
    }
}
