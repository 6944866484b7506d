//! Instants, commits and half-open intervals.
//!
//! Every interval in asofdb is half-open: `[start, end)`. A start of [`BEGINNING`] means "from the
//! beginning" and an end of [`FOREVER`] means "still open"; both are NULL in query results. Instants
//! are signed microseconds since 1970-01-01T00:00:00Z; an axis of plain integers uses the same type.

use std::fmt;

/// The start of an interval that has no beginning (rule A1). NULL in results.
pub const BEGINNING: i64 = i64::MIN;
/// The end of an interval that is still open (rule A1). NULL in results.
pub const FOREVER: i64 = i64::MAX;

/// A point on the valid-time axis: when a fact held in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValidTime(pub i64);

/// A point on the system-time axis: when the system of record knew a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SystemTime(pub i64);

/// The number of a commit of this store: 1, 2, 3, …; 0 is the empty store.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct CommitSeq(pub u64);

impl fmt::Display for CommitSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What the numbers of an axis mean (rule A2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisType {
    /// Microseconds since 1970-01-01T00:00:00Z.
    #[default]
    Instant,
    /// A plain 64-bit integer such as a version number or an LSN.
    Integer,
}

/// Formats an instant as RFC 3339 in UTC with as many fraction digits as it needs (0, 3 or 6).
/// Instants beyond the calendar of `chrono` are shown as `<n>us`.
pub fn format_instant(us: i64) -> String {
    match chrono::DateTime::from_timestamp_micros(us) {
        Some(t) => t.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
        None => format!("{us}us"),
    }
}
