//! Debezium's envelope as a record: what it means is what [`crate::format::debezium`] says.

use super::framing::OLD_KEY;
use super::known::{Known, Unready};
use super::message::{Opened, Read, at_value, key_columns, whole, with_room};
use super::schema::{Dialect, Kind, Record};
use super::value::Values;
use crate::change::{Change, Message, Numbered, Sink};
use crate::format::block::Block;
use crate::format::debezium::Topics;
use crate::format::debezium::envelope::{self, Operation, Rows, Step};
use crate::format::fields::{Reject, columns, untyped_cell};
use crate::format::json::{self, Member, Raw, RawText};
use crate::format::options::FormatOptions;
use crate::format::scratch::{Scratch, ScratchBuffer};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;

/// Decodes Debezium's envelope in Avro.
#[derive(Debug)]
pub struct DebeziumAvro {
    scratch: ScratchBuffer,
    parts: Parts<'static>,
    known: Known,
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

impl Default for DebeziumAvro {
    fn default() -> DebeziumAvro {
        let known = Known::new(Dialect::Debezium);
        let (scratch, parts, topics) = (ScratchBuffer::default(), Parts::default(), Topics::default());
        DebeziumAvro { scratch, parts, known, topics }
    }
}

/// Where the rows of an envelope stand: the byte at which a value begins, and its type.
#[derive(Default)]
struct Places {
    before: Option<(usize, usize)>,
    after: Option<(usize, usize)>,
}

impl DebeziumAvro {
    /// A decoder for the records of a file with that schema.
    ///
    /// # Errors
    /// In words, if it is none.
    pub fn of_file(schema: &str) -> Result<DebeziumAvro, String> {
        let mut decoder = DebeziumAvro::default();
        decoder.known.fix(schema)?;
        Ok(decoder)
    }

    /// How many bytes the record of a file takes that `bytes` begin with.
    ///
    /// # Errors
    /// If it does not end within them.
    pub fn record_bytes(&self, bytes: &[u8]) -> Result<usize, String> {
        self.known.record_bytes(bytes)
    }

    /// Finds the schemas of a message.
    ///
    /// # Errors
    /// If it cannot be found out whether there are any.
    pub fn ready(&mut self, options: &FormatOptions, message: &Message<'_>) -> Result<(), Unready> {
        self.known.ready(options, message)
    }

    /// Decodes one message that [`DebeziumAvro::ready`] has seen and hands it to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let DebeziumAvro { scratch, parts, known, topics } = self;
        let opened = Opened::of(known, options, message);
        let dictionary = known.dictionary;
        with_room(scratch, message, |buffer, room, last| {
            let mut scratch = buffer.scratch(room);
            let mut p = std::mem::take(parts).recycled();
            let mut reader = Reader { options, message, scratch: &mut scratch };
            let step = reader.read(&opened, &mut p, topics);
            let done = last || !scratch.overflowed();
            if done {
                let step = match scratch.overflowed() {
                    true => Err(Reject::new("the message needs more room than it should")),
                    false => step,
                };
                p.rows.deliver(step, message, Numbered { dictionary, numbers: &p.rows.numbers }, sink);
            }
            *parts = p.recycled();
            done.then_some(())
        });
    }
}

struct Reader<'r, 'a> {
    options: &'r FormatOptions,
    message: &'r Message<'a>,
    scratch: &'r mut Scratch<'a>,
}

impl<'a> Reader<'_, 'a> {
    fn read(
        &mut self,
        opened: &'a Opened<'a>,
        p: &mut Parts<'a>,
        topics: &mut Topics,
    ) -> Result<Step<'a>, Reject> {
        key_columns(&opened.key, self.message.key, self.scratch, &mut p.rows.key, true)?;
        self.former_key(opened, p)?;
        let read = match &opened.value {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(self.tombstone(p, topics)),
            Err(fault) => return Err(fault.into()),
        };
        self.value(read, p, topics).map_err(|e| at_value(e, read))
    }

    fn tombstone(&mut self, p: &mut Parts<'a>, topics: &Topics) -> Step<'a> {
        envelope::tombstone(self.options, self.message, topics, &mut p.rows, self.scratch)
    }

    /// The header with the former key: Avro like the key, or an object of JSON.
    fn former_key(&mut self, opened: &'a Opened<'a>, p: &mut Parts<'a>) -> Result<(), Reject> {
        let Some(header) = self.message.headers.iter().find(|h| h.name == OLD_KEY) else { return Ok(()) };
        let wrong = |e: Reject| e.at(0).hint("this is the header __debezium.oldkey");
        if header.value.first() == Some(&0) {
            return key_columns(&opened.former, None, self.scratch, &mut p.rows.previous, true)
                .map_err(wrong);
        }
        let text = json::message_text(header.value).map_err(|e| wrong(e.into()))?;
        p.envelope.clear();
        json::members(text, &mut p.envelope).map_err(|e| wrong(e.into()))?;
        columns(&p.envelope, 0, self.scratch, &mut p.rows.previous, |_, _, m, s| untyped_cell(&m.value, s))
            .map_err(wrong)
    }

    fn value(
        &mut self,
        read: &'a Read<'a>,
        p: &mut Parts<'a>,
        topics: &mut Topics,
    ) -> Result<Step<'a>, Reject> {
        let mut values = Values::new(&read.schema, read.framed.body, self.scratch, true);
        let ty = values.resolved(read.schema.root)?;
        let record = match &read.schema.ty(ty).kind {
            Kind::Record(record) => record,
            Kind::Null => {
                return Ok(self.tombstone(p, topics));
            }
            _ => return Err(Reject::new("the message is no record")),
        };
        let places = members(read, record, &mut values, p)?;
        whole(&values)?;
        let block = Block(&p.envelope);
        let (code, op) = match envelope::operation(&block)? {
            Operation::Change(code, op) => (code, op),
            Operation::Ignored(kind) => return Ok(Step::Ignored(kind)),
        };
        let change = envelope::change(op, &block, &p.source, self.message, values.scratch());
        rows(read, &places, op, &mut values, &mut p.rows)?;
        self.declared(change, code, p, topics)
    }

    fn declared(
        &mut self,
        change: Change<'a>,
        code: &'static str,
        p: &mut Parts<'a>,
        topics: &mut Topics,
    ) -> Result<Step<'a>, Reject> {
        if let (Some(topic), Some(table)) = (self.message.topic, change.table) {
            topics.learn(topic, table);
        }
        envelope::declared(self.options, self.message, change, code, &mut p.rows, self.scratch)
    }
}

/// Lists the members of an envelope and of its source, and notes where its rows stand.
fn members<'a>(
    read: &'a Read<'a>,
    record: &'a Record,
    values: &mut Values<'_, 'a>,
    p: &mut Parts<'a>,
) -> Result<Places, Reject> {
    let mut places = Places::default();
    p.envelope.clear();
    p.source.clear();
    for field in &record.fields {
        let at = values.wire.at();
        let value = match field.name.as_str() {
            "before" => {
                places.before = Some((at, field.ty));
                values.skip(field.ty)?;
                Raw::Null
            }
            "after" => {
                places.after = Some((at, field.ty));
                values.skip(field.ty)?;
                Raw::Null
            }
            "source" => {
                let ty = values.resolved(field.ty)?;
                match &read.schema.ty(ty).kind {
                    Kind::Record(source) => {
                        for field in &source.fields {
                            let value = values.raw(field.ty)?;
                            p.source.push(member(&field.name, value));
                        }
                        Raw::Nested { text: "{}", spaced: false }
                    }
                    _ => values.raw(ty)?,
                }
            }
            _ => values.raw(field.ty)?,
        };
        p.envelope.push(member(&field.name, value));
    }
    Ok(places)
}

fn member<'a>(name: &'a str, value: Raw<'a>) -> Member<'a> {
    Member { name: RawText { text: name, escaped: false }, value, at: 0 }
}

/// Reads the row of a change, and the old row of an update beside it.
fn rows<'a>(
    read: &'a Read<'a>,
    places: &Places,
    op: Op,
    values: &mut Values<'_, 'a>,
    rows: &mut Rows<'a>,
) -> Result<(), Reject> {
    let keyed = !rows.key.is_empty();
    let (name, beside) = envelope::row_names(op, keyed);
    let mut one = |name: &str, out: &mut Vec<_>, numbers: Option<&mut Vec<u16>>| {
        let place = if name == "before" { places.before } else { places.after };
        let Some((at, ty)) = place else { return Ok(false) };
        values.wire.seek(at);
        let ty = values.resolved(ty)?;
        let record = match &read.schema.ty(ty).kind {
            Kind::Null => return Ok(false),
            Kind::Record(record) => record,
            _ => return Err(values.wire.fault(format!("`{name}` is no record"))),
        };
        values.columns(record, out)?;
        if let Some(numbers) = numbers {
            numbers.extend_from_slice(&record.numbers);
        }
        Ok(!out.is_empty())
    };
    if name.is_empty() {
        return Ok(());
    }
    if !one(name, &mut rows.row, Some(&mut rows.numbers))? {
        envelope::without_row(op, keyed)?;
    }
    if !beside.is_empty() {
        one(beside, &mut rows.before, None)?;
    }
    Ok(())
}
