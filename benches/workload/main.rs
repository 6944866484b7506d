//! The workload: takes N messages in, asks, and checks every answer that the generator knows.
//!
//! `cargo bench --bench workload -- N [DIR] [--columns SPEC]` prints one table; a wrong answer ends it
//! with code 1. DIR holds `messages.ndjson` and `probes.ndjson`; what is missing is generated from
//! `workload/asofgen.rs` in the directory that `ASOF_SHARED` names.

mod data;
mod measure;
mod probes;
mod questions;

use asofdb::intake::{FileMessages, Sink, run};
use asofdb::options::Absent;
use asofdb::{IntakeOptions, Store};
use asofdb_storage::engine::{
    Catalog, CommitInfo, CommitRequest, Engine, EngineOptions, Error, OpenMode, StoredEvent,
};
use asofdb_storage::id::{OriginId, StreamId, TableId};
use measure::{Sheet, millis, percentile, summary};
use probes::Probes;
use questions::Asker;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What every step may end with.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Messages of a commit.
const BATCH: usize = 400_000;
/// How long the keyed index may take.
const INDEX_WAIT: Duration = Duration::from_secs(600);
/// Commits of one event that are timed.
const SINGLE_COMMITS: usize = 100;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if args.is_empty() {
        println!("nothing to do; say how many messages: cargo bench --bench workload -- 1000000 [DIR]");
        return ExitCode::SUCCESS;
    }
    match Plan::read(&args).and_then(|plan| bench(&plan)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => {
            eprintln!("{wrong} answers are wrong");
            ExitCode::FAILURE
        }
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

/// What was asked for.
struct Plan {
    messages: u64,
    dir: PathBuf,
    options: IntakeOptions,
}

impl Plan {
    fn read(args: &[String]) -> Outcome<Plan> {
        let mut args = args.iter();
        let messages = args.next().ok_or("how many messages?")?.replace('_', "").parse()?;
        let (mut dir, mut columns) = (None, None);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--columns" => columns = Some(args.next().ok_or("--columns needs a list")?.parse()?),
                _ => dir = Some(PathBuf::from(arg)),
            }
        }
        let default = || Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("workload-{messages}"));
        let options = IntakeOptions {
            format: Some("json".into()),
            table: Some("w".into()),
            keys: vec!["key1,key2,key3".parse()?],
            op: Some("o".into()),
            valid: Some("valid_time:us".parse()?),
            system: Some("system_time:us".parse()?),
            absent: Some(Absent::Unchanged),
            columns,
            batch: Some(BATCH),
            strict: true,
            ..IntakeOptions::default()
        };
        Ok(Plan { messages, dir: dir.unwrap_or_else(default), options })
    }
}

/// A store whose commits are timed.
struct Timed {
    engine: Engine,
    commits: Mutex<Vec<Duration>>,
}

impl Timed {
    fn new(engine: Engine) -> Timed {
        Timed { engine, commits: Mutex::default() }
    }

    fn commits(self) -> Vec<Duration> {
        self.commits.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
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

/// Takes a file into a store; how long each commit took.
fn take(engine: Engine, file: &Path, options: &IntakeOptions, expected: u64) -> Outcome<Vec<Duration>> {
    let sink = Timed::new(engine);
    let inputs = [file.display().to_string()];
    let mut messages = FileMessages::open(&inputs, options, None, &Sink::catalog(&sink))?;
    let report = run(&sink, &mut messages, options, &mut |_| ControlFlow::Continue(()))?;
    if report.accepted != expected {
        return Err(format!("{expected} messages went in, and the store took {report}").into());
    }
    Ok(sink.commits())
}

/// Everything, in order; how many answers were wrong.
fn bench(plan: &Plan) -> Outcome<usize> {
    data::prepare(&plan.dir, plan.messages)?;
    let probes = Probes::read(&plan.dir.join("probes.ndjson"))?;
    let place = plan.dir.join("bench.asof");
    let single = plan.dir.join("single.asof");
    [&place, &single].into_iter().try_for_each(|p| data::clear(p))?;
    let mut sheet = Sheet::default();
    intake(plan, &place, &mut sheet)?;
    let mut wrong = 0;
    let opened = sheet.step("open", "", || Ok((Store::open(&place)?, String::new())))?;
    if EngineOptions::default().index {
        sheet.step("index", "", || index(&opened))?;
    }
    let asker = Asker::new(&opened)?;
    wrong += ask(&asker, &probes, "as taken in", &mut sheet)?;
    sheet.step("compact", "", || Ok(((), format!("{} merges", opened.engine().compact()?))))?;
    sizes(&opened, plan.messages, &mut sheet)?;
    drop((asker, opened));
    let opened = sheet.step("open", "compacted", || Ok((Store::open(&place)?, String::new())))?;
    let asker = Asker::new(&opened)?;
    wrong += ask(&asker, &probes, "compacted", &mut sheet)?;
    drop((asker, opened));
    single_commits(plan, &single, &mut sheet)?;
    sheet.print(plan.messages)?;
    [&place, &single].into_iter().try_for_each(|p| data::clear(p))?;
    Ok(wrong)
}

fn intake(plan: &Plan, place: &Path, sheet: &mut Sheet) -> Outcome<()> {
    let file = plan.dir.join("messages.ndjson");
    let commits = sheet.step("intake", "", || {
        let from = Instant::now();
        let engine = Engine::open(place, OpenMode::Create, EngineOptions::default())?;
        let commits = take(engine, &file, &plan.options, plan.messages)?;
        let rate = plan.messages as f64 / from.elapsed().as_secs_f64();
        Ok((commits, format!("{rate:.0} messages/s, closed")))
    })?;
    sheet.note("commit", &format!("of {BATCH}"), &summary(&commits));
    Ok(())
}

/// Waits until the idle worker has brought the keyed index up to the runs.
fn index(store: &Store) -> Outcome<((), String)> {
    let from = Instant::now();
    while from.elapsed() < INDEX_WAIT {
        if store.engine().status()?.tables.iter().all(|t| t.indexed > 0) {
            return Ok(((), "up to the runs".into()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err("the worker has not brought the index up".into())
}

fn single_commits(plan: &Plan, place: &Path, sheet: &mut Sheet) -> Outcome<()> {
    let head = plan.dir.join("head.ndjson");
    let lines = BufReader::new(std::fs::File::open(plan.dir.join("messages.ndjson"))?).lines();
    let mut out = std::fs::File::create(&head)?;
    let mut count = 0;
    for line in lines.take(SINGLE_COMMITS) {
        writeln!(out, "{}", line?)?;
        count += 1;
    }
    let engine = Engine::open(place, OpenMode::Create, EngineOptions::default())?;
    let options = IntakeOptions { batch: Some(1), ..plan.options.clone() };
    let commits = take(engine, &head, &options, count)?;
    std::fs::remove_file(&head)?;
    sheet.note("commit", "of one event", &summary(&commits));
    Ok(())
}

/// The timed questions, and then all that can be checked; how many answers were wrong.
fn ask(asker: &Asker, probes: &Probes, state: &str, sheet: &mut Sheet) -> Outcome<usize> {
    let at = probes.bounds_for_timing();
    for (name, sql) in questions::timed(&at) {
        sheet.step(name, state, || {
            let times = (0..6).map(|_| asker.time(&sql)).collect::<Outcome<Vec<_>>>()?;
            let warm = percentile(&times[1..], 50);
            Ok(((), format!("{} ms, the first {} ms", millis(warm), millis(times[0]))))
        })?;
    }
    sheet.step("key lookup", state, || Ok(((), summary(&asker.look_up(probes)?))))?;
    sheet.step("key lookup, SQL", state, || Ok(((), summary(&asker.look_up_by_sql(probes, 100)?))))?;
    sheet.step("check", state, || {
        let faults = asker.check(probes)?;
        faults.iter().for_each(|f| eprintln!("wrong, {state}: {f}"));
        Ok((faults.len(), format!("{} keys, {} whole tables", probes.keys.len(), probes.tables.len())))
    })
}

fn sizes(store: &Store, messages: u64, sheet: &mut Sheet) -> Outcome<()> {
    let status = store.engine().status()?;
    let each = |bytes: u64| format!("{:.1} bytes an event", bytes as f64 / messages as f64);
    sheet.note("size", "log", &each(status.log_bytes));
    sheet.note("size", "runs", &each(status.run_bytes));
    sheet.note("size", "index", &each(status.index_bytes));
    sheet.note("size", "all", &each(status.log_bytes + status.run_bytes + status.index_bytes));
    Ok(())
}
