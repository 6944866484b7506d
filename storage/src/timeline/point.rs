//! Point questions (rule B2): the newest event that counts decides, and each column is what its
//! newest writer wrote (rule B5), across key changes (rule B8).

use super::error::TimelineError;
use super::event::{KeyEvent, KeyHistory, Writer};
use crate::event::Op;
use crate::time::FOREVER;
use std::cmp::Ordering;

/// The most key changes that one image is followed over.
pub const CHAIN_HOPS_MAX: u32 = 4096;

/// The three bounds of a point question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Valid time; [`FOREVER`] asks for the latest state: what holds with an open end.
    pub valid: i64,
    /// System time, inclusive; `i64::MAX` is the latest belief.
    pub system: i64,
    /// Commit, inclusive; `u64::MAX` is no bound.
    pub commit: u64,
}

impl Bound {
    /// The latest state of the latest belief.
    pub const LATEST: Bound = Bound { valid: FOREVER, system: i64::MAX, commit: u64::MAX };

    #[inline]
    pub(crate) fn knows(&self, event: &KeyEvent<'_>) -> bool {
        event.order.system <= self.system && event.commit <= self.commit
    }
}

/// Memory that answers reuse, and the count of events they looked at.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    pending: Vec<u32>,
    /// Events that wrote leaves, newest first, each with the place of its column in the answer.
    leaves: Vec<(u32, u32)>,
    pub(crate) steps: u64,
    pub(crate) steps_max: u64,
}

impl Scratch {
    /// Starts counting again.
    pub(crate) fn limit_steps(&mut self, steps_max: u64) {
        self.steps = 0;
        self.steps_max = steps_max;
    }

    pub(crate) fn step(&mut self, steps: u64) -> Result<(), TimelineError> {
        self.steps += steps;
        if self.steps > self.steps_max {
            return Err(TimelineError::TooManySteps { steps_max: self.steps_max });
        }
        Ok(())
    }
}

impl<'a> KeyHistory<'a> {
    /// The event of key 0 that decides at `bound`, `None` if there is none. One that ends the row
    /// means that there is no row; an absent row also results from a truncate.
    pub fn deciding(&self, bound: &Bound) -> Option<u32> {
        Candidates::of_key(self, 0, bound).next()
    }

    /// The truncate, by its place in the list of the table, that ended what key 0 would have at `bound`;
    /// `None` if it would have nothing without truncates either.
    pub fn truncate_at(&self, bound: &Bound) -> Option<u32> {
        let bare = Candidates { floor: i64::MIN, floor_range: (0, 0), ..Candidates::of_key(self, 0, bound) };
        let ended = self.event(bare.into_iter().next()?);
        let floor = Candidates::of_key(self, 0, bound);
        let (start, end) = floor.floor_range;
        let kills = |i: &usize| floor.counts(*i) && self.truncates()[*i].kills(ended, self.system_declared());
        (start..end).rev().find(kills).map(|i| i as u32)
    }

    /// Answers a point question about key 0: the deciding event, or `None` if there is no row; and in
    /// `out`, by the order of `columns`, who wrote each column. `out` is left alone if there is no
    /// row. Looks at no more events than the key and the keys it was moved from have.
    ///
    /// # Errors
    /// [`TimelineError::ChainTooLong`].
    ///
    /// # Panics
    /// If `out` is not as long as `columns`.
    pub fn resolve(
        &self,
        bound: &Bound,
        columns: &[u32],
        out: &mut [Writer],
        scratch: &mut Scratch,
    ) -> Result<Option<u32>, TimelineError> {
        scratch.limit_steps(u64::MAX);
        self.resolve_counted(bound, columns, out, scratch)
    }

    pub(crate) fn resolve_counted(
        &self,
        bound: &Bound,
        columns: &[u32],
        out: &mut [Writer],
        scratch: &mut Scratch,
    ) -> Result<Option<u32>, TimelineError> {
        let mut candidates = Candidates::of_key(self, 0, bound);
        let Some(first) = candidates.next() else { return Ok(None) };
        if self.event(first).op.ends_row() {
            return Ok(None);
        }
        self.collect(candidates, first, columns, out, scratch)?;
        Ok(Some(first))
    }

    /// The image just after event `first`, an upsert that is in the belief (`bound.valid` is its own
    /// instant).
    pub(crate) fn image_of(
        &self,
        first: u32,
        bound: &Bound,
        columns: &[u32],
        out: &mut [Writer],
        scratch: &mut Scratch,
    ) -> Result<(), TimelineError> {
        let candidates = Candidates { next: first, ..Candidates::of_key(self, 0, bound) };
        self.collect(candidates, first, columns, out, scratch)
    }

    fn collect<'h>(
        &'h self,
        mut candidates: Candidates<'h, 'a>,
        first: u32,
        columns: &[u32],
        out: &mut [Writer],
        scratch: &mut Scratch,
    ) -> Result<(), TimelineError> {
        assert_eq!(columns.len(), out.len(), "one writer per column");
        if self.event(first).is_complete() {
            out.fill(Writer::Event(first));
            return scratch.step(1);
        }
        out.fill(Writer::Null);
        scratch.pending.clear();
        scratch.leaves.clear();
        scratch.pending.extend(0..columns.len() as u32);
        let (mut at, mut hops) = (Some(first), 0);
        while let Some(number) = at {
            let event = self.event(number);
            if event.op.ends_row() {
                break;
            }
            let Scratch { pending, leaves, .. } = scratch;
            pending.retain(|at| {
                let i = *at as usize;
                if event.writes_leaves(columns[i]) {
                    leaves.push((*at, number));
                    return true;
                }
                if event.authors(columns[i]) {
                    out[i] = Writer::Event(number);
                    return false;
                }
                if event.is_unknown(columns[i]) {
                    out[i] = Writer::Unknown;
                }
                true
            });
            if scratch.pending.is_empty() {
                break;
            }
            if let Some(old_key) = event.previous {
                scratch.step(candidates.steps)?;
                hops += 1;
                if hops > CHAIN_HOPS_MAX {
                    return Err(TimelineError::ChainTooLong { hops_max: CHAIN_HOPS_MAX });
                }
                candidates = Candidates::before_move(self, old_key, event, &candidates.bound);
            }
            at = candidates.next();
        }
        for (i, number) in scratch.leaves.drain(..).rev() {
            let writer = &mut out[i as usize];
            *writer = self.merged(*writer, number);
        }
        scratch.step(candidates.steps + 1)
    }
}

/// The events of one key that count at a bound, newest first, without those that a truncate ended.
pub(crate) struct Candidates<'h, 'a> {
    history: &'h KeyHistory<'a>,
    bound: Bound,
    first: u32,
    next: u32,
    /// Valid time of the newest truncate that counts: everything before it is gone.
    floor: i64,
    /// Truncates at `floor`, as a range of the table's list; decides among events at that instant.
    floor_range: (usize, usize),
    mover: Option<&'h KeyEvent<'a>>,
    steps: u64,
}

impl<'h, 'a> Candidates<'h, 'a> {
    pub(crate) fn of_key(history: &'h KeyHistory<'a>, key: u32, bound: &Bound) -> Candidates<'h, 'a> {
        let range = history.key_range(key);
        let events = &history.events()[range.start as usize..range.end as usize];
        let next = if bound.valid == FOREVER {
            range.end
        } else {
            range.start + events.partition_point(|e| e.order.valid_from <= bound.valid) as u32
        };
        let mut candidates = Candidates {
            history,
            bound: *bound,
            first: range.start,
            next,
            floor: i64::MIN,
            floor_range: (0, 0),
            mover: None,
            steps: 0,
        };
        candidates.find_floor();
        candidates
    }

    /// The old key of a key change, just before it, in the same belief.
    fn before_move(
        history: &'h KeyHistory<'a>,
        key: u32,
        mover: &'h KeyEvent<'a>,
        bound: &Bound,
    ) -> Candidates<'h, 'a> {
        let range = history.key_range(key);
        let events = &history.events()[range.start as usize..range.end as usize];
        let declared = history.system_declared();
        let before = events.partition_point(|e| e.order.compare(&mover.order, declared) == Ordering::Less);
        let mut candidates = Candidates {
            history,
            bound: Bound { valid: mover.order.valid_from, ..*bound },
            first: range.start,
            next: range.start + before as u32,
            floor: i64::MIN,
            floor_range: (0, 0),
            mover: Some(mover),
            steps: 0,
        };
        candidates.find_floor();
        candidates
    }

    fn find_floor(&mut self) {
        let truncates = self.history.truncates();
        let mut end = truncates.partition_point(|t| t.order.valid_from <= self.bound.valid);
        while end > 0 {
            let at = truncates[end - 1].order.valid_from;
            let start = truncates[..end].partition_point(|t| t.order.valid_from < at);
            if (start..end).any(|i| self.counts(i)) {
                (self.floor, self.floor_range) = (at, (start, end));
                return;
            }
            end = start;
        }
    }

    /// Whether truncate `i` is known at the bound and, when an old key is read, comes before the move.
    fn counts(&self, i: usize) -> bool {
        let t = &self.history.truncates()[i];
        t.order.system <= self.bound.system
            && t.commit <= self.bound.commit
            && !self.mover.is_some_and(|m| t.kills(m, self.history.system_declared()))
    }

    #[cold]
    fn killed_at_floor(&self, event: &KeyEvent<'_>) -> bool {
        let declared = self.history.system_declared();
        (self.floor_range.0..self.floor_range.1)
            .any(|i| self.history.truncates()[i].kills(event, declared) && self.counts(i))
    }

    /// Rule B8: deletes of the old key at the move's instant are the move itself, sent twice.
    fn is_delete_of_move(&self, event: &KeyEvent<'_>) -> bool {
        self.mover.is_some_and(|m| {
            m.previous_deleted && event.op == Op::Delete && event.order.valid_from == m.order.valid_from
        })
    }
}

impl Iterator for Candidates<'_, '_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        while self.next > self.first {
            let number = self.next - 1;
            let event = self.history.event(number);
            if event.order.valid_from < self.floor {
                return None;
            }
            self.next = number;
            self.steps += 1;
            let counts = self.bound.knows(event) && event.covers(self.bound.valid);
            if !counts || self.is_delete_of_move(event) {
                continue;
            }
            let at_floor = self.floor_range.1 > 0 && event.order.valid_from == self.floor;
            if !(at_floor && self.killed_at_floor(event)) {
                return Some(number);
            }
        }
        None
    }
}
