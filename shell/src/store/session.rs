//! A session of the library as the shell sees it.

use crate::backend::{Backend, Clocks, ColumnNames, Names, Part, Running, Summary, TableNames};
use crate::outcome::{Exit, Failure, Outcome, Place};
use arrow::datatypes::SchemaRef;
use asofdb::sql::{Answer, Params, Point, Session, Settings, SqlError, SqlErrorKind};
use asofdb::time::format_instant;
use asofdb_storage::engine::{self, Engine};
use asofdb_storage::schema::TableMeta;
use asofdb_storage::time::{AxisType, CommitSeq};
use futures::StreamExt;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Table functions and the functions that people use most, for completion.
const FUNCTIONS: [&str; 40] = [
    "history", "intervals", "scd2", "changes", "belief_diff", "timeline", "why", "quarantine", "sources", "commits",
    "ties", "files", "late", "period_overlaps", "period_contains", "period_precedes", "count", "sum", "avg", "min",
    "max", "coalesce", "nullif", "now", "date_trunc", "date_part", "to_timestamp", "lower", "upper", "length",
    "substr", "trim", "round", "abs", "concat", "replace", "row_number", "lag", "lead", "array_agg",
];

/// An open session.
pub struct Live {
    engine: Engine,
    session: Arc<Session>,
    params: Params,
}

impl Live {
    /// A session over an open store.
    pub fn open(engine: Engine, params: &[(String, String)]) -> Outcome<Live> {
        let settings = Settings { spill_directory: Some(std::env::temp_dir()), ..Settings::default() };
        let session = Session::new(Arc::new(engine.clone()), settings, Arc::new(super::now))
            .map_err(|e| failure(e, ""))?;
        let params = params.iter().fold(Params::none(), |all, (name, value)| all.with_text(name, value));
        Ok(Live { engine, session: Arc::new(session), params })
    }
}

/// An error of the SQL layer; places are of `text`.
fn failure(e: SqlError, text: &str) -> Failure {
    let exit = match e.kind {
        SqlErrorKind::Timeout => Exit::Timeout,
        SqlErrorKind::Storage(engine::ErrorKind::Busy) => Exit::Busy,
        SqlErrorKind::Storage(engine::ErrorKind::Damaged) => Exit::Damaged,
        _ => Exit::Failed,
    };
    let mut failure = Failure::new(exit, e.message);
    failure.place = e.place.map(|p| Place {
        file: None,
        line: p.line.max(1) as usize,
        column: p.column.max(1) as usize,
        text: text.lines().nth(p.line.max(1) as usize - 1).unwrap_or_default().to_owned(),
    });
    failure.hints.extend(e.hint);
    failure
}

async fn answer(session: Arc<Session>, text: String, params: Params, parts: Sender<Part>) -> Outcome<Summary> {
    let answer = session.run(&text, &params).await.map_err(|e| failure(e, &text))?;
    let Answer { schema, mut stream, applied, notices, commit, commit_at: _ } = answer;
    // Nobody listens any more where the statement was cancelled.
    let gone = |_| Failure::new(Exit::Cancelled, "cancelled");
    if !schema.fields().is_empty() {
        parts.send(Part::Columns(SchemaRef::clone(&schema))).await.map_err(gone)?;
        while let Some(batch) = stream.next().await {
            parts.send(Part::Rows(batch.map_err(|e| failure(e, &text))?)).await.map_err(gone)?;
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for line in applied.iter().map(ToString::to_string) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let why_empty = (commit == CommitSeq(0)).then(|| "the store has no commit yet".to_owned());
    Ok(Summary { applied: lines, notices, why_empty })
}

fn point(point: Point) -> String {
    match point {
        Point::Now => "now".into(),
        Point::Instant(us) => format_instant(us),
        Point::Integer(n) => n.to_string(),
    }
}

fn table(meta: &TableMeta) -> TableNames {
    let schema = meta.schema();
    let column = |c: &asofdb_storage::schema::Column| ColumnNames {
        name: c.name.clone(),
        ty: c.ty.name(),
        key: schema.key.iter().position(|k| *k == c.id).map(|i| i + 1),
    };
    let axis = |declared, ty, otherwise| match (declared, ty) {
        (true, AxisType::Instant) => "declared",
        (true, AxisType::Integer) => "declared (integers)",
        (false, _) => otherwise,
    };
    TableNames {
        name: meta.name.clone(),
        columns: schema.columns.iter().map(column).collect(),
        axes: format!(
            "valid time {}, system time {}",
            axis(meta.valid_declared, meta.valid_axis, "of the source's commits"),
            axis(meta.system_declared, meta.system_axis, "of this store's commits")
        ),
    }
}

impl Backend for Live {
    fn run(&self, statement: &str, parts: Sender<Part>) -> Running {
        Box::pin(answer(self.session.clone(), statement.to_owned(), self.params.clone(), parts))
    }

    fn names(&self) -> Names {
        let snapshot = self.engine.pin();
        let mut tables: Vec<TableNames> = snapshot.catalog().tables.values().map(|t| table(t)).collect();
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        Names { tables, functions: FUNCTIONS.map(str::to_owned).to_vec() }
    }

    fn clocks(&self) -> Clocks {
        let clocks = self.session.clocks();
        Clocks { valid: clocks.valid.map(point), system: clocks.system.map(point), commit: clocks.commit.map(point) }
    }

    fn commit_at_or_before(&self, us: i64) -> Option<(u64, i64)> {
        let CommitSeq(seq) = self.engine.pin().commit_at_or_before(us);
        Some((seq, self.commit_instant(seq)?))
    }

    fn commit_instant(&self, seq: u64) -> Option<i64> {
        let commits = self.engine.pin().commits().ok()?;
        commits.iter().find(|c| c.seq == seq).map(|c| c.at)
    }

    fn last_commit(&self) -> Option<(u64, i64)> {
        let snapshot = self.engine.pin();
        Some((snapshot.commit().0, snapshot.commit_at()?))
    }
}
