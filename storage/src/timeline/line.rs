//! The events of a key and the truncates of its table in one line.
//!
//! Across streams truncates have no place in the total order (rule B7), but nearly always the events
//! that one ends are exactly those before some place. Then it can stand there like a delete of the
//! key, and its number in the line stands for its place in the order.

use super::event::KeyHistory;
use crate::time::FOREVER;

/// One step of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub valid: i64,
    pub system: i64,
    /// Event number, `None` for a truncate.
    pub event: Option<u32>,
    /// Whether a row holds after the step.
    pub present: bool,
    /// Whether nothing older shows through.
    pub complete: bool,
}

/// What a line holds beyond ordinary events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// Events with their own end (rule B13): a line says nothing about them.
    pub bounded: bool,
    /// Key changes through which an old key shows (rule B8).
    pub moved: bool,
    /// A truncate that has no single place; it is left out of the line.
    pub crossing: bool,
}

/// Lays out key 0 as of `commit`: ascending in the order of rule B3, truncates in their places.
pub(crate) fn line_up(history: &KeyHistory<'_>, commit: u64, line: &mut Vec<Step>) -> Traits {
    line.clear();
    let mut traits = Traits::default();
    for number in history.key_range(0) {
        let event = history.event(number);
        if event.commit > commit || event.is_void() {
            continue;
        }
        let (ends, complete) = (event.op.ends_row(), event.is_complete());
        traits.bounded |= event.valid_to != FOREVER;
        traits.moved |= event.previous.is_some() && !complete;
        line.push(Step {
            valid: event.order.valid_from,
            system: event.order.system,
            event: Some(number),
            present: !ends,
            complete,
        });
    }
    if !history.truncates().is_empty() && !line.is_empty() {
        traits.crossing = place_truncates(history, commit, line);
    }
    traits
}

/// Puts truncates into a line of events; returns whether one of them has no place.
fn place_truncates(history: &KeyHistory<'_>, commit: u64, line: &mut Vec<Step>) -> bool {
    let mut places = Vec::new();
    let mut crossing = false;
    for truncate in history.truncates().iter().filter(|t| t.commit <= commit) {
        let at = truncate.order.valid_from;
        let start = line.partition_point(|s| s.valid < at);
        let end = start + line[start..].partition_point(|s| s.valid == at);
        let killed = |s: &Step| {
            let event = s.event.map(|number| history.event(number));
            event.is_some_and(|e| truncate.kills(e, history.system_declared()))
        };
        let place = start + line[start..end].iter().take_while(|s| killed(s)).count();
        crossing |= line[place..end].iter().any(killed);
        if place > 0 {
            let (valid, system) = (at, truncate.order.system);
            places.push((place, Step { valid, system, event: None, present: false, complete: true }));
        }
    }
    places.sort_by_key(|(place, _)| *place);
    let events = std::mem::take(line);
    let mut next = 0;
    for (place, step) in places {
        line.extend_from_slice(&events[next..place]);
        line.push(step);
        next = place;
    }
    line.extend_from_slice(&events[next..]);
    crossing
}
