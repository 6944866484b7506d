//! The command line.

mod intake;
mod kafka;
mod pull;
mod question;
mod run;
mod store;
mod upkeep;

pub use intake::{IngestArgs, SchemaArgs};
pub use kafka::KafkaArgs;
pub use pull::PullArgs;
pub use question::{ShellArgs, SqlArgs, duration};
pub use run::{RoundsArgs, RunArgs};
pub use store::{StoreAnd, StoreArg, from_environment, is_store};
pub use upkeep::{
    AcceptGapArgs, CompactArgs, ExportArgs, Layout, QuarantineArgs, QuarantineCommand, RebuildArgs,
    StatusArgs, TailArgs, VerifyArgs,
};

use asofdb::MemoryBudget;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  asof demo                                          a first look, offline, in seconds
  asof ingest shop.asof cdc/ --key id                take in change events
  asof shop.asof                                     ask in the shell
  asof sql shop.asof \"SELECT * FROM orders FOR VALID_TIME AS OF '2026-11-01'\"

Exit codes: 0 done, 1 a statement failed or contents differ, 2 wrong usage, 3 store busy,
4 store damaged, 5 source failed, 124 timeout, 130 cancelled.
Environment: ASOF_STORE (the store where none is named), ASOF_LOG (info, debug), ASOF_PAGER,
ASOF_HISTORY (the history of the shell), NO_COLOR.";

/// A bitemporal change store: what was it on Tuesday, and what did we think it was then?
#[derive(Debug, Parser)]
#[command(name = "asof", version, after_help = EXAMPLES)]
#[command(override_usage = "asof [OPTIONS] [STORE]\n       asof [OPTIONS] <COMMAND>")]
pub struct Cli {
    /// The command; without one the shell opens.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The store to open in the shell.
    pub store: Option<PathBuf>,
    /// Say nothing but answers and errors.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Write for machines: JSON on stdout.
    #[arg(long, global = true)]
    pub json: bool,
    /// Memory for the store and for questions to it, such as 512MB; 1GiB if left out
    #[arg(long, global = true, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<MemoryBudget>,
}

/// A size of memory, with the hint that belongs to a wrong one.
fn memory(text: &str) -> Result<MemoryBudget, String> {
    text.parse().map_err(|e: asofdb::Error| format!("{}; {}", e.message(), e.hints().join("; ")))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a small store, ask it five AS OF questions and explain them
    Demo(DemoArgs),
    /// Take in change events from files, directories, standard input or topics of Kafka
    Ingest(Box<IngestArgs>),
    /// Run declared flows until told to stop
    Run(RunArgs),
    /// Run SQL statements; answers on stdout, everything else on stderr
    Sql(SqlArgs),
    /// Open the shell (also: asof STORE)
    Shell(ShellArgs),
    /// Show tables, rows, files, sources, late and quarantined events
    Status(StatusArgs),
    /// Merge runs and give back space; costs nothing when there is nothing to do
    Compact(CompactArgs),
    /// Check the store against its checksums and its hash chain
    Verify(VerifyArgs),
    /// Make runs anew from the log
    Rebuild(RebuildArgs),
    /// Look at messages that could not be taken, and try them again
    Quarantine(QuarantineArgs),
    /// Decode the messages that --keep-raw kept again, into another table with other options
    #[command(override_usage = "asof redecode [OPTIONS] STORE TABLE INTO", after_help = REDECODE_EXAMPLES)]
    Redecode(Box<IngestArgs>),
    /// Write what commits changed in a table as JSON lines, and go on with --follow
    Tail(TailArgs),
    /// Write a table as Parquet that any engine can read
    Export(ExportArgs),
    #[command(hide = true)]
    Snapshot(LaterArgs),
    #[command(hide = true)]
    Import(LaterArgs),
    /// Write completions for a shell to standard output
    Completions(CompletionsArgs),
    /// Write manual pages
    Man(ManArgs),
    /// Accept that a stream lost messages or became another one, and record that
    AcceptGap(AcceptGapArgs),
    #[command(hide = true)]
    Erase(LaterArgs),
    #[command(hide = true)]
    Retention(LaterArgs),
    #[command(hide = true)]
    Doctor(LaterArgs),
}

/// Whatever follows a command that is not supported yet.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct LaterArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<OsString>,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  asof completions bash > ~/.local/share/bash-completion/completions/asof
  asof completions zsh > ~/.zfunc/_asof
  asof completions fish > ~/.config/fish/completions/asof.fish";

/// `asof completions`
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

/// `asof man`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  asof man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Where to write them
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

const REDECODE_EXAMPLES: &str = "\
Examples:
  asof redecode shop.asof orders orders2 --key order_id --columns 'order_id bigint, total decimal(10,2)'
  asof sql shop.asof \"SELECT * FROM orders2\"

The messages of TABLE are read from the store, in their order and with their positions, and taken into
the new table INTO with the options given here and no others. No file, topic or registry is asked:
schemas are those that the store keeps, or those of --schemas. A second run takes what came since.
All messages of TABLE must have been taken with --keep-raw.";

const DEMO_EXAMPLES: &str = "\
Examples:
  asof demo                      builds ./asof-demo
  asof demo /tmp/tariffs         builds it elsewhere
Running it again makes the demo anew; a directory that is not a demo is never touched.";

/// `asof demo`
#[derive(Debug, clap::Args)]
#[command(after_help = DEMO_EXAMPLES)]
pub struct DemoArgs {
    /// Where to build the store
    #[arg(value_name = "DIR", default_value = "asof-demo")]
    pub dir: PathBuf,
}

#[cfg(test)]
mod tests;
