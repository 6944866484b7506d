//! `why('t', key..., 'column' [, valid [, system]])`: the event that gave a cell its value.

use super::arguments::Arguments;
use super::computed::ComputedTable;
use super::history::{Rows, event_columns};
use crate::sql::clause::Axis;
use crate::sql::clock::{as_of, point_on_axis};
use crate::sql::context::{QueryContext, TableBounds};
use crate::sql::error::{SqlError, from_datafusion};
use crate::sql::keys::{candidates, put_part, value_of};
use crate::sql::names::some_of;
use crate::sql::one_key::reason;
use crate::sql::table::{axis_type, time_column};
use asofdb_storage::engine::{Bounds, Cause, Why};
use asofdb_storage::event::columns::META_COLUMNS;
use asofdb_storage::schema::{Column, TableMeta, TableSchema};
use asofdb_storage::time::FOREVER;
use asofdb_storage::value::Value;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, ScalarValue};
use std::sync::Arc;

const WHY: &str = "_why";
const SYSTEM: &str = "__SYSTEM_START_AT";
/// The columns after the asked one, in order; all but the first and the system time are those of `history`.
const COLUMNS: [&str; 13] = [
    WHY,
    "_operation",
    "__START_AT",
    SYSTEM,
    "__COMMIT_SEQ",
    "__COMMIT_AT",
    "_stream",
    "_position",
    "_ingest_file_name",
    "_cdc_timestamp",
    "_source_db",
    "_source_table",
    "_transaction_id",
];

/// One row for the event that decides, more where several events wrote leaves, none where no event does; a
/// notice says why.
pub(crate) fn table(
    context: &Arc<QueryContext>,
    arguments: &Arguments,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    arguments.expect(1, usize::MAX, "'table', key..., 'column', valid, system")?;
    let meta = arguments.table(0, context)?;
    let names: Vec<String> = key_columns(meta.schema()).map(|c| c.name.clone()).collect();
    if names.is_empty() {
        return Err(SqlError::unsupported(format!("why(): {} has no key", meta.name))
            .hint(format!("history('{}') shows its events", meta.name)));
    }
    let usage = format!("'{}', {}, 'column', valid, system", meta.name, names.join(", "));
    arguments.expect(names.len() + 2, names.len() + 4, &usage)?;
    let bounds = bounds(context, arguments, &meta, names.len() + 2)?;
    let schema = Arc::new(meta.schema_at(bounds.commit).clone());
    let column = column(arguments, names.len() + 1, &meta, &schema)?;
    let (valid, system) = bounds.point().unwrap_or((FOREVER, FOREVER));
    let at = Bounds { valid, system, commit: bounds.commit };
    let keys = keys(arguments, meta.schema())?;
    let why = first_known(context, &meta, &keys, &column, at, &schema)?;
    let key = format!("key {} of {}", shown_key(arguments, names.len()), meta.name);
    let cause = why.as_ref().map_or(Cause::UnknownKey, |w| w.cause);
    if let Some(reason) = reason(cause, &key, &column.name, &meta, &at) {
        context.notice(reason);
    }
    answer(context, &meta, &schema, &column, why.as_ref()).map_err(|e| from_datafusion(&e))
}

fn key_columns(schema: &TableSchema) -> impl Iterator<Item = &Column> {
    schema.key.iter().filter_map(|id| schema.columns.get(id.0 as usize))
}

/// The point that is asked about: an argument wins over the session, NULL is the latest.
fn bounds(
    context: &QueryContext,
    arguments: &Arguments,
    meta: &TableMeta,
    first: usize,
) -> Result<TableBounds, SqlError> {
    let mut bounds = context.default_bounds(meta)?;
    let axes = [(Axis::Valid, meta.valid_axis), (Axis::System, meta.system_axis)];
    for (i, (axis, ty)) in axes.into_iter().enumerate().filter(|(i, _)| first + i < arguments.values.len()) {
        let point = arguments.point(first + i)?;
        let at = point.map(|p| point_on_axis(p, axis, ty, &meta.name, context.now)).transpose()?;
        let spec = as_of(at.unwrap_or(FOREVER));
        match axis {
            Axis::Valid => bounds.valid = spec,
            _ => bounds.system = spec,
        }
    }
    Ok(context.settle(meta, bounds))
}

/// The column called so; equal but for case will do where only one is.
fn column(
    arguments: &Arguments,
    i: usize,
    meta: &TableMeta,
    schema: &TableSchema,
) -> Result<Column, SqlError> {
    let Some(name) = arguments.values[i].try_as_str().flatten() else {
        return Err(SqlError::invalid("why(): the column's name must be a text")
            .hint("write why('table', key..., 'column')"));
    };
    let exact = schema.columns.iter().find(|c| c.name == name);
    let mut alike = schema.columns.iter().filter(|c| c.name.eq_ignore_ascii_case(name));
    let one = alike.next().filter(|_| alike.next().is_none());
    exact.or(one).cloned().ok_or_else(|| {
        let names: Vec<&str> = schema.columns.iter().map(|c| c.name.as_str()).collect();
        let error = SqlError::invalid(format!("why(): {} has no column {name}", meta.name));
        match crate::near::nearest(name, names.iter().copied()) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error.hint(format!("it has: {}", some_of(&names))),
        }
    })
}

/// The bytes that the key may have, the likeliest first.
fn keys(arguments: &Arguments, schema: &TableSchema) -> Result<Vec<Vec<u8>>, SqlError> {
    let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
    for (column, value) in key_columns(schema).zip(&arguments.values[1..]) {
        let Some(value) = as_column(value, column)? else { return Ok(Vec::new()) };
        let parts = candidates(column.ty, &value).unwrap_or_else(|| vec![value]);
        let longer = |k: &Vec<u8>| {
            let with = |v: &Value| {
                let mut key = k.clone();
                put_part(&mut key, v);
                key
            };
            parts.iter().map(with).collect::<Vec<_>>()
        };
        keys = keys.iter().flat_map(longer).collect();
    }
    Ok(keys)
}

/// A constant in the type of a key column; `None` where no value of that type equals it.
fn as_column(value: &ScalarValue, column: &Column) -> Result<Option<Value>, SqlError> {
    if value.is_null() {
        return Ok(None);
    }
    let Column { name, ty, .. } = column;
    let wrong = || {
        SqlError::invalid(format!(
            "why(): {value} is no value of the key column {name}, which is {}",
            ty.name()
        ))
    };
    let made = value.cast_to(&ty.arrow()).map_err(|_| wrong())?;
    // A number that has to be rounded is not in the column.
    let rounded =
        value.data_type().is_numeric() && made.cast_to(&value.data_type()).ok().as_ref() != Some(value);
    if made.is_null() || rounded {
        return Ok(None);
    }
    value_of(&made).map(Some).ok_or_else(wrong)
}

fn first_known(
    context: &QueryContext,
    meta: &TableMeta,
    keys: &[Vec<u8>],
    column: &Column,
    at: Bounds,
    schema: &Arc<TableSchema>,
) -> Result<Option<Why>, SqlError> {
    for key in keys {
        let why = context.reader.why(meta.id, key, column.id, at, schema)?;
        if why.cause != Cause::UnknownKey {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

fn shown_key(arguments: &Arguments, n: usize) -> String {
    arguments.values[1..=n].iter().map(|v| v.to_string()).collect::<Vec<_>>().join(", ")
}

fn word(cause: Cause) -> &'static str {
    match cause {
        Cause::Leaves => "set in part",
        Cause::Ended => "deleted",
        Cause::Truncated => "truncated",
        _ => "set",
    }
}

fn answer(
    context: &Arc<QueryContext>,
    meta: &Arc<TableMeta>,
    schema: &Arc<TableSchema>,
    column: &Column,
    why: Option<&Why>,
) -> Result<Arc<dyn TableProvider>> {
    let own = TableSchema { columns: vec![column.clone()], ..(**schema).clone() };
    let shown = context.set_apart(&meta.name, &own, &COLUMNS);
    let rows = Rows::of_all(context, meta, schema)?;
    let mut fields = vec![Field::new(&shown.columns[0].name, column.ty.arrow(), true)];
    let types = |name: &str| match name {
        WHY => datafusion::arrow::datatypes::DataType::Utf8,
        SYSTEM => axis_type(meta.system_axis),
        name => rows.type_of(name),
    };
    fields.extend(COLUMNS.iter().map(|name| Field::new(*name, types(name), true)));
    let schema = Arc::new(Schema::new(fields));
    let batch = match why.filter(|w| w.events.num_rows() > 0) {
        None => RecordBatch::new_empty(schema.clone()),
        Some(why) => {
            let events = event_columns(&why.events)?;
            let mut columns: Vec<ArrayRef> =
                vec![cast(why.events.column(META_COLUMNS), schema.field(0).data_type())?];
            columns.extend(COLUMNS.iter().map(|name| match *name {
                WHY => Arc::new(StringArray::from(vec![word(why.cause); events.len()])) as ArrayRef,
                SYSTEM => {
                    let times: ArrayRef = Arc::new(events.system().clone());
                    time_column(&times, &axis_type(meta.system_axis))
                }
                name => rows.added(name, &events),
            }));
            RecordBatch::try_new(schema.clone(), columns)?
        }
    };
    Ok(ComputedTable::of(&format!("why({}.{})", meta.name, column.name), schema, batch))
}
