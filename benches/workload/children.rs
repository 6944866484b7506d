//! Phases as processes of their own: what one began does not weigh on the next.

use crate::Outcome;
use crate::measure::{self, Line};
use crate::plan::Plan;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// Tells the process that began this one what was found, a line of JSON each.
pub struct Teller;

impl Teller {
    fn tell(&self, said: &Json) -> Outcome<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{said}")?;
        Ok(out.flush()?)
    }

    /// A line of the table.
    pub fn line(&self, line: &Line) -> Outcome<()> {
        self.tell(&json!({"line": line.to_json()}))
    }

    /// A figure by name.
    pub fn value(&self, name: &str, is: f64) -> Outcome<()> {
        self.tell(&json!({"value": name, "is": is}))
    }

    /// A number of wrong answers.
    pub fn wrong(&self, wrong: usize) -> Outcome<()> {
        self.tell(&json!({"wrong": wrong}))
    }

    /// Runs a step, tells its line, and gives what it gave.
    pub fn step<T>(&self, step: &str, state: &str, f: impl FnOnce() -> Outcome<(T, String)>) -> Outcome<T> {
        let (value, line) = measure::step(step, state, f)?;
        self.line(&line)?;
        Ok(value)
    }
}

/// What a phase told.
#[derive(Debug, Default)]
pub struct Said {
    pub lines: Vec<Line>,
    pub values: BTreeMap<String, f64>,
    pub wrong: usize,
}

impl Said {
    fn hear(&mut self, text: &str) -> Outcome<()> {
        let said: Json = serde_json::from_str(text).map_err(|e| format!("a phase said {text:?}: {e}"))?;
        if let Some(line) = Line::from_json(&said["line"]) {
            self.lines.push(line);
        }
        if let (Some(name), Some(is)) = (said["value"].as_str(), said["is"].as_f64()) {
            self.values.insert(name.to_owned(), is);
        }
        self.wrong += said["wrong"].as_u64().unwrap_or(0) as usize;
        Ok(())
    }

    /// A figure that must have been told.
    pub fn value(&self, name: &str) -> Outcome<f64> {
        Ok(*self.values.get(name).ok_or_else(|| format!("the phase told no {name}"))?)
    }

    /// Prints the lines; the number of wrong answers.
    pub fn print(&self) -> Outcome<usize> {
        self.lines.iter().try_for_each(measure::print)?;
        Ok(self.wrong)
    }
}

/// A command behind the words that were asked for before every measured process.
pub fn through(plan: &Plan, program: impl Into<std::ffi::OsString>) -> Command {
    let program = program.into();
    match plan.through.split_first() {
        None => Command::new(program),
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    }
}

/// Adds what tells this program to run a phase.
pub fn as_phase<'c>(command: &'c mut Command, plan: &Plan, words: &[&str]) -> &'c mut Command {
    command.args(&plan.args).arg("--phase").args(words)
}

/// Begins a phase.
pub fn begin(plan: &Plan, words: &[&str], stdin: Stdio) -> Outcome<Child> {
    let mut command = through(plan, std::env::current_exe()?);
    as_phase(&mut command, plan, words);
    Ok(command.stdin(stdin).stdout(Stdio::piped()).spawn()?)
}

/// Hears a phase until it says no more, or `enough`.
pub fn hear(child: &mut Child, enough: impl Fn(&Said) -> bool) -> Outcome<Said> {
    let out = child.stdout.take().ok_or("a phase without an output")?;
    let mut said = Said::default();
    for line in BufReader::new(out).lines() {
        said.hear(&line?)?;
        if enough(&said) {
            break;
        }
    }
    Ok(said)
}

/// Runs a phase that reads `stdin` to its end.
pub fn run_with(plan: &Plan, words: &[&str], stdin: Stdio) -> Outcome<Said> {
    let mut child = begin(plan, words, stdin)?;
    let said = hear(&mut child, |_| false)?;
    let status = child.wait()?;
    if status.success() { Ok(said) } else { Err(format!("the phase {words:?} left with {status}").into()) }
}

/// Runs a phase to its end.
pub fn run(plan: &Plan, words: &[&str]) -> Outcome<Said> {
    run_with(plan, words, Stdio::null())
}
