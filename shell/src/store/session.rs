//! A session of the library as the shell sees it.

use crate::backend::{Backend, Clocks, ColumnNames, Names, Part, Running, Summary, TableNames};
use crate::outcome::{Exit, Failure, Outcome, Place};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use asofdb::Store;
use asofdb::sql::{
    Answer, Applied, AppliedCommit, AppliedTime, Params, Point, Session, Settings, SqlError, SqlErrorKind,
    describe_range,
};
use asofdb::time::format_instant;
use asofdb_storage::engine::{self, RangeSpec};
use asofdb_storage::schema::TableMeta;
use asofdb_storage::time::{AxisType, CommitSeq, FOREVER};
use futures::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// An open session.
pub struct Live {
    session: Arc<Session>,
    params: Params,
    /// A session whose clocks run, to find out why an answer is empty; people only.
    probe: Option<Arc<Session>>,
}

impl Live {
    /// A session over an open store; with `explain`, empty answers say why.
    pub fn open(store: &Store, params: &[(String, String)], explain: bool) -> Outcome<Live> {
        let settings = Settings {
            memory_bytes_max: store.memory().query_bytes(),
            spill_directory: crate::spill::directory(),
            ..Settings::default()
        };
        let new = || store.session_with(settings.clone()).map(Arc::new).map_err(|e| super::failure(&e));
        let session = new()?;
        let probe = if explain { Some(new()?) } else { None };
        let params = params.iter().fold(Params::none(), |all, (name, value)| all.with_text(name, value));
        Ok(Live { session, params, probe })
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
    failure.hints.extend(meant(&failure.message));
    failure
}

/// What a word that begins no statement may have been meant as.
fn meant(message: &str) -> Option<String> {
    let word = message.strip_prefix("expected: an SQL statement, found: ")?.to_ascii_uppercase();
    let near = asofdb::near::nearest(&word, STATEMENTS.iter().copied())?;
    Some(format!("did you mean {near}?"))
}

/// Words that statements begin with.
const STATEMENTS: [&str; 8] = ["SELECT", "WITH", "EXPLAIN", "SET", "RESET", "SHOW", "DESCRIBE", "VALUES"];

async fn answer(work: Work, parts: Sender<Part>) -> Outcome<Summary> {
    let Work { session, text, params, probe } = work;
    let answer = session.run(&text, &params).await.map_err(|e| failure(e, &text))?;
    let Answer { schema, mut stream, applied, notices, commit, commit_at: _, one_key } = answer;
    // Nobody listens any more where the statement was cancelled.
    let gone = |_| Failure::new(Exit::Cancelled, "cancelled");
    let mut rows = 0;
    if !schema.fields().is_empty() {
        // What the planner notes in schemas is no part of an answer.
        let plain: SchemaRef = Arc::new(Schema::new(schema.fields().clone()));
        parts.send(Part::Columns(plain.clone())).await.map_err(gone)?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|e| failure(e, &text))?;
            rows += batch.num_rows();
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let batch = RecordBatch::try_new_with_options(plain.clone(), batch.columns().to_vec(), &options)
                .map_err(|e| Failure::new(Exit::Failed, e.to_string()))?;
            parts.send(Part::Rows(batch)).await.map_err(gone)?;
        }
    }
    let why_empty = match (&probe, &applied[..]) {
        (Some(_), _) if commit == CommitSeq(0) => Some("the store has no commit yet".to_owned()),
        (Some(probe), [only]) if rows == 0 => match one_key.and_then(|key| key.why_absent()) {
            Some(reason) => Some(reason),
            None => why_empty(probe, only).await,
        },
        _ => None,
    };
    let mut lines: Vec<String> = Vec::new();
    for line in applied.iter().map(describe) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    Ok(Summary { applied: lines, notices, why_empty })
}

/// What a running statement owns.
struct Work {
    session: Arc<Session>,
    text: String,
    params: Params,
    probe: Option<Arc<Session>>,
}

/// The clocks that were applied, short where they are the usual ones.
fn describe(applied: &Applied) -> String {
    let Applied { table, valid, valid_axis, system, system_axis, commit } = applied;
    let time = |t: &AppliedTime, ty| match t {
        AppliedTime::Fixed(spec) => describe_range(*spec, ty),
        AppliedTime::PerRow(e) => format!("as of {e}"),
    };
    let (valid, system) = (time(valid, *valid_axis), time(system, *system_axis));
    let commit = match commit {
        AppliedCommit::Fixed { seq, at: _ } => format!("commit {seq}"),
        AppliedCommit::PerRow(e) => format!("commit as of {e}"),
    };
    match valid == "latest" && system == "latest" {
        true => format!("{table}: latest, {commit}"),
        false => format!("{table}: valid {valid}, system {system}, {commit}"),
    }
}

/// Time that the search for a reason may take.
const PROBE_MAX: Duration = Duration::from_millis(500);

/// Why a question to one table found nothing: the table is empty there, or the conditions are.
async fn why_empty(probe: &Session, applied: &Applied) -> Option<String> {
    let (AppliedTime::Fixed(valid), AppliedTime::Fixed(system)) = (&applied.valid, &applied.system) else {
        return None;
    };
    let AppliedCommit::Fixed { seq, at: _ } = &applied.commit else { return None };
    let name = format!("\"{}\"", applied.table.replace('"', "\"\""));
    let clock = |axis, spec, ty| clause(axis, spec, ty).unwrap_or_default();
    let there = format!(
        "SELECT count(*) FROM (SELECT 1 FROM {name}{}{} FOR COMMIT AS OF {seq} LIMIT 1)",
        clock("VALID_TIME", *valid, applied.valid_axis),
        clock("SYSTEM_TIME", *system, applied.system_axis)
    );
    let first = format!(
        "SELECT min(\"__START_AT\"), min(\"__SYSTEM_START_AT\") \
         FROM {name} FOR VALID_TIME ALL FOR SYSTEM_TIME ALL FOR COMMIT AS OF {seq}"
    );
    let ask = async {
        if cells(probe, &there).await?.first()? != "0" {
            return Some(format!(
                "{} has rows at these clocks, but none that meets the conditions",
                applied.table
            ));
        }
        match &cells(probe, &first).await?[..] {
            [valid, system] if !system.is_empty() => Some(format!(
                "{} holds no row at these clocks; its first row holds from {}, and is known from {system}",
                applied.table,
                if valid.is_empty() { "the beginning" } else { valid }
            )),
            _ => {
                let first = format!(
                    "SELECT min(\"__COMMIT_SEQ\") FROM history('{}')",
                    applied.table.replace('\'', "''")
                );
                let first =
                    cells(probe, &first).await.and_then(|c| c.into_iter().next()).filter(|c| !c.is_empty());
                let since =
                    first.map(|n| format!("; its first event came with commit {n}")).unwrap_or_default();
                Some(format!("{} has no rows at commit {seq}{since}", applied.table))
            }
        }
    };
    tokio::time::timeout(PROBE_MAX, ask).await.ok().flatten()
}

fn clause(axis: &str, spec: RangeSpec, ty: AxisType) -> Option<String> {
    match spec {
        RangeSpec::AsOf(t) if t != FOREVER && ty == AxisType::Instant => {
            Some(format!(" FOR {axis} AS OF '{}'", format_instant(t)))
        }
        RangeSpec::AsOf(t) if t != FOREVER => Some(format!(" FOR {axis} AS OF {t}")),
        RangeSpec::All => Some(format!(" FOR {axis} ALL")),
        _ => None,
    }
}

/// The cells of the first row, NULL as empty text.
async fn cells(session: &Session, sql: &str) -> Option<Vec<String>> {
    let batches = session.run(sql, &Params::none()).await.ok()?.collect().await.ok()?;
    let batch = batches.iter().find(|b| b.num_rows() > 0)?;
    let cell = |column: &arrow::array::ArrayRef| {
        let mut text = String::new();
        crate::render::cell::write_cell(&mut text, column, 0);
        text
    };
    Some(batch.columns().iter().map(cell).collect())
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
        let (session, probe) = (self.session.clone(), self.probe.clone());
        let work = Work { session, text: statement.to_owned(), params: self.params.clone(), probe };
        Box::pin(answer(work, parts))
    }

    fn names(&self) -> Names {
        let mut tables: Vec<TableNames> = match self.session.pin() {
            Ok(reader) => reader.catalog().tables.values().map(|t| table(t)).collect(),
            // The next statement says what is wrong.
            Err(_) => Vec::new(),
        };
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        let opened = self.session.table_functions().map(|f| match f.arguments.chars().next() {
            None => format!("{}()", f.name),
            Some('\'') => format!("{}('", f.name),
            Some(_) => format!("{}(", f.name),
        });
        Names { tables, functions: self.session.functions(), table_functions: opened.collect() }
    }

    fn clocks(&self) -> Clocks {
        let clocks = self.session.clocks();
        Clocks {
            valid: clocks.valid.map(point),
            system: clocks.system.map(point),
            commit: clocks.commit.map(point),
        }
    }

    fn commit_at_or_before(&self, us: i64) -> Option<(u64, i64)> {
        let CommitSeq(seq) = self.session.pin().ok()?.commit_at_or_before(us);
        Some((seq, self.commit_instant(seq)?))
    }

    fn commit_instant(&self, seq: u64) -> Option<i64> {
        let commits = self.session.pin().ok()?.commits().ok()?;
        commits.iter().find(|c| c.seq == seq).map(|c| c.at)
    }

    fn last_commit(&self) -> Option<(u64, i64)> {
        let snapshot = self.session.pin().ok()?;
        Some((snapshot.commit().0, snapshot.commit_at()?))
    }
}
