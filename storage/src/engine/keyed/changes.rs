//! What an index of a table has to change, in the order of keys.

use crate::engine::error::{Error, ErrorKind};
use crate::engine::request::{KeyFilter, ScanStream};
use crate::engine::runs::PassingRun;
use crate::engine::scan::{KeysOf, SortedSource, TableScan, internal};
use crate::engine::view::View;
use crate::id::{ColumnId, TableId};
use crate::index::{Applied, Change, Extent, OpenRow};
use crate::schema::TableSchema;
use crate::value::{ColumnType, Value};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// Changed keys whose rows are found in one pass over the runs.
const PASS_KEYS: usize = 65_536;
/// Changed keys that are looked up one by one, if all are not more than [`SINGLE_ROWS_MAX`].
const SINGLE_KEYS: usize = 64;
/// Rows of new runs up to which keys are looked up one by one.
const SINGLE_ROWS_MAX: u64 = 4096;
/// One of so many rows is new at most where single keys are changed; more are a new index.
const SHARE_MAX: u64 = 4;

/// The rest of the changes.
pub(crate) struct Changes {
    scan: TableScan,
    ready: VecDeque<Change>,
    source: Source,
}

enum Source {
    /// Every key's row.
    Rows(ScanStream),
    /// Keys of new runs, and how many of them to take at a time.
    Keys(KeysOf, usize),
}

/// The table with its runs only.
pub(crate) fn runs_of_table(view: &View, table: TableId, commit: u64) -> Result<TableScan, Error> {
    let mut view = view.clone();
    if let Some(parts) = view.tables.get_mut(&table) {
        let parts = Arc::make_mut(parts);
        parts.memory.clear();
        Arc::make_mut(&mut parts.truncates).retain(|t| t.commit <= commit);
    }
    TableScan::new(&view, table)
}

/// The same table, for one pass over all its runs.
pub(crate) fn passing(scan: &TableScan) -> TableScan {
    let runs = scan.parts.runs.iter().filter(|r| r.rows() > 0);
    let sources = runs.map(|r| Arc::new(PassingRun(r.clone())) as Arc<dyn SortedSource>).collect();
    TableScan { sources, ..scan.clone() }
}

impl Changes {
    /// What brings an index that reflects `from` to the runs of a view, which are those of `to`.
    pub fn new(view: &View, table: TableId, from: Applied, to: Applied) -> Result<(Changes, Extent), Error> {
        let scan = runs_of_table(view, table, to.commit)?;
        let new: Vec<_> =
            scan.sources.iter().filter(|s| s.traits().commit.1 > from.commit).cloned().collect();
        let rows = |sources: &[Arc<dyn SortedSource>]| sources.iter().map(|s| s.rows() as u64).sum::<u64>();
        let (all, changed) = (rows(&scan.sources), rows(&new));
        let truncated = scan.parts.truncates.iter().any(|t| t.commit > from.commit);
        let anew = from.commit == 0 || from.schema != to.schema || truncated || changed > all / SHARE_MAX;
        let (source, extent) = if anew {
            (Source::Rows(passing(&scan).open_rows(&KeyFilter::All)?), Extent::All)
        } else {
            let at_once = if changed <= SINGLE_ROWS_MAX { SINGLE_KEYS } else { PASS_KEYS };
            (Source::Keys(scan.keys_of(&new)?, at_once), Extent::Keys(changed))
        };
        Ok((Changes { scan, ready: VecDeque::new(), source }, extent))
    }

    /// The next change; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Change>, Error> {
        while self.ready.is_empty() {
            let schema = self.scan.meta.schema();
            match &mut self.source {
                Source::Rows(rows) => match rows.next().transpose()? {
                    Some(batch) => add_rows(&batch, schema, |k, v| self.ready.push_back((k, Some(v))))?,
                    None => return Ok(None),
                },
                Source::Keys(keys, at_once) => {
                    let keys = keys.next(*at_once)?;
                    if keys.is_empty() {
                        return Ok(None);
                    }
                    let mut found = Vec::with_capacity(keys.len());
                    for batch in self.scan.open_rows(&KeyFilter::Keys(keys.clone()))? {
                        add_rows(&batch?, schema, |k, v| found.push((k, v)))?;
                    }
                    let mut found = found.into_iter().peekable();
                    self.ready.extend(keys.into_iter().map(|key| {
                        let value = found.next_if(|(k, _)| *k == key).map(|(_, v)| v);
                        (key, value)
                    }));
                }
            }
        }
        Ok(self.ready.pop_front())
    }
}

/// Gives key and value of every row of a batch of [`TableScan::open_rows`].
pub(crate) fn add_rows(
    batch: &RecordBatch,
    schema: &TableSchema,
    mut add: impl FnMut(Vec<u8>, Vec<u8>),
) -> Result<(), Error> {
    let mut columns = batch.columns().iter();
    let shape = || Error::new(ErrorKind::Invalid, "internal error: open rows lack a column");
    let keys = columns.next().and_then(|c| c.as_binary_opt::<i32>()).ok_or_else(shape)?;
    let images: Vec<&ArrayRef> = columns.by_ref().take(schema.columns.len()).collect();
    let mut start = || columns.next().and_then(|c| c.as_primitive_opt::<Int64Type>()).ok_or_else(shape);
    let (valid_starts, system_starts) = (start()?, start()?);
    for row in 0..batch.num_rows() {
        let mut cells = Vec::with_capacity(images.len());
        for (i, (array, column)) in images.iter().zip(&schema.columns).enumerate() {
            if array.is_valid(row) {
                let value = value_at(array, column.ty, row).ok_or_else(|| internal("unexpected type"))?;
                cells.push((ColumnId(i as u32), value));
            }
        }
        let (valid_start, system_start) = (valid_starts.value(row), system_starts.value(row));
        add(keys.value(row).to_vec(), OpenRow { valid_start, system_start, cells }.encode());
    }
    Ok(())
}

/// A value of an image column that is not NULL.
fn value_at(array: &ArrayRef, ty: ColumnType, row: usize) -> Option<Value> {
    fn number<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> Option<T::Native> {
        array.as_primitive_opt::<T>().map(|a| a.value(row))
    }
    let text = || array.as_string_opt::<i32>().map(|a| a.value(row).to_owned());
    match ty {
        ColumnType::Bool => array.as_boolean_opt().map(|a| Value::Bool(a.value(row))),
        ColumnType::Int64 => number::<Int64Type>(array, row).map(Value::Int),
        ColumnType::Decimal { scale, .. } => {
            number::<Decimal128Type>(array, row).map(|unscaled| Value::Decimal { unscaled, scale })
        }
        ColumnType::Float64 => number::<Float64Type>(array, row).map(Value::Float),
        ColumnType::Date => number::<Date32Type>(array, row).map(Value::Date),
        ColumnType::Timestamp => number::<TimestampMicrosecondType>(array, row).map(Value::Timestamp),
        ColumnType::TimestampNs => number::<TimestampNanosecondType>(array, row).map(Value::TimestampNs),
        ColumnType::Instant => number::<TimestampMicrosecondType>(array, row).map(Value::Instant),
        ColumnType::Null | ColumnType::Text => text().map(Value::Text),
        ColumnType::Json => text().map(Value::Json),
        ColumnType::Bytes => array.as_binary_opt::<i32>().map(|a| Value::Bytes(a.value(row).to_vec())),
    }
}
