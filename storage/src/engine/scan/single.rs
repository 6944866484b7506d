//! Keys that are looked up one by one: of each, all its rows are read and nothing else.

use super::gather::Gather;
use super::group::{Event, Groups};
use super::lineage::Histories;
use super::loaded::Loaded;
use super::look_up::PointReader;
use super::plan::TableScan;
use super::rows::{Qualifier, pick_newest};
use crate::engine::error::Error;
use crate::engine::request::{Bounds, ScanStream};
use crate::id::ColumnId;
use crate::schema::TableSchema;
use std::sync::Arc;

/// Keys that are always looked up one by one.
const SINGLE_KEYS_MIN: usize = 64;

/// Rows that a scan passes over while one key is looked up in one source, about.
const ROWS_PER_LOOK_UP: usize = 512;

/// Keys that are looked up so that little is read of each; the rows of more are gathered together.
const FEW_KEYS: usize = 8;

/// Batches of keys that were looked up that are kept until their rows are gathered.
pub(crate) const SLOTS_MAX: usize = 1024;

/// Looks keys up in all sources of a table.
pub(crate) struct KeyReader<'a> {
    scan: &'a TableScan,
    columns: Vec<&'a str>,
    schema: &'a Arc<TableSchema>,
    pub groups: Groups,
    /// Present where some key may need more than the plain fold.
    pub histories: Option<Histories>,
}

impl<'a> KeyReader<'a> {
    pub fn new(scan: &'a TableScan, columns: &'a [String], schema: &'a Arc<TableSchema>) -> KeyReader<'a> {
        KeyReader {
            scan,
            columns: columns.iter().map(String::as_str).collect(),
            schema,
            groups: Groups::empty(scan.order.clone()),
            histories: scan.needs_histories().then(|| scan.histories(columns, schema)),
        }
    }

    /// Puts the events of a key into `events`, newest first; false if it has none.
    pub fn read(&mut self, key: &[u8], events: &mut Vec<Event>) -> Result<bool, Error> {
        let mut batches = Vec::with_capacity(self.scan.sources.len());
        for source in &self.scan.sources {
            if let Some(batch) = source.rows_of_key(key, &self.columns, self.schema)? {
                batches.push(Loaded::new(batch)?);
            }
        }
        self.groups.add_key(batches, events)?;
        Ok(!events.is_empty())
    }
}

impl TableScan {
    /// The latest schema; that of a part of the table where it has the same, which need not be copied.
    pub fn latest_schema(&self) -> Arc<TableSchema> {
        let latest = self.meta.schema();
        let runs = self.parts.runs.iter().map(|r| &r.schema);
        let parts = runs.chain(self.parts.memory.iter().map(|m| &m.schema));
        let known = parts.rev().find(|s| s.version == latest.version);
        known.cloned().unwrap_or_else(|| Arc::new(latest.clone()))
    }

    /// Rows of some keys at a point.
    pub fn rows_of_keys(
        &self,
        keys: &[Vec<u8>],
        bounds: Bounds,
        projection: &[ColumnId],
        schema: &Arc<TableSchema>,
    ) -> Result<ScanStream, Error> {
        if keys.len() > FEW_KEYS || self.needs_histories() {
            return self.gathered_rows(keys, bounds, projection, schema);
        }
        let reader = PointReader::new(self.clone(), projection, schema)?;
        let rows = keys.iter().map(|key| reader.row(key, bounds)).collect::<Result<Vec<_>, Error>>()?;
        Ok(Box::new(rows.into_iter().flatten().map(Ok)))
    }

    /// As [`TableScan::rows_of_keys`], with all that any event of a key could be needed for.
    pub fn gathered_rows(
        &self,
        keys: &[Vec<u8>],
        bounds: Bounds,
        projection: &[ColumnId],
        schema: &Arc<TableSchema>,
    ) -> Result<ScanStream, Error> {
        let qualifier = Qualifier::new(bounds, &self.traits());
        let columns = self.row_columns(projection, qualifier.columns(), true);
        let mut reader = KeyReader::new(self, &columns, schema);
        let mut gather = Gather::new(schema, projection, &[])?;
        let (mut events, mut picks, mut batches) = (Vec::new(), Vec::new(), Vec::new());
        for key in keys {
            if !reader.read(key, &mut events)? {
                continue;
            }
            let KeyReader { groups, histories, .. } = &mut reader;
            let copies = match histories.as_ref().filter(|h| h.needed(groups, &events)) {
                Some(h) => h.resolve(groups, &events, &bounds, projection, &mut picks, &mut gather)?,
                None => usize::from(pick_newest(groups, &events, &qualifier, projection, &mut picks)),
            };
            (0..copies).for_each(|_| gather.push(|i| picks[i]));
            if gather.is_full() || groups.slots().len() >= SLOTS_MAX {
                batches.push(gather.emit(groups.slots(), Vec::new())?);
                groups.retire();
            }
        }
        if gather.rows() > 0 {
            batches.push(gather.emit(reader.groups.slots(), Vec::new())?);
        }
        Ok(Box::new(batches.into_iter().map(Ok)))
    }

    /// Whether so many keys are best looked up one by one; more are found by passing over the keys between
    /// them.
    pub fn looks_up(&self, keys: usize) -> bool {
        let rows: usize = self.sources.iter().map(|s| s.rows()).sum();
        keys <= SINGLE_KEYS_MIN.max(rows / (ROWS_PER_LOOK_UP * self.sources.len().max(1)))
    }
}
