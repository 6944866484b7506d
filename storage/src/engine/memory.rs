//! The memory table: what the log holds and no run does yet.
//!
//! A commit is published as row bytes; columns are decoded and sorted when somebody first needs
//! them, which is mostly the background worker.

use super::error::{Error, ErrorKind};
use super::scan::{BatchIter, RowReader, SortedSource, StoredTruncate, Traits, cast_batch, extend_batch};
use crate::event::columns::{OP_FULL, OP_LEAVES};
use crate::event::{EventColumns, FrameContext, Op, RowView, decode_rows};
use crate::id::TableId;
use crate::run::{EventOrder, sort_batch};
use crate::schema::TableSchema;
use crate::time::{CommitSeq, FOREVER};
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, max, min};
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

/// The rows of one commit for one table.
#[derive(Clone, Debug)]
pub(crate) struct CommittedRows {
    pub context: FrameContext,
    pub table: TableId,
    /// End of each row in `bytes`.
    pub ends: Vec<u32>,
    pub bytes: Bytes,
}

impl CommittedRows {
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|i| {
            let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
            &self.bytes[start..self.ends[i] as usize]
        })
    }
}

/// Some consecutive commits of one table, as a sorted source once it is needed.
#[derive(Debug)]
pub(crate) struct MemoryBatch {
    pub table: TableId,
    /// Schema whose types the columns have: that of the newest commit in the batch.
    pub schema: Arc<TableSchema>,
    /// The oldest commit in it.
    pub first: CommitSeq,
    /// The newest commit in it.
    pub commit: CommitSeq,
    /// Events (rows before key changes are split in two).
    pub events: usize,
    /// Bytes of the rows as they are logged; the columns take about twice as many.
    pub bytes: usize,
    /// Ranks by origin for sorting; wide enough for all origins of the batch.
    pub ranks: Arc<[u32]>,
    pub system_declared: bool,
    /// Taken and given up when the rows are decoded.
    rows: Mutex<Option<CommittedRows>>,
    sorted: OnceLock<Result<Arc<SortedBatch>, Error>>,
}

impl MemoryBatch {
    pub fn new(
        schema: Arc<TableSchema>,
        rows: CommittedRows,
        ranks: Arc<[u32]>,
        system_declared: bool,
    ) -> MemoryBatch {
        MemoryBatch {
            table: rows.table,
            schema,
            first: rows.context.commit,
            commit: rows.context.commit,
            events: rows.ends.len(),
            bytes: rows.bytes.len(),
            ranks,
            system_declared,
            rows: Mutex::new(Some(rows)),
            sorted: OnceLock::new(),
        }
    }

    /// One batch out of several of the same table, oldest first.
    pub fn merged(parts: &[Arc<MemoryBatch>]) -> Result<MemoryBatch, Error> {
        let last = parts.last().ok_or_else(|| Error::new(ErrorKind::Invalid, "nothing to merge"))?;
        let mut batches = Vec::with_capacity(parts.len());
        for part in parts {
            let sorted = part.sorted()?;
            batches.push(extend_batch(&sorted.plain, &part.schema, &last.schema)?);
        }
        let Some(first) = batches.first() else {
            return Err(Error::new(ErrorKind::Invalid, "nothing to merge"));
        };
        let all = concat_batches(&first.schema(), &batches).map_err(super::scan::internal)?;
        let merged = MemoryBatch {
            table: last.table,
            schema: last.schema.clone(),
            first: parts.first().map_or(last.first, |part| part.first),
            commit: last.commit,
            events: parts.iter().map(|p| p.events).sum(),
            bytes: parts.iter().map(|p| p.bytes).sum(),
            ranks: last.ranks.clone(),
            system_declared: last.system_declared,
            rows: Mutex::new(None),
            sorted: OnceLock::new(),
        };
        let sorted = merged.sort(&all)?;
        let _ = merged.sorted.set(Ok(Arc::new(sorted)));
        Ok(merged)
    }

    /// The rows as sorted columns; decodes and sorts on first use.
    pub fn sorted(&self) -> Result<Arc<SortedBatch>, Error> {
        self.sorted.get_or_init(|| self.decode().map(Arc::new)).clone()
    }

    /// Whether that was done.
    pub fn is_sorted(&self) -> bool {
        self.sorted.get().is_some()
    }

    fn decode(&self) -> Result<SortedBatch, Error> {
        let rows = self.rows.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let Some(rows) = rows else {
            return Err(Error::new(ErrorKind::Invalid, "the rows of a batch were decoded twice"));
        };
        let batch = decode_rows(rows.rows(), &self.schema, rows.context).map_err(|(i, e)| {
            let commit = rows.context.commit;
            Error::new(ErrorKind::Damaged, format!("commit {commit}, table {}, row {i}: {e}", self.table.0))
        })?;
        self.sort(&batch)
    }

    fn sort(&self, batch: &RecordBatch) -> Result<SortedBatch, Error> {
        let order = EventOrder { ranks: &self.ranks, system_declared: self.system_declared };
        let plain = sort_batch(batch, order).map_err(Error::from)?;
        SortedBatch::new(plain, self.schema.clone())
    }
}

/// The truncates among the rows of a block.
pub(crate) fn truncates_of(rows: &CommittedRows) -> Result<Vec<StoredTruncate>, Error> {
    let mut found = Vec::new();
    for row in rows.rows() {
        if row.first().is_none_or(|b| b & 0b111 != Op::Truncate as u8) {
            continue;
        }
        let view = RowView::parse(row).map_err(|e| Error::new(ErrorKind::Invalid, e.to_string()))?;
        let at = rows.context.commit_at;
        found.push(StoredTruncate {
            valid_from: view.head.valid_from.unwrap_or(at),
            ties: (!view.head.ties.is_empty()).then(|| view.head.ties.to_vec()),
            system: view.head.system.unwrap_or(at),
            origin: view.head.origin.0,
            position: view.head.position,
            ordinal: view.head.ordinal,
            commit: rows.context.commit.0,
            token: view.head.token.to_vec(),
            source: view.head.source.0,
        });
    }
    Ok(found)
}

/// Sorted columns in memory, with key numbers.
#[derive(Debug)]
pub(crate) struct SortedBatch {
    /// The physical schema, without key numbers.
    pub plain: RecordBatch,
    /// The same with key numbers, once somebody reads them.
    numbered: OnceLock<Result<RecordBatch, Error>>,
    schema: Arc<TableSchema>,
    traits: Traits,
}

impl SortedBatch {
    fn new(plain: RecordBatch, schema: Arc<TableSchema>) -> Result<SortedBatch, Error> {
        let events = EventColumns::new(plain.clone()).map_err(super::scan::internal)?;
        let traits = traits_of(&events);
        Ok(SortedBatch { plain, numbered: OnceLock::new(), schema, traits })
    }

    fn numbered(&self) -> Result<&RecordBatch, Error> {
        let number = || {
            let mut fields = self.plain.schema().fields().to_vec();
            fields.push(Arc::new(Field::new("key_no", DataType::UInt32, false)));
            let mut columns = self.plain.columns().to_vec();
            columns.push(Arc::new(key_numbers(self.key())) as ArrayRef);
            RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(super::scan::internal)
        };
        self.numbered.get_or_init(number).as_ref().map_err(Error::clone)
    }

    fn key(&self) -> &BinaryArray {
        self.plain.column(0).as_binary()
    }

    /// Some rows with some columns.
    fn part(
        &self,
        wanted: impl Fn(&String) -> bool,
        rows: Range<usize>,
        schema: &Arc<TableSchema>,
    ) -> Result<RecordBatch, Error> {
        let numbered = self.numbered()?;
        let all = numbered.schema();
        let wanted: Vec<usize> =
            all.fields().iter().enumerate().filter(|(_, f)| wanted(f.name())).map(|(i, _)| i).collect();
        let part = numbered.slice(rows.start, rows.len());
        cast_batch(&part.project(&wanted).map_err(super::scan::internal)?, &self.schema, schema)
    }
}

fn key_numbers(keys: &BinaryArray) -> UInt32Array {
    let mut number = 0;
    UInt32Array::from_iter_values((0..keys.len()).map(|i| {
        if i > 0 && keys.value(i) != keys.value(i - 1) {
            number += 1;
        }
        number
    }))
}

fn traits_of(events: &EventColumns) -> Traits {
    let span = |a: &arrow::array::Int64Array| (min(a).unwrap_or(0), max(a).unwrap_or(0));
    let commits = events.commit();
    Traits {
        valid_from: span(events.valid_from()),
        system: span(events.system()),
        commit: (min(commits).unwrap_or(0), max(commits).unwrap_or(0)),
        bounded: min(events.valid_to()).is_some_and(|end| end != FOREVER),
        partial: events.op().values().iter().any(|o| o & OP_FULL == 0)
            || events.unknown().null_count() < events.len(),
        moves: events.previous().null_count() < events.len(),
        ties: events.ties().null_count() < events.len(),
        leaves: events.op().values().iter().any(|o| o & OP_LEAVES != 0),
    }
}

impl SortedSource for SortedBatch {
    fn rows(&self) -> usize {
        self.plain.num_rows()
    }

    fn traits(&self) -> Traits {
        self.traits
    }

    fn lower_bound(&self, key: &[u8]) -> Result<usize, Error> {
        Ok(partition_point(self.rows(), |i| self.key().value(i) < key))
    }

    fn find_key(&self, key: &[u8]) -> Result<Range<usize>, Error> {
        let start = partition_point(self.rows(), |i| self.key().value(i) < key);
        let end = partition_point(self.rows(), |i| self.key().value(i) <= key);
        Ok(start..end)
    }

    fn scan(
        &self,
        columns: &[String],
        rows: Range<usize>,
        schema: &Arc<TableSchema>,
    ) -> Result<BatchIter, Error> {
        let part = self.part(|name| columns.contains(name), rows, schema);
        Ok(Box::new(std::iter::once(part)))
    }

    fn rows_of_key(
        &self,
        key: &[u8],
        columns: &[&str],
        schema: &Arc<TableSchema>,
    ) -> Result<Option<RecordBatch>, Error> {
        let rows = self.find_key(key)?;
        if rows.is_empty() {
            return Ok(None);
        }
        let wanted =
            |name: &String| matches!(name.as_str(), "key" | "key_no") || columns.contains(&name.as_str());
        self.part(wanted, rows, schema).map(Some)
    }

    fn row_reader(
        self: Arc<Self>,
        columns: &[&str],
        _known: &[&str],
        schema: &Arc<TableSchema>,
    ) -> Result<Arc<dyn RowReader>, Error> {
        let all = self.plain.schema();
        let wanted = all.fields().iter().enumerate().filter(|(_, f)| columns.contains(&f.name().as_str()));
        let wanted: Vec<usize> = wanted.filter(|(_, f)| f.name() != "key").map(|(i, _)| i).collect();
        let batch = self.plain.project(&wanted).map_err(super::scan::internal)?;
        Ok(Arc::new(MemoryRows { batch, from: self.schema.clone(), to: schema.clone() }))
    }

    fn split_keys(&self, n: usize) -> Result<Vec<Vec<u8>>, Error> {
        let rows = self.rows();
        let mut keys: Vec<Vec<u8>> =
            (1..n).map(|i| i * rows / n).filter(|i| *i > 0).map(|i| self.key().value(i).to_vec()).collect();
        keys.dedup();
        Ok(keys)
    }
}

/// Some columns of a batch, to be read in the types of a schema.
#[derive(Debug)]
struct MemoryRows {
    batch: RecordBatch,
    from: Arc<TableSchema>,
    to: Arc<TableSchema>,
}

impl RowReader for MemoryRows {
    fn rows(&self, rows: Range<usize>, _known: Option<&RecordBatch>) -> Result<RecordBatch, Error> {
        cast_batch(&self.batch.slice(rows.start, rows.len()), &self.from, &self.to)
    }
}

/// The first of `0..n` for which `before` is false; `before` is true for a prefix only.
pub(crate) fn partition_point(n: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
