//! From filters to keys: equality and IN on all key columns become the bytes of the keys, and what is said of
//! the first ones of them stretches of keys.
//!
//! Key bytes do not depend on the type a column has now (see [`asofdb_storage::key`]), but the text
//! of a widened column may have come from several kinds of values: then all their bytes are asked
//! for. What is pushed is a superset of what the filter lets through, and the filter stays.

use super::key_ranges::{both, merged, ranges_of};
use asofdb_storage::engine::KeyFilter;
use asofdb_storage::key::{KeyRange, key_bytes, put_key_cell};
use asofdb_storage::schema::{Column, TableSchema};
use asofdb_storage::value::{Cell, ColumnType, Value, canonical_number};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, expr::InList};

/// More keys than this are read by a scan instead.
const KEYS_MAX: usize = 10_000;

/// More stretches of keys than this are one from the first to the last.
const RANGES_MAX: usize = 64;

/// The keys that the filters name, stretches of keys that hold those they let through, or all.
pub(crate) fn key_filter(schema: &TableSchema, filters: &[Expr]) -> KeyFilter {
    if schema.key.is_empty() {
        return KeyFilter::All;
    }
    let conditions: Vec<&Expr> = filters.iter().flat_map(split_conjunction).collect();
    let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
    for id in &schema.key {
        let Some(column) = schema.columns.get(id.0 as usize) else { return stretches(&keys, None) };
        let parts = conditions.iter().filter_map(|f| wanted_parts(f, column)).min_by_key(|v| v.len());
        match parts {
            Some(parts) if keys.len().saturating_mul(parts.len()) <= KEYS_MAX => {
                keys =
                    keys.iter().flat_map(|k| parts.iter().map(move |p| [k.as_slice(), p].concat())).collect();
            }
            _ => {
                let ranges = conditions.iter().map(|f| ranges_of(f, column)).fold(None, both);
                return stretches(&keys, ranges);
            }
        }
    }
    keys.sort_unstable();
    keys.dedup();
    KeyFilter::Keys(keys)
}

/// Keys that begin with one of `prefixes` and go on within `ranges`, or in any way.
fn stretches(prefixes: &[Vec<u8>], ranges: Option<Vec<KeyRange>>) -> KeyFilter {
    let all = match ranges {
        None if prefixes.iter().any(Vec::is_empty) => return KeyFilter::All,
        None => prefixes.iter().map(|p| KeyRange::of_prefix(p)).collect(),
        Some(ranges) => prefixes.iter().flat_map(|p| ranges.iter().map(|r| r.behind(p))).collect(),
    };
    let all = merged(all);
    match all.as_slice() {
        [first, .., last] if all.len() > RANGES_MAX => {
            KeyFilter::Ranges(vec![KeyRange { from: first.from.clone(), before: last.before.clone() }])
        }
        _ => KeyFilter::Ranges(all),
    }
}

/// The filters that say something of the key.
pub(crate) fn key_filters<'f>(schema: &TableSchema, filters: &'f [Expr]) -> Vec<&'f Expr> {
    let columns: Vec<_> = schema.key.iter().filter_map(|id| schema.columns.get(id.0 as usize)).collect();
    let says = |f: &&Expr| columns.iter().any(|c| ranges_of(f, c).is_some());
    filters.iter().flat_map(split_conjunction).filter(says).collect()
}

/// What a key may have for the values that a filter lets through in a column, where it names them.
pub(crate) fn wanted_parts(filter: &Expr, column: &Column) -> Option<Vec<Vec<u8>>> {
    parts_of(column.ty, &wanted_values(filter, &column.name)?)
}

fn parts_of(ty: ColumnType, values: &[ScalarValue]) -> Option<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    for value in values.iter().filter(|v| !v.is_null()) {
        for candidate in candidates(ty, &value_of(value)?)? {
            parts.push(key_bytes([&candidate.as_cell()]));
        }
    }
    Some(parts)
}

/// The values that `filter` lets through in a column, if it is an equality, an IN, or an OR of them.
fn wanted_values(filter: &Expr, column: &str) -> Option<Vec<ScalarValue>> {
    let is_column = |e: &Expr| matches!(e, Expr::Column(c) if c.name == column);
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            match (left.as_ref(), right.as_ref()) {
                (c, Expr::Literal(v, _)) | (Expr::Literal(v, _), c) if is_column(c) => Some(vec![v.clone()]),
                _ => None,
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let mut values = wanted_values(left, column)?;
            values.extend(wanted_values(right, column)?);
            Some(values)
        }
        Expr::InList(InList { expr, list, negated: false }) if is_column(expr) => list
            .iter()
            .map(|e| match e {
                Expr::Literal(v, _) => Some(v.clone()),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

/// A constant as a value of the store; `None` for types that no key column has.
pub(crate) fn value_of(value: &ScalarValue) -> Option<Value> {
    use ScalarValue::*;
    Some(match value {
        Boolean(Some(v)) => Value::Bool(*v),
        Int8(Some(v)) => Value::Int(*v as i64),
        Int16(Some(v)) => Value::Int(*v as i64),
        Int32(Some(v)) => Value::Int(*v as i64),
        Int64(Some(v)) => Value::Int(*v),
        Decimal128(Some(v), _, scale) => Value::Decimal { unscaled: *v, scale: u8::try_from(*scale).ok()? },
        Utf8(Some(s)) | LargeUtf8(Some(s)) | Utf8View(Some(s)) => Value::Text(s.clone()),
        Binary(Some(b)) | LargeBinary(Some(b)) | BinaryView(Some(b)) => Value::Bytes(b.clone()),
        Date32(Some(d)) => Value::Date(*d),
        TimestampMicrosecond(Some(t), None) => Value::Timestamp(*t),
        TimestampNanosecond(Some(t), None) => Value::TimestampNs(*t),
        TimestampMicrosecond(Some(t), Some(_)) => Value::Instant(*t),
        _ => return None,
    })
}

/// All values that a key column of type `ty` may have stored for what now reads as `value`; `None`
/// where they cannot be listed.
pub(crate) fn candidates(ty: ColumnType, value: &Value) -> Option<Vec<Value>> {
    const DAY_US: i64 = 86_400_000_000;
    let also_date =
        |us: i64| (us.rem_euclid(DAY_US) == 0).then_some(Value::Date((us.div_euclid(DAY_US)) as i32));
    let mut all = vec![value.clone()];
    match (ty, value) {
        (ColumnType::Bool, Value::Bool(_))
        | (ColumnType::Int64, Value::Int(_))
        | (ColumnType::Decimal { .. }, Value::Decimal { .. } | Value::Int(_))
        | (ColumnType::Date, Value::Date(_))
        | (ColumnType::TimestampNs, Value::TimestampNs(_))
        | (ColumnType::Bytes, Value::Bytes(_)) => {}
        (ColumnType::Timestamp, Value::Timestamp(us)) | (ColumnType::Instant, Value::Instant(us)) => {
            all.extend(also_date(*us));
        }
        (ColumnType::Text, Value::Text(text)) => {
            all.extend(trailing_zeros_cut(text));
            all.extend(bytes_of_hex(text).map(Value::Bytes));
        }
        _ => return None,
    }
    Some(all)
}

/// The number that text such as `5.00` was, if a decimal column widened to text.
fn trailing_zeros_cut(text: &str) -> Option<Value> {
    let (_, fraction) = text.split_once('.')?;
    if !fraction.ends_with('0') {
        return None;
    }
    let cut = text.trim_end_matches('0').trim_end_matches('.');
    let (unscaled, scale) = canonical_number(cut)?;
    Some(Value::Decimal { unscaled, scale })
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    asofdb_storage::hex::decode(text.strip_prefix("\\x")?)
}

/// Appends one component of a key.
pub(crate) fn put_part(out: &mut Vec<u8>, value: &Value) {
    put_key_cell(out, &value.as_cell());
}

/// Keys and the filters they come from as words for EXPLAIN.
pub(crate) fn describe_keys(keys: &KeyFilter, schema: &TableSchema, filters: &[Expr]) -> String {
    let keys = match keys {
        KeyFilter::All => return "keys=all".into(),
        KeyFilter::Keys(keys) => format!("keys={}", keys.len()),
        KeyFilter::Ranges(ranges) => format!("keys=in {}", crate::count::of(ranges.len(), "range")),
    };
    // The names of scans are long.
    let filters = key_filters(schema, filters).into_iter().map(|f| unnormalize_col(f.clone()).to_string());
    let filters: Vec<String> = filters.collect();
    format!("{keys}, filters=[{}]", filters.join(", "))
}

/// Whether a cell can be a key of a row at all.
pub(crate) fn is_null(value: &Value) -> bool {
    matches!(value.as_cell(), Cell::Null)
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
