//! Striim's change events as JSON: what is said about an operation, the row, and the old row.

use super::block::Block;
use super::declare::zoned;
use super::fields::{Reject, columns, shortened, untyped_cell};
use super::json::{self, Member, Raw};
use super::options::{FormatOptions, OpWord};
use super::rows::{Row, Rows};
use super::scratch::{Scratch, ScratchBuffer};
use super::time_text::{self, TimeText};
use crate::change::{Change, Column, Message, Sink, SourceRef, Times, Token};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;
use std::ops::Range;

/// Operations that are no rows, and what they are counted as.
const OTHERS: [(&str, &str); 7] = [
    ("BEGIN", "transaction"),
    ("COMMIT", "transaction"),
    ("ROLLBACK", "transaction"),
    ("CREATE", "schema_change"),
    ("ALTER", "schema_change"),
    ("DROP", "schema_change"),
    ("RENAME", "schema_change"),
];

/// Decodes Striim's JSON.
#[derive(Debug, Default)]
pub struct Striim {
    scratch: ScratchBuffer,
    rows: Rows<'static>,
    lists: Lists<'static>,
}

#[derive(Debug, Default)]
struct Lists<'a> {
    outer: Vec<Member<'a>>,
    metadata: Vec<Member<'a>>,
    members: Vec<Member<'a>>,
}

impl<'a> Lists<'a> {
    fn recycled<'b>(self) -> Lists<'b> {
        Lists { outer: recycle(self.outer), metadata: recycle(self.metadata), members: recycle(self.members) }
    }
}

impl Striim {
    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let Striim { scratch, rows, lists } = self;
        let mut scratch = scratch.scratch(message.value.map_or(0, <[u8]>::len) * 3 + 4096);
        let mut rows_now = std::mem::take(rows).recycled();
        let mut lists_now = std::mem::take(lists).recycled();
        let mut reader = Reader { options, message, scratch: &mut scratch, rows: &mut rows_now };
        let read = reader.read(&mut lists_now);
        rows_now.finish(read, scratch.overflowed(), message, sink);
        *lists = lists_now.recycled();
        *rows = rows_now.recycled();
    }
}

/// Whether a message is one of Striim.
pub fn looks_like(text: &str) -> bool {
    let (mut outer, mut metadata) = (Vec::new(), Vec::new());
    let Ok(()) = json::members(text, &mut outer) else { return false };
    let Some(Raw::Nested { text, .. }) = Block(&outer).raw("metadata") else { return false };
    let listed = text.starts_with('{') && json::members(text, &mut metadata).is_ok();
    let data = Block(&outer).raw("data").is_some();
    listed && data && matches!(Block(&metadata).raw("OperationName"), Some(Raw::Text(_)))
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
            return Ok(Some(super::TOMBSTONE_WITHOUT_KEY));
        };
        let Lists { outer, metadata, members } = lists;
        json::members(text, outer)?;
        let found = outer.iter().find(|m| m.name.text == "metadata");
        let Some((Raw::Nested { text, .. }, at)) = found
            .map(|m| (m.value, m.at))
            .filter(|(v, _)| matches!(v, Raw::Nested { text, .. } if text.starts_with('{')))
        else {
            return Err(Reject::new("the message has no object `metadata`")
                .hint("this is no message of Striim; --format json reads plain objects"));
        };
        json::members(text, metadata).map_err(|e| Reject::from(e).at(at + e.at))?;
        let Some(code) = self.text(metadata, "OperationName") else {
            return Err(Reject::new("there is no operation (`metadata.OperationName`)"));
        };
        if let Some((_, kind)) = OTHERS.iter().find(|(word, _)| code.eq_ignore_ascii_case(word)) {
            return Ok(Some(kind));
        }
        let op = operation(self.options, code)?;
        let Some(table) = self.text(metadata, "TableName").filter(|t| !t.is_empty()) else {
            return Err(Reject::new("the operation names no table (`metadata.TableName`)"));
        };
        let mut change = Change::new(op);
        change.full = op != Op::Update;
        change.table = Some(table);
        change.source = SourceRef::of_dotted(table);
        change.times =
            Times { source: self.time(metadata), connector: None, broker: self.message.broker_time };
        change.transaction_id = self.text(metadata, "TxnID").filter(|x| !x.is_empty());
        change.token = self.token(metadata);
        let (mut fields, before) = match op {
            Op::Truncate => (0..0, 0..0),
            _ => (self.image(outer, members, "data")?, self.image(outer, members, "before")?),
        };
        // The row that a delete ends stands in `data`, in `before`, or in both.
        if op == Op::Delete && fields.is_empty() {
            fields = before.clone();
        }
        if fields.is_empty() && op != Op::Truncate {
            return Err(Reject::new(format!("an operation of kind {} without columns", op.word())));
        }
        let before = if op == Op::Update { self.completed(&fields, before) } else { 0..0 };
        let row = Row { change, code, fields, before, key: 0..0 };
        self.rows.push(self.options, self.message, row, self.scratch)?;
        Ok(None)
    }

    /// An old row with the columns of the new one that it does not have: they did not change.
    fn completed(&mut self, fields: &Range<usize>, before: Range<usize>) -> Range<usize> {
        if before.is_empty() {
            return before;
        }
        let all = &mut self.rows.columns;
        let from = all.len();
        all.extend_from_within(before);
        let old = all.len();
        for i in fields.clone() {
            let column = all[i];
            if !all[from..old].iter().any(|c| c.name == column.name) {
                all.push(column);
            }
        }
        from..all.len()
    }

    /// The columns of a row: an object, or values whose names `--header` says.
    fn image(
        &mut self,
        outer: &[Member<'a>],
        members: &mut Vec<Member<'a>>,
        name: &str,
    ) -> Result<Range<usize>, Reject> {
        let Some(member) = outer.iter().find(|m| m.name.text == name) else { return Ok(0..0) };
        let text = match member.value {
            Raw::Null => return Ok(0..0),
            Raw::Nested { text, .. } => text,
            _ => return Err(Reject::new(format!("`{name}` is no object and no array")).at(member.at)),
        };
        members.clear();
        let from = self.rows.columns.len();
        if text.starts_with('{') {
            json::members(text, members).map_err(|e| Reject::from(e).at(member.at + e.at))?;
            columns(members, member.at, self.scratch, &mut self.rows.columns, |_, _, m, scratch| {
                untyped_cell(&m.value, scratch)
            })?;
        } else {
            json::elements(text, members).map_err(|e| Reject::from(e).at(member.at + e.at))?;
            self.positional(members, member, name)?;
        }
        Ok(from..self.rows.columns.len())
    }

    fn positional(&mut self, values: &[Member<'a>], member: &Member<'a>, name: &str) -> Result<(), Reject> {
        let Some(names) = self.options.header.as_deref() else {
            return Err(Reject::new(format!("`{name}` has values without names"))
                .at(member.at)
                .hint("--header names the columns, as in --header id,name"));
        };
        if names.len() != values.len() {
            let reason = format!("`{name}` has {} values for {} columns", values.len(), names.len());
            return Err(Reject::new(reason).at(member.at).hint("--header names the columns"));
        }
        for (column, value) in names.iter().zip(values) {
            let column = self.scratch.put(column.as_bytes());
            let cell = untyped_cell(&value.value, self.scratch)?;
            // What was a text is one again.
            let column = std::str::from_utf8(column).unwrap_or_default();
            self.rows.columns.push(Column { name: column, cell });
        }
        Ok(())
    }

    fn text(&mut self, members: &[Member<'a>], name: &str) -> Option<&'a str> {
        match Block(members).raw(name)? {
            Raw::Text(t) => Some(t.resolve(self.scratch)),
            Raw::Number(text) => Some(text),
            _ => None,
        }
    }

    /// When the transaction was committed: milliseconds, or a text; one without a zone is in the declared one.
    fn time(&mut self, metadata: &[Member<'a>]) -> Option<i64> {
        let text = self.text(metadata, "CommitTimestamp")?.trim();
        if let Ok(ms) = text.parse::<i64>() {
            return ms.checked_mul(1_000).filter(|us| *us > 0);
        }
        match time_text::parse(text)? {
            TimeText::Instant(t) => Some(t.us),
            TimeText::Local(t) => zoned(t.us, self.options),
            TimeText::Date(_) => None,
        }
    }

    /// The change number in Oracle's log. Positions of other logs are not compared.
    fn token(&mut self, metadata: &[Member<'a>]) -> Option<Token<'a>> {
        let text = self.text(metadata, "SCN")?;
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let position: u128 = if digits { text.parse().ok()? } else { 0 };
        let bytes = position.to_be_bytes();
        (position > 0).then(|| Token { server: "striim", position: self.scratch.put(&bytes) })
    }
}

fn operation(options: &FormatOptions, code: &str) -> Result<Op, Reject> {
    let mapped = options.op_map.iter().find(|(word, _)| word == code).map(|(_, op)| *op);
    let known = || OpWord::from_word(&code.to_ascii_lowercase());
    match mapped.or_else(known) {
        Some(OpWord::Op(op)) => Ok(op),
        _ => Err(Reject::new(format!("unknown operation `{}`", shortened(code)))
            .hint("Striim's are INSERT, UPDATE and DELETE; --op-map says what others mean")),
    }
}

#[cfg(test)]
#[path = "striim_tests.rs"]
mod tests;
