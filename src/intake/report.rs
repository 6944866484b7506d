//! What an intake did, in numbers.

use crate::count;
use asofdb_storage::engine::Quarantined;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Quarantined messages that a report shows.
const SHOWN_MAX: usize = 5;

/// Totals of an intake. `delivered` = `accepted` + all `repeats` + all `ignored` + `quarantined`, in
/// messages (rule C2); rows are counted apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IntakeReport {
    /// Messages that the sources delivered.
    pub delivered: u64,
    /// Messages that were stored, or are images before an update.
    pub accepted: u64,
    /// Messages that were stored before: `already_taken` by position, `replayed` by log position,
    /// `same_operation_id`.
    pub repeats: BTreeMap<String, u64>,
    /// Messages that are no row events, by kind.
    pub ignored: BTreeMap<String, u64>,
    /// Messages put aside.
    pub quarantined: u64,
    /// Row events by operation.
    pub rows: BTreeMap<String, u64>,
    /// Row events by table.
    pub tables: BTreeMap<String, u64>,
    /// Events whose valid time was raised to their predecessor's (rule A5).
    pub raised: u64,
    /// Events whose valid time was lowered to their successor's (rule A5).
    pub lowered: u64,
    /// Events behind the latest valid time of their stream, or by log position behind their key.
    pub late: u64,
    /// Commits made.
    pub commits: u64,
    /// The last commit made.
    pub last_commit: Option<u64>,
    /// Bytes of messages.
    pub bytes: u64,
    /// Quarantined messages, the first few.
    pub quarantined_first: Vec<Quarantined>,
    /// What the sources had to say.
    pub notices: Vec<String>,
}

impl IntakeReport {
    /// Messages that were taken before.
    pub fn repeated(&self) -> u64 {
        self.repeats.values().sum()
    }

    /// Messages that are no row events.
    pub fn ignored_messages(&self) -> u64 {
        self.ignored.values().sum()
    }

    /// Row events stored.
    pub fn row_events(&self) -> u64 {
        self.rows.values().sum()
    }

    pub(super) fn count(map: &mut BTreeMap<String, u64>, kind: &str, n: u64) {
        match map.get_mut(kind) {
            Some(count) => *count += n,
            None => {
                map.insert(kind.to_owned(), n);
            }
        }
    }

    pub(super) fn quarantine(&mut self, message: &Quarantined) {
        self.quarantined += 1;
        if self.quarantined_first.len() < SHOWN_MAX {
            self.quarantined_first.push(message.clone());
        }
    }

    /// Adds the numbers of a batch, but not its commits.
    pub fn add(&mut self, batch: IntakeReport) {
        self.delivered += batch.delivered;
        self.accepted += batch.accepted;
        self.quarantined += batch.quarantined;
        self.raised += batch.raised;
        self.lowered += batch.lowered;
        self.late += batch.late;
        self.bytes += batch.bytes;
        for (mine, its) in [
            (&mut self.repeats, batch.repeats),
            (&mut self.ignored, batch.ignored),
            (&mut self.rows, batch.rows),
            (&mut self.tables, batch.tables),
        ] {
            its.iter().for_each(|(kind, n)| Self::count(mine, kind, *n));
        }
        let room = SHOWN_MAX - self.quarantined_first.len().min(SHOWN_MAX);
        self.quarantined_first.extend(batch.quarantined_first.into_iter().take(room));
        self.notices.extend(batch.notices);
    }

    /// Whether every delivered message is counted once.
    pub(super) fn is_balanced(&self) -> bool {
        self.delivered == self.accepted + self.repeated() + self.ignored_messages() + self.quarantined
    }

    /// The counts of a batch, for the note of its commit.
    pub(super) fn note(&self) -> serde_json::Value {
        serde_json::json!({
            "kind": "ingest",
            "delivered": self.delivered,
            "accepted": self.accepted,
            "repeats": self.repeats,
            "ignored": self.ignored,
            "quarantined": self.quarantined,
            "rows": self.rows,
            "raised": self.raised,
            "lowered": self.lowered,
            "late": self.late,
        })
    }
}

impl fmt::Display for IntakeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} delivered = {} accepted + {} + {} ignored + {} quarantined; {}",
            self.delivered,
            self.accepted,
            count::of(self.repeated(), "repeat"),
            self.ignored_messages(),
            self.quarantined,
            count::of(self.row_events(), "row")
        )
    }
}

/// How far an intake is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Messages delivered so far, committed or not.
    pub messages: u64,
    /// Bytes of messages so far.
    pub bytes: u64,
    /// Bytes that the sources have in all, where they know.
    pub bytes_total: Option<u64>,
    /// Row events that are committed.
    pub rows_committed: u64,
    /// Messages quarantined so far.
    pub quarantined: u64,
    /// The last commit made.
    pub last_commit: Option<u64>,
    /// The file or stream being read.
    pub source: String,
    /// Messages that the source has and that were not read yet, where it knows.
    pub lag: Option<u64>,
    /// Since when the source does not answer, and what is known of why.
    pub away: Option<(Duration, String)>,
}
