//! What a message is taken apart into: buffers that are kept from message to message, and the one pass
//! over an envelope that fills them.

use crate::format::debezium::envelope::Rows;
use crate::format::debezium::values::is_placeholder_text;
use crate::format::json::{self, Member};
use crate::format::layout::Layout;
use asofdb_storage::recycle;
use asofdb_storage::value::Cell;

#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    pub(super) outer: Vec<Member<'a>>,
    pub(super) envelope: Vec<Member<'a>>,
    pub(super) source: Vec<Member<'a>>,
    pub(super) members: Vec<Member<'a>>,
    pub(super) rows: Rows<'a>,
    pub(super) before_numbers: Vec<u16>,
    /// What was read while the envelope was listed.
    pub(super) read: Read,
}

impl<'a> Parts<'a> {
    pub(super) fn recycled<'b>(self) -> Parts<'b> {
        Parts {
            outer: recycle(self.outer),
            envelope: recycle(self.envelope),
            source: recycle(self.source),
            members: recycle(self.members),
            rows: self.rows.recycled(),
            before_numbers: recycle(self.before_numbers),
            read: Read::default(),
        }
    }

    /// Of the rows that were read on the way, keeps the one called `row`, and with `beside` the old one
    /// beside it. Afterwards `read` says of `row` and `before` whether they were read, whatever their names.
    pub(super) fn keep_read(&mut self, row: &str, beside: bool) {
        if row == "before" {
            std::mem::swap(&mut self.rows.row, &mut self.rows.before);
            std::mem::swap(&mut self.rows.numbers, &mut self.before_numbers);
            std::mem::swap(&mut self.read.after, &mut self.read.before);
        }
        if row.is_empty() {
            self.rows.row.clear();
            self.rows.numbers.clear();
            self.read.after = false;
        }
        if !beside {
            self.rows.before.clear();
            self.read.before = false;
        }
        for column in self.rows.row.iter_mut().chain(&mut self.rows.before) {
            if let Cell::Text(text) = column.cell
                && is_placeholder_text(text)
            {
                column.cell = Cell::Unknown;
            }
        }
    }
}

/// Objects of an envelope that were read in the one pass over it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Read {
    pub(super) source: bool,
    /// Into `row`.
    pub(super) after: bool,
    pub(super) before: bool,
}

/// Lists the members of an envelope, and with `rows` reads those of its objects that look like those before.
pub(super) fn list<'a>(
    layout: &mut Layout,
    text: &'a str,
    p: &mut Parts<'a>,
    rows: bool,
) -> Result<(), json::JsonError> {
    p.outer.clear();
    let Parts { outer, source, rows: kept, before_numbers, read, .. } = p;
    let Rows { row, numbers, before, .. } = kept;
    // Of two members with one name the first counts, or none.
    let mut tried = Read::default();
    json::members_with(text, outer, |name, at| {
        let (text, from) = at.place();
        let mut row_into = |tried: &mut bool, read: &mut bool, columns: &mut Vec<_>, numbers: &mut Vec<_>| {
            if !rows || std::mem::replace(tried, true) {
                return None;
            }
            let end = layout.scan_at(text, from, columns, numbers);
            if end.is_none() {
                columns.clear();
                numbers.clear();
            }
            *read = end.is_some();
            end
        };
        match name {
            "after" => row_into(&mut tried.after, &mut read.after, row, numbers),
            "before" => row_into(&mut tried.before, &mut read.before, before, before_numbers),
            "source" if !std::mem::replace(&mut tried.source, true) => {
                source.clear();
                let end = at.list(source).ok();
                read.source = end.is_some();
                end
            }
            _ => None,
        }
    })
}
