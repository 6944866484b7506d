//! `asof demo`: builds the demo store, asks five questions, explains the answers.

use super::script::{self, Writing};
use super::{Manner, ingest, print};
use crate::args::{Cli, Command, DemoArgs};
use crate::demo::{EVENTS, Events, QUESTIONS, Question};
use crate::outcome::{Failure, Outcome};
use crate::render::{Mode, Options, Sink};
use crate::runner::Runner;
use crate::store::Input;
use crate::{interrupt, store, terminal};
use asofdb::count;
use clap::Parser;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The directory with the events, inside of the demo; what tells a demo from anything else.
const EVENTS_DIRECTORY: &str = "demo-events";

/// Builds, asks, explains.
pub fn run(args: &DemoArgs, manner: Manner) -> Outcome {
    interrupt::install();
    make_room(&args.dir)?;
    let dir = args.dir.display();
    let events = args.dir.join(EVENTS_DIRECTORY);
    let cannot = |e: std::io::Error| Failure::io(&format!("cannot write to {}", events.display()), &e);
    if let Some(parent) = args.dir.parent() {
        fs::create_dir_all(parent)
            .map_err(|e| Failure::io(&format!("cannot make {}", parent.display()), &e))?;
    }
    // A store is only ever made in an empty directory, so it comes before the events.
    drop(store::writer(&args.dir)?);
    fs::create_dir_all(&events).map_err(cannot)?;
    for file in &EVENTS {
        fs::write(events.join(file_name(file)), file.text).map_err(cannot)?;
    }
    manner.say(&format!("A power company, its tariffs and its bills, in the store {dir}:"));
    for file in &EVENTS {
        take(&args.dir, &events, file, manner)?;
    }
    let runner = Runner::new(store::session(&args.dir, &[], false)?)?;
    if manner.json {
        let answers = QUESTIONS.iter().map(|q| answer(&runner, q)).collect::<Outcome<Vec<_>>>()?;
        return print(&format!("[{}]\n", answers.join(",\n")));
    }
    for (number, question) in QUESTIONS.iter().enumerate() {
        ask(&runner, number + 1, question)?;
    }
    manner.say(&next(&args.dir));
    Ok(())
}

fn file_name(file: &Events) -> String {
    format!("{}.ndjson", file.name)
}

/// An old demo is taken away; anything else is left alone.
fn make_room(dir: &Path) -> Outcome {
    let occupied = match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_some(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
        Err(e) => return Err(Failure::io(&format!("cannot look into {}", dir.display()), &e)),
    };
    if !occupied {
        return Ok(());
    }
    if !dir.join(EVENTS_DIRECTORY).join(file_name(&EVENTS[0])).is_file() {
        return Err(Failure::usage(format!("{} is there already and is no demo", dir.display()))
            .hint("name another directory: asof demo DIR"));
    }
    fs::remove_dir_all(dir)
        .map_err(|e| Failure::io(&format!("cannot take the old demo {} away", dir.display()), &e))
}

fn take(store: &Path, events: &Path, file: &Events, manner: Manner) -> Outcome {
    let source = events.join(file_name(file)).display().to_string();
    let line = [
        "asof",
        "ingest",
        &store.display().to_string(),
        &source,
        "--table",
        file.table,
        "--key",
        "id",
        "--op",
        "op",
        "--valid",
        file.valid,
        "--system",
        file.system,
        "--columns",
        file.dropped,
    ]
    .map(str::to_owned);
    let Ok(Cli { command: Some(Command::Ingest(args)), .. }) = Cli::try_parse_from(&line) else {
        return Err(Failure::usage("the demo's own options are wrong"));
    };
    let report = ingest::take(
        store,
        &Input::Files(vec![source.clone()]),
        &ingest::options(&args)?,
        Manner { quiet: true, ..manner },
        &mut |_| Ok(()),
    )?;
    manner.say(&format!(
        "  {:<16} {}, commit {}: {}",
        file_name(file),
        count::of(report.accepted, "event"),
        report.last_commit.unwrap_or(0),
        file.about
    ));
    Ok(())
}

fn ask(runner: &Runner, number: usize, question: &Question) -> Outcome {
    let sql = question.sql.replace('\n', "\n   ");
    print(&format!("\n{number}. {}\n\n   {sql};\n\n", question.words))?;
    let options = Options { width: terminal::width(), ..Options::default() };
    let sink = || -> Sink { Box::new(std::io::BufWriter::new(std::io::stdout())) };
    let writing = Writing { mode: Mode::Table, options, sink: &sink };
    script::run(runner, question.sql, None, &writing, &mut |_| {})?;
    print(&format!("   {}\n", question.why))
}

/// Takes text to where it can be read again.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A question with its answer as a JSON object, in which numbers keep all their digits.
fn answer(runner: &Runner, question: &Question) -> Outcome<String> {
    let kept = Kept::default();
    let sink = || -> Sink { Box::new(kept.clone()) };
    let writing = Writing { mode: Mode::Json, options: Options::default(), sink: &sink };
    script::run(runner, question.sql, None, &writing, &mut |_| {})?;
    let rows = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = String::from_utf8_lossy(&rows);
    let [words, sql, why] = [question.words, question.sql, question.why].map(serde_json::Value::from);
    Ok(format!("{{\"question\":{words},\"sql\":{sql},\"rows\":{},\"why\":{why}}}", rows.trim()))
}

fn next(dir: &Path) -> String {
    let dir = dir.display();
    [
        format!("\nNow you:\n  asof {dir}                     opens the shell; then type"),
        "    \\tour                         the tour: the same store, step by step".to_owned(),
        "    \\timeline customers 1         what was held true of Ada, and when".to_owned(),
        "    \\history customers 2          every event of Ben".to_owned(),
        "    \\why customers 3 tariff       which event gave Cleo her tariff".to_owned(),
        "    \\at system 2026-03-12         travel; then SELECT * FROM customers; and \\at now".to_owned(),
        format!("  asof sql {dir} \"SELECT * FROM customers FOR VALID_TIME ALL FOR SYSTEM_TIME ALL\""),
        "  asof ingest STORE SOURCE...   takes in your own events: asof ingest --help".to_owned(),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_old_demo_is_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("d");
        make_room(&target).unwrap();
        fs::create_dir(&target).unwrap();
        make_room(&target).unwrap();
        fs::write(target.join("precious"), "x").unwrap();
        assert!(make_room(&target).unwrap_err().message.contains("is no demo"));
        assert!(target.join("precious").is_file());
        fs::create_dir(target.join(EVENTS_DIRECTORY)).unwrap();
        fs::write(target.join(EVENTS_DIRECTORY).join("customers.ndjson"), "").unwrap();
        make_room(&target).unwrap();
        assert!(!target.exists());
    }
}
