//! Views over other functions: `timeline('t', key...)`, every interval row of every belief about one
//! key; `files('t')`, the files that events came from.

use super::arguments::Arguments;
use crate::sql::context::QueryContext;
use crate::sql::error::{SqlError, from_datafusion};
use crate::sql::scan_name::named_scan;
use crate::sql::table::{Shape, TemporalTable};
use asofdb_storage::engine::RangeSpec;
use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::common::{Result, ScalarValue, TableReference};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, ident, lit};
use std::sync::Arc;

/// The columns of `intervals('t')`.
pub(crate) fn timeline(
    context: &Arc<QueryContext>,
    arguments: &Arguments,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    arguments.expect(1, usize::MAX, "'table', key...")?;
    let meta = arguments.table(0, context)?;
    let schema = meta.schema();
    let names: Vec<&str> = schema
        .key
        .iter()
        .filter_map(|id| schema.columns.get(id.0 as usize))
        .map(|c| c.name.as_str())
        .collect();
    if names.is_empty() {
        return Err(SqlError::unsupported(format!("timeline(): {} has no key", meta.name))
            .hint(format!("intervals('{}') shows all its rows", meta.name)));
    }
    let usage = format!("'{}', {}", meta.name, names.join(", "));
    arguments.expect(names.len() + 1, names.len() + 1, &usage)?;
    arguments.note_session_clocks(context);
    let mut bounds = context.default_bounds(&meta)?;
    (bounds.valid, bounds.system) = (RangeSpec::All, RangeSpec::All);
    let table = TemporalTable::new(context.clone(), meta.clone(), bounds, Shape::Bounded);
    let plan = plan(table, &arguments.values[1..]).map_err(|e| from_datafusion(&e))?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

fn plan(table: TemporalTable, key: &[ScalarValue]) -> Result<LogicalPlan> {
    let shown = TableReference::bare(table.meta.name.clone());
    let schema = table.table_schema.clone();
    let names = schema.key.iter().filter_map(|id| schema.columns.get(id.0 as usize)).map(|c| &c.name);
    let mut plan = LogicalPlanBuilder::from(table.into_scan(shown)?);
    for (name, value) in names.zip(key) {
        plan = plan.filter(ident(name).eq(lit(value.clone())))?;
    }
    plan.build()
}

/// `_stream, _ingest_file_name, events, first_commit, last_commit`, one row for each file.
pub(crate) fn files(
    context: &Arc<QueryContext>,
    arguments: &Arguments,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    use datafusion::functions_aggregate::expr_fn::{count, max, min};
    let name = arguments.table(0, context)?.name.clone();
    let history = super::history::table(context, arguments, super::history::Pick::All)?;
    let plan = || {
        let commit = || ident("__COMMIT_SEQ");
        let by = ["_stream", "_ingest_file_name"].map(ident);
        let facts = [
            count(lit(1i64)).alias("events"),
            min(commit()).alias("first_commit"),
            max(commit()).alias("last_commit"),
        ];
        let scan = named_scan(TableReference::bare("history"), format!("history({name})"), history)?;
        LogicalPlanBuilder::from(scan).aggregate(by, facts)?.build()
    };
    Ok(Arc::new(ViewTable::new(plan().map_err(|e| from_datafusion(&e))?, None)))
}
