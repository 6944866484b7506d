//! `asof run`: runs declared flows, says what they do, and leaves when it is told to.

use super::Manner;
use super::ingest::totals;
use super::rounds::Rounds;
use crate::args::{RunArgs, StoreAnd};
use crate::outcome::{Exit, Failure, Outcome};
use crate::progress::Progress;
use crate::render::escape::visible;
use crate::{interrupt, store};
use asofdb::flow::{FlowRun, FlowState, Runner, Trigger};
use asofdb::source::Until;
use asofdb::{IntakeReport, Store, count};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a run that waits looks for signals.
const LOOK: Duration = Duration::from_millis(50);
/// How often a run that has work says what it did.
const SAY: Duration = Duration::from_secs(10);

/// Runs flows.
pub fn run(args: &RunArgs, manner: Manner) -> Outcome {
    let places = StoreAnd::here(&args.places, 0)?;
    let ends = args.pace.once || args.pace.until_caught_up;
    interrupt::install();
    let store = store::upkeep(&places.store)?;
    let until = if ends { Until::CaughtUp } else { Until::Stopped };
    let variable: asofdb::flow::Variable = Arc::new(|name| std::env::var(name).ok());
    let mut runner = Runner::new(&store, &places.rest, &variable, until).map_err(|e| store::failure(&e))?;
    let mut rounds = Rounds::new(&args.rounds, manner)?;
    rounds.start(&store)?;
    let owner = store::listen(&store);
    let watch = interrupt::leave_at_second_signal();
    let mut turns = Turns::new(args, manner);
    let taken = turns.all(&store, &mut runner);
    drop((watch, owner));
    // What was stored before a failure is exported too.
    let exported = rounds.finish();
    turns.say_totals(&places.store)?;
    taken?;
    failed(&mut runner)?;
    drop(runner);
    exported.and(store::close(store))
}

/// How long files that were just written are waited for until they are at rest.
const SETTLE: Duration = Duration::from_secs(4);

/// The turns of all flows.
struct Turns<'a> {
    started: Instant,
    args: &'a RunArgs,
    manner: Manner,
    totals: BTreeMap<String, Total>,
}

/// What a flow did.
#[derive(Default)]
struct Total {
    report: IntakeReport,
    /// What was not said yet.
    unsaid: IntakeReport,
    said: Option<Instant>,
    lag: Option<u64>,
    due: Option<Instant>,
    was_down: bool,
    left: Vec<String>,
}

impl Turns<'_> {
    fn new(args: &RunArgs, manner: Manner) -> Turns<'_> {
        Turns { started: Instant::now(), args, manner, totals: BTreeMap::new() }
    }

    /// Turns until the run ends.
    fn all(&mut self, store: &Store, runner: &mut Runner) -> Outcome {
        loop {
            let mut more = false;
            runner.refresh(store).map_err(|e| store::failure(&e))?;
            for flow in runner.flows() {
                more |= self.turn(store, flow)?;
                if interrupt::count() > 0 {
                    return Ok(());
                }
            }
            let pace = &self.args.pace;
            let stopped = runner.flows().iter().all(|f| matches!(f.state(), FlowState::Stopped(_)));
            let settles = self.started.elapsed() < SETTLE && self.totals.values().any(|t| !t.left.is_empty());
            if pace.once || stopped || (pace.until_caught_up && !more && !settles) {
                return Ok(());
            }
            let run: Vec<String> = runner.flows().iter().map(|f| visible(f.name()).into_owned()).collect();
            // One that was dropped is due for ever.
            let dues = self.totals.iter().filter(|(name, _)| run.contains(name)).filter_map(|(_, t)| t.due);
            let until = dues.min().filter(|_| !more).unwrap_or_else(Instant::now);
            while Instant::now() < until {
                if interrupt::count() > 0 {
                    return Ok(());
                }
                std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
            }
        }
    }

    /// A turn of one flow; whether it has more.
    fn turn(&mut self, store: &Store, flow: &mut FlowRun) -> Outcome<bool> {
        let name = visible(flow.name()).into_owned();
        let total = self.totals.entry(name.clone()).or_default();
        if total.due.is_some_and(|due| Instant::now() < due) {
            return Ok(false);
        }
        let mut bar = Progress::new(!self.manner.quiet);
        let lag = &mut total.lag;
        let taken = flow.trigger(store, self.args.max_events.unwrap_or(u64::MAX), &mut |progress| {
            bar.show(progress);
            *lag = progress.lag;
            if interrupt::count() > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        bar.clear();
        let taken = taken.map_err(|e| store::failure(&e))?;
        let more = taken.as_ref().is_some_and(|t| t.more);
        let pause = self.args.pace.every.unwrap_or_else(|| flow.pause());
        total.due = Some(Instant::now() + if more { Duration::ZERO } else { pause });
        if let Some(trigger) = taken {
            total.took(&name, trigger, self.manner, self.args.pace.every.is_some());
        }
        // A run that ends says it at its end.
        if !(self.args.pace.once || self.args.pace.until_caught_up) {
            total.say_state(&name, flow.state(), self.manner);
        }
        Ok(more)
    }

    /// Everything that was taken, by flow.
    fn say_totals(&self, path: &std::path::Path) -> Outcome {
        if self.manner.json {
            let reports: serde_json::Map<String, serde_json::Value> = self
                .totals
                .iter()
                .map(|(name, t)| (name.clone(), serde_json::to_value(&t.report).unwrap_or_default()))
                .collect();
            return super::print_json(&serde_json::Value::Object(reports));
        }
        if self.manner.quiet {
            return Ok(());
        }
        let mut text = String::new();
        for (name, total) in &self.totals {
            let _ = writeln!(text, "{name}");
            totals(&total.report, path).lines().for_each(|line| {
                let _ = writeln!(text, "  {line}");
            });
        }
        super::print(&text)
    }
}

impl Total {
    /// Notes what a turn took, and says so now and then.
    fn took(&mut self, name: &str, trigger: Trigger, manner: Manner, always: bool) {
        let mut report = trigger.report;
        for notice in std::mem::take(&mut report.notices) {
            manner.say(&format!("note: {name}: {}", visible(&notice)));
        }
        if let Some(since) = trigger.back_since {
            let away = (store::now() - since).max(0) / 1_000_000;
            manner.say(&format!("note: {name}: the source is back after {away} s"));
            self.was_down = false;
        }
        if trigger.left != self.left {
            self.left = trigger.left;
            if let Some(first) = self.left.first() {
                let others = match self.left.len() {
                    1 => String::new(),
                    n => format!(" and {}", count::of(n - 1, "other")),
                };
                let first = visible(first);
                manner.say(&format!("note: {name}: {first}{others} may still be written to, left for later"));
            }
        }
        self.report.last_commit = report.last_commit.or(self.report.last_commit);
        self.report.commits += report.commits;
        self.report.add(report.clone());
        self.unsaid.last_commit = report.last_commit.or(self.unsaid.last_commit);
        self.unsaid.add(report);
        let due = self.said.is_none_or(|said| always || said.elapsed() >= SAY);
        if self.unsaid.delivered > 0 && due {
            let line = self.line(name);
            manner.say(&line);
            self.said = Some(Instant::now());
            self.unsaid = IntakeReport::default();
        }
    }

    /// `orders_cdc: 3 messages, 3 rows, commit 7, 0 behind`
    fn line(&self, name: &str) -> String {
        let IntakeReport { delivered, quarantined, last_commit, .. } = &self.unsaid;
        let mut line = format!(
            "{name}: {}, {}",
            count::of(*delivered, "message"),
            count::of(self.unsaid.row_events(), "row")
        );
        if *quarantined > 0 {
            let _ = write!(line, ", {quarantined} quarantined");
        }
        if let Some(commit) = last_commit {
            let _ = write!(line, ", commit {commit}");
        }
        if let Some(lag) = self.lag {
            let _ = write!(line, ", {lag} behind");
        }
        line
    }

    /// Says once that a source fails, or that a flow cannot go on.
    fn say_state(&mut self, name: &str, state: &FlowState, manner: Manner) {
        let (error, then) = match state {
            FlowState::Up => return,
            FlowState::Down { error, .. } => (error, "it is asked again"),
            FlowState::Stopped(error) => (error, "this flow stands still"),
        };
        if !std::mem::replace(&mut self.was_down, true) {
            manner.say(&format!("error: {name}: {}; {then}", visible(error.message())));
            error.hints().iter().for_each(|hint| manner.say(&format!("hint: {}", visible(hint))));
        }
    }
}

/// The failure of the first flow whose source failed last, or that stands still.
fn failed(runner: &mut Runner) -> Outcome {
    for flow in runner.flows() {
        let (error, exit) = match flow.state() {
            FlowState::Up => continue,
            FlowState::Down { error, .. } => (error, Exit::Source),
            FlowState::Stopped(error) => (error, Exit::Usage),
        };
        let mut failure = Failure::new(exit, format!("flow {}: {}", flow.name(), error.message()));
        failure.hints = error.hints().to_vec();
        return Err(failure);
    }
    Ok(())
}
