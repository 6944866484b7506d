//! The question whose answer an export is, and what its rows are split by.

use super::options::{ExportLayout, ExportOptions, ExportOrder};
use crate::error::{Error, Result};
use crate::sql::Point;
use asofdb_storage::schema::{TableMeta, TableSchema};
use asofdb_storage::time::{AxisType, format_instant};
use datafusion::logical_expr::sqlparser::ast::{Expr, Ident, SelectItem};
use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
use datafusion::logical_expr::sqlparser::parser::Parser;
use datafusion::logical_expr::sqlparser::tokenizer::Token;

/// The four time columns of interval rows, in the order of the answer.
pub(crate) const TIMES: [&str; 4] = ["__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT"];

/// What rows are split by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Name of the column that the directories stand for.
    pub name: String,
    /// The column stands in the rows too, under this name, and must be left out of the files.
    pub in_rows: bool,
    expression: String,
}

/// A question to the SQL layer; the values to split by are its last columns, as texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub text: String,
    pub parts: Vec<Part>,
}

/// Checks the expressions as far as that goes without a table.
pub(crate) fn check(options: &ExportOptions) -> Result<()> {
    options.filter.as_deref().map(condition).transpose()?;
    options.partition_by.as_deref().map(items).transpose().map(|_| ())
}

impl Question {
    /// The question for a table at the schema of the exported commit.
    pub fn new(options: &ExportOptions, meta: &TableMeta, schema: &TableSchema) -> Result<Question> {
        let schema = &as_exported(schema, options.layout);
        let parts = parts(options, meta, schema)?;
        let table = quoted(&meta.name);
        let from = match options.layout {
            ExportLayout::History => format!("history('{}')", meta.name.replace('\'', "''")),
            ExportLayout::Current => format!(
                "{table}{}{}",
                point("VALID_TIME", options.valid),
                point("SYSTEM_TIME", options.system)
            ),
            ExportLayout::Intervals => format!(
                "{table}{}{}",
                range("VALID_TIME", options.valid),
                range("SYSTEM_TIME", options.system)
            ),
        };
        let values: Vec<String> = parts
            .iter()
            .enumerate()
            .map(|(i, p)| format!(", CAST(({}) AS VARCHAR) AS \"__asof_part_{i}\"", p.expression))
            .collect();
        let filter = match &options.filter {
            Some(text) => format!(" WHERE {}", condition(text)?),
            None => String::new(),
        };
        let order = match options.order {
            ExportOrder::Key => String::new(),
            ExportOrder::Time => by_time(schema),
        };
        Ok(Question { text: format!("SELECT *{} FROM {from}{filter}{order}", values.concat()), parts })
    }
}

/// The columns of a table by the names they have in a layout.
pub(crate) fn as_exported(schema: &TableSchema, layout: ExportLayout) -> TableSchema {
    let added: &[&str] = match layout {
        ExportLayout::Intervals => &TIMES,
        ExportLayout::History => &crate::sql::HISTORY_COLUMNS,
        ExportLayout::Current => &[],
    };
    crate::sql::set_apart(schema, added)
}

/// The latest first: rows that hold, then those that ended last, so that the end columns rule out row
/// groups for questions about the past. A total order: equal exports are equal byte by byte.
fn by_time(schema: &TableSchema) -> String {
    let key: Vec<String> = match &schema.key[..] {
        [] => schema.columns.iter().map(|c| quoted(&c.name)).collect(),
        key => {
            key.iter().filter_map(|id| schema.columns.get(id.0 as usize)).map(|c| quoted(&c.name)).collect()
        }
    };
    let [start, end, system_start, system_end] = TIMES.map(quoted);
    format!(
        " ORDER BY {system_end} DESC NULLS FIRST, {end} DESC NULLS FIRST, {system_start}, {start}, {}",
        key.join(", ")
    )
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn point_text(point: Point) -> String {
    match point {
        Point::Now => "now()".to_owned(),
        Point::Integer(n) => n.to_string(),
        Point::Instant(us) => format!("'{}'", format_instant(us)),
    }
}

fn point(axis: &str, point: Option<Point>) -> String {
    point.map(|p| format!(" FOR {axis} AS OF {}", point_text(p))).unwrap_or_default()
}

/// Rows that hold at a point, whole: `AS OF` on both axes would leave the time columns out.
fn range(axis: &str, point: Option<Point>) -> String {
    match point.map(point_text) {
        Some(p) => format!(" FOR {axis} BETWEEN {p} AND {p}"),
        None => format!(" FOR {axis} ALL"),
    }
}

fn parser<'d>(what: &str, text: &str, dialect: &'d GenericDialect) -> Result<Parser<'d>> {
    Parser::new(dialect).try_with_sql(text).map_err(|e| unreadable(what, text, &e.to_string()))
}

fn unreadable(what: &str, text: &str, e: &str) -> Error {
    let e = e.strip_prefix("sql parser error: ").unwrap_or(e);
    Error::usage(format!("the {what} {text} cannot be read: {e}"))
}

/// A condition, and nothing behind it.
fn condition(text: &str) -> Result<String> {
    let what = "condition";
    let mut parser = parser(what, text, &GenericDialect)?;
    let expr = parser.parse_expr().map_err(|e| unreadable(what, text, &e.to_string()))?;
    parser.expect_token(&Token::EOF).map_err(|e| unreadable(what, text, &e.to_string()))?;
    Ok(expr.to_string())
}

/// A list of expressions, some with names.
fn items(text: &str) -> Result<Vec<(Expr, Option<Ident>)>> {
    let what = "partition expression";
    let mut parser = parser(what, text, &GenericDialect)?;
    let items = parser
        .parse_comma_separated(Parser::parse_select_item)
        .map_err(|e| unreadable(what, text, &e.to_string()))?;
    parser.expect_token(&Token::EOF).map_err(|e| unreadable(what, text, &e.to_string()))?;
    let item = |item| match item {
        SelectItem::UnnamedExpr(expr) => Ok((expr, None)),
        SelectItem::ExprWithAlias { expr, alias } => Ok((expr, Some(alias))),
        other => Err(unreadable(what, text, &format!("{other} is no expression"))),
    };
    items.into_iter().map(item).collect()
}

fn parts(options: &ExportOptions, meta: &TableMeta, schema: &TableSchema) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    if options.by_operation {
        parts.push(column("_operation"));
    }
    let list = match (&options.partition_by, options.layout) {
        (Some(text), _) => items(text)?,
        (None, ExportLayout::History) => items("processed_date")?,
        (None, _) => Vec::new(),
    };
    let alone = list.len() == 1;
    for (expr, alias) in list {
        let part = match (&expr, alias) {
            (Expr::Identifier(name), None) if schema.column(&name.value).is_none() => {
                match word(&name.value, options.layout, meta)? {
                    Some(part) => part,
                    None if name.value == "none" && alone => continue,
                    None => column(&name.value),
                }
            }
            (Expr::Identifier(name), None) => column(&name.value),
            (_, alias) => {
                let name = alias.map_or_else(|| unnamed(parts.len()), |a| a.value);
                Part { name, in_rows: false, expression: expr.to_string() }
            }
        };
        parts.push(part);
    }
    for (i, part) in parts.iter().enumerate() {
        if parts[..i].iter().any(|p| p.name.eq_ignore_ascii_case(&part.name)) {
            return Err(Error::usage(format!("{} is partitioned by {} twice", meta.name, part.name)));
        }
        if !part.in_rows && schema.columns.iter().any(|c| c.name.eq_ignore_ascii_case(&part.name)) {
            return Err(Error::usage(format!("{} has a column {} already", meta.name, part.name)).hint(
                format!("give the partition another name: {} AS {}_part", part.expression, part.name),
            ));
        }
    }
    Ok(parts)
}

fn unnamed(before: usize) -> String {
    if before == 0 { "part".to_owned() } else { format!("part{}", before + 1) }
}

fn column(name: &str) -> Part {
    Part { name: name.to_owned(), in_rows: true, expression: quoted(name) }
}

/// What a word stands for in a layout.
fn word(name: &str, layout: ExportLayout, meta: &TableMeta) -> Result<Option<Part>> {
    let start = quoted(TIMES[0]);
    let derived = |expression| Some(Part { name: name.to_owned(), in_rows: false, expression });
    let missing = |what: &str, hint: &str| {
        Err(Error::usage(format!("the layout {layout} cannot be partitioned by {name}: {what}")).hint(hint))
    };
    match name {
        "processed_date" if layout == ExportLayout::History => Ok(Some(column("_processed_date"))),
        "processed_date" => missing(
            "only events have a day on which they were taken in",
            "for interval rows: CAST(\"__SYSTEM_START_AT\" AS DATE) AS known_date",
        ),
        "valid_date" | "year_month" if layout == ExportLayout::Current => {
            missing("its rows have the table's own columns only", "name a column of the table")
        }
        "valid_date" | "year_month" if meta.valid_axis == AxisType::Integer => {
            missing("its valid time is a plain integer", "divide it: \"__START_AT\" / 1000000 AS part")
        }
        "valid_date" => Ok(derived(format!("CAST({start} AS DATE)"))),
        "year_month" => Ok(derived(format!("to_char({start}, '%Y-%m')"))),
        _ => Ok(None),
    }
}
