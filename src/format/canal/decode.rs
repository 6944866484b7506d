//! Envelopes to changes.

use super::cell::cell;
use super::mysql_type::{TypeCache, Types};
use crate::change::{Column, Decoded, Message, Sink, SourceRef, Times, Token};
use crate::format::block::{Block, table_name, unique};
use crate::format::fields::{Reject, columns, shortened};
use crate::format::json::{self, Member, Raw};
use crate::format::options::{FormatOptions, TimeUnit};
use crate::format::row_buffer::{RowBuffer, RowHead};
use crate::format::scratch::{Scratch, ScratchBuffer};
use crate::format::tso::{Tso, tidb_token};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;
use std::sync::Arc;

/// Room for labels, beside that for what is sent.
const LABEL_BYTES_MAX: usize = 16 << 20;

/// Decodes Canal's messages. What it remembers between them are parsed types of columns.
#[derive(Debug, Default)]
pub struct Canal {
    scratch: ScratchBuffer,
    envelope: Vec<Member<'static>>,
    rows: RowBuffer<'static>,
    types: TypeCache,
}

/// What a message is about.
enum Kind {
    Rows(Op),
    Truncate,
    Ignored(&'static str),
}

fn kind(word: &str) -> Option<Kind> {
    Some(match word {
        "INSERT" => Kind::Rows(Op::Insert),
        "UPDATE" => Kind::Rows(Op::Update),
        "DELETE" => Kind::Rows(Op::Delete),
        "TRUNCATE" => Kind::Truncate,
        "CREATE" | "ALTER" | "ERASE" | "RENAME" | "CINDEX" | "DINDEX" | "QUERY" => Kind::Ignored("ddl"),
        "TIDB_WATERMARK" => Kind::Ignored("watermark"),
        "GTID" => Kind::Ignored("gtid"),
        "XACOMMIT" | "XAROLLBACK" => Kind::Ignored("xa"),
        "MHEARTBEAT" => Kind::Ignored("heartbeat"),
        _ => return None,
    })
}

/// `None` if a message is no envelope of Canal; else whether it has TiDB's extension.
pub fn extension(text: &str) -> Option<bool> {
    let mut members = Vec::new();
    json::members(text, &mut members).ok()?;
    let block = Block(&members);
    let Some(Raw::Text(word)) = block.raw("type") else { return None };
    let list = |name| match block.raw(name) {
        Some(Raw::Nested { text, .. }) => text.starts_with('['),
        _ => false,
    };
    let flagged = matches!(block.raw("isDdl"), Some(Raw::Bool(_)));
    let known = match kind(word.text) {
        Some(Kind::Rows(_)) => list("data"),
        Some(_) => flagged,
        None => flagged && block.raw("mysqlType").is_some(),
    };
    known.then_some(block.raw("_tidb").is_some())
}

impl Canal {
    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let Canal { scratch, envelope, rows, types } = self;
        let mut listed = recycle(std::mem::take(envelope));
        // Labels of types outlive the cells that are made of them.
        let found = list(message, &mut listed, types);
        let mut scratch = scratch.scratch(room(message, found.as_ref().ok()));
        let mut r = std::mem::take(rows).recycled();
        let step = match &found {
            Ok(Some(found)) => {
                let block = Block(&listed);
                Reader { options, message, block, types: found, scratch: &mut scratch, rows: &mut r }.read()
            }
            Ok(None) => Ok(Some(crate::format::TOMBSTONE_WITHOUT_KEY)),
            Err(reject) => Err(reject.clone()),
        };
        match step {
            _ if scratch.overflowed() => {
                sink(Decoded::Quarantine(Reject::new("the message needs more room than it should").fault()));
            }
            Ok(Some(kind)) => sink(Decoded::Ignored(kind)),
            Ok(None) => r.hand_out(message, sink),
            Err(reject) => sink(Decoded::Quarantine(reject.fault())),
        }
        *rows = r.recycled();
        *envelope = recycle(listed);
    }
}

/// Lists the members of an envelope and finds the types of its columns; `None` if there is no message.
fn list<'a>(
    message: &Message<'a>,
    envelope: &mut Vec<Member<'a>>,
    types: &mut TypeCache,
) -> Result<Option<Arc<Types>>, Reject> {
    let text = match message.value {
        Some(value) => json::message_text(value)?,
        None => "null",
    };
    if text.trim_ascii() == "null" {
        return match message.key.filter(|k| !k.is_empty()) {
            None => Ok(None),
            Some(_) => Err(Reject::new("a message without a value")
                .hint("Canal's record keys do not say which row it would be about")),
        };
    }
    json::members(text, envelope)?;
    unique(envelope, 0)?;
    types.get(Block(envelope).raw("mysqlType")).map(Some)
}

/// The scratch space a message can need: text without escapes, bytes, and labels instead of numbers.
fn room(message: &Message<'_>, types: Option<&Option<Arc<Types>>>) -> usize {
    let length = message.value.map_or(0, <[u8]>::len);
    let labels = types.and_then(Option::as_ref).map_or(0, |t| t.set_bytes());
    let values = memchr::memchr_iter(b':', message.value.unwrap_or(&[])).count();
    length * 3 + labels.saturating_mul(values).min(length * 4 + LABEL_BYTES_MAX) + 4096
}

struct Reader<'r, 'a> {
    options: &'r FormatOptions,
    message: &'r Message<'a>,
    block: Block<'r, 'a>,
    types: &'a Types,
    scratch: &'r mut Scratch<'a>,
    rows: &'r mut RowBuffer<'a>,
}

impl<'a> Reader<'_, 'a> {
    /// The kind under which the message is ignored, if it is.
    fn read(&mut self) -> Result<Option<&'static str>, Reject> {
        let word = match self.block.raw("type") {
            Some(Raw::Text(word)) => word.text,
            _ => {
                return Err(Reject::new("there is no type of message (`type`)")
                    .hint("this is no flat message of Canal; --format json reads plain objects"));
            }
        };
        let ddl = self.block.raw("isDdl") == Some(Raw::Bool(true));
        match kind(word) {
            Some(Kind::Rows(op)) => self.all_rows(op, word).map(|()| None),
            Some(Kind::Truncate) => self.truncate(word).map(|()| None),
            Some(Kind::Ignored("ddl")) if word == "QUERY" && !ddl => Ok(Some("query")),
            Some(Kind::Ignored(kind)) => Ok(Some(kind)),
            None if ddl => Ok(Some("ddl")),
            None => Err(Reject::new(format!("unknown type of message `{}`", shortened(word)))
                .hint("Canal's rows are INSERT, UPDATE and DELETE")),
        }
    }

    fn truncate(&mut self, word: &'a str) -> Result<(), Reject> {
        let head = self.head(Op::Truncate, word)?;
        if head.table.is_none() {
            return Err(Reject::new("a truncate that names no table"));
        }
        self.rows.close(self.options, self.message, &head, self.scratch)
    }

    fn all_rows(&mut self, op: Op, word: &'a str) -> Result<(), Reject> {
        let head = self.head(op, word)?;
        let Some((rows, at)) = self.list("data")? else {
            return Err(Reject::new(format!("a message of type {word} without `data`")));
        };
        let old = if op == Op::Update { self.list("old")? } else { None };
        let (old, old_at) = old.unwrap_or_default();
        let names = self.key_names()?;
        let (mut members, mut former) = (Vec::new(), Vec::new());
        for (i, row) in rows.iter().enumerate() {
            let base = at + row.at;
            let first = self.rows.row.len();
            read_row(row, base, self.types, &mut members, self.scratch, &mut self.rows.row)?;
            if self.rows.row.len() == first {
                return Err(Reject::new("a row has no columns").at(base));
            }
            self.rows.key_by_names(&names)?;
            if let Some(old) = old.get(i).filter(|o| o.value != Raw::Null) {
                former.clear();
                read_row(old, old_at + old.at, self.types, &mut members, self.scratch, &mut former)?;
                self.rows.before_of_changed(&former);
            }
            self.rows.close(self.options, self.message, &head, self.scratch)?;
        }
        Ok(())
    }

    /// The elements of a list of the envelope, and where it begins.
    fn list(&self, name: &str) -> Result<Option<(Vec<Member<'a>>, usize)>, Reject> {
        let Some(member) = self.block.0.iter().find(|m| m.name.text == name) else { return Ok(None) };
        match member.value {
            Raw::Null => Ok(None),
            Raw::Nested { text, .. } if text.starts_with('[') => {
                let mut out = Vec::new();
                json::elements(text, &mut out).map_err(|e| Reject::from(e).at(member.at + e.at))?;
                Ok(Some((out, member.at)))
            }
            _ => Err(Reject::new(format!("`{name}` is no list")).at(member.at)),
        }
    }

    fn key_names(&mut self) -> Result<Vec<&'a str>, Reject> {
        let names = self.list("pkNames")?.unwrap_or_default().0;
        let text = |m: &Member<'a>| match m.value {
            Raw::Text(t) => Ok(t.resolve(self.scratch)),
            _ => Err(Reject::new("`pkNames` is no list of names").at(m.at)),
        };
        names.iter().map(text).collect()
    }

    fn head(&mut self, op: Op, word: &'a str) -> Result<RowHead<'a>, Reject> {
        let source = SourceRef {
            db: self.block.text("database", self.scratch),
            table: self.block.text("table", self.scratch),
            ..SourceRef::default()
        };
        let millis = |block: &Block<'_, 'a>, name| {
            block.integer(name).filter(|t| *t != 0).and_then(|t| TimeUnit::Ms.micros(t))
        };
        let tso = self.tidb(op)?;
        let time = tso.map(Tso::micros).or_else(|| millis(&self.block, "es"));
        let times =
            Times { source: time, connector: millis(&self.block, "ts"), broker: self.message.broker_time };
        let token: Option<Token<'a>> = tso.map(|tso| tidb_token(tso, self.scratch));
        Ok(RowHead {
            table: table_name(&source, self.scratch),
            source,
            times,
            one_per_key: token.is_some(),
            token,
            transaction_id: self.block.text("gtid", self.scratch),
            ..RowHead::new(op, word)
        })
    }

    /// The commit timestamp of TiDB's extension.
    fn tidb(&self, op: Op) -> Result<Option<Tso>, Reject> {
        let Some(Raw::Nested { text, .. }) = self.block.raw("_tidb") else { return Ok(None) };
        let mut members = Vec::new();
        json::members(text, &mut members)?;
        let block = Block(&members);
        if let Some(Raw::Text(place)) = block.raw("claimCheckLocation")
            && !place.text.is_empty()
        {
            return Err(Reject::new("the row is stored elsewhere, as it was too large for a message")
                .hint("claim checks are not followed; raise the size of TiCDC's messages"));
        }
        if block.raw("onlyHandleKey") == Some(Raw::Bool(true)) && op != Op::Delete {
            return Err(Reject::new("the message has the key of its row only, as the row was too large")
                .hint("raise the size of TiCDC's messages"));
        }
        Ok(block.digits("commitTs").and_then(Tso::parse))
    }
}

fn read_row<'a>(
    row: &Member<'a>,
    base: usize,
    types: &'a Types,
    members: &mut Vec<Member<'a>>,
    scratch: &mut Scratch<'a>,
    out: &mut Vec<Column<'a>>,
) -> Result<(), Reject> {
    let Raw::Nested { text, .. } = row.value else { return Err(Reject::new("a row is no object").at(base)) };
    members.clear();
    json::members(text, members).map_err(|e| Reject::from(e).at(base + e.at))?;
    columns(members, base, scratch, out, |i, name, m, scratch| cell(types.of(i, name), &m.value, scratch))
}
