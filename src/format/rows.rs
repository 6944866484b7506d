//! The rows of a message while they are read: an envelope may hold any number of them.

use super::declare::{self, Envelope, View};
use super::fields::Reject;
use super::options::FormatOptions;
use super::scratch::Scratch;
use crate::change::{Change, Column, Decoded, Message, Sink};
use asofdb_storage::recycle;
use asofdb_storage::value::Cell;
use std::ops::Range;

/// Rows that one message may have: a row may take far more room here than in its message.
const ROWS_MAX: usize = 250_000;

/// Columns and changes of one message. Buffers are kept from message to message.
#[derive(Debug, Default)]
pub struct Rows<'a> {
    /// The columns of all rows, one behind the other; decoders append to it.
    pub columns: Vec<Column<'a>>,
    images: Vec<Column<'a>>,
    ties: Vec<Cell<'a>>,
    drafts: Vec<Draft<'a>>,
}

/// A row whose columns are ranges of [`Rows::columns`].
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Everything but columns and what is declared. `full` says that columns which are not sent are NULL.
    pub change: Change<'a>,
    /// The operation as the format spells it.
    pub code: &'a str,
    /// The columns of the row; of a delete those of the old one.
    pub fields: Range<usize>,
    /// The old row, as far as it was sent.
    pub before: Range<usize>,
    /// The key, where the envelope says what it is.
    pub key: Range<usize>,
}

#[derive(Clone, Debug)]
struct Draft<'a> {
    row: Row<'a>,
    image: Option<Range<usize>>,
    ties: Range<usize>,
}

impl<'a> Rows<'a> {
    /// None, with the allocations of `self`.
    pub fn recycled<'b>(self) -> Rows<'b> {
        Rows {
            columns: recycle(self.columns),
            images: recycle(self.images),
            ties: recycle(self.ties),
            drafts: recycle(self.drafts),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// Adds a row with what the options make of it.
    ///
    /// # Errors
    /// If a declared time cannot be read, or a list of columns to update is none.
    pub fn push(
        &mut self,
        options: &FormatOptions,
        message: &Message<'a>,
        mut row: Row<'a>,
        scratch: &mut Scratch<'a>,
    ) -> Result<(), Reject> {
        if self.drafts.len() == ROWS_MAX {
            return Err(Reject::new(format!("the message has more than {ROWS_MAX} rows"))
                .hint("a source sends smaller messages if it is told to"));
        }
        let change = &mut row.change;
        let envelope = Envelope {
            op: Some(row.code),
            times: change.times,
            position: message.position,
            source: change.source,
            table: change.table,
            transaction_id: change.transaction_id,
        };
        let fields = self.columns.get(row.fields.clone()).unwrap_or(&[]);
        let mut view = View { columns: fields, envelope: &envelope, scratch };
        change.op = declare::overridden(options, &mut view, change.op);
        let ties = self.ties.len();
        change.declared = declare::declared(options, &mut view, &mut self.ties)?;
        let image = self.images.len();
        // An envelope holds whole values of columns.
        let (full, filtered) = declare::image(options, change.op, fields, &mut self.images, None)?;
        change.full = full && (change.full || change.op.ends_row());
        let image = filtered.then_some(image..self.images.len());
        self.drafts.push(Draft { image, ties: ties..self.ties.len(), row });
        Ok(())
    }

    /// Hands all rows to `sink` in their order.
    pub fn hand_out(&self, message: &Message<'_>, sink: &mut Sink<'_>) {
        if let [draft] = self.drafts.as_slice() {
            return sink(Decoded::Changes(&[self.change(draft, message)]));
        }
        let changes: Vec<Change<'_>> = self.drafts.iter().map(|d| self.change(d, message)).collect();
        sink(Decoded::Changes(&changes));
    }

    /// Hands over what reading a message came to: rows, something that is none, or why it cannot be taken.
    pub fn finish(
        &self,
        read: Result<Option<&'static str>, Reject>,
        overflowed: bool,
        message: &Message<'_>,
        sink: &mut Sink<'_>,
    ) {
        match read {
            _ if overflowed => {
                sink(Decoded::Quarantine(Reject::new("the message needs more room than it should").fault()));
            }
            Ok(Some(kind)) => sink(Decoded::Ignored(kind)),
            Ok(None) => self.hand_out(message, sink),
            Err(reject) => sink(Decoded::Quarantine(reject.fault())),
        }
    }

    fn change<'c>(&'c self, draft: &'c Draft<'a>, message: &Message<'c>) -> Change<'c> {
        let columns = |range: &Range<usize>| self.columns.get(range.clone()).unwrap_or(&[]);
        let row = &draft.row;
        let mut change: Change<'c> = row.change;
        change.fields = columns(&row.fields);
        change.image = match &draft.image {
            Some(range) => self.images.get(range.clone()).unwrap_or(&[]),
            None => change.fields,
        };
        change.before = columns(&row.before);
        change.key = columns(&row.key);
        change.declared.ties = self.ties.get(draft.ties.clone()).unwrap_or(&[]);
        change.headers = message.headers;
        change
    }
}
