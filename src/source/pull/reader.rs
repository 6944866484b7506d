//! Reading a table on a thread of its own, with a small runtime of its own: the caller need know nothing
//! of asynchronous code, and may itself be run by some. Pages wait in a short queue.

use super::address::{Address, Dialect};
use super::mark::{Mark, MarkKind};
use super::mysql::MySql;
use super::postgres::Postgres;
use super::sqlite::Sqlite;
use super::statement::{MarkParts, SourceColumn, SourceTable, quoted, select};
use crate::error::{Error, ErrorKind, Result};
use crate::format::options::{TimeColumn, TimeUnit};
use crate::near::near_names_hint;
use asofdb_storage::value::Value;
use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Rows of a page.
const PAGE_ROWS: usize = 4_096;
/// Bytes of values after which a page ends although it has fewer rows.
const PAGE_BYTES: usize = 4 << 20;
/// Time for connecting.
const CONNECT_MAX: Duration = Duration::from_secs(30);

/// A row of the source.
pub(crate) struct Row {
    /// In the order of [`Described::columns`].
    pub values: Vec<Value>,
    /// The watermark as text.
    pub mark: Option<String>,
}

/// What is known of a table before its rows.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    /// The name of the table within the database, with its schema if there are any.
    pub table: String,
    /// Its name alone.
    pub name: String,
    pub columns: Vec<String>,
    /// Primary key.
    pub key: Vec<String>,
    pub mark: Option<Mark>,
    /// The instant of the transaction by the clock of the database, microseconds.
    pub at: i64,
}

/// Which rows are wanted.
pub(crate) enum Scope {
    /// Those from a watermark on, and those that have none; in the order of the watermark.
    From(String),
    /// All, in the order of the watermark.
    Ordered,
    /// All, in any order.
    Whole,
}

/// What the thread sends.
enum Part {
    Described(Box<Described>),
    /// The highest watermark there is, where all rows come in any order.
    Highest(Option<String>),
    Rows(Vec<Row>),
    End,
}

/// A database as the thread sees it.
pub(super) trait Database: Sized {
    /// What stands around names.
    const QUOTE: char;
    /// Connects and begins the one transaction, which writes nothing.
    async fn begin(address: &Address) -> Result<Self, sqlx::Error>;
    /// The instant of the transaction, microseconds.
    async fn now(&mut self) -> Result<i64, sqlx::Error>;
    async fn table_names(&mut self) -> Result<Vec<String>, sqlx::Error>;
    async fn table(&mut self, name: &str) -> Result<Option<SourceTable>, sqlx::Error>;
    /// What a column is as a watermark; `None` if it cannot be one.
    async fn mark_kind(
        &mut self,
        table: &SourceTable,
        column: &SourceColumn,
        unit: Option<TimeUnit>,
    ) -> Result<Option<MarkKind>, sqlx::Error>;
    fn mark_parts(mark: &Mark) -> MarkParts;
    /// The statement for the highest watermark.
    fn highest(table: &str, mark: &Mark) -> String;
    async fn scalar(&mut self, sql: String) -> Result<Option<String>, sqlx::Error>;
    async fn rows(
        &mut self,
        sql: String,
        bound: Option<(&Mark, String)>,
        columns: &[SourceColumn],
        take: &mut (dyn FnMut(Row) -> ControlFlow<()> + Send),
    ) -> Result<(), sqlx::Error>;
}

/// A table that is being read.
pub(crate) struct Reading {
    scopes: SyncSender<Scope>,
    parts: Receiver<Result<Part>>,
    failure: Error,
}

impl Reading {
    /// Connects, and finds the table and its columns.
    ///
    /// # Errors
    /// `Source` if the database cannot be reached, or there is no such table or watermark; names near
    /// ones. No error shows a password.
    pub fn open(
        address: Address,
        table: String,
        watermark: Option<TimeColumn>,
    ) -> Result<(Reading, Described)> {
        let (scopes, wanted) = sync_channel(1);
        let (send, parts) = sync_channel(2);
        let failure = address.failure("the reader stopped");
        let request = Request { address, table, watermark };
        std::thread::Builder::new()
            .name("pull".to_owned())
            .spawn(move || run(&request, &wanted, &send))
            .map_err(|e| Error::failed(format!("no thread for reading: {e}")))?;
        let reading = Reading { scopes, parts, failure };
        match reading.next()? {
            Part::Described(described) => Ok((reading, *described)),
            _ => Err(reading.failure.clone()),
        }
    }

    /// Says which rows are wanted; once.
    ///
    /// # Errors
    /// `Source` if the reading ended.
    pub fn start(&self, scope: Scope) -> Result<()> {
        self.scopes.send(scope).map_err(|_| self.failure.clone())
    }

    /// The next rows; `None` at the end, which only comes when all were read. `highest` is set where the
    /// database was asked for it.
    ///
    /// # Errors
    /// `Source` if the reading broke off.
    pub fn rows(&self, highest: &mut Option<String>) -> Result<Option<Vec<Row>>> {
        loop {
            match self.next()? {
                Part::Rows(rows) => return Ok(Some(rows)),
                Part::Highest(found) => *highest = found,
                Part::End => return Ok(None),
                Part::Described(_) => return Err(self.failure.clone()),
            }
        }
    }

    fn next(&self) -> Result<Part> {
        self.parts.recv().map_err(|_| self.failure.clone())?
    }
}

struct Request {
    address: Address,
    table: String,
    watermark: Option<TimeColumn>,
}

type Parts = SyncSender<Result<Part>>;

fn run(request: &Request, scopes: &Receiver<Scope>, parts: &Parts) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return drop(parts.send(Err(Error::failed(format!("no runtime for reading: {e}"))))),
    };
    let read = runtime.block_on(async {
        match request.address.dialect {
            Dialect::Postgres => read::<Postgres>(request, scopes, parts).await,
            Dialect::MySql => read::<MySql>(request, scopes, parts).await,
            Dialect::Sqlite => read::<Sqlite>(request, scopes, parts).await,
        }
    });
    // Nobody listens any more if this cannot be sent.
    drop(parts.send(read.map(|()| Part::End)));
}

async fn read<D: Database>(request: &Request, scopes: &Receiver<Scope>, parts: &Parts) -> Result<()> {
    let address = &request.address;
    let failed = |e: sqlx::Error| failure(address, &e);
    let connected = tokio::time::timeout(CONNECT_MAX, D::begin(address)).await;
    let mut database = match connected {
        Ok(database) => database.map_err(failed)?,
        Err(_) => return Err(address.failure(&format!("no answer in {} seconds", CONNECT_MAX.as_secs()))),
    };
    let at = database.now().await.map_err(failed)?;
    let table = find::<D>(&mut database, request).await?;
    let mark = mark::<D>(&mut database, request, &table).await?;
    let described = Described {
        table: table.shown(),
        name: table.path.last().cloned().unwrap_or_default(),
        columns: table.columns.iter().map(|c| c.name.clone()).collect(),
        key: table.key.clone(),
        mark: mark.clone(),
        at,
    };
    // The table within its database: of MySQL that is no part of the name.
    let described = match address.dialect {
        Dialect::MySql if table.path[0] == address.database => {
            Described { table: described.name.clone(), ..described }
        }
        _ => described,
    };
    if parts.send(Ok(Part::Described(Box::new(described)))).is_err() {
        return Ok(());
    }
    let Ok(scope) = scopes.recv() else { return Ok(()) };
    if let (Scope::Whole, Some(mark)) = (&scope, &mark) {
        let path: Vec<String> = table.path.iter().map(|p| quoted(p, D::QUOTE)).collect();
        let highest = database.scalar(D::highest(&path.join("."), mark)).await.map_err(failed)?;
        if parts.send(Ok(Part::Highest(highest))).is_err() {
            return Ok(());
        }
    }
    rows::<D>(&mut database, &table, mark.as_ref(), scope, parts).await.map_err(failed)
}

async fn find<D: Database>(database: &mut D, request: &Request) -> Result<SourceTable> {
    let Request { address, table, .. } = request;
    match database.table(table).await.map_err(|e| failure(address, &e))? {
        Some(found) => Ok(found),
        None => {
            let names = database.table_names().await.map_err(|e| failure(address, &e))?;
            // People leave the schema out.
            let short = |n: &String| match table.contains('.') {
                true => n.clone(),
                false => n.rsplit('.').next().unwrap_or(n).to_owned(),
            };
            let names: Vec<String> = names.iter().map(short).collect();
            Err(address
                .failure(&format!("there is no table {table}"))
                .hint(near_names_hint(table, names.iter().map(String::as_str))))
        }
    }
}

async fn mark<D: Database>(database: &mut D, request: &Request, table: &SourceTable) -> Result<Option<Mark>> {
    let Request { address, watermark, .. } = request;
    let Some(TimeColumn { column: name, unit }) = watermark else { return Ok(None) };
    let Some(column) = table.columns.iter().find(|c| c.name == *name) else {
        let names = table.columns.iter().map(|c| c.name.as_str());
        return Err(address
            .failure(&format!("table {} has no column {name}", table.shown()))
            .hint(near_names_hint(name, names)));
    };
    let kind = database.mark_kind(table, column, *unit).await.map_err(|e| failure(address, &e))?;
    match kind {
        Some(kind) => Ok(Some(Mark { column: name.clone(), kind })),
        None => Err(address
            .failure(&format!(
                "column {name} of {} ({}) cannot be a watermark",
                table.shown(),
                if column.type_name.is_empty() { "no type" } else { &column.type_name }
            ))
            .hint("a watermark is a column of times or whole numbers that grows with every change")),
    }
}

async fn rows<D: Database>(
    database: &mut D,
    table: &SourceTable,
    mark: Option<&Mark>,
    scope: Scope,
    parts: &Parts,
) -> Result<(), sqlx::Error> {
    let mark_parts = mark.map(D::mark_parts);
    let order: &[String] = if matches!(scope, Scope::Whole) { &[] } else { &table.key };
    let (ordered, from) = match scope {
        Scope::Whole => (false, None),
        Scope::Ordered => (true, None),
        Scope::From(from) => (true, Some(from)),
    };
    let sql = select(table, D::QUOTE, mark_parts.as_ref(), from.is_some(), ordered, order);
    let (mut page, mut bytes) = (Vec::new(), 0);
    let bound = mark.zip(from);
    let mut gone = false;
    database
        .rows(sql, bound, &table.columns, &mut |row| {
            bytes += row.values.iter().map(size).sum::<usize>();
            page.push(row);
            if page.len() >= PAGE_ROWS || bytes >= PAGE_BYTES {
                bytes = 0;
                if parts.send(Ok(Part::Rows(std::mem::take(&mut page)))).is_err() {
                    gone = true;
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })
        .await?;
    if !gone && !page.is_empty() {
        // The end is noticed by the next to send.
        drop(parts.send(Ok(Part::Rows(page))));
    }
    Ok(())
}

fn size(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Text(t) | Value::Json(t) => t.len(),
            Value::Bytes(b) => b.len(),
            _ => 0,
        }
}

/// An error of the client, without the password, and what may help.
fn failure(address: &Address, e: &sqlx::Error) -> Error {
    let (what, hint) = match e {
        sqlx::Error::Io(e) if e.kind() == io::ErrorKind::ConnectionRefused => (
            "the connection was refused".to_owned(),
            "is the server running there, and does it listen on that address?",
        ),
        sqlx::Error::Io(e) => (e.to_string(), ""),
        sqlx::Error::Database(e) => {
            let code = e.code().unwrap_or_default().into_owned();
            let hint = match (address.dialect, code.as_str()) {
                (Dialect::Postgres, "28P01" | "28000") | (Dialect::MySql, "28000") => {
                    "--password-file, or the variable PGPASSWORD or MYSQL_PWD, gives the password"
                }
                (Dialect::Postgres, "42501") | (Dialect::MySql, "42000") => {
                    "the user needs the right to SELECT from the table"
                }
                (Dialect::Sqlite, "14") => "is the path right? the file is opened for reading only",
                (Dialect::Sqlite, "26") => "that file is not a database of SQLite",
                _ => "",
            };
            (e.message().to_owned(), hint)
        }
        other => (other.to_string(), ""),
    };
    let error = Error::new(ErrorKind::Source, address.failure(&what).message().to_owned());
    if hint.is_empty() { error } else { error.hint(hint) }
}
