//! From filters on one key column to stretches of keys: comparisons, BETWEEN, and what is joined of them
//! by AND and OR. What a stretch holds is a superset of what the filter lets through.

use super::keys::{value_of, wanted_parts};
use asofdb_storage::key::KeyRange;
use asofdb_storage::schema::Column;
use asofdb_storage::value::{Cell, ColumnType};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};

/// The stretches of a component of keys that a filter leaves, ascending; `None` if it says nothing of it.
pub(crate) fn ranges_of(filter: &Expr, column: &Column) -> Option<Vec<KeyRange>> {
    if let Some(parts) = wanted_parts(filter, column) {
        return Some(merged(parts.iter().map(|p| KeyRange::of_prefix(p)).collect()));
    }
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            both(ranges_of(left, column), ranges_of(right, column))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let mut ranges = ranges_of(left, column)?;
            ranges.extend(ranges_of(right, column)?);
            Some(merged(ranges))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (op, value) = match (left.as_ref(), right.as_ref()) {
                (Expr::Column(c), Expr::Literal(v, _)) if c.name == column.name => (*op, v),
                (Expr::Literal(v, _), Expr::Column(c)) if c.name == column.name => (op.swap()?, v),
                _ => return None,
            };
            match op {
                Operator::Lt | Operator::LtEq => between(column.ty, None, Some(value)),
                Operator::Gt | Operator::GtEq => between(column.ty, Some(value), None),
                _ => None,
            }
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            match (expr.as_ref(), low.as_ref(), high.as_ref()) {
                (Expr::Column(c), Expr::Literal(low, _), Expr::Literal(high, _)) if c.name == column.name => {
                    between(column.ty, Some(low), Some(high))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// What two filters leave together.
pub(crate) fn both(a: Option<Vec<KeyRange>>, b: Option<Vec<KeyRange>>) -> Option<Vec<KeyRange>> {
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (one, other) => return one.or(other),
    };
    let parts = a.iter().flat_map(|x| b.iter().map(|y| x.intersect(y)));
    Some(merged(parts.collect()))
}

/// Ascending, without what is empty or said twice.
pub(crate) fn merged(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.retain(|r| !r.is_empty());
    ranges.sort_unstable();
    let mut kept: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match kept.last_mut() {
            Some(last) if range.from <= last.before => last.before = range.before.max(last.before.clone()),
            _ => kept.push(range),
        }
    }
    kept
}

fn between(ty: ColumnType, low: Option<&ScalarValue>, high: Option<&ScalarValue>) -> Option<Vec<KeyRange>> {
    // Nothing is below NULL or above it.
    if low.into_iter().chain(high).any(ScalarValue::is_null) {
        return Some(Vec::new());
    }
    let value = |v: Option<&ScalarValue>| match v {
        None => Some(None),
        Some(v) => value_of(v).map(Some),
    };
    let (low, high) = (value(low)?, value(high)?);
    let (low, high) = (low.as_ref().map(|v| v.as_cell()), high.as_ref().map(|v| v.as_cell()));
    let fits = |cell: &Option<Cell<'_>>| match (ty, cell) {
        (_, None) => true,
        (ColumnType::Int64, Some(cell)) => matches!(cell, Cell::Int(_)),
        (ColumnType::Decimal { .. }, Some(cell)) => matches!(cell, Cell::Int(_) | Cell::Decimal { .. }),
        (ColumnType::Text, Some(cell)) => matches!(cell, Cell::Text(_)),
        _ => false,
    };
    if !fits(&low) || !fits(&high) {
        return None;
    }
    KeyRange::between(low.as_ref(), high.as_ref())
}
