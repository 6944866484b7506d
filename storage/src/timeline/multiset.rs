//! Rows of a table without a key (rule B15): equal rows are counted, the oldest ends first.
//!
//! The history of one row content is a [`KeyHistory`] whose key is the whole row: upserts add an
//! instance, events that end rows take the oldest one that holds at their instant. An event that
//! finds none does nothing. Ends of their own count for instances only.

use super::error::TimelineError;
use super::event::{KeyEvent, KeyHistory};
use super::point::{Bound, Scratch};
use super::rectangles::Limits;
use crate::time::FOREVER;
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;

/// One instance of a row in one belief, as the half-open interval of valid time that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Start in valid time, inclusive.
    pub start: i64,
    /// End in valid time, exclusive; [`FOREVER`] while open.
    pub end: i64,
    /// The event that added it; where an instance ends as another starts, the later event.
    pub event: u32,
}

/// One instance of a row with both axes; all intervals are half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRectangle {
    /// The instance.
    pub instance: Instance,
    /// The system time from which it is believed.
    pub system_start: i64,
    /// The system time from which it no longer is; [`FOREVER`] if it still is.
    pub system_end: i64,
}

/// Computes the instances of one row content after the other, reusing memory.
#[derive(Clone, Debug, Default)]
pub struct RowHistory {
    instances: Vec<Instance>,
    live: VecDeque<usize>,
    rows: Vec<Instance>,
    systems: Vec<i64>,
    open: Vec<RowRectangle>,
    next: Vec<RowRectangle>,
    scratch: Scratch,
}

impl RowHistory {
    /// Without memory yet.
    pub fn new() -> RowHistory {
        RowHistory::default()
    }

    /// How many instances of the row hold at `bound`.
    pub fn count(&mut self, history: &KeyHistory<'_>, bound: &Bound) -> u64 {
        self.scratch.limit_steps(u64::MAX);
        self.find_instances(history, bound).expect("steps are not limited");
        self.instances.iter().filter(|i| holds(i, bound.valid)).count() as u64
    }

    /// The interval rows of one belief, ascending by start and end. Where one instance ends as
    /// another starts they are one row (rule B9).
    ///
    /// # Errors
    /// [`TimelineError::TooManySteps`].
    pub fn instances(
        &mut self,
        history: &KeyHistory<'_>,
        system: i64,
        commit: u64,
        limits: &Limits,
    ) -> Result<&[Instance], TimelineError> {
        self.scratch.limit_steps(limits.steps_max);
        self.find_rows(history, system, commit)?;
        Ok(&self.rows)
    }

    /// Hands every interval row with both axes to `emit`; those that ended first come first. Of equal
    /// intervals the one believed longest ends first. Returns `Break` if `emit` did.
    ///
    /// # Errors
    /// [`TimelineError`] when a limit is met; rows handed out before that are right but not all.
    pub fn rectangles(
        &mut self,
        history: &KeyHistory<'_>,
        commit: u64,
        limits: &Limits,
        mut emit: impl FnMut(RowRectangle) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, TimelineError> {
        self.scratch.limit_steps(limits.steps_max);
        self.open.clear();
        let mut rows = 0;
        let mut put = |rectangle| {
            rows += 1;
            if rows > limits.rows_max {
                return Err(TimelineError::TooManyRows { rows_max: limits.rows_max });
            }
            Ok(emit(rectangle))
        };
        let added_only = history.truncates().is_empty()
            && of_key(history).all(|(_, e)| !e.op.ends_row() && e.valid_to == FOREVER);
        if added_only {
            self.open_all(history, commit);
        } else {
            self.find_systems(history, commit);
        }
        for i in 0..self.systems.len() {
            let system = self.systems[i];
            self.find_rows(history, system, commit)?;
            if self.turn_to(system, &mut put)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        for rectangle in &self.open {
            if put(*rectangle)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Rows that nothing ends.
    fn open_all(&mut self, history: &KeyHistory<'_>, commit: u64) {
        self.systems.clear();
        for (event, e) in of_key(history).filter(|(_, e)| e.commit <= commit && !e.is_void()) {
            let instance = Instance { start: e.order.valid_from, end: FOREVER, event };
            let system_start = e.order.system;
            self.open.push(RowRectangle { instance, system_start, system_end: FOREVER });
        }
    }

    fn find_systems(&mut self, history: &KeyHistory<'_>, commit: u64) {
        self.systems.clear();
        let events = of_key(history).filter(|(_, e)| e.commit <= commit);
        self.systems.extend(events.map(|(_, e)| e.order.system));
        let truncates = history.truncates().iter().filter(|t| t.commit <= commit);
        self.systems.extend(truncates.map(|t| t.order.system));
        self.systems.sort_unstable();
        self.systems.dedup();
    }

    /// Fills `instances`: additions in the order of rule B3, each with the end it got.
    fn find_instances(&mut self, history: &KeyHistory<'_>, bound: &Bound) -> Result<(), TimelineError> {
        self.instances.clear();
        self.live.clear();
        for (number, event) in of_key(history) {
            self.scratch.step(1)?;
            let start = event.order.valid_from;
            if !bound.knows(event) || start > bound.valid || event.is_void() {
                continue;
            }
            if event.op.ends_row() {
                let oldest = self.live.iter().position(|i| self.instances[*i].end > start);
                self.scratch.step(oldest.unwrap_or(self.live.len()) as u64)?;
                if let Some(i) = oldest.and_then(|at| self.live.remove(at)) {
                    self.instances[i].end = start;
                }
            } else {
                let end = event.valid_to.min(self.truncated_at(history, event, bound)?);
                self.live.push_back(self.instances.len());
                self.instances.push(Instance { start, end, event: number });
            }
        }
        Ok(())
    }

    /// The instant of the first truncate that ends what `event` wrote.
    fn truncated_at(
        &mut self,
        history: &KeyHistory<'_>,
        event: &KeyEvent<'_>,
        bound: &Bound,
    ) -> Result<i64, TimelineError> {
        let truncates = history.truncates();
        let from = truncates.partition_point(|t| t.order.valid_from < event.order.valid_from);
        for truncate in &truncates[from..] {
            self.scratch.step(1)?;
            let known = truncate.order.system <= bound.system && truncate.commit <= bound.commit;
            if known && truncate.kills(event, history.system_declared()) {
                return Ok(truncate.order.valid_from);
            }
        }
        Ok(FOREVER)
    }

    fn find_rows(&mut self, history: &KeyHistory<'_>, system: i64, commit: u64) -> Result<(), TimelineError> {
        self.find_instances(history, &Bound { valid: FOREVER, system, commit })?;
        self.rows.clear();
        let mut ending: BTreeMap<i64, VecDeque<usize>> = BTreeMap::new();
        for instance in self.instances.iter().filter(|i| i.start < i.end) {
            let before = ending.get_mut(&instance.start).and_then(VecDeque::pop_front);
            let at = before.unwrap_or(self.rows.len());
            match before {
                Some(at) => self.rows[at] = Instance { start: self.rows[at].start, ..*instance },
                None => self.rows.push(*instance),
            }
            if instance.end != FOREVER {
                ending.entry(instance.end).or_default().push_back(at);
            }
        }
        self.rows.sort_by_key(|r| (r.start, r.end));
        Ok(())
    }

    /// From the rows of the belief before to those of the one just computed.
    fn turn_to(
        &mut self,
        system: i64,
        put: &mut impl FnMut(RowRectangle) -> Result<ControlFlow<()>, TimelineError>,
    ) -> Result<ControlFlow<()>, TimelineError> {
        let place = |i: &Instance| (i.start, i.end);
        self.next.clear();
        let (mut old, mut new) = (0, 0);
        while old < self.open.len() || new < self.rows.len() {
            let of_old = self.open.get(old).map(|r| place(&r.instance));
            let of_new = self.rows.get(new).map(place);
            let at = of_old.into_iter().chain(of_new).min().expect("one of them is left");
            let olds = self.open[old..].iter().take_while(|r| place(&r.instance) == at).count();
            let news = self.rows[new..].iter().take_while(|r| place(r) == at).count();
            let ends = olds.saturating_sub(news);
            for row in &self.open[old..old + ends] {
                if put(RowRectangle { system_end: system, ..*row })?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            self.next.extend_from_slice(&self.open[old + ends..old + olds]);
            let begun = self.rows[new..new + news].iter().skip(olds);
            self.next.extend(begun.map(|row| RowRectangle {
                instance: *row,
                system_start: system,
                system_end: FOREVER,
            }));
            (old, new) = (old + olds, new + news);
        }
        std::mem::swap(&mut self.open, &mut self.next);
        Ok(ControlFlow::Continue(()))
    }
}

fn of_key<'h, 'a>(history: &'h KeyHistory<'a>) -> impl Iterator<Item = (u32, &'h KeyEvent<'a>)> {
    history.key_range(0).map(|number| (number, history.event(number)))
}

fn holds(instance: &Instance, v: i64) -> bool {
    instance.start <= v && (instance.end == FOREVER || v < instance.end)
}
