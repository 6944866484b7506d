//! The output modes, their options and the choice of a renderer.

use super::delimited::Delimited;
use super::files::{ArrowFile, ParquetFile};
use super::json::Json;
use super::table::{Style, Table};
use super::vertical::Vertical;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use std::io::{self, Write};

/// Where a renderer writes to.
pub type Sink = Box<dyn Write + Send>;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Boxes; the default on a terminal.
    Table,
    /// Comma-separated with a header; the default in a pipe.
    Csv,
    /// Tab-separated with a header.
    Tsv,
    /// One array of objects.
    Json,
    /// One object a line.
    Ndjson,
    /// A Markdown table.
    Markdown,
    /// One column a line.
    Vertical,
    /// A Parquet file (to a file or a pipe).
    Parquet,
    /// An Arrow IPC stream (to a file or a pipe).
    Arrow,
}

impl Mode {
    /// All modes by their names.
    pub const NAMES: [(&'static str, Mode); 9] = [
        ("table", Mode::Table),
        ("csv", Mode::Csv),
        ("tsv", Mode::Tsv),
        ("json", Mode::Json),
        ("ndjson", Mode::Ndjson),
        ("markdown", Mode::Markdown),
        ("vertical", Mode::Vertical),
        ("parquet", Mode::Parquet),
        ("arrow", Mode::Arrow),
    ];

    /// The mode called `name`.
    pub fn named(name: &str) -> Option<Mode> {
        Mode::NAMES.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, mode)| *mode)
    }

    /// Whether the bytes are for programs only and would spoil a terminal.
    pub fn is_binary(self) -> bool {
        matches!(self, Mode::Parquet | Mode::Arrow)
    }
}

/// How a renderer shows things.
#[derive(Clone, Debug)]
pub struct Options {
    /// The text for NULL; each mode has its own if this is none.
    pub null: Option<String>,
    /// Whether csv and tsv begin with the column names.
    pub header: bool,
    /// Columns of the terminal; `None` = not a terminal, nothing is ever cut.
    pub width: Option<usize>,
    /// Rows that a table on a terminal shows at most; the middle is left out.
    pub rows_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { null: None, header: true, width: None, rows_max: 40 }
    }
}

impl Options {
    /// The text for NULL, or what the mode shows by itself.
    pub fn null_or(&self, default: &str) -> String {
        self.null.clone().unwrap_or_else(|| default.to_owned())
    }
}

/// Writes one result: `begin`, any number of batches, `end`.
pub trait Renderer: Send {
    /// Starts a result.
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()>;
    /// Takes rows.
    fn batch(&mut self, batch: &RecordBatch) -> io::Result<()>;
    /// Ends the result; returns notes on what was left out.
    fn end(&mut self) -> io::Result<Vec<String>>;
}

/// The renderer of a mode.
pub fn renderer(mode: Mode, out: Sink, options: &Options) -> Box<dyn Renderer> {
    match mode {
        Mode::Table => Box::new(Table::new(out, options, Style::Box)),
        Mode::Markdown => Box::new(Table::new(out, options, Style::Markdown)),
        Mode::Csv => Box::new(Delimited::csv(out, options)),
        Mode::Tsv => Box::new(Delimited::tsv(out, options)),
        Mode::Json => Box::new(Json::array(out)),
        Mode::Ndjson => Box::new(Json::lines(out)),
        Mode::Vertical => Box::new(Vertical::new(out, options)),
        Mode::Arrow => Box::new(ArrowFile::new(out)),
        Mode::Parquet => Box::new(ParquetFile::new(out)),
    }
}
