//! Envelopes to changes.

use super::cell::cell;
use super::parts::{Parts, list};
use super::schema::{Fields, Schema, SchemaCache};
use crate::change::{Column, Message, Numbered, Sink};
use crate::format::block::{Block, unique};
use crate::format::debezium::envelope::{self, Operation, Step};
use crate::format::debezium::{Encoding, Topics};
use crate::format::fields::{Reject, columns};
use crate::format::json::{self, Member, Raw, RawText};
use crate::format::layout::Layout;
use crate::format::options::FormatOptions;
use crate::format::scratch::{Scratch, ScratchBuffer};
use asofdb_storage::event::Op;
use asofdb_storage::value::Cell;
use std::sync::Arc;

/// Columns beyond this many get no room of their own for times as text.
const ROOMY_COLUMNS_MAX: usize = 1 << 16;

/// Decodes Debezium JSON. What it remembers between messages are parsed schemas and, for
/// tombstones, which table a topic belongs to.
#[derive(Debug, Default)]
pub struct DebeziumJson {
    scratch: ScratchBuffer,
    parts: Parts<'static>,
    schemas: SchemaCache,
    topics: Topics,
    layout: Layout,
    flat: bool,
}

impl DebeziumJson {
    /// A decoder for rows without envelopes, as `ExtractNewRecordState` writes them.
    pub fn flat() -> DebeziumJson {
        DebeziumJson { flat: true, ..DebeziumJson::default() }
    }

    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let DebeziumJson { scratch, parts, schemas, topics, layout, flat } = self;
        let dictionary = layout.dictionary;
        let mut scratch = scratch.scratch(room(message));
        let mut p = std::mem::take(parts).recycled();
        let flat = *flat;
        let mut reader = Reader { options, message, schemas, layout, scratch: &mut scratch, flat };
        let step = reader.read(&mut p, topics);
        let step = match scratch.overflowed() {
            true => Err(Reject::new("the message needs more room than it should")),
            false => step,
        };
        p.rows.deliver(step, message, Numbered { dictionary, numbers: &p.rows.numbers }, sink);
        *parts = p.recycled();
    }
}

/// The scratch space a message can need: text without escapes, bytes, and times as text.
fn room(message: &Message<'_>) -> usize {
    let parts =
        [message.key, message.value].into_iter().flatten().chain(message.headers.iter().map(|h| h.value));
    let (mut bytes, mut colons) = (0, 0);
    for part in parts {
        bytes += part.len();
        colons += memchr::memchr_iter(b':', part).count();
    }
    bytes * 3 + colons.min(ROOMY_COLUMNS_MAX) * 64 + message.topic.map_or(0, str::len) + 4096
}

fn is_object(text: &str) -> bool {
    text.trim_ascii_start().starts_with('{')
}

/// A payload that is no object.
fn other_payload(text: &str) -> Result<Payload<'_>, Reject> {
    let at = text.len() - text.trim_ascii_start().len();
    Ok(Payload { raw: json::single(text)?, at, schema: None, listed: false })
}

pub(super) struct Reader<'r, 'a> {
    pub(super) options: &'r FormatOptions,
    pub(super) message: &'r Message<'a>,
    schemas: &'r mut SchemaCache,
    layout: &'r mut Layout,
    pub(super) scratch: &'r mut Scratch<'a>,
    /// Rows come without envelopes.
    flat: bool,
}

/// A payload without its wrapper.
struct Payload<'a> {
    raw: Raw<'a>,
    at: usize,
    schema: Option<Arc<Schema>>,
    /// The members of the whole message are those of the payload: there is no wrapper.
    listed: bool,
}

impl<'a> Reader<'_, 'a> {
    fn read(&mut self, p: &mut Parts<'a>, topics: &mut Topics) -> Result<Step<'a>, Reject> {
        let text = match self.message.value {
            Some(value) => json::message_text(value)?,
            None => "null",
        };
        let payload = match is_object(text) {
            true => {
                list(self.layout, text, p, !self.flat)?;
                self.unwrapped(text, &p.outer)
            }
            false => other_payload(text)?,
        };
        let row = payload.schema.clone();
        let fallback = row.as_deref().map(|s| if self.flat { &s.top } else { &s.row });
        match payload.raw {
            Raw::Nested { text, .. } if !payload.listed && text.starts_with('{') => {
                list(self.layout, text, p, fallback.is_none() && !self.flat)
                    .map_err(|e| Reject::from(e).at(payload.at + e.at))?;
            }
            _ => {}
        }
        // The key has an outer list of its own.
        std::mem::swap(&mut p.outer, &mut p.envelope);
        if let Some(key) = self.message.key.filter(|k| !k.is_empty()) {
            self.key(key, fallback, &mut p.members, &mut p.outer, &mut p.rows.key)
                .map_err(|e| e.at(0).hint("this is the record's key"))?;
        }
        if let Some(old) = self.message.headers.iter().find(|h| h.name == "__debezium.oldkey") {
            self.key(old.value, fallback, &mut p.members, &mut p.outer, &mut p.rows.previous)
                .map_err(|e| e.at(0).hint("this is the header __debezium.oldkey"))?;
        }
        match payload.raw {
            Raw::Null => {
                Ok(envelope::tombstone(self.options, self.message, topics, &mut p.rows, self.scratch))
            }
            Raw::Nested { text, .. } if self.flat && (payload.listed || text.starts_with('{')) => {
                self.flattened(p, topics, payload.at, fallback)
            }
            Raw::Nested { text, .. } if payload.listed || text.starts_with('{') => {
                self.envelope(p, topics, payload.at, fallback)
            }
            _ => Err(Reject::new("the message is no JSON object")),
        }
    }

    /// Takes the wrapper of schema and payload off, if there is one: only at the outermost level,
    /// and only if nothing else stands there.
    fn unwrapped(&mut self, text: &'a str, outer: &[Member<'a>]) -> Payload<'a> {
        let block = Block(outer);
        let wrapper = outer.len() <= 2
            && outer.iter().all(|m| matches!(m.name.text, "schema" | "payload"))
            && !(outer.len() == 2 && outer[0].name.text == outer[1].name.text);
        match block.raw("payload") {
            Some(inner @ (Raw::Null | Raw::Nested { .. })) if wrapper => {
                let schema = match block.raw("schema") {
                    Some(Raw::Nested { text, .. }) => Some(self.schemas.get(text)),
                    _ => None,
                };
                let at = outer.iter().find(|m| m.name.text == "payload").map_or(0, |m| m.at);
                Payload { raw: inner, at, schema, listed: false }
            }
            // Whether there are spaces in it is asked of values of columns only.
            _ => Payload { raw: Raw::Nested { text, spaced: true }, at: 0, schema: None, listed: true },
        }
    }

    /// The columns of a key: typed by its own schema, else by the value's.
    fn key(
        &mut self,
        bytes: &'a [u8],
        fallback: Option<&Fields>,
        members: &mut Vec<Member<'a>>,
        outer: &mut Vec<Member<'a>>,
        out: &mut Vec<Column<'a>>,
    ) -> Result<(), Reject> {
        let text = json::message_text(bytes)?;
        members.clear();
        let payload = match is_object(text) {
            true => {
                outer.clear();
                json::members(text, outer)?;
                Ok(self.unwrapped(text, outer))
            }
            false => other_payload(text),
        };
        let payload = match payload {
            Ok(payload) => payload,
            // A key of a plain string converter.
            Err(_) if !text.starts_with(['{', '[', '"']) => {
                out.push(Column { name: "", cell: Cell::Text(text) });
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        match payload.raw {
            Raw::Null => return Ok(()),
            Raw::Nested { .. } if payload.listed => std::mem::swap(members, outer),
            Raw::Nested { text, .. } if text.starts_with('{') => json::members(text, members)?,
            value => members.push(Member { name: RawText { text: "", escaped: false }, value, at: 0 }),
        }
        let own = payload.schema.as_deref().map(|s| &s.top);
        let fields = own.or(fallback);
        columns(members, 0, self.scratch, out, |i, name, m, scratch| typed(fields, i, name, m, scratch))
    }

    fn envelope(
        &mut self,
        p: &mut Parts<'a>,
        topics: &mut Topics,
        at: usize,
        fields: Option<&Fields>,
    ) -> Result<Step<'a>, Reject> {
        unique(&p.envelope, at)?;
        let block = Block(&p.envelope);
        let (code, op) = match envelope::operation(&block)? {
            Operation::Change(code, op) => (code, op),
            Operation::Ignored(kind) => return Ok(Step::Ignored(kind)),
        };
        if !p.read.source {
            p.source.clear();
            if let Some(Raw::Nested { text, .. }) = block.raw("source") {
                json::members(text, &mut p.source)?;
            }
        }
        let change = envelope::change(op, &block, &p.source, self.message, self.scratch);
        self.rows(p, op, at, fields)?;
        if let (Some(topic), Some(table)) = (self.message.topic, change.table) {
            topics.learn(topic, table);
        }
        envelope::declared(self.options, self.message, change, code, &mut p.rows, self.scratch)
    }

    /// Reads `after` or `before` into the row of the change, and `before` of an update beside it.
    fn rows(&mut self, p: &mut Parts<'a>, op: Op, at: usize, fields: Option<&Fields>) -> Result<(), Reject> {
        let keyed = !p.rows.key.is_empty();
        let (row, beside) = envelope::row_names(op, keyed);
        p.keep_read(row, !beside.is_empty());
        if row.is_empty() {
            return Ok(());
        }
        if !self.object(p, row, at, fields, false)? {
            envelope::without_row(op, keyed)?;
        }
        if !beside.is_empty() {
            self.object(p, beside, at, fields, true)?;
        }
        Ok(())
    }

    fn object(
        &mut self,
        p: &mut Parts<'a>,
        name: &str,
        at: usize,
        fields: Option<&Fields>,
        beside: bool,
    ) -> Result<bool, Reject> {
        if if beside { p.read.before } else { p.read.after } {
            return Ok(true);
        }
        let Some(member) = p.envelope.iter().find(|m| m.name.text == name) else { return Ok(false) };
        let base = at + member.at;
        match member.value {
            Raw::Null => Ok(false),
            Raw::Nested { text, .. } if text.starts_with('{') => {
                p.members.clear();
                json::members(text, &mut p.members).map_err(|e| Reject::from(e).at(base + e.at))?;
                let out = if beside { &mut p.rows.before } else { &mut p.rows.row };
                columns(&p.members, base, self.scratch, out, |i, name, m, scratch| {
                    typed(fields, i, name, m, scratch)
                })?;
                Ok(!out.is_empty())
            }
            _ => Err(Reject::new(format!("`{name}` is no object")).at(base)),
        }
    }
}

pub(super) fn typed<'a>(
    fields: Option<&Fields>,
    place: usize,
    name: &str,
    member: &Member<'a>,
    scratch: &mut Scratch<'a>,
) -> Result<Cell<'a>, Reject> {
    let encoding = fields.map_or(Encoding::Untyped, |f| f.encoding(place, name));
    cell(encoding, &member.value, scratch)
}
