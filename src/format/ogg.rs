//! Oracle GoldenGate's JSON: one operation with its images, or one row at the level of its metadata.
//! Updates are compressed: a column that is not sent keeps its value.

use super::block::Block;
use super::declare::zoned;
use super::fields::{Reject, columns, shortened, untyped_cell};
use super::json::{self, Member, Raw, RawText};
use super::options::{FormatOptions, OpWord};
use super::rows::{Row, Rows};
use super::scratch::{Scratch, ScratchBuffer};
use super::time_text::{self, TimeText};
use crate::change::{Change, Message, Sink, SourceRef, Times, Token};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;
use std::ops::Range;

/// What the formatter says about an operation; in the row format all other members are columns.
const METADATA: [&str; 9] =
    ["table", "op_type", "op_ts", "current_ts", "pos", "primary_keys", "tokens", "csn", "xid"];
/// What the name of a flag ends with that says whether its column was sent.
const FLAG: &str = "_isMissing";

/// Decodes GoldenGate's JSON.
#[derive(Debug, Default)]
pub struct Ogg {
    scratch: ScratchBuffer,
    rows: Rows<'static>,
    lists: Lists<'static>,
}

#[derive(Debug, Default)]
struct Lists<'a> {
    outer: Vec<Member<'a>>,
    members: Vec<Member<'a>>,
    key: Vec<Member<'a>>,
}

impl Ogg {
    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let Ogg { scratch, rows, lists } = self;
        let mut scratch = scratch.scratch(message.value.map_or(0, <[u8]>::len) * 3 + 4096);
        let mut rows_now = std::mem::take(rows).recycled();
        let Lists { outer, members, key } = std::mem::take(lists);
        let mut lists_now = Lists { outer: recycle(outer), members: recycle(members), key: recycle(key) };
        let mut reader = Reader { options, message, scratch: &mut scratch, rows: &mut rows_now };
        let read = reader.read(&mut lists_now);
        rows_now.finish(read, scratch.overflowed(), message, sink);
        let Lists { outer, members, key } = lists_now;
        *lists = Lists { outer: recycle(outer), members: recycle(members), key: recycle(key) };
        *rows = rows_now.recycled();
    }
}

/// Whether a message is one of GoldenGate.
pub fn looks_like(text: &str) -> bool {
    let mut members = Vec::new();
    let listed = json::members(text, &mut members).is_ok();
    let is_text = |name: &str| matches!(Block(&members).raw(name), Some(Raw::Text(_)));
    listed && ["table", "op_type", "op_ts", "pos"].into_iter().all(is_text)
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
        json::members(text, &mut lists.outer)?;
        let Some(code) = self.text(&lists.outer, "op_type") else {
            return Err(Reject::new("there is no operation (`op_type`)")
                .hint("this is no message of GoldenGate; --format json reads plain objects"));
        };
        let op = operation(self.options, code)?;
        let Some(table) = self.text(&lists.outer, "table").filter(|t| !t.is_empty()) else {
            return Err(Reject::new("the operation names no table (`table`)"));
        };
        lists.key.clear();
        if let Some(Raw::Nested { text, .. }) = Block(&lists.outer).raw("primary_keys") {
            json::elements(text, &mut lists.key)?;
        }
        let mut change = Change::new(op);
        change.full = op != Op::Update;
        change.table = Some(table);
        change.source = SourceRef::of_dotted(table);
        change.snapshot = op == Op::Read;
        change.times = Times {
            source: self.time(&lists.outer, "op_ts"),
            connector: self.time(&lists.outer, "current_ts"),
            broker: self.message.broker_time,
        };
        change.transaction_id = self.text(&lists.outer, "xid").filter(|x| !x.is_empty());
        change.token = self.token(&lists.outer);
        let (fields, before) = if op == Op::Truncate { (0..0, 0..0) } else { self.images(lists, op)? };
        let key = self.key(lists, &fields);
        let row = Row { change, code, fields, before, key };
        self.rows.push(self.options, self.message, row, self.scratch)?;
        Ok(None)
    }

    /// The columns of the row and those of the old one.
    fn images(&mut self, lists: &mut Lists<'a>, op: Op) -> Result<(Range<usize>, Range<usize>), Reject> {
        let object = |name| matches!(Block(&lists.outer).raw(name), Some(Raw::Nested { text, .. }) if text.starts_with('{'));
        let image = |m: &Member<'_>| matches!(m.name.text, "before" | "after");
        let only_metadata = lists.outer.iter().all(|m| METADATA.contains(&m.name.text) || image(m));
        let mut before = 0..0;
        let mut row = if object("before") || object("after") || only_metadata {
            before = self.image(lists, "before")?;
            self.image(lists, "after")?
        } else {
            let Lists { outer, members, .. } = lists;
            members.clear();
            members.extend(outer.iter().filter(|m| !METADATA.contains(&m.name.text)));
            self.columns(members, 0)?
        };
        if op == Op::Delete && !before.is_empty() {
            row = before.clone();
        }
        if row.is_empty() {
            return Err(Reject::new(format!("an operation of kind {} without columns", op.word())));
        }
        if op == Op::Update && !before.is_empty() {
            before = self.whole_key(lists, &row, before);
        }
        Ok((row, before))
    }

    fn image(&mut self, lists: &mut Lists<'a>, name: &str) -> Result<Range<usize>, Reject> {
        let Lists { outer, members, .. } = lists;
        let Some(member) = outer.iter().find(|m| m.name.text == name) else { return Ok(0..0) };
        match member.value {
            Raw::Null => Ok(0..0),
            Raw::Nested { text, .. } if text.starts_with('{') => {
                members.clear();
                json::members(text, members).map_err(|e| Reject::from(e).at(member.at + e.at))?;
                self.columns(members, member.at)
            }
            _ => Err(Reject::new(format!("`{name}` is no object")).at(member.at)),
        }
    }

    /// Reads columns without those that are flagged as missing, and without the flags.
    fn columns(&mut self, members: &mut Vec<Member<'a>>, base: usize) -> Result<Range<usize>, Reject> {
        if members.iter().any(|m| m.name.text.ends_with(FLAG)) {
            without_missing(members);
        }
        let from = self.rows.columns.len();
        columns(members, base, self.scratch, &mut self.rows.columns, |_, _, m, scratch| {
            untyped_cell(&m.value, scratch)
        })?;
        Ok(from..self.rows.columns.len())
    }

    /// An old row that has some columns of the key has the others too: they did not change.
    fn whole_key(&mut self, lists: &Lists<'a>, row: &Range<usize>, before: Range<usize>) -> Range<usize> {
        let all = &mut self.rows.columns;
        let name = |m: &Member<'a>| if let Raw::Text(t) = m.value { t.text } else { "" };
        let old =
            |all: &[crate::change::Column<'_>], n: &str| all[before.clone()].iter().any(|c| c.name == n);
        if !lists.key.iter().any(|k| old(all, name(k))) {
            return before;
        }
        let from = all.len();
        all.extend_from_within(before.clone());
        for key in lists.key.iter().map(name).filter(|k| !old(all, k)).collect::<Vec<_>>() {
            let now = all[row.clone()].iter().find(|c| c.name == key).copied();
            all.extend(now);
        }
        from..all.len()
    }

    /// The columns of the primary key, if the row has all of them.
    fn key(&mut self, lists: &Lists<'a>, fields: &Range<usize>) -> Range<usize> {
        let from = self.rows.columns.len();
        for name in &lists.key {
            let name = if let Raw::Text(t) = name.value { t.resolve(self.scratch) } else { "" };
            let column = self.rows.columns[fields.clone()].iter().find(|c| c.name == name).copied();
            let Some(column) = column else {
                self.rows.columns.truncate(from);
                break;
            };
            self.rows.columns.push(column);
        }
        from..self.rows.columns.len()
    }

    fn text(&mut self, members: &[Member<'a>], name: &str) -> Option<&'a str> {
        match Block(members).raw(name)? {
            Raw::Text(t) => Some(t.resolve(self.scratch)),
            Raw::Number(text) => Some(text),
            _ => None,
        }
    }

    /// A time; one without a zone is in the declared one.
    fn time(&mut self, members: &[Member<'a>], name: &str) -> Option<i64> {
        match time_text::parse(self.text(members, name)?.trim())? {
            TimeText::Instant(t) => Some(t.us),
            TimeText::Local(t) => zoned(t.us, self.options),
            TimeText::Date(_) => None,
        }
    }

    /// Sequence and offset in the trail, as one number: texts of several lengths are compared.
    fn token(&mut self, members: &[Member<'a>]) -> Option<Token<'a>> {
        let (Raw::Text(RawText { text, escaped: false }) | Raw::Number(text)) = Block(members).raw("pos")?
        else {
            return None;
        };
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let position: u128 = if digits { text.parse().ok()? } else { 0 };
        let bytes = position.to_be_bytes();
        (position > 0).then(|| Token { server: "goldengate", position: self.scratch.put(&bytes) })
    }
}

fn operation(options: &FormatOptions, code: &str) -> Result<Op, Reject> {
    let mapped = options.op_map.iter().find(|(word, _)| word == code).map(|(_, op)| *op);
    match mapped.or_else(|| OpWord::from_word(code)) {
        Some(OpWord::Op(op)) => Ok(op),
        _ => Err(Reject::new(format!("unknown operation `{}`", shortened(code)))
            .hint("GoldenGate's are I, U, D and T; --op-map says what others mean")),
    }
}

/// Drops flags, and columns that are flagged as not sent (`includeIsMissingFields`).
fn without_missing(members: &mut Vec<Member<'_>>) {
    let all = members.clone();
    let flag = |name: &str| {
        let flagged = |m: &&Member<'_>| m.name.text.strip_suffix(FLAG) == Some(name);
        all.iter().find(flagged).map(|m| m.value)
    };
    let column = |name: &str| all.iter().any(|m| m.name.text == name);
    members.retain(|m| {
        let is_flag = matches!(m.value, Raw::Bool(_)) && m.name.text.strip_suffix(FLAG).is_some_and(column);
        !is_flag && flag(m.name.text) != Some(Raw::Bool(true))
    });
}

#[cfg(test)]
#[path = "ogg_tests.rs"]
mod tests;
