//! When an event holds from: valid time where the source does not declare it (rules A4 and A5).
//! Decided once, at intake.

use crate::event::{Op, TimeSource};
use crate::time::BEGINNING;

/// The instants an event brings with it, most trusted first. `None` and 0 are not usable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Commit time of the source.
    pub source: Option<i64>,
    /// The connector's own time.
    pub connector: Option<i64>,
    /// The broker's time.
    pub broker: Option<i64>,
}

/// An event on its way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// The time of a column declared as valid time; taken as it is.
    pub declared: Option<i64>,
    /// What it brings otherwise.
    pub times: Times,
    /// Read by a snapshot of the source: op `r`, or marked so.
    pub snapshot_read: bool,
    /// A message with a key and no value.
    pub tombstone: bool,
    /// Server whose log `token` is a position of; 0 = none.
    pub server: u32,
    /// Usable log position; empty = none.
    pub token: &'a [u8],
    /// The instant of the commit that takes the event.
    pub commit_instant: i64,
}

/// The event of the same key, or a truncate of the table, that stands next to the arrival in its
/// stream, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour<'a> {
    /// Its effective valid time.
    pub valid: i64,
    /// Its kind.
    pub op: Op,
    /// Server whose log `token` is a position of; 0 = none.
    pub server: u32,
    /// Usable log position; empty = none.
    pub token: &'a [u8],
}

/// Where an event is put in valid time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Effective valid time; [`BEGINNING`] for "from the beginning".
    pub valid_from: i64,
    /// Its own time, before it was moved; `None` if it brought none.
    pub event_time: Option<i64>,
    /// Where its time comes from.
    pub source: TimeSource,
    /// Raised to its predecessor's time.
    pub raised: bool,
    /// Lowered to its successor's time.
    pub lowered: bool,
    /// Its log position lies below its predecessor's: late, not newer.
    pub late: bool,
}

/// What becomes of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A tombstone after a delete or tombstone of its key: says nothing new.
    Ignored,
    /// It is stored.
    Placed(Placed),
}

/// Places an arrival between its key's stored predecessor and first stored successor in the stream.
pub fn place(
    arrival: &Arrival<'_>,
    predecessor: Option<&Neighbour<'_>>,
    successor: Option<&Neighbour<'_>>,
) -> Placement {
    let after_delete = predecessor.is_some_and(|p| matches!(p.op, Op::Delete | Op::MovedAway));
    if arrival.tombstone && after_delete {
        return Placement::Ignored;
    }
    if let Some(valid_from) = arrival.declared {
        return Placement::Placed(Placed::at(valid_from, Some(valid_from), TimeSource::Declared));
    }
    let (own, source) = own_time(arrival, predecessor);
    let brought = matches!(source, TimeSource::Source | TimeSource::Connector | TimeSource::Broker);
    let mut placed = Placed::at(own, brought.then_some(own), source);
    placed.late = predecessor.is_some_and(|p| is_below(arrival, p));
    if placed.late {
        return Placement::Placed(placed);
    }
    if let Some(p) = predecessor.filter(|p| p.valid > placed.valid_from) {
        (placed.valid_from, placed.raised) = (p.valid, true);
    }
    if let Some(s) = successor.filter(|s| s.valid < placed.valid_from) {
        placed.valid_from = s.valid;
        placed.lowered = s.valid < own;
        placed.raised &= s.valid > own;
    }
    Placement::Placed(placed)
}

impl Placed {
    fn at(valid_from: i64, event_time: Option<i64>, source: TimeSource) -> Placed {
        Placed { valid_from, event_time, source, raised: false, lowered: false, late: false }
    }
}

/// The time of an event without a declared one (rule A4).
fn own_time(arrival: &Arrival<'_>, predecessor: Option<&Neighbour<'_>>) -> (i64, TimeSource) {
    let usable = |time: Option<i64>| time.filter(|t| *t != 0);
    let times = &arrival.times;
    if let Some(t) = usable(times.source) {
        return (t, TimeSource::Source);
    }
    if let Some(t) = usable(times.connector) {
        return (t, TimeSource::Connector);
    }
    match (predecessor, usable(times.broker)) {
        (None, _) if arrival.snapshot_read => (BEGINNING, TimeSource::Beginning),
        (_, Some(t)) => (t, TimeSource::Broker),
        (Some(p), None) => (p.valid, TimeSource::Predecessor),
        (None, None) => (arrival.commit_instant, TimeSource::Commit),
    }
}

/// Whether both have usable positions in one server's log and the arrival's is the lower.
fn is_below(arrival: &Arrival<'_>, predecessor: &Neighbour<'_>) -> bool {
    let comparable = arrival.server != 0
        && arrival.server == predecessor.server
        && !arrival.token.is_empty()
        && !predecessor.token.is_empty();
    comparable && arrival.token < predecessor.token
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
