//! Per-row AS OF (rule D5): a join whose right side is asked at the instants of each left row.
//!
//! The planner leaves a [`PerRowTable`] where the table stands; [`rewrite`] turns the join around it
//! into a [`PerRowJoin`]. One that is left over stands where column references are not allowed.

use super::bound::{Evaluation, left_expr};
use super::clause::Axis;
use super::clock::{Applied, AppliedCommit, AppliedTime};
use super::context::QueryContext;
use super::error::SqlError;
use super::per_row_node::{PerRowJoin, asked};
use super::scan_name::named_scan;
use super::table::column_fields;
use asofdb_storage::engine::RangeSpec;
use asofdb_storage::schema::{TableMeta, TableSchema};
use asofdb_storage::time::{AxisType, CommitSeq};
use asofdb_storage::value::ColumnType;
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DFSchemaRef, JoinType, Result, TableReference};
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::sqlparser::ast::Expr as SqlExpr;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Extension, Join, LogicalPlan, Operator, SubqueryAlias, TableType,
    TryCast,
};
use datafusion::physical_plan::ExecutionPlan;
use std::fmt;
use std::sync::Arc;

/// A bound that is the same for all rows, or an expression over the left side of the join.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
pub(crate) enum PerRowBound<T> {
    Fixed(T),
    PerRow(SqlExpr),
}

impl<T: fmt::Debug> PerRowBound<T> {
    fn text(&self) -> String {
        match self {
            PerRowBound::Fixed(bound) => format!("{bound:?}"),
            PerRowBound::PerRow(expr) => expr.to_string(),
        }
    }
}

/// Stands for a table whose bounds refer to columns, until [`rewrite`].
#[derive(Debug)]
pub(crate) struct PerRowTable {
    context: Arc<QueryContext>,
    meta: Arc<TableMeta>,
    valid: PerRowBound<RangeSpec>,
    system: PerRowBound<RangeSpec>,
    commit: PerRowBound<CommitSeq>,
    /// That of a fixed commit, else the newest (rule B14).
    shown: Arc<TableSchema>,
    schema: SchemaRef,
}

impl PerRowTable {
    pub fn new(
        context: Arc<QueryContext>,
        meta: Arc<TableMeta>,
        valid: PerRowBound<RangeSpec>,
        system: PerRowBound<RangeSpec>,
        commit: PerRowBound<CommitSeq>,
    ) -> Result<PerRowTable, SqlError> {
        for (bound, axis) in [(&valid, Axis::Valid), (&system, Axis::System)] {
            if let PerRowBound::Fixed(range) = bound
                && !matches!(range, RangeSpec::Latest | RangeSpec::AsOf(_))
            {
                return Err(SqlError::unsupported(format!(
                    "{} cannot take a range where another clock of {} goes row by row",
                    axis.word(),
                    meta.name
                ))
                .hint("use AS OF on every clock"));
            }
        }
        let shown = Arc::new(match &commit {
            PerRowBound::Fixed(commit) => meta.schema_at(*commit).clone(),
            PerRowBound::PerRow(_) => meta.schema().clone(),
        });
        let schema = Arc::new(Schema::new(column_fields(&shown)));
        Ok(PerRowTable { context, meta, valid, system, commit, shown, schema })
    }

    /// The scan that stands for it, called `shown` in the statement.
    pub fn into_scan(self, shown: TableReference) -> Result<LogicalPlan> {
        let PerRowTable { context: _, meta, valid, system, commit, shown: _, schema: _ } = &self;
        let name = format!("{} ({}, {}, {})", meta.name, valid.text(), system.text(), commit.text());
        named_scan(shown, name, Arc::new(self))
    }

    fn misplaced(&self) -> SqlError {
        SqlError::invalid(format!(
            "the bound of {} refers to columns, but stands at no right side of a join",
            self.meta.name
        ))
        .hint("write FROM labels l JOIN t FOR VALID_TIME AS OF l.at f ON f.key = l.key, or use a constant")
    }
}

#[async_trait]
impl TableProvider for PerRowTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Err(self.misplaced().into())
    }
}

pub(crate) fn per_row_table(plan: &LogicalPlan) -> Option<Arc<PerRowTable>> {
    match plan {
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => per_row_table(input),
        LogicalPlan::TableScan(scan) => {
            let any: Arc<dyn std::any::Any + Send + Sync> = source_as_provider(&scan.source).ok()?;
            any.downcast::<PerRowTable>().ok()
        }
        _ => None,
    }
}

/// Turns joins with a per-row right side into [`PerRowJoin`]s.
///
/// # Errors
/// Where a per-row bound stands anywhere else, or the join lacks an equality on the whole key.
pub(crate) fn rewrite(
    plan: LogicalPlan,
    state: &SessionState,
    evaluation: &Evaluation,
) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Join(join) => match per_row_table(&join.right) {
            Some(table) => Ok(Transformed::yes(per_row_join(join, &table, state, evaluation)?)),
            None => Ok(Transformed::no(LogicalPlan::Join(join))),
        },
        other => Ok(Transformed::no(other)),
    })?;
    plan.data.apply_with_subqueries(|plan| match plan {
        LogicalPlan::TableScan(_) => match per_row_table(plan) {
            Some(table) => Err(table.misplaced().into()),
            None => Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue),
        },
        _ => Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue),
    })?;
    Ok(plan.data)
}

/// One clock of the right side.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    Fixed(i64),
    PerRow { expr: Expr, ty: DataType, text: String },
}

/// What a [`PerRowJoin`] does, beside its input.
#[derive(Debug)]
pub(crate) struct PerRowSpec {
    pub context: Arc<QueryContext>,
    pub meta: Arc<TableMeta>,
    pub table_schema: Arc<TableSchema>,
    /// The columns that are shown, of the types they had at the asked commit.
    pub shown: Arc<TableSchema>,
    pub valid: Clock,
    pub system: Clock,
    /// A fixed commit is its number.
    pub commit: Clock,
    /// Expressions over the left side, one per key column in key order, of the column's type.
    pub keys: Vec<Expr>,
    /// What a match must fulfil, over both sides, beside what follows from the keys being the same.
    pub condition: Option<Expr>,
    /// As the condition, with the equalities of texts: keys do not tell apart texts that stand for one number.
    pub doubted: Option<Expr>,
    /// All columns of the right side.
    pub right: DFSchemaRef,
    pub outer: bool,
}

impl PerRowSpec {
    pub fn applied(&self) -> Applied {
        let time = |clock: &Clock| match clock {
            Clock::Fixed(t) => AppliedTime::Fixed(RangeSpec::AsOf(*t)),
            Clock::PerRow { text, .. } => AppliedTime::PerRow(text.clone()),
        };
        let commit = match &self.commit {
            Clock::Fixed(n) => {
                AppliedCommit::Fixed { seq: *n as u64, at: self.context.instant_of(CommitSeq(*n as u64)) }
            }
            Clock::PerRow { text, .. } => AppliedCommit::PerRow(text.clone()),
        };
        Applied {
            table: self.meta.name.clone(),
            valid: time(&self.valid),
            valid_axis: self.meta.valid_axis,
            system: time(&self.system),
            system_axis: self.meta.system_axis,
            commit,
        }
    }
}

fn per_row_join(
    join: Join,
    table: &PerRowTable,
    state: &SessionState,
    evaluation: &Evaluation,
) -> Result<LogicalPlan> {
    let Join { left, right, on, filter, join_type, schema, .. } = join;
    let outer = match join_type {
        JoinType::Inner => false,
        JoinType::Left => true,
        other => {
            return Err(SqlError::unsupported(format!(
                "a {other} join cannot ask its right side row by row"
            ))
            .hint("use JOIN or LEFT JOIN")
            .into());
        }
    };
    let left_schema = left.schema().clone();
    let mut conditions: Vec<Expr> = on.into_iter().map(|(l, r)| l.eq(r)).collect();
    conditions.extend(filter.into_iter().flat_map(split_conjunction_owned));
    let keys = key_exprs(&conditions, table, &left_schema, right.schema(), evaluation)?;
    let conditions = Conditions::sort(conditions, &keys_of(table), &left_schema)?;
    let fold = |all: Vec<Expr>| conjunction(all).map(|c| evaluation.fold(c, &schema)).transpose();
    let Conditions { mut others, texts } = conditions;
    let condition = fold(others.clone())?;
    let doubted = if texts.is_empty() {
        None
    } else {
        others.extend(texts);
        fold(others)?
    };
    if condition.as_ref().is_some_and(has_subquery) {
        return Err(SqlError::unsupported("ON of a per-row join cannot hold a subquery").into());
    }
    let time = |bound: &PerRowBound<RangeSpec>, axis: AxisType, what: Axis| match bound {
        PerRowBound::Fixed(RangeSpec::AsOf(t)) => Ok(Clock::Fixed(*t)),
        PerRowBound::Fixed(_) => Ok(Clock::Fixed(asofdb_storage::time::FOREVER)),
        PerRowBound::PerRow(expr) => clock(expr, Some(axis), what, table, state, &left_schema, evaluation),
    };
    let commit = match &table.commit {
        PerRowBound::Fixed(seq) => Clock::Fixed(seq.0 as i64),
        PerRowBound::PerRow(expr) => clock(expr, None, Axis::Commit, table, state, &left_schema, evaluation)?,
    };
    let spec = PerRowSpec {
        context: table.context.clone(),
        meta: table.meta.clone(),
        table_schema: Arc::new(table.meta.schema().clone()),
        shown: table.shown.clone(),
        valid: time(&table.valid, table.meta.valid_axis, Axis::Valid)?,
        system: time(&table.system, table.meta.system_axis, Axis::System)?,
        commit,
        keys,
        condition,
        doubted,
        right: right.schema().clone(),
        outer,
    };
    let right = asked(Arc::unwrap_or_clone(right), table)?;
    let node = PerRowJoin { left, right: Arc::new(right), schema, spec: Arc::new(spec) };
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}

/// Names and types of the key columns.
fn keys_of(table: &PerRowTable) -> Vec<(String, ColumnType)> {
    let schema = table.meta.schema();
    let columns = schema.key.iter().filter_map(|id| schema.columns.get(id.0 as usize));
    columns.map(|c| (c.name.clone(), c.ty)).collect()
}

/// What ON says, by what the key that was found leaves open of it.
#[derive(Default)]
struct Conditions {
    others: Vec<Expr>,
    /// Equalities of key columns of text.
    texts: Vec<Expr>,
}

impl Conditions {
    /// An equality that a key column of integers has with an integer is left out: its key says it.
    fn sort(all: Vec<Expr>, keys: &[(String, ColumnType)], left: &DFSchema) -> Result<Conditions> {
        let mut sorted = Conditions::default();
        for condition in all {
            match exact_key(&condition, keys, left)? {
                Some(ColumnType::Int64) => {}
                Some(_) => sorted.texts.push(condition),
                None => sorted.others.push(condition),
            }
        }
        Ok(sorted)
    }
}

/// The type of the key column, if the condition says that it is equal to a left value of the very same kind, which
/// an integer or a text is.
fn exact_key(condition: &Expr, keys: &[(String, ColumnType)], left: &DFSchema) -> Result<Option<ColumnType>> {
    let Expr::BinaryExpr(BinaryExpr { left: a, op: Operator::Eq, right: b }) = condition else {
        return Ok(None);
    };
    let of_left = |e: &Expr| e.column_refs().iter().all(|c| left.has_column(c));
    for (key, value) in [(a, b), (b, a)] {
        let Expr::Column(column) = &**key else { continue };
        let known = keys.iter().find(|(name, _)| *name == column.name && !left.has_column(column));
        if let Some((_, ty)) = known
            && of_left(value)
        {
            let value = value.get_type(left)?;
            return Ok(match ty {
                ColumnType::Int64 if value.is_signed_integer() => Some(*ty),
                ColumnType::Text if value == DataType::Utf8 => Some(*ty),
                _ => None,
            });
        }
    }
    Ok(None)
}

fn has_subquery(expr: &Expr) -> bool {
    use datafusion::common::tree_node::TreeNode;
    expr.exists(|e| Ok(matches!(e, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_))))
        .unwrap_or(true)
}

fn clock(
    expr: &SqlExpr,
    axis: Option<AxisType>,
    what: Axis,
    table: &PerRowTable,
    state: &SessionState,
    left: &Arc<DFSchema>,
    evaluation: &Evaluation,
) -> Result<Clock> {
    let (planned, ty) = left_expr(expr, state, left, evaluation)?;
    let is_time = matches!(ty, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
        || matches!(ty, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8);
    let is_number = ty.is_integer();
    let fits = match axis {
        Some(AxisType::Instant) => is_time,
        Some(AxisType::Integer) => is_number,
        None => is_time || is_number,
    };
    if !fits {
        let wanted = match axis {
            Some(AxisType::Instant) => "an instant",
            Some(AxisType::Integer) => "an integer",
            None => "a commit number or an instant",
        };
        return Err(SqlError::invalid(format!(
            "{expr} is of type {ty}, but {} of {} is {wanted}",
            what.word(),
            table.meta.name
        ))
        .hint("cast it, for instance with to_timestamp_micros(x)")
        .into());
    }
    Ok(Clock::PerRow { expr: planned, ty, text: expr.to_string() })
}

/// For each key column the left expression that the join sets equal to it.
fn key_exprs(
    conditions: &[Expr],
    table: &PerRowTable,
    left: &Arc<DFSchema>,
    right: &DFSchema,
    evaluation: &Evaluation,
) -> Result<Vec<Expr>> {
    let schema = table.meta.schema();
    if schema.key.is_empty() {
        return Err(SqlError::unsupported(format!(
            "{} has no key, so it cannot be asked row by row",
            table.meta.name
        ))
        .into());
    }
    let only_left = |e: &Expr| e.column_refs().iter().all(|c| left.has_column(c));
    let mut keys = Vec::new();
    for id in &schema.key {
        let Some(column) = schema.columns.get(id.0 as usize) else { continue };
        let is_key = |e: &Expr| matches!(e, Expr::Column(c) if c.name == column.name && right.has_column(c) && !left.has_column(c));
        let found = conditions.iter().find_map(|c| match c {
            Expr::BinaryExpr(BinaryExpr { left: l, op: Operator::Eq, right: r })
                if is_key(r) && only_left(l) =>
            {
                Some(l)
            }
            Expr::BinaryExpr(BinaryExpr { left: l, op: Operator::Eq, right: r })
                if is_key(l) && only_left(r) =>
            {
                Some(r)
            }
            _ => None,
        });
        let Some(found) = found else {
            let message = format!(
                "a per-row join needs an equality on the whole key of {}: {} is missing in ON",
                table.meta.name, column.name
            );
            return Err(SqlError::invalid(message)
                .hint(format!("add ON {} = <left column>", column.name))
                .into());
        };
        let cast = Expr::TryCast(TryCast::new(found.clone(), column.ty.arrow()));
        keys.push(evaluation.fold(cast, left)?);
    }
    Ok(keys)
}
