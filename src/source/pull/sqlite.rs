//! SQLite, opened for reading only: every value has a type of its own there, and the declared type of
//! a column says what texts and numbers mean.

use super::address::Address;
use super::mark::{Mark, MarkKind};
use super::reader::{Database, Row};
use super::statement::{MarkParts, SourceColumn, SourceTable, quoted};
use super::value::{Kind, value};
use crate::format::options::TimeUnit;
use crate::format::time_text::{self, TimeText};
use asofdb_storage::value::Value;
use futures::TryStreamExt;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Connection, Error, Row as _, TypeInfo, ValueRef};
use std::ops::ControlFlow;

const NAMES: &str = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1";
/// Hidden columns of virtual tables are no part of a row; generated ones are.
const COLUMNS: &str = "SELECT name, type, pk FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid";

/// A connection with its transaction.
pub(super) struct Sqlite(SqliteConnection);

fn kind(type_name: &str) -> Kind {
    let ty = type_name.split('(').next().unwrap_or("").trim().to_ascii_uppercase();
    match ty.as_str() {
        "BOOLEAN" | "BOOL" => Kind::Bool,
        "DATE" => Kind::Date,
        "DATETIME" | "TIMESTAMP" | "TIMESTAMPTZ" => Kind::Timestamp,
        "JSON" | "JSONB" => Kind::Json,
        "DECIMAL" | "NUMERIC" => Kind::Decimal,
        _ => Kind::Text,
    }
}

/// Whether text in a column of this declared type is stored as a number where it is one.
fn is_number(type_name: &str) -> bool {
    type_name.to_ascii_uppercase().contains("INT")
}

impl Database for Sqlite {
    const QUOTE: char = '"';

    async fn begin(address: &Address) -> Result<Sqlite, Error> {
        let options =
            SqliteConnectOptions::new().filename(&address.database).read_only(true).create_if_missing(false);
        let mut connection = SqliteConnection::connect_with(&options).await?;
        sqlx::raw_sql("BEGIN").execute(&mut connection).await?;
        let mut database = Sqlite(connection);
        let encoding = database.scalar("PRAGMA encoding".to_owned()).await?;
        if encoding.as_deref() != Some("UTF-8") {
            return Err(Error::Protocol(
                "its text is UTF-16, which is not read; VACUUM INTO a UTF-8 one".to_owned(),
            ));
        }
        Ok(database)
    }

    async fn now(&mut self) -> Result<i64, Error> {
        let now = self.scalar("SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')".to_owned()).await?;
        match now.as_deref().and_then(time_text::parse) {
            Some(TimeText::Local(t)) => Ok(t.us),
            _ => Err(Error::Protocol("the library tells no time".to_owned())),
        }
    }

    async fn table_names(&mut self) -> Result<Vec<String>, Error> {
        sqlx::query_scalar(NAMES).fetch_all(&mut self.0).await
    }

    async fn table(&mut self, name: &str) -> Result<Option<SourceTable>, Error> {
        let name = name.strip_prefix("main.").unwrap_or(name);
        let rows = sqlx::query(COLUMNS).bind(name).fetch_all(&mut self.0).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let (mut columns, mut key) = (Vec::new(), Vec::new());
        for row in &rows {
            let (name, type_name): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let place: i64 = row.try_get(2)?;
            if place > 0 {
                key.push((place, name.clone()));
            }
            let select = quoted(&name, '"');
            columns.push(SourceColumn { kind: kind(&type_name), name, type_name, select });
        }
        key.sort();
        let key = key.into_iter().map(|(_, name)| name).collect();
        Ok(Some(SourceTable { path: vec![name.to_owned()], columns, key }))
    }

    async fn mark_kind(
        &mut self,
        table: &SourceTable,
        column: &SourceColumn,
        unit: Option<TimeUnit>,
    ) -> Result<Option<MarkKind>, Error> {
        // Numbers sort before texts, and those before bytes: the ends tell what there is.
        let (name, table) = (quoted(&column.name, '"'), quoted(&table.path[0], '"'));
        let mut ends = Vec::new();
        for end in ["min", "max"] {
            ends.push(self.scalar(format!("SELECT typeof({end}({name})) FROM {table}")).await?);
        }
        Ok(match (ends[0].as_deref(), ends[1].as_deref()) {
            (Some("integer"), Some("integer")) => Some(MarkKind::Number(unit)),
            (Some("text"), Some("text")) => Some(MarkKind::Text),
            (Some("null"), _) if is_number(&column.type_name) => Some(MarkKind::Number(unit)),
            (Some("null"), _) => Some(MarkKind::Text),
            _ => None,
        })
    }

    fn mark_parts(mark: &Mark) -> MarkParts {
        let column = quoted(&mark.column, '"');
        let text = format!("CAST({column} AS TEXT)");
        let compared = match mark.kind {
            MarkKind::Text => format!("{column} COLLATE BINARY"),
            _ => column,
        };
        MarkParts { compared, text, bound: "?".to_owned() }
    }

    fn highest(table: &str, mark: &Mark) -> String {
        format!("SELECT CAST(max({} COLLATE BINARY) AS TEXT) FROM {table}", quoted(&mark.column, '"'))
    }

    async fn scalar(&mut self, sql: String) -> Result<Option<String>, Error> {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut self.0).await
    }

    async fn rows(
        &mut self,
        sql: String,
        bound: Option<(&Mark, String)>,
        columns: &[SourceColumn],
        take: &mut (dyn FnMut(Row) -> ControlFlow<()> + Send),
    ) -> Result<(), Error> {
        let mut query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
        if let Some((mark, from)) = bound {
            let number = from.parse::<i64>().ok().filter(|_| mark.kind != MarkKind::Text);
            query = match number {
                Some(number) => query.bind(number),
                None => query.bind(from),
            };
        }
        let mut rows = query.fetch(&mut self.0);
        while let Some(row) = rows.try_next().await? {
            let cell = |(i, column): (usize, &SourceColumn)| cell(&row, i, column.kind);
            let values = columns.iter().enumerate().map(cell).collect::<Result<_, Error>>()?;
            let mark = if row.len() > columns.len() { row.try_get_unchecked(columns.len())? } else { None };
            if take(Row { values, mark }).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The value as it is stored; the declared type is heard where the value is one of it.
fn cell(row: &SqliteRow, i: usize, kind: Kind) -> Result<Value, Error> {
    let raw = row.try_get_raw(i)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let ty = raw.type_info().name().to_owned();
    Ok(match ty.as_str() {
        "INTEGER" | "BOOLEAN" | "INT4" => match (kind, row.try_get_unchecked::<i64, _>(i)?) {
            (Kind::Bool, n @ (0 | 1)) => Value::Bool(n == 1),
            (_, n) => Value::Int(n),
        },
        "REAL" => match (kind, row.try_get_unchecked::<f64, _>(i)?) {
            // Whole numbers of such a column are integers there: a double beside them is a decimal too.
            (Kind::Decimal, v) => match value(kind, &v.to_string()) {
                decimal @ Value::Decimal { .. } => decimal,
                _ => Value::Float(v),
            },
            (_, v) => Value::Float(v),
        },
        "BLOB" => Value::Bytes(row.try_get_unchecked(i)?),
        // Text need not be UTF-8 there.
        _ => match row.try_get_unchecked::<String, _>(i) {
            Ok(text) => typed(kind, text),
            Err(_) => Value::Bytes(row.try_get_unchecked(i)?),
        },
    })
}

fn typed(kind: Kind, text: String) -> Value {
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
    match kind {
        Kind::Json if is_json() => Value::Json(text),
        Kind::Date => value(Kind::Date, &text),
        // With a zone it is an instant, without one a wall-clock time.
        Kind::Timestamp => match time_text::parse(&text) {
            Some(TimeText::Instant(_)) => value(Kind::Instant, &text),
            Some(TimeText::Local(_)) => value(Kind::Timestamp, &text),
            Some(TimeText::Date(_)) => value(Kind::Date, &text),
            None => Value::Text(text),
        },
        _ => Value::Text(text),
    }
}
