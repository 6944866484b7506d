//! Answers: rows as they come, and what was applied to get them.

use super::clock::Applied;
use super::deadline::Deadline;
use super::error::{SqlError, from_datafusion};
use super::one_key::OneKey;
use asofdb_storage::time::CommitSeq;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use futures::{Stream, StreamExt, TryStreamExt};
use std::collections::BTreeMap;
use std::pin::Pin;

/// Batches of an answer. Dropping it cancels the query.
pub type AnswerStream = Pin<Box<dyn Stream<Item = Result<RecordBatch, SqlError>> + Send>>;

/// The answer to one statement.
pub struct Answer {
    /// Columns of the answer; none for SET and RESET.
    pub schema: SchemaRef,
    /// The rows.
    pub stream: AnswerStream,
    /// The clocks that were applied, one entry per table that is read.
    pub applied: Vec<Applied>,
    /// What the user should know beside the rows.
    pub notices: Vec<String>,
    /// The commit the query pinned when it began.
    pub commit: CommitSeq,
    /// Its instant, if there is one.
    pub commit_at: Option<i64>,
    /// The key that is asked for, where it is one of one table at one point: it can say why there is no row.
    pub one_key: Option<OneKey>,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Answer { schema, stream: _, applied, notices, commit, commit_at, one_key: _ } = self;
        f.debug_struct("Answer")
            .field("schema", schema)
            .field("applied", applied)
            .field("notices", notices)
            .field("commit", commit)
            .field("commit_at", commit_at)
            .finish_non_exhaustive()
    }
}

impl Answer {
    /// All batches.
    ///
    /// # Errors
    /// The first error of the query.
    pub async fn collect(self) -> Result<Vec<RecordBatch>, SqlError> {
        self.stream.try_collect().await
    }
}

/// Values of parameters: `$1` and `?` by position, `$name` by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    /// `$1`, `$2`, … and `?` in order.
    pub positional: Vec<ScalarValue>,
    /// `$name`.
    pub named: BTreeMap<String, ScalarValue>,
}

impl Params {
    /// No parameters.
    pub fn none() -> Params {
        Params::default()
    }

    /// Adds a named parameter. A text that is a whole number, a decimal number, `true`, `false` or
    /// `null` becomes one; anything else stays text.
    pub fn with_text(mut self, name: &str, text: &str) -> Params {
        let value = match text {
            "true" => ScalarValue::Boolean(Some(true)),
            "false" => ScalarValue::Boolean(Some(false)),
            "null" => ScalarValue::Null,
            _ => text
                .parse::<i64>()
                .map_or_else(|_| ScalarValue::Utf8(Some(text.to_owned())), ScalarValue::from),
        };
        self.named.insert(name.to_owned(), value);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.positional.is_empty() && self.named.is_empty()
    }

    /// All values by name, positions as `1`, `2`, ….
    pub(crate) fn by_name(&self) -> Vec<(String, ScalarValue)> {
        let numbered = self.positional.iter().enumerate().map(|(i, v)| ((i + 1).to_string(), v.clone()));
        numbered.chain(self.named.iter().map(|(k, v)| (k.clone(), v.clone()))).collect()
    }
}

/// Batches until the deadline; errors become ours.
pub(crate) fn bounded_stream(stream: SendableRecordBatchStream, deadline: Option<Deadline>) -> AnswerStream {
    let translated = stream.map(|b| b.map_err(|e| from_datafusion(&e)));
    let Some(deadline) = deadline else { return Box::pin(translated) };
    Box::pin(futures::stream::unfold(Some((translated, deadline)), move |state| async move {
        let (mut stream, mut deadline) = state?;
        match deadline.bound(stream.next()).await {
            Ok(None) => None,
            Ok(Some(item)) => Some((item, Some((stream, deadline)))),
            Err(e) => Some((Err(e), None)),
        }
    }))
}
