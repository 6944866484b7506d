//! Functions about the store itself: `commits()`, `sources()`, `flows()`, `quarantine()`.

use super::arguments::Arguments;
use super::computed::ComputedTable;
use crate::flow::Flow;
use crate::quarantine::QuarantineEntry;
use crate::sql::context::QueryContext;
use crate::sql::error::SqlError;
use asofdb_storage::engine::{CommitInfo, Resolutions};
use asofdb_storage::time::AxisType;
use datafusion::arrow::array::{
    ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::TableProvider;
use std::sync::Arc;

type Columns = Vec<(&'static str, ArrayRef)>;

fn build(label: &str, columns: Columns) -> Result<Arc<dyn TableProvider>, SqlError> {
    let fields: Vec<Field> =
        columns.iter().map(|(name, a)| Field::new(*name, a.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.into_iter().map(|(_, a)| a).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays)
        .map_err(|e| SqlError::new(crate::sql::error::SqlErrorKind::Internal, e.to_string()))?;
    Ok(ComputedTable::of(label, schema, batch))
}

fn ints(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.map(|v| v.map(|n| n as i64)).collect::<Int64Array>())
}

fn texts(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn instants(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    debug_assert!(matches!(crate::sql::table::axis_type(AxisType::Instant), DataType::Timestamp(..)));
    Arc::new(values.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
}

/// `commits()`: `commit, at, events, quarantined, kind, note`, up to the session's commit.
pub(crate) fn commits(
    context: &QueryContext,
    arguments: &Arguments,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    arguments.expect(0, 0, "")?;
    let bound = context.default_commit()?;
    let all: Vec<CommitInfo> = context.reader.commits()?.into_iter().filter(|c| c.seq <= bound.0).collect();
    let kind = |c: &CommitInfo| match &c.note {
        serde_json::Value::String(s) => Some(s.clone()),
        note => note.get("kind").and_then(|k| k.as_str()).map(str::to_owned),
    };
    let note = |c: &CommitInfo| (!c.note.is_null()).then(|| c.note.to_string());
    build(
        "commits()",
        vec![
            ("__COMMIT_SEQ", ints(all.iter().map(|c| Some(c.seq)))),
            ("__COMMIT_AT", instants(all.iter().map(|c| Some(c.at)))),
            ("events", ints(all.iter().map(|c| Some(c.events)))),
            ("quarantined", ints(all.iter().map(|c| Some(c.quarantined)))),
            ("kind", texts(all.iter().map(kind))),
            ("note", texts(all.iter().map(note))),
        ],
    )
}

/// `sources()`: how far each stream and file was read: `stream, file, position, bytes, lines, end_position`.
pub(crate) fn sources(
    context: &QueryContext,
    arguments: &Arguments,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    arguments.expect(0, 0, "")?;
    let all = crate::intake::sources(context.reader.catalog());
    build(
        "sources()",
        vec![
            ("stream", texts(all.iter().map(|s| Some(s.stream.clone())))),
            ("file", texts(all.iter().map(|s| s.file.clone()))),
            ("position", ints(all.iter().map(|s| s.position))),
            ("bytes", ints(all.iter().map(|s| s.bytes))),
            ("lines", ints(all.iter().map(|s| s.lines))),
            ("end_position", ints(all.iter().map(|s| s.end))),
        ],
    )
}

/// `flows()`: every declared flow: `flow, source, tables, stored_as, statement, error`.
pub(crate) fn flows(
    context: &QueryContext,
    arguments: &Arguments,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    arguments.expect(0, 0, "")?;
    let all = crate::flow::flows(context.reader.catalog());
    let of = |f: fn(&Flow) -> String| texts(all.iter().map(move |n| n.flow.as_ref().ok().map(f)));
    let tables = |flow: &Flow| {
        let names: Vec<&str> = flow.target.tables().iter().map(|t| &*t.name).collect();
        names.join(", ")
    };
    build(
        "flows()",
        vec![
            ("flow", texts(all.iter().map(|f| Some(f.name.clone())))),
            ("source", of(|flow| flow.source.to_string())),
            ("tables", of(tables)),
            ("stored_as", of(|flow| flow.clauses.stored_as.unwrap_or_default().to_string())),
            ("statement", of(|flow| format!("{flow};"))),
            ("error", texts(all.iter().map(|f| f.flow.as_ref().err().map(ToString::to_string)))),
        ],
    )
}

/// `quarantine()`: every message that was put aside, oldest first, with the commit that settled it
/// since, if one did.
pub(crate) fn quarantine(
    context: &QueryContext,
    arguments: &Arguments,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    arguments.expect(0, 0, "")?;
    let bound = context.default_commit()?;
    let commits = context.reader.commits()?;
    let at: std::collections::HashMap<u64, i64> = commits.iter().map(|c| (c.seq, c.at)).collect();
    let resolutions = Resolutions::of(commits.iter().filter(|c| c.seq <= bound.0));
    let all = context.reader.quarantine()?.into_iter().filter(|(seq, _)| *seq <= bound).collect();
    let all = QuarantineEntry::number(all, &resolutions);
    let q = || all.iter().map(|e| &e.message);
    let raw: BinaryArray = q().map(|q| Some(q.raw.as_slice())).collect();
    build(
        "quarantine()",
        vec![
            ("number", ints(all.iter().map(|e| Some(e.number)))),
            ("resolved_by", ints(all.iter().map(|e| e.resolved_by.map(|c| c.0)))),
            ("__COMMIT_SEQ", ints(all.iter().map(|e| Some(e.commit.0)))),
            ("__COMMIT_AT", instants(all.iter().map(|e| at.get(&e.commit.0).copied()))),
            ("table", texts(q().map(|q| q.table.clone()))),
            ("_stream", texts(q().map(|q| Some(q.stream.clone())))),
            ("file", texts(q().map(|q| q.file.clone()))),
            ("_position", ints(q().map(|q| Some(q.position)))),
            ("line", ints(q().map(|q| q.line))),
            ("reason", texts(q().map(|q| Some(q.reason.clone())))),
            ("hint", texts(q().map(|q| q.hint.clone()))),
            ("length", ints(q().map(|q| Some(q.length)))),
            ("text", texts(q().map(|q| std::str::from_utf8(&q.raw).ok().map(str::to_owned)))),
            ("raw", Arc::new(raw)),
        ],
    )
}
