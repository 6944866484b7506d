//! What the store has of a pulled table: the last event of a key in the stream (rule C1), and the keys of
//! all rows that there are.

use crate::change::Change;
use crate::error::{Error, ErrorKind, Result};
use crate::intake::fit::fit;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use asofdb_storage::engine::{KeyFilter, ScanKind, ScanRequest, ScanStream, Snapshot};
use asofdb_storage::event::EventColumns;
use asofdb_storage::event::columns::META_COLUMNS;
use asofdb_storage::id::ColumnId;
use asofdb_storage::key::key_bytes;
use asofdb_storage::run::cell_at;
use asofdb_storage::schema::{TableMeta, TableSchema};
use asofdb_storage::time::FOREVER;
use asofdb_storage::value::{Cell, ColumnType, Value, write_text};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The table at the commit at which the pull began.
pub(super) struct Stored {
    snapshot: Snapshot,
    meta: Arc<TableMeta>,
    schema: Arc<TableSchema>,
    /// Origins of the stream.
    origins: HashSet<u32>,
}

/// The last event of a key in the stream.
pub(super) enum Last {
    /// It ended the row.
    Ended,
    /// The row as the event left it.
    Row { batch: Arc<RecordBatch>, row: usize },
}

/// The last events of some keys.
#[derive(Default)]
pub(super) struct Lasts(HashMap<Vec<u8>, ((u64, u32), Last)>);

impl Stored {
    /// The table of that name; `None` if there is none.
    pub fn of(snapshot: Snapshot, table: &str, stream: &str) -> Option<Stored> {
        let catalog = snapshot.catalog().clone();
        let meta = catalog.table(table)?.clone();
        let schema = Arc::new(meta.schema().clone());
        let ours = |id| catalog.streams.iter().any(|s| s.id == id && s.name == stream);
        let origins = catalog.origins.iter().filter(|o| ours(o.stream)).map(|o| o.id.0).collect();
        Some(Stored { snapshot, meta, schema, origins })
    }

    pub fn meta(&self) -> &TableMeta {
        &self.meta
    }

    /// The names of the key columns, in key order.
    pub fn key(&self) -> Vec<&str> {
        self.schema.key.iter().map(|id| self.schema.columns[id.0 as usize].name.as_str()).collect()
    }

    fn scan(&self, kind: ScanKind, keys: KeyFilter, projection: Vec<ColumnId>) -> Result<Vec<ScanStream>> {
        let request = ScanRequest {
            table: self.meta.id,
            kind,
            commit: self.snapshot.commit(),
            schema: self.schema.clone(),
            projection,
            keys,
            partitions: 1,
            rows_per_key_max: usize::MAX,
        };
        Ok(self.snapshot.scan(&request)?)
    }

    /// The last events of keys in the stream.
    ///
    /// # Errors
    /// Those of the store.
    pub fn lasts(&self, mut keys: Vec<Vec<u8>>) -> Result<Lasts> {
        let mut out = Lasts::default();
        if self.origins.is_empty() || keys.is_empty() {
            return Ok(out);
        }
        // Truncates have the empty key.
        keys.push(Vec::new());
        keys.sort_unstable();
        keys.dedup();
        let all = self.schema.columns.iter().map(|c| c.id).collect();
        for batch in self.scan(ScanKind::History, KeyFilter::Keys(keys), all)?.into_iter().flatten() {
            let events = EventColumns::new(batch?)
                .map_err(|e| Error::new(ErrorKind::Damaged, format!("events of the store: {e}")))?;
            let batch = Arc::new(events.batch().clone());
            for row in (0..events.len()).filter(|i| self.origins.contains(&events.origin().value(*i))) {
                let place = (events.position().value(row), events.ordinal().value(row));
                let key = events.key().value(row);
                if out.0.get(key).is_some_and(|(known, _)| *known > place) {
                    continue;
                }
                let last = match events.operation(row).ends_row() {
                    true => Last::Ended,
                    false => Last::Row { batch: batch.clone(), row },
                };
                out.0.insert(key.to_owned(), (place, last));
            }
        }
        Ok(out)
    }

    /// Whether a change leaves the row as its predecessor left it: what it writes is there, and what a
    /// full one does not write is NULL there.
    pub fn is_same(&self, change: &Change<'_>, batch: &RecordBatch, row: usize) -> bool {
        let mut left = self.schema.columns.len();
        for column in change.image {
            match self.schema.column(column.name) {
                None if column.cell == Cell::Null => {}
                None => return false,
                Some(c) => {
                    left -= 1;
                    let stored = cell_at(batch.column(META_COLUMNS + c.id.0 as usize), c.ty, row);
                    if !is_equal(&column.cell, &stored, c.ty) {
                        return false;
                    }
                }
            }
        }
        if left == 0 || !change.full {
            return true;
        }
        let written = |name: &str| change.image.iter().any(|c| c.name == name);
        let rest = self.schema.columns.iter().filter(|c| !written(&c.name));
        let mut rest = rest.map(|c| cell_at(batch.column(META_COLUMNS + c.id.0 as usize), c.ty, row));
        rest.all(|cell| cell == Cell::Null)
    }

    /// The keys of all rows of the latest state.
    ///
    /// # Errors
    /// Those of the store.
    pub fn rows(&self) -> Result<OpenRows> {
        let streams = self.scan(ScanKind::Scd2, KeyFilter::All, self.schema.key.clone())?;
        let types = self.schema.key.iter().map(|id| self.schema.columns[id.0 as usize].ty).collect();
        Ok(OpenRows { streams, types, batch: None, next: 0 })
    }
}

impl Lasts {
    /// The last event of a key; `None` if the stream has none.
    pub fn of(&self, key: &[u8]) -> Option<&Last> {
        let cut = self.0.get(&[][..]).map(|(place, _)| *place);
        let (place, last) = self.0.get(key)?;
        Some(if cut.is_some_and(|cut| cut > *place) { &Last::Ended } else { last })
    }
}

/// Whether a new value is the stored one, whose column may have widened since: key bytes are the value,
/// however its type came to be written.
fn is_equal(new: &Cell<'_>, stored: &Cell<'_>, ty: ColumnType) -> bool {
    let new = fit(*new, ty).unwrap_or(*new);
    match stored {
        // A column of documents has other values as their text.
        Cell::Json(stored) if new != Cell::Null => {
            let mut text = String::new();
            write_text(&mut text, &new);
            text == *stored
        }
        _ => key_bytes([&new]) == key_bytes([stored]),
    }
}

/// Rows of the latest state, one after the other.
pub(super) struct OpenRows {
    streams: Vec<ScanStream>,
    types: Vec<ColumnType>,
    batch: Option<RecordBatch>,
    next: usize,
}

/// A row of the latest state.
pub(super) struct OpenRow {
    pub key: Vec<u8>,
    pub cells: Vec<Value>,
    pub valid_from: i64,
}

impl OpenRows {
    /// The next row.
    ///
    /// # Errors
    /// Those of the store.
    pub fn next(&mut self) -> Result<Option<OpenRow>> {
        loop {
            if self.batch.as_ref().is_none_or(|b| self.next == b.num_rows()) {
                let Some(stream) = self.streams.last_mut() else { return Ok(None) };
                match stream.next() {
                    Some(batch) => (self.batch, self.next) = (Some(batch?), 0),
                    None => drop(self.streams.pop()),
                }
                continue;
            }
            let Some(batch) = &self.batch else { continue };
            let (row, keys) = (self.next, self.types.len());
            self.next += 1;
            let time = |column: usize| batch.column(column).as_primitive::<Int64Type>().value(row);
            if time(keys + 1) != FOREVER {
                continue;
            }
            let cells: Vec<Cell<'_>> =
                self.types.iter().enumerate().map(|(i, ty)| cell_at(batch.column(i), *ty, row)).collect();
            let values = cells.iter().filter_map(Cell::to_value).collect();
            return Ok(Some(OpenRow { key: key_bytes(&cells), cells: values, valid_from: time(keys) }));
        }
    }
}
