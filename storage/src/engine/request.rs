//! What callers ask of the engine.

use super::catalog::CatalogChange;
use super::error::Error;
use super::quarantine::Resolved;
use crate::event::Op;
use crate::id::{ColumnId, OriginId, StreamId, TableId};
use crate::key::KeyRange;
use crate::schema::TableSchema;
use crate::time::{BEGINNING, CommitSeq, FOREVER};
use arrow::array::RecordBatch;
use std::sync::Arc;

/// Rows of one table to be stored, in the coding of [`crate::event::encode_row`], arrival order.
#[derive(Clone, Debug, Default)]
pub struct RowBlock {
    /// The table.
    pub table: TableId,
    /// End of each row in `bytes`.
    pub ends: Vec<u32>,
    /// The rows, one after the other; at most 4 GiB.
    pub bytes: Vec<u8>,
}

impl RowBlock {
    /// The rows as byte slices.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|i| {
            let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
            &self.bytes[start..self.ends[i] as usize]
        })
    }
}

/// A message that could not be taken (rule C2).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Quarantined {
    /// Origin it stood in, if one is known by then.
    pub origin: Option<OriginId>,
    /// Name of the stream.
    pub stream: String,
    /// File, if it came from one.
    pub file: Option<String>,
    /// Offset or row.
    pub position: u64,
    /// Line of the file, from 1, if it came from a text file.
    pub line: Option<u64>,
    /// Table, if it is known by then.
    pub table: Option<String>,
    /// Why.
    pub reason: String,
    /// What to do.
    pub hint: Option<String>,
    /// Length of the message in bytes.
    pub length: u64,
    /// The message, or its first part where it is too long to keep.
    #[serde(with = "super::bytes_as_text")]
    pub raw: Vec<u8>,
}

/// Everything that becomes visible at once.
#[derive(Clone, Debug, Default)]
pub struct CommitRequest {
    /// Catalog changes that the events need; tables carry their whole new state. A schema version
    /// whose commit number is 0 gets this commit's.
    pub catalog: Vec<CatalogChange>,
    /// Events, at most one block per table; rows must fit the table's latest schema.
    pub blocks: Vec<RowBlock>,
    /// New positions, by the caller's keys.
    pub positions: Vec<(String, serde_json::Value)>,
    /// Messages put aside.
    pub quarantine: Vec<Quarantined>,
    /// Messages put aside by earlier commits that this one settles; each once.
    pub resolved: Vec<Resolved>,
    /// What made the commit, with counts; shown by `commits()`.
    pub note: serde_json::Value,
}

/// Bounds of a point question (rules B2, D1). Each bound is inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Valid time; [`FOREVER`] = the latest state.
    pub valid: i64,
    /// System time; [`FOREVER`] = the latest belief.
    pub system: i64,
    /// Commit.
    pub commit: CommitSeq,
}

impl Bounds {
    /// The latest state of the latest belief at `commit`.
    pub fn latest(commit: CommitSeq) -> Bounds {
        Bounds { valid: FOREVER, system: FOREVER, commit }
    }
}

/// Which interval rows a range question wants on one axis (rule D2). Rows come whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RangeSpec {
    /// Rows whose interval is open at its end.
    Latest,
    /// Rows whose interval holds the point.
    AsOf(i64),
    /// Rows whose interval overlaps `[a, b)`.
    FromTo(i64, i64),
    /// Rows whose interval overlaps `[a, b]`.
    Between(i64, i64),
    /// Rows whose interval lies within `[a, b]`: start at or after a, end at or before b.
    ContainedIn(i64, i64),
    /// Every row.
    All,
}

impl RangeSpec {
    /// Whether an interval `[start, end)` is wanted.
    pub fn wants(self, start: i64, end: i64) -> bool {
        match self {
            RangeSpec::Latest => end == FOREVER,
            RangeSpec::AsOf(FOREVER) => end == FOREVER,
            RangeSpec::AsOf(t) => start <= t && t < end,
            RangeSpec::FromTo(a, b) => a < b && start < b && end > a,
            RangeSpec::Between(a, b) => start <= b && end > a,
            RangeSpec::ContainedIn(a, b) => start >= a && end <= b && start != BEGINNING && end != FOREVER,
            RangeSpec::All => true,
        }
    }
}

/// What a scan yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanKind {
    /// Rows at a point: the projected columns.
    Rows {
        /// Valid time; [`FOREVER`] = the latest state.
        valid: i64,
        /// System time; [`FOREVER`] = the latest belief.
        system: i64,
    },
    /// Interval rows of all beliefs (rule B10): the projected columns, then four non-nullable Int64
    /// columns `valid_start, valid_end, system_start, system_end` ([`BEGINNING`], [`FOREVER`]).
    Intervals {
        /// Filter on the valid axis.
        valid: RangeSpec,
        /// Filter on the system axis.
        system: RangeSpec,
    },
    /// Interval rows of the latest belief (rule B11): the projected columns, then two Int64 columns
    /// `valid_start, valid_end`.
    Scd2,
    /// Every event, in key order and then rule B3 order: the meta columns of
    /// [`crate::event::columns`] (the old key's side of key changes left out), then the projected
    /// columns as they are *after* the event in the belief of its own commit and system bounds
    /// unlimited (NULL after a delete), then a Boolean column `exists`.
    History,
}

/// Which keys a scan covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyFilter {
    /// All keys.
    All,
    /// Only these, as key bytes.
    Keys(Vec<Vec<u8>>),
    /// Those in any of these ranges, which ascend and have no key in common. A scan may show others too.
    Ranges(Vec<KeyRange>),
}

/// A question that yields many rows.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    /// The table.
    pub table: TableId,
    /// What to yield.
    pub kind: ScanKind,
    /// Only events committed at or before this commit exist.
    pub commit: CommitSeq,
    /// The schema whose types the result has.
    pub schema: Arc<TableSchema>,
    /// Columns to yield, in this order; may be empty (rows are then counted only).
    pub projection: Vec<ColumnId>,
    /// Which keys.
    pub keys: KeyFilter,
    /// How many streams to split the work into, at least 1; fewer may come back.
    pub partitions: usize,
    /// Most interval rows of one key, see rule B10.
    pub rows_per_key_max: usize,
}

/// One part of a scan's result; parts together are the result.
pub type ScanStream = Box<dyn Iterator<Item = Result<RecordBatch, Error>> + Send>;

/// One point question of many (per-row AS OF).
#[derive(Clone, Debug)]
pub struct PointRequest {
    /// Key bytes.
    pub key: Vec<u8>,
    /// Bounds.
    pub bounds: Bounds,
}

/// What intake needs to know of an event that is stored already.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    /// Operation; [`Op::MovedAway`] on the old key's side of a key change.
    pub op: Op,
    /// Effective valid time.
    pub valid_from: i64,
    /// System time.
    pub system: i64,
    /// Commit.
    pub commit: CommitSeq,
    /// Stream and place in it.
    pub stream: StreamId,
    /// Origin.
    pub origin: OriginId,
    /// Offset or row.
    pub position: u64,
    /// Number within the message.
    pub ordinal: u32,
    /// Usable log token; empty = none.
    pub token: Vec<u8>,
    /// Ordinal among consecutive events with the token.
    pub token_ordinal: u32,
    /// Hash of operation and cells, where a token or an operation id stands.
    pub content: Option<u64>,
    /// Operation id.
    pub operation_id: Option<Vec<u8>>,
}
