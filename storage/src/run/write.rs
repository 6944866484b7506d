//! Writing a run: numbered keys, chunks that end with a key, digests as the bytes go out.

use super::derive::{Derivations, is_narrow, narrow_name};
use super::encode::Encoder;
use super::error::RunError;
use super::filter::{filter_of, hash};
use super::keyed::keyed_columns;
use super::meta::*;
use super::reduce::{DERIVED, Reduced, reduce};
use crate::disk::Disk;
use crate::event::columns::{OP_FULL, OP_LEAVES, OP_MASK, OP_PREVIOUS_DELETED};
use crate::event::{EventColumns, Op, event_schema};
use crate::id::{ColumnId, TableId};
use crate::schema::TableSchema;
use crate::time::FOREVER;
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{concat_batches, max, min};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a chunk of an IPC file.
pub(crate) const IPC_CHUNK_ROWS: usize = 65_536;
/// Rows of a row group of a Parquet file.
pub(crate) const PARQUET_CHUNK_ROWS: usize = 262_144;

/// Which run is written.
#[derive(Clone, Copy, Debug)]
pub struct RunSpec {
    /// Number of the run.
    pub id: u64,
    /// Its table.
    pub table: TableId,
    /// Encoding of the file.
    pub format: RunFormat,
    /// See [`RunMeta::level`].
    pub level: u8,
}

/// Writes one run from batches in the order of runs.
pub struct RunWriter<'d> {
    disk: &'d dyn Disk,
    dir: PathBuf,
    spec: RunSpec,
    schema_version: u32,
    constants: Constants,
    file_schema: SchemaRef,
    encoder: Encoder,
    chunk_rows: usize,
    pending: VecDeque<RecordBatch>,
    pending_rows: usize,
    last_key: Option<Vec<u8>>,
    meta: Totals,
    chunks: Vec<ChunkMeta>,
    keys: Vec<SparseKey>,
    /// Columns of the table's key.
    key_columns: Vec<ColumnId>,
    /// Filters that are not in the file yet, in the order of chunks.
    filters: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Totals {
    rows: u64,
    keys: u64,
    moved_away: u64,
    spans: Option<TimeSpans>,
    key_min: Vec<u8>,
    flags: RunFlags,
}

impl<'d> RunWriter<'d> {
    /// Begins a run. `constants` are columns that have one value in every row to come; they are left
    /// out of the file.
    ///
    /// # Errors
    /// [`RunError::Disk`].
    pub fn new(
        disk: &'d dyn Disk,
        dir: &Path,
        spec: RunSpec,
        schema: &TableSchema,
        constants: Constants,
    ) -> Result<RunWriter<'d>, RunError> {
        let temporary = dir.join(&temporary_names(spec.id)[0]);
        remove_if_any(disk, &temporary)?;
        let file = disk.create(&temporary)?;
        let file_schema = file_schema(spec.format, schema, &constants);
        Ok(RunWriter {
            disk,
            dir: dir.to_owned(),
            spec,
            schema_version: schema.version,
            encoder: Encoder::new(spec.format, file, &file_schema)?,
            constants,
            file_schema,
            chunk_rows: if spec.format == RunFormat::Ipc { IPC_CHUNK_ROWS } else { PARQUET_CHUNK_ROWS },
            pending: VecDeque::new(),
            pending_rows: 0,
            last_key: None,
            meta: Totals::default(),
            chunks: Vec::new(),
            keys: Vec::new(),
            key_columns: schema.key.clone(),
            filters: Vec::new(),
        })
    }

    /// Adds rows that come after all rows added before.
    ///
    /// # Errors
    /// [`RunError`] of the disk or of the encoding.
    pub fn write(&mut self, batch: RecordBatch) -> Result<(), RunError> {
        if batch.num_rows() > 0 {
            self.pending_rows += batch.num_rows();
            self.pending.push_back(batch);
        }
        // One row more than a chunk shows whether the chunk ends with a key.
        while self.pending_rows > self.chunk_rows {
            let rows = self.cut()?;
            self.write_chunk(rows)?;
        }
        Ok(())
    }

    /// Rows of the next chunk: as many as may be up to the end of a key; all that may be if one key
    /// has more.
    fn cut(&self) -> Result<usize, RunError> {
        let mut before = 0;
        let mut cut = None;
        let mut last: Option<&[u8]> = None;
        for batch in &self.pending {
            let keys = key_column(batch)?;
            let end = keys.len().min(self.chunk_rows + 1 - before);
            let start = (last.is_some_and(|last| last != keys.value(0)) && before > 0).then_some(0);
            let inner = (1..end).rev().find(|i| keys.value(*i) != keys.value(*i - 1));
            cut = inner.or(start).map(|i| before + i).or(cut);
            before += keys.len();
            if before > self.chunk_rows {
                break;
            }
            last = Some(keys.value(keys.len() - 1));
        }
        Ok(cut.unwrap_or(self.chunk_rows))
    }

    /// Writes the next `rows` rows as a chunk.
    fn write_chunk(&mut self, rows: usize) -> Result<(), RunError> {
        let mut parts = Vec::new();
        let mut missing = rows;
        while missing > 0 {
            let Some(batch) = self.pending.pop_front() else { break };
            let n = batch.num_rows().min(missing);
            parts.push(batch.slice(0, n));
            if n < batch.num_rows() {
                self.pending.push_front(batch.slice(n, batch.num_rows() - n));
            }
            missing -= n;
        }
        self.pending_rows -= rows - missing;
        let chunk = match parts.as_slice() {
            [] => return Ok(()),
            [one] => one.clone(),
            many => concat_batches(&many[0].schema(), many)?,
        };
        self.put(&EventColumns::new(chunk).map_err(RunError::NotEvents)?)
    }

    fn put(&mut self, events: &EventColumns) -> Result<(), RunError> {
        let (first_row, keys) = (self.meta.rows, events.key());
        let continues = self.last_key.as_deref() == Some(keys.value(0));
        let numbers = self.number_keys(events)?;
        let spans = spans_of(events);
        for row in (0..events.len()).step_by(SPARSE_ROWS) {
            self.keys.push(SparseKey { row: first_row + row as u64, key: keys.value(row).to_vec() });
        }
        let first_key_no = numbers.value(0);
        self.filters.push(filter_of(&hashes(events, &numbers)));
        let keyed = match self.spec.format {
            RunFormat::Ipc => 0,
            RunFormat::Parquet => keyed_columns(events, &self.key_columns),
        };
        let (chunk, derived) = self.stored(events, numbers)?;
        self.chunks.push(ChunkMeta {
            first_row,
            rows: events.len() as u64,
            first_key: keys.value(0).to_vec(),
            first_key_no,
            continues,
            spans,
            derived,
            keyed,
            filter: None,
        });
        self.meta.spans = Some(self.meta.spans.map_or(spans, |s| s.join(spans)));
        self.meta.flags = self.meta.flags.join(flags_of(events));
        self.meta.rows += events.len() as u64;
        let moved = |op: &u8| op & OP_MASK == Op::MovedAway as u8;
        self.meta.moved_away += events.op().values().iter().filter(|op| moved(op)).count() as u64;
        self.encoder.write(&chunk)?;
        if self.spec.format == RunFormat::Parquet { self.put_filters() } else { Ok(()) }
    }

    /// Writes the filters of the last chunks. In an IPC file nothing may stand between chunks.
    fn put_filters(&mut self) -> Result<(), RunError> {
        let first = self.chunks.len() - self.filters.len();
        for (chunk, filter) in self.chunks[first..].iter_mut().zip(self.filters.drain(..)) {
            let at = self.encoder.append(&filter)?;
            chunk.filter = Some(FilterPlace { at, bytes: filter.len() as u64 });
        }
        Ok(())
    }

    /// A chunk as the file has it, and how the columns are had that are not in it.
    fn stored(
        &self,
        events: &EventColumns,
        numbers: UInt32Array,
    ) -> Result<(RecordBatch, Derivations), RunError> {
        let mut reduced = match self.spec.format {
            RunFormat::Ipc => Reduced::default(),
            RunFormat::Parquet => reduce(events, |name| self.constants.contains_key(name))?,
        };
        reduced.columns.insert("key_no".into(), Arc::new(numbers));
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.file_schema.fields().len());
        for field in self.file_schema.fields() {
            let own = reduced.columns.remove(field.name());
            let column = own.or_else(|| events.batch().column_by_name(field.name()).cloned());
            let column = match column {
                None if is_narrow(field.name()) => Some(new_null_array(field.data_type(), events.len())),
                column => column,
            };
            columns.push(column.ok_or_else(|| RunError::NotEvents(format!("{} is missing", field.name())))?);
        }
        Ok((RecordBatch::try_new(self.file_schema.clone(), columns)?, reduced.derivations))
    }

    fn number_keys(&mut self, events: &EventColumns) -> Result<UInt32Array, RunError> {
        let keys = events.key();
        let mut numbers = Vec::with_capacity(events.len());
        let mut last = self.last_key.as_deref();
        for row in 0..events.len() {
            let key = keys.value(row);
            self.meta.keys += (last != Some(key)) as u64;
            last = Some(key);
            numbers.push((self.meta.keys - 1) as u32);
        }
        if self.meta.keys > u32::MAX as u64 {
            return Err(RunError::NotEvents("a run cannot hold more than 4294967295 keys".into()));
        }
        if self.meta.key_min.is_empty() {
            self.meta.key_min = keys.iter().flatten().find(|k| !k.is_empty()).unwrap_or_default().to_vec();
        }
        self.last_key = last.map(<[u8]>::to_vec);
        Ok(UInt32Array::from(numbers))
    }

    /// Writes what is left, syncs, and gives the files their names.
    ///
    /// # Errors
    /// [`RunError`]; no file has its final name then.
    pub fn finish(mut self) -> Result<RunMeta, RunError> {
        self.write_chunk(self.pending_rows)?;
        self.put_filters()?;
        let written = self.encoder.finish()?;
        let sidecar = Sidecar {
            id: self.spec.id,
            bytes: written.bytes,
            block_bytes: DIGEST_BLOCK_BYTES as u64,
            chunks: self.chunks,
            keys: self.keys,
            digests: written.digests,
        };
        let (bytes, digest) = sidecar.encode()?;
        let meta = RunMeta {
            id: self.spec.id,
            table: self.spec.table,
            format: self.spec.format,
            form: RUN_FORM,
            level: self.spec.level,
            schema_version: self.schema_version,
            rows: self.meta.rows,
            keys: self.meta.keys,
            events: self.meta.rows - self.meta.moved_away,
            spans: self.meta.spans,
            key_min: self.meta.key_min,
            key_max: self.last_key.unwrap_or_default(),
            flags: self.meta.flags,
            constants: self.constants,
            bytes: written.bytes,
            digest,
        };
        let [data, side] = temporary_names(self.spec.id).map(|name| self.dir.join(name));
        remove_if_any(self.disk, &side)?;
        let mut file = self.disk.create(&side)?;
        file.write_at(0, &bytes)?;
        file.sync()?;
        self.disk.rename(&side, &self.dir.join(meta.sidecar_name()))?;
        self.disk.rename(&data, &self.dir.join(meta.file_name()))?;
        self.disk.sync_dir(&self.dir)?;
        Ok(meta)
    }
}

/// Removes what a failed write of a run left, as far as the disk allows: whatever remains is named
/// in no manifest and is removed when the store is opened.
pub(crate) fn remove_unfinished(disk: &dyn Disk, dir: &Path, spec: RunSpec) {
    let [data, side] = temporary_names(spec.id);
    for name in [data, side, file_name(spec.id, spec.format), sidecar_name(spec.id)] {
        // The error that is reported is the one that made the write fail.
        let _ = remove_if_any(disk, &dir.join(name));
    }
}

fn remove_if_any(disk: &dyn Disk, path: &Path) -> Result<(), RunError> {
    if disk.exists(path)? {
        disk.remove(path)?;
    }
    Ok(())
}

/// Names of the run file and of its sidecar until both are synced.
fn temporary_names(id: u64) -> [String; 2] {
    [format!("run-{id:012}.tmp"), format!("run-{id:012}.sum.tmp")]
}

/// Columns of a run file. In Parquet those that may follow from others may be NULL, and decimals may
/// stand in columns of 64 bits.
fn file_schema(format: RunFormat, schema: &TableSchema, constants: &Constants) -> SchemaRef {
    let all = event_schema(schema);
    let mut fields: Vec<Arc<Field>> = Vec::new();
    for field in all.fields().iter().filter(|f| !constants.contains_key(f.name())) {
        let derived = format == RunFormat::Parquet && DERIVED.contains(&field.name().as_str());
        fields.push(match derived {
            true => Arc::new(field.as_ref().clone().with_nullable(true)),
            false => field.clone(),
        });
        if format == RunFormat::Parquet && matches!(field.data_type(), DataType::Decimal128(_, _)) {
            fields.push(Arc::new(Field::new(narrow_name(field.name()), DataType::Int64, true)));
        }
    }
    fields.push(Arc::new(Field::new("key_no", DataType::UInt32, false)));
    Arc::new(Schema::new(fields))
}

/// Hashes of the keys of a chunk; `numbers` are those of the keys.
fn hashes(events: &EventColumns, numbers: &UInt32Array) -> Vec<u64> {
    let (keys, numbers) = (events.key(), numbers.values());
    let begins = |row: &usize| *row == 0 || numbers[*row] != numbers[*row - 1];
    (0..keys.len()).filter(begins).map(|row| hash(keys.value(row))).collect()
}

fn key_column(batch: &RecordBatch) -> Result<&BinaryArray, RunError> {
    let keys = batch.columns().first().and_then(|c| c.as_binary_opt::<i32>());
    keys.ok_or_else(|| RunError::NotEvents("the first column does not hold keys".into()))
}

fn spans_of(events: &EventColumns) -> TimeSpans {
    let span = |a: &arrow::array::Int64Array| MinMax { min: min(a).unwrap_or(0), max: max(a).unwrap_or(0) };
    TimeSpans {
        valid_from: span(events.valid_from()),
        valid_to: span(events.valid_to()),
        system: span(events.system()),
        commit: MinMax { min: min(events.commit()).unwrap_or(0), max: max(events.commit()).unwrap_or(0) },
    }
}

fn flags_of(events: &EventColumns) -> RunFlags {
    let ops = events.op().values();
    let some = |a: &dyn Array| a.null_count() < a.len();
    RunFlags {
        ops: ops.iter().fold(0, |bits, op| bits | 1 << (op & OP_MASK)),
        partial: ops.iter().any(|op| op & OP_FULL == 0),
        placeholders: some(events.unknown()),
        bounded: events.valid_to().values().iter().any(|end| *end != FOREVER),
        mask_rest: some(events.mask_rest()),
        ties: some(events.ties()),
        previous: some(events.previous()),
        previous_deleted: ops.iter().any(|op| op & OP_PREVIOUS_DELETED != 0),
        leaves: ops.iter().any(|op| op & OP_LEAVES != 0),
    }
}
