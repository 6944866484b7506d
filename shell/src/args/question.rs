//! `asof sql` and `asof shell`.

use super::store::StoreArg;
use crate::render::Mode;
use std::path::PathBuf;
use std::time::Duration;

const SQL_EXAMPLES: &str = "\
Examples:
  asof sql shop.asof \"SELECT count(*) FROM orders\"
  asof sql shop.asof -f report.sql --output json
  asof sql shop.asof --param day=2026-11-01 \"SELECT * FROM orders FOR VALID_TIME AS OF $day\"
  echo 'SELECT * FROM commits()' | asof sql shop.asof --output markdown
  asof sql shop.asof \"SELECT * FROM intervals('orders')\" --output parquet > orders.parquet

On a terminal answers are tables, in a pipe CSV with a header. A script stops at its first error.";

/// `asof sql`
#[derive(Debug, clap::Args)]
#[command(after_help = SQL_EXAMPLES, override_usage = "asof sql [OPTIONS] STORE [SQL]")]
pub struct SqlArgs {
    /// The store, then SQL; without SQL, -c or -f statements are read from standard input
    #[arg(value_name = "STORE SQL", num_args = 0..=2)]
    pub places: Vec<String>,
    /// Statements to run; may be repeated
    #[arg(short, long, value_name = "SQL", conflicts_with = "file")]
    pub command: Vec<String>,
    /// File with statements; may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// How answers are written [default: table on a terminal, csv in a pipe]
    #[arg(short, long, value_enum, value_name = "MODE")]
    pub output: Option<Mode>,
    /// A parameter, $NAME in the statements; may be repeated
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = parameter)]
    pub param: Vec<(String, String)>,
    /// Give up after this time with exit code 124, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Text for NULL
    #[arg(long, value_name = "TEXT")]
    pub null: Option<String>,
    /// Leave the column names out of csv and tsv
    #[arg(long)]
    pub no_header: bool,
}

const SHELL_EXAMPLES: &str = "\
Examples:
  asof shop.asof
  asof shell shop.asof
Inside, \\? lists the commands, \\d the tables; Ctrl-C cancels, Ctrl-D leaves.";

/// `asof shell`
#[derive(Debug, clap::Args)]
#[command(after_help = SHELL_EXAMPLES)]
pub struct ShellArgs {
    #[command(flatten)]
    pub store: StoreArg,
}

/// `NAME=VALUE`
fn parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            Ok((name.trim_start_matches('$').to_owned(), value.to_owned()))
        }
        _ => Err("write NAME=VALUE".into()),
    }
}

/// A length of time such as `30s`, `5m`, `2h` or `500ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "write a number and a unit, such as 30s")?;
    let milliseconds = match unit {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" | "min" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        "" => return Err(format!("{number} of what? write {number}s, {number}m or {number}ms")),
        _ => return Err(format!("'{unit}' is not a unit of time; write ms, s, m or h")),
    };
    match milliseconds {
        Some(0) => Err("must be longer than nothing".into()),
        Some(n) => Ok(Duration::from_millis(n)),
        None => Err("too long".into()),
    }
}
