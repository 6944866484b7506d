//! How fast the keyed index is made and kept up, and what it saves: `index_rate DIRECTORY [EVENTS]`.
//!
//! Events are 30 % inserts, 50 % partial updates and 20 % deletes of random keys, in commits of 400,000.

use asofdb_storage::engine::*;
use asofdb_storage::event::{EventHead, Op, encode_row};
use asofdb_storage::id::{ColumnId, OriginId, StreamId, TableId};
use asofdb_storage::key::key_bytes;
use asofdb_storage::schema::{Column, TableMeta, TableSchema};
use asofdb_storage::value::{Cell, ColumnType};
use std::path::Path;
use std::time::Instant;

const TABLE: TableId = TableId(1);
const COMMIT_EVENTS: u64 = 400_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("name a directory that does not exist yet")?;
    let events: u64 = args.next().map_or(Ok(10_000_000), |n| n.parse())?;
    let keys = events * 3 / 10;
    let engine = open(Path::new(&dir), false)?;
    timed("intake, no index", events, || {
        (0..events)
            .step_by(COMMIT_EVENTS as usize)
            .try_for_each(|from| commit(&engine, from..(from + COMMIT_EVENTS).min(events), keys))
    })?;
    timed("compaction, no index", events, || engine.compact().map(|_| ()))?;
    gets(&engine, "look-ups in runs", 2_000, keys)?;
    drop(engine);
    let engine = open(Path::new(&dir), true)?;
    timed("index made", events, || engine.compact().map(|_| ()))?;
    let status = engine.status()?;
    println!(
        "{:<28} {:>9} KiB, up to commit {}",
        "index",
        status.index_bytes / 1024,
        status.tables[0].indexed
    );
    gets(&engine, "look-ups in the index", 100_000, keys)?;
    let mut at = events;
    for more in [1_000, 100_000, 1_000_000] {
        commit(&engine, at..at + more, keys)?;
        at += more;
        timed("flush and index kept up", more, || engine.flush())?;
    }
    drop(engine);
    let start = Instant::now();
    let engine = open(Path::new(&dir), true)?;
    println!("{:<28} {:>9.1} ms", "opened again", start.elapsed().as_secs_f64() * 1e3);
    gets(&engine, "look-ups in the index", 100_000, keys)?;
    let memory = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    memory.lines().filter(|l| l.starts_with("VmHWM")).for_each(|l| println!("{l}"));
    Ok(())
}

fn timed(what: &str, n: u64, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let start = Instant::now();
    work()?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{what:<28} {n:>9} events {seconds:>8.3} s {:>12.0} /s", n as f64 / seconds);
    Ok(())
}

fn open(dir: &Path, index: bool) -> Result<Engine, Error> {
    let options = EngineOptions { index, background: !index, ..EngineOptions::default() };
    Engine::open(dir, OpenMode::Create, options)
}

/// A number without a pattern.
fn mixed(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn key(n: u64) -> [Cell<'static>; 2] {
    [Cell::Text(["north", "south", "east", "west"][n as usize % 4]), Cell::Int(n as i64)]
}

fn commit(engine: &Engine, events: std::ops::Range<u64>, keys: u64) -> Result<(), Error> {
    let mut block = RowBlock { table: TABLE, ..RowBlock::default() };
    let catalog = if events.start == 0 { catalog() } else { Vec::new() };
    for i in events {
        let random = mixed(i);
        let key = key(random % keys);
        let (op, full) = match i % 10 {
            0..3 => (Op::Insert, true),
            3..8 => (Op::Update, false),
            _ => (Op::Delete, true),
        };
        let time = Some(1_700_000_000_000_000 + i as i64);
        let head = EventHead { full, valid_from: time, system: time, ..EventHead::new(op, OriginId(0), i) };
        let mut cells = vec![(ColumnId(0), key[0]), (ColumnId(1), key[1])];
        match op {
            Op::Insert => cells.extend((2..6).map(|c| (ColumnId(c), Cell::Int((random >> c) as i64)))),
            Op::Update => cells.push((ColumnId(2 + (random >> 40) as u32 % 4), Cell::Int(random as i64))),
            _ => {}
        }
        encode_row(&mut block.bytes, &head, &cells);
        block.ends.push(block.bytes.len() as u32);
    }
    engine.commit(CommitRequest { catalog, blocks: vec![block], ..CommitRequest::default() }).map(|_| ())
}

fn catalog() -> Vec<CatalogChange> {
    let names = ["region", "number", "a", "b", "c", "d"];
    let columns = names.iter().enumerate().map(|(i, name)| {
        let ty = if i == 0 { ColumnType::Text } else { ColumnType::Int64 };
        Column { id: ColumnId(i as u32), name: (*name).into(), ty, declared: false }
    });
    let key = vec![ColumnId(0), ColumnId(1)];
    vec![
        CatalogChange::Table(TableMeta {
            id: TABLE,
            name: "t".into(),
            schemas: vec![(0, TableSchema { version: 1, columns: columns.collect(), key })],
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

fn gets(engine: &Engine, what: &str, n: u64, keys: u64) -> Result<(), Error> {
    let snapshot = engine.pin();
    let bounds = Bounds::latest(snapshot.commit());
    let (start, mut found) = (Instant::now(), 0);
    for i in 0..n {
        found += u64::from(snapshot.get(TABLE, &key_bytes(&key(mixed(!i) % keys)), bounds)?.is_some());
    }
    let micros = start.elapsed().as_secs_f64() * 1e6 / n as f64;
    println!("{what:<28} {n:>9} keys   {micros:>8.1} us each, {found} rows");
    Ok(())
}
