//! Rule B14: a column that widens shows what the source sent, in every state of the store, whatever
//! the types on the way and wherever its events stood when it widened.

use crate::table::{TABLE, components};
use arrow::array::{Array, AsArray};
use asofdb_storage::disk::SimDisk;
use asofdb_storage::engine::*;
use asofdb_storage::event::{EventHead, Op, encode_row};
use asofdb_storage::id::{ColumnId, OriginId, StreamId};
use asofdb_storage::schema::{Column, TableMeta, TableSchema};
use asofdb_storage::time::FOREVER;
use asofdb_storage::value::{Cell, ColumnType, write_json, write_text};
use std::path::Path;
use std::sync::Arc;

fn open(disk: &SimDisk, memory_events_max: usize) -> Engine {
    let encoded_rows_min = memory_events_max + 1;
    let usual = EngineOptions::default();
    let options = EngineOptions { memory_events_max, encoded_rows_min, background: false, ..usual };
    Engine::open_with(Path::new("/store"), OpenMode::Create, options, components(disk)).expect("a store")
}

/// A table of a key and one column whose type became each of `types` in turn, at commits 1, 2, ...
fn meta(types: &[ColumnType]) -> TableMeta {
    let column = |i, name: &str, ty| Column { id: ColumnId(i), name: name.into(), ty, declared: false };
    let schema = |(i, ty): (usize, &ColumnType)| {
        let columns = vec![column(0, "key", ColumnType::Int64), column(1, "v", *ty)];
        let known = if i + 1 == types.len() { 0 } else { i as u64 + 1 };
        (known, TableSchema { version: i as u32 + 1, columns, key: vec![ColumnId(0)] })
    };
    TableMeta {
        id: TABLE,
        name: "t".into(),
        schemas: types.iter().enumerate().map(schema).collect(),
        valid_declared: true,
        system_declared: false,
        valid_axis: Default::default(),
        system_axis: Default::default(),
        tracked: None,
    }
}

/// Commit `i` (from 0) widens the column to `types[i]` and writes `cells[i]` under key `i`.
pub fn commit(engine: &Engine, i: usize, types: &[ColumnType], cell: Cell<'_>) {
    let mut catalog = vec![CatalogChange::Table(meta(&types[..=i]))];
    if i == 0 {
        catalog.push(CatalogChange::Stream(Stream { id: StreamId(0), name: "s".into() }));
        let origin = Origin { id: OriginId(0), stream: StreamId(0), file: None, path: None };
        catalog.push(CatalogChange::Origin(origin));
    }
    let mut block = RowBlock { table: TABLE, ..RowBlock::default() };
    let head = EventHead { valid_from: Some(1), ..EventHead::new(Op::Insert, OriginId(0), i as u64) };
    encode_row(&mut block.bytes, &head, &[(ColumnId(0), Cell::Int(i as i64)), (ColumnId(1), cell)]);
    block.ends.push(block.bytes.len() as u32);
    engine
        .commit(CommitRequest { catalog, blocks: vec![block], ..CommitRequest::default() })
        .expect("a commit");
}

/// The column by key, as text.
pub fn values(engine: &Engine) -> Vec<Option<String>> {
    let snapshot = engine.pin();
    let schema = Arc::new(snapshot.catalog().tables[&TABLE].schema().clone());
    let request = ScanRequest {
        table: TABLE,
        kind: ScanKind::Rows { valid: FOREVER, system: FOREVER },
        commit: snapshot.commit(),
        schema,
        projection: vec![ColumnId(1)],
        keys: KeyFilter::All,
        partitions: 1,
        rows_per_key_max: 10,
    };
    let batches = snapshot.scan(&request).expect("a scan").into_iter().flatten();
    let mut found = Vec::new();
    for batch in batches {
        let batch = batch.expect("a batch");
        let column = batch.column(0).as_string::<i32>();
        found.extend((0..column.len()).map(|i| column.is_valid(i).then(|| column.value(i).to_owned())));
    }
    found
}

/// Chains of cells whose column ends as text or JSON, so that spellings show.
pub fn chains() -> Vec<Vec<Cell<'static>>> {
    let decimal = Cell::Decimal { unscaled: 510, scale: 2 };
    let wide = Cell::Decimal { unscaled: 12_345, scale: 4 };
    let (text, json) = (Cell::Text("abc"), Cell::Json("{\"a\":1}"));
    vec![
        vec![decimal, text],
        vec![decimal, json],
        vec![decimal, wide, text],
        vec![Cell::Int(5), decimal, text],
        vec![Cell::Int(5), text, json],
        vec![text, json],
        vec![Cell::Timestamp(1_000_000), text],
        vec![Cell::Instant(1_000_000), json],
        vec![Cell::Date(3), Cell::Instant(1_000_000), text],
        vec![Cell::Date(3), Cell::Timestamp(1_000_000), json],
        vec![Cell::Bool(true), text],
        vec![Cell::Float(1.5e300), json],
    ]
}

/// The types that a column goes through.
pub fn types_of(cells: &[Cell<'_>]) -> Vec<ColumnType> {
    let mut types: Vec<ColumnType> = Vec::new();
    for cell in cells {
        types.push(types.last().copied().unwrap_or(ColumnType::Null).join(cell.column_type()));
    }
    types
}

/// What it shows in the end.
pub fn shown(cells: &[Cell<'_>], types: &[ColumnType]) -> Vec<Option<String>> {
    let write = if types[types.len() - 1] == ColumnType::Json { write_json } else { write_text };
    let shown = |cell: &Cell<'_>| {
        let mut text = String::new();
        write(&mut text, cell);
        Some(text)
    };
    cells.iter().map(shown).collect()
}

#[test]
fn widened_columns_show_what_was_sent_in_every_state() {
    for cells in chains() {
        let types = types_of(&cells);
        let expected = shown(&cells, &types);
        for memory_events_max in [1, 2, 1000] {
            for reopening in [false, true] {
                let place =
                    format!("{cells:?}, {memory_events_max} events in memory, reopening: {reopening}");
                let disk = SimDisk::new();
                let mut engine = open(&disk, memory_events_max);
                for (i, cell) in cells.iter().enumerate() {
                    if reopening {
                        drop(engine);
                        engine = open(&disk, memory_events_max);
                    }
                    commit(&engine, i, &types, *cell);
                }
                assert_eq!(values(&engine), expected, "fresh: {place}");
                let lost_power = open(&disk.crash_image(0), memory_events_max);
                assert_eq!(values(&lost_power), expected, "after a power cut: {place}");
                drop(engine);
                engine = open(&disk, memory_events_max);
                assert_eq!(values(&engine), expected, "reopened: {place}");
                engine.compact().expect("compaction");
                assert_eq!(values(&engine), expected, "compacted: {place}");
                engine.rebuild().expect("a rebuild");
                assert_eq!(values(&engine), expected, "rebuilt: {place}");
                let events = engine.status().expect("status").events;
                assert_eq!(events, cells.len() as u64, "each event once: {place}");
                assert_eq!(
                    engine.verify(None).expect("verification").damage,
                    Vec::<String>::new(),
                    "{place}"
                );
            }
        }
    }
}
