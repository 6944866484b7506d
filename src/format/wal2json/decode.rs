//! Messages of either format to rows.

use super::{one, two};
use crate::change::{Change, Column, Decoded, Message, Sink, SourceRef, Times, Token};
use crate::format::block::table_name;
use crate::format::fields::{Reject, columns, shortened};
use crate::format::json::{self, Member, Raw, RawText};
use crate::format::options::FormatOptions;
use crate::format::rows::{Row, Rows};
use crate::format::scratch::{Scratch, ScratchBuffer};
use crate::format::time_text::{self, TimeText};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Decodes wal2json. What it remembers between messages is the transaction that format 2 has begun.
#[derive(Debug, Default)]
pub struct Wal2Json {
    scratch: ScratchBuffer,
    rows: Rows<'static>,
    lists: Lists<'static>,
    open: Option<Transaction>,
}

/// A transaction as its beginning or the object around it says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Commit time, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<i64>,
    /// Where the log goes on behind its commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
    /// Its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xid: Option<String>,
    /// Rows of it so far.
    pub rows: u64,
}

/// Buffers for the parts of a row.
#[derive(Debug, Default)]
pub struct Lists<'a> {
    pub outer: Vec<Member<'a>>,
    pub inner: Vec<Member<'a>>,
    pub parts: Vec<Member<'a>>,
    /// Names and values of columns, and their types.
    pub members: Vec<Member<'a>>,
    pub types: Vec<&'a str>,
    pub key: Vec<&'a str>,
}

impl<'a> Lists<'a> {
    fn recycled<'b>(self) -> Lists<'b> {
        Lists {
            outer: recycle(self.outer),
            inner: recycle(self.inner),
            parts: recycle(self.parts),
            members: recycle(self.members),
            types: recycle(self.types),
            key: recycle(self.key),
        }
    }
}

/// What a message is beside rows.
pub type Step = Result<Option<&'static str>, Reject>;

impl Wal2Json {
    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let Wal2Json { scratch, rows, lists, open } = self;
        let mut scratch = scratch.scratch(message.value.map_or(0, <[u8]>::len) * 3 + 4096);
        let mut rows_now = std::mem::take(rows).recycled();
        let mut lists_now = std::mem::take(lists).recycled();
        let mut reader = Reader { options, message, scratch: &mut scratch, rows: &mut rows_now };
        match reader.read(&mut lists_now, open) {
            _ if scratch.overflowed() => {
                sink(Decoded::Quarantine(Reject::new("the message needs more room than it should").fault()));
            }
            Ok(Some(kind)) => sink(Decoded::Ignored(kind)),
            Ok(None) => rows_now.hand_out(message, sink),
            Err(reject) => sink(Decoded::Quarantine(reject.fault())),
        }
        (*rows, *lists) = (rows_now.recycled(), lists_now.recycled());
    }

    /// What has to be known to go on after the last message.
    pub fn state(&self) -> Option<&Transaction> {
        self.open.as_ref()
    }

    /// Goes on after a message with what [`Self::state`] said then.
    pub fn resume(&mut self, state: Transaction) {
        self.open = Some(state);
    }
}

/// Whether a message is one of wal2json.
pub fn looks_like(text: &str) -> bool {
    let mut members = Vec::new();
    if json::members(text, &mut members).is_err() {
        return false;
    }
    let value = |name: &str| members.iter().find(|m| m.name.text == name).map(|m| m.value);
    let only = |names: &[&str]| members.iter().all(|m| names.contains(&m.name.text));
    let list = |name: &str| matches!(value(name), Some(Raw::Nested { text, .. }) if text.starts_with('['));
    let text = |name: &str| matches!(value(name), Some(Raw::Text(_)));
    match value("action") {
        None => list("change") && only(&["change", "xid", "nextlsn", "timestamp", "origin"]),
        Some(Raw::Text(RawText { text: "B" | "C", .. })) => {
            only(&["action", "xid", "timestamp", "origin", "lsn", "nextlsn"])
        }
        Some(Raw::Text(RawText { text: "I" | "U" | "D", .. })) => {
            text("table") && (list("columns") || list("identity"))
        }
        Some(Raw::Text(RawText { text: "T", .. })) => {
            only(&["action", "xid", "timestamp", "origin", "lsn", "schema", "table"]) && text("table")
        }
        Some(Raw::Text(RawText { text: "M", .. })) => {
            matches!(value("transactional"), Some(Raw::Bool(_))) && text("prefix")
        }
        Some(_) => false,
    }
}

/// What reading a message needs.
pub struct Reader<'r, 'a> {
    pub options: &'r FormatOptions,
    pub message: &'r Message<'a>,
    pub scratch: &'r mut Scratch<'a>,
    pub rows: &'r mut Rows<'a>,
}

/// A row with its columns among those of the reader.
#[derive(Debug)]
pub struct Parts<'a> {
    pub op: Op,
    pub schema: Option<&'a str>,
    pub table: &'a str,
    pub columns: Range<usize>,
    pub identity: Range<usize>,
}

impl<'a> Reader<'_, 'a> {
    fn read(&mut self, lists: &mut Lists<'a>, open: &mut Option<Transaction>) -> Step {
        let text = match self.message.value {
            Some(value) => json::message_text(value)?,
            None => "null",
        };
        if text.trim_ascii() == "null" {
            return Ok(Some(crate::format::TOMBSTONE_WITHOUT_KEY));
        }
        json::members(text, &mut lists.outer).map_err(|e| {
            let hint = "a transaction that write-in-chunks has split cannot be read line by line; \
                        format-version 2 has one line a change";
            let part = text.trim_start().trim_start_matches(',').trim_start();
            let chunk = part.starts_with("{\"change\"") || part.starts_with("{\"kind\"") || part == "]}";
            Reject { hint: if chunk { hint } else { "" }, ..Reject::from(e) }
        })?;
        let has = |name: &str| lists.outer.iter().any(|m| m.name.text == name);
        if has("action") {
            two::read(self, lists, open)
        } else if has("change") {
            one::read(self, lists)
        } else {
            Err(Reject::new("there is neither `change` nor `action`")
                .hint("this is no message of wal2json; --format json reads plain objects"))
        }
    }

    /// Appends what `lists` has as columns of the reader.
    pub fn columns(&mut self, lists: &Lists<'a>, base: usize) -> Result<Range<usize>, Reject> {
        let from = self.rows.columns.len();
        columns(&lists.members, base, self.scratch, &mut self.rows.columns, |i, _, m, scratch| {
            super::typed::cell(lists.types.get(i).copied().unwrap_or(""), &m.value, scratch)
        })?;
        Ok(from..self.rows.columns.len())
    }

    /// Adds a row. `own` is a position of the row itself.
    pub fn push(
        &mut self,
        mut parts: Parts<'a>,
        key: &[&'a str],
        transaction: &mut Transaction,
        own: Option<u64>,
    ) -> Result<(), Reject> {
        let op = parts.op;
        if op == Op::Update {
            self.keep_unchanged(&mut parts);
        }
        let fields = match op {
            Op::Delete => parts.identity.clone(),
            Op::Truncate => 0..0,
            _ => parts.columns.clone(),
        };
        if fields.is_empty() && op != Op::Truncate {
            return Err(Reject::new(format!("a change of kind {} without columns", op.word()))
                .hint("the table needs a primary key, or REPLICA IDENTITY FULL"));
        }
        let key = self.key(key, &fields);
        let mut change = Change::new(op);
        change.full = op != Op::Update;
        change.source = SourceRef { schema: parts.schema, table: Some(parts.table), ..SourceRef::default() };
        change.table = table_name(&change.source, self.scratch);
        change.times = Times { source: transaction.time, connector: None, broker: self.message.broker_time };
        change.transaction_id = transaction.xid.as_ref().map(|x| self.scratch.put_str(|out| out.push_str(x)));
        change.token = self.token(transaction, own);
        transaction.rows += 1;
        let code = op.word();
        let row = Row { change, code, fields, before: parts.identity, key };
        self.rows.push(self.options, self.message, row, self.scratch)
    }

    /// A large value that did not change is not among the columns; the old row brings it under REPLICA
    /// IDENTITY FULL.
    fn keep_unchanged(&mut self, parts: &mut Parts<'a>) {
        let all = &mut self.rows.columns;
        let kept: Vec<Column<'a>> = {
            let (now, old) = (&all[parts.columns.clone()], &all[parts.identity.clone()]);
            let sent = |(i, c): (usize, &Column<'a>)| {
                now.get(i).is_some_and(|n| n.name == c.name) || now.iter().any(|n| n.name == c.name)
            };
            old.iter().enumerate().filter(|c| !sent(*c)).map(|(_, c)| *c).collect()
        };
        if parts.columns.end == all.len() {
            all.extend(kept);
            parts.columns.end = all.len();
        }
    }

    /// The columns of the primary key, if the row has all of them.
    fn key(&mut self, names: &[&'a str], fields: &Range<usize>) -> Range<usize> {
        let from = self.rows.columns.len();
        for name in names {
            let Some(c) = self.rows.columns[fields.clone()].iter().find(|c| c.name == *name).copied() else {
                self.rows.columns.truncate(from);
                break;
            };
            self.rows.columns.push(c);
        }
        from..self.rows.columns.len()
    }

    /// The end of the transaction and the number of the row in it. Where nothing is known of the transaction,
    /// the row's own position, in a log of its own: it does not compare with the others.
    fn token(&mut self, transaction: &Transaction, own: Option<u64>) -> Option<Token<'a>> {
        if let Some(end) = transaction.end {
            let position = [end.to_be_bytes(), transaction.rows.to_be_bytes()].concat();
            return Some(Token { server: "wal2json", position: self.scratch.put(&position) });
        }
        own.map(|own| Token { server: "wal2json/rows", position: self.scratch.put(&own.to_be_bytes()) })
    }
}

/// A text member; an error where it is something else.
pub fn text<'a>(
    members: &[Member<'a>],
    name: &str,
    scratch: &mut Scratch<'a>,
) -> Result<Option<&'a str>, Reject> {
    match members.iter().find(|m| m.name.text == name).map(|m| m.value) {
        None | Some(Raw::Null) => Ok(None),
        Some(Raw::Text(t)) => Ok(Some(t.resolve(scratch))),
        Some(_) => Err(Reject::new(format!("`{name}` is not a text"))),
    }
}

/// What a message says of its transaction.
pub fn transaction<'a>(members: &[Member<'a>], options: &FormatOptions) -> Transaction {
    let word = |name: &str| match members.iter().find(|m| m.name.text == name).map(|m| m.value) {
        Some(Raw::Number(text) | Raw::Text(RawText { text, escaped: false })) => Some(text),
        _ => None,
    };
    let time = match word("timestamp").and_then(time_text::parse) {
        Some(TimeText::Instant(t)) => Some(t.us),
        Some(TimeText::Local(t)) => crate::format::declare::zoned(t.us, options),
        _ => None,
    };
    let xid = word("xid").filter(|x| !x.is_empty()).map(str::to_owned);
    Transaction { time, end: word("nextlsn").and_then(position), xid, rows: 0 }
}

/// A position in the log, `X/Y` in hexadecimal digits; 0 is none.
pub fn position(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let half = |t: &str| {
        let digits = !t.is_empty() && t.len() <= 8 && t.bytes().all(|b| b.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(t, 16).ok()).flatten()
    };
    Some(half(high)? << 32 | half(low)?).filter(|p| *p > 0)
}

/// What is wrong with an operation.
pub fn unknown(kind: &str) -> Reject {
    Reject::new(format!("unknown operation `{}`", shortened(kind)))
        .hint("wal2json has insert, update, delete, truncate and message, or I, U, D, T, M, B and C")
}
