//! One column a line, for rows that are wider than the screen.

use super::cell::write_cell;
use super::escape::visible;
use super::{Options, Renderer, Sink};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// Writes rows vertically as they come.
pub struct Vertical {
    out: Sink,
    null: String,
    names: Vec<String>,
    width: usize,
    rows: u64,
}

impl Vertical {
    /// A vertical writer.
    pub fn new(out: Sink, options: &Options) -> Vertical {
        Vertical { out, null: options.null_or("NULL"), names: Vec::new(), width: 0, rows: 0 }
    }
}

impl Renderer for Vertical {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        self.rows = 0;
        self.names = schema.fields().iter().map(|f| visible(f.name()).into_owned()).collect();
        self.width = self.names.iter().map(|n| n.width()).max().unwrap_or(0);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut cell = String::new();
        for row in 0..batch.num_rows() {
            self.rows += 1;
            writeln!(self.out, "-[ row {} ]{}", self.rows, "-".repeat(self.width))?;
            for (name, column) in self.names.iter().zip(batch.columns()) {
                cell.clear();
                let text = match write_cell(&mut cell, column, row) {
                    true => visible(&cell),
                    false => self.null.as_str().into(),
                };
                let pad = " ".repeat(self.width - name.width());
                writeln!(self.out, "{name}{pad} | {text}")?;
            }
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<String>> {
        self.out.flush()?;
        Ok(Vec::new())
    }
}
