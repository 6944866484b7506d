//! A store in memory for intake: keeps rows as they were encoded and folds them as plainly as can be.

use asofdb::intake::Sink;
use asofdb_storage::engine::{
    Catalog, CatalogChange, CommitInfo, CommitRequest, Error, ErrorKind, Quarantined, StoredEvent,
};
use asofdb_storage::event::{Op, RowView, content_hash};
use asofdb_storage::id::{ColumnId, OriginId, StreamId, TableId};
use asofdb_storage::key::put_key_cell;
use asofdb_storage::schema::TableSchema;
use asofdb_storage::time::{CommitSeq, FOREVER};
use asofdb_storage::timeline::{Origin, origin_ranks};
use asofdb_storage::value::{Cell, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// One stored row event.
#[derive(Clone, Debug)]
pub struct Stored {
    pub op: Op,
    pub full: bool,
    pub valid: i64,
    pub valid_to: i64,
    pub system: i64,
    pub commit: u64,
    pub ties: Vec<u8>,
    pub origin: OriginId,
    pub position: u64,
    pub ordinal: u32,
    pub token: Vec<u8>,
    pub token_ordinal: u32,
    pub operation_id: Option<Vec<u8>>,
    pub content: u64,
    pub key: Vec<u8>,
    pub previous: Option<Vec<u8>>,
    pub previous_deleted: bool,
    pub time_source: &'static str,
    /// Authored cells; `None` = a placeholder.
    pub cells: BTreeMap<u32, Option<Value>>,
}

#[derive(Default)]
pub struct State {
    pub catalog: Catalog,
    pub rows: BTreeMap<u32, Vec<Stored>>,
    pub commits: Vec<CommitInfo>,
    pub quarantine: Vec<Quarantined>,
    pub lookups: usize,
    pub fail_at: Option<u64>,
}

/// The store.
#[derive(Default)]
pub struct Memory(pub Mutex<State>);

/// A row: values by column name; `None` = unknown.
pub type Row = BTreeMap<String, Option<Value>>;

impl Memory {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn schema(&self, table: &str) -> TableSchema {
        self.state().catalog.table(table).unwrap_or_else(|| panic!("no table {table}")).schema().clone()
    }

    pub fn tables(&self) -> Vec<String> {
        self.state().catalog.tables.values().map(|t| t.name.clone()).collect()
    }

    /// All events of a table in the order of rule B3.
    pub fn events(&self, table: &str) -> Vec<Stored> {
        let state = self.state();
        let meta = state.catalog.table(table).unwrap_or_else(|| panic!("no table {table}"));
        let names: Vec<Origin<'_>> = state
            .catalog
            .origins
            .iter()
            .map(|o| Origin {
                stream_name: &state.catalog.streams[o.stream.0 as usize].name,
                stream: o.stream.0,
                path: o.file.as_deref().unwrap_or(""),
            })
            .collect();
        let ranks = origin_ranks(&names, meta.system_declared);
        let mut rows = state.rows.get(&meta.id.0).cloned().unwrap_or_default();
        let declared = meta.system_declared;
        rows.sort_by_key(|r| {
            let system = if declared { r.system } else { 0 };
            let rank = ranks[r.origin.0 as usize];
            (r.valid, r.ties.clone(), system, rank, r.position, r.ordinal)
        });
        rows
    }

    /// The row of every key at a point: rules B2, B5 and B8, without truncates across streams.
    pub fn rows_at(&self, table: &str, valid: i64, system: i64) -> Vec<Row> {
        let mut fold = Fold::default();
        let events = self.events(table);
        let known = events.iter().filter(|e| e.system <= system && e.valid <= valid);
        known.filter(|e| e.valid_to == FOREVER || valid < e.valid_to).for_each(|e| fold.apply(e));
        let schema = self.schema(table);
        fold.live.into_values().map(|image| named(image, &schema)).collect()
    }

    /// Every event with the row of its key after it.
    pub fn history(&self, table: &str) -> Vec<(Stored, Option<Row>)> {
        let schema = self.schema(table);
        let mut fold = Fold::default();
        let after = |e: Stored| {
            fold.apply(&e);
            let row = fold.live.get(&e.key).map(|image| named(image.clone(), &schema));
            (e, row)
        };
        self.events(table).into_iter().map(after).collect()
    }
}

type Image = BTreeMap<u32, Option<Value>>;

fn named(image: Image, schema: &TableSchema) -> Row {
    image.into_iter().map(|(c, v)| (schema.columns[c as usize].name.clone(), v)).collect()
}

#[derive(Default)]
struct Fold {
    live: BTreeMap<Vec<u8>, Image>,
    deleted: BTreeMap<Vec<u8>, Image>,
    keyless: usize,
}

impl Fold {
    fn apply(&mut self, e: &Stored) {
        if e.op == Op::Truncate {
            return self.live.clear();
        }
        let old = match &e.previous {
            Some(key) => {
                let deleted = self.deleted.get(key).filter(|_| e.previous_deleted).cloned();
                self.live.remove(key).or(deleted)
            }
            None => None,
        };
        if e.op == Op::Delete {
            if let Some(row) = self.live.remove(&e.key) {
                self.deleted.insert(e.key.clone(), row);
            }
            return;
        }
        let before = old.or_else(|| self.live.get(&e.key).cloned()).unwrap_or_default();
        let mut image = if e.full { BTreeMap::new() } else { before.clone() };
        for (column, cell) in &e.cells {
            let value = match cell {
                Some(value) => Some(value.clone()),
                None => before.get(column).cloned().unwrap_or(None),
            };
            image.insert(*column, value);
        }
        let mut key = e.key.clone();
        if key.is_empty() {
            // Without a key every insert is a row of its own.
            self.keyless += 1;
            key = self.keyless.to_be_bytes().to_vec();
        }
        self.live.insert(key, image);
    }
}

fn value(cell: Cell<'_>) -> Option<Value> {
    cell.to_value()
}

fn stored(row: &[u8], schema: &TableSchema, seq: u64, at: i64) -> Stored {
    let view = RowView::parse(row).expect("intake encodes rows that can be read");
    let head = &view.head;
    let cells: Vec<(ColumnId, Cell<'_>)> = view.cells().map(|c| c.unwrap()).collect();
    let mut key = Vec::new();
    if head.op != Op::Truncate {
        for id in &schema.key {
            let cell = cells.iter().find(|(c, _)| c == id).map_or(Cell::Null, |(_, c)| *c);
            assert!(cell != Cell::Null, "every row has its key");
            put_key_cell(&mut key, &cell);
        }
    }
    for (id, cell) in &cells {
        let ty = schema.columns[id.0 as usize].ty;
        assert_eq!(ty.join(cell.column_type()), ty, "values fit the schema of their commit");
    }
    Stored {
        op: head.op,
        full: head.full,
        valid: head.valid_from.unwrap_or(at),
        valid_to: head.valid_to,
        system: head.system.unwrap_or(at),
        commit: seq,
        ties: head.ties.to_vec(),
        origin: head.origin,
        position: head.position,
        ordinal: head.ordinal,
        token: head.token.to_vec(),
        token_ordinal: head.token_ordinal,
        operation_id: head.operation_id.map(<[u8]>::to_vec),
        content: content_hash(head.op, view.cell_bytes()),
        key,
        previous: view.previous.as_ref().map(asofdb_storage::key::key_bytes),
        previous_deleted: head.previous_deleted,
        time_source: head.time_source.word(),
        cells: cells.iter().map(|(id, c)| (id.0, value(*c))).collect(),
    }
}

impl Sink for Memory {
    fn catalog(&self) -> Arc<Catalog> {
        Arc::new(self.state().catalog.clone())
    }

    fn commit_at(&self) -> Option<i64> {
        self.state().commits.last().map(|c| c.at)
    }

    fn commit(&self, request: CommitRequest) -> Result<CommitInfo, Error> {
        let mut state = self.state();
        let seq = state.commits.len() as u64 + 1;
        if state.fail_at == Some(seq) {
            return Err(Error::new(ErrorKind::Io, "the disk is gone"));
        }
        // Ten years after the events of the tests, a second a commit.
        let at = 2_000_000_000_000_000 + seq as i64 * 1_000_000;
        for change in request.catalog {
            match change {
                CatalogChange::Table(mut t) => {
                    t.schemas.iter_mut().filter(|s| s.0 == 0).for_each(|s| s.0 = seq);
                    assert!(t.schemas.is_sorted_by(|a, b| a.0 < b.0 && a.1.version < b.1.version));
                    state.catalog.tables.insert(t.id, Arc::new(t));
                }
                CatalogChange::Stream(s) => {
                    assert_eq!(s.id.0 as usize, state.catalog.streams.len());
                    state.catalog.streams.push(s);
                }
                CatalogChange::Origin(o) => {
                    assert_eq!(o.id.0 as usize, state.catalog.origins.len());
                    state.catalog.origins.push(o);
                }
                CatalogChange::Source(s) => {
                    if state.catalog.sources.is_empty() {
                        state.catalog.sources.push(Default::default());
                    }
                    assert_eq!(s.id.0 as usize, state.catalog.sources.len());
                    state.catalog.sources.push(s);
                }
            }
        }
        let mut events = 0;
        for block in request.blocks {
            let schema = state.catalog.tables[&block.table].schema().clone();
            let rows: Vec<Stored> = block.rows().map(|r| stored(r, &schema, seq, at)).collect();
            events += rows.len() as u64;
            state.rows.entry(block.table.0).or_default().extend(rows);
        }
        state.catalog.positions.extend(request.positions);
        let quarantined = request.quarantine.len() as u64;
        state.quarantine.extend(request.quarantine);
        let resolved = request.resolved;
        let info = CommitInfo { seq, at, events, quarantined, resolved, note: request.note };
        state.commits.push(info.clone());
        Ok(info)
    }

    fn key_events(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Vec<StoredEvent>>, Error> {
        let mut state = self.state();
        state.lookups += 1;
        let event = |r: &Stored, op| StoredEvent {
            op,
            valid_from: r.valid,
            system: r.system,
            commit: CommitSeq(r.commit),
            stream: state.catalog.origins[r.origin.0 as usize].stream,
            origin: r.origin,
            position: r.position,
            ordinal: r.ordinal,
            token: r.token.clone(),
            token_ordinal: r.token_ordinal,
            content: (!r.token.is_empty() || r.operation_id.is_some()).then_some(r.content),
            operation_id: r.operation_id.clone(),
        };
        let rows = state.rows.get(&table.0).map_or(&[][..], Vec::as_slice);
        let of_key = |key: &Vec<u8>| {
            let own = rows.iter().filter(|r| &r.key == key).map(|r| event(r, r.op));
            let old =
                rows.iter().filter(|r| r.previous.as_ref() == Some(key)).map(|r| event(r, Op::MovedAway));
            own.chain(old).collect()
        };
        Ok(keys.iter().map(of_key).collect())
    }

    fn each_event(
        &self,
        table: TableId,
        stream: StreamId,
        take: &mut dyn FnMut((OriginId, u64, u32), i64),
    ) -> Result<(), Error> {
        let state = self.state();
        let of_stream = |r: &&Stored| state.catalog.origins[r.origin.0 as usize].stream == stream;
        let rows = state.rows.get(&table.0).map_or(&[][..], Vec::as_slice);
        rows.iter().filter(of_stream).for_each(|r| take((r.origin, r.position, r.ordinal), r.valid));
        Ok(())
    }

    fn operation_ids(&self, table: TableId) -> Result<HashMap<Vec<u8>, u64>, Error> {
        let state = self.state();
        let rows = state.rows.get(&table.0).map_or(&[][..], Vec::as_slice);
        Ok(rows.iter().filter_map(|r| Some((r.operation_id.clone()?, r.content))).collect())
    }
}
