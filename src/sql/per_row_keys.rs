//! The bytes of the keys that left rows ask for, as columns.

use super::keys::{candidates, is_null, put_part, value_of};
use asofdb_storage::key::put_key_cell;
use asofdb_storage::value::{Cell, ColumnType, Value, canonical_number};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{DataType, Int64Type, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

/// Which bytes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Spelling {
    /// Those of the values as they are.
    AsItIs,
    /// All others under which the same values may have been stored before a column was widened, see
    /// [`other_keys`]. NULL if there are none, and no text stands for a number.
    Others,
}

/// Whether values of a key column of this type may have been stored in another spelling.
pub(crate) fn may_differ(ty: ColumnType) -> bool {
    !matches!(
        ty,
        ColumnType::Bool
            | ColumnType::Int64
            | ColumnType::Decimal { .. }
            | ColumnType::Date
            | ColumnType::TimestampNs
            | ColumnType::Bytes
    )
}

/// The bytes of a key whose parts are other expressions, of the types of the key columns; NULL where a part is NULL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyBytes {
    parts: Vec<Arc<dyn PhysicalExpr>>,
    types: Vec<ColumnType>,
    spelling: Spelling,
}

impl KeyBytes {
    pub fn new(parts: Vec<Arc<dyn PhysicalExpr>>, types: Vec<ColumnType>, spelling: Spelling) -> KeyBytes {
        KeyBytes { parts, types, spelling }
    }
}

impl fmt::Display for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key({:?})", self.spelling)
    }
}

impl PhysicalExpr for KeyBytes {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let part = |(e, ty): (&Arc<dyn PhysicalExpr>, &ColumnType)| {
            Ok(Part::new(e.evaluate(batch)?.into_array(rows)?, *ty))
        };
        let parts = self.parts.iter().zip(&self.types).map(part).collect::<Result<Vec<_>>>()?;
        let mut out = BinaryBuilder::with_capacity(rows, 0);
        let mut bytes = Vec::new();
        for row in 0..rows {
            bytes.clear();
            let there = match self.spelling {
                Spelling::AsItIs => put_key(&parts, row, &mut bytes)?,
                Spelling::Others => put_others(&parts, row, &mut bytes)?,
            };
            match there {
                true => out.append_value(&bytes),
                false => out.append_null(),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(out.finish())))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.parts.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        parts: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(KeyBytes { parts, types: self.types.clone(), spelling: self.spelling }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One column of the key, of all rows.
struct Part {
    values: Values,
    ty: ColumnType,
}

enum Values {
    Int(Int64Array),
    Text(StringArray),
    Other(ArrayRef),
}

impl Part {
    fn new(array: ArrayRef, ty: ColumnType) -> Part {
        let values = match array.data_type() {
            DataType::Int64 => Values::Int(array.as_primitive::<Int64Type>().clone()),
            DataType::Utf8 => Values::Text(array.as_string::<i32>().clone()),
            _ => Values::Other(array),
        };
        Part { values, ty }
    }

    /// Appends the bytes of a value; false if it is NULL.
    fn put(&self, row: usize, out: &mut Vec<u8>) -> Result<bool> {
        match &self.values {
            Values::Int(array) if array.is_null(row) => return Ok(false),
            Values::Text(array) if array.is_null(row) => return Ok(false),
            Values::Int(array) => put_key_cell(out, &Cell::Int(array.value(row))),
            Values::Text(array) => put_key_cell(out, &Cell::Text(array.value(row))),
            Values::Other(_) => match self.value(row)? {
                Some(value) => put_part(out, &value),
                None => return Ok(false),
            },
        }
        Ok(true)
    }

    fn value(&self, row: usize) -> Result<Option<Value>> {
        let scalar = match &self.values {
            Values::Int(array) => ScalarValue::try_from_array(array, row)?,
            Values::Text(array) => ScalarValue::try_from_array(array, row)?,
            Values::Other(array) => ScalarValue::try_from_array(array, row)?,
        };
        Ok(value_of(&scalar).filter(|v| !is_null(v)))
    }

    /// Whether a value may have another spelling, or stands for a number; most do not, which is seen without
    /// making it.
    fn may_differ(&self, row: usize) -> bool {
        match &self.values {
            Values::Int(_) => false,
            Values::Text(array) if array.is_null(row) => false,
            Values::Text(array) => {
                let text = array.value(row).as_bytes();
                text.ends_with(b"0") && text.contains(&b'.')
                    || text.starts_with(b"\\x")
                    || canonical_number(array.value(row)).is_some()
            }
            Values::Other(_) => may_differ(self.ty),
        }
    }
}

fn put_key(parts: &[Part], row: usize, out: &mut Vec<u8>) -> Result<bool> {
    for part in parts {
        if !part.put(row, out)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Puts all spellings of a key but the first, each behind its length.
fn put_others(parts: &[Part], row: usize, out: &mut Vec<u8>) -> Result<bool> {
    if !parts.iter().any(|p| p.may_differ(row)) {
        return Ok(false);
    }
    let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
    for part in parts {
        let Some(value) = part.value(row)? else { return Ok(false) };
        let spellings = candidates(part.ty, &value).unwrap_or_else(|| vec![value]);
        let longer = |key: &Vec<u8>| spellings.iter().map(|s| with_part(key, s)).collect::<Vec<_>>();
        keys = keys.iter().flat_map(longer).collect();
    }
    for key in &keys[1..] {
        out.extend_from_slice(&(key.len() as u32).to_le_bytes());
        out.extend_from_slice(key);
    }
    Ok(true)
}

fn with_part(key: &[u8], part: &Value) -> Vec<u8> {
    let mut key = key.to_vec();
    put_part(&mut key, part);
    key
}

/// The keys in a value of a column of [`Spelling::Others`].
pub(crate) fn other_keys(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        bytes = rest;
        Some(key)
    })
}
