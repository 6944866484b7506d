//! The commands.

mod demo;
mod export;
mod generate;
mod ingest;
mod later;
mod pull;
mod quarantine;
mod redecode;
mod rounds;
mod run;
mod script;
mod shell;
mod sql;
mod tail;
mod upkeep;

use crate::args::{Cli, Command};
use crate::outcome::{Failure, Outcome};
use clap::CommandFactory;
use std::path::Path;

/// What holds for every command.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Say nothing but answers and errors.
    pub quiet: bool,
    /// Write for machines.
    pub json: bool,
}

impl Manner {
    /// Says something on stderr, unless it was asked not to.
    pub fn say(self, text: &str) {
        if !self.quiet {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }
}

/// Runs a command.
pub fn run(cli: Cli) -> Outcome {
    if let (Some(store), Some(_)) = (&cli.store, &cli.command) {
        return Err(store_before_command(store));
    }
    let manner = Manner { quiet: cli.quiet, json: cli.json };
    if let Some(memory) = cli.memory {
        crate::store::set_memory(memory);
    }
    match cli.command {
        None => match cli.store.or_else(crate::args::from_environment) {
            Some(store) => {
                is_no_slip(&store)?;
                shell::run(&store, manner)
            }
            None => Err(nothing_asked()),
        },
        Some(Command::Shell(args)) => shell::run(args.store.path()?, manner),
        Some(Command::Sql(args)) => sql::run(&args, manner),
        Some(Command::Demo(args)) => demo::run(&args, manner),
        Some(Command::Ingest(args)) => ingest::run(&args, manner),
        Some(Command::Run(args)) => run::run(&args, manner),
        Some(Command::Status(args)) => upkeep::status(&args, manner),
        Some(Command::Compact(args)) => upkeep::compact(&args, manner),
        Some(Command::Verify(args)) => upkeep::verify(&args, manner),
        Some(Command::Rebuild(args)) => upkeep::rebuild(&args, manner),
        Some(Command::AcceptGap(args)) => upkeep::accept_gap(&args, manner),
        Some(Command::Quarantine(args)) => quarantine::run(&args, manner),
        Some(Command::Completions(args)) => generate::completions(&args),
        Some(Command::Man(args)) => generate::man(&args, manner),
        Some(Command::Redecode(args)) => redecode::run(&args, manner),
        Some(Command::Tail(args)) => tail::run(&args, manner),
        Some(Command::Export(args)) => export::run(&args, manner),
        Some(command) => later::refuse(&command),
    }
}

/// Writes text to stdout.
fn print(text: &str) -> Outcome {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|e| Failure::io("cannot write", &e))
}

/// Writes JSON to stdout.
fn print_json(value: &serde_json::Value) -> Outcome {
    print(&format!("{value:#}\n"))
}

fn nothing_asked() -> Failure {
    Failure::usage("neither a command nor a store is named")
        .hint("asof demo            a first look, in seconds")
        .hint("asof STORE           opens the shell")
        .hint("asof --help          lists the commands")
}

/// A command takes its store behind its name.
fn store_before_command(store: &Path) -> Failure {
    Failure::usage(format!("'{}' stands before the command", store.display()))
        .hint("a store stands behind it: asof sql STORE \"SELECT ...\"; options may stand before or behind")
}

/// A word that is no directory may have been meant as a command.
fn is_no_slip(store: &Path) -> Outcome {
    let Some(word) = store.to_str().filter(|w| !store.exists() && !w.contains(['.', '/'])) else {
        return Ok(());
    };
    let command = Cli::command();
    let names = command.get_subcommands().map(|c| c.get_name());
    let failure = Failure::usage(format!("'{word}' is neither a command nor a store"));
    Err(match asofdb::near::nearest(word, names) {
        Some(near) => failure.hint(format!("did you mean asof {near}?")),
        None => failure.hint("asof --help lists the commands; asof ingest makes a store"),
    })
}
