//! Errors of the SQL layer: what happened, where in the user's text, what to do.

use super::token::Place;
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::logical_expr::sqlparser::parser::ParserError;
use std::fmt;

/// What an SQL error asks of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlErrorKind {
    /// The text is not SQL.
    Syntax,
    /// The statement makes no sense for this store: unknown name, wrong type, wrong bound.
    Invalid,
    /// Not allowed or not built.
    Unsupported,
    /// A limit was reached: statement size, memory, spill space.
    Limit,
    /// The timeout passed.
    Timeout,
    /// The store failed; the kind says how.
    Storage(asofdb_storage::engine::ErrorKind),
    /// The query failed while it ran.
    Execution,
    /// A fault of asofdb or of DataFusion.
    Internal,
}

/// An error of the SQL layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// What kind of error it is.
    pub kind: SqlErrorKind,
    /// What happened, in one line.
    pub message: String,
    /// The place in the text that was given to `run`, if it is known.
    pub place: Option<Place>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl SqlError {
    /// An error without place or hint.
    pub fn new(kind: SqlErrorKind, message: impl Into<String>) -> SqlError {
        SqlError { kind, message: message.into(), place: None, hint: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlErrorKind::Invalid, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlErrorKind::Unsupported, message)
    }

    /// The same error with a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> SqlError {
        self.hint = Some(hint.into());
        self
    }

    /// The same error at a place, unless it has one.
    pub fn at(mut self, place: Place) -> SqlError {
        self.place.get_or_insert(place);
        self
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SqlError {}

impl From<asofdb_storage::engine::Error> for SqlError {
    fn from(e: asofdb_storage::engine::Error) -> SqlError {
        let asofdb_storage::engine::Error { kind, message, hint } = e;
        SqlError { kind: SqlErrorKind::Storage(kind), message, place: None, hint }
    }
}

impl From<SqlError> for DataFusionError {
    fn from(e: SqlError) -> DataFusionError {
        DataFusionError::External(Box::new(e))
    }
}

/// The place goes into the message: callers of the library have no caret to draw.
impl From<SqlError> for crate::Error {
    fn from(e: SqlError) -> crate::Error {
        use asofdb_storage::engine::ErrorKind as Storage;
        let kind = match e.kind {
            SqlErrorKind::Timeout => crate::ErrorKind::Timeout,
            SqlErrorKind::Storage(Storage::Busy) => crate::ErrorKind::Busy,
            SqlErrorKind::Storage(Storage::Damaged) => crate::ErrorKind::Damaged,
            _ => crate::ErrorKind::Failed,
        };
        let message = match e.place {
            Some(p) => format!("{} (line {}, column {})", e.message, p.line, p.column),
            None => e.message,
        };
        let error = crate::Error::new(kind, message);
        e.hint.into_iter().fold(error, crate::Error::hint)
    }
}

/// Wraps an error of the store so that it passes through DataFusion unharmed.
pub(crate) fn storage_error(e: asofdb_storage::engine::Error) -> DataFusionError {
    SqlError::from(e).into()
}

/// The error a parser error becomes; its text carries the place as words.
pub(crate) fn from_parser(e: &ParserError) -> SqlError {
    let text = match e {
        ParserError::TokenizerError(t) | ParserError::ParserError(t) => t.clone(),
        ParserError::RecursionLimitExceeded => {
            return SqlError::new(SqlErrorKind::Limit, "the statement is nested too deeply")
                .hint("split it with WITH, or take parentheses away");
        }
    };
    let (message, place) = split_place(&text);
    let mut error = SqlError::new(SqlErrorKind::Syntax, lower_first(message));
    error.place = place;
    error
}

/// Splits `... at Line: 1, Column: 8` off a message.
fn split_place(text: &str) -> (&str, Option<Place>) {
    let Some((message, rest)) = text.rsplit_once(" at Line: ") else { return (text, None) };
    let mut numbers = rest
        .split(", Column: ")
        .map(|n| n.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(line), Some(column)) => (message, Some(Place { line, column, length: 1 })),
        _ => (text, None),
    }
}

fn lower_first(text: &str) -> String {
    let text = text.trim_start_matches("sql parser error: ");
    let mut chars = text.chars();
    match chars.next() {
        Some(c) if chars.as_str().starts_with(|d: char| d.is_lowercase()) => {
            c.to_lowercase().collect::<String>() + chars.as_str()
        }
        _ => text.to_owned(),
    }
}

/// The error a DataFusion error becomes: ours if one is inside, else translated.
pub(crate) fn from_datafusion(e: &DataFusionError) -> SqlError {
    if let Some(ours) = find_ours(e) {
        return ours.clone();
    }
    let place = e.iter_diagnostics_place();
    let mut error = translate(e.find_root());
    if error.place.is_none() {
        error.place = place;
    }
    error
}

trait DiagnosticPlace {
    fn iter_diagnostics_place(&self) -> Option<Place>;
}

impl DiagnosticPlace for DataFusionError {
    fn iter_diagnostics_place(&self) -> Option<Place> {
        let span = self.diagnostic()?.span?;
        let length = if span.end.line == span.start.line {
            span.end.column.saturating_sub(span.start.column).max(1)
        } else {
            1
        };
        (span.start.line > 0).then_some(Place { line: span.start.line, column: span.start.column, length })
    }
}

fn find_ours(e: &DataFusionError) -> Option<&SqlError> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(e);
    while let Some(error) = source {
        if let Some(ours) = error.downcast_ref::<SqlError>() {
            return Some(ours);
        }
        if let Some(DataFusionError::External(inner)) = error.downcast_ref::<DataFusionError>() {
            source = Some(inner.as_ref());
        } else if let Some(DataFusionError::Shared(inner)) = error.downcast_ref::<DataFusionError>() {
            source = Some(inner.as_ref());
        } else if let Some(datafusion::arrow::error::ArrowError::ExternalError(inner)) =
            error.downcast_ref::<datafusion::arrow::error::ArrowError>()
        {
            source = Some(inner.as_ref());
        } else {
            source = error.source();
        }
    }
    None
}

fn translate(e: &DataFusionError) -> SqlError {
    match e {
        DataFusionError::SQL(parser, _) => from_parser(parser),
        DataFusionError::SchemaError(schema, _) => from_schema(schema),
        DataFusionError::Plan(text) => plan_error(text),
        DataFusionError::NotImplemented(text) | DataFusionError::Internal(text) if misses_subquery(text) => {
            SqlError::unsupported("a subquery cannot stand here")
                .hint("EXISTS and IN with a subquery stand in WHERE, HAVING and ON; else join it, or name it with WITH")
        }
        DataFusionError::NotImplemented(text) => SqlError::unsupported(first_line(text)),
        DataFusionError::ResourcesExhausted(text) => {
            SqlError::new(SqlErrorKind::Limit, format!("the query needs more memory than it may use: {text}"))
                .hint("narrow it, aggregate before joining, or raise the memory limit of the session")
        }
        DataFusionError::Internal(text) => SqlError::new(SqlErrorKind::Internal, first_line(text)),
        other => SqlError::new(SqlErrorKind::Execution, first_line(&other.strip_backtrace())),
    }
}

/// Whether it says that a subquery was left where nothing runs it.
fn misses_subquery(text: &str) -> bool {
    let kinds = ["Exists(", "InSubquery(", "ScalarSubquery(", "SetComparison("];
    text.contains("ScalarSubqueryExpr evaluated before")
        || text.starts_with("Physical plan does not support logical expression")
            && kinds.iter().any(|kind| text.contains(kind))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn plan_error(text: &str) -> SqlError {
    let mut lines = text.lines();
    let mut error = SqlError::invalid(lower_first(lines.next().unwrap_or_default()));
    if let Some(rest) = lines.find(|l| l.starts_with("Did you mean")) {
        error.hint = Some(lower_first(rest));
    }
    error
}

fn from_schema(e: &SchemaError) -> SqlError {
    match e {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let name = field.flat_name();
            let qualifier = field.relation.as_ref().map(|r| r.table().to_owned());
            let known: Vec<&str> = valid_fields
                .iter()
                .filter(|f| {
                    qualifier.is_none() || f.relation.as_ref().map(|r| r.table()) == qualifier.as_deref()
                })
                .map(|f| f.name.as_str())
                .collect();
            let error = SqlError::invalid(format!("there is no column {name}"));
            match crate::near::nearest(&field.name, known.iter().copied()) {
                Some(near) => error.hint(format!("did you mean {near}?")),
                None if known.is_empty() => error,
                None => error.hint(format!("there are: {}", super::names::some_of(&known))),
            }
        }
        SchemaError::AmbiguousReference { field } => {
            SqlError::invalid(format!("column {} stands in more than one table", field.name))
                .hint("write it with the table's name or alias before it")
        }
        other => SqlError::invalid(other.to_string()),
    }
}
