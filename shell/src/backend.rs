//! What the shell asks of an open store, so that parsing, editing and drawing can be tested without
//! one.

use crate::outcome::Outcome;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use std::future::Future;
use std::pin::Pin;
use tokio::sync::mpsc::Sender;

/// A part of an answer on its way.
#[derive(Debug)]
pub enum Part {
    /// The columns; comes first, once for each answer.
    Columns(SchemaRef),
    /// Rows.
    Rows(RecordBatch),
}

/// What is known when a statement is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The clocks that were applied, one line for each table.
    pub applied: Vec<String>,
    /// What people should know: rounding, rows that start in the future.
    pub notices: Vec<String>,
    /// Why the answer is empty, if the library can tell.
    pub why_empty: Option<String>,
}

/// Names for completion and near matches.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Tables.
    pub tables: Vec<TableNames>,
    /// Functions.
    pub functions: Vec<String>,
    /// Functions that stand where a table may, as far as everybody types them alike: `history('`.
    pub table_functions: Vec<String>,
}

/// A table and its columns.
#[derive(Clone, Debug, Default)]
pub struct TableNames {
    /// Its name.
    pub name: String,
    /// Its columns in order.
    pub columns: Vec<ColumnNames>,
    /// What its two axes are, in words.
    pub axes: String,
}

/// A column.
#[derive(Clone, Debug, Default)]
pub struct ColumnNames {
    /// Its name.
    pub name: String,
    /// Its type as DDL spells it.
    pub ty: String,
    /// Its place in the key, from 1.
    pub key: Option<usize>,
}

impl Names {
    /// The table called `name`; its case matters only where two differ by it.
    pub fn table(&self, name: &str) -> Option<&TableNames> {
        let exact = self.tables.iter().find(|t| t.name == name);
        exact.or_else(|| self.tables.iter().find(|t| t.name.eq_ignore_ascii_case(name)))
    }
}

impl TableNames {
    /// The key columns in key order.
    pub fn key(&self) -> Vec<&ColumnNames> {
        let mut key: Vec<_> = self.columns.iter().filter(|c| c.key.is_some()).collect();
        key.sort_by_key(|c| c.key);
        key
    }
}

/// The clocks that a session has set, as text; empty = running clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Valid time.
    pub valid: Option<String>,
    /// System time.
    pub system: Option<String>,
    /// Commit.
    pub commit: Option<String>,
}

/// A statement at work.
pub type Running = Pin<Box<dyn Future<Output = Outcome<Summary>> + Send>>;

/// A session of a store.
pub trait Backend: Send + Sync {
    /// Runs one statement; dropping the future cancels it.
    fn run(&self, statement: &str, parts: Sender<Part>) -> Running;
    /// Names of the newest commit.
    fn names(&self) -> Names;
    /// The clocks that are set.
    fn clocks(&self) -> Clocks;
    /// The newest commit at or before an instant (microseconds), with its own instant.
    fn commit_at_or_before(&self, us: i64) -> Option<(u64, i64)>;
    /// The instant of a commit.
    fn commit_instant(&self, seq: u64) -> Option<i64>;
    /// The newest commit.
    fn last_commit(&self) -> Option<(u64, i64)>;
}
