//! Bounds as expressions: constants are worked out when the query is planned, column references
//! make a bound per row (rule D5).

use super::clock::{Point, parse_point, point_of_scalar};
use super::error::{SqlError, from_datafusion};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ParamValues, Result, ScalarValue};
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::sqlparser::ast::{
    DataType as SqlType, Expr as SqlExpr, TypedString, Value, visit_expressions,
};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What working out an expression needs beside the planner.
#[derive(Clone, Debug)]
pub(crate) struct Evaluation {
    pub options: Arc<ConfigOptions>,
    pub now: Option<chrono::DateTime<chrono::Utc>>,
    pub params: Option<ParamValues>,
}

/// Whether the expression is the word `now`.
fn is_now(expr: &SqlExpr) -> bool {
    matches!(expr, SqlExpr::Identifier(i) if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("now"))
}

/// Whether the expression refers to columns.
pub(crate) fn has_columns(expr: &SqlExpr) -> bool {
    visit_expressions(expr, |e| match e {
        SqlExpr::Identifier(_) | SqlExpr::CompoundIdentifier(_) if !is_now(e) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// Whether the expression holds a subquery.
pub(crate) fn has_subquery(expr: &SqlExpr) -> bool {
    visit_expressions(expr, |e| match e {
        SqlExpr::Subquery(_) | SqlExpr::InSubquery { .. } | SqlExpr::Exists { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// Works out a constant bound.
pub(crate) fn constant_point(
    expr: &SqlExpr,
    evaluation: &Evaluation,
    planner: &mut dyn RelationPlannerContext,
) -> Result<Point, SqlError> {
    if let Some(point) = literal_point(expr)? {
        return Ok(point);
    }
    let empty = DFSchema::empty();
    let planned = planner.sql_to_expr(expr.clone(), &empty).and_then(|e| exact_dates(e, &empty));
    let value = planned.and_then(|e| evaluation.constant(e)).map_err(|e| from_datafusion(&e))?;
    let Some(value) = value else {
        return Err(SqlError::invalid(format!("the bound {expr} is not constant")));
    };
    point_of_scalar(&value)?.ok_or_else(|| {
        SqlError::invalid(format!("the bound {expr} is NULL"))
            .hint("leave the clause out for the latest state")
    })
}

/// Literals are read here and not by DataFusion, whose timestamps end in 2262.
pub(crate) fn literal_point(expr: &SqlExpr) -> Result<Option<Point>, SqlError> {
    let text = |value: &Value| match value {
        Value::SingleQuotedString(s) | Value::DoubleQuotedString(s) => Some(s.clone()),
        _ => None,
    };
    let (text, must_be_time) = match expr {
        e if is_now(e) => return Ok(Some(Point::Now)),
        SqlExpr::Nested(inner) => return literal_point(inner),
        SqlExpr::Value(v) => (text(&v.value), false),
        SqlExpr::TypedString(TypedString {
            data_type: SqlType::Timestamp(..) | SqlType::Datetime(_) | SqlType::Date,
            value,
            uses_odbc_syntax: _,
        }) => (text(&value.value), true),
        _ => return Ok(None),
    };
    let Some(text) = text else { return Ok(None) };
    match parse_point(&text) {
        Some(Point::Integer(_)) if must_be_time => Err(not_a_time(&text)),
        Some(point) => Ok(Some(point)),
        None => Err(not_a_time(&text)),
    }
}

fn not_a_time(text: &str) -> SqlError {
    SqlError::invalid(format!("'{text}' is no time"))
        .hint("write it like 2024-05-01, 2024-05-01 12:30:00 or 2024-05-01T12:30:00.123456Z")
}

impl Evaluation {
    /// The expression with parameters filled in, types made to fit and constants folded.
    pub fn fold(&self, expr: Expr, schema: &Arc<DFSchema>) -> Result<Expr> {
        let expr = match &self.params {
            Some(params) => fill(expr, params)?,
            None => expr,
        };
        let context = SimplifyContext::builder()
            .with_config_options(self.options.clone())
            .with_query_execution_start_time(self.now)
            .with_schema(schema.clone())
            .build();
        let simplifier = ExprSimplifier::new(context);
        simplifier.simplify(simplifier.coerce(expr, schema)?)
    }

    fn constant(&self, expr: Expr) -> Result<Option<ScalarValue>> {
        let schema = Arc::new(DFSchema::empty());
        Ok(match self.fold(expr, &schema)? {
            Expr::Literal(value, _) => Some(value),
            _ => None,
        })
    }

    /// The value of a constant expression that is no bound: an argument, a setting.
    pub fn argument(&self, expr: &Expr) -> Result<Option<ScalarValue>> {
        self.constant(expr.clone())
    }
}

fn fill(expr: Expr, params: &ParamValues) -> Result<Expr> {
    let filled = expr.transform(|e| match &e {
        Expr::Placeholder(p) => {
            let value = params.get_placeholders_with_values(&p.id)?;
            Ok(Transformed::yes(Expr::Literal(value.value().clone(), None)))
        }
        _ => Ok(Transformed::no(e)),
    })?;
    Ok(filled.data)
}

/// Plans an expression over the left side of a join.
pub(crate) fn left_expr(
    expr: &SqlExpr,
    state: &datafusion::execution::SessionState,
    schema: &Arc<DFSchema>,
    evaluation: &Evaluation,
) -> Result<(Expr, DataType)> {
    use datafusion::logical_expr::sqlparser::ast::ExprWithAlias;
    let with_alias = ExprWithAlias { expr: expr.clone(), alias: None };
    let planned = state.create_logical_expr_from_sql_expr(with_alias, schema)?;
    let folded = evaluation.fold(exact_dates(planned, schema)?, schema)?;
    let ty = folded.get_type(schema.as_ref())?;
    Ok((folded, ty))
}

/// DataFusion cuts a date plus or minus an interval back to a date, and a bound would silently move
/// to midnight: in bounds such a date is its midnight from the start.
pub(crate) fn exact_dates(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let ty = |e: &Expr| e.get_type(schema).ok();
    let is_date = |e: &Expr| matches!(ty(e), Some(DataType::Date32 | DataType::Date64));
    let is_interval = |e: &Expr| matches!(ty(e), Some(DataType::Interval(_)));
    let instant =
        |e: Box<Expr>| Box::new(Expr::Cast(Cast::new(e, DataType::Timestamp(TimeUnit::Microsecond, None))));
    let exact = expr.transform_up(|e| match e {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_date(&left) && is_interval(&right) => {
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: instant(left), op, right })))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_interval(&left) && is_date(&right) => {
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right: instant(right) })))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(exact.data)
}
