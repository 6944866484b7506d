//! The quick way through records whose fields are simple values or NULL: what each field is, is worked out
//! once a schema. Whatever is unusual is left to [`super::value`], which says what is wrong with it and is what
//! tests compare with.

use super::schema::{Kind, Record, Schema};
use super::wire::Wire;
use crate::change::Column;
use crate::format::debezium::Encoding;
use asofdb_storage::value::Cell;

/// A field that is one simple value, or NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flat {
    simple: Simple,
    /// The number of the branch that is null, where the type is a union of that and the simple one.
    null: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Simple {
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
}

/// The fields of a record by their types; empty if one of them is not simple.
pub fn fields(schema: &Schema, record: &Record) -> Vec<Flat> {
    let all: Option<Vec<Flat>> = record.fields.iter().map(|f| of_type(schema, f.ty)).collect();
    all.unwrap_or_default()
}

fn of_type(schema: &Schema, ty: usize) -> Option<Flat> {
    if let Kind::Union(branches) = &schema.ty(ty).kind {
        let [first, second] = branches[..] else { return None };
        let is_null = |ty: usize| matches!(schema.ty(ty).kind, Kind::Null);
        let (null, other) = if is_null(first) { (0, second) } else { (1, first) };
        let nullable = is_null(first) != is_null(second);
        return nullable
            .then(|| simple(schema, other))
            .flatten()
            .map(|s| Flat { simple: s, null: Some(null) });
    }
    simple(schema, ty).map(|simple| Flat { simple, null: None })
}

fn simple(schema: &Schema, ty: usize) -> Option<Simple> {
    let ty = schema.ty(ty);
    let simple = match ty.kind {
        Kind::Boolean => Simple::Boolean,
        Kind::Int => Simple::Int,
        Kind::Long => Simple::Long,
        Kind::Float => Simple::Float,
        Kind::Double => Simple::Double,
        Kind::Bytes => Simple::Bytes,
        Kind::String => Simple::String,
        _ => return None,
    };
    (ty.encoding == Encoding::Untyped).then_some(simple)
}

/// Reads the record that `body` consists of; `false` if it is to be read the other way, and `out` means nothing.
pub fn columns<'a>(record: &'a Record, body: &'a [u8], out: &mut Vec<Column<'a>>) -> bool {
    let mut wire = Wire::new(body);
    let mut read = || {
        for (field, flat) in record.fields.iter().zip(&record.flat) {
            let cell = match flat.null {
                None => cell(flat.simple, &mut wire)?,
                Some(null) => match wire.short_long()? {
                    branch if branch == null => Cell::Null,
                    0 | 1 => cell(flat.simple, &mut wire)?,
                    _ => return None,
                },
            };
            out.push(Column { name: &field.name, cell });
        }
        Some(())
    };
    read().is_some() && wire.left() == 0
}

#[inline]
fn cell<'a>(simple: Simple, wire: &mut Wire<'a>) -> Option<Cell<'a>> {
    Some(match simple {
        Simple::Boolean => match wire.short_array()? {
            [0] => Cell::Bool(false),
            [1] => Cell::Bool(true),
            _ => return None,
        },
        Simple::Int => Cell::Int(i32::try_from(wire.short_long()?).ok()? as i64),
        Simple::Long => Cell::Int(wire.short_long()?),
        Simple::Float => Cell::Float(f32::from_le_bytes(wire.short_array()?) as f64),
        Simple::Double => Cell::Float(f64::from_le_bytes(wire.short_array()?)),
        Simple::Bytes => Cell::Bytes(wire.short_bytes()?),
        Simple::String => Cell::Text(std::str::from_utf8(wire.short_bytes()?).ok()?),
    })
}
