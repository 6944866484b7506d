//! Rows that a program hands over as Arrow batches: as events, or as versions of a whole table
//! (rule B12).

use super::driver::{Messages, Step, Take};
use super::report::Progress;
use crate::change::{AxisValue, Change, Decoded};
use crate::error::{Error, ErrorKind, Result};
use crate::format::FormatOptions;
use crate::format::parquet::ParquetRows;
use crate::options::{IntakeOptions, KeySpec, TimeColumn};
use crate::source::Place;
use arrow::array::RecordBatch;
use asofdb_storage::engine::Catalog;
use asofdb_storage::event::Op;
use asofdb_storage::key::key_bytes;
use asofdb_storage::time::{AxisType, ValidTime};
use asofdb_storage::value::{Cell, write_text};
use std::collections::{HashMap, HashSet};

/// Name of the streams of batches that have no name of their own.
const BATCH_STREAM: &str = "batch";
/// Stands in options for the valid time that a version of a table has as a whole.
const VERSION_TIME: &str = "_version";

/// Rows of Arrow batches as messages.
pub struct RowMessages {
    rows: ParquetRows,
    options: FormatOptions,
    stream: String,
    stream_generation: u32,
    origin: String,
    origin_generation: u32,
    version: Option<AxisValue>,
    started: bool,
}

/// How many streams of this name there are.
fn streams_named(catalog: &Catalog, name: &str) -> u32 {
    catalog.streams.iter().filter(|s| s.name == name).count() as u32
}

impl RowMessages {
    /// The rows as events.
    ///
    /// # Errors
    /// `Usage` if no table is named, or the batches are not of one schema.
    pub fn events(
        batches: &[RecordBatch],
        options: &IntakeOptions,
        catalog: &Catalog,
    ) -> Result<RowMessages> {
        if options.table.is_none() {
            return Err(Error::usage("a batch names no table").hint("set IntakeOptions::table"));
        }
        let stream = options.source_name.clone().unwrap_or_else(|| BATCH_STREAM.to_owned());
        Ok(RowMessages {
            rows: rows_of(batches)?,
            options: options.format_options()?,
            stream_generation: streams_named(catalog, &stream),
            stream,
            origin: String::new(),
            origin_generation: 0,
            version: None,
            started: true,
        })
    }

    /// The rows as the version of `table` at `at`, with the options to take it with.
    ///
    /// # Errors
    /// `Usage` if a key comes twice or is not there.
    pub fn version(
        table: &str,
        key: &[&str],
        at: ValidTime,
        batches: &[RecordBatch],
        catalog: &Catalog,
    ) -> Result<(RowMessages, IntakeOptions)> {
        let plain = FormatOptions::default();
        check_keys(table, key, &mut rows_of(batches)?, &plain)?;
        let stream = format!("versions of {table}");
        let axis = catalog.table(table).map_or(AxisType::Instant, |t| t.valid_axis);
        let streams: HashSet<u32> =
            catalog.streams.iter().filter(|s| s.name == stream).map(|s| s.id.0).collect();
        let origin = format!("version {}", at.0);
        let again = |o: &&asofdb_storage::engine::Origin| {
            streams.contains(&o.stream.0) && o.file.as_deref() == Some(origin.as_str())
        };
        let messages = RowMessages {
            rows: rows_of(batches)?,
            options: plain,
            stream,
            stream_generation: 0,
            origin_generation: catalog.origins.iter().filter(again).count() as u32,
            origin,
            version: Some(AxisValue { value: at.0, axis }),
            started: false,
        };
        let options = IntakeOptions {
            table: Some(table.to_owned()),
            keys: vec![KeySpec { table: None, columns: key.iter().map(|k| (*k).to_owned()).collect() }],
            valid: Some(TimeColumn { column: VERSION_TIME.to_owned(), unit: None }),
            strict: true,
            // A version becomes visible as a whole.
            batch: Some(usize::MAX),
            ..IntakeOptions::default()
        };
        Ok((messages, options))
    }
}

fn rows_of(batches: &[RecordBatch]) -> Result<ParquetRows> {
    if let Some(other) = batches.iter().find(|b| b.schema() != batches[0].schema()) {
        return Err(Error::usage(format!("the batches are not of one schema: {:?}", other.schema())));
    }
    Ok(ParquetRows::of_batches(batches))
}

/// No key may come twice in one version.
fn check_keys(table: &str, key: &[&str], rows: &mut ParquetRows, options: &FormatOptions) -> Result<()> {
    if key.is_empty() {
        return Err(Error::usage(format!("a version of {table} needs a key"))
            .hint("name the columns that identify a row"));
    }
    let mut seen: HashMap<Vec<u8>, u64> = HashMap::new();
    let mut fault = None;
    while rows
        .read(options, u64::MAX, &mut |row, decoded| {
            let Decoded::Changes([change]) = decoded else { return };
            let find = |k: &&str| change.image.iter().find(|c| c.name == *k).map_or(Cell::Null, |c| c.cell);
            let cells: Vec<Cell<'_>> = key.iter().map(find).collect();
            if let Some(first) = seen.insert(key_bytes(&cells), row)
                && fault.is_none()
            {
                let mut shown = String::new();
                for (name, cell) in key.iter().zip(&cells) {
                    let separator = if shown.is_empty() { "" } else { ", " };
                    shown.push_str(&format!("{separator}{name} = "));
                    write_text(&mut shown, cell);
                }
                fault = Some(format!(
                    "key ({shown}) comes twice in this version of {table}: rows {first} and {row}"
                ));
            }
        })
        .map_err(|e| Error::new(ErrorKind::Usage, e))?
        > 0
    {}
    match fault {
        Some(message) => Err(Error::usage(message).hint("a version has one row per key; nothing was stored")),
        None => Ok(()),
    }
}

impl Messages for RowMessages {
    fn read(&mut self, room: usize, take: &mut Take<'_>) -> Result<Step> {
        let RowMessages {
            rows,
            options,
            stream,
            stream_generation,
            origin,
            origin_generation,
            version,
            started,
        } = self;
        // The truncate of a version stands before its rows.
        let first = version.is_some() as u64;
        let place = |position: u64| Place {
            number: 0,
            stream,
            stream_generation: *stream_generation,
            origin,
            origin_generation: *origin_generation,
            position,
            file: "",
            line: 0,
            byte: 0,
            raw: b"",
            record: None,
        };
        if !*started {
            *started = true;
            let mut truncate = Change::new(Op::Truncate);
            truncate.declared.valid_from = *version;
            take(&place(0), Decoded::Changes(&[truncate]))?;
        }
        let mut failed = None;
        let read = rows.read(options, room as u64, &mut |row, decoded| {
            if failed.is_some() {
                return;
            }
            let result = match (decoded, *version) {
                (Decoded::Changes([change]), Some(at)) => {
                    let mut change = *change;
                    change.declared.valid_from = Some(at);
                    take(&place(row + first), Decoded::Changes(&[change]))
                }
                (decoded, _) => take(&place(row + first), decoded),
            };
            failed = result.err();
        });
        match (failed, read) {
            (Some(e), _) => Err(e),
            (None, Err(e)) => Err(Error::new(ErrorKind::Source, e)),
            (None, Ok(0)) => Ok(Step::End),
            (None, Ok(_)) => Ok(Step::More),
        }
    }

    fn positions(&mut self) -> Vec<(String, serde_json::Value)> {
        Vec::new()
    }

    fn progress(&self, progress: &mut Progress) {
        progress.source.clone_from(&self.stream);
    }

    fn notices(&mut self) -> Vec<String> {
        Vec::new()
    }
}
