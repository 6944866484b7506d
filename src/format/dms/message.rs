//! JSON messages: the row in `data`, all else in `metadata`. NULLs are not sent.

use super::OLD;
use crate::change::{Change, Message, Sink, SourceRef, Times};
use crate::format::block::{Block, table_name};
use crate::format::fields::{Reject, columns, shortened, untyped_cell};
use crate::format::json::{self, Member, Raw, RawText};
use crate::format::options::FormatOptions;
use crate::format::rows::{Row, Rows};
use crate::format::scratch::{Scratch, ScratchBuffer};
use crate::format::time_text::{self, TimeText};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;
use std::ops::Range;

/// The object with the old row, in `data` or beside it.
const BEFORE_IMAGE: &str = "before-image";

/// Decodes JSON messages of DMS.
#[derive(Debug, Default)]
pub struct Dms {
    scratch: ScratchBuffer,
    rows: Rows<'static>,
    lists: Lists<'static>,
}

#[derive(Debug, Default)]
struct Lists<'a> {
    outer: Vec<Member<'a>>,
    metadata: Vec<Member<'a>>,
    data: Vec<Member<'a>>,
    old: Vec<Member<'a>>,
}

impl<'a> Lists<'a> {
    fn recycled<'b>(self) -> Lists<'b> {
        Lists {
            outer: recycle(self.outer),
            metadata: recycle(self.metadata),
            data: recycle(self.data),
            old: recycle(self.old),
        }
    }
}

impl Dms {
    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let Dms { scratch, rows, lists } = self;
        let mut scratch = scratch.scratch(message.value.map_or(0, <[u8]>::len) * 3 + 4096);
        let mut rows_now = std::mem::take(rows).recycled();
        let mut lists_now = std::mem::take(lists).recycled();
        let mut reader = Reader { options, message, scratch: &mut scratch, rows: &mut rows_now };
        let read = reader.read(&mut lists_now);
        rows_now.finish(read, scratch.overflowed(), message, sink);
        (*rows, *lists) = (rows_now.recycled(), lists_now.recycled());
    }
}

/// Whether a message is one of DMS.
pub fn looks_like(text: &str) -> bool {
    let Some(Raw::Nested { text: metadata, .. }) = json::member(text, "metadata") else { return false };
    let kind = json::member(metadata, "record-type");
    let operation = json::member(metadata, "operation");
    let known = matches!(kind, Some(Raw::Text(RawText { text: "data" | "control", .. })));
    known && matches!(operation, Some(Raw::Text(_)))
}

struct Reader<'r, 'a> {
    options: &'r FormatOptions,
    message: &'r Message<'a>,
    scratch: &'r mut Scratch<'a>,
    rows: &'r mut Rows<'a>,
}

impl<'a> Reader<'_, 'a> {
    fn read(&mut self, lists: &mut Lists<'a>) -> Result<Option<&'static str>, Reject> {
        let Some(text) = json::value_text(self.message.value)? else {
            return Ok(Some(crate::format::TOMBSTONE_WITHOUT_KEY));
        };
        json::members(text, &mut lists.outer)?;
        let Lists { outer, metadata, .. } = lists;
        if object(outer, "metadata", 0, metadata)?.is_none() {
            return Err(Reject::new("there is no `metadata`")
                .hint("this is no message of DMS; --format json reads plain objects"));
        }
        if let Some("control") = self.text(metadata, "record-type") {
            return Ok(Some("control"));
        }
        let code = self.text(metadata, "operation").unwrap_or("");
        let op = match code {
            "load" => Op::Read,
            "insert" => Op::Insert,
            "update" => Op::Update,
            "delete" => Op::Delete,
            other => {
                return Err(Reject::new(format!("unknown operation `{}`", shortened(other)))
                    .hint("those of DMS are load, insert, update and delete"));
            }
        };
        let mut change = Change::new(op);
        change.source = SourceRef {
            schema: self.text(metadata, "schema-name").filter(|s| !s.is_empty()),
            table: self.text(metadata, "table-name"),
            ..SourceRef::default()
        };
        change.table = table_name(&change.source, self.scratch);
        change.snapshot = op == Op::Read;
        change.times = Times {
            source: self.time(metadata, "commit-timestamp"),
            connector: self.time(metadata, "timestamp"),
            broker: self.message.broker_time,
        };
        change.transaction_id = self.text(metadata, "transaction-id").filter(|t| !t.is_empty());
        let (fields, before) = self.images(lists, op)?;
        let row = Row { change, code, fields, before, key: 0..0 };
        self.rows.push(self.options, self.message, row, self.scratch)?;
        Ok(None)
    }

    /// The columns of the row and those of the old one.
    fn images(&mut self, lists: &mut Lists<'a>, op: Op) -> Result<(Range<usize>, Range<usize>), Reject> {
        let Lists { outer, data, old, .. } = lists;
        let Some(base) = object(outer, "data", 0, data)? else {
            return Err(Reject::new("there is no `data`"));
        };
        old.clear();
        let beside = object(outer, BEFORE_IMAGE, 0, old)?;
        let inside =
            data.iter().any(|m| m.name.text == BEFORE_IMAGE && matches!(m.value, Raw::Nested { .. }));
        let mut old_base = beside.unwrap_or(0);
        if inside && old.is_empty() {
            old_base = object(data, BEFORE_IMAGE, base, old)?.unwrap_or(0);
        }
        if inside {
            data.retain(|m| m.name.text != BEFORE_IMAGE);
        }
        take_old_columns(data, old, &mut old_base, base, op);
        let fields = self.columns(data, base)?;
        let mut before = self.columns(old, old_base)?;
        if fields.is_empty() && before.is_empty() {
            return Err(Reject::new("`data` has no columns"));
        }
        if op == Op::Insert || op == Op::Read {
            before = 0..0;
        }
        Ok((fields, before))
    }

    fn columns(&mut self, members: &[Member<'a>], base: usize) -> Result<Range<usize>, Reject> {
        let from = self.rows.columns.len();
        columns(members, base, self.scratch, &mut self.rows.columns, |_, _, m, scratch| {
            untyped_cell(&m.value, scratch)
        })?;
        Ok(from..self.rows.columns.len())
    }

    fn text(&mut self, members: &[Member<'a>], name: &str) -> Option<&'a str> {
        match Block(members).raw(name)? {
            Raw::Text(t) => Some(t.resolve(self.scratch)),
            Raw::Number(text) => Some(text),
            _ => None,
        }
    }

    fn time(&mut self, members: &[Member<'a>], name: &str) -> Option<i64> {
        match time_text::parse(self.text(members, name)?)? {
            TimeText::Instant(t) => Some(t.us),
            // The times of DMS are UTC.
            TimeText::Local(t) => Some(t.us),
            TimeText::Date(_) => None,
        }
    }
}

/// Lists the members of an object that is a member; where it begins.
fn object<'a>(
    members: &[Member<'a>],
    name: &str,
    base: usize,
    out: &mut Vec<Member<'a>>,
) -> Result<Option<usize>, Reject> {
    out.clear();
    match members.iter().find(|m| m.name.text == name) {
        Some(Member { value: Raw::Nested { text, .. }, at, .. }) if text.starts_with('{') => {
            json::members(text, out).map_err(|e| Reject::from(e).at(base + at + e.at))?;
            Ok(Some(base + at))
        }
        None | Some(Member { value: Raw::Null, .. }) => Ok(None),
        Some(m) => Err(Reject::new(format!("`{name}` is no object")).at(base + m.at)),
    }
}

/// Columns of the old row stand among the others, with a prefix. They are what they look like where one of
/// them stands beside the column it belongs to, as at least the key does. An insert has no old row: there
/// they are NULL, and anything else is a column of the table.
fn take_old_columns<'a>(
    data: &mut Vec<Member<'a>>,
    old: &mut Vec<Member<'a>>,
    old_base: &mut usize,
    base: usize,
    op: Op,
) {
    let stem = |m: &Member<'a>| m.name.text.strip_prefix(OLD).filter(|n| !n.is_empty());
    let paired = data.iter().filter_map(stem).any(|stem| data.iter().any(|m| m.name.text == stem));
    if !paired {
        return;
    }
    if matches!(op, Op::Insert | Op::Read) {
        return data.retain(|m| stem(m).is_none() || m.value != Raw::Null);
    }
    if old.is_empty() {
        *old_base = base;
        old.extend(data.iter().filter_map(|m| {
            let name = RawText { text: stem(m)?, ..m.name };
            Some(Member { name, ..*m })
        }));
    }
    data.retain(|m| stem(m).is_none());
}
