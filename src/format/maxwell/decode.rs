//! Envelopes to changes.

use super::key::key;
use super::position::token;
use crate::change::{Column, Decoded, Message, Sink, SourceRef, Times};
use crate::format::block::{Block, table_name, unique};
use crate::format::fields::{Reject, columns, shortened, untyped_cell};
use crate::format::json::{self, Member, Raw};
use crate::format::options::{FormatOptions, TimeUnit};
use crate::format::row_buffer::{RowBuffer, RowHead};
use crate::format::scratch::{Scratch, ScratchBuffer};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;
use asofdb_storage::value::Cell;

/// Decodes Maxwell's messages. It remembers nothing between them but its buffers.
#[derive(Debug, Default)]
pub struct Maxwell {
    scratch: ScratchBuffer,
    envelope: Vec<Member<'static>>,
    members: Vec<Member<'static>>,
    old: Vec<Column<'static>>,
    rows: RowBuffer<'static>,
}

/// What a message is about.
enum Kind {
    Row(Op),
    Ignored(&'static str),
}

fn kind(word: &str) -> Option<Kind> {
    Some(match word {
        "insert" => Kind::Row(Op::Insert),
        "update" => Kind::Row(Op::Update),
        "delete" => Kind::Row(Op::Delete),
        "bootstrap-insert" => Kind::Row(Op::Read),
        "bootstrap-start" => Kind::Ignored("bootstrap-start"),
        "bootstrap-complete" => Kind::Ignored("bootstrap-complete"),
        "database-create" | "database-alter" | "database-drop" | "table-create" | "table-alter"
        | "table-drop" => Kind::Ignored("ddl"),
        "control" => Kind::Ignored("control"),
        _ => return None,
    })
}

/// Whether a message is an envelope of Maxwell.
pub fn looks_like(text: &str) -> bool {
    let mut members = Vec::new();
    if json::members(text, &mut members).is_err() {
        return false;
    }
    let block = Block(&members);
    let Some(Raw::Text(word)) = block.raw("type") else { return false };
    let described = matches!(block.raw("database"), Some(Raw::Text(_))) && block.integer("ts").is_some();
    let object = |name| matches!(block.raw(name), Some(Raw::Nested { text, .. }) if text.starts_with('{'));
    described
        && match kind(word.text) {
            Some(Kind::Row(_)) => block.raw("table").is_some() && (object("data") || object("encrypted")),
            Some(Kind::Ignored(_)) => true,
            None => false,
        }
}

enum Step {
    Rows,
    Ignored(&'static str),
}

impl Maxwell {
    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let Maxwell { scratch, envelope, members, old, rows } = self;
        let length = |b: Option<&[u8]>| b.map_or(0, <[u8]>::len);
        let mut scratch = scratch.scratch((length(message.key) + length(message.value)) * 3 + 4096);
        let mut reader = Reader {
            options,
            message,
            scratch: &mut scratch,
            envelope: recycle(std::mem::take(envelope)),
            members: recycle(std::mem::take(members)),
            old: recycle(std::mem::take(old)),
            rows: std::mem::take(rows).recycled(),
        };
        let step = reader.read();
        let Reader { envelope: e, members: m, old: o, rows: mut r, .. } = reader;
        match step {
            _ if scratch.overflowed() => {
                sink(Decoded::Quarantine(Reject::new("the message needs more room than it should").fault()));
            }
            Ok(Step::Ignored(kind)) => sink(Decoded::Ignored(kind)),
            Ok(Step::Rows) => r.hand_out(message, sink),
            Err(reject) => sink(Decoded::Quarantine(reject.fault())),
        }
        (*envelope, *members, *old, *rows) = (recycle(e), recycle(m), recycle(o), r.recycled());
    }
}

struct Reader<'r, 'a> {
    options: &'r FormatOptions,
    message: &'r Message<'a>,
    scratch: &'r mut Scratch<'a>,
    envelope: Vec<Member<'a>>,
    members: Vec<Member<'a>>,
    old: Vec<Column<'a>>,
    rows: RowBuffer<'a>,
}

impl<'a> Reader<'_, 'a> {
    fn read(&mut self) -> Result<Step, Reject> {
        let text = match self.message.value {
            Some(value) => json::message_text(value)?,
            None => "null",
        };
        if text.trim_ascii() == "null" {
            return self.tombstone();
        }
        json::members(text, &mut self.envelope)?;
        unique(&self.envelope, 0)?;
        let envelope = std::mem::take(&mut self.envelope);
        let block = Block(&envelope);
        let step = match block.raw("type") {
            Some(Raw::Text(word)) => match kind(word.text) {
                Some(Kind::Row(op)) => self.row(&block, op, word.text).map(|()| Step::Rows),
                Some(Kind::Ignored(kind)) => Ok(Step::Ignored(kind)),
                None => Err(Reject::new(format!("unknown type of message `{}`", shortened(word.text)))
                    .hint("Maxwell's rows are insert, update, delete and bootstrap-insert")),
            },
            _ => Err(Reject::new("there is no type of message (`type`)")
                .hint("this is no message of Maxwell; --format json reads plain objects")),
        };
        self.envelope = envelope;
        step
    }

    fn row(&mut self, block: &Block<'_, 'a>, op: Op, code: &'a str) -> Result<(), Reject> {
        if matches!(block.raw("encrypted"), Some(Raw::Nested { .. })) {
            return Err(Reject::new("the row is encrypted")
                .hint("encrypted messages cannot be read; switch Maxwell's encrypt option off"));
        }
        let Some(at) = self.object(block, "data")? else {
            return Err(Reject::new("a row without `data`"));
        };
        let RowBuffer { row, .. } = &mut self.rows;
        columns(&self.members, at, self.scratch, row, |_, _, m, s| untyped_cell(&m.value, s))?;
        if row.is_empty() {
            return Err(Reject::new("the row has no columns").at(at));
        }
        self.key(block)?;
        if op == Op::Update
            && let Some(at) = self.object(block, "old")?
        {
            columns(&self.members, at, self.scratch, &mut self.old, |_, _, m, s| untyped_cell(&m.value, s))?;
            self.rows.before_of_changed(&self.old);
        }
        let head = self.head(block, op, code);
        self.rows.close(self.options, self.message, &head, self.scratch)
    }

    /// Lists the members of an object of the envelope; where it begins.
    fn object(&mut self, block: &Block<'_, 'a>, name: &str) -> Result<Option<usize>, Reject> {
        self.members.clear();
        let Some(member) = block.0.iter().find(|m| m.name.text == name) else { return Ok(None) };
        match member.value {
            Raw::Null => Ok(None),
            Raw::Nested { text, .. } if text.starts_with('{') => {
                json::members(text, &mut self.members).map_err(|e| Reject::from(e).at(member.at + e.at))?;
                Ok(Some(member.at))
            }
            _ => Err(Reject::new(format!("`{name}` is no object")).at(member.at)),
        }
    }

    /// The key columns as the message names them, else as the record's key does.
    fn key(&mut self, block: &Block<'_, 'a>) -> Result<(), Reject> {
        if let Some(Raw::Nested { text, .. }) = block.raw("primary_key_columns") {
            let mut names = Vec::new();
            json::elements(text, &mut names)?;
            let names: Vec<&str> = names
                .iter()
                .filter_map(|n| match n.value {
                    Raw::Text(t) => Some(t.resolve(self.scratch)),
                    _ => None,
                })
                .collect();
            return self.rows.key_by_names(&names);
        }
        let Some(bytes) = self.message.key.filter(|k| !k.is_empty()) else { return Ok(()) };
        let of_record = key(bytes, self.scratch).map_err(|e| e.at(0).hint("this is the record's key"))?;
        let names: Vec<&str> = of_record.unwrap_or_default().columns.iter().map(|c| c.name).collect();
        self.rows.key_by_names(&names)
    }

    fn head(&mut self, block: &Block<'_, 'a>, op: Op, code: &'a str) -> RowHead<'a> {
        let source = SourceRef {
            db: block.text("database", self.scratch),
            table: block.text("table", self.scratch),
            ..SourceRef::default()
        };
        let gtid = block.text("gtid", self.scratch);
        // Seconds, whatever messages about tables say.
        let time = block.integer("ts").filter(|t| *t != 0).and_then(|t| TimeUnit::S.micros(t));
        let snapshot = op == Op::Read;
        RowHead {
            table: table_name(&source, self.scratch),
            source,
            times: Times { source: time, connector: None, broker: self.message.broker_time },
            snapshot,
            token: if snapshot { None } else { token(block, self.scratch) },
            transaction_id: gtid.or_else(|| block.digits("xid").filter(|x| !x.is_empty())),
            ..RowHead::new(op, code)
        }
    }

    /// A message without a value deletes the row of its key.
    fn tombstone(&mut self) -> Result<Step, Reject> {
        let Some(bytes) = self.message.key.filter(|k| !k.is_empty()) else {
            return Ok(Step::Ignored(crate::format::TOMBSTONE_WITHOUT_KEY));
        };
        let Some(key) = key(bytes, self.scratch)? else {
            return Err(Reject::new("a message without a value whose key is none of Maxwell's"));
        };
        if key.columns.iter().all(|c| c.cell == Cell::Null) {
            return Ok(Step::Ignored(crate::format::TOMBSTONE_WITHOUT_KEY));
        }
        let source = key.source();
        self.rows.key.extend(key.columns);
        self.rows.close_tombstone(self.options, self.message, source, self.scratch);
        Ok(Step::Rows)
    }
}
