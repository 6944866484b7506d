//! The rows of a range read as rectangles, and labels for their axes.

use super::timeline::{BEGINNING, FOREVER, Rectangle};
use crate::backend::TableNames;
use crate::outcome::{Exit, Failure, Outcome};
use crate::render::cell::write_cell;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type, TimestampMicrosecondType};
use asofdb::time::format_instant;

/// The interval columns of a range read.
const INTERVALS: [&str; 4] = ["__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT"];

/// Rectangles with the meaning of their axes.
pub struct Rectangles {
    /// The rectangles, in the order of the rows.
    pub list: Vec<Rectangle>,
    /// Valid times are instants, not plain integers.
    pub valid_is_instant: bool,
    /// System times are instants, not plain integers.
    pub system_is_instant: bool,
}

/// Reads the rows of a range read of `table`; its key columns are left out of the images.
pub fn of(batches: &[RecordBatch], table: &TableNames) -> Outcome<Rectangles> {
    let mut found = Rectangles { list: Vec::new(), valid_is_instant: true, system_is_instant: true };
    for batch in batches {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .ok_or_else(|| Failure::new(Exit::Failed, format!("the answer has no column {name}")))
        };
        let ends =
            [column(INTERVALS[0])?, column(INTERVALS[1])?, column(INTERVALS[2])?, column(INTERVALS[3])?];
        found.valid_is_instant = *ends[0].data_type() != DataType::Int64;
        found.system_is_instant = *ends[2].data_type() != DataType::Int64;
        for row in 0..batch.num_rows() {
            let at = |i: usize, open: i64| point(ends[i], row, open);
            found.list.push(Rectangle {
                valid: (at(0, BEGINNING)?, at(1, FOREVER)?),
                system: (at(2, BEGINNING)?, at(3, FOREVER)?),
                image: image(batch, row, table),
            });
        }
    }
    Ok(found)
}

fn point(array: &ArrayRef, row: usize, open: i64) -> Outcome<i64> {
    if array.is_null(row) {
        return Ok(open);
    }
    match array.data_type() {
        DataType::Int64 => Ok(array.as_primitive::<Int64Type>().value(row)),
        DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, _) => {
            Ok(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        other => Err(Failure::new(Exit::Failed, format!("an interval column has type {other}"))),
    }
}

/// `column=value` of everything but the key and the intervals.
fn image(batch: &RecordBatch, row: usize, table: &TableNames) -> String {
    let is_key = |name: &str| table.columns.iter().any(|c| c.key.is_some() && c.name == name);
    let schema = batch.schema();
    let mut parts = Vec::new();
    for (field, array) in schema.fields().iter().zip(batch.columns()) {
        if INTERVALS.contains(&field.name().as_str()) || is_key(field.name()) {
            continue;
        }
        let mut value = String::new();
        if !write_cell(&mut value, array, row) {
            value.push_str("NULL");
        }
        parts.push(format!("{}={value}", field.name()));
    }
    crate::render::escape::visible(&parts.join("  ")).into_owned()
}

impl Rectangles {
    /// Labels of an axis: dates where every instant is a midnight.
    pub fn label(ends: &[(i64, i64)], is_instant: bool) -> impl Fn(i64) -> String + use<> {
        const DAY: i64 = 86_400_000_000;
        let whole = |t: i64| t == BEGINNING || t == FOREVER || t.rem_euclid(DAY) == 0;
        let dates = ends.iter().all(|(a, b)| whole(*a) && whole(*b));
        move |t| match (is_instant, dates) {
            (false, _) => t.to_string(),
            (true, true) => format_instant(t).trim_end_matches("T00:00:00Z").to_owned(),
            (true, false) => format_instant(t),
        }
    }
}
