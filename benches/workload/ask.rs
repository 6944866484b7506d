//! Phases that ask.

use crate::Outcome;
use crate::children::{Teller, as_phase, hear};
use crate::data;
use crate::figures::{digits, millis, percentile};
use crate::measure::{Line, summary};
use crate::plan::Plan;
use crate::probes::Probes;
use crate::questions::{self, Asker};
use asofdb::Store;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Askings of a question whose median is its time.
const ASKINGS: usize = 5;
/// Keys that are looked up by SQL.
const SQL_KEYS: usize = 200;

/// The right answers of the workload.
fn probes(plan: &Plan) -> Outcome<Probes> {
    Probes::read(&plan.dir().join("probes.ndjson"))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The timed questions in a process that has asked each before, and look-ups of keys.
pub fn warm(plan: &Plan, state: &str, teller: &Teller) -> Outcome<()> {
    let (store, probes) = (Store::open_read(plan.store())?, probes(plan)?);
    let asker = Asker::new(&store)?;
    for (name, sql) in questions::timed(&probes.bounds_for_timing()) {
        teller.step(&format!("AS OF {name}"), state, || {
            let times = (0..=ASKINGS).map(|_| asker.time(&sql)).collect::<Outcome<Vec<_>>>()?;
            let middle = percentile(&times[1..], 50);
            teller.value(name, ms(middle))?;
            Ok(((), format!("{} ms warm, {} ms before", millis(middle), millis(times[0]))))
        })?;
    }
    let keys = |step: &str, name: &str, ask: &dyn Fn() -> Outcome<Vec<Duration>>| {
        teller.step(step, state, || {
            let times = ask()?;
            teller.value(name, ms(percentile(&times, 50)))?;
            Ok(((), summary(&times)))
        })
    };
    keys("key look-up", "key", &|| asker.look_up(&probes))?;
    keys("key look-up, all columns", "whole row", &|| asker.look_up_rows(&probes))?;
    keys("key look-up, SQL", "key by SQL", &|| asker.look_up_by_sql(&probes, SQL_KEYS))
}

/// Compares every answer of the workload that is known.
pub fn check(plan: &Plan, state: &str, teller: &Teller) -> Outcome<()> {
    check_store(&plan.store(), &plan.dir().join("probes.ndjson"), state, teller)
}

/// Compares every answer of a file of them.
pub fn check_store(store: &Path, probes: &Path, state: &str, teller: &Teller) -> Outcome<()> {
    let (store, probes) = (Store::open_read(store)?, Probes::read(probes)?);
    let asker = Asker::new(&store)?;
    let wrong = teller.step("check", state, || {
        let faults = asker.check(&probes)?;
        faults.iter().for_each(|f| eprintln!("wrong, {state}: {f}"));
        Ok((faults.len(), format!("{} keys, {} whole tables", probes.keys.len(), probes.tables.len())))
    })?;
    teller.wrong(wrong)
}

/// One question in a new process, with the files of the store advised out of the page cache.
pub fn first(plan: &Plan, name: &str, state: &str, teller: &Teller) -> Outcome<()> {
    let cold = data::cool(&plan.store())?;
    let mut command = Command::new(std::env::current_exe()?);
    let from = Instant::now();
    let mut child = as_phase(&mut command, plan, &["question", name]).stdout(Stdio::piped()).spawn()?;
    let said = hear(&mut child, |_| false)?;
    let status = child.wait()?;
    let whole = from.elapsed();
    if !status.success() {
        return Err(format!("the question {name} left with {status}").into());
    }
    let cache = if cold { "page cache advised away" } else { "page cache as it was" };
    let figure = format!(
        "{} ms from opening to the last row, {} ms with the process; {cache}",
        digits(said.value("first")?),
        millis(whole)
    );
    for line in &said.lines {
        let step = format!("AS OF {name}, first of a process");
        teller.line(&Line { step, state: state.into(), figure: figure.clone(), cost: line.cost })?;
    }
    teller.value("first", said.value("first")?)
}

/// Opens the store and asks one question.
pub fn question(plan: &Plan, name: &str, teller: &Teller) -> Outcome<()> {
    let at = probes(plan)?.bounds_for_timing();
    let all = questions::timed(&at);
    let (_, sql) = all.iter().find(|(n, _)| *n == name).ok_or_else(|| format!("no question {name}"))?;
    teller.step(name, "", || {
        let from = Instant::now();
        let asker = Asker::new(&Store::open_read(plan.store())?)?;
        asker.time(sql)?;
        teller.value("first", ms(from.elapsed()))?;
        Ok(((), String::new()))
    })
}

/// Opens the store of a process that was killed, as its writer, and asks it.
pub fn opened(plan: &Plan, teller: &Teller) -> Outcome<()> {
    let probes = probes(plan)?;
    teller.step("open after kill -9", "", || {
        let from = Instant::now();
        let store = Store::open(plan.store())?;
        let open = from.elapsed();
        let (asker, events) = (Asker::new(&store)?, store.engine().status()?.events);
        let from = Instant::now();
        asker.look_up_by_sql(&probes, 1)?;
        let key = from.elapsed();
        teller.value("events", events as f64)?;
        Ok(((), format!("{} ms, then a key {} ms", millis(open), millis(key))))
    })
}
