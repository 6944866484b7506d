//! The row of one key without a plan: `SELECT columns FROM table FOR ... WHERE` every key column is a constant.
//!
//! Planning such a statement takes many times as long as finding the row. So it is recognised by its tokens,
//! and by nothing less than all of them: whatever else a statement says, it is planned.

use super::bound::{Evaluation, literal_point};
use super::clause::{Axis, Clause, Spec};
use super::clock::{Applied, Point, PointSpec, point_of_scalar};
use super::context::{QueryContext, TableBounds};
use super::error::{SqlError, from_datafusion};
use super::keys::{candidates, value_of};
use super::lift::{Clauses, lift, marker_number};
use super::one_key::OneKey;
use super::table::{Shape, TemporalTable};
use super::token::{is_blank, is_word};
use asofdb_storage::engine::{Bounds, PointRequest, RangeSpec};
use asofdb_storage::id::ColumnId;
use asofdb_storage::key::key_bytes;
use asofdb_storage::schema::TableMeta;
use asofdb_storage::value::{ColumnType, Value};
use datafusion::arrow::array::{Array, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::sqlparser::ast::{
    Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArguments, Value as SqlValue,
};
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::sync::Arc;

/// Tokens of a statement that is looked at; nothing in so few is deep.
const TOKENS_MAX: usize = 400;

/// A statement that asks for the row of one key.
pub(crate) struct SingleRow {
    pub context: Arc<QueryContext>,
    pub schema: SchemaRef,
    pub applied: Applied,
    meta: Arc<TableMeta>,
    request: PointRequest,
    /// What is read: the columns that are shown, then the other key columns.
    read: Vec<ColumnId>,
    /// The constants by place in `read`.
    keys: Vec<(usize, Value)>,
}

/// The parts of such a statement.
struct Parts {
    /// Names of the columns; none for `*`.
    columns: Option<Vec<String>>,
    table: String,
    marker: Option<usize>,
    equal: Vec<(String, ScalarValue)>,
}

impl SingleRow {
    /// Recognises a statement, whose clauses are not lifted yet. `context` makes a context for its clauses.
    pub fn of(
        tokens: &[TokenWithSpan],
        evaluation: &Evaluation,
        context: impl FnOnce(Vec<Clauses>) -> QueryContext,
    ) -> Option<SingleRow> {
        let mut significant = tokens.iter().map(|t| &t.token).filter(|t| !is_blank(t));
        if tokens.len() > TOKENS_MAX || !is_word(significant.next(), "SELECT") {
            return None;
        }
        let lifted = lift(tokens).ok()?;
        let parts = Reading { tokens: &lifted.tokens, at: 0 }.parts(evaluation)?;
        let context = Arc::new(context(lifted.clauses));
        let clauses = match (context.clauses.as_slice(), parts.marker) {
            ([], None) => Clauses::default(),
            ([one], Some(0)) => one.clone(),
            _ => return None,
        };
        let meta = context.reader.catalog().tables.values().find(|t| t.name == parts.table)?.clone();
        let bounds = bounds(&context, &meta, &clauses, evaluation)?;
        let (valid, system) = bounds.point()?;
        let table = TemporalTable::new(context.clone(), meta.clone(), bounds, Shape::Bounded);
        let columns = &table.table_schema.columns;
        if table.table_schema.version != meta.schema().version || table.table_schema.key.is_empty() {
            return None;
        }
        let place_of = |name: &String| columns.iter().position(|c| c.name == *name);
        let shown: Vec<usize> = match &parts.columns {
            None => (0..columns.len()).collect(),
            Some(names) => names.iter().map(place_of).collect::<Option<_>>()?,
        };
        if (1..shown.len()).any(|i| shown[..i].contains(&shown[i])) {
            return None;
        }
        let (mut read, mut cells, mut keys) = (shown.clone(), Vec::new(), Vec::new());
        for id in &table.table_schema.key {
            let column = columns.get(id.0 as usize)?;
            let value = parts.value(&column.name, column.ty)?;
            let at = read.iter().position(|c| *c == id.0 as usize).unwrap_or_else(|| {
                read.push(id.0 as usize);
                read.len() - 1
            });
            cells.push(value.clone());
            keys.push((at, value));
        }
        if parts.equal.len() != keys.len() {
            return None;
        }
        let cells: Vec<_> = cells.iter().map(Value::as_cell).collect();
        let bounds = Bounds { valid, system, commit: table.bounds.commit };
        let key = key_bytes(&cells);
        let (reader, of) = (context.reader.clone(), meta.clone());
        context.note_key(OneKey { reader, meta: of, key: key.clone(), bounds });
        Some(SingleRow {
            schema: Arc::new(table.schema().project(&shown).ok()?),
            applied: table.applied(),
            request: PointRequest { key, bounds },
            read: read.iter().map(|c| ColumnId(*c as u32)).collect(),
            keys,
            context,
            meta,
        })
    }

    /// The row, if there is one.
    pub fn row(&self) -> Result<Option<RecordBatch>, SqlError> {
        let requests = std::slice::from_ref(&self.request);
        let (_, rows) = self.context.reader.points(self.meta.id, requests, &self.read, &Arc::default())?;
        // What equal keys look like may differ: 5 and 5.0 are one key and two texts.
        if rows.num_rows() != 1 || !self.keys.iter().all(|(at, value)| is(&rows, *at, value)) {
            return Ok(None);
        }
        let columns = rows.columns()[..self.schema.fields().len()].to_vec();
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options);
        row.map(Some).map_err(|e| from_datafusion(&e.into()))
    }
}

/// Whether the one row has this value in a column.
fn is(row: &RecordBatch, column: usize, value: &Value) -> bool {
    let column = row.column(column);
    if column.is_null(0) {
        return false;
    }
    match value {
        Value::Int(n) => column.as_primitive_opt::<Int64Type>().is_some_and(|a| a.value(0) == *n),
        Value::Text(text) => column.as_string_opt::<i32>().is_some_and(|a| a.value(0) == text),
        _ => false,
    }
}

impl Parts {
    /// The constant that a key column must be, where it names one key only.
    fn value(&self, column: &str, ty: ColumnType) -> Option<Value> {
        let mut constants = self.equal.iter().filter(|(name, _)| name == column);
        let (Some((_, constant)), None) = (constants.next(), constants.next()) else { return None };
        let value = value_of(constant)?;
        let fits =
            matches!((ty, &value), (ColumnType::Int64, Value::Int(_)) | (ColumnType::Text, Value::Text(_)));
        let one = || candidates(ty, &value).is_some_and(|all| all.len() == 1);
        (fits && one()).then_some(value)
    }
}

/// Bounds that are constants without a planner.
fn bounds(
    context: &QueryContext,
    meta: &TableMeta,
    clauses: &Clauses,
    evaluation: &Evaluation,
) -> Option<TableBounds> {
    let Clauses { valid, system, commit } = clauses;
    let time = |axis: Axis, clause: &Option<Clause>| -> Option<RangeSpec> {
        let ty = if axis == Axis::Valid { meta.valid_axis } else { meta.system_axis };
        let Some(Clause { axis: _, spec: Spec::AsOf(expr), place: _ }) = clause else {
            return clause.is_none().then(|| context.default_time(axis, ty, &meta.name).ok()).flatten();
        };
        let point = PointSpec::AsOf(point(expr, evaluation)?);
        point.on_axis(axis, ty, &meta.name, context.now).ok()
    };
    let (valid, system) = (time(Axis::Valid, valid)?, time(Axis::System, system)?);
    let commit = match commit {
        None => context.default_commit().ok()?,
        Some(Clause { axis: _, spec: Spec::AsOf(expr), place: _ }) => {
            context.commit(point(expr, evaluation)?).ok()?
        }
        Some(_) => return None,
    };
    Some(context.settle(meta, TableBounds { valid, system, commit }))
}

/// A bound that is a literal, a parameter, or microseconds as an instant.
fn point(expr: &SqlExpr, evaluation: &Evaluation) -> Option<Point> {
    if let Some(point) = literal_point(expr).ok()? {
        return Some(point);
    }
    match expr {
        SqlExpr::Value(v) => match &v.value {
            SqlValue::Number(text, false) => text.parse().ok().map(Point::Integer),
            SqlValue::Placeholder(name) => point_of_scalar(&parameter(name, evaluation)?).ok().flatten(),
            _ => None,
        },
        SqlExpr::Function(f) if f.to_string().starts_with("to_timestamp_micros(") => {
            let FunctionArguments::List(list) = &f.args else { return None };
            let [FunctionArg::Unnamed(FunctionArgExpr::Expr(micros))] = list.args.as_slice() else {
                return None;
            };
            match point(micros, evaluation)? {
                Point::Integer(us) if f.to_string() == format!("to_timestamp_micros({micros})") => {
                    Some(Point::Instant(us))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The value of a parameter.
fn parameter(name: &str, evaluation: &Evaluation) -> Option<ScalarValue> {
    let params = evaluation.params.as_ref()?;
    params.get_placeholders_with_values(name).ok().map(|v| v.value().clone())
}

/// Reads tokens that have no blanks between them.
struct Reading<'t> {
    tokens: &'t [TokenWithSpan],
    at: usize,
}

impl Reading<'_> {
    fn parts(mut self, evaluation: &Evaluation) -> Option<Parts> {
        self.word("SELECT")?;
        let columns = match self.take(&Token::Mul) {
            Some(()) => None,
            None => Some(self.names()?),
        };
        self.word("FROM")?;
        let table = self.name()?;
        let marker = match self.word("PARTITION") {
            Some(()) => Some(self.marker()?),
            None => None,
        };
        self.word("WHERE")?;
        let mut equal = vec![self.equality(evaluation)?];
        while self.word("AND").is_some() {
            equal.push(self.equality(evaluation)?);
        }
        while self.take(&Token::SemiColon).is_some() {}
        match self.next() {
            None | Some(Token::EOF) => Some(Parts { columns, table, marker, equal }),
            Some(_) => None,
        }
    }

    fn next(&mut self) -> Option<&Token> {
        self.at += 1;
        self.tokens.get(self.at - 1).map(|t| &t.token)
    }

    /// Goes over a token if it comes next.
    fn take(&mut self, token: &Token) -> Option<()> {
        let found = self.tokens.get(self.at).is_some_and(|t| t.token == *token);
        self.at += found as usize;
        found.then_some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let found = is_word(self.tokens.get(self.at).map(|t| &t.token), word);
        self.at += found as usize;
        found.then_some(())
    }

    /// A name that can be nothing else: quoted, or no word of SQL.
    fn name(&mut self) -> Option<String> {
        match self.next()? {
            Token::Word(w) if w.quote_style == Some('"') => Some(w.value.clone()),
            Token::Word(w) if w.quote_style.is_none() && w.keyword == Keyword::NoKeyword => {
                Some(w.value.clone())
            }
            _ => None,
        }
    }

    fn names(&mut self) -> Option<Vec<String>> {
        let mut names = vec![self.name()?];
        while self.take(&Token::Comma).is_some() {
            names.push(self.name()?);
        }
        Some(names)
    }

    fn marker(&mut self) -> Option<usize> {
        self.take(&Token::LParen)?;
        let number = match self.next()? {
            Token::Word(w) if w.quote_style.is_none() => marker_number(&w.value)?,
            _ => return None,
        };
        self.take(&Token::RParen)?;
        Some(number)
    }

    fn equality(&mut self, evaluation: &Evaluation) -> Option<(String, ScalarValue)> {
        let name = self.name()?;
        self.take(&Token::Eq)?;
        let value = match self.next()? {
            Token::Number(text, false) => ScalarValue::Int64(Some(text.parse().ok()?)),
            Token::SingleQuotedString(text) => ScalarValue::Utf8(Some(text.clone())),
            Token::Placeholder(name) => parameter(name, evaluation)?,
            _ => return None,
        };
        Some((name, value))
    }
}

#[cfg(test)]
#[path = "single_tests.rs"]
mod tests;
