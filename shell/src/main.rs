//! `asof`: the command of asofdb.

mod args;
mod backend;
mod commands;
mod demo;
#[cfg(test)]
mod docs_tests;
mod interrupt;
mod log;
mod outcome;
mod progress;
mod render;
mod repl;
mod runner;
mod spill;
mod store;
mod terminal;
#[cfg(test)]
mod testing;
mod text;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// A panic of a query is told as an error by the runner; any other keeps the usual words.
fn tell_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current();
        if thread.name().is_none_or(|name| name != runner::QUERY_THREAD) {
            usual(info);
        }
    }));
}

fn main() -> ExitCode {
    tell_panics();
    let done = commands::run(args::Cli::parse());
    spill::end();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.closed_pipe => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = std::io::stderr().write_all(failure.text(repl::colour()).as_bytes());
            ExitCode::from(failure.exit as u8)
        }
    }
}
