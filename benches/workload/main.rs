//! The workload: takes N messages in, asks, checks every answer that the generator knows, and does the
//! same in a peer beside it.
//!
//! `cargo bench --bench workload -- N [DIR]` prints one table; a wrong answer ends it with code 1. DIR
//! holds `messages.ndjson` and `probes.ndjson`; what is missing is generated from `workload/asofgen.rs` in
//! the directory that `ASOF_SHARED` names. Every measured phase is a process of its own.

mod ask;
mod children;
mod data;
mod figures;
mod intake;
#[cfg(feature = "kafka")]
mod kafka;
mod labels;
mod measure;
mod peer;
mod pipe;
mod plan;
mod probes;
mod questions;
mod ratios;
mod shapes;
mod table;

use children::Teller;
use plan::{Mode, Plan, USAGE};
use std::process::ExitCode;

/// What every step may end with.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if args.is_empty() {
        println!("nothing to do; say how many messages:\n{USAGE}");
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

/// How many answers were wrong.
fn bench(plan: &Plan) -> Outcome<usize> {
    match (plan.mode, plan.phase.is_empty()) {
        (_, false) => phase(plan).map(|()| 0),
        (Mode::Table, true) => table::bench(plan),
        (Mode::Pipe, true) => pipe::bench(plan),
        (Mode::Shapes, true) => shapes::bench(plan),
        #[cfg(feature = "kafka")]
        (Mode::Kafka, true) => kafka::bench(plan),
        #[cfg(not(feature = "kafka"))]
        (Mode::Kafka, true) => Err("this build has no Kafka: cargo bench --features kafka".into()),
    }
}

/// A step in a process of its own: tells the process that began it what it found.
fn phase(plan: &Plan) -> Outcome<()> {
    let teller = Teller;
    let words: Vec<&str> = plan.phase.iter().map(String::as_str).collect();
    match words[..] {
        ["intake"] => intake::workload(plan, &teller),
        ["index"] => intake::index(plan, &teller),
        ["compact"] => intake::compact(plan, &teller),
        ["debezium"] => intake::debezium(plan, &teller),
        ["single"] => intake::single(plan, &teller),
        ["unflushed"] => intake::unflushed(plan, &teller),
        ["ask", state] => ask::warm(plan, state, &teller),
        ["check", state] => ask::check(plan, state, &teller),
        ["first", name, state] => ask::first(plan, name, state, &teller),
        ["question", name] => ask::question(plan, name, &teller),
        ["opened"] => ask::opened(plan, &teller),
        ["make labels"] => labels::make(plan),
        ["labels"] => labels::join(plan, &teller),
        ["pipe", n] => pipe::intake(plan, n, &teller),
        ["shape", name] => shapes::shape(plan, name, &teller),
        #[cfg(feature = "kafka")]
        ["kafka produce", topic] => kafka::produce(plan, topic, &teller),
        #[cfg(feature = "kafka")]
        ["kafka broker", topic] => kafka::broker(plan, topic, &teller),
        #[cfg(feature = "kafka")]
        ["kafka intake", topic] => kafka::intake(plan, topic, &teller),
        #[cfg(feature = "kafka")]
        ["kafka check", topic] => kafka::check(plan, topic, &teller),
        _ => Err(format!("no phase is called {words:?}").into()),
    }
}
