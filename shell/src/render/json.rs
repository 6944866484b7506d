//! JSON and NDJSON. Integers and decimals keep all their digits as JSON numbers; instants are text.

use super::cell::write_cell;
use super::{Renderer, Sink};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use std::io;

/// Writes one object per row: an array of them, or one a line.
pub struct Json {
    out: Sink,
    lines: bool,
    names: Vec<String>,
    rows: u64,
}

impl Json {
    /// A writer of one JSON array.
    pub fn array(out: Sink) -> Json {
        Json { out, lines: false, names: Vec::new(), rows: 0 }
    }

    /// A writer of one object a line.
    pub fn lines(out: Sink) -> Json {
        Json { lines: true, ..Json::array(out) }
    }
}

impl Renderer for Json {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        self.rows = 0;
        self.names = schema.fields().iter().map(|f| quoted(f.name())).collect();
        match self.lines {
            true => Ok(()),
            false => self.out.write_all(b"["),
        }
    }

    fn batch(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut line = String::new();
        for row in 0..batch.num_rows() {
            line.clear();
            if !self.lines {
                line.push_str(if self.rows == 0 { "\n  " } else { ",\n  " });
            }
            let fields = self.names.iter().zip(batch.columns());
            object(&mut line, fields.map(|(name, array)| (name.as_str(), array.as_ref())), row);
            if self.lines {
                line.push('\n');
            }
            self.rows += 1;
            self.out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<String>> {
        if !self.lines {
            self.out.write_all(if self.rows == 0 { b"]\n" } else { b"\n]\n" })?;
        }
        self.out.flush()?;
        Ok(Vec::new())
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn object<'a>(out: &mut String, fields: impl Iterator<Item = (&'a str, &'a dyn Array)>, row: usize) {
    out.push('{');
    for (i, (name, array)) in fields.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(name);
        out.push(':');
        value(out, array, row);
    }
    out.push('}');
}

fn list(out: &mut String, items: &dyn Array) {
    out.push('[');
    for i in 0..items.len() {
        if i > 0 {
            out.push(',');
        }
        value(out, items, i);
    }
    out.push(']');
}

fn value(out: &mut String, array: &dyn Array, row: usize) {
    if array.is_null(row) {
        return out.push_str("null");
    }
    match array.data_type() {
        DataType::List(_) => list(out, &array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(out, &array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(out, &array.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            let names: Vec<String> = fields.iter().map(|f| quoted(f.name())).collect();
            let columns = array.as_struct().columns();
            object(out, names.iter().zip(columns).map(|(n, c)| (n.as_str(), c.as_ref())), row);
        }
        DataType::Null => out.push_str("null"),
        other => {
            let mut cell = String::new();
            write_cell(&mut cell, array, row);
            let bare = matches!(other, DataType::Boolean) || (other.is_numeric() && is_json_number(&cell));
            match bare {
                true => out.push_str(&cell),
                false => out.push_str(&quoted(&cell)),
            }
        }
    }
}

/// NaN and the infinities are no JSON numbers and go as text.
fn is_json_number(text: &str) -> bool {
    text.bytes().next_back().is_some_and(|b| b.is_ascii_digit())
}
