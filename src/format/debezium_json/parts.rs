//! What a message is taken apart into: buffers that are kept from message to message, and the one pass
//! over an envelope that fills them.

use super::cell::is_placeholder_text;
use crate::change::Column;
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
    pub(super) row: Vec<Column<'a>>,
    /// Numbers of the names of `row`; none unless all have one.
    pub(super) numbers: Vec<u16>,
    pub(super) before: Vec<Column<'a>>,
    pub(super) before_numbers: Vec<u16>,
    /// What was read while the envelope was listed.
    pub(super) read: Read,
    pub(super) image: Vec<Column<'a>>,
    pub(super) key: Vec<Column<'a>>,
    pub(super) previous: Vec<Column<'a>>,
    pub(super) ties: Vec<Cell<'a>>,
}

impl<'a> Parts<'a> {
    pub(super) fn recycled<'b>(self) -> Parts<'b> {
        Parts {
            outer: recycle(self.outer),
            envelope: recycle(self.envelope),
            source: recycle(self.source),
            members: recycle(self.members),
            row: recycle(self.row),
            numbers: recycle(self.numbers),
            before: recycle(self.before),
            before_numbers: recycle(self.before_numbers),
            read: Read::default(),
            image: recycle(self.image),
            key: recycle(self.key),
            previous: recycle(self.previous),
            ties: recycle(self.ties),
        }
    }

    /// Of the rows that were read on the way, keeps the one called `row`, and with `beside` the old one
    /// beside it. Afterwards `read` says of `row` and `before` whether they were read, whatever their names.
    pub(super) fn keep_read(&mut self, row: &str, beside: bool) {
        if row == "before" {
            std::mem::swap(&mut self.row, &mut self.before);
            std::mem::swap(&mut self.numbers, &mut self.before_numbers);
            std::mem::swap(&mut self.read.after, &mut self.read.before);
        }
        if row.is_empty() {
            self.row.clear();
            self.numbers.clear();
            self.read.after = false;
        }
        if !beside {
            self.before.clear();
            self.read.before = false;
        }
        for column in self.row.iter_mut().chain(&mut self.before) {
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
    let Parts { outer, source, row, numbers, before, before_numbers, read, .. } = p;
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
