//! A record of Kafka whose key and value are Avro.

use super::framing::{Framed, Part, Unframed};
use super::known::Known;
use super::schema::{Kind, Schema};
use super::value::Values;
use crate::change::{Column, Message};
use crate::format::fields::Reject;
use crate::format::options::FormatOptions;
use crate::format::scratch::{Scratch, ScratchBuffer};
use asofdb_storage::value::Cell;
use std::sync::Arc;

/// Scratch space that a message may have, at most.
const ROOM_MAX: usize = 160 << 20;

/// A part of a message with its schema.
pub(in crate::format) struct Read<'a> {
    pub framed: Framed<'a>,
    pub schema: Arc<Schema>,
}

/// Why a part cannot be read.
pub(in crate::format) enum Fault {
    /// It has no frame.
    Frame(Unframed),
    /// There is no schema of its id.
    Schema(Reject),
}

impl From<Unframed> for Fault {
    fn from(unframed: Unframed) -> Fault {
        Fault::Frame(unframed)
    }
}

impl From<&Fault> for Reject {
    fn from(fault: &Fault) -> Reject {
        match fault {
            Fault::Frame(unframed) => Reject::from(*unframed),
            Fault::Schema(reject) => reject.clone(),
        }
    }
}

/// The parts of a message with their schemas; `None` where there is no such part.
pub(in crate::format) struct Opened<'a> {
    pub key: Result<Option<Read<'a>>, Fault>,
    pub value: Result<Option<Read<'a>>, Fault>,
    pub former: Result<Option<Read<'a>>, Fault>,
}

impl<'a> Opened<'a> {
    pub fn of(known: &mut Known, options: &FormatOptions, message: &Message<'a>) -> Opened<'a> {
        let mut part = |part: Part| {
            let Some(bytes) = part.of(message) else { return Ok(None) };
            if let Some(schema) = &known.fixed {
                let framed = Framed { id: 0, body: bytes, at: 0 };
                return Ok((part == Part::Value).then(|| Read { framed, schema: schema.clone() }));
            }
            let framed = options.framing.framed(bytes, message.headers, part)?;
            let schema = known.schema(part, &framed).map_err(Fault::Schema)?;
            Ok(Some(Read { framed, schema }))
        };
        Opened { key: part(Part::Key), value: part(Part::Value), former: part(Part::Former) }
    }
}

/// Decodes with as much room as it takes.
pub(in crate::format) fn with_room<T>(
    buffer: &mut ScratchBuffer,
    message: &Message<'_>,
    mut decode: impl FnMut(&mut ScratchBuffer, usize, bool) -> Option<T>,
) -> Option<T> {
    let length = |b: Option<&[u8]>| b.map_or(0, <[u8]>::len);
    let mut room = (length(message.key) + length(message.value)) * 4 + 4096;
    loop {
        let last = room >= ROOM_MAX;
        match decode(buffer, room, last) {
            None if !last => room = (room * 8).min(ROOM_MAX),
            done => return done,
        }
    }
}

/// The columns of a key: the fields of a record, or one without a name. A key that is not framed is
/// one of a plain string converter.
pub(in crate::format) fn key_columns<'a>(
    opened: &'a Result<Option<Read<'a>>, Fault>,
    bytes: Option<&'a [u8]>,
    scratch: &mut Scratch<'a>,
    out: &mut Vec<Column<'a>>,
    debezium: bool,
) -> Result<(), Reject> {
    let read = match opened {
        Ok(None) => return Ok(()),
        Ok(Some(read)) => read,
        Err(fault) => {
            return match bytes.and_then(|b| std::str::from_utf8(b).ok()) {
                Some(text) if !text.starts_with('\0') => {
                    out.push(Column { name: "", cell: Cell::Text(text) });
                    Ok(())
                }
                _ => Err(Reject::from(fault).hint("this is the record's key")),
            };
        }
    };
    let mut values = Values::new(&read.schema, read.framed.body, scratch, debezium);
    let mut columns = |out: &mut Vec<_>| {
        let ty = values.resolved(read.schema.root)?;
        match &read.schema.ty(ty).kind {
            Kind::Null => {}
            Kind::Record(record) => values.columns(record, out)?,
            _ => out.push(Column { name: "", cell: values.cell(ty)? }),
        }
        whole(&values)
    };
    columns(out).map_err(|e| e.at(0).hint("this is the record's key"))
}

/// The same fault, counted from the start of the message.
pub(in crate::format) fn at_value(reject: Reject, read: &Read<'_>) -> Reject {
    let offset = reject.offset + read.framed.at;
    reject.at(offset)
}

/// A message ends where its schema says.
pub(in crate::format) fn whole(values: &Values<'_, '_>) -> Result<(), Reject> {
    match values.wire.left() {
        0 => Ok(()),
        n => Err(values
            .wire
            .fault(format!("{n} bytes are left; the message was written with another schema"))
            .hint("the id in front of the message is not that of the schema it was written with")),
    }
}
