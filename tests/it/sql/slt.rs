//! Runs `tests/slt/*.slt` over the fixture store in every state: fresh, reopened, compacted, rebuilt.
//! In results a cell is one word: blanks show as `_`, the empty text as `(empty)`.

use super::fixture::{STATES, State, rows, runtime, session, store};
use asofdb::sql::{Params, Session, SqlError};
use asofdb_storage::engine::Engine;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use std::path::Path;
use std::sync::Arc;

struct Database(Arc<Session>);

#[async_trait::async_trait]
impl AsyncDB for Database {
    type Error = SqlErrorText;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, SqlErrorText> {
        let answer = self.0.run(sql, &Params::none()).await?;
        if answer.schema.fields().is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let types = vec![DefaultColumnType::Any; answer.schema.fields().len()];
        let cell = |c: String| if c.is_empty() { "(empty)".to_owned() } else { c.replace([' ', '\n'], "_") };
        let rows = rows(&answer.collect().await?);
        Ok(DBOutput::Rows {
            types,
            rows: rows.into_iter().map(|r| r.into_iter().map(cell).collect()).collect(),
        })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "asofdb"
    }
}

/// An error with its place and hint, so that files can ask for them.
#[derive(Debug)]
struct SqlErrorText(String);

impl From<SqlError> for SqlErrorText {
    fn from(e: SqlError) -> Self {
        let mut text = e.message;
        if let Some(p) = e.place {
            text.push_str(&format!(" [{}:{}+{}]", p.line, p.column, p.length));
        }
        if let Some(hint) = e.hint {
            text.push_str(&format!(" hint: {hint}"));
        }
        SqlErrorText(text)
    }
}

impl std::fmt::Display for SqlErrorText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SqlErrorText {}

fn run_files(state: State) {
    let dir = tempfile::tempdir().unwrap();
    run_folder("tests/slt", 5, &store(dir.path(), state), state);
}

/// Runs the files of a folder over a store in a state; there are at least so many.
pub fn run_folder(folder: &str, files_min: usize, engine: &Engine, state: State) {
    let mut files: Vec<_> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "slt"))
        .collect();
    files.sort();
    assert!(files.len() >= files_min, "the .slt files are missing: {files:?}");
    let runtime = runtime();
    let mut failures = Vec::new();
    for file in files {
        let session = Arc::new(session(engine));
        let mut runner = Runner::new(move || {
            let session = session.clone();
            async move { Ok(Database(session)) }
        });
        if let Err(e) = runtime.block_on(runner.run_file_async(&file)) {
            failures.push(format!("{state:?}: {e}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn questions_over_a_fresh_store() {
    run_files(STATES[0]);
}

#[test]
fn questions_over_a_reopened_store() {
    run_files(State::Reopened);
}

#[test]
fn questions_over_a_compacted_store() {
    run_files(State::Compacted);
}

#[test]
fn questions_over_a_rebuilt_store() {
    run_files(State::Rebuilt);
}
