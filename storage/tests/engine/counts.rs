//! What a question read and what it did not have to read is counted as it is.

use crate::table::{TABLE, components};
use asofdb_storage::disk::SimDisk;
use asofdb_storage::engine::*;
use asofdb_storage::event::{EventHead, Op, encode_row};
use asofdb_storage::id::{ColumnId, OriginId, StreamId};
use asofdb_storage::key::key_bytes;
use asofdb_storage::schema::{Column, TableMeta, TableSchema};
use asofdb_storage::time::FOREVER;
use asofdb_storage::value::{Cell, ColumnType};
use std::path::Path;
use std::sync::Arc;

/// Keys; every commit upserts each of them.
const KEYS: i64 = 10_000;
/// Commits that are flushed to a run each; one more stays in memory.
const RUNS: u64 = 3;

fn catalog() -> Vec<CatalogChange> {
    let column = |i, name: &str, ty| Column { id: ColumnId(i), name: name.into(), ty, declared: false };
    let columns = vec![
        column(0, "id", ColumnType::Int64),
        column(1, "a", ColumnType::Int64),
        column(2, "b", ColumnType::Text),
    ];
    vec![
        CatalogChange::Table(TableMeta {
            id: TABLE,
            name: "t".into(),
            schemas: vec![(0, TableSchema { version: 1, columns, key: vec![ColumnId(0)] })],
            valid_declared: true,
            system_declared: true,
            valid_axis: Default::default(),
            system_axis: Default::default(),
            tracked: None,
        }),
        CatalogChange::Stream(Stream { id: StreamId(0), name: "s".into() }),
        CatalogChange::Origin(Origin { id: OriginId(0), stream: StreamId(0), file: None, path: None }),
    ]
}

/// Commit `seq` at system times `1000 * seq` and on, of all keys, with values that do not compress away.
fn commit(engine: &Engine, seq: u64) {
    let mut block = RowBlock { table: TABLE, ..RowBlock::default() };
    for n in 0..KEYS {
        let head = EventHead {
            full: true,
            valid_from: Some(n % 500),
            system: Some(1000 * seq as i64 + n % 10),
            ..EventHead::new(Op::Upsert, OriginId(0), seq << 32 | n as u64)
        };
        let mixed = (n as u64 ^ seq << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 1;
        let text = format!("{mixed:x}");
        let cells = [
            (ColumnId(0), Cell::Int(n)),
            (ColumnId(1), Cell::Int(mixed as i64)),
            (ColumnId(2), Cell::Text(&text)),
        ];
        encode_row(&mut block.bytes, &head, &cells);
        block.ends.push(block.bytes.len() as u32);
    }
    let catalog = if seq == 1 { catalog() } else { Vec::new() };
    engine.commit(CommitRequest { catalog, blocks: vec![block], ..CommitRequest::default() }).unwrap();
}

fn open(disk: &SimDisk, column_cache_bytes: usize) -> Engine {
    let options = EngineOptions { background: false, column_cache_bytes, ..EngineOptions::default() };
    Engine::open_with(Path::new("/store"), OpenMode::Create, options, components(disk)).unwrap()
}

/// A store of [`RUNS`] flushed runs and a commit in memory.
fn store(disk: &SimDisk, column_cache_bytes: usize) -> Engine {
    let engine = open(disk, column_cache_bytes);
    for seq in 1..=RUNS + 1 {
        commit(&engine, seq);
        if seq <= RUNS {
            engine.flush().unwrap();
        }
    }
    engine
}

fn request(snapshot: &Snapshot, system: i64, projection: &[u32]) -> ScanRequest {
    ScanRequest {
        table: TABLE,
        kind: ScanKind::Rows { valid: FOREVER, system },
        commit: snapshot.commit(),
        schema: Arc::new(snapshot.catalog().tables[&TABLE].schema().clone()),
        projection: projection.iter().map(|c| ColumnId(*c)).collect(),
        keys: KeyFilter::All,
        partitions: 2,
        rows_per_key_max: 10,
    }
}

/// The rows of an answer and what was counted.
fn ask(snapshot: &Snapshot, request: &ScanRequest) -> (usize, ScanFigures) {
    let counts = Arc::new(ScanCounts::default());
    let streams = snapshot.scan_counted(request, &counts).unwrap();
    let rows = streams.into_iter().flatten().map(|b| b.unwrap().num_rows()).sum();
    (rows, counts.figures().expect("a question has begun"))
}

#[test]
fn runs_whose_events_are_all_too_late_are_pruned() {
    let disk = SimDisk::new();
    let snapshot = store(&disk, 0).pin();
    let keys = KEYS as u64;
    let (rows, f) = ask(&snapshot, &request(&snapshot, FOREVER, &[]));
    assert_eq!(rows as u64, keys);
    assert_eq!((f.runs_read, f.runs_pruned), (RUNS, 0), "{f:?}");
    assert_eq!((f.row_groups_read, f.row_groups_pruned), (RUNS, 0), "{f:?}");
    assert_eq!((f.events_read, f.memory_events, f.events_pruned), (RUNS * keys, keys, 0), "{f:?}");
    let (rows, f) = ask(&snapshot, &request(&snapshot, 1999, &[1]));
    assert_eq!(rows as u64, keys);
    assert_eq!((f.runs_read, f.runs_pruned), (1, RUNS - 1), "{f:?}");
    assert_eq!((f.row_groups_read, f.row_groups_pruned), (1, RUNS - 1), "{f:?}");
    assert_eq!((f.events_read, f.memory_events, f.events_pruned), (keys, 0, RUNS * keys), "{f:?}");
    let (rows, f) = ask(&snapshot, &request(&snapshot, 10, &[1]));
    assert_eq!((rows, f.runs_read, f.events_read, f.bytes_read, f.memory_events), (0, 0, 0, 0, 0), "{f:?}");
    assert_eq!(f.events_pruned, (RUNS + 1) * keys);
}

#[test]
fn bytes_are_those_of_the_columns_that_are_asked_for() {
    let disk = SimDisk::new();
    let engine = store(&disk, 0);
    engine.compact().unwrap();
    let snapshot = engine.pin();
    // Streams may each read the dictionary of a column.
    let request =
        |projection: &[u32]| ScanRequest { partitions: 1, ..request(&snapshot, FOREVER, projection) };
    let bytes = |projection: &[u32]| ask(&snapshot, &request(projection)).1.bytes_read;
    // Footers and indexes are read once.
    bytes(&[]);
    let (none, one, both) = (bytes(&[]), bytes(&[1]), bytes(&[1, 2]));
    let events = (RUNS + 1) * KEYS as u64;
    assert!(none > 0 && none < events, "counting reads no values: {none}");
    assert!(one > none + 7 * events && one < none + 9 * events, "one column of numbers: {none}, {one}");
    assert!(both > one + 7 * events, "and one of texts: {one}, {both}");
    let f = ask(&snapshot, &request(&[1])).1;
    assert_eq!((f.runs_read, f.runs_pruned, f.bytes_kept), (1, 0, 0), "{f:?}");
    let all = engine.status().unwrap().tables[0].run_bytes;
    assert_eq!(f.bytes_read + f.bytes_pruned, all, "what is not read is pruned: {f:?}");
}

#[test]
fn columns_that_are_at_hand_are_not_read_again() {
    let disk = SimDisk::new();
    let engine = store(&disk, 64 << 20);
    engine.compact().unwrap();
    let snapshot = engine.pin();
    let first = ask(&snapshot, &request(&snapshot, FOREVER, &[1])).1;
    let second = ask(&snapshot, &request(&snapshot, FOREVER, &[1])).1;
    assert!(first.bytes_read > 0 && first.bytes_kept == 0, "{first:?}");
    assert!(second.bytes_read == 0 && second.bytes_kept > first.bytes_read / 2, "{second:?}");
    assert_eq!(first.events_read, second.events_read);
}

#[test]
fn a_key_is_looked_up_in_a_few_pages() {
    let disk = SimDisk::new();
    let engine = store(&disk, 0);
    let keys = || KeyFilter::Keys(vec![key_bytes([&Cell::Int(7)])]);
    for runs in [RUNS, 1] {
        let snapshot = engine.pin();
        let memory = if runs == 1 { 0 } else { 1 };
        let one = ScanRequest { keys: keys(), ..request(&snapshot, FOREVER, &[1]) };
        ask(&snapshot, &one);
        let (rows, f) = ask(&snapshot, &one);
        assert_eq!((rows, f.runs_read, f.memory_events), (1, runs, memory), "{f:?}");
        assert_eq!(f.events_read + f.memory_events, RUNS + 1, "its own events: {f:?}");
        assert_eq!(f.events_pruned, (RUNS + 1) * (KEYS as u64 - 1), "{f:?}");
        assert!(f.bytes_read > 0 && f.bytes_read < 100_000, "{f:?}");
        let other = ScanRequest { keys: KeyFilter::Keys(vec![key_bytes([&Cell::Int(-1)])]), ..one };
        let (rows, f) = ask(&snapshot, &other);
        assert_eq!((rows, f.runs_read, f.runs_pruned, f.events_read), (0, 0, runs, 0), "{f:?}");
        engine.compact().unwrap();
    }
}

#[test]
fn point_questions_add_up() {
    let disk = SimDisk::new();
    let snapshot = store(&disk, 0).pin();
    let counts = Arc::new(ScanCounts::default());
    let bounds = Bounds { valid: FOREVER, system: 1999, commit: snapshot.commit() };
    for keys in [0..1, 1..3] {
        let requests: Vec<_> =
            keys.map(|k| PointRequest { key: key_bytes([&Cell::Int(k)]), bounds }).collect();
        snapshot.points_counted(TABLE, &requests, &[ColumnId(1)], &counts).unwrap();
    }
    let f = counts.figures().expect("questions have begun");
    // A question alone passes over what is all too late.
    assert_eq!((f.events_read, f.memory_events), (1 + 2 * RUNS, 2), "{f:?}");
    assert_eq!((f.runs_read, f.runs_pruned), (RUNS, 0), "{f:?}");
}
