//! A statement asked from code that has no runtime: all its rows at once.

use super::answer::{Answer, Params};
use super::clock::Applied;
use super::error::{SqlError, SqlErrorKind};
use super::session::Session;
use asofdb_storage::time::CommitSeq;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

/// The answer to one statement, read to its end.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Columns of the answer; none for SET and RESET.
    pub schema: SchemaRef,
    /// The rows, in batches of `schema`.
    pub batches: Vec<RecordBatch>,
    /// The clocks that were applied, one entry per table that was read.
    pub applied: Vec<Applied>,
    /// What the user should know beside the rows.
    pub notices: Vec<String>,
    /// The commit that was pinned when the statement began.
    pub commit: CommitSeq,
}

impl Rows {
    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

impl Session {
    /// Runs one statement and waits for all its rows. Needs no runtime and may be called where there
    /// is one; asynchronous code that must not wait uses [`Session::run`].
    ///
    /// # Errors
    /// As [`Session::run`], and those of the running query.
    pub fn ask(&self, text: &str, params: &Params) -> Result<Rows, SqlError> {
        // No runtime may be entered from within another: a thread of its own has none.
        std::thread::scope(|scope| {
            let asking = std::thread::Builder::new().name("asof-ask".into());
            let asked = asking.spawn_scoped(scope, || in_runtime(self, text, params)).map_err(no_thread)?;
            asked.join().unwrap_or_else(|_| {
                Err(SqlError::new(
                    SqlErrorKind::Internal,
                    "the statement could not be run: a fault of asofdb",
                ))
            })
        })
    }
}

fn no_thread(e: std::io::Error) -> SqlError {
    SqlError::new(SqlErrorKind::Limit, format!("no thread to ask on: {e}"))
}

fn in_runtime(session: &Session, text: &str, params: &Params) -> Result<Rows, SqlError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(session.partitions().max(1))
        .thread_name("asof-ask")
        .enable_time()
        .build()
        .map_err(no_thread)?;
    let rows = runtime.block_on(async {
        let answer = session.run(text, params).await?;
        let Answer { schema, applied, notices, commit, .. } = &answer;
        let (schema, applied) = (schema.clone(), applied.clone());
        let (notices, commit) = (notices.clone(), *commit);
        Ok(Rows { schema, batches: answer.collect().await?, applied, notices, commit })
    });
    // A query that ran out of time may still be reading: it ends by itself.
    runtime.shutdown_background();
    rows
}
