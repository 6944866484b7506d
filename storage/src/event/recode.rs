//! From columns back to rows of bytes: the row that an event was most likely logged as.
//!
//! Columns do not tell everything a row does (whether a column was NULL or not given in a full image,
//! the kind of a number, ...), so this is a guess, and [`super::recipe`] has what is wrong with it. It
//! depends on what the event says, its commit, the schema it was committed under and a [`Habit`] only.

use super::columns::EventColumns;
use super::decode::{FrameContext, decode_rows};
use super::head::{EventHead, Op, TimeSource};
use super::narrow::{Image, number, text_cell};
use super::recipe::Habit;
use super::row::{HeadTimes, RowError, put_cell, put_cell_of, put_head};
use super::varint::put_varint;
use crate::id::{ColumnId, OriginId, SourceId};
use crate::schema::TableSchema;
use crate::value::{Cell, ColumnType};
use arrow::array::{Array, RecordBatch};

/// Makes rows of a batch of the physical schema of a table.
pub(crate) struct Recoder<'a> {
    events: &'a EventColumns,
    images: Vec<Image<'a>>,
    system_declared: bool,
    /// What a cell is in the row that is made: by column.
    states: Vec<State>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Absent,
    Null,
    Unknown,
    Value,
    Leaves,
}

impl<'a> Recoder<'a> {
    /// `schema` is that of the batch. `None` if the batch has other types.
    pub(crate) fn new(
        events: &'a EventColumns,
        schema: &TableSchema,
        system_declared: bool,
    ) -> Option<Recoder<'a>> {
        let image = |c: &crate::schema::Column| Image::new(events.image(c.id)?, c.ty);
        let images = schema.columns.iter().map(image).collect::<Option<Vec<_>>>()?;
        Some(Recoder { events, images, system_declared, states: Vec::new() })
    }

    /// Whether row `i` is one of the log: the old side of a key change is not.
    pub(crate) fn is_logged(&self, i: usize) -> bool {
        self.events.operation(i) != Op::MovedAway
    }

    /// What rows of a commit and table are ordered by.
    pub(crate) fn place(&self, i: usize) -> (u32, u64, u32) {
        let e = self.events;
        (e.origin().value(i), e.position().value(i), e.ordinal().value(i))
    }

    /// Appends the row of event `i`, committed under the schema `then` at the instant `commit_at`.
    pub(crate) fn row(
        &mut self,
        i: usize,
        then: &TableSchema,
        commit_at: i64,
        habit: Habit,
        out: &mut Vec<u8>,
    ) {
        let op = self.events.operation(i);
        let mut head = self.head(i, op, commit_at);
        head.full = if op.ends_row() { habit.has(Habit::ENDING_FULL) } else { self.events.is_full(i) };
        let (count, dense) = self.find_cells(i, op, then, habit);
        let times = HeadTimes::of(&head);
        let previous = self.previous(i, then, habit);
        match &previous {
            Some(texts) => {
                let cells: Vec<Cell<'_>> = texts.iter().map(|p| p.cell(habit)).collect();
                let head = EventHead { previous: Some(&cells), ..head };
                put_head(out, &head, dense);
            }
            None => put_head(out, &head, dense),
        }
        put_varint(out, count as u64);
        let mut next = 0;
        for (c, state) in self.states.iter().enumerate().filter(|(_, s)| **s != State::Absent) {
            if !dense {
                put_varint(out, (c - next) as u64);
                next = c + 1;
            }
            match state {
                State::Null | State::Absent => put_cell(out, &Cell::Null),
                State::Unknown => put_cell(out, &Cell::Unknown),
                State::Value => {
                    let ty = then.columns[c].ty;
                    self.images[c].cell(i, ty, habit, |cell| put_cell_of(out, cell, times));
                }
                State::Leaves => match self.images[c] {
                    Image::Json(a) | Image::Text(a) => put_cell(out, &Cell::Leaves(a.value(i))),
                    _ => put_cell(out, &Cell::Null),
                },
            }
        }
    }

    fn head(&self, i: usize, op: Op, commit_at: i64) -> EventHead<'a> {
        let e = self.events;
        let time_source = TimeSource::from_u8(e.time_source().value(i)).unwrap_or(TimeSource::Commit);
        let (valid_from, system) = (e.valid_from().value(i), e.system().value(i));
        let at_commit = valid_from == commit_at && time_source == TimeSource::Commit;
        let own_system = system == commit_at && !self.system_declared;
        let bytes = |a: &'a arrow::array::BinaryArray| a.is_valid(i).then(|| a.value(i));
        EventHead {
            op,
            full: false,
            valid_from: (!at_commit).then_some(valid_from),
            valid_to: e.valid_to().value(i),
            event_time: e.event_time().is_valid(i).then(|| e.event_time().value(i)),
            time_source,
            system: (!own_system).then_some(system),
            ties: bytes(e.ties()).unwrap_or_default(),
            origin: OriginId(e.origin().value(i)),
            position: e.position().value(i),
            ordinal: e.ordinal().value(i),
            source: SourceId(e.source().value(i)),
            token: bytes(e.token()).unwrap_or_default(),
            token_ordinal: e.token_ordinal().value(i),
            operation_id: bytes(e.operation_id()),
            transaction_id: e.transaction_id().is_valid(i).then(|| e.transaction_id().value(i)),
            previous: None,
            previous_deleted: e.op().value(i) & super::columns::OP_PREVIOUS_DELETED != 0,
            raw: bytes(e.raw()),
        }
    }

    /// Says of every column what its cell is; how many there are, and whether without a gap from 0.
    fn find_cells(&mut self, i: usize, op: Op, then: &TableSchema, habit: Habit) -> (usize, bool) {
        let e = self.events;
        let full = e.is_full(i) || op.ends_row();
        let nulls = op != Op::Truncate
            && habit.has(if op.ends_row() { Habit::NULLS_ENDING } else { Habit::NULLS_FULL });
        let marked = e.unknown().is_valid(i);
        self.states.clear();
        let (mut count, mut dense) = (0, true);
        for c in 0..then.columns.len().min(self.images.len()) {
            let id = ColumnId(c as u32);
            let valid = self.images[c].is_valid(i);
            let state = if marked && e.is_unknown(i, id) {
                State::Unknown
            } else if valid && marked && !full && e.writes_leaves(i, id) {
                State::Leaves
            } else if valid {
                State::Value
            } else if if full { nulls } else { e.authors(i, id) } {
                State::Null
            } else {
                State::Absent
            };
            if state != State::Absent {
                dense &= count == c;
                count += 1;
            }
            self.states.push(state);
        }
        (count, dense)
    }

    /// The previous key of row `i`, for a table with a key.
    fn previous(&self, i: usize, then: &TableSchema, habit: Habit) -> Option<Vec<Component>> {
        let e = self.events;
        if e.previous().is_null(i) {
            return None;
        }
        let mut rest = e.previous().value(i);
        let mut cells = Vec::with_capacity(then.key.len());
        for id in &then.key {
            let ty = then.columns.get(id.0 as usize).map_or(ColumnType::Null, |c| c.ty);
            let (part, after) = crate::key::first_component(rest)?;
            cells.push(Component::new(part, ty, habit));
            rest = after;
        }
        Some(cells)
    }
}

/// A part of a previous key.
enum Component {
    Known(Cell<'static>),
    Text(String, ColumnType),
    Bytes(Vec<u8>),
}

impl Component {
    fn new(part: crate::key::Component, ty: ColumnType, habit: Habit) -> Component {
        match part {
            crate::key::Component::Null => Component::Known(Cell::Null),
            crate::key::Component::Unknown => Component::Known(Cell::Unknown),
            crate::key::Component::Int(n) => match ty {
                ColumnType::Int64 | ColumnType::Decimal { .. } => Component::Known(number(n, 0, ty, habit)),
                _ => Component::Text(n.to_string(), ty),
            },
            crate::key::Component::Text(text) => Component::Text(text, ty),
            crate::key::Component::Bytes(bytes) => Component::Bytes(bytes),
        }
    }

    fn cell(&self, habit: Habit) -> Cell<'_> {
        match self {
            Component::Known(cell) => *cell,
            Component::Text(text, ty) => text_cell(text, *ty, habit),
            Component::Bytes(bytes) => Cell::Bytes(bytes),
        }
    }
}

/// The rows that columns would give of rows of the log: each decoded under the schema of its commit, and
/// coded again. The ends of the rows and their bytes; an event that decoding loses has no row.
pub(crate) fn guess_rows<'r>(
    rows: impl ExactSizeIterator<Item = &'r [u8]>,
    then: &TableSchema,
    system_declared: bool,
    context: FrameContext,
    habit: Habit,
) -> Result<(Vec<u32>, Vec<u8>), (usize, RowError)> {
    let batch: RecordBatch = decode_rows(rows, then, context)?;
    let wrong = |what| (0, RowError { what, at: 0 });
    let events = EventColumns::new(batch).map_err(|_| wrong("decoding gave other columns"))?;
    let mut recoder =
        Recoder::new(&events, then, system_declared).ok_or_else(|| wrong("decoding gave other types"))?;
    let (mut ends, mut bytes) = (Vec::new(), Vec::new());
    for i in 0..events.len() {
        if recoder.is_logged(i) {
            recoder.row(i, then, context.commit_at, habit, &mut bytes);
            ends.push(bytes.len() as u32);
        }
    }
    Ok((ends, bytes))
}

#[cfg(test)]
#[path = "recode_tests.rs"]
mod tests;
