//! Envelopes to changes.

use super::bson::cell;
use super::delta;
use crate::change::{Column, Message, Numbered, Sink};
use crate::format::block::{Block, table_name, unique};
use crate::format::debezium::Topics;
use crate::format::debezium::envelope::{self, Operation, Rows, Step};
use crate::format::fields::{Reject, columns};
use crate::format::json::{self, Member, Raw};
use crate::format::options::FormatOptions;
use crate::format::scratch::{Scratch, ScratchBuffer};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;
use asofdb_storage::value::Cell;

/// The column of the id of a document.
const ID: &str = "_id";

/// Decodes Debezium's change events of MongoDB.
#[derive(Debug, Default)]
pub struct DebeziumMongo {
    scratch: ScratchBuffer,
    parts: Parts<'static>,
    topics: Topics,
}

#[derive(Debug, Default)]
struct Parts<'a> {
    rows: Rows<'a>,
    envelope: Vec<Member<'a>>,
    source: Vec<Member<'a>>,
}

impl<'a> Parts<'a> {
    fn recycled<'b>(self) -> Parts<'b> {
        Parts { rows: self.rows.recycled(), envelope: recycle(self.envelope), source: recycle(self.source) }
    }
}

impl DebeziumMongo {
    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let DebeziumMongo { scratch, parts, topics } = self;
        let length = |b: Option<&[u8]>| b.map_or(0, <[u8]>::len);
        // Texts within texts, their values, and times that are longer as text.
        let mut scratch = scratch.scratch((length(message.key) + length(message.value)) * 6 + 4096);
        let mut p = std::mem::take(parts).recycled();
        let mut reader = Reader { options, message, scratch: &mut scratch };
        let step = reader.read(&mut p, topics);
        let step = match scratch.overflowed() {
            true => Err(Reject::new("the message needs more room than it should")),
            false => step,
        };
        p.rows.deliver(step, message, Numbered::default(), sink);
        *parts = p.recycled();
    }
}

/// Takes the wrapper of schema and payload off, if there is one.
fn unwrapped(text: &str) -> Result<Option<&str>, Reject> {
    let mut members = Vec::new();
    match json::single(text)? {
        Raw::Null => return Ok(None),
        Raw::Nested { .. } if text.trim_ascii_start().starts_with('{') => {}
        _ => return Err(Reject::new("the message is no JSON object")),
    }
    json::members(text, &mut members)?;
    let wrapper = members.len() <= 2 && members.iter().all(|m| matches!(m.name.text, "schema" | "payload"));
    match Block(&members).raw("payload") {
        Some(Raw::Null) if wrapper => Ok(None),
        Some(Raw::Nested { text, .. }) if wrapper => Ok(Some(text)),
        _ => Ok(Some(text)),
    }
}

/// The fields of a document as columns.
pub(super) fn document<'a>(
    text: &'a str,
    scratch: &mut Scratch<'a>,
    out: &mut Vec<Column<'a>>,
) -> Result<(), Reject> {
    let mut members = Vec::new();
    json::members(text, &mut members)?;
    columns(&members, 0, scratch, out, |_, _, member, scratch| cell(&member.value, scratch))
}

struct Reader<'r, 'a> {
    options: &'r FormatOptions,
    message: &'r Message<'a>,
    scratch: &'r mut Scratch<'a>,
}

impl<'a> Reader<'_, 'a> {
    fn read(&mut self, p: &mut Parts<'a>, topics: &mut Topics) -> Result<Step<'a>, Reject> {
        if let Some(key) = self.message.key.filter(|k| !k.is_empty()) {
            self.key(key, &mut p.rows.key).map_err(|e| e.at(0).hint("this is the record's key"))?;
        }
        let text = match self.message.value {
            Some(value) => unwrapped(json::message_text(value)?)?,
            None => None,
        };
        let Some(text) = text else {
            return Ok(envelope::tombstone(self.options, self.message, topics, &mut p.rows, self.scratch));
        };
        json::members(text, &mut p.envelope)?;
        unique(&p.envelope, 0)?;
        let block = Block(&p.envelope);
        let (code, op) = match envelope::operation(&block)? {
            Operation::Change(code, op) => (code, op),
            Operation::Ignored(kind) => return Ok(Step::Ignored(kind)),
        };
        if let Some(Raw::Nested { text, .. }) = block.raw("source") {
            json::members(text, &mut p.source)?;
        }
        let mut change = envelope::change(op, &block, &p.source, self.message, self.scratch);
        change.source.table = Block(&p.source).text("collection", self.scratch);
        change.table = table_name(&change.source, self.scratch);
        if let (Some(topic), Some(table)) = (self.message.topic, change.table) {
            topics.learn(topic, table);
        }
        let whole = self.rows(op, &block, &mut p.rows)?;
        let step = envelope::declared(self.options, self.message, change, code, &mut p.rows, self.scratch)?;
        Ok(match step {
            // A document without a field has none; an update without a document says nothing of the others.
            Step::Change { mut change, filtered } => {
                change.full &= whole || change.op.ends_row();
                Step::Change { change, filtered }
            }
            ignored => ignored,
        })
    }

    /// Reads the document, or what an update writes; whether it is a whole one.
    fn rows(&mut self, op: Op, block: &Block<'_, 'a>, rows: &mut Rows<'a>) -> Result<bool, Reject> {
        let name = if op == Op::Delete { "before" } else { "after" };
        if let Some(text) = self.text(block.raw(name)) {
            document(text, self.scratch, &mut rows.row)?;
            return Ok(true);
        }
        if op != Op::Update {
            envelope::without_row(op, !rows.key.is_empty())?;
            return Ok(true);
        }
        let whole = if let Some(Raw::Nested { text, .. }) = block.raw("updateDescription") {
            delta::columns(text, self.scratch, &mut rows.row)?;
            false
        } else if let Some(text) = self.text(block.raw("patch")) {
            delta::patched(text, self.scratch, &mut rows.row)?
        } else {
            return Err(Reject::new("an update with neither the document nor what it changed")
                .hint("the document was deleted before the connector looked it up"));
        };
        self.id(block, rows)?;
        Ok(whole)
    }

    /// The id belongs to what is written.
    fn id(&mut self, block: &Block<'_, 'a>, rows: &mut Rows<'a>) -> Result<(), Reject> {
        if rows.row.iter().any(|c| c.name == ID) {
            return Ok(());
        }
        if let Some(id) = rows.key.iter().find(|c| c.name == ID) {
            rows.row.push(*id);
        } else if let Some(filter) = self.text(block.raw("filter"))
            && let Some(id) = json::member(filter, ID)
        {
            let cell = cell(&id, self.scratch)?;
            rows.row.push(Column { name: ID, cell });
        }
        Ok(())
    }

    /// A document: a text that holds JSON, or the object itself.
    fn text(&mut self, raw: Option<Raw<'a>>) -> Option<&'a str> {
        match raw? {
            Raw::Text(t) => Some(t.resolve(self.scratch)),
            Raw::Nested { text, .. } if text.starts_with('{') => Some(text),
            _ => None,
        }
    }

    /// `{"id": TEXT}`, where the text is extended JSON; the id may be a text in quotes of its own.
    fn key(&mut self, bytes: &'a [u8], out: &mut Vec<Column<'a>>) -> Result<(), Reject> {
        let Some(text) = unwrapped(json::message_text(bytes)?)? else { return Ok(()) };
        let id = json::member(text, "id").or_else(|| json::member(text, ID));
        let id = id.ok_or_else(|| Reject::new("the key has no `id`"))?;
        let cell = match id {
            Raw::Text(t) => {
                let inner = t.resolve(self.scratch);
                match json::single(inner) {
                    Ok(raw) => cell(&raw, self.scratch)?,
                    Err(_) => Cell::Text(inner),
                }
            }
            raw => cell(&raw, self.scratch)?,
        };
        if cell != Cell::Null {
            out.push(Column { name: ID, cell });
        }
        Ok(())
    }
}
