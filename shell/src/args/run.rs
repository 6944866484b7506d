//! `asof run`, and exports beside an intake.

use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  asof sql shop.asof \"CREATE FLOW orders_cdc AS AUTO CDC INTO orders
                      FROM STREAM files('cdc/**', format => 'debezium-json') KEYS (id)\"
  asof run shop.asof                          every flow, until SIGINT or SIGTERM
  asof run shop.asof orders_cdc --once        one flow, what there is now
  asof run shop.asof --every 30s              all of them, every 30 seconds
  asof run shop.asof --export-to lake/ --export-every 30s

A flow goes on where it was: what a run took is never taken again. Files that may still be written to are
left for later. A source that fails is asked again after a while and stops no other flow. SIGINT and
SIGTERM finish the batch, commit and leave with code 0.";

/// `asof run`
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = "asof run [OPTIONS] STORE [FLOW]...")]
pub struct RunArgs {
    /// The store, then the flows to run [default: all that are declared]
    #[arg(value_name = "STORE FLOW")]
    pub places: Vec<String>,
    #[command(flatten)]
    pub pace: PaceArgs,
    /// Take at most so many messages of a flow before it is another's turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_events: Option<u64>,
    #[command(flatten)]
    pub rounds: RoundsArgs,
}

/// When a run ends, or how often it looks.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct PaceArgs {
    /// One turn of each flow, then leave
    #[arg(long)]
    pub once: bool,
    /// Take everything that is there when the run begins, then leave
    #[arg(long)]
    pub until_caught_up: bool,
    /// Look for new events so often, such as 30s [default: topics at once, files every second, databases
    /// every 30 s]
    #[arg(long, value_name = "TIME", value_parser = super::question::duration)]
    pub every: Option<Duration>,
}

/// Exports beside an intake.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Exports")]
pub struct RoundsArgs {
    /// Write Parquet of the tables to this directory while taking in
    #[arg(long, value_name = "DIR", requires = "export_every")]
    pub export_to: Option<PathBuf>,
    /// How often to do that, such as 30s
    #[arg(long, value_name = "TIME", requires = "export_to", value_parser = super::question::duration)]
    pub export_every: Option<Duration>,
    /// What those files hold
    #[arg(long, value_name = "LAYOUT", value_enum, default_value = "intervals")]
    pub export_layout: super::Layout,
}
