//! Changes of several events that are handed out together: copies that outlive what they were decoded from.

use crate::change::{Change, Column, Declared, Decoded, Message, Numbered, Previous, Sink, SourceRef, Token};
use crate::format::fields::Reject;
use crate::format::scratch::Scratch;
use asofdb_storage::value::Cell;
use std::ops::Range;

/// Rows that one message may have: a row may take far more room here than in its message.
const ROWS_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub struct Collected<'a> {
    columns: Vec<Column<'a>>,
    ties: Vec<Cell<'a>>,
    kept: Vec<Kept<'a>>,
}

#[derive(Debug)]
struct Kept<'a> {
    change: Change<'a>,
    key: Range<usize>,
    fields: Range<usize>,
    image: Range<usize>,
    before: Range<usize>,
    /// The former key, and whether its delete is sent too.
    previous: Option<(Range<usize>, bool)>,
    ties: Range<usize>,
}

impl<'a> Collected<'a> {
    /// Adds a copy.
    ///
    /// # Errors
    /// If there are too many.
    pub fn keep(&mut self, change: &Change<'_>, scratch: &mut Scratch<'a>) -> Result<(), Reject> {
        if self.kept.len() == ROWS_MAX {
            return Err(Reject::new(format!("the message has more than {ROWS_MAX} rows")));
        }
        let ties = self.ties.len();
        for cell in change.declared.ties {
            let cell = copy(cell, scratch);
            self.ties.push(cell);
        }
        let key = self.columns(change.key, scratch);
        let fields = self.columns(change.fields, scratch);
        let image = match std::ptr::eq(change.image, change.fields) {
            true => fields.clone(),
            false => self.columns(change.image, scratch),
        };
        let before = match std::ptr::eq(change.before, change.fields) {
            true => fields.clone(),
            false => self.columns(change.before, scratch),
        };
        let previous = change.previous.map(|p| (self.columns(p.key, scratch), p.deletes_sent));
        let change = head(change, scratch);
        let ties = ties..self.ties.len();
        self.kept.push(Kept { change, key, fields, image, before, previous, ties });
        Ok(())
    }

    fn columns(&mut self, columns: &[Column<'_>], scratch: &mut Scratch<'a>) -> Range<usize> {
        let from = self.columns.len();
        self.columns.extend(
            columns.iter().map(|c| Column { name: text(c.name, scratch), cell: copy(&c.cell, scratch) }),
        );
        from..self.columns.len()
    }

    /// Hands all out at once.
    pub fn hand_out(&self, message: &Message<'_>, sink: &mut Sink<'_>) {
        let columns = |range: &Range<usize>| self.columns.get(range.clone()).unwrap_or(&[]);
        let changes: Vec<Change<'_>> = self
            .kept
            .iter()
            .map(|k| {
                let mut change: Change<'_> = k.change;
                change.key = columns(&k.key);
                change.fields = columns(&k.fields);
                change.image = columns(&k.image);
                change.before = columns(&k.before);
                let previous = |(key, deletes_sent): &(Range<usize>, bool)| Previous {
                    key: columns(key),
                    deletes_sent: *deletes_sent,
                };
                change.previous = k.previous.as_ref().map(previous);
                change.declared.ties = self.ties.get(k.ties.clone()).unwrap_or(&[]);
                change.headers = message.headers;
                change
            })
            .collect();
        sink(Decoded::Changes(&changes));
    }
}

fn text<'a>(text: &str, scratch: &mut Scratch<'a>) -> &'a str {
    scratch.put_str(|out| out.push_str(text))
}

fn copy<'a>(cell: &Cell<'_>, scratch: &mut Scratch<'a>) -> Cell<'a> {
    match *cell {
        Cell::Unchanged => Cell::Unchanged,
        Cell::Unknown => Cell::Unknown,
        Cell::Null => Cell::Null,
        Cell::Bool(v) => Cell::Bool(v),
        Cell::Int(v) => Cell::Int(v),
        Cell::Decimal { unscaled, scale } => Cell::Decimal { unscaled, scale },
        Cell::Float(v) => Cell::Float(v),
        Cell::Date(v) => Cell::Date(v),
        Cell::Timestamp(v) => Cell::Timestamp(v),
        Cell::TimestampNs(v) => Cell::TimestampNs(v),
        Cell::Instant(v) => Cell::Instant(v),
        Cell::Text(t) => Cell::Text(text(t, scratch)),
        Cell::Bytes(b) => Cell::Bytes(scratch.put(b)),
        Cell::Json(t) => Cell::Json(text(t, scratch)),
        Cell::Leaves(t) => Cell::Leaves(text(t, scratch)),
    }
}

/// The change without its columns.
fn head<'a>(change: &Change<'_>, scratch: &mut Scratch<'a>) -> Change<'a> {
    let mut optional = |t: Option<&str>| t.map(|t| text(t, scratch));
    let table = optional(change.table);
    let transaction_id = optional(change.transaction_id);
    let source = SourceRef {
        server: optional(change.source.server),
        db: optional(change.source.db),
        schema: optional(change.source.schema),
        table: optional(change.source.table),
    };
    let token =
        change.token.map(|t| Token { server: text(t.server, scratch), position: scratch.put(t.position) });
    let declared = Declared {
        valid_from: change.declared.valid_from,
        valid_to: change.declared.valid_to,
        system: change.declared.system,
        ties: &[],
        operation_id: change.declared.operation_id.map(|c| copy(&c, scratch)),
    };
    Change {
        table,
        table_guessed: change.table_guessed,
        op: change.op,
        full: change.full,
        key: &[],
        fields: &[],
        image: &[],
        numbered: Numbered::default(),
        before: &[],
        previous: None,
        times: change.times,
        declared,
        snapshot: change.snapshot,
        tombstone: change.tombstone,
        token,
        one_per_key: change.one_per_key,
        transaction_id,
        source,
        headers: &[],
    }
}
