//! Interval rows on both axes (rule B10): for each tuple of image, start and end the maximal system
//! intervals during which it is believed. Streamed, capped, never kept.

use super::belief::{Belief, Compare, Tracked, Version};
use super::error::TimelineError;
use super::event::{KeyHistory, Writer};
use super::line::Traits;
use super::sweep::Sweep;
use crate::time::FOREVER;
use std::ops::ControlFlow;

/// An interval row with both axes; all intervals are half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rectangle<'r> {
    /// Start in valid time; [`crate::time::BEGINNING`] if it has none.
    pub valid_start: i64,
    /// End in valid time; [`FOREVER`] while open.
    pub valid_end: i64,
    /// The system time from which the tuple is believed.
    pub system_start: i64,
    /// The system time from which it no longer is; [`FOREVER`] if it still is.
    pub system_end: i64,
    /// The event that decided at the end of the row when it was first believed.
    pub event: u32,
    /// Who wrote each column, as of when the row was first believed.
    pub image: &'r [Writer],
}

/// How much one key may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most rows for one key.
    pub rows_max: u64,
    /// Most events looked at for one key.
    pub steps_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { rows_max: 1_000_000, steps_max: 1_000_000_000 }
    }
}

/// Why a stream of rectangles ended early.
pub(crate) enum Stop {
    Error(TimelineError),
    Consumer,
}

impl From<TimelineError> for Stop {
    fn from(error: TimelineError) -> Stop {
        Stop::Error(error)
    }
}

/// Counts rows on their way to the consumer.
pub(crate) struct Output<E> {
    emit: E,
    rows: u64,
    rows_max: u64,
}

impl<E: FnMut(Rectangle<'_>) -> ControlFlow<()>> Output<E> {
    pub fn put(&mut self, rectangle: Rectangle<'_>) -> Result<(), Stop> {
        self.rows += 1;
        if self.rows > self.rows_max {
            return Err(TimelineError::TooManyRows { rows_max: self.rows_max }.into());
        }
        match (self.emit)(rectangle) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Consumer),
        }
    }
}

/// Computes the rectangles of one key after the other, reusing memory.
#[derive(Clone, Debug, Default)]
pub struct Rectangles {
    belief: Belief,
    sweep: Sweep,
    systems: Vec<i64>,
    open: OpenRows,
    next: OpenRows,
}

/// Rows of the belief before, with their images.
#[derive(Clone, Debug, Default)]
struct OpenRows {
    rows: Vec<(Version, i64)>,
    images: Vec<Writer>,
}

impl OpenRows {
    fn clear(&mut self) {
        self.rows.clear();
        self.images.clear();
    }

    fn image(&self, i: usize, width: usize) -> &[Writer] {
        &self.images[i * width..(i + 1) * width]
    }

    fn put<E>(&self, i: usize, width: usize, system_end: i64, out: &mut Output<E>) -> Result<(), Stop>
    where
        E: FnMut(Rectangle<'_>) -> ControlFlow<()>,
    {
        let (version, system_start) = self.rows[i];
        out.put(Rectangle {
            valid_start: version.start,
            valid_end: version.end,
            system_start,
            system_end,
            event: version.event,
            image: self.image(i, width),
        })
    }
}

impl Rectangles {
    /// Without memory yet.
    pub fn new() -> Rectangles {
        Rectangles::default()
    }

    /// Hands the rectangles of key 0 to `emit`, seeing events committed at or before `commit`; those
    /// that ended first come first, then by valid time. `same` says whether two writers
    /// stand for the same value of a column. Returns `Break` if `emit` did.
    ///
    /// # Errors
    /// [`TimelineError`] when a limit is met; rows handed out before that are right but not all.
    pub fn stream<'a>(
        &mut self,
        history: &KeyHistory<'a>,
        commit: u64,
        tracked: Tracked<'_>,
        limits: &Limits,
        same: impl FnMut(u32, Writer, Writer) -> bool,
        emit: impl FnMut(Rectangle<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, TimelineError> {
        self.belief.scratch.limit_steps(limits.steps_max);
        let traits = self.sweep.prepare(history, commit);
        let mut compare = Compare { history, tracked, same };
        let mut out = Output { emit, rows: 0, rows_max: limits.rows_max };
        let end = if traits == Traits::default() {
            self.sweep.run(&mut compare, limits, &mut out)
        } else {
            self.belief_by_belief(&mut compare, commit, &mut out)
        };
        finish(end)
    }

    /// Like [`Rectangles::stream`], always belief by belief: slower, and what the faster way is
    /// tested against.
    ///
    /// # Errors
    /// As [`Rectangles::stream`].
    pub fn stream_plain<'a>(
        &mut self,
        history: &KeyHistory<'a>,
        commit: u64,
        tracked: Tracked<'_>,
        limits: &Limits,
        same: impl FnMut(u32, Writer, Writer) -> bool,
        emit: impl FnMut(Rectangle<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, TimelineError> {
        self.belief.scratch.limit_steps(limits.steps_max);
        let mut out = Output { emit, rows: 0, rows_max: limits.rows_max };
        finish(self.belief_by_belief(&mut Compare { history, tracked, same }, commit, &mut out))
    }

    fn belief_by_belief<'a, S, E>(
        &mut self,
        compare: &mut Compare<'_, 'a, S>,
        commit: u64,
        out: &mut Output<E>,
    ) -> Result<(), Stop>
    where
        S: FnMut(u32, Writer, Writer) -> bool,
        E: FnMut(Rectangle<'_>) -> ControlFlow<()>,
    {
        let width = compare.history.columns() as usize;
        let traits = self.belief.prepare(compare.history, commit);
        self.find_systems(compare.history, commit);
        self.open.clear();
        for i in 0..self.systems.len() {
            let system = self.systems[i];
            self.belief.fold(compare, traits, system, commit)?;
            self.turn_to(compare, system, out)?;
        }
        (0..self.open.rows.len()).try_for_each(|i| self.open.put(i, width, FOREVER, out))
    }

    /// Every system time at which a belief can change.
    fn find_systems(&mut self, history: &KeyHistory<'_>, commit: u64) {
        self.systems.clear();
        let events = history.events().iter().filter(|e| e.commit <= commit);
        self.systems.extend(events.map(|e| e.order.system));
        let truncates = history.truncates().iter().filter(|t| t.commit <= commit);
        self.systems.extend(truncates.map(|t| t.order.system));
        self.systems.sort_unstable();
        self.systems.dedup();
    }

    /// From the rows of the belief before to those of the one just computed.
    fn turn_to<'a, S, E>(
        &mut self,
        compare: &mut Compare<'_, 'a, S>,
        system: i64,
        out: &mut Output<E>,
    ) -> Result<(), Stop>
    where
        S: FnMut(u32, Writer, Writer) -> bool,
        E: FnMut(Rectangle<'_>) -> ControlFlow<()>,
    {
        let width = compare.history.columns() as usize;
        self.next.clear();
        let mut old = 0;
        for (i, version) in self.belief.versions().iter().enumerate() {
            while self.open.rows.get(old).is_some_and(|(row, _)| row.start < version.start) {
                self.open.put(old, width, system, out)?;
                old += 1;
            }
            let same_start = self.open.rows.get(old).filter(|(row, _)| row.start == version.start);
            let kept = same_start.copied().filter(|(row, _)| {
                row.end == version.end && compare.equal(self.open.image(old, width), self.belief.image(i))
            });
            if let Some(row) = kept {
                self.next.rows.push(row);
                self.next.images.extend_from_slice(self.open.image(old, width));
            } else {
                if same_start.is_some() {
                    self.open.put(old, width, system, out)?;
                }
                self.next.rows.push((*version, system));
                self.next.images.extend_from_slice(self.belief.image(i));
            }
            old += usize::from(same_start.is_some());
        }
        for i in old..self.open.rows.len() {
            self.open.put(i, width, system, out)?;
        }
        std::mem::swap(&mut self.open, &mut self.next);
        Ok(())
    }
}

fn finish(end: Result<(), Stop>) -> Result<ControlFlow<()>, TimelineError> {
    match end {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(Stop::Consumer) => Ok(ControlFlow::Break(())),
        Err(Stop::Error(error)) => Err(error),
    }
}
