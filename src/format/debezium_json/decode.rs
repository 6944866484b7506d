//! Envelopes to changes.

use super::cell::cell;
use super::origin::{Origin, origin};
use super::parts::{Parts, list};
use super::schema::{Fields, Schema, SchemaCache};
use super::table::Topics;
use crate::change::{Change, Column, Decoded, Message, Numbered, Previous, Sink};
use crate::format::block::{Block, table_name, unique};
use crate::format::declare::{self, Envelope, View};
use crate::format::fields::{Reject, columns, shortened};
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
}

#[allow(clippy::large_enum_variant, reason = "lives for one call")]
enum Step<'a> {
    Change { change: Change<'a>, filtered: bool },
    Ignored(&'static str),
}

impl DebeziumJson {
    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let DebeziumJson { scratch, parts, schemas, topics, layout } = self;
        let dictionary = layout.dictionary;
        let mut scratch = scratch.scratch(room(message));
        let mut p = std::mem::take(parts).recycled();
        let mut reader = Reader { options, message, schemas, layout, scratch: &mut scratch };
        let step = reader.read(&mut p, topics);
        match step {
            _ if scratch.overflowed() => {
                sink(Decoded::Quarantine(Reject::new("the message needs more room than it should").fault()));
            }
            Ok(Step::Ignored(kind)) => sink(Decoded::Ignored(kind)),
            Ok(Step::Change { mut change, filtered }) => {
                change.declared.ties = &p.ties;
                change.fields = &p.row;
                change.image = if filtered { &p.image } else { &p.row };
                if !filtered {
                    change.numbered = Numbered { dictionary, numbers: &p.numbers };
                }
                change.before = if change.op == Op::Delete { &p.row } else { &p.before };
                change.key = &p.key;
                change.headers = message.headers;
                if !p.previous.is_empty() {
                    change.previous = Some(Previous { key: &p.previous, deletes_sent: true });
                }
                sink(Decoded::Changes(&[change]));
            }
            Err(reject) => sink(Decoded::Quarantine(reject.fault())),
        }
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

struct Reader<'r, 'a> {
    options: &'r FormatOptions,
    message: &'r Message<'a>,
    schemas: &'r mut SchemaCache,
    layout: &'r mut Layout,
    scratch: &'r mut Scratch<'a>,
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
                list(self.layout, text, p, true)?;
                self.unwrapped(text, &p.outer)
            }
            false => other_payload(text)?,
        };
        let row = payload.schema.clone();
        let fallback = row.as_deref().map(|s| &s.row);
        match payload.raw {
            Raw::Nested { text, .. } if !payload.listed && text.starts_with('{') => {
                list(self.layout, text, p, fallback.is_none())
                    .map_err(|e| Reject::from(e).at(payload.at + e.at))?;
            }
            _ => {}
        }
        // The key has an outer list of its own.
        std::mem::swap(&mut p.outer, &mut p.envelope);
        if let Some(key) = self.message.key.filter(|k| !k.is_empty()) {
            self.key(key, fallback, &mut p.members, &mut p.outer, &mut p.key)
                .map_err(|e| e.at(0).hint("this is the record's key"))?;
        }
        if let Some(old) = self.message.headers.iter().find(|h| h.name == "__debezium.oldkey") {
            self.key(old.value, fallback, &mut p.members, &mut p.outer, &mut p.previous)
                .map_err(|e| e.at(0).hint("this is the header __debezium.oldkey"))?;
        }
        match payload.raw {
            Raw::Null => Ok(self.tombstone(p, topics)),
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

    fn tombstone(&mut self, p: &mut Parts<'a>, topics: &Topics) -> Step<'a> {
        if p.key.is_empty() {
            return Step::Ignored(crate::format::TOMBSTONE_WITHOUT_KEY);
        }
        let mut change = Change::new(Op::Delete);
        change.tombstone = true;
        let envelope = Envelope::of_message(self.message);
        change.times = envelope.times;
        change.declared = declare::declared_of_tombstone(self.options, &envelope, &mut p.ties, self.scratch);
        change.table = self.message.topic.and_then(|t| topics.guess(t, self.scratch));
        change.table_guessed = true;
        Step::Change { change, filtered: false }
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
        let (code, op) = match block.raw("op") {
            Some(Raw::Text(t)) => match t.text {
                "c" => ("c", Op::Insert),
                "r" => ("r", Op::Read),
                "u" => ("u", Op::Update),
                "d" => ("d", Op::Delete),
                "t" => ("t", Op::Truncate),
                "m" => return Ok(Step::Ignored("message")),
                other => {
                    return Err(Reject::new(format!("unknown operation `{}`", shortened(other)))
                        .hint("Debezium's are c, r, u, d, t and m"));
                }
            },
            Some(Raw::Null) | None => return side_message(&block),
            Some(_) => return Err(Reject::new("the operation is not a text")),
        };
        if !p.read.source {
            p.source.clear();
            if let Some(Raw::Nested { text, .. }) = block.raw("source") {
                json::members(text, &mut p.source)?;
            }
        }
        let origin = origin(&p.source, self.scratch);
        let mut change = Change::new(op);
        change.table = table_name(&origin.source, self.scratch);
        change.source = origin.source;
        change.snapshot = origin.snapshot || op == Op::Read;
        change.token = origin.token.filter(|_| op != Op::Read);
        change.times = block.times(origin.time, self.message.broker_time);
        change.transaction_id = transaction(&block, self.scratch).or(origin.transaction_id);
        self.rows(p, op, at, fields)?;
        if let (Some(topic), Some(table)) = (self.message.topic, change.table) {
            topics.learn(topic, table);
        }
        self.declared(p, change, code, &origin)
    }

    /// Reads `after` or `before` into the row of the change, and `before` of an update beside it.
    fn rows(&mut self, p: &mut Parts<'a>, op: Op, at: usize, fields: Option<&Fields>) -> Result<(), Reject> {
        let (row, beside) = match op {
            Op::Delete => ("before", None),
            Op::Truncate => ("", None),
            // An old row is needed where nothing else names the row.
            Op::Update if p.key.is_empty() => ("after", Some("before")),
            _ => ("after", None),
        };
        p.keep_read(row, beside.is_some());
        if op == Op::Truncate {
            return Ok(());
        }
        if !self.object(p, row, at, fields, false)? {
            if op != Op::Delete {
                return Err(Reject::new(format!("a change of kind {} without `after`", op.word()))
                    .hint("only deletes and truncates have none"));
            }
            if p.key.is_empty() {
                return Err(Reject::new("a delete with neither a key nor `before`"));
            }
        }
        if let Some(beside) = beside {
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
                let out = if beside { &mut p.before } else { &mut p.row };
                columns(&p.members, base, self.scratch, out, |i, name, m, scratch| {
                    typed(fields, i, name, m, scratch)
                })?;
                Ok(!out.is_empty())
            }
            _ => Err(Reject::new(format!("`{name}` is no object")).at(base)),
        }
    }

    fn declared(
        &mut self,
        p: &mut Parts<'a>,
        mut change: Change<'a>,
        code: &'static str,
        origin: &Origin<'a>,
    ) -> Result<Step<'a>, Reject> {
        let envelope = Envelope {
            op: Some(code),
            times: change.times,
            position: self.message.position,
            source: origin.source,
            table: change.table,
            transaction_id: change.transaction_id,
        };
        let mut view = View { columns: &p.row, envelope: &envelope, scratch: self.scratch };
        let op = declare::overridden(self.options, &mut view, change.op);
        change.op = op;
        change.declared = declare::declared(self.options, &mut view, &mut p.ties)?;
        // An envelope holds whole values of columns.
        let (full, filtered) = declare::image(self.options, op, &p.row, &mut p.image, None)?;
        change.full = full;
        Ok(Step::Change { change, filtered })
    }
}

fn typed<'a>(
    fields: Option<&Fields>,
    place: usize,
    name: &str,
    member: &Member<'a>,
    scratch: &mut Scratch<'a>,
) -> Result<Cell<'a>, Reject> {
    let encoding = fields.map_or(super::schema::Encoding::Untyped, |f| f.encoding(place, name));
    cell(encoding, &member.value, scratch)
}

fn transaction<'a>(block: &Block<'_, 'a>, scratch: &mut Scratch<'a>) -> Option<&'a str> {
    let Raw::Nested { text, .. } = block.raw("transaction")? else { return None };
    match json::member(text, "id")? {
        Raw::Text(t) => Some(t.resolve(scratch)),
        Raw::Number(t) => Some(t),
        _ => None,
    }
}

/// Messages of the connector that are about no row.
fn side_message<'a>(block: &Block<'_, 'a>) -> Result<Step<'a>, Reject> {
    let has = |name: &str| block.raw(name).is_some();
    let only = |names: &[&str]| !block.0.is_empty() && block.0.iter().all(|m| names.contains(&m.name.text));
    if only(&["ts_ms", "ts_us", "ts_ns"]) {
        return Ok(Step::Ignored("heartbeat"));
    }
    if has("status") && has("id") {
        return Ok(Step::Ignored("transaction"));
    }
    if has("source") && ["ddl", "tableChanges", "historyRecord", "databaseName"].into_iter().any(has) {
        return Ok(Step::Ignored("schema_change"));
    }
    if has("aggregate_type") && has("type") {
        return Ok(Step::Ignored("notification"));
    }
    let what = if block.0.is_empty() { "the object is empty" } else { "there is no operation (`op`)" };
    Err(Reject::new(what).hint("this is no envelope of Debezium; --format json reads plain objects"))
}
