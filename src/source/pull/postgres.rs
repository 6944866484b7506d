//! PostgreSQL: every value is asked for as text, in UTC, which is exact.

use super::address::Address;
use super::mark::{Mark, MarkKind};
use super::reader::{Database, Row};
use super::statement::{MarkParts, SourceColumn, SourceTable, quoted};
use super::value::{Kind, value};
use crate::format::options::TimeUnit;
use asofdb_storage::value::Value;
use futures::TryStreamExt;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Error, Row as _};
use std::ops::ControlFlow;

/// Relations that rows can be read from.
const TABLES: &str = "SELECT n.nspname::text, c.relname::text, c.oid::int8
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')";
const FIND: &str =
    "AND (c.relname = $1 AND n.nspname = ANY(current_schemas(false)) OR n.nspname || '.' || c.relname = $1)
    ORDER BY c.relname = $1 DESC, array_position(current_schemas(false), n.nspname) LIMIT 1";
const NAMES: &str = "AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1, 2";
/// A domain has the type below it.
const COLUMNS: &str = "SELECT a.attname::text, b.typname::text, format_type(a.atttypid, a.atttypmod)
    FROM pg_catalog.pg_attribute a
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    JOIN pg_catalog.pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
    WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
const KEY: &str = "SELECT a.attname::text
    FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
    WHERE i.indrelid = $1::oid AND i.indisprimary
    ORDER BY array_position(i.indkey::int2[], a.attnum)";

/// A connection with its transaction.
pub(super) struct Postgres(PgConnection);

fn options(address: &Address) -> Result<PgConnectOptions, Error> {
    let Address { host, port, user, password, database, .. } = address;
    let mut options = PgConnectOptions::new_without_pgpass().host(host).port(*port).database(database);
    if let Some(user) = user {
        options = options.username(user);
    }
    // None stays none: what the environment has is for the caller to look at.
    options = options.password(password.as_deref().unwrap_or(""));
    for (name, text) in &address.options {
        options = match name.as_str() {
            "host" if text.starts_with('/') => options.socket(text),
            "host" => options.host(text),
            "sslmode" => options.ssl_mode(text.parse()?),
            "sslrootcert" => options.ssl_root_cert(text),
            "sslcert" => options.ssl_client_cert(text),
            _ => options.ssl_client_key(text),
        };
    }
    Ok(options.application_name("asof"))
}

fn column(name: String, ty: &str, type_name: String) -> SourceColumn {
    let kind = match ty {
        "bool" => Kind::Bool,
        "int2" | "int4" | "int8" | "oid" => Kind::Int,
        "numeric" | "money" => Kind::Decimal,
        "float4" => Kind::Single,
        "float8" => Kind::Double,
        "date" => Kind::Date,
        "timestamp" => Kind::Timestamp,
        "timestamptz" => Kind::Instant,
        "bytea" => Kind::Hex,
        "json" | "jsonb" => Kind::Json,
        _ => Kind::Text,
    };
    let quoted = quoted(&name, '"');
    let select = match ty {
        "bytea" => format!("encode({quoted}, 'hex')"),
        "money" => format!("{quoted}::numeric::text"),
        _ => format!("{quoted}::text"),
    };
    SourceColumn { name, kind, type_name, select }
}

impl Database for Postgres {
    const QUOTE: char = '"';

    async fn begin(address: &Address) -> Result<Postgres, Error> {
        let mut connection = PgConnection::connect_with(&options(address)?).await?;
        sqlx::raw_sql("SET intervalstyle = iso_8601; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            .execute(&mut connection)
            .await?;
        Ok(Postgres(connection))
    }

    async fn now(&mut self) -> Result<i64, Error> {
        let sql = "SELECT (extract(epoch FROM now()) * 1000000)::int8";
        sqlx::query_scalar(sql).fetch_one(&mut self.0).await
    }

    async fn table_names(&mut self) -> Result<Vec<String>, Error> {
        let sql = AssertSqlSafe(format!("{TABLES} {NAMES}"));
        let rows = sqlx::query(sql).fetch_all(&mut self.0).await?;
        rows.iter().map(|r| Ok(format!("{}.{}", text(r, 0)?, text(r, 1)?))).collect()
    }

    async fn table(&mut self, name: &str) -> Result<Option<SourceTable>, Error> {
        let sql = AssertSqlSafe(format!("{TABLES} {FIND}"));
        let Some(found) = sqlx::query(sql).bind(name).fetch_optional(&mut self.0).await? else {
            return Ok(None);
        };
        let path = vec![text(&found, 0)?, text(&found, 1)?];
        let oid: i64 = found.try_get(2)?;
        let rows = sqlx::query(COLUMNS).bind(oid).fetch_all(&mut self.0).await?;
        let column = |r: &PgRow| Ok(column(text(r, 0)?, &text(r, 1)?, text(r, 2)?));
        let columns = rows.iter().map(column).collect::<Result<_, Error>>()?;
        let key = sqlx::query_scalar(KEY).bind(oid).fetch_all(&mut self.0).await?;
        Ok(Some(SourceTable { path, columns, key }))
    }

    async fn mark_kind(
        &mut self,
        _: &SourceTable,
        column: &SourceColumn,
        unit: Option<TimeUnit>,
    ) -> Result<Option<MarkKind>, Error> {
        Ok(match column.kind {
            Kind::Instant => Some(MarkKind::Instant),
            Kind::Timestamp => Some(MarkKind::Local),
            Kind::Date => Some(MarkKind::Date),
            Kind::Int => Some(MarkKind::Number(unit)),
            Kind::Decimal if column.type_name != "money" => Some(MarkKind::Number(unit)),
            _ => None,
        })
    }

    fn mark_parts(mark: &Mark) -> MarkParts {
        let compared = quoted(&mark.column, '"');
        let ty = match mark.kind {
            MarkKind::Instant => "timestamptz",
            MarkKind::Local => "timestamp",
            MarkKind::Date => "date",
            MarkKind::Number(_) => "numeric",
            MarkKind::Text => "text",
        };
        MarkParts { text: format!("{compared}::text"), bound: format!("$1::text::{ty}"), compared }
    }

    fn highest(table: &str, mark: &Mark) -> String {
        let column = quoted(&mark.column, '"');
        let finite = match mark.kind {
            MarkKind::Number(_) | MarkKind::Text => String::new(),
            _ => format!(" WHERE isfinite({column})"),
        };
        format!("SELECT max({column})::text FROM {table}{finite}")
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
        if let Some((_, from)) = bound {
            query = query.bind(from);
        }
        let mut rows = query.fetch(&mut self.0);
        while let Some(row) = rows.try_next().await? {
            let mut values = Vec::with_capacity(columns.len());
            for (i, column) in columns.iter().enumerate() {
                let text: Option<&str> = row.try_get(i)?;
                values.push(text.map_or(Value::Null, |t| value(column.kind, t)));
            }
            let mark = if row.len() > columns.len() { row.try_get(columns.len())? } else { None };
            if take(Row { values, mark }).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn text(row: &PgRow, i: usize) -> Result<String, Error> {
    row.try_get(i)
}
