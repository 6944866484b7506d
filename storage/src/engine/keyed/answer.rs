//! Point questions that the index answers.

use super::handle::reflected;
use crate::engine::error::Error;
use crate::engine::request::{Bounds, KeyFilter, PointRequest, ScanKind, ScanRequest};
use crate::engine::scan::{ScanCounts, SortedSource, TableScan, internal, projected_fields};
use crate::engine::shared::Shared;
use crate::engine::view::View;
use crate::event::image_column;
use crate::id::{ColumnId, TableId};
use crate::index::OpenRow;
use crate::schema::TableSchema;
use crate::value::Cell;
use arrow::array::{RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::Schema;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Keys of a scan that are looked up; more are a scan.
const SCAN_KEYS_MAX: usize = 1024;

impl Shared {
    /// The rows that the index knows to be the answers; `None` for questions that are to be answered
    /// from runs and memory.
    fn known_rows(
        &self,
        view: &View,
        table: TableId,
        requests: &[PointRequest],
    ) -> Option<Vec<Option<OpenRow>>> {
        let index = self.index()?;
        let wanted = reflected(view, table)?;
        let parts = view.tables.get(&table)?;
        // A truncate in memory speaks of every key.
        if parts.truncates.iter().any(|t| t.commit > wanted.commit) {
            return None;
        }
        let memory: Vec<_> = parts.memory.iter().map(|b| b.sorted()).collect::<Result<_, _>>().ok()?;
        let keys: Vec<&[u8]> = requests.iter().map(|r| r.key.as_slice()).collect();
        let found = index.values(table, &keys).and_then(|(applied, values)| {
            let decode = |value: Option<Vec<u8>>| value.map(|v| OpenRow::decode(&v)).transpose();
            Ok((applied, values.into_iter().map(decode).collect::<Result<Vec<_>, _>>()?))
        });
        let (applied, mut rows) = match found {
            Ok(found) => found,
            Err(_) => {
                // Upkeep finds out what is wrong, or makes it again.
                self.close_index();
                self.keyed.behind.store(true, Ordering::SeqCst);
                return None;
            }
        };
        if applied != wanted {
            return None;
        }
        for (row, request) in rows.iter_mut().zip(requests) {
            let Bounds { valid, system, commit } = request.bounds;
            let in_memory =
                || memory.iter().any(|m| m.find_key(&request.key).map_or(true, |r| !r.is_empty()));
            let covered = |r: &mut OpenRow| valid >= r.valid_start && system >= r.system_start;
            *row = row.take_if(covered).filter(|_| commit.0 >= wanted.commit && !in_memory());
        }
        Some(rows)
    }

    /// See [`crate::engine::Snapshot::points`].
    pub fn points(
        &self,
        view: &View,
        table: TableId,
        requests: &[PointRequest],
        projection: &[ColumnId],
        counts: Option<&Arc<ScanCounts>>,
    ) -> Result<(Vec<u32>, RecordBatch), Error> {
        let scan = || -> Result<TableScan, Error> {
            let scan = TableScan::new(view, table)?;
            Ok(match counts {
                Some(counts) => scan.counted(counts),
                None => scan,
            })
        };
        let rows = self.known_rows(view, table, requests).unwrap_or_default();
        if rows.iter().all(Option::is_none) {
            return scan()?.points(requests, projection);
        }
        let Some(meta) = view.catalog.tables.get(&table) else {
            return scan()?.points(requests, projection);
        };
        let (mut numbers, mut known, mut others, mut rest) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (i, row) in rows.iter().enumerate() {
            match row {
                Some(row) => {
                    numbers.push(i as u32);
                    known.push(row);
                }
                None => {
                    others.push(i as u32);
                    rest.push(requests[i].clone());
                }
            }
        }
        let batch = batch_of(meta.schema(), projection, &known)?;
        if let Some(counts) = counts {
            counts.index_answered(known.len());
        }
        if rest.is_empty() {
            return Ok((numbers, batch));
        }
        let (found, more) = scan()?.points(&rest, projection)?;
        numbers.extend(found.iter().map(|i| others[*i as usize]));
        in_order(numbers, [batch, more])
    }

    /// The rows of some keys at a point, if the index knows all of them.
    pub fn scan_known(&self, view: &View, request: &ScanRequest) -> Result<Option<RecordBatch>, Error> {
        let (ScanKind::Rows { valid, system }, KeyFilter::Keys(keys)) = (request.kind, &request.keys) else {
            return Ok(None);
        };
        let latest = view.catalog.tables.get(&request.table).map(|t| t.schema());
        if keys.is_empty() || keys.len() > SCAN_KEYS_MAX || latest != Some(&*request.schema) {
            return Ok(None);
        }
        let mut keys = keys.clone();
        keys.sort_unstable();
        keys.dedup();
        let bounds = Bounds { valid, system, commit: request.commit };
        let requests: Vec<_> = keys.into_iter().map(|key| PointRequest { key, bounds }).collect();
        let rows = self.known_rows(view, request.table, &requests).unwrap_or_default();
        let known: Option<Vec<&OpenRow>> = rows.iter().map(Option::as_ref).collect();
        match known.filter(|k| !k.is_empty()) {
            Some(known) => batch_of(&request.schema, &request.projection, &known).map(Some),
            None => Ok(None),
        }
    }
}

/// Projected columns of rows.
fn batch_of(schema: &TableSchema, projection: &[ColumnId], rows: &[&OpenRow]) -> Result<RecordBatch, Error> {
    let fields = projected_fields(schema, projection)?;
    let mut columns = Vec::with_capacity(projection.len());
    for id in projection {
        let cells = rows.iter().map(|row| match row.cells.binary_search_by_key(id, |(c, _)| *c) {
            Ok(at) => row.cells[at].1.as_cell(),
            Err(_) => Cell::Null,
        });
        let ty = schema.columns[id.0 as usize].ty;
        columns.push(image_column(ty, cells).map_err(|e| internal(e.what))?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(internal)
}

/// Brings rows into the order of their questions.
fn in_order(mut numbers: Vec<u32>, batches: [RecordBatch; 2]) -> Result<(Vec<u32>, RecordBatch), Error> {
    let all = concat_batches(&batches[0].schema(), &batches).map_err(internal)?;
    let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
    order.sort_by_key(|i| numbers[*i as usize]);
    numbers.sort_unstable();
    if all.num_columns() == 0 {
        return Ok((numbers, all));
    }
    let rows = take_record_batch(&all, &UInt32Array::from(order)).map_err(internal)?;
    Ok((numbers, rows))
}
