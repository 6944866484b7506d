//! Values by their types: as cells, as members of an envelope, as JSON text, or passed over.

use super::schema::{Kind, Record, Schema, Type};
use super::wire::Wire;
use crate::change::Column;
use crate::format::debezium::Encoding;
use crate::format::debezium::values::{
    PLACEHOLDER, PLACEHOLDERS_NESTED, is_placeholder_text, semantic_text, time_of_day, timestamp,
    unscaled_cell,
};
use crate::format::fields::{Reject, shortened};
use crate::format::json::{Raw, RawText};
use crate::format::scratch::Scratch;
use asofdb_storage::value::{Cell, write_json};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashSet;
use std::fmt::Write;

/// The deepest nesting of types that is read.
const DEPTH_MAX: u32 = 100;
/// JSON text of the nested values of one message, at most.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// Reads the values of one message.
pub struct Values<'r, 'a> {
    schema: &'a Schema,
    /// The bytes of the message.
    pub wire: Wire<'a>,
    scratch: &'r mut Scratch<'a>,
    /// Placeholders for values that were not sent are known.
    debezium: bool,
    depth: u32,
    text_left: usize,
}

impl<'r, 'a> Values<'r, 'a> {
    /// The values of `body` under the schema it was written with.
    pub fn new(schema: &'a Schema, body: &'a [u8], scratch: &'r mut Scratch<'a>, debezium: bool) -> Self {
        let text_left = TEXT_BYTES_MAX;
        Values { schema, wire: Wire::new(body), scratch, debezium, depth: 0, text_left }
    }

    /// The scratch space of the message.
    pub fn scratch(&mut self) -> &mut Scratch<'a> {
        self.scratch
    }

    /// Goes through unions down to the type that the next value has.
    pub fn resolved(&mut self, ty: usize) -> Result<usize, Reject> {
        self.wire.step()?;
        match &self.schema.ty(ty).kind {
            Kind::Union(branches) => {
                let branch = self.branch(branches)?;
                self.deeper(|v| v.resolved(branch))
            }
            _ => Ok(ty),
        }
    }

    /// The fields of a record as columns.
    pub fn columns(&mut self, record: &'a Record, out: &mut Vec<Column<'a>>) -> Result<(), Reject> {
        for field in &record.fields {
            let cell = self.cell(field.ty)?;
            out.push(Column { name: &field.name, cell });
        }
        Ok(())
    }

    /// The next value as a cell.
    pub fn cell(&mut self, ty: usize) -> Result<Cell<'a>, Reject> {
        self.wire.step()?;
        let Type { kind, encoding } = self.schema.ty(ty);
        Ok(match kind {
            Kind::Null => Cell::Null,
            Kind::Boolean => Cell::Bool(self.wire.boolean()?),
            Kind::Int => number(*encoding, self.wire.int()? as i64, self.scratch)?,
            Kind::Long => number(*encoding, self.wire.long()?, self.scratch)?,
            Kind::Float => Cell::Float(self.wire.float()? as f64),
            Kind::Double => Cell::Float(self.wire.double()?),
            Kind::Bytes => self.bytes_cell(*encoding, None)?,
            Kind::Fixed(size) => self.bytes_cell(*encoding, Some(*size))?,
            Kind::String => {
                let text = self.wire.text()?;
                match self.debezium && is_placeholder_text(text) {
                    true => Cell::Unknown,
                    false if *encoding == Encoding::Untyped => Cell::Text(text),
                    false => semantic_text(*encoding, text, self.scratch),
                }
            }
            Kind::Enum(symbols) => Cell::Text(self.symbol(symbols)?),
            Kind::Union(branches) => {
                let branch = self.branch(branches)?;
                self.deeper(|v| v.cell(branch))?
            }
            Kind::Record(record) if *encoding == Encoding::VariableScaleDecimal => {
                self.deeper(|v| v.variable_scale(record))?
            }
            Kind::Record(_) | Kind::Array(_) | Kind::Map(_) => {
                let text = self.nested(ty)?;
                match self.debezium && PLACEHOLDERS_NESTED.contains(&text) {
                    true => Cell::Unknown,
                    false => Cell::Json(text),
                }
            }
        })
    }

    /// The next value as the member of a JSON object would have it.
    pub fn raw(&mut self, ty: usize) -> Result<Raw<'a>, Reject> {
        let ty = self.resolved(ty)?;
        let text = |text: &'a str| Raw::Text(RawText { text, escaped: false });
        Ok(match &self.schema.ty(ty).kind {
            Kind::Null => Raw::Null,
            Kind::Boolean => Raw::Bool(self.wire.boolean()?),
            Kind::Int | Kind::Long => {
                let n = self.wire.long()?;
                Raw::Number(self.scratch.put_str(|out| push(out, format_args!("{n}"))))
            }
            Kind::String => text(self.wire.text()?),
            Kind::Enum(symbols) => text(self.symbol(symbols)?),
            Kind::Record(_) | Kind::Array(_) | Kind::Map(_) => {
                Raw::Nested { text: self.nested(ty)?, spaced: false }
            }
            _ => {
                let cell = self.cell(ty)?;
                text(self.scratch.put_str(|out| asofdb_storage::value::write_text(out, &cell)))
            }
        })
    }

    /// Passes over the next value.
    pub fn skip(&mut self, ty: usize) -> Result<(), Reject> {
        self.wire.step()?;
        match &self.schema.ty(ty).kind {
            Kind::Null => Ok(()),
            Kind::Boolean => self.wire.boolean().map(|_| ()),
            Kind::Int | Kind::Long | Kind::Enum(_) => self.wire.long().map(|_| ()),
            Kind::Float => self.wire.float().map(|_| ()),
            Kind::Double => self.wire.double().map(|_| ()),
            Kind::Bytes | Kind::String => self.wire.bytes().map(|_| ()),
            Kind::Fixed(size) => self.wire.take(*size).map(|_| ()),
            Kind::Union(branches) => {
                let branch = self.branch(branches)?;
                self.deeper(|v| v.skip(branch))
            }
            Kind::Record(record) => {
                self.deeper(|v| record.fields.iter().try_for_each(|field| v.skip(field.ty)))
            }
            Kind::Array(items) => self.deeper(|v| v.each(|v| v.skip(*items))),
            Kind::Map(values) => self.deeper(|v| {
                v.each(|v| {
                    v.wire.text()?;
                    v.skip(*values)
                })
            }),
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Reject>) -> Result<T, Reject> {
        if self.depth >= DEPTH_MAX {
            return Err(self.wire.fault(format!("values are nested more than {DEPTH_MAX} deep")));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn branch(&mut self, branches: &[usize]) -> Result<usize, Reject> {
        let n = self.wire.long()?;
        let branch = usize::try_from(n).ok().and_then(|n| branches.get(n).copied());
        branch.ok_or_else(|| {
            self.wire.fault(format!("branch {n} of a union that has {} branches", branches.len()))
        })
    }

    fn symbol(&mut self, symbols: &'a [String]) -> Result<&'a str, Reject> {
        let n = self.wire.long()?;
        let symbol = usize::try_from(n).ok().and_then(|n| symbols.get(n));
        match symbol {
            Some(symbol) => Ok(symbol),
            None => Err(self.wire.fault(format!("symbol {n} of an enum that has {} symbols", symbols.len()))),
        }
    }

    /// Every value of an array or map.
    fn each(&mut self, mut read: impl FnMut(&mut Self) -> Result<(), Reject>) -> Result<(), Reject> {
        loop {
            let count = self.wire.block()?;
            if count == 0 {
                return Ok(());
            }
            for _ in 0..count {
                read(self)?;
            }
        }
    }

    fn bytes_cell(&mut self, encoding: Encoding, size: Option<usize>) -> Result<Cell<'a>, Reject> {
        let bytes = match size {
            Some(size) => self.wire.take(size)?,
            None => self.wire.bytes()?,
        };
        if self.debezium && bytes == PLACEHOLDER.as_bytes() {
            return Ok(Cell::Unknown);
        }
        let typed = match encoding {
            Encoding::Decimal { scale } => unscaled_cell(bytes, scale, self.scratch),
            Encoding::Uuid if bytes.len() == 16 => {
                Some(Cell::Text(self.scratch.put_str(|out| write_uuid(out, bytes))))
            }
            _ => None,
        };
        Ok(typed.unwrap_or(Cell::Bytes(bytes)))
    }

    /// A number whose scale is its own.
    fn variable_scale(&mut self, record: &'a Record) -> Result<Cell<'a>, Reject> {
        let (mut scale, mut unscaled) = (0, None);
        for field in &record.fields {
            match (field.name.as_str(), self.cell(field.ty)?) {
                ("scale", Cell::Int(n)) => scale = n,
                ("value", Cell::Bytes(bytes)) => unscaled = Some(bytes),
                _ => {}
            }
        }
        let Some(bytes) = unscaled else { return Ok(Cell::Null) };
        Ok(unscaled_cell(bytes, scale, self.scratch).unwrap_or(Cell::Bytes(bytes)))
    }

    fn nested(&mut self, ty: usize) -> Result<&'a str, Reject> {
        let mut text = String::new();
        self.json(ty, &mut text)?;
        self.text_left = self.text_left.saturating_sub(text.len());
        Ok(self.scratch.put_str(|out| out.push_str(&text)))
    }

    /// Appends the next value as JSON.
    fn json(&mut self, ty: usize, out: &mut String) -> Result<(), Reject> {
        if out.len() > self.text_left {
            return Err(self.wire.fault("the nested values of the message are too large"));
        }
        let Type { kind, encoding } = self.schema.ty(ty);
        match kind {
            Kind::Record(record) if *encoding != Encoding::VariableScaleDecimal => {
                self.wire.step()?;
                self.deeper(|v| v.json_record(record, out))?;
            }
            Kind::Array(items) => {
                self.wire.step()?;
                out.push('[');
                let from = out.len();
                self.deeper(|v| {
                    v.each(|v| {
                        comma(out, from);
                        v.json(*items, out)
                    })
                })?;
                out.push(']');
            }
            Kind::Map(values) => {
                self.wire.step()?;
                self.deeper(|v| v.json_map(*values, out))?;
            }
            Kind::Union(branches) => {
                self.wire.step()?;
                let branch = self.branch(branches)?;
                self.deeper(|v| v.json(branch, out))?;
            }
            _ => match self.cell(ty)? {
                Cell::Text(text) => push_text(out, text),
                Cell::Bytes(bytes) => push_text(out, &STANDARD.encode(bytes)),
                Cell::Unknown => push_text(out, PLACEHOLDER),
                cell => write_json(out, &cell),
            },
        }
        Ok(())
    }

    fn json_record(&mut self, record: &'a Record, out: &mut String) -> Result<(), Reject> {
        out.push('{');
        let from = out.len();
        for field in &record.fields {
            comma(out, from);
            push_text(out, &field.name);
            out.push(':');
            self.json(field.ty, out)?;
        }
        out.push('}');
        Ok(())
    }

    fn json_map(&mut self, values: usize, out: &mut String) -> Result<(), Reject> {
        out.push('{');
        let (from, mut seen) = (out.len(), HashSet::new());
        self.each(|v| {
            let key = v.wire.text()?;
            if !seen.insert(key) {
                return Err(v.wire.fault(format!("a map has the key `{}` twice", shortened(key))));
            }
            comma(out, from);
            push_text(out, key);
            out.push(':');
            v.json(values, out)
        })?;
        out.push('}');
        Ok(())
    }
}

fn comma(out: &mut String, from: usize) {
    if out.len() > from {
        out.push(',');
    }
}

fn push(out: &mut String, what: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(what);
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

fn push_text(out: &mut String, text: &str) {
    push(out, format_args!("{}", serde_json::Value::String(text.to_owned())));
}

fn write_uuid(out: &mut String, bytes: &[u8]) {
    for (i, b) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        push(out, format_args!("{b:02x}"));
    }
}

fn number<'a>(encoding: Encoding, n: i64, scratch: &mut Scratch<'a>) -> Result<Cell<'a>, Reject> {
    Ok(match encoding {
        Encoding::Date => i32::try_from(n).map_or(Cell::Int(n), Cell::Date),
        Encoding::Time(per_second) => time_of_day(n, per_second, scratch),
        Encoding::Timestamp(per_second) => timestamp(n, per_second)?,
        Encoding::Instant(per_second) => instant(n, per_second, scratch)?,
        _ => Cell::Int(n),
    })
}

/// Instants of finer than microseconds are text; nothing is cut off.
fn instant<'a>(n: i64, per_second: u32, scratch: &mut Scratch<'a>) -> Result<Cell<'a>, Reject> {
    Ok(match per_second {
        1_000_000_000 if n % 1_000 != 0 => {
            let time = chrono::DateTime::from_timestamp_nanos(n);
            let text = time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
            Cell::Text(scratch.put_str(|out| out.push_str(&text)))
        }
        1_000_000_000 => Cell::Instant(n / 1_000),
        _ => match timestamp(n, per_second)? {
            Cell::Timestamp(us) => Cell::Instant(us),
            other => other,
        },
    })
}
