//! MySQL and MariaDB: numbers and times are asked for as text, in UTC; bytes and doubles as they are.

use super::address::Address;
use super::mark::{Mark, MarkKind};
use super::reader::{Database, Row};
use super::statement::{MarkParts, SourceColumn, SourceTable, quoted};
use super::value::{Kind, single, value};
use crate::format::options::TimeUnit;
use crate::format::time_text::{self, TimeText};
use asofdb_storage::value::Value;
use futures::TryStreamExt;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlRow};
use sqlx::{AssertSqlSafe, Connection, Error, Row as _};
use std::ops::ControlFlow;

const FIND: &str = "SELECT table_schema, table_name FROM information_schema.tables
    WHERE table_schema = DATABASE() AND table_name = ? OR CONCAT(table_schema, '.', table_name) = ?
    ORDER BY table_schema = DATABASE() DESC LIMIT 1";
const NAMES: &str =
    "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1";
const COLUMNS: &str = "SELECT column_name, data_type, column_type FROM information_schema.columns
    WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position";
const KEY: &str = "SELECT column_name FROM information_schema.statistics
    WHERE table_schema = ? AND table_name = ? AND index_name = 'PRIMARY' ORDER BY seq_in_index";

/// A connection with its transaction.
pub(super) struct MySql(MySqlConnection);

fn options(address: &Address) -> Result<MySqlConnectOptions, Error> {
    let Address { host, port, user, password, database, .. } = address;
    let mut options = MySqlConnectOptions::new().host(host).port(*port).database(database);
    if let Some(user) = user {
        options = options.username(user);
    }
    if let Some(password) = password {
        options = options.password(password);
    }
    for (name, text) in &address.options {
        options = match name.as_str() {
            "socket" => options.socket(text),
            "ssl-mode" => options.ssl_mode(text.parse()?),
            "ssl-ca" => options.ssl_ca(text),
            "ssl-cert" => options.ssl_client_cert(text),
            _ => options.ssl_client_key(text),
        };
    }
    Ok(options.timezone(Some("+00:00".to_owned())))
}

fn column(name: String, ty: &str, type_name: String) -> SourceColumn {
    let kind = match ty {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" => Kind::Int,
        "bit" if type_name == "bit(1)" => Kind::Bool,
        "bit" => Kind::Int,
        "decimal" => Kind::Decimal,
        "float" => Kind::Single,
        "double" => Kind::Double,
        "date" => Kind::Date,
        "datetime" => Kind::Timestamp,
        "timestamp" => Kind::Instant,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Kind::Bytes,
        "json" => Kind::Json,
        _ => Kind::Text,
    };
    let quoted = quoted(&name, '`');
    let select = match (kind, ty) {
        (Kind::Single | Kind::Double | Kind::Bytes, _) => quoted,
        (_, "bit") => format!("CAST({quoted} + 0 AS CHAR)"),
        (_, "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "set") => {
            format!("CONVERT({quoted} USING utf8mb4)")
        }
        (_, "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring") => {
            format!("ST_AsText({quoted})")
        }
        (_, "multipolygon" | "geometrycollection" | "geomcollection") => format!("ST_AsText({quoted})"),
        _ => format!("CAST({quoted} AS CHAR)"),
    };
    SourceColumn { name, kind, type_name, select }
}

/// Text, whatever the catalog says it is.
fn text(row: &MySqlRow, i: usize) -> Result<String, Error> {
    let bytes: Vec<u8> = row.try_get_unchecked(i)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Database for MySql {
    const QUOTE: char = '`';

    async fn begin(address: &Address) -> Result<MySql, Error> {
        let mut connection = MySqlConnection::connect_with(&options(address)?).await?;
        for sql in [
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        ] {
            sqlx::raw_sql(sql).execute(&mut connection).await?;
        }
        Ok(MySql(connection))
    }

    async fn now(&mut self) -> Result<i64, Error> {
        let now = self.scalar("SELECT CAST(UTC_TIMESTAMP(6) AS CHAR)".to_owned()).await?;
        match now.as_deref().and_then(time_text::parse) {
            Some(TimeText::Local(t)) => Ok(t.us),
            _ => Err(Error::Protocol("the server tells no time".to_owned())),
        }
    }

    async fn table_names(&mut self) -> Result<Vec<String>, Error> {
        let rows = sqlx::query(NAMES).fetch_all(&mut self.0).await?;
        rows.iter().map(|r| text(r, 0)).collect()
    }

    async fn table(&mut self, name: &str) -> Result<Option<SourceTable>, Error> {
        let Some(found) = sqlx::query(FIND).bind(name).bind(name).fetch_optional(&mut self.0).await? else {
            return Ok(None);
        };
        let path = vec![text(&found, 0)?, text(&found, 1)?];
        let rows = sqlx::query(COLUMNS).bind(&path[0]).bind(&path[1]).fetch_all(&mut self.0).await?;
        let column = |r: &MySqlRow| Ok(column(text(r, 0)?, &text(r, 1)?.to_lowercase(), text(r, 2)?));
        let columns = rows.iter().map(column).collect::<Result<_, Error>>()?;
        let rows = sqlx::query(KEY).bind(&path[0]).bind(&path[1]).fetch_all(&mut self.0).await?;
        let key = rows.iter().map(|r| text(r, 0)).collect::<Result<_, Error>>()?;
        Ok(Some(SourceTable { path, columns, key }))
    }

    async fn mark_kind(
        &mut self,
        _: &SourceTable,
        column: &SourceColumn,
        unit: Option<TimeUnit>,
    ) -> Result<Option<MarkKind>, Error> {
        Ok(match column.kind {
            // The session is in UTC.
            Kind::Instant | Kind::Timestamp => Some(MarkKind::Local),
            Kind::Date => Some(MarkKind::Date),
            Kind::Int | Kind::Decimal => Some(MarkKind::Number(unit)),
            _ => None,
        })
    }

    fn mark_parts(mark: &Mark) -> MarkParts {
        let compared = quoted(&mark.column, '`');
        let ty = match mark.kind {
            MarkKind::Date => "DATE",
            MarkKind::Number(_) => "DECIMAL(39,0)",
            MarkKind::Instant | MarkKind::Local | MarkKind::Text => "DATETIME(6)",
        };
        MarkParts { text: format!("CAST({compared} AS CHAR)"), bound: format!("CAST(? AS {ty})"), compared }
    }

    fn highest(table: &str, mark: &Mark) -> String {
        format!("SELECT CAST(max({}) AS CHAR) FROM {table}", quoted(&mark.column, '`'))
    }

    async fn scalar(&mut self, sql: String) -> Result<Option<String>, Error> {
        let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(&mut self.0).await?;
        let bytes: Option<Vec<u8>> = row.try_get_unchecked(0)?;
        Ok(bytes.map(|b| String::from_utf8_lossy(&b).into_owned()))
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
            let cell = |(i, column): (usize, &SourceColumn)| cell(&row, i, column.kind);
            let values = columns.iter().enumerate().map(cell).collect::<Result<_, Error>>()?;
            let mark: Option<Vec<u8>> =
                if row.len() > columns.len() { row.try_get_unchecked(columns.len())? } else { None };
            let mark = mark.map(|m| String::from_utf8_lossy(&m).into_owned());
            if take(Row { values, mark }).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn cell(row: &MySqlRow, i: usize, kind: Kind) -> Result<Value, Error> {
    Ok(match kind {
        Kind::Single => row.try_get_unchecked::<Option<f32>, _>(i)?.map_or(Value::Null, single),
        Kind::Double => row.try_get_unchecked::<Option<f64>, _>(i)?.map_or(Value::Null, Value::Float),
        _ => match row.try_get_unchecked::<Option<Vec<u8>>, _>(i)? {
            None => Value::Null,
            Some(bytes) if kind == Kind::Bytes => Value::Bytes(bytes),
            Some(bytes) => match String::from_utf8(bytes) {
                Ok(text) => value(kind, &text),
                Err(e) => Value::Bytes(e.into_bytes()),
            },
        },
    })
}
