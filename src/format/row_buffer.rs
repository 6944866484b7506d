//! Rows of one message that may carry many: their columns are collected first, so that all changes can be
//! handed out together, in their order.

use super::block::table_name;
use super::declare::{self, Envelope, View};
use super::fields::Reject;
use super::options::FormatOptions;
use super::scratch::Scratch;
use crate::change::{Change, Column, Decoded, Message, Sink, SourceRef, Times, Token};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;
use asofdb_storage::value::Cell;
use std::collections::HashMap;
use std::ops::Range;

/// Rows that one message may have: a row takes far more room here than in its message.
const ROWS_MAX: usize = 100_000;
/// Columns of a key that are looked for.
const KEY_COLUMNS_MAX: usize = 64;
/// Old rows of at most this many columns are searched one by one.
const FEW_COLUMNS: usize = 16;

/// What an envelope says of each of its rows.
#[derive(Clone, Copy, Debug)]
pub struct RowHead<'a> {
    /// What happened to the row.
    pub op: Op,
    /// The same as the format spells it.
    pub code: &'a str,
    /// Table as the change names it.
    pub table: Option<&'a str>,
    /// Where it comes from.
    pub source: SourceRef<'a>,
    /// Candidate valid times.
    pub times: Times,
    /// Read by a snapshot.
    pub snapshot: bool,
    /// Usable log position.
    pub token: Option<Token<'a>>,
    /// See [`Change::one_per_key`].
    pub one_per_key: bool,
    /// The source's transaction.
    pub transaction_id: Option<&'a str>,
}

impl<'a> RowHead<'a> {
    /// The head of a row of which only the operation is known.
    pub fn new(op: Op, code: &'a str) -> RowHead<'a> {
        RowHead {
            op,
            code,
            table: None,
            source: SourceRef::default(),
            times: Times::default(),
            snapshot: false,
            token: None,
            one_per_key: false,
            transaction_id: None,
        }
    }
}

/// The rows of a message. What is pushed onto `row`, `before` and `key` belongs to the row that
/// [`RowBuffer::close`] ends.
#[derive(Debug, Default)]
pub struct RowBuffer<'a> {
    /// Columns after the change; of deletes those before it.
    pub row: Vec<Column<'a>>,
    /// Columns before the change.
    pub before: Vec<Column<'a>>,
    /// Key columns.
    pub key: Vec<Column<'a>>,
    images: Vec<Column<'a>>,
    ties: Vec<Cell<'a>>,
    closed: Vec<Closed<'a>>,
    ends: Ends,
    changes: Vec<Change<'static>>,
}

/// Where the columns of the closed rows end.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    row: usize,
    before: usize,
    key: usize,
    images: usize,
    ties: usize,
}

#[derive(Debug)]
struct Closed<'a> {
    change: Change<'a>,
    row: Range<usize>,
    before: Range<usize>,
    key: Range<usize>,
    /// `None` = the row.
    image: Option<Range<usize>>,
    ties: Range<usize>,
}

impl<'a> RowBuffer<'a> {
    /// An empty one with the allocations of `self`.
    pub fn recycled<'b>(self) -> RowBuffer<'b> {
        RowBuffer {
            row: recycle(self.row),
            before: recycle(self.before),
            key: recycle(self.key),
            images: recycle(self.images),
            ties: recycle(self.ties),
            closed: recycle(self.closed),
            ends: Ends::default(),
            changes: self.changes,
        }
    }

    /// Adds the key columns of these names from the row that is open; also where the case of letters
    /// differs, as it does in names that come from a catalog.
    ///
    /// # Errors
    /// If there are more of them than any table has.
    pub fn key_by_names(&mut self, names: &[&'a str]) -> Result<(), Reject> {
        if names.len() > KEY_COLUMNS_MAX {
            return Err(Reject::new(format!("the key has more than {KEY_COLUMNS_MAX} columns")));
        }
        let row = &self.row[self.ends.row..];
        for name in names {
            let exact = row.iter().find(|c| c.name == *name);
            let found = exact.or_else(|| row.iter().find(|c| c.name.eq_ignore_ascii_case(name)));
            self.key.push(found.copied().unwrap_or(Column { name, cell: Cell::Unchanged }));
        }
        Ok(())
    }

    /// Makes the row before the change of the row that is open and of the former values of those
    /// columns that changed.
    pub fn before_of_changed(&mut self, old: &[Column<'a>]) {
        let row = &self.row[self.ends.row..];
        let mut taken = vec![false; old.len()];
        let by_name: HashMap<&str, usize> = match old.len() > FEW_COLUMNS {
            true => old.iter().enumerate().map(|(i, c)| (c.name, i)).collect(),
            false => HashMap::new(),
        };
        for column in row {
            let at = match by_name.is_empty() {
                true => old.iter().position(|c| c.name == column.name),
                false => by_name.get(column.name).copied(),
            };
            if let Some(at) = at {
                taken[at] = true;
            }
            self.before.push(at.map_or(*column, |at| old[at]));
        }
        self.before.extend(old.iter().zip(taken).filter(|(_, taken)| !taken).map(|(c, _)| *c));
    }

    /// Ends a row.
    ///
    /// # Errors
    /// If a declared time cannot be read, or there are too many rows.
    pub fn close(
        &mut self,
        options: &FormatOptions,
        message: &Message<'a>,
        head: &RowHead<'a>,
        scratch: &mut Scratch<'a>,
    ) -> Result<(), Reject> {
        if self.closed.len() == ROWS_MAX {
            return Err(Reject::new(format!("the message has more than {ROWS_MAX} rows"))
                .hint("a source sends smaller batches if it is told to"));
        }
        let row = &self.row[self.ends.row..];
        let envelope = Envelope {
            op: Some(head.code),
            times: head.times,
            position: message.position,
            source: head.source,
            table: head.table,
            transaction_id: head.transaction_id,
        };
        let mut view = View { columns: row, envelope: &envelope, scratch };
        let op = declare::overridden(options, &mut view, head.op);
        let mut change = Change::new(op);
        change.declared = declare::declared(options, &mut view, &mut self.ties)?;
        // An envelope holds whole values of columns.
        let (full, filtered) = declare::image(options, op, row, &mut self.images, None)?;
        change.full = full;
        change.table = head.table;
        change.times = head.times;
        change.snapshot = head.snapshot;
        (change.token, change.one_per_key) = (head.token, head.one_per_key);
        change.transaction_id = head.transaction_id;
        change.source = head.source;
        self.end(change, filtered);
        Ok(())
    }

    /// Ends a message without a value, which deletes the row of its key.
    pub fn close_tombstone(
        &mut self,
        options: &FormatOptions,
        message: &Message<'a>,
        source: SourceRef<'a>,
        scratch: &mut Scratch<'a>,
    ) {
        let table = table_name(&source, scratch);
        let envelope = Envelope { table, source, ..Envelope::of_message(message) };
        let mut change = Change::new(Op::Delete);
        change.tombstone = true;
        (change.table, change.source, change.times) = (table, source, envelope.times);
        change.declared = declare::declared_of_tombstone(options, &envelope, &mut self.ties, scratch);
        self.end(change, false);
    }

    fn end(&mut self, change: Change<'a>, filtered: bool) {
        let ends = Ends {
            row: self.row.len(),
            before: self.before.len(),
            key: self.key.len(),
            images: self.images.len(),
            ties: self.ties.len(),
        };
        self.closed.push(Closed {
            change,
            row: self.ends.row..ends.row,
            before: self.ends.before..ends.before,
            key: self.ends.key..ends.key,
            image: filtered.then_some(self.ends.images..ends.images),
            ties: self.ends.ties..ends.ties,
        });
        self.ends = ends;
    }

    /// Hands all rows out at once.
    pub fn hand_out(&mut self, message: &Message<'a>, sink: &mut Sink<'_>) {
        let mut changes: Vec<Change<'_>> = recycle(std::mem::take(&mut self.changes));
        changes.extend(self.closed.iter().map(|c| {
            let mut change = c.change;
            change.fields = &self.row[c.row.clone()];
            change.image = match &c.image {
                Some(range) => &self.images[range.clone()],
                None => change.fields,
            };
            // Of a deleted row there is nothing but what it was before.
            change.before =
                if change.op == Op::Delete { change.fields } else { &self.before[c.before.clone()] };
            change.key = &self.key[c.key.clone()];
            change.declared.ties = &self.ties[c.ties.clone()];
            change.headers = message.headers;
            change
        }));
        sink(Decoded::Changes(&changes));
        self.changes = recycle(changes);
    }
}
