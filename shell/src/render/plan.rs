//! The plan of a statement: lines as they are, not cells, since a cell would be one line of thousands of
//! columns.

use super::cell::write_cell;
use super::escape::visible;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// Columns by which a line that goes on is indented more than its beginning.
const HANGING: usize = 4;
/// Columns that are left to a line however deep it stands.
const TEXT_COLUMNS_MIN: usize = 30;

/// Whether an answer is a plan. Columns of tables may have these names, but may always be NULL.
pub fn is_plan(schema: &SchemaRef) -> bool {
    let names = schema.fields().iter().map(|f| f.name().as_str());
    names.eq(["plan_type", "plan"])
        && schema.fields().iter().all(|f| !f.is_nullable() && *f.data_type() == DataType::Utf8)
}

/// Writes plans, each after its kind, broken between the parts of a line where it is wider than `width`.
pub fn write_plan(out: &mut dyn Write, batch: &RecordBatch, width: Option<usize>) -> io::Result<()> {
    for row in 0..batch.num_rows() {
        let (mut kind, mut plan) = (String::new(), String::new());
        write_cell(&mut kind, batch.column(0), row);
        write_cell(&mut plan, batch.column(1), row);
        writeln!(out, "{}:", visible(&kind))?;
        for line in plan.lines() {
            write_line(out, &format!("  {}", visible(line)), width)?;
        }
    }
    Ok(())
}

fn write_line(out: &mut dyn Write, line: &str, width: Option<usize>) -> io::Result<()> {
    let indent = line.len() - line.trim_start().len();
    let Some(width) = width.filter(|width| line.width() >= *width) else { return writeln!(out, "{line}") };
    let hanging = " ".repeat(indent + HANGING);
    let width = width.max(hanging.len() + TEXT_COLUMNS_MIN);
    let mut current = String::new();
    for part in line.split_inclusive(", ") {
        if !current.trim().is_empty() && current.width() + part.trim_end().width() >= width {
            writeln!(out, "{}", current.trim_end())?;
            current = hanging.clone();
        }
        current.push_str(part);
    }
    writeln!(out, "{}", current.trim_end())
}
