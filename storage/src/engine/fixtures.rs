//! Small stores for the tests inside the engine.

use super::*;
use crate::clock::{ManualClock, SeededEntropy};
use crate::disk::SimDisk;
use crate::engine::shared::Shared;
use crate::event::{EventHead, Op, encode_row};
use crate::id::{ColumnId, OriginId, StreamId, TableId};
use crate::schema::{Column, TableMeta, TableSchema};
use crate::value::{Cell, ColumnType};
use std::path::Path;
use std::sync::Arc;

/// Events of one [`commit`].
pub(crate) const COMMIT_EVENTS: usize = 5;

pub(crate) fn small_memory(memory_events_max: usize, background: bool) -> EngineOptions {
    EngineOptions { memory_events_max, background, ..EngineOptions::default() }
}

/// The store on a disk, without a background thread.
pub(crate) fn open(disk: &SimDisk, options: EngineOptions) -> Shared {
    try_open(disk, options).expect("a store")
}

pub(crate) fn try_open(disk: &SimDisk, options: EngineOptions) -> Result<Shared, Error> {
    let components = Components {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(ManualClock::new(1_000_000)),
        entropy: Arc::new(SeededEntropy::new(7)),
        command: "test".into(),
    };
    Shared::open(Path::new("/store"), OpenMode::Create, options, components)
}

/// The table of [`commit`], which needs two columns for integers; the first is the key.
pub(crate) fn table(version: u32, types: &[ColumnType]) -> CatalogChange {
    let column = |(i, ty): (usize, &ColumnType)| Column {
        id: ColumnId(i as u32),
        name: format!("c{i}"),
        ty: *ty,
        declared: false,
    };
    let columns = types.iter().enumerate().map(column).collect();
    CatalogChange::Table(TableMeta {
        id: TableId(0),
        name: "t".into(),
        schemas: vec![(0, TableSchema { version, columns, key: vec![ColumnId(0)] })],
        valid_declared: true,
        system_declared: false,
        valid_axis: Default::default(),
        system_axis: Default::default(),
        tracked: None,
    })
}

/// Commits an event for each of five keys; the first commit makes the table.
pub(crate) fn commit(shared: &Shared, seq: i64) {
    try_commit(shared, seq).expect("a commit");
}

pub(crate) fn try_commit(shared: &Shared, seq: i64) -> Result<CommitInfo, Error> {
    let mut block = RowBlock::default();
    for key in 0..COMMIT_EVENTS as u64 {
        let position = seq as u64 * 10 + key;
        let head = EventHead { valid_from: Some(seq), ..EventHead::new(Op::Upsert, OriginId(0), position) };
        let head = EventHead { full: key != 2, ..head };
        let cells = [(ColumnId(0), Cell::Int(key as i64)), (ColumnId(1), Cell::Int(seq))];
        encode_row(&mut block.bytes, &head, &cells);
        block.ends.push(block.bytes.len() as u32);
    }
    let mut catalog = Vec::new();
    if seq == 1 {
        catalog.push(table(1, &[ColumnType::Int64; 2]));
        catalog.push(CatalogChange::Stream(Stream { id: StreamId(0), name: "s".into() }));
        let origin = Origin { id: OriginId(0), stream: StreamId(0), file: None, path: None };
        catalog.push(CatalogChange::Origin(origin));
    }
    let positions = vec![("source/s".to_owned(), seq.into())];
    shared.commit(CommitRequest { catalog, blocks: vec![block], positions, ..CommitRequest::default() })
}
