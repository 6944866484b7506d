//! Phases that write: intake of every kind, the index, compaction.

use crate::Outcome;
use crate::children::Teller;
use crate::data;
use crate::measure::{Line, summary, written_bytes};
use crate::plan::{BATCH, Plan};
use asofdb::intake::{FileMessages, IntakeReport, Sink, run};
use asofdb::{IntakeOptions, Store};
use asofdb_storage::engine::{
    Catalog, CommitInfo, CommitRequest, Engine, EngineOptions, Error, OpenMode, StoredEvent,
};
use asofdb_storage::id::{OriginId, StreamId, TableId};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the keyed index may take.
const INDEX_WAIT: Duration = Duration::from_secs(600);
/// Commits of one event that are timed.
const SINGLE_COMMITS: usize = 100;
/// Events that stand in the log and in no run when the process is killed: not enough for a run.
const UNFLUSHED: usize = BATCH / 10 * 9;

/// A store whose commits are timed.
struct Timed {
    engine: Engine,
    commits: Mutex<Vec<Duration>>,
}

impl Sink for Timed {
    fn catalog(&self) -> Arc<Catalog> {
        Sink::catalog(&self.engine)
    }

    fn commit_at(&self) -> Option<i64> {
        Sink::commit_at(&self.engine)
    }

    fn commit(&self, request: CommitRequest) -> Result<CommitInfo, Error> {
        let from = Instant::now();
        let done = self.engine.commit(request);
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).push(from.elapsed());
        done
    }

    fn key_events(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Vec<StoredEvent>>, Error> {
        Sink::key_events(&self.engine, table, keys)
    }

    fn each_event(
        &self,
        table: TableId,
        stream: StreamId,
        take: &mut dyn FnMut((OriginId, u64, u32), i64),
    ) -> Result<(), Error> {
        Sink::each_event(&self.engine, table, stream, take)
    }

    fn operation_ids(&self, table: TableId) -> Result<HashMap<Vec<u8>, u64>, Error> {
        Sink::operation_ids(&self.engine, table)
    }
}

/// What an intake did: its report, its time from opening to closing the store, and that of each commit.
pub struct Taken {
    pub report: IntakeReport,
    pub wall: Duration,
    pub commits: Vec<Duration>,
    /// Bytes of runs that flushes and merges wrote before the store was closed.
    pub runs_written: [u64; 2],
}

impl Taken {
    /// Messages a second; an error unless exactly `expected` were taken.
    pub fn rate(&self, expected: u64) -> Outcome<f64> {
        match self.report.accepted == expected {
            true => Ok(expected as f64 / self.wall.as_secs_f64()),
            false => Err(format!("{expected} messages went in, and the store took {}", self.report).into()),
        }
    }
}

/// Takes inputs into a store, which is made if it is not there, and closes it.
pub fn take(
    store: &Path,
    inputs: &[&Path],
    stdin: Option<Box<dyn Read + Send>>,
    options: &IntakeOptions,
) -> Outcome<Taken> {
    let from = Instant::now();
    let engine = Engine::open(store, OpenMode::Create, EngineOptions::default())?;
    let (report, commits) = take_into(engine.clone(), inputs, stdin, options)?;
    let status = engine.status()?;
    drop(engine);
    let runs_written = [status.flushed_bytes, status.merged_bytes];
    Ok(Taken { report, wall: from.elapsed(), commits, runs_written })
}

fn take_into(
    engine: Engine,
    inputs: &[&Path],
    stdin: Option<Box<dyn Read + Send>>,
    options: &IntakeOptions,
) -> Outcome<(IntakeReport, Vec<Duration>)> {
    let sink = Timed { engine, commits: Mutex::default() };
    let inputs: Vec<String> = inputs.iter().map(|p| p.display().to_string()).collect();
    let mut messages = FileMessages::open(&inputs, options, stdin, &Sink::catalog(&sink))?;
    let report = run(&sink, &mut messages, options, &mut |_| ControlFlow::Continue(()))?;
    Ok((report, sink.commits.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// The intake of the workload.
pub fn workload(plan: &Plan, teller: &Teller) -> Outcome<()> {
    let (file, store) = (plan.dir().join("messages.ndjson"), plan.store());
    data::clear(&store)?;
    let taken = teller.step("intake, NDJSON", "", || {
        let taken = take(&store, &[&file], None, &plan.options()?)?;
        let rate = taken.rate(plan.messages())?;
        teller.value("rate", rate)?;
        Ok((taken, format!("{rate:.0} messages/s, closed")))
    })?;
    teller.line(&Line::note("commit", &format!("of {BATCH}"), summary(&taken.commits)))?;
    teller.value("written", written_bytes() as f64)?;
    teller.value("flushed", taken.runs_written[0] as f64)?;
    teller.value("merged", taken.runs_written[1] as f64)?;
    teller.value("input", std::fs::metadata(&file)?.len() as f64)
}

/// Waits until the idle worker has brought the keyed index up to the runs.
pub fn index(plan: &Plan, teller: &Teller) -> Outcome<()> {
    let store = Store::open(plan.store())?;
    teller.step("index", "", || {
        let from = Instant::now();
        while from.elapsed() < INDEX_WAIT {
            if store.engine().status()?.tables.iter().all(|t| t.indexed > 0) {
                return Ok(((), "up to the runs".into()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err("the worker has not brought the index up".into())
    })?;
    teller.value("written", written_bytes() as f64)
}

/// Compacts, and tells the sizes before and after.
pub fn compact(plan: &Plan, teller: &Teller) -> Outcome<()> {
    let store = Store::open(plan.store())?;
    sizes(&store, plan.messages(), "as taken in", teller)?;
    teller.step("compact", "", || Ok(((), format!("{} merges", store.engine().compact()?))))?;
    teller.value("written", written_bytes() as f64)?;
    let status = store.engine().status()?;
    teller.value("flushed", status.flushed_bytes as f64)?;
    teller.value("merged", status.merged_bytes as f64)?;
    drop(store);
    sizes(&Store::open_read(plan.store())?, plan.messages(), "compacted", teller)
}

fn sizes(store: &Store, messages: u64, state: &str, teller: &Teller) -> Outcome<()> {
    let status = store.engine().status()?;
    let all = status.log_bytes + status.run_bytes + status.index_bytes;
    let each = |bytes: u64| format!("{:.1}", bytes as f64 / messages as f64);
    let figure = format!(
        "{} bytes an event: {} log, {} runs (the history alone), {} index",
        each(all),
        each(status.log_bytes),
        each(status.run_bytes),
        each(status.index_bytes)
    );
    teller.line(&Line::note("size", state, figure))?;
    teller.value("bytes", all as f64)
}

/// Where the messages of Debezium are.
pub fn debezium_dir(plan: &Plan) -> PathBuf {
    plan.dir().join(format!("debezium-{}", plan.debezium()))
}

/// The intake of Debezium JSON, and its answers.
pub fn debezium(plan: &Plan, teller: &Teller) -> Outcome<()> {
    let (dir, store) = (debezium_dir(plan), plan.dir().join("debezium.asof"));
    data::clear(&store)?;
    let options = IntakeOptions {
        format: Some("debezium-json".into()),
        op: None,
        system: Some("_commit_time".parse()?),
        ..plan.options()?
    };
    let n = plan.debezium();
    teller.step("intake, Debezium JSON", &format!("{n} messages"), || {
        let taken = take(&store, &[&dir.join("debezium.ndjson")], None, &options)?;
        Ok(((), format!("{:.0} messages/s, closed", taken.rate(n)?)))
    })?;
    crate::ask::check_store(&store, &dir.join("probes.ndjson"), "Debezium JSON", teller)?;
    data::clear(&store)
}

/// The first lines of the workload as a file of their own.
fn head(plan: &Plan, name: &str, count: usize) -> Outcome<(PathBuf, u64)> {
    let head = plan.dir().join(name);
    let lines = BufReader::new(std::fs::File::open(plan.dir().join("messages.ndjson"))?).lines();
    let mut out = std::io::BufWriter::new(std::fs::File::create(&head)?);
    let mut written = 0;
    for line in lines.take(count) {
        writeln!(out, "{}", line?)?;
        written += 1;
    }
    out.flush()?;
    Ok((head, written))
}

/// Commits of one event each, into an empty store.
pub fn single(plan: &Plan, teller: &Teller) -> Outcome<()> {
    let store = plan.dir().join("single.asof");
    data::clear(&store)?;
    let (head, count) = head(plan, "single.ndjson", SINGLE_COMMITS)?;
    let options = IntakeOptions { batch: Some(1), ..plan.options()? };
    let taken = take(&store, &[&head], None, &options)?;
    taken.rate(count)?;
    [&store, &head].into_iter().try_for_each(|p| data::clear(p))?;
    teller.line(&Line::note("commit", "of one event", summary(&taken.commits)))
}

/// Commits events that fit into memory, says so, and waits for its end.
pub fn unflushed(plan: &Plan, teller: &Teller) -> Outcome<()> {
    let (head, count) = head(plan, "unflushed.ndjson", UNFLUSHED)?;
    let engine = Engine::open(&plan.store(), OpenMode::Write, EngineOptions::default())?;
    let (report, _) = take_into(engine.clone(), &[&head], None, &plan.options()?)?;
    if report.accepted != count {
        return Err(format!("{count} messages went in, and the store took {report}").into());
    }
    data::clear(&head)?;
    teller.value("unflushed", engine.status()?.memory_events as f64)?;
    std::thread::sleep(INDEX_WAIT);
    Err("nobody has killed this process".into())
}
