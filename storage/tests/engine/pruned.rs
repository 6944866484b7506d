//! Leaving out runs, chunks and ranges of keys changes no answer: point questions, which read all events of
//! their keys, say the same.

// A range of keys is what is meant.
#![allow(clippy::single_range_in_vec_init)]

use crate::table::{TABLE, components};
use arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};
use asofdb_storage::disk::SimDisk;
use asofdb_storage::engine::*;
use asofdb_storage::event::{EventHead, Op, encode_row};
use asofdb_storage::id::{ColumnId, OriginId, StreamId};
use asofdb_storage::key::{KeyRange, key_bytes};
use asofdb_storage::schema::{Column, TableMeta, TableSchema};
use asofdb_storage::time::{CommitSeq, FOREVER};
use asofdb_storage::value::{Cell, ColumnType};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Keys; times go up with them, so that the chunks of a run have times of their own.
const KEYS: u64 = 180_000;
const COMMITS: u64 = 3;
/// Between the times of one key and the next.
const STEP: i64 = 10;
/// The last valid time, about.
const LAST: i64 = KEYS as i64 * STEP;

/// A fixed sequence of numbers without a pattern.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn time(&mut self) -> i64 {
        self.below(LAST as u64 * 5 / 4) as i64 - LAST / 8
    }
}

/// Flushed runs are in Arrow IPC, whose chunks are smaller.
fn options() -> EngineOptions {
    EngineOptions { background: false, encoded_rows_min: usize::MAX, ..EngineOptions::default() }
}

fn catalog() -> Vec<CatalogChange> {
    let column =
        |i, name: &str| Column { id: ColumnId(i), name: name.into(), ty: ColumnType::Int64, declared: false };
    let columns = vec![column(0, "id"), column(1, "a"), column(2, "b")];
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

/// The first commit has every key once, the others some of them, a few out of their time. Facts with an end are
/// those of the keys in the middle.
fn commit(engine: &Engine, numbers: &mut Numbers, seq: u64) {
    let mut block = RowBlock { table: TABLE, ..RowBlock::default() };
    for n in 0..KEYS {
        let key = if seq == 1 { n } else { numbers.below(KEYS) };
        if seq > 1 && numbers.below(3) > 0 {
            continue;
        }
        let own = key as i64 * STEP + numbers.below(STEP as u64) as i64;
        let valid = if numbers.below(5_000) == 0 { numbers.time() } else { own + seq as i64 };
        let ends = (KEYS / 3..KEYS / 2).contains(&key) && numbers.below(4) > 0;
        let op = if seq > 1 && numbers.below(6) == 0 { Op::Delete } else { Op::Upsert };
        let full = seq == 1 || numbers.below(3) == 0;
        let head = EventHead {
            full,
            valid_from: Some(valid),
            valid_to: if ends { valid + 2 * STEP } else { FOREVER },
            system: Some(if numbers.below(5_000) == 0 { numbers.time() } else { own + 5 }),
            ..EventHead::new(op, OriginId(0), seq << 32 | n)
        };
        let mut cells = vec![(ColumnId(0), Cell::Int(key as i64))];
        if full || numbers.below(2) == 0 {
            cells.push((ColumnId(1), Cell::Int((seq << 32 | n) as i64)));
        }
        if full || numbers.below(2) == 0 {
            cells.push((ColumnId(2), Cell::Int(n as i64)));
        }
        encode_row(&mut block.bytes, &head, &cells);
        block.ends.push(block.bytes.len() as u32);
    }
    let catalog = if seq == 1 { catalog() } else { Vec::new() };
    engine.commit(CommitRequest { catalog, blocks: vec![block], ..CommitRequest::default() }).unwrap();
}

fn bytes_of(key: i64) -> Vec<u8> {
    key_bytes([&Cell::Int(key)])
}

type Row = Vec<Option<i64>>;

/// Rows of numbers, sorted.
fn rows(batches: impl IntoIterator<Item = RecordBatch>) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch.columns().iter().map(|c| c.as_primitive::<Int64Type>()).collect();
        let cell = |c: &Int64Array, i| c.is_valid(i).then(|| c.value(i));
        rows.extend((0..batch.num_rows()).map(|i| columns.iter().map(|c| cell(c, i)).collect::<Row>()));
    }
    rows.sort_unstable();
    rows
}

fn request(snapshot: &Snapshot, kind: ScanKind, commit: u64, keys: KeyFilter) -> ScanRequest {
    ScanRequest {
        table: TABLE,
        kind,
        commit: CommitSeq(commit),
        schema: Arc::new(snapshot.catalog().tables[&TABLE].schema().clone()),
        projection: [0, 2, 1].map(ColumnId).into(),
        keys,
        partitions: 2,
        rows_per_key_max: 1000,
    }
}

/// The rows of a scan and what was counted.
fn ask(snapshot: &Snapshot, request: &ScanRequest) -> (Vec<Row>, ScanFigures) {
    let counts = Arc::new(ScanCounts::default());
    let streams = snapshot.scan_counted(request, &counts).unwrap();
    assert!(streams.len() <= request.partitions, "no more streams than were asked for");
    let rows = rows(streams.into_iter().flatten().map(|b| b.unwrap()));
    (rows, counts.figures().unwrap())
}

/// The rows of the keys `keys` by point questions.
fn by_points(snapshot: &Snapshot, bounds: Bounds, keys: &[Range<i64>]) -> Vec<Row> {
    let keys = keys.iter().cloned().flatten();
    let requests: Vec<_> = keys.map(|key| PointRequest { key: bytes_of(key), bounds }).collect();
    rows([snapshot.points(TABLE, &requests, &[0, 2, 1].map(ColumnId)).unwrap().1])
}

fn ranges(keys: &[Range<i64>]) -> KeyFilter {
    KeyFilter::Ranges(
        keys.iter().map(|k| KeyRange { from: bytes_of(k.start), before: bytes_of(k.end) }).collect(),
    )
}

/// Compares random questions; returns row groups that were pruned in all.
fn check(snapshot: &Snapshot, numbers: &mut Numbers, state: &str) -> u64 {
    let mut pruned = 0;
    for n in 0..18 {
        let valid = if n % 4 == 0 { FOREVER } else { numbers.time() };
        let system = if n % 3 == 0 { FOREVER } else { numbers.time() };
        let commit = 1 + numbers.below(COMMITS);
        let bounds = Bounds { valid, system, commit: CommitSeq(commit) };
        let keys: Vec<Range<i64>> = match n % 6 {
            0 | 1 => vec![0..KEYS as i64],
            2 | 3 => {
                let (a, b) = (numbers.below(KEYS) as i64, numbers.below(KEYS) as i64);
                vec![a.min(b)..a.max(b)]
            }
            _ => {
                let start = numbers.below(KEYS / 2) as i64;
                vec![start..start + 30, start + 500..start + 9_000, KEYS as i64 + 5..KEYS as i64 + 9]
            }
        };
        let filter = if n % 6 == 0 { KeyFilter::All } else { ranges(&keys) };
        let at = format!("{state}, {n}: {bounds:?} {keys:?}");
        let kind = ScanKind::Rows { valid, system };
        let (found, figures) = ask(snapshot, &request(snapshot, kind, commit, filter));
        let expected = by_points(snapshot, bounds, &keys);
        // A scan of most keys may show the others too.
        let wanted = |row: &Row| keys.iter().any(|k| k.contains(&row[0].unwrap()));
        let found: Vec<Row> = found.into_iter().filter(wanted).collect();
        assert_eq!(found.len(), expected.len(), "{at}");
        assert!(found == expected, "{at}");
        pruned += figures.row_groups_pruned;
    }
    pruned
}

/// Interval rows and events of ranges of keys are those of all keys, the others left out.
fn check_histories(snapshot: &Snapshot, state: &str) {
    let all = RangeSpec::All;
    let keys = [3..40, KEYS as i64 / 2 - 300..KEYS as i64 / 2 + 2_000];
    let wanted = |row: &Row| keys.iter().any(|k| k.contains(&row[0].unwrap()));
    for kind in [ScanKind::Scd2, ScanKind::Intervals { valid: all, system: all }] {
        let (mut every, _) = ask(snapshot, &request(snapshot, kind, COMMITS, KeyFilter::All));
        every.retain(wanted);
        let (found, figures) = ask(snapshot, &request(snapshot, kind, COMMITS, ranges(&keys)));
        assert!(!found.is_empty() && found == every, "{state}, {kind:?}");
        assert!(figures.events_read + figures.memory_events < KEYS / 8, "{state}, {kind:?}: {figures:?}");
        let few = KeyFilter::Keys((3..40).map(bytes_of).collect());
        let (found, figures) = ask(snapshot, &request(snapshot, kind, COMMITS, few));
        every.retain(|row| keys[0].contains(&row[0].unwrap()));
        assert!(!found.is_empty() && found == every, "{state}, {kind:?} of single keys");
        assert!(figures.events_read + figures.memory_events < 200, "{state}, {kind:?}: {figures:?}");
    }
    let events = |keys| {
        let request = request(snapshot, ScanKind::History, 2, keys);
        let batches = snapshot.scan(&request).unwrap().into_iter().flatten().map(|b| b.unwrap());
        let ids = batches.map(|b| b.project(&[b.schema().index_of("id").unwrap()]).unwrap());
        rows(ids)
    };
    let mut every = events(KeyFilter::All);
    every.retain(|row| row[0].is_some_and(|id| keys.iter().any(|k| k.contains(&id))));
    assert!(events(ranges(&keys)) == every && !every.is_empty(), "{state}, events");
}

#[test]
fn what_is_pruned_makes_no_difference() {
    let disk = SimDisk::new();
    let open =
        || Engine::open_with(Path::new("/store"), OpenMode::Create, options(), components(&disk)).unwrap();
    let mut engine = open();
    let mut numbers = Numbers(3);
    for seq in 1..=COMMITS {
        commit(&engine, &mut numbers, seq);
        if seq < COMMITS {
            engine.flush().unwrap();
        }
    }
    for state in ["two runs and memory", "reopened", "compacted", "rebuilt"] {
        match state {
            "reopened" => {
                drop(engine);
                engine = open();
            }
            "compacted" => drop(engine.compact().unwrap()),
            "rebuilt" => engine.rebuild().unwrap(),
            _ => {}
        }
        let snapshot = engine.pin();
        let pruned = check(&snapshot, &mut numbers, state);
        assert!(pruned > 0, "{state}: something was pruned");
        check_histories(&snapshot, state);
    }
}

#[test]
fn chunks_whose_times_are_beyond_the_question_are_not_read() {
    let disk = SimDisk::new();
    let engine =
        Engine::open_with(Path::new("/store"), OpenMode::Create, options(), components(&disk)).unwrap();
    let mut block = RowBlock { table: TABLE, ..RowBlock::default() };
    for n in 0..KEYS {
        let time = n as i64 * STEP;
        let head = EventHead {
            full: true,
            valid_from: Some(time),
            valid_to: if n < KEYS / 2 { time + STEP } else { FOREVER },
            system: Some(2 * time),
            ..EventHead::new(Op::Upsert, OriginId(0), n)
        };
        let cells = [0, 1, 2].map(|c| (ColumnId(c), Cell::Int(n as i64)));
        encode_row(&mut block.bytes, &head, &cells);
        block.ends.push(block.bytes.len() as u32);
    }
    let commit = CommitRequest { catalog: catalog(), blocks: vec![block], ..CommitRequest::default() };
    engine.commit(commit).unwrap();
    engine.flush().unwrap();
    let snapshot = engine.pin();
    let groups = |valid, system, keys| {
        let (rows, f) = ask(&snapshot, &request(&snapshot, ScanKind::Rows { valid, system }, 1, keys));
        assert_eq!(f.row_groups_read + f.row_groups_pruned, 3);
        (rows.len() as u64, f.row_groups_read)
    };
    assert_eq!(groups(3 * LAST / 8, FOREVER, KeyFilter::All), (1, 1));
    assert_eq!(groups(5 * STEP, FOREVER, KeyFilter::All), (1, 1), "later facts are of no use");
    let known = KEYS * 7 / 10;
    let later = (known - KEYS / 2 + 1, 1);
    assert_eq!(groups(FOREVER, 2 * STEP * known as i64, KeyFilter::All), later, "nor what was known later");
    assert_eq!(groups(LAST, FOREVER, KeyFilter::All), (KEYS / 2, 2), "nor what had ended");
    let history = request(&snapshot, ScanKind::History, 1, KeyFilter::All);
    let events = snapshot.scan(&history).unwrap().into_iter().flatten().map(|b| b.unwrap().num_rows());
    assert_eq!(events.sum::<usize>() as u64, KEYS, "what had ended is history");
    let few = [7..9];
    assert_eq!(groups(7 * STEP, FOREVER, ranges(&few)), (1, 1));
    assert_eq!(groups(LAST, FOREVER, ranges(&[KEYS as i64 - 10..KEYS as i64])), (10, 1));
}

#[test]
fn touched_keys_are_those_with_events_of_the_commits_and_times() {
    let disk = SimDisk::new();
    let engine =
        Engine::open_with(Path::new("/store"), OpenMode::Create, options(), components(&disk)).unwrap();
    let mut numbers = Numbers(5);
    for seq in 1..=COMMITS {
        commit(&engine, &mut numbers, seq);
        engine.flush().unwrap();
    }
    let snapshot = engine.pin();
    let history = request(&snapshot, ScanKind::History, COMMITS, KeyFilter::All);
    let mut events = Vec::new();
    for batch in snapshot.scan(&history).unwrap().into_iter().flatten() {
        let batch = batch.unwrap();
        let column = |name| batch.column_by_name(name).unwrap();
        let (keys, commits) =
            (column("key").as_binary::<i32>(), column("commit").as_primitive::<UInt64Type>());
        let valid = column("valid_from").as_primitive::<Int64Type>();
        events.extend(
            (0..batch.num_rows()).map(|i| (keys.value(i).to_vec(), commits.value(i), valid.value(i))),
        );
    }
    let counts = Arc::new(ScanCounts::default());
    let ask = |commits, valid| {
        let asked = Touching { commits, valid, alone: true };
        let found = snapshot.touched(TABLE, &asked, &counts).unwrap();
        let found = found?;
        let wanted = events.iter().filter(|(_, c, v)| asked.commits.contains(c) && asked.valid.contains(v));
        let mut wanted: Vec<Touch> = wanted.map(|(k, c, _)| (k.clone(), CommitSeq(*c))).collect();
        wanted.sort_unstable();
        wanted.dedup();
        assert!(found == wanted, "{asked:?}");
        Some(found.len())
    };
    let all = i64::MIN..=i64::MAX;
    assert_eq!(ask(1..=COMMITS, all.clone()), None, "all of them are no less than everything");
    assert!(ask(COMMITS..=COMMITS, all.clone()).is_some_and(|n| n > 10_000));
    assert_eq!(ask(9..=9, all), Some(0));
    assert!(ask(2..=3, 1_000..=2_000).is_some_and(|n| n > 0));
}

#[test]
fn a_scan_that_is_given_up_reads_no_further() {
    let disk = SimDisk::new();
    let engine =
        Engine::open_with(Path::new("/store"), OpenMode::Create, options(), components(&disk)).unwrap();
    let mut numbers = Numbers(7);
    commit(&engine, &mut numbers, 1);
    engine.flush().unwrap();
    let snapshot = engine.pin();
    let kinds = [
        ScanKind::Rows { valid: FOREVER - 1, system: FOREVER },
        ScanKind::Scd2,
        ScanKind::Intervals { valid: RangeSpec::All, system: RangeSpec::All },
        ScanKind::History,
    ];
    for kind in kinds {
        let counts = Arc::new(ScanCounts::default());
        let mut one = request(&snapshot, kind, 1, KeyFilter::All);
        one.partitions = 1;
        let mut streams = snapshot.scan_counted(&one, &counts).unwrap();
        assert!(streams[0].next().is_some_and(|b| b.unwrap().num_rows() > 0));
        drop(streams);
        let f = counts.figures().unwrap();
        assert!(f.row_groups_read == 1 && f.events_pruned > KEYS / 2, "{kind:?}: {f:?}");
    }
}
