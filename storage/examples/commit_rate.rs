//! What many small commits cost: `commit_rate DIRECTORY [COMMITS]`.
//!
//! Every commit has one event of one of 1,000 keys.

use asofdb_storage::engine::*;
use asofdb_storage::event::{EventHead, Op, encode_row};
use asofdb_storage::id::{ColumnId, OriginId, StreamId, TableId};
use asofdb_storage::schema::{Column, TableMeta, TableSchema};
use asofdb_storage::value::{Cell, ColumnType};
use std::path::Path;
use std::time::Instant;

const TABLE: TableId = TableId(1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("name a directory that does not exist yet")?;
    let dir = Path::new(&dir);
    let commits: u64 = args.next().map_or(Ok(20_000), |n| n.parse())?;
    let engine = timed("store made", || open(dir, OpenMode::Create))?;
    timed("commits", || (0..commits).try_for_each(|n| commit(&engine, n)))?;
    drop(engine);
    timed("opened to ask", || open(dir, OpenMode::Read).map(drop))?;
    let engine = timed("opened to write", || open(dir, OpenMode::Write))?;
    timed("flush of what there is", || engine.flush())?;
    for n in commits..commits + 3 {
        commit(&engine, n)?;
        timed("flush of one commit", || engine.flush())?;
    }
    timed("compaction", || engine.compact().map(drop))?;
    drop(engine);
    let engine = timed("opened again", || open(dir, OpenMode::Write))?;
    assert_eq!(engine.pin().commits()?.len() as u64, commits + 3, "all commits are there");
    assert_eq!(engine.verify(None)?.damage, Vec::<String>::new());
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            println!("{:<28} {:>10} bytes", entry.file_name().display(), entry.metadata()?.len());
        }
    }
    Ok(())
}

fn timed<T>(what: &str, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let start = Instant::now();
    let done = work()?;
    println!("{what:<28} {:>10.1} ms", start.elapsed().as_secs_f64() * 1e3);
    Ok(done)
}

fn open(dir: &Path, mode: OpenMode) -> Result<Engine, Error> {
    Engine::open(dir, mode, EngineOptions::default())
}

fn commit(engine: &Engine, n: u64) -> Result<(), Error> {
    let mut block = RowBlock { table: TABLE, ..RowBlock::default() };
    let head = EventHead { valid_from: Some(n as i64), ..EventHead::new(Op::Upsert, OriginId(0), n) };
    let cells = [(ColumnId(0), Cell::Int(n as i64 % 1000)), (ColumnId(1), Cell::Int(n as i64))];
    encode_row(&mut block.bytes, &head, &cells);
    block.ends.push(block.bytes.len() as u32);
    let catalog = if n == 0 { catalog() } else { Vec::new() };
    engine.commit(CommitRequest { catalog, blocks: vec![block], ..CommitRequest::default() }).map(drop)
}

fn catalog() -> Vec<CatalogChange> {
    let column =
        |i, name: &str| Column { id: ColumnId(i), name: name.into(), ty: ColumnType::Int64, declared: false };
    let columns = vec![column(0, "key"), column(1, "v")];
    vec![
        CatalogChange::Table(TableMeta {
            id: TABLE,
            name: "t".into(),
            schemas: vec![(0, TableSchema { version: 1, columns, key: vec![ColumnId(0)] })],
            valid_declared: true,
            system_declared: false,
            valid_axis: Default::default(),
            system_axis: Default::default(),
            tracked: None,
        }),
        CatalogChange::Stream(Stream { id: StreamId(0), name: "s".into() }),
        CatalogChange::Origin(Origin { id: OriginId(0), stream: StreamId(0), file: None, path: None }),
    ]
}
