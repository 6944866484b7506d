//! What the tests of runs share: events in memory, naive orders, runs on a disk.

mod crash;
mod damage;
mod derive;
mod document;
mod files;
mod keyed;
mod look_up;
mod merge;
mod sort;
mod widen;

use super::write::{IPC_CHUNK_ROWS, PARQUET_CHUNK_ROWS};
use super::*;
use crate::disk::{Disk, SimDisk};
use crate::event::{EventColumns, EventHead, FrameContext, Op, decode_rows, encode_row};
use crate::id::{ColumnId, OriginId, TableId};
use crate::schema::{Column, TableSchema};
use crate::time::{CommitSeq, FOREVER};
use crate::value::{Cell, ColumnType};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Ranks of four origins, in another order than their numbers.
const RANKS: [u32; 4] = [2, 0, 3, 1];

fn order(system_declared: bool) -> EventOrder<'static> {
    EventOrder { ranks: &RANKS, system_declared }
}

/// Numbers that look random and are the same in every run of the tests.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

fn schema(version: u32, types: &[ColumnType]) -> TableSchema {
    let columns = types.iter().enumerate().map(|(i, ty)| Column {
        id: ColumnId(i as u32),
        name: format!("column {i}"),
        ty: *ty,
        declared: false,
    });
    TableSchema { version, columns: columns.collect(), key: vec![ColumnId(0)] }
}

fn small_schema() -> TableSchema {
    schema(1, &[ColumnType::Text, ColumnType::Int64, ColumnType::Text])
}

/// Events of one commit under a schema.
fn decode(rows: &[Vec<u8>], schema: &TableSchema, commit: u64) -> RecordBatch {
    let context = FrameContext { commit: CommitSeq(commit), commit_at: 1_000_000 + commit as i64 };
    decode_rows(rows.iter().map(Vec::as_slice), schema, context).expect("rows fit their schema")
}

const KEYS: [&str; 9] = [
    "a",
    "a longer key than sixteen bytes 1",
    "a longer key than sixteen bytes 2",
    "a longer key than sixteen bytes 2\0",
    "a longer key than six",
    "",
    "b",
    "17",
    "17.5",
];

/// A row of [`small_schema`]; every number of `position` is another event.
fn event(numbers: &mut Numbers, position: u64) -> Vec<u8> {
    let op = [Op::Insert, Op::Update, Op::Delete, Op::Truncate, Op::Update][numbers.below(5) as usize];
    let ties: [&[u8]; 3] = [b"", b"1", b"2"];
    let mut head = EventHead::new(op, OriginId(numbers.below(4) as u32), position / 3);
    head.full = op != Op::Update || numbers.below(2) == 0;
    head.ordinal = (position % 3) as u32;
    head.valid_from = (numbers.below(4) > 0).then(|| numbers.below(3) as i64 - 1);
    head.valid_to = if numbers.below(9) == 0 { 50 } else { FOREVER };
    head.system = Some(numbers.below(4) as i64);
    head.ties = ties[numbers.below(3) as usize];
    let key = Cell::Text(KEYS[numbers.below(KEYS.len() as u64) as usize]);
    let previous = [Cell::Text(KEYS[numbers.below(KEYS.len() as u64) as usize])];
    if op == Op::Update && numbers.below(4) == 0 {
        head.previous = Some(&previous);
    }
    let text = format!("value {position}");
    let cells =
        [(ColumnId(0), key), (ColumnId(1), Cell::Int(position as i64)), (ColumnId(2), Cell::Text(&text))];
    let shown = match op {
        Op::Truncate => &[][..],
        Op::Delete => &cells[..1],
        _ if numbers.below(3) == 0 => &cells[..2],
        _ => &cells[..],
    };
    let mut row = Vec::new();
    encode_row(&mut row, &head, shown);
    row
}

/// `n` events in commits of 7.
fn events(numbers: &mut Numbers, n: u64) -> RecordBatch {
    let schema = small_schema();
    let rows: Vec<Vec<u8>> = (0..n).map(|i| event(numbers, i)).collect();
    let batches: Vec<RecordBatch> =
        rows.chunks(7).enumerate().map(|(i, rows)| decode(rows, &schema, i as u64 + 1)).collect();
    concat_batches(&crate::event::event_schema(&schema), &batches).expect("one schema")
}

/// The rows of a batch in the order of runs, by the plainest comparison there is.
fn naive_order(batch: &RecordBatch, order: EventOrder<'_>) -> Vec<u32> {
    let e = EventColumns::new(batch.clone()).expect("events");
    let place = |i: u32| {
        let i = i as usize;
        let ties = if e.ties().is_null(i) { Vec::new() } else { e.ties().value(i).to_vec() };
        let system = if order.system_declared { e.system().value(i) } else { 0 };
        let rank = order.ranks[e.origin().value(i) as usize];
        let stream = (rank, e.position().value(i), e.ordinal().value(i));
        let last = (e.commit().value(i), e.operation(i) != Op::MovedAway);
        (e.key().value(i).to_vec(), Reverse((e.valid_from().value(i), ties, system, stream, last)))
    };
    let mut rows: Vec<u32> = (0..batch.num_rows() as u32).collect();
    rows.sort_by_cached_key(|i| place(*i));
    rows
}

fn picked(batch: &RecordBatch, rows: Vec<u32>) -> RecordBatch {
    take_record_batch(batch, &UInt32Array::from(rows)).expect("rows of the batch")
}

fn naive_sort(batch: &RecordBatch, order: EventOrder<'_>) -> RecordBatch {
    picked(batch, naive_order(batch, order))
}

fn sim() -> (SimDisk, PathBuf) {
    let disk = SimDisk::new();
    let dir = PathBuf::from("/runs");
    disk.create_dir(&dir).expect("a directory");
    disk.sync_dir(Path::new("/")).expect("its name");
    (disk, dir)
}

fn spec(id: u64, format: RunFormat) -> RunSpec {
    RunSpec { id, table: TableId(1), format, level: 0 }
}

const FORMATS: [RunFormat; 2] = [RunFormat::Ipc, RunFormat::Parquet];

/// Writes a sorted batch as a run.
fn write(disk: &SimDisk, dir: &Path, spec: RunSpec, schema: &TableSchema, sorted: &RecordBatch) -> RunMeta {
    let inputs = vec![MergeInput::batch(sorted.clone())];
    merge_runs(disk, dir, spec, schema, order(false), inputs).expect("a run")
}

fn open(disk: &SimDisk, dir: &Path, meta: &RunMeta) -> Result<RunReader, RunError> {
    RunReader::open(Arc::new(disk.clone()), dir, meta, Arc::new(ColumnCache::new(1 << 20)))
}

/// The asked columns of some rows, in the order asked; NULLs where the run does not have one.
fn read(
    reader: &RunReader,
    schema: &TableSchema,
    names: &[&str],
    rows: std::ops::Range<u64>,
) -> Result<Vec<ArrayRef>, RunError> {
    let physical = crate::event::event_schema(schema);
    let batches = reader.scan(names, rows.clone())?.collect::<Result<Vec<_>, _>>()?;
    assert_eq!(batches.iter().map(|b| b.num_rows() as u64).sum::<u64>(), rows.end - rows.start);
    let column = |name: &&str| {
        let parts: Vec<&dyn Array> =
            batches.iter().filter_map(|b| b.column_by_name(name)).map(|a| &**a).collect();
        match physical.field_with_name(name) {
            Ok(f) if parts.is_empty() => {
                arrow::array::new_null_array(f.data_type(), (rows.end - rows.start) as usize)
            }
            _ => arrow::compute::concat(&parts).expect("parts of one type"),
        }
    };
    Ok(names.iter().map(column).collect())
}

/// Everything in a run, as a batch of the physical schema, after its key numbers were checked.
fn read_all(reader: &RunReader, schema: &TableSchema) -> Result<RecordBatch, RunError> {
    let physical = crate::event::event_schema(schema);
    let mut names: Vec<&str> = physical.fields().iter().map(|f| f.name().as_str()).collect();
    names.push("key_no");
    let mut columns = read(reader, schema, &names, 0..reader.meta().rows)?;
    let numbers = columns.pop().expect("key numbers");
    let batch = RecordBatch::try_new(physical, columns).expect("physical columns");
    assert_key_numbers(&batch, &numbers, reader.meta());
    Ok(batch)
}

fn assert_key_numbers(batch: &RecordBatch, numbers: &ArrayRef, meta: &RunMeta) {
    let keys = batch.column(0).as_binary::<i32>();
    let numbers = numbers.as_primitive::<arrow::datatypes::UInt32Type>();
    let mut expected = 0;
    for i in 0..keys.len() {
        expected += (i > 0 && keys.value(i) != keys.value(i - 1)) as u32;
        assert_eq!(numbers.value(i), expected, "row {i}");
    }
    assert_eq!(meta.keys, if keys.is_empty() { 0 } else { expected as u64 + 1 });
}
