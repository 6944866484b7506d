//! Scans at a point over all keys, which follow a tape of the sources' order, show the same rows as those
//! that are told every key and merge by key.

use crate::table::{TABLE, components, options};
use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
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

const KEYS: u64 = 14_000;
const COMMITS: u64 = 6;
/// More events than a part of the order that is followed at once has.
const HOT_EVENTS: u64 = 33_000;
/// Times are few, so that events of one key often have the same ones in different sources.
const TIMES: u64 = 12;

/// Keys of which every second begins with more bytes than are compared at first.
fn key(n: u64) -> String {
    if n.is_multiple_of(2) { format!("{n}x") } else { format!("a long beginning, then {n}x") }
}

/// A fixed sequence of numbers without a pattern.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn catalog() -> Vec<CatalogChange> {
    let column = |i, name: &str, ty| Column { id: ColumnId(i), name: name.into(), ty, declared: false };
    let columns = vec![
        column(0, "key", ColumnType::Text),
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

/// Commit `seq`, of random events and, in the third, many of key 7. System times grow with the commits.
fn commit(engine: &Engine, numbers: &mut Numbers, seq: u64) {
    let mut block = RowBlock { table: TABLE, ..RowBlock::default() };
    let hot = if seq == 3 { HOT_EVENTS } else { 0 };
    for n in 0..6_000 + hot {
        let key = key(if n < hot { 7 } else { numbers.below(KEYS) });
        let op = if numbers.below(6) == 0 { Op::Delete } else { Op::Upsert };
        let full = numbers.below(4) == 0;
        let head = EventHead {
            full,
            valid_from: Some(numbers.below(TIMES) as i64),
            system: Some((seq + numbers.below(TIMES)) as i64),
            ..EventHead::new(op, OriginId(0), seq << 32 | n)
        };
        let text = format!("b{}", numbers.below(1_000));
        let mut cells = vec![(ColumnId(0), Cell::Text(&key))];
        if full || numbers.below(2) == 0 {
            cells.push((ColumnId(1), Cell::Int((seq << 32 | n) as i64)));
        }
        if full || numbers.below(2) == 0 {
            cells.push((ColumnId(2), Cell::Text(&text)));
        }
        encode_row(&mut block.bytes, &head, &cells);
        block.ends.push(block.bytes.len() as u32);
    }
    let catalog = if seq == 1 { catalog() } else { Vec::new() };
    let request = CommitRequest { catalog, blocks: vec![block], ..CommitRequest::default() };
    engine.commit(request).expect("a commit");
}

/// Rows as text, sorted.
fn shown(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        let options = FormatOptions::default().with_null("NULL");
        let columns: Vec<_> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).expect("a format")).collect();
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join(","));
        }
    }
    rows.sort();
    rows
}

fn ask(snapshot: &Snapshot, request: &ScanRequest) -> Vec<String> {
    let streams = snapshot.scan(request).expect("a scan");
    let batches: Vec<_> = streams.into_iter().flatten().map(|b| b.expect("a batch")).collect();
    shown(&batches)
}

fn request(snapshot: &Snapshot, projection: &[u32], partitions: usize) -> ScanRequest {
    ScanRequest {
        table: TABLE,
        kind: ScanKind::Rows { valid: FOREVER, system: FOREVER },
        commit: snapshot.commit(),
        schema: Arc::new(snapshot.catalog().tables[&TABLE].schema().clone()),
        projection: projection.iter().map(|c| ColumnId(*c)).collect(),
        keys: KeyFilter::All,
        partitions,
        rows_per_key_max: 10,
    }
}

/// Compares every kind of question of one view.
fn check(engine: &Engine, state: &str) {
    let snapshot = engine.pin();
    let keys = KeyFilter::Keys((0..KEYS).map(|k| key_bytes([&Cell::Text(&key(k))])).collect());
    for (partitions, commit) in [(1, 1), (2, 3), (3, COMMITS)] {
        for (valid, system) in [(-1, 5), (3, 2), (FOREVER, 4), (5, 9), (FOREVER, FOREVER), (4, FOREVER)] {
            for projection in [&[][..], &[1], &[2, 0, 1]] {
                let mut request = request(&snapshot, projection, partitions);
                request.kind = ScanKind::Rows { valid, system };
                request.commit = asofdb_storage::time::CommitSeq(commit);
                let found = ask(&snapshot, &request);
                request.keys = keys.clone();
                let at = format!("{state}, commit {commit}, {valid}, {system}, columns {projection:?}");
                let expected = ask(&snapshot, &request);
                assert_eq!(found.len(), expected.len(), "{at}");
                assert!(found == expected, "{at}");
                assert_eq!(found.is_empty(), valid < 0, "{at}");
            }
        }
    }
}

#[test]
fn a_fold_of_all_keys_shows_what_a_walk_over_every_key_does() {
    let disk = SimDisk::new();
    let open =
        || Engine::open_with(Path::new("/store"), OpenMode::Create, options(1 << 20), components(&disk));
    let engine = open().expect("a store");
    let mut numbers = Numbers(1);
    for seq in 1..=COMMITS {
        commit(&engine, &mut numbers, seq);
        match seq {
            2 => assert_eq!(engine.compact().expect("a run of Parquet"), 1),
            3 | 4 => engine.flush().expect("a flushed run"),
            _ => {}
        }
    }
    assert_eq!(engine.status().expect("status").tables[0].runs, 3);
    check(&engine, "runs of both kinds and memory");
    engine.compact().expect("a merge");
    check(&engine, "one run");
}

/// Compares prepared look-ups of some keys, the hot one among them, with a walk over every key.
fn check_look_ups(engine: &Engine, state: &str) {
    let snapshot = engine.pin();
    let columns = [2, 0, 1].map(ColumnId);
    let prepared = snapshot.look_up(TABLE, &columns).expect("a look-up");
    let keys = || (0..KEYS + 50).filter(|k| *k == 7 || k % 23 == 0).map(key);
    for commit in [1, 3, COMMITS] {
        for (valid, system) in [(-1, 5), (3, 2), (FOREVER, 4), (0, 9), (FOREVER, FOREVER), (4, FOREVER)] {
            let at = format!("{state}, commit {commit}, {valid}, {system}");
            let mut request = request(&snapshot, &[2, 0, 1], 1);
            request.kind = ScanKind::Rows { valid, system };
            request.commit = asofdb_storage::time::CommitSeq(commit);
            request.keys = KeyFilter::Keys(keys().map(|k| key_bytes([&Cell::Text(&k)])).collect());
            let bounds = Bounds { valid, system, commit: request.commit };
            let found = keys().filter_map(|k| {
                let row = prepared.get(&key_bytes([&Cell::Text(&k)]), bounds).expect("a look-up");
                assert!(row.iter().all(|row| row.schema() == *prepared.schema()), "{at}");
                row
            });
            assert_eq!(shown(&found.collect::<Vec<_>>()), ask(&snapshot, &request), "{at}");
        }
    }
}

/// Events of runs that are read for the row of the hot key.
fn events_read(snapshot: &Snapshot, bounds: Bounds) -> u64 {
    let counts = Arc::new(ScanCounts::default());
    let request = PointRequest { key: key_bytes([&Cell::Text(&key(7))]), bounds };
    snapshot.points_counted(TABLE, &[request], &[ColumnId(1)], &counts).expect("an answer");
    counts.figures().expect("figures").events_read
}

#[test]
fn a_key_that_is_looked_up_shows_what_a_walk_over_every_key_does() {
    let disk = SimDisk::new();
    let options = EngineOptions { index: false, ..options(1 << 20) };
    let engine = Engine::open_with(Path::new("/store"), OpenMode::Create, options, components(&disk));
    let engine = engine.expect("a store");
    let mut numbers = Numbers(3);
    for seq in 1..=COMMITS {
        commit(&engine, &mut numbers, seq);
        match seq {
            2 => assert_eq!(engine.compact().expect("a run of Parquet"), 1),
            3 | 4 => engine.flush().expect("a flushed run"),
            _ => {}
        }
    }
    check_look_ups(&engine, "runs of both kinds and memory");
    engine.compact().expect("a merge");
    check_look_ups(&engine, "one run");
    let snapshot = engine.pin();
    for valid in [0, 5, TIMES as i64 - 2, FOREVER] {
        let read = events_read(&snapshot, Bounds { valid, ..Bounds::latest(snapshot.commit()) });
        assert!((1..1_000).contains(&read), "{read} of {HOT_EVENTS} events at {valid}");
    }
}

#[test]
fn a_scan_that_is_given_up_leaves_no_order_behind() {
    let disk = SimDisk::new();
    let engine =
        Engine::open_with(Path::new("/store"), OpenMode::Create, options(1 << 20), components(&disk));
    let engine = engine.expect("a store");
    let mut numbers = Numbers(2);
    for seq in 1..=4 {
        commit(&engine, &mut numbers, seq);
    }
    let snapshot = engine.pin();
    let request = request(&snapshot, &[0, 1], 1);
    let mut stream = snapshot.scan(&request).expect("a scan").remove(0);
    assert!(stream.next().is_some_and(|b| b.is_ok_and(|b| b.num_rows() > 0)), "a first batch");
    drop(stream);
    let found = ask(&snapshot, &request);
    assert_eq!(found, ask(&snapshot, &request), "the order that was found out is followed");
    engine.compact().expect("a merge");
    let merged = engine.pin();
    assert_eq!(found, ask(&merged, &ScanRequest { commit: merged.commit(), ..request }));
}
