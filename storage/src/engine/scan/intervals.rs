//! Interval rows (rules B9 to B11): rectangles of all beliefs, or the rows of the latest one.

use super::batches::KeyScan;
use super::gather::Gather;
use super::group::{Event, Groups};
use super::keys::KeyWalk;
use super::lineage::Histories;
use super::loaded::Loaded;
use super::values::Values;
use crate::engine::error::{Error, ErrorKind};
use crate::engine::request::{RangeSpec, ScanKind, ScanRequest};
use crate::id::ColumnId;
use crate::timeline::{
    Belief, Instance, KeyHistory, Limits, Rectangles, RowHistory, RowRectangle, TimelineError, Tracked,
    Writer,
};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field};
use std::ops::ControlFlow;
use std::sync::Arc;

/// One interval row: its four times, and where its values stand.
struct Row {
    times: [i64; 4],
    picks: Vec<(u32, u32)>,
}

pub(crate) struct IntervalScan {
    groups: Groups,
    walk: KeyWalk,
    histories: Histories,
    tracked: Option<Vec<u32>>,
    shape: Shape,
    projection: Vec<ColumnId>,
    limits: Limits,
    commit: u64,
    gather: Gather,
    times: [Vec<i64>; 4],
    events: Vec<Event>,
    rectangles: Rectangles,
    belief: Belief,
}

impl KeyScan for IntervalScan {
    fn next_key(&mut self) -> Result<bool, Error> {
        self.walk.next(&mut self.groups, &mut self.events)
    }

    fn add_key(&mut self) -> Result<(), Error> {
        let events = std::mem::take(&mut self.events);
        if !self.histories.is_truncate_group(&self.groups, &events) {
            let rows = self.rows_of_key(&events)?;
            for row in rows {
                self.gather.push(|i| row.picks[i]);
                for (times, at) in self.times.iter_mut().zip(row.times) {
                    times.push(at);
                }
            }
        }
        self.events = events;
        Ok(())
    }

    fn gathered(&self) -> &Gather {
        &self.gather
    }

    fn groups(&mut self) -> &mut Groups {
        &mut self.groups
    }

    fn emit(&mut self) -> Result<RecordBatch, Error> {
        let columns = if matches!(self.shape, Shape::Latest) { 2 } else { 4 };
        let column = |t: &mut Vec<i64>| Arc::new(Int64Array::from(std::mem::take(t))) as ArrayRef;
        let extra = self.times.iter_mut().take(columns).map(column).collect();
        let batch = self.gather.emit(self.groups.slots(), extra)?;
        self.times.iter_mut().for_each(Vec::clear);
        self.groups.retire();
        Ok(batch)
    }
}

#[derive(Clone, Copy)]
enum Shape {
    Rectangles { valid: RangeSpec, system: RangeSpec },
    Latest,
}

const NAMES: [&str; 4] = ["valid_start", "valid_end", "system_start", "system_end"];

impl IntervalScan {
    pub fn new(
        groups: Groups,
        walk: KeyWalk,
        histories: Histories,
        tracked: Option<Vec<ColumnId>>,
        request: &ScanRequest,
    ) -> Result<IntervalScan, Error> {
        let shape = match request.kind {
            ScanKind::Intervals { valid, system } => Shape::Rectangles { valid, system },
            _ => Shape::Latest,
        };
        let names = if matches!(shape, Shape::Latest) { &NAMES[..2] } else { &NAMES[..] };
        let extra: Vec<Field> = names.iter().map(|n| Field::new(*n, DataType::Int64, false)).collect();
        Ok(IntervalScan {
            groups,
            walk,
            histories,
            tracked: tracked.map(|ids| ids.iter().map(|id| id.0).collect()),
            shape,
            projection: request.projection.clone(),
            limits: Limits { rows_max: request.rows_per_key_max as u64, ..Limits::default() },
            commit: request.commit.0,
            gather: Gather::new(&request.schema, &request.projection, &extra)?,
            times: Default::default(),
            events: Vec::new(),
            rectangles: Rectangles::new(),
            belief: Belief::new(),
        })
    }

    fn rows_of_key(&mut self, events: &[Event]) -> Result<Vec<Row>, Error> {
        let (lineage, keys) = self.histories.lineage(&mut self.groups, events)?;
        let truncates = self.histories.truncates_of(&self.groups);
        let history = self.histories.history(&self.groups, &lineage, &keys, &truncates);
        let slots = self.groups.slots();
        let mut rows = Vec::new();
        let result = if self.histories.schema.key.is_empty() {
            keyless_rows(
                &history,
                events,
                slots,
                self.shape,
                self.commit,
                &self.limits,
                &self.projection,
                &mut rows,
            )
        } else {
            let tracked = self.tracked.as_deref().map_or(Tracked::All, Tracked::Only);
            let projection = &self.projection;
            let (values, gather) = (Values::new(&history, slots), &mut self.gather);
            let same = |c: u32, a: Writer, b: Writer| values.same(c, a, b);
            match self.shape {
                Shape::Latest => {
                    let steps = self.limits.steps_max;
                    let folded = self.belief.compute(&history, i64::MAX, self.commit, tracked, steps, same);
                    for (i, v) in self.belief.versions().iter().enumerate() {
                        let picks = picks_of(&values, self.belief.image(i), projection, 0, gather);
                        rows.push(Row { times: [v.start, v.end, 0, 0], picks });
                    }
                    folded
                }
                Shape::Rectangles { valid, system } => {
                    let emit = |r: crate::timeline::Rectangle<'_>| {
                        if valid.wants(r.valid_start, r.valid_end)
                            && system.wants(r.system_start, r.system_end)
                        {
                            let times = [r.valid_start, r.valid_end, r.system_start, r.system_end];
                            let picks = picks_of(&values, r.image, projection, 0, gather);
                            rows.push(Row { times, picks });
                        }
                        ControlFlow::Continue(())
                    };
                    let streamed =
                        self.rectangles.stream(&history, self.commit, tracked, &self.limits, same, emit);
                    streamed.map(|_| ())
                }
            }
        };
        result.map_err(limit_error)?;
        rows.sort_by_key(|r| (r.times[0], r.times[2], r.times[1]));
        Ok(rows)
    }
}

fn limit_error(e: TimelineError) -> Error {
    Error::new(ErrorKind::Limit, e.to_string())
        .hint("ask about a point in time, which is always answered, or about a narrower range of keys")
}

/// Where the projected columns of an image stand; the first is column `first` of `gather`.
pub(super) fn picks_of(
    values: &Values<'_, '_>,
    image: &[Writer],
    projection: &[ColumnId],
    first: usize,
    gather: &mut Gather,
) -> Vec<(u32, u32)> {
    let pick = |(i, id): (usize, &ColumnId)| values.pick(*id, image[id.0 as usize], first + i, gather);
    projection.iter().enumerate().map(pick).collect()
}

/// Rows of a table without a key: each instance of the row content on its own.
#[allow(clippy::too_many_arguments)]
fn keyless_rows(
    history: &KeyHistory<'_>,
    events: &[Event],
    slots: &[Arc<Loaded>],
    shape: Shape,
    commit: u64,
    limits: &Limits,
    projection: &[ColumnId],
    rows: &mut Vec<Row>,
) -> Result<(), TimelineError> {
    let image = events.iter().find(|e| !slots[e.slot as usize].op(e.row as usize).ends_row());
    let Some(at) = image.map(|e| (e.slot, e.row)) else { return Ok(()) };
    let picks = vec![at; projection.len()];
    let mut contents = RowHistory::new();
    let mut add = |i: &Instance, system: (i64, i64)| {
        rows.push(Row { times: [i.start, i.end, system.0, system.1], picks: picks.clone() });
    };
    let Shape::Rectangles { valid, system } = shape else {
        let instances = contents.instances(history, i64::MAX, commit, limits)?;
        instances.iter().for_each(|i| add(i, (0, 0)));
        return Ok(());
    };
    let emit = |r: RowRectangle| {
        let times = (r.system_start, r.system_end);
        if valid.wants(r.instance.start, r.instance.end) && system.wants(times.0, times.1) {
            add(&r.instance, times);
        }
        ControlFlow::Continue(())
    };
    contents.rectangles(history, commit, limits, emit).map(|_| ())
}
