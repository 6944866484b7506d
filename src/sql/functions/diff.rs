//! `belief_diff('t', a, b)`: interval rows that the belief at one system time holds and that at the
//! other does not.

use super::arguments::Arguments;
use crate::sql::clause::Axis;
use crate::sql::clock::{Point, point_on_axis};
use crate::sql::context::{QueryContext, TableBounds};
use crate::sql::error::{SqlError, from_datafusion};
use crate::sql::table::{INTERVAL_COLUMNS, Shape, TemporalTable};
use asofdb_storage::engine::RangeSpec;
use asofdb_storage::schema::TableMeta;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::common::{Result, TableReference};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, ident, lit};
use std::sync::Arc;

const CHANGE_TYPE: &str = "_change_type";

/// The table's columns, `__START_AT`, `__END_AT` and `_change_type`: `removed` or `added`.
pub(crate) fn table(
    context: &Arc<QueryContext>,
    arguments: &Arguments,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    arguments.expect(3, 3, "'table', system_time_a, system_time_b")?;
    let meta = arguments.table(0, context)?;
    let (Some(a), Some(b)) = (arguments.point(1)?, arguments.point(2)?) else {
        return Err(SqlError::invalid("belief_diff(): a system time is NULL"));
    };
    let on_axis = |p| {
        let at = point_on_axis(p, Axis::System, meta.system_axis, &meta.name, context.now)?;
        // Now is no question about the future: what is stored by now is all there is.
        let last = context.reader.commit_at().filter(|_| p == Point::Now && !meta.system_declared);
        Ok::<i64, SqlError>(last.map_or(at, |last| at.min(last)))
    };
    let (a, b) = (on_axis(a)?, on_axis(b)?);
    arguments.note_session_clocks(context);
    let commit = context.default_commit()?;
    let bounds = |system| {
        let bounds = TableBounds { valid: RangeSpec::All, system: RangeSpec::AsOf(system), commit };
        context.settle(&meta, bounds)
    };
    let (a, b) = (bounds(a), bounds(b));
    plan(context, &meta, a, b)
        .map(|plan| Arc::new(ViewTable::new(plan, None)) as _)
        .map_err(|e| from_datafusion(&e))
}

fn plan(
    context: &Arc<QueryContext>,
    meta: &Arc<TableMeta>,
    a: TableBounds,
    b: TableBounds,
) -> Result<LogicalPlan> {
    let rows = |bounds| belief(context, meta, bounds);
    let marked = |plan: LogicalPlan, word: &str| {
        let shown = plan.schema().fields().len() - usize::from(meta.schema().key.is_empty());
        let fields = plan.schema().fields().iter().take(shown);
        let named = |f: &FieldRef| match f.name().as_str() {
            CHANGE_TYPE => ident(CHANGE_TYPE).alias(format!("{CHANGE_TYPE}_1")),
            name => ident(name),
        };
        let mut columns: Vec<Expr> = fields.map(named).collect();
        columns.push(lit(word).alias(CHANGE_TYPE));
        LogicalPlanBuilder::from(plan).project(columns)?.build()
    };
    let removed = LogicalPlanBuilder::except(rows(a)?, rows(b)?, true)?;
    let added = LogicalPlanBuilder::except(rows(b)?, rows(a)?, true)?;
    LogicalPlanBuilder::from(marked(removed, "removed")?).union(marked(added, "added")?)?.build()
}

/// The interval rows of one belief, without their system interval. Equal rows, of which a table
/// without a key may have many (rule B15), are numbered in one more column.
fn belief(context: &Arc<QueryContext>, meta: &Arc<TableMeta>, bounds: TableBounds) -> Result<LogicalPlan> {
    let table = TemporalTable::new(context.clone(), meta.clone(), bounds, Shape::Bounded);
    let names: Vec<String> = table.schema().fields().iter().map(|f| f.name().clone()).collect();
    let columns = names.iter().filter(|n| !INTERVAL_COLUMNS[2..].contains(&n.as_str())).map(ident);
    let columns: Vec<Expr> = columns.collect();
    let scan = table.into_scan(TableReference::bare(meta.name.clone()))?;
    let rows = LogicalPlanBuilder::from(scan).project(columns.clone())?;
    match meta.schema().key.is_empty() {
        true => rows.window([row_number().partition_by(columns).build()?.alias("__COPY")])?.build(),
        false => rows.build(),
    }
}
