//! Rectangles of an ordinary key in one sweep through system time.
//!
//! The sweep keeps the belief as *stretches*, one for each step of the key's line that is known so
//! far, and as the rows they merge to. A step that becomes known is put in its place; from there on
//! stretches change until one does not, and only the rows over the changed stretches are compared.
//! That is O(log n) and the touched stretches a step, beside the moves of flat vectors.

use super::belief::{Compare, write};
use super::error::TimelineError;
use super::event::{KeyHistory, Writer};
use super::line::{Step, Traits, line_up};
use super::rectangles::{Limits, Output, Rectangle, Stop};
use crate::time::FOREVER;
use std::ops::ControlFlow;

#[derive(Clone, Debug, Default)]
pub(crate) struct Sweep {
    line: Vec<Step>,
    width: usize,
    /// Numbers of steps in system order.
    arrivals: Vec<u32>,
    /// Numbers of the known steps, ascending.
    stretches: Vec<u32>,
    /// The image after each known step, `width` writers at step number times `width`.
    images: Vec<Writer>,
    /// The belief as rows, ascending in valid time.
    rows: Vec<Row>,
    row_images: Vec<Writer>,
    free: Vec<u32>,
    /// Rows older than the current system time that it ended, ascending in valid time.
    ended: Vec<Row>,
    fresh: Vec<Fresh>,
    merged: Vec<Row>,
    steps: u64,
}

/// A row of the belief; its image is a copy, because stretches change under it.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: i64,
    end: i64,
    system_start: i64,
    event: u32,
    slot: u32,
}

/// A row as the changed stretches say it should be; shows the image of step `last`.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    start: i64,
    end: i64,
    last: u32,
}

impl Sweep {
    /// Lays out key 0 as of `commit`. Only a line without any trait can be swept.
    pub fn prepare(&mut self, history: &KeyHistory<'_>, commit: u64) -> Traits {
        self.width = history.columns() as usize;
        let traits = line_up(history, commit, &mut self.line);
        for list in [&mut self.arrivals, &mut self.stretches, &mut self.free] {
            list.clear();
        }
        for list in [&mut self.rows, &mut self.ended, &mut self.merged] {
            list.clear();
        }
        self.row_images.clear();
        self.fresh.clear();
        self.steps = 0;
        traits
    }

    pub fn run<'a, S, E>(
        &mut self,
        compare: &mut Compare<'_, 'a, S>,
        limits: &Limits,
        out: &mut Output<E>,
    ) -> Result<(), Stop>
    where
        S: FnMut(u32, Writer, Writer) -> bool,
        E: FnMut(Rectangle<'_>) -> ControlFlow<()>,
    {
        self.images.clear();
        self.images.resize(self.line.len() * self.width, Writer::Null);
        self.arrivals.extend(0..self.line.len() as u32);
        let line = &self.line;
        self.arrivals.sort_by_key(|i| line[*i as usize].system);
        for i in 0..self.arrivals.len() {
            let step = self.arrivals[i];
            let system = self.line[step as usize].system;
            self.learn(compare, step);
            if self.steps > limits.steps_max {
                return Err(TimelineError::TooManySteps { steps_max: limits.steps_max }.into());
            }
            let next = self.arrivals.get(i + 1).map(|n| self.line[*n as usize].system);
            if next != Some(system) {
                self.put_ended(system, out)?;
            }
        }
        let rows = std::mem::take(&mut self.rows);
        let end = rows.iter().try_for_each(|row| out.put(self.rectangle(row, FOREVER)));
        self.rows = rows;
        end
    }

    /// Makes `step` known and the rows right again.
    fn learn<'a, S>(&mut self, compare: &mut Compare<'_, 'a, S>, step: u32)
    where
        S: FnMut(u32, Writer, Writer) -> bool,
    {
        let place = self.stretches.partition_point(|s| *s < step);
        self.stretches.insert(place, step);
        self.refresh(compare.history, place);
        let mut until = place + 1;
        while until < self.stretches.len() && self.refresh(compare.history, until) {
            until += 1;
        }
        self.steps += (until - place) as u64;
        let (from, to) = self.find_fresh(compare, self.line[step as usize].valid, until);
        self.replace(compare, from, to, self.line[step as usize].system);
    }

    /// Computes the image of the stretch at `at` from the one before; returns whether it changed.
    fn refresh(&mut self, history: &KeyHistory<'_>, at: usize) -> bool {
        let number = self.stretches[at] as usize;
        let own = number * self.width;
        let step = self.line[number];
        let Some(event) = step.event.filter(|_| step.present) else {
            self.images[own..own + self.width].fill(Writer::Null);
            return false;
        };
        let before = at.checked_sub(1).map(|b| self.stretches[b] as usize * self.width);
        let mut changed = false;
        for column in 0..self.width {
            let inherited = before.map_or(Writer::Null, |b| self.images[b + column]);
            let writer = write(history, event, column as u32, inherited);
            changed |= self.images[own + column] != writer;
            self.images[own + column] = writer;
        }
        changed && !step.complete
    }

    fn image(&self, step: u32) -> &[Writer] {
        &self.images[step as usize * self.width..(step as usize + 1) * self.width]
    }

    fn valid(&self, stretch: usize) -> i64 {
        self.stretches.get(stretch).map_or(FOREVER, |s| self.line[*s as usize].valid)
    }

    /// The last stretch that starts before `v` (`inclusive`: at or before); it has a width.
    fn last_before(&self, v: i64, inclusive: bool) -> Option<u32> {
        let before = |s: &u32| {
            let valid = self.line[*s as usize].valid;
            valid < v || (inclusive && valid == v)
        };
        let end = self.stretches.partition_point(before);
        end.checked_sub(1).map(|i| self.stretches[i])
    }

    /// Collects in `fresh` the rows around the stretches from valid time `v` up to stretch `until`,
    /// which did not change; returns the range of old rows that they stand for.
    fn find_fresh<'a, S>(&mut self, compare: &mut Compare<'_, 'a, S>, v: i64, until: usize) -> (usize, usize)
    where
        S: FnMut(u32, Writer, Writer) -> bool,
    {
        self.fresh.clear();
        let mut from = self.rows.partition_point(|r| r.start < v);
        if let Some(left) = self.last_before(v, false)
            && self.line[left as usize].present
        {
            // The row that reaches up to or over `v`: its end is open again.
            from -= 1;
            self.fresh.push(Fresh { start: self.rows[from].start, end: v, last: left });
        }
        let first = self.stretches.partition_point(|s| self.line[*s as usize].valid < v);
        for at in first..until {
            let last = self.stretches[at];
            let (start, end) = (self.valid(at), self.valid(at + 1));
            if start < end && self.line[last as usize].present {
                self.add_fresh(compare, Fresh { start, end, last }, last);
            }
        }
        if until >= self.stretches.len() {
            return (from, self.rows.len());
        }
        let x = self.valid(until);
        let at_x = self.rows.partition_point(|r| r.start <= x);
        let over_x = at_x.checked_sub(1).map(|i| self.rows[i]).filter(|r| r.end > x);
        let Some(right) = over_x else {
            return (from, self.rows.partition_point(|r| r.start < x));
        };
        if let (Some(head), Some(last)) = (self.last_before(x, true), self.last_before(right.end, false)) {
            self.add_fresh(compare, Fresh { start: x, end: right.end, last }, head);
        }
        (from, at_x)
    }

    /// Adds a stretch or the rest of a row, whose first stretch is `head`, to the fresh rows.
    fn add_fresh<'a, S>(&mut self, compare: &mut Compare<'_, 'a, S>, next: Fresh, head: u32)
    where
        S: FnMut(u32, Writer, Writer) -> bool,
    {
        if let Some(row) = self.fresh.last().copied()
            && row.end == next.start
            && compare.one_row(self.image(row.last), self.image(head))
        {
            let at = self.fresh.len() - 1;
            self.fresh[at] = Fresh { start: row.start, ..next };
        } else {
            self.fresh.push(next);
        }
    }

    /// Replaces the rows `from..to` by the fresh ones, keeping those that stayed the same.
    fn replace<'a, S>(&mut self, compare: &mut Compare<'_, 'a, S>, from: usize, to: usize, system: i64)
    where
        S: FnMut(u32, Writer, Writer) -> bool,
    {
        self.merged.clear();
        let mut old = from;
        for i in 0..self.fresh.len() {
            let fresh = self.fresh[i];
            while old < to && self.rows[old].start < fresh.start {
                self.end_row(self.rows[old], system);
                old += 1;
            }
            let same_start = (old < to).then(|| self.rows[old]).filter(|r| r.start == fresh.start);
            old += usize::from(same_start.is_some());
            let row = match same_start {
                Some(row) if self.is_row(compare, &row, &fresh) => self.keep(row, &fresh, system),
                other => {
                    if let Some(row) = other {
                        self.end_row(row, system);
                    }
                    self.begin_row(compare, &fresh, system)
                }
            };
            self.merged.push(row);
        }
        for i in old..to {
            self.end_row(self.rows[i], system);
        }
        self.rows.splice(from..to, self.merged.drain(..));
    }

    fn row_image(&self, row: &Row) -> &[Writer] {
        &self.row_images[row.slot as usize * self.width..(row.slot as usize + 1) * self.width]
    }

    fn is_row<'a, S>(&self, compare: &mut Compare<'_, 'a, S>, row: &Row, fresh: &Fresh) -> bool
    where
        S: FnMut(u32, Writer, Writer) -> bool,
    {
        row.end == fresh.end && compare.equal(self.row_image(row), self.image(fresh.last))
    }

    /// A row that began at this very system time shows what is known at its end.
    fn keep(&mut self, mut row: Row, fresh: &Fresh, system: i64) -> Row {
        if row.system_start == system {
            row.event = self.deciding(fresh);
            self.copy_image(fresh.last, row.slot);
        }
        row
    }

    /// Rows that began at this very system time were never believed; others may come back yet.
    fn end_row(&mut self, row: Row, system: i64) {
        if row.system_start == system {
            self.free.push(row.slot);
        } else {
            let at = self.ended.partition_point(|r| r.start < row.start);
            self.ended.insert(at, row);
        }
    }

    fn begin_row<'a, S>(&mut self, compare: &mut Compare<'_, 'a, S>, fresh: &Fresh, system: i64) -> Row
    where
        S: FnMut(u32, Writer, Writer) -> bool,
    {
        let at = self.ended.partition_point(|r| r.start < fresh.start);
        if let Some(row) = self.ended.get(at).copied()
            && row.start == fresh.start
            && self.is_row(compare, &row, fresh)
        {
            return self.ended.remove(at);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot = self.row_images.len().checked_div(self.width).unwrap_or(0);
            self.row_images.resize(self.row_images.len() + self.width, Writer::Null);
            slot as u32
        });
        self.copy_image(fresh.last, slot);
        let event = self.deciding(fresh);
        Row { start: fresh.start, end: fresh.end, system_start: system, event, slot }
    }

    fn deciding(&self, fresh: &Fresh) -> u32 {
        self.line[fresh.last as usize].event.expect("a stretch with a row has an event")
    }

    fn copy_image(&mut self, step: u32, slot: u32) {
        let (from, to) = (step as usize * self.width, slot as usize * self.width);
        self.row_images[to..to + self.width].copy_from_slice(&self.images[from..from + self.width]);
    }

    fn rectangle<'s>(&'s self, row: &Row, system_end: i64) -> Rectangle<'s> {
        Rectangle {
            valid_start: row.start,
            valid_end: row.end,
            system_start: row.system_start,
            system_end,
            event: row.event,
            image: self.row_image(row),
        }
    }

    fn put_ended<E>(&mut self, system: i64, out: &mut Output<E>) -> Result<(), Stop>
    where
        E: FnMut(Rectangle<'_>) -> ControlFlow<()>,
    {
        for row in &self.ended {
            out.put(self.rectangle(row, system))?;
        }
        self.free.extend(self.ended.iter().map(|r| r.slot));
        self.ended.clear();
        Ok(())
    }
}
