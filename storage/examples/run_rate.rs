//! Rates of sorting, writing, merging and reading runs.
//!
//! `cargo run --release -p asofdb-storage --example run_rate [-- EVENTS [DIRECTORY]]`; 4 million
//! events by default, in a new directory under DIRECTORY or the current one. Events are like those of
//! the shared workload: a key of an integer, a text and an integer, a value and a text, some updates
//! partial, some late.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use asofdb_storage::disk::RealDisk;
use asofdb_storage::event::{EventHead, FrameContext, Op, decode_rows, encode_row};
use asofdb_storage::id::{ColumnId, OriginId, TableId};
use asofdb_storage::run::*;
use asofdb_storage::schema::{Column, TableSchema};
use asofdb_storage::time::CommitSeq;
use asofdb_storage::value::{Cell, ColumnType};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const BATCH_EVENTS: usize = 400_000;
const RUN_BATCHES: usize = 5;
const LOOKUPS: usize = 20_000;
const ORDER: EventOrder<'static> = EventOrder { ranks: &[0], system_declared: true };

type Failure = Box<dyn std::error::Error>;

fn schema() -> TableSchema {
    let types = [
        ("key1", ColumnType::Int64),
        ("key2", ColumnType::Text),
        ("key3", ColumnType::Int64),
        ("value1", ColumnType::Int64),
        ("value2", ColumnType::Text),
    ];
    let columns = types.iter().enumerate().map(|(i, (name, ty))| Column {
        id: ColumnId(i as u32),
        name: (*name).into(),
        ty: *ty,
        declared: false,
    });
    TableSchema { version: 1, columns: columns.collect(), key: vec![ColumnId(0), ColumnId(1), ColumnId(2)] }
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

fn batch(numbers: &mut Numbers, first: usize, schema: &TableSchema) -> Result<RecordBatch, Failure> {
    let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(BATCH_EVENTS));
    for i in first..first + BATCH_EVENTS {
        let n = numbers.below(i as u64 / 3 + 1);
        let op = [Op::Insert, Op::Update, Op::Update, Op::Delete][numbers.below(4) as usize];
        let late = if numbers.below(20) == 0 { 5_000_000 } else { 0 };
        let mut head = EventHead::new(op, OriginId(0), i as u64);
        head.full = op != Op::Update;
        head.valid_from = Some(1_700_000_000_000_000 + i as i64 * 1000 - late);
        head.system = Some(1_700_000_000_000_000 + i as i64 * 1000 + numbers.below(900) as i64);
        let (text, other) = (format!("customer-{:07}", n * 7919 % 10_000_019), format!("note {}", n % 1000));
        let cells = [
            (ColumnId(0), Cell::Int((n % 100_000) as i64)),
            (ColumnId(1), Cell::Text(&text)),
            (ColumnId(2), Cell::Int((n % 16) as i64)),
            (ColumnId(3), Cell::Int(numbers.below(1_000_000) as i64)),
            (ColumnId(4), Cell::Text(&other)),
        ];
        let shown = if op == Op::Delete {
            3
        } else if op == Op::Update && n.is_multiple_of(2) {
            4
        } else {
            5
        };
        encode_row(&mut bytes, &head, &cells[..shown]);
        ends.push(bytes.len());
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let rows: Vec<&[u8]> = starts.zip(&ends).map(|(a, b)| &bytes[a..*b]).collect();
    let commit = (first / BATCH_EVENTS) as u64 + 1;
    let context = FrameContext { commit: CommitSeq(commit), commit_at: 1_800_000_000_000_000 };
    Ok(decode_rows(rows.into_iter(), schema, context).map_err(|(i, e)| format!("row {i}: {e}"))?)
}

/// Prints what was done in how long, and how many per second.
fn report(what: &str, count: u64, unit: &str, since: Instant) {
    let seconds = since.elapsed().as_secs_f64();
    println!("{what:44} {seconds:8.3} s {:9.3} M {unit}/s", count as f64 / seconds / 1e6);
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let events: usize = arguments.next().map_or(Ok(4_000_000), |n| n.parse())?;
    let parent = arguments.next().unwrap_or_else(|| ".".into());
    let dir = tempfile::tempdir_in(parent)?;
    let schema = Arc::new(schema());
    let level0 = write_level0(dir.path(), &schema, events)?;
    let disk = Arc::new(RealDisk);
    let open =
        |meta: &RunMeta| RunReader::open(disk.clone(), dir.path(), meta, Arc::new(ColumnCache::new(0)));
    let mut merged = None;
    for (id, format) in [(1000, RunFormat::Ipc), (1001, RunFormat::Parquet)] {
        let inputs = level0.iter().map(|m| MergeInput::run(&open(m)?, schema.clone()));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let start = Instant::now();
        let spec = RunSpec { id, table: TableId(1), format, level: 1 };
        let meta = merge_runs(&*disk, dir.path(), spec, &schema, ORDER, inputs)?;
        report(&format!("merge {} runs into one, {format:?}", level0.len()), meta.rows, "rows", start);
        println!("{:44} {:8.1} bytes a row", "  size", meta.bytes as f64 / meta.rows as f64);
        scan(&open(&meta)?)?;
        merged = Some(meta);
    }
    merged.map(|_| ()).ok_or_else(|| "nothing was merged".into())
}

fn write_level0(dir: &Path, schema: &TableSchema, events: usize) -> Result<Vec<RunMeta>, Failure> {
    let mut numbers = Numbers(1);
    let mut metas = Vec::new();
    for run in 0..events.div_ceil(RUN_BATCHES * BATCH_EVENTS) {
        let first = run * RUN_BATCHES * BATCH_EVENTS;
        let batches = (0..RUN_BATCHES).map(|i| batch(&mut numbers, first + i * BATCH_EVENTS, schema));
        let batches = batches.collect::<Result<Vec<_>, _>>()?;
        let start = Instant::now();
        let sorted = batches.iter().map(|b| sort_batch(b, ORDER)).collect::<Result<Vec<_>, _>>()?;
        report("sort batches of 400,000", (RUN_BATCHES * BATCH_EVENTS) as u64, "rows", start);
        let start = Instant::now();
        let spec = RunSpec { id: run as u64 + 1, table: TableId(1), format: RunFormat::Ipc, level: 0 };
        let inputs = sorted.into_iter().map(MergeInput::batch).collect();
        let meta = merge_runs(&RealDisk, dir, spec, schema, ORDER, inputs)?;
        report("merge 5 batches and write them, IPC", meta.rows, "rows", start);
        metas.push(meta);
    }
    Ok(metas)
}

fn scan(reader: &RunReader) -> Result<(), Failure> {
    let rows = reader.meta().rows;
    let columns = ["key_no", "op", "mask", "valid_from", "system", "c3"];
    for what in ["  scan 6 columns, first time", "  scan 6 columns, again"] {
        let start = Instant::now();
        let mut sum = 0i64;
        for batch in reader.scan(&columns, 0..rows)? {
            let batch = batch?;
            let values = batch.column_by_name("c3").ok_or("no values")?.as_primitive::<Int64Type>();
            sum = values.values().iter().fold(sum, |a, b| a.wrapping_add(*b));
        }
        std::hint::black_box(sum);
        report(what, rows, "rows", start);
    }
    let mut numbers = Numbers(2);
    let mut keys = Vec::with_capacity(LOOKUPS);
    for _ in 0..200 {
        let from = numbers.below(rows - 100);
        for batch in reader.scan(&["key"], from..from + 100)? {
            let batch = batch?;
            let found = batch.column(0).as_binary::<i32>();
            keys.extend((0..found.len()).map(|i| found.value(i).to_vec()));
        }
    }
    let keys = if reader.meta().format == RunFormat::Parquet { &keys[..500] } else { &keys };
    let start = Instant::now();
    for key in keys {
        if reader.find_key(key)?.is_empty() {
            return Err("a key of the run was not found".into());
        }
    }
    let each = start.elapsed().as_secs_f64() / keys.len() as f64 * 1e6;
    println!("{:44} {each:8.1} us each", "  find the rows of a key");
    Ok(())
}
