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
mod store;
mod terminal;
#[cfg(test)]
mod testing;
mod text;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(args::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.closed_pipe => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = std::io::stderr().write_all(failure.text(repl::colour()).as_bytes());
            ExitCode::from(failure.exit as u8)
        }
    }
}
