//! A model's changes in a real engine, on a simulated disk.

use crate::hook::HookDisk;
use arrow::array::{Array, AsArray, BinaryArray, RecordBatch};
use arrow::datatypes::Int64Type;
use asofdb_storage::clock::{ManualClock, SeededEntropy};
use asofdb_storage::disk::SimDisk;
use asofdb_storage::engine::*;
use asofdb_storage::event::{EventHead, Op, encode_row};
use asofdb_storage::id::{ColumnId, OriginId, SourceId, StreamId, TableId};
use asofdb_storage::key::key_bytes;
use asofdb_storage::schema::{Column, TableMeta, TableSchema};
use asofdb_storage::time::{CommitSeq, FOREVER};
use asofdb_storage::value::{Cell, ColumnType};
use asofdb_testkit::{Act, Cell as ModelCell, Change, Model, Object, Rectangle};
use std::path::Path;
use std::sync::Arc;

pub const TABLE: TableId = TableId(1);

/// An interval row as the engine shows it: key, the four times, the columns.
pub type Shown = (i64, [i64; 4], Vec<Option<i64>>);

pub fn components(disk: &SimDisk) -> Components {
    Components {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(ManualClock::new(1_000_000)),
        entropy: Arc::new(SeededEntropy::new(7)),
        command: "test".into(),
    }
}

pub fn options(memory_events_max: usize) -> EngineOptions {
    // Some of what is flushed is encoded, some is not.
    let encoded_rows_min = memory_events_max + 1;
    let usual = EngineOptions { shrink_bytes_min: 0, ..EngineOptions::default() };
    EngineOptions { memory_events_max, encoded_rows_min, background: false, index: true, ..usual }
}

pub fn open(disk: &SimDisk) -> Result<Engine, Error> {
    Engine::open_with(Path::new("/store"), OpenMode::Create, options(3), components(disk))
}

/// Opens a store on a disk with a hook.
pub fn open_hooked(disk: &HookDisk, mode: OpenMode, options: EngineOptions) -> Result<Engine, Error> {
    let components = Components { disk: Arc::new(disk.clone()), ..components(&disk.disk) };
    Engine::open_with(Path::new("/store"), mode, options, components)
}

fn catalog(model: &Model, streams: u32) -> Vec<CatalogChange> {
    let column = |i: u32, name: String, ty| Column { id: ColumnId(i), name, ty, declared: false };
    let is_object = |c: &ModelCell| matches!(c, ModelCell::Object(_) | ModelCell::Leaves(_));
    let nested = model.changes.iter().any(|c| c.cells.values().any(is_object));
    let ty = if nested { ColumnType::Json } else { ColumnType::Int64 };
    let mut columns = vec![column(0, "key".into(), ColumnType::Int64)];
    columns.extend((0..model.columns).map(|c| column(c + 1, format!("c{c}"), ty)));
    let mut changes = vec![CatalogChange::Table(TableMeta {
        id: TABLE,
        name: "t".into(),
        schemas: vec![(0, TableSchema { version: 1, columns, key: vec![ColumnId(0)] })],
        valid_declared: true,
        system_declared: model.system_declared,
        valid_axis: Default::default(),
        system_axis: Default::default(),
        tracked: None,
    })];
    for i in 0..streams {
        changes.push(CatalogChange::Stream(Stream { id: StreamId(i), name: format!("s{i}") }));
        let origin = Origin { id: OriginId(i), stream: StreamId(i), file: None, path: None };
        changes.push(CatalogChange::Origin(origin));
    }
    for i in 1..=2 {
        let server = Some(format!("server{i}"));
        changes.push(CatalogChange::Source(SourceInfo { id: SourceId(i), server, ..SourceInfo::default() }));
    }
    changes
}

fn encode(block: &mut RowBlock, change: &Change) {
    let op = match change.act {
        Act::Upsert => Op::Upsert,
        Act::Delete => Op::Delete,
        Act::Truncate => Op::Truncate,
    };
    let (tie, token) = (change.tie.map(|t| [t]), change.log.map(|(_, t)| [t + 1]));
    let previous = change.previous.map(|k| [Cell::Int(k as i64)]);
    let head = EventHead {
        full: change.full,
        valid_from: Some(change.valid),
        valid_to: change.valid_to.unwrap_or(FOREVER),
        system: Some(change.system),
        ties: tie.as_ref().map_or(&[], |t| t),
        source: SourceId(change.log.map_or(0, |(server, _)| server)),
        token: token.as_ref().map_or(&[], |t| t),
        previous: previous.as_ref().map(|p| &p[..]),
        previous_deleted: change.previous_deleted,
        ..EventHead::new(op, OriginId(change.stream), change.position)
    };
    let object = |cell: &ModelCell| match cell {
        ModelCell::Object(object) | ModelCell::Leaves(object) => object.text(),
        _ => String::new(),
    };
    let objects: Vec<String> = change.cells.values().map(object).collect();
    let mut cells = vec![(ColumnId(0), Cell::Int(change.key as i64))];
    for ((column, cell), text) in change.cells.iter().zip(&objects) {
        let cell = match cell {
            ModelCell::Null => Cell::Null,
            ModelCell::Unknown => Cell::Unknown,
            ModelCell::Int(v) => Cell::Int(*v),
            ModelCell::Object(_) => Cell::Json(text),
            ModelCell::Leaves(_) => Cell::Leaves(text),
        };
        cells.push((ColumnId(column + 1), cell));
    }
    if change.act == Act::Truncate {
        cells.clear();
    }
    encode_row(&mut block.bytes, &head, &cells);
    block.ends.push(block.bytes.len() as u32);
}

/// The commit with number `seq` of a model.
pub fn commit_of(model: &Model, seq: u64) -> CommitRequest {
    let mut block = RowBlock { table: TABLE, ..RowBlock::default() };
    model.changes.iter().filter(|c| c.commit == seq).for_each(|c| encode(&mut block, c));
    let catalog = if seq == 1 { catalog(model, 3) } else { Vec::new() };
    CommitRequest { catalog, blocks: vec![block], ..CommitRequest::default() }
}

/// A key that is in no model.
pub const EXTRA_KEY: i64 = 1_000_000;

/// A commit with one more event, of a key that is in no model.
pub fn extra_commit(model: &Model, seq: u64) -> CommitRequest {
    let mut block = RowBlock { table: TABLE, ..RowBlock::default() };
    let mut change = Change::upsert(EXTRA_KEY as u32, 1, 1, &[(0, seq as i64)]);
    (change.position, change.commit) = (model.changes.len() as u64 + seq, seq);
    encode(&mut block, &change);
    CommitRequest { blocks: vec![block], ..CommitRequest::default() }
}

fn request(snapshot: &Snapshot, kind: ScanKind, commit: u64) -> ScanRequest {
    let meta = &snapshot.catalog().tables[&TABLE];
    ScanRequest {
        table: TABLE,
        kind,
        commit: CommitSeq(commit),
        schema: Arc::new(meta.schema().clone()),
        projection: meta.schema().columns.iter().map(|c| c.id).collect(),
        keys: KeyFilter::All,
        partitions: 2,
        rows_per_key_max: 100_000,
    }
}

fn scan(snapshot: &Snapshot, kind: ScanKind, commit: u64) -> Vec<RecordBatch> {
    try_scan(snapshot, kind, commit).expect("a scan")
}

fn try_scan(snapshot: &Snapshot, kind: ScanKind, commit: u64) -> Result<Vec<RecordBatch>, Error> {
    let streams = snapshot.scan(&request(snapshot, kind, commit))?;
    streams.into_iter().flatten().collect()
}

/// A value of a column of JSON as the model shows it; an object has the very text of its code.
fn of_text(text: &str) -> i64 {
    if !text.starts_with('{') {
        return text.parse().expect("a number");
    }
    let code = Object::of(text).code();
    assert_eq!(Object::text_of(code).as_deref(), Some(text), "the text of an object");
    code
}

fn ints(batch: &RecordBatch, columns: std::ops::Range<usize>, row: usize) -> Vec<Option<i64>> {
    let value = |c: usize| {
        let array = batch.column(c);
        let Some(texts) = array.as_string_opt::<i32>() else {
            let numbers = array.as_primitive::<Int64Type>();
            return array.is_valid(row).then(|| numbers.value(row));
        };
        array.is_valid(row).then(|| of_text(texts.value(row)))
    };
    columns.map(value).collect()
}

/// Rows at a point, by key: key and columns.
pub fn rows(
    snapshot: &Snapshot,
    columns: usize,
    valid: i64,
    system: i64,
    commit: u64,
) -> Vec<Vec<Option<i64>>> {
    let mut found = Vec::new();
    for batch in scan(snapshot, ScanKind::Rows { valid, system }, commit) {
        found.extend((0..batch.num_rows()).map(|row| ints(&batch, 0..columns + 1, row)));
    }
    found.sort();
    found
}

/// The latest rows, or the error of reading them.
pub fn try_latest(snapshot: &Snapshot, columns: usize) -> Result<Vec<Vec<Option<i64>>>, Error> {
    let kind = ScanKind::Rows { valid: FOREVER, system: FOREVER };
    let batches = try_scan(snapshot, kind, snapshot.commit().0)?;
    let shown =
        |batch: &RecordBatch| (0..batch.num_rows()).map(|row| ints(batch, 0..columns + 1, row)).collect();
    let mut found: Vec<_> = batches.iter().flat_map(|b| -> Vec<_> { shown(b) }).collect();
    found.sort();
    Ok(found)
}

/// The same through point look-ups of each key.
pub fn looked_up(snapshot: &Snapshot, keys: &[u32], bounds: Bounds, columns: usize) -> Vec<Vec<Option<i64>>> {
    let requests: Vec<PointRequest> = keys.iter().map(|k| PointRequest { key: key(*k), bounds }).collect();
    let projection: Vec<ColumnId> = (0..=columns as u32).map(ColumnId).collect();
    let (_, batch) = snapshot.points(TABLE, &requests, &projection).expect("points");
    let mut found: Vec<_> = (0..batch.num_rows()).map(|row| ints(&batch, 0..columns + 1, row)).collect();
    let prepared = snapshot.look_up(TABLE, &projection).expect("a look-up");
    let reversed: Vec<ColumnId> = projection.iter().rev().copied().take(2).collect();
    let others = snapshot.look_up(TABLE, &reversed).expect("a look-up");
    let mut rows = found.iter();
    for key in requests.iter().map(|r| &r.key) {
        let Some(row) = prepared.get(key, bounds).expect("a row") else {
            assert!(others.get(key, bounds).expect("no row").is_none(), "{bounds:?}");
            continue;
        };
        let right = rows.next().unwrap_or_else(|| panic!("no row of {key:?} at {bounds:?}"));
        assert_eq!(&ints(&row, 0..columns + 1, 0), right, "{bounds:?}");
        let row = others.get(key, bounds).expect("a row").expect("the same row");
        let right: Vec<_> = right.iter().rev().copied().take(2).collect();
        assert_eq!(ints(&row, 0..row.num_columns(), 0), right, "{bounds:?}");
    }
    assert_eq!(rows.next(), None, "{bounds:?}");
    found.sort();
    found
}

/// The answers to questions about keys, through passes of which each answers `piece` of them; all keys are
/// looked up if `singles`, else none.
pub fn passed(
    snapshot: &Snapshot,
    questions: &[(u32, Bounds)],
    piece: usize,
    singles: bool,
    columns: usize,
) -> Vec<Option<Vec<Option<i64>>>> {
    let mut sorted: Vec<_> = questions.iter().enumerate().map(|(i, (k, b))| (key(*k), *b, i)).collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let projection: Vec<ColumnId> = (0..=columns as u32).map(ColumnId).collect();
    let points = snapshot.sorted_points(TABLE, &projection, None).expect("points");
    let mut points = points.looking_up(if singles { usize::MAX } else { 0 });
    let mut found = vec![None; questions.len()];
    for piece in sorted.chunks(piece) {
        let keys = BinaryArray::from_iter_values(piece.iter().map(|(key, ..)| key));
        let bounds: Vec<Bounds> = piece.iter().map(|(_, bounds, _)| *bounds).collect();
        let (numbers, batch) = points.answer(&keys, &bounds).expect("an answer");
        assert_eq!(numbers.len(), batch.num_rows(), "a row for each number");
        assert!(numbers.is_sorted_by(|a, b| a < b), "ascending: {numbers:?}");
        for (row, number) in numbers.iter().enumerate() {
            found[piece[*number as usize].2] = Some(ints(&batch, 0..columns + 1, row));
        }
    }
    found
}

fn key(key: u32) -> Vec<u8> {
    key_bytes([&Cell::Int(key as i64)])
}

/// The same through a scan of those keys.
pub fn rows_of_keys(
    snapshot: &Snapshot,
    keys: &[u32],
    bounds: Bounds,
    columns: usize,
) -> Vec<Vec<Option<i64>>> {
    let Bounds { valid, system, commit } = bounds;
    let mut request = request(snapshot, ScanKind::Rows { valid, system }, commit.0);
    request.keys = KeyFilter::Keys(keys.iter().map(|k| key_bytes([&Cell::Int(*k as i64)])).collect());
    let mut found = Vec::new();
    for batch in snapshot.scan(&request).expect("a scan").into_iter().flatten() {
        let batch = batch.expect("a batch");
        found.extend((0..batch.num_rows()).map(|row| ints(&batch, 0..columns + 1, row)));
    }
    found.sort();
    found
}

/// All interval rows.
pub fn intervals(snapshot: &Snapshot, columns: usize, commit: u64) -> Vec<Shown> {
    let mut found = Vec::new();
    for batch in scan(snapshot, ScanKind::Intervals { valid: RangeSpec::All, system: RangeSpec::All }, commit)
    {
        for row in 0..batch.num_rows() {
            let times = ints(&batch, columns + 1..columns + 5, row);
            let times: Vec<i64> = times.into_iter().flatten().collect();
            let key = ints(&batch, 0..1, row)[0].expect("a key");
            found.push((key, times.try_into().expect("four times"), ints(&batch, 1..columns + 1, row)));
        }
    }
    found.sort();
    found
}

/// What the model says of the same.
pub fn expected_intervals(model: &Model, commit: u64) -> Vec<Shown> {
    let mut found = Vec::new();
    for key in model.keys() {
        for Rectangle { valid, system, image } in model.rectangles(key, commit, None) {
            found.push((key as i64, [valid.0, valid.1, system.0, system.1], image));
        }
    }
    found.sort();
    found
}

/// What the model says of rows at a point.
pub fn expected_rows(model: &Model, valid: i64, system: i64, commit: u64) -> Vec<Vec<Option<i64>>> {
    let bounds = Bounds { valid, system, commit: CommitSeq(commit) };
    let mut rows: Vec<_> =
        model.keys().into_iter().filter_map(|key| expected_row(model, key, bounds)).collect();
    rows.sort();
    rows
}

/// What the model says of the row of a key at a point.
pub fn expected_row(model: &Model, key: u32, bounds: Bounds) -> Option<Vec<Option<i64>>> {
    let valid = (bounds.valid != FOREVER).then_some(bounds.valid);
    let image = model.row(key, valid, bounds.system, bounds.commit.0)?;
    Some(std::iter::once(Some(key as i64)).chain(image.into_values().map(ModelCell::shown)).collect())
}
