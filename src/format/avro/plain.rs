//! Plain records: the fields of a record are the columns. With a Kafka key, a message without a value is
//! a delete.

use super::flat;
use super::known::{Known, Unready};
use super::message::{Opened, Read, at_value, key_columns, whole, with_room};
use super::schema::{Dialect, Kind};
use super::value::Values;
use crate::change::{Change, Column, Decoded, Message, Numbered, Sink};
use crate::format::declare;
use crate::format::fields::Reject;
use crate::format::options::FormatOptions;
use crate::format::roles::{Plain, Roles};
use crate::format::scratch::{Scratch, ScratchBuffer};
use asofdb_storage::recycle;
use asofdb_storage::value::Cell;
use std::cell::OnceCell;

/// Decodes records of Avro.
#[derive(Debug)]
pub struct PlainAvro {
    scratch: ScratchBuffer,
    parts: Parts<'static>,
    known: Known,
    roles: OnceCell<Option<Roles>>,
}

#[derive(Debug, Default)]
struct Parts<'a> {
    columns: Vec<Column<'a>>,
    numbers: Vec<u16>,
    image: Vec<Column<'a>>,
    key: Vec<Column<'a>>,
    ties: Vec<Cell<'a>>,
}

impl<'a> Parts<'a> {
    fn recycled<'b>(self) -> Parts<'b> {
        Parts {
            columns: recycle(self.columns),
            numbers: recycle(self.numbers),
            image: recycle(self.image),
            key: recycle(self.key),
            ties: recycle(self.ties),
        }
    }
}

#[allow(clippy::large_enum_variant, reason = "lives for one call")]
enum Step<'a> {
    Change { change: Change<'a>, filtered: bool, numbers: &'a [u16] },
    Quick { plain: Plain<'a>, filtered: bool },
    PreImage,
    Ignored(&'static str),
}

impl Default for PlainAvro {
    fn default() -> PlainAvro {
        let known = Known::new(Dialect::Avro);
        let roles = OnceCell::new();
        PlainAvro { scratch: ScratchBuffer::default(), parts: Parts::default(), known, roles }
    }
}

impl PlainAvro {
    /// A decoder for the records of a file with that schema.
    ///
    /// # Errors
    /// In words, if it is none.
    pub fn of_file(schema: &str) -> Result<PlainAvro, String> {
        let mut decoder = PlainAvro::default();
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

    /// Decodes one message that [`PlainAvro::ready`] has seen and hands it to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let PlainAvro { scratch, parts, known, roles } = self;
        let opened = Opened::of(known, options, message);
        roles.get_or_init(|| Roles::new(options));
        let mut roles = roles.get_mut().and_then(Option::as_mut);
        let dictionary = known.dictionary;
        with_room(scratch, message, |buffer, room, last| {
            let mut scratch = buffer.scratch(room);
            let mut p = std::mem::take(parts).recycled();
            let mut reader = Reader { options, message, known, roles: roles.as_deref_mut(), p: &mut p };
            let step = reader.read(&opened, &mut scratch);
            let done = last || !scratch.overflowed();
            if done {
                deliver(step, scratch.overflowed(), message, &p, dictionary, sink);
            }
            *parts = p.recycled();
            done.then_some(())
        });
    }
}

fn deliver<'a>(
    step: Result<Step<'a>, Reject>,
    overflowed: bool,
    message: &Message<'a>,
    p: &Parts<'a>,
    dictionary: u32,
    sink: &mut Sink<'_>,
) {
    match step {
        _ if overflowed => {
            sink(Decoded::Quarantine(Reject::new("the message needs more room than it should").fault()));
        }
        Ok(Step::Ignored(kind)) => sink(Decoded::Ignored(kind)),
        Ok(Step::PreImage) => sink(Decoded::Changes(&[])),
        Ok(Step::Change { mut change, filtered, numbers }) => {
            change.declared.ties = &p.ties;
            change.fields = &p.columns;
            change.image = if filtered { &p.image } else { &p.columns };
            if !filtered && !numbers.is_empty() {
                change.numbered = Numbered { dictionary, numbers };
            }
            change.key = &p.key;
            change.headers = message.headers;
            sink(Decoded::Changes(std::slice::from_ref(&change)));
        }
        Ok(Step::Quick { plain, filtered }) => {
            let mut change = plain.change();
            change.fields = &p.columns;
            change.image = if filtered { &p.image } else { &p.columns };
            change.numbered = Numbered { dictionary, numbers: &p.numbers };
            change.key = &p.key;
            change.headers = message.headers;
            sink(Decoded::Changes(std::slice::from_ref(&change)));
        }
        Err(reject) => sink(Decoded::Quarantine(reject.fault())),
    }
}

struct Reader<'r, 'a> {
    options: &'r FormatOptions,
    message: &'r Message<'a>,
    known: &'r Known,
    /// What columns are for, where that takes no more than a look at each.
    roles: Option<&'r mut Roles>,
    p: &'r mut Parts<'a>,
}

impl<'a> Reader<'_, 'a> {
    fn read(&mut self, opened: &'a Opened<'a>, scratch: &mut Scratch<'a>) -> Result<Step<'a>, Reject> {
        key_columns(&opened.key, self.message.key, scratch, &mut self.p.key, false)?;
        let value = match &opened.value {
            Ok(value) => value,
            Err(fault) => return Err(fault.into()),
        };
        let (options, message) = (self.options, self.message);
        let Some(read) = value else { return Ok(tombstone(options, message, self.p, scratch)) };
        if let Some(step) = self.quick(read) {
            return step;
        }
        let p = &mut *self.p;
        match record(read, p, scratch).map_err(|e| at_value(e, read))? {
            None => Ok(tombstone(options, message, p, scratch)),
            Some(numbers) => {
                let (columns, image, ties) = (&p.columns, &mut p.image, &mut p.ties);
                let plain = declare::plain_change(options, message, columns, image, ties, scratch)?;
                let change = |(change, filtered)| Step::Change { change, filtered, numbers };
                Ok(plain.map_or(Step::PreImage, change))
            }
        }
    }

    /// A record of simple values; `None` if the message has to go the other way.
    fn quick(&mut self, read: &'a Read<'a>) -> Option<Result<Step<'a>, Reject>> {
        let p = &mut *self.p;
        let roles = self.roles.as_deref_mut()?;
        let Kind::Record(record) = &read.schema.ty(read.schema.root).kind else { return None };
        if record.flat.is_empty() || record.numbers.is_empty() {
            return None;
        }
        let mut step = None;
        if flat::columns(record, read.framed.body, &mut p.columns) {
            p.numbers.extend_from_slice(&record.numbers);
            let names = self.known.names();
            step = roles.change(self.options, names, self.message, &p.columns, &mut p.numbers, &mut p.image);
        }
        if step.is_none() {
            p.columns.clear();
            p.numbers.clear();
        }
        let quick = |(plain, filtered)| Step::Quick { plain, filtered };
        step.map(|plain| plain.map(|plain| plain.map_or(Step::PreImage, quick)))
    }
}

/// Reads the record into columns; the numbers of their names, or `None` if the value is null.
fn record<'a>(
    read: &'a Read<'a>,
    p: &mut Parts<'a>,
    scratch: &mut Scratch<'a>,
) -> Result<Option<&'a [u16]>, Reject> {
    let mut values = Values::new(&read.schema, read.framed.body, scratch, false);
    let ty = values.resolved(read.schema.root)?;
    let numbers = match &read.schema.ty(ty).kind {
        Kind::Null => None,
        Kind::Record(record) => {
            values.columns(record, &mut p.columns)?;
            Some(record.numbers.as_slice())
        }
        _ => return Err(Reject::new("the message is no record").hint("its schema has to be one of a record")),
    };
    whole(&values)?;
    Ok(numbers)
}

fn tombstone<'a>(
    options: &FormatOptions,
    message: &Message<'a>,
    p: &mut Parts<'a>,
    scratch: &mut Scratch<'a>,
) -> Step<'a> {
    match declare::plain_tombstone(options, message, &p.key, &mut p.ties, scratch) {
        Some(change) => Step::Change { change, filtered: false, numbers: &[] },
        None => Step::Ignored(crate::format::TOMBSTONE_WITHOUT_KEY),
    }
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
