//! A model's history in a store, and what the model says of its rows.

use asofdb_storage::clock::{ManualClock, SeededEntropy};
use asofdb_storage::disk::SimDisk;
use asofdb_storage::engine::{
    CatalogChange, CommitRequest, Components, Engine, EngineOptions, OpenMode, Origin, RowBlock, SourceInfo,
    Stream,
};
use asofdb_storage::event::{EventHead, Op, encode_row};
use asofdb_storage::id::{ColumnId, OriginId, SourceId, StreamId, TableId};
use asofdb_storage::schema::{Column, TableMeta, TableSchema};
use asofdb_storage::time::FOREVER;
use asofdb_storage::value::{Cell, ColumnType};
use asofdb_testkit::{Act, Cell as ModelCell, Change, Model, Rectangle};
use std::path::Path;
use std::sync::Arc;

const TABLE: TableId = TableId(1);

/// Numbers of a row, NULL as `None`.
pub type Row = Vec<Option<i64>>;

/// A store with commits 1 to 3 of a model in table `t (key, c0, c1)`.
pub fn store_of(model: &Model) -> Engine {
    let components = Components {
        disk: Arc::new(SimDisk::new()),
        clock: Arc::new(ManualClock::new(1_000_000)),
        entropy: Arc::new(SeededEntropy::new(7)),
        command: "test".into(),
    };
    let usual = EngineOptions::default();
    let options = EngineOptions { memory_events_max: 3, encoded_rows_min: 4, background: false, ..usual };
    let engine = Engine::open_with(Path::new("/store"), OpenMode::Create, options, components).unwrap();
    for seq in 1..=3 {
        let mut block = RowBlock { table: TABLE, ..RowBlock::default() };
        model.changes.iter().filter(|c| c.commit == seq).for_each(|c| encode(&mut block, c));
        let catalog = if seq == 1 { catalog(model) } else { Vec::new() };
        engine.commit(CommitRequest { catalog, blocks: vec![block], ..CommitRequest::default() }).unwrap();
    }
    engine
}

fn catalog(model: &Model) -> Vec<CatalogChange> {
    let column =
        |i: u32, name: String| Column { id: ColumnId(i), name, ty: ColumnType::Int64, declared: false };
    let mut columns = vec![column(0, "key".into())];
    columns.extend((0..model.columns).map(|c| column(c + 1, format!("c{c}"))));
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
    for i in 0..2 {
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
    let mut cells = vec![(ColumnId(0), Cell::Int(change.key as i64))];
    cells.extend(change.cells.iter().map(|(column, cell)| {
        let cell = match cell {
            ModelCell::Null => Cell::Null,
            ModelCell::Unknown => Cell::Unknown,
            ModelCell::Int(v) => Cell::Int(*v),
            ModelCell::Object(_) | ModelCell::Leaves(_) => unreachable!("these shapes have no objects"),
        };
        (ColumnId(column + 1), cell)
    }));
    if change.act == Act::Truncate {
        cells.clear();
    }
    encode_row(&mut block.bytes, &head, &cells);
    block.ends.push(block.bytes.len() as u32);
}

/// Rows at a point, by key; `FOREVER` is the latest.
pub fn rows_at(model: &Model, valid: i64, system: i64, commit: u64) -> Vec<Row> {
    model.keys().into_iter().filter_map(|key| row_at(model, key, valid, system, commit)).collect()
}

/// The row of a key at a point.
pub fn row_at(model: &Model, key: u32, valid: i64, system: i64, commit: u64) -> Option<Row> {
    let image = model.row(key, (valid != FOREVER).then_some(valid), system, commit)?;
    Some(std::iter::once(Some(key as i64)).chain(image.into_values().map(ModelCell::shown)).collect())
}

/// Every interval row of every belief: its four times, and the row as SQL shows it, times included.
pub fn interval_rows(model: &Model, commit: u64) -> Vec<([i64; 4], Row)> {
    let of_key = |key: u32| {
        let rectangles = model.rectangles(key, commit, None).into_iter();
        rectangles.map(move |Rectangle { valid, system, image }| {
            let times = [valid.0, valid.1, system.0, system.1];
            (times, interval_row(key, image, &times))
        })
    };
    model.keys().into_iter().flat_map(of_key).collect()
}

/// A row with times after it; open ends are NULL.
pub fn interval_row(key: u32, image: Row, times: &[i64]) -> Row {
    let shown = times.iter().map(|t| (*t != FOREVER).then_some(*t));
    std::iter::once(Some(key as i64)).chain(image).chain(shown).collect()
}
