//! What `asof ingest` says about a table of a database.

use std::path::PathBuf;

/// What is pulled from a database.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Databases")]
pub struct PullArgs {
    /// Table of the database, with its schema if need be
    #[arg(long, value_name = "TABLE")]
    pub from_table: Option<String>,
    /// Column that grows with every change of a row; a pull reads what lies above the last one
    #[arg(long, value_name = "COL[:unit]", requires = "from_table")]
    pub watermark: Option<String>,
    /// How far behind the highest watermark a pull begins, for what commits late [default: 5m, numbers: 0]
    #[arg(long, value_name = "TIME|N", requires = "watermark")]
    pub overlap: Option<String>,
    /// Read the whole table; rows that are not in it any more end
    #[arg(long, requires = "from_table")]
    pub snapshot: bool,
    /// File with the password [default: the variable PGPASSWORD or MYSQL_PWD]
    #[arg(long, value_name = "FILE", requires = "from_table")]
    pub password_file: Option<PathBuf>,
}
