//! CSV (RFC 4180, line feeds) and TSV (tab, line feed and backslash escaped).

use super::cell::write_cell;
use super::{Options, Renderer, Sink};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use std::io;

/// Writes delimited text as it comes.
pub struct Delimited {
    out: Sink,
    delimiter: char,
    header: bool,
    null: String,
}

impl Delimited {
    /// A writer of CSV.
    pub fn csv(out: Sink, options: &Options) -> Delimited {
        Delimited { out, delimiter: ',', header: options.header, null: options.null_or("") }
    }

    /// A writer of TSV.
    pub fn tsv(out: Sink, options: &Options) -> Delimited {
        Delimited { delimiter: '\t', null: options.null_or("\\N"), ..Delimited::csv(out, options) }
    }

    fn push(&self, line: &mut String, text: &str) {
        if self.delimiter == '\t' {
            for c in text.chars() {
                match c {
                    '\t' => line.push_str("\\t"),
                    '\n' => line.push_str("\\n"),
                    '\r' => line.push_str("\\r"),
                    '\\' => line.push_str("\\\\"),
                    c => line.push(c),
                }
            }
        } else if text.is_empty() || text.contains(['"', ',', '\n', '\r']) || text == self.null {
            line.push('"');
            line.push_str(&text.replace('"', "\"\""));
            line.push('"');
        } else {
            line.push_str(text);
        }
    }
}

impl Renderer for Delimited {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        if !self.header {
            return Ok(());
        }
        let mut line = String::new();
        for (i, field) in schema.fields().iter().enumerate() {
            if i > 0 {
                line.push(self.delimiter);
            }
            self.push(&mut line, field.name());
        }
        line.push('\n');
        self.out.write_all(line.as_bytes())
    }

    fn batch(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let (mut line, mut cell) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            for (i, column) in batch.columns().iter().enumerate() {
                if i > 0 {
                    line.push(self.delimiter);
                }
                cell.clear();
                match write_cell(&mut cell, column, row) {
                    true => self.push(&mut line, &cell),
                    false => line.push_str(&self.null),
                }
            }
            line.push('\n');
            self.out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<String>> {
        self.out.flush()?;
        Ok(Vec::new())
    }
}
