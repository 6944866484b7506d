//! The table: phases one after the other, those of the peer between ours.

use crate::Outcome;
use crate::children::{Said, begin, hear, run};
use crate::data;
use crate::figures::digits;
use crate::intake::debezium_dir;
use crate::labels;
use crate::measure::{self, Line};
use crate::peer::{Peer, QUESTIONS};
use crate::plan::Plan;
use crate::ratios::Rounds;
use asofdb_storage::engine::EngineOptions;
use std::process::Stdio;

/// States of the store that are asked.
const STATES: [&str; 2] = ["as taken in", "compacted"];

/// What is going on.
struct Bench<'p> {
    plan: &'p Plan,
    peer: Option<Peer<'p>>,
    rounds: Rounds,
    wrong: usize,
    /// Bytes of the input, and bytes written by each phase.
    input: f64,
    written: Vec<(&'static str, f64)>,
    /// Bytes of runs that flushes and merges wrote.
    runs_written: [f64; 2],
}

/// Everything, in order; how many answers were wrong.
pub fn bench(plan: &Plan) -> Outcome<usize> {
    data::prepare(&plan.dir(), plan.messages(), "ndjson")?;
    let peer = Peer::find(plan)?;
    let beside = peer.as_ref().map_or("none".into(), |p| format!("DuckDB {}", p.version));
    println!(
        "{} messages, {} processors, rounds: {}, peer: {beside}\n",
        plan.messages(),
        std::thread::available_parallelism()?,
        plan.rounds
    );
    measure::print_head()?;
    let mut bench = Bench {
        plan,
        peer,
        rounds: Rounds::default(),
        wrong: 0,
        input: 0.0,
        written: Vec::new(),
        runs_written: [0.0; 2],
    };
    bench.intakes()?;
    if EngineOptions::default().index {
        let indexed = bench.phase(&["index"])?;
        bench.written.push(("index", indexed.value("written")?));
    }
    bench.ask("as taken in", 1)?;
    let compacted = bench.phase(&["compact"])?;
    bench.written.push(("compaction", compacted.value("written")?));
    bench.runs_written[0] += compacted.value("flushed")?;
    bench.runs_written[1] += compacted.value("merged")?;
    bench.rounds.note("bytes", compacted.value("bytes")?);
    bench.writes()?;
    bench.ask("compacted", plan.rounds)?;
    bench.labels()?;
    bench.phase(&["single"])?;
    bench.killed()?;
    data::clear(&plan.store())?;
    if plan.debezium() > 0 {
        data::prepare(&debezium_dir(plan), plan.debezium(), "debezium")?;
        bench.phase(&["debezium"])?;
    }
    bench.end()
}

impl Bench<'_> {
    /// Runs a phase and prints what it told.
    fn phase(&mut self, words: &[&str]) -> Outcome<Said> {
        let said = run(self.plan, words)?;
        self.wrong += said.print()?;
        Ok(said)
    }

    /// Ours and the peer's intake in turn.
    fn intakes(&mut self) -> Outcome<()> {
        for _ in 0..self.plan.rounds {
            let said = self.phase(&["intake"])?;
            self.rounds.note("intake", said.value("rate")?);
            self.input = said.value("input")?;
            self.written = vec![("intake", said.value("written")?)];
            self.runs_written = [said.value("flushed")?, said.value("merged")?];
            if let Some(peer) = &self.peer {
                let (line, [log, whole, bytes]) = peer.intake()?;
                measure::print(&line)?;
                self.rounds.note("peer log", log);
                self.rounds.note("peer whole", whole);
                self.rounds.note("peer bytes", bytes);
            }
        }
        Ok(())
    }

    /// All questions to one state of the store, and to the peer in turn.
    fn ask(&mut self, state: &str, rounds: usize) -> Outcome<()> {
        for question in QUESTIONS {
            let said = self.phase(&["first", question, state])?;
            self.rounds.note(format!("first {question}, {state}"), said.value("first")?);
        }
        for _ in 0..rounds {
            let said = self.phase(&["ask", state])?;
            for (name, value) in &said.values {
                self.rounds.note(format!("{name}, {state}"), *value);
            }
            self.ask_peer()?;
        }
        self.phase(&["check", state])?;
        Ok(())
    }

    fn ask_peer(&mut self) -> Outcome<()> {
        let Some(peer) = &self.peer else { return Ok(()) };
        let (lines, times, wrong) = peer.ask()?;
        lines.iter().try_for_each(measure::print)?;
        for (question, ms) in QUESTIONS.iter().zip(times) {
            self.rounds.note(format!("peer {question}"), ms);
        }
        let (line, ms, wrong_keys) = peer.keys()?;
        measure::print(&line)?;
        self.rounds.note("peer key", ms);
        let (line, ms, wrong_first) = peer.first("count")?;
        measure::print(&line)?;
        self.rounds.note("peer first count", ms);
        self.wrong += said_wrong("DuckDB", wrong + wrong_keys + wrong_first);
        Ok(())
    }

    /// What was written, in all, beside what came in.
    fn writes(&mut self) -> Outcome<()> {
        let all: f64 = self.written.iter().map(|(_, bytes)| bytes).sum();
        let stored = self.rounds.of("bytes").first().copied().unwrap_or(0.0);
        let n = self.plan.messages() as f64;
        let parts: Vec<String> =
            self.written.iter().map(|(name, bytes)| format!("{name} {}", digits(bytes / n))).collect();
        let figure = format!(
            "{} bytes an event ({}; of it runs by flushes {}, by merges {}): {} of the input, {} of what is stored",
            digits(all / n),
            parts.join(", "),
            digits(self.runs_written[0] / n),
            digits(self.runs_written[1] / n),
            digits(all / self.input),
            digits(all / stored)
        );
        measure::print(&Line::note("written", "up to the compacted", figure))
    }

    fn labels(&mut self) -> Outcome<()> {
        if self.plan.labels() == 0 {
            return Ok(());
        }
        run(self.plan, &["make labels"])?;
        let said = self.phase(&["labels"])?;
        self.rounds.note("labels", said.value("labels")?);
        if let Some(peer) = &self.peer {
            let (line, seconds, wrong) = peer.labels()?;
            measure::print(&line)?;
            self.rounds.note("peer labels", seconds);
            self.wrong += said_wrong("DuckDB, labels", wrong);
        }
        labels::clear(self.plan)
    }

    /// A process is killed with events in no run; another opens the store.
    fn killed(&mut self) -> Outcome<()> {
        let mut child = begin(self.plan, &["unflushed"], Stdio::null())?;
        let said = hear(&mut child, |said| said.values.contains_key("unflushed"))?;
        // SIGKILL: nothing is closed.
        child.kill()?;
        child.wait()?;
        let unflushed = said.value("unflushed")?;
        let mut opened = run(self.plan, &["opened"])?;
        for line in &mut opened.lines {
            line.state = format!("{unflushed:.0} events in no run");
        }
        self.wrong += opened.print()?;
        Ok(())
    }

    fn end(self) -> Outcome<usize> {
        if let Some(peer) = &self.peer {
            self.rounds.print(
                "intake",
                &[
                    ("messages/s, with index; its log only", "intake", "peer log", true, Some(1.0)),
                    (
                        "messages/s, with index; its log and current state",
                        "intake",
                        "peer whole",
                        true,
                        Some(1.0),
                    ),
                    ("bytes, all in", "bytes", "peer bytes", false, None),
                ],
            )?;
            for state in STATES {
                let names = QUESTIONS
                    .map(|q| (format!("AS OF {q}, warm, ms"), format!("{q}, {state}"), format!("peer {q}")));
                let first = format!("first count, {state}");
                let (key, sql) = (format!("key, {state}"), format!("key by SQL, {state}"));
                let mut all: Vec<_> =
                    names.iter().map(|(what, o, p)| (&**what, &**o, &**p, false, Some(9.0))).collect();
                all.push(("AS OF count, first of a process, ms", &first, "peer first count", false, None));
                all.push(("key AS OF, library; its SQL, ms", &key, "peer key", false, Some(50.0)));
                all.push(("key AS OF, SQL, ms", &sql, "peer key", false, None));
                if state == "compacted" {
                    all.push(("point-in-time join, s", "labels", "peer labels", false, None));
                }
                self.rounds.print(state, &all)?;
            }
            peer.end()?;
        }
        Ok(self.wrong)
    }
}

/// Says that answers are wrong, if some are; how many.
fn said_wrong(who: &str, wrong: usize) -> usize {
    if wrong > 0 {
        eprintln!("wrong, {who}: {wrong} answers");
    }
    wrong
}
