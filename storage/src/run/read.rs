//! Reading runs: whole columns over row ranges, and keys.

use super::cache::ColumnCache;
use super::check::CheckedFile;
use super::deriving::Deriving;
use super::error::RunError;
use super::filter::{BLOCK_BYTES, block_at, hash, may_have};
use super::heads::Heads;
use super::ipc::IpcFile;
use super::look_up::Prepared;
use super::meta::*;
use super::meter::{note_read, plain_bytes};
use super::parquet::ParquetFile;
use crate::disk::Disk;
use crate::event::columns::meta_fields;
use arrow::array::*;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// An open run.
#[derive(Debug)]
pub struct RunReader {
    disk: Arc<dyn Disk>,
    meta: RunMeta,
    sidecar: Sidecar,
    file: CheckedFile,
    decoded: OnceLock<Decoded>,
    derivings: OnceLock<Arc<[Deriving]>>,
    cache: Arc<ColumnCache>,
    /// The keys that were decoded last, with the number of their first row: a look-up needs the same
    /// ones for both ends of its rows.
    last_keys: Mutex<Option<(u64, BinaryArray)>>,
    /// What the last look-up prepared.
    last_prepared: Mutex<Option<Arc<Prepared>>>,
    /// Of the sparse key index.
    heads: Heads,
}

#[derive(Clone, Debug)]
pub(super) enum Decoded {
    Ipc(Arc<IpcFile>),
    Parquet(ParquetFile),
}

impl Drop for RunReader {
    fn drop(&mut self) {
        if self.meta.format == RunFormat::Parquet {
            self.cache.forget(self.meta.id);
        }
    }
}

/// Batches of a run.
pub type RunBatches = Box<dyn Iterator<Item = Result<RecordBatch, RunError>> + Send>;

impl RunReader {
    /// Opens a run; its sidecar is checked and read, the run file only mapped. `cache` may be that of
    /// other runs of the store.
    ///
    /// # Errors
    /// [`RunError::Damaged`] if a file is missing, of another length, or not what the manifest says;
    /// [`RunError::Newer`].
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        meta: &RunMeta,
        cache: Arc<ColumnCache>,
    ) -> Result<RunReader, RunError> {
        let present = |path: &Path| -> Result<(), RunError> {
            match disk.exists(path)? {
                true => Ok(()),
                false => Err(RunError::Damaged { file: path.to_owned(), what: "the file is missing".into() }),
            }
        };
        let (path, side) = (dir.join(meta.file_name()), dir.join(meta.sidecar_name()));
        if meta.form > RUN_FORM {
            return Err(RunError::Newer { file: path, form: meta.form });
        }
        present(&side)?;
        present(&path)?;
        let sidecar = Sidecar::decode(&disk.read(&side)?, meta, &side)?;
        let file = CheckedFile::new(path.clone(), disk.map(&path)?, meta.format, &sidecar)?;
        Ok(RunReader {
            disk,
            meta: meta.clone(),
            heads: Heads::new(&sidecar.keys),
            sidecar,
            file,
            decoded: OnceLock::new(),
            derivings: OnceLock::new(),
            cache,
            last_keys: Mutex::new(None),
            last_prepared: Mutex::new(None),
        })
    }

    /// Takes the bytes of the file for what they should be: this process has just written them.
    pub fn trust(&self) {
        self.file.trust();
    }

    /// What the manifest knows of the run.
    pub fn meta(&self) -> &RunMeta {
        &self.meta
    }

    /// Checks every byte of the run file.
    ///
    /// # Errors
    /// [`RunError::Damaged`].
    pub fn verify(&self) -> Result<(), RunError> {
        self.file.recheck()
    }

    pub(super) fn file(&self) -> &CheckedFile {
        &self.file
    }

    pub(super) fn prepared_last(&self) -> MutexGuard<'_, Option<Arc<Prepared>>> {
        self.last_prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn decoded(&self) -> Result<&Decoded, RunError> {
        if let Some(decoded) = self.decoded.get() {
            return Ok(decoded);
        }
        let decoded = match self.meta.format {
            RunFormat::Ipc => Decoded::Ipc(Arc::new(IpcFile::open(&self.file, &self.sidecar.chunks)?)),
            RunFormat::Parquet => {
                let chunks = self.sidecar.chunks.len();
                Decoded::Parquet(ParquetFile::open(&self.file, chunks, self.meta.id, self.cache.clone())?)
            }
        };
        Ok(self.decoded.get_or_init(|| decoded))
    }

    /// Chunks in row order, with the span of times and commits of each.
    pub fn chunks(&self) -> &[ChunkMeta] {
        &self.sidecar.chunks
    }

    /// The parts of chunks that hold the rows `rows`.
    pub(super) fn parts(&self, rows: Range<u64>) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let chunks = &self.sidecar.chunks;
        let first = chunks.partition_point(|c| c.first_row + c.rows <= rows.start);
        let last = chunks.partition_point(|c| c.first_row < rows.end).max(first);
        let part = |i: usize| {
            let c = &chunks[i];
            let (start, end) = (rows.start.max(c.first_row), rows.end.min(c.first_row + c.rows));
            (i, (start - c.first_row) as usize..(end - c.first_row) as usize)
        };
        (first..last).map(part).collect::<Vec<_>>().into_iter()
    }

    /// The part of a chunk that holds the rows `rows`, if they are of one chunk.
    pub(super) fn one_part(&self, rows: &Range<u64>) -> Option<(usize, Range<usize>)> {
        let chunks = &self.sidecar.chunks;
        let at = chunks.partition_point(|c| c.first_row + c.rows <= rows.start);
        let chunk =
            chunks.get(at).filter(|c| c.first_row <= rows.start && rows.end <= c.first_row + c.rows)?;
        Some((at, (rows.start - chunk.first_row) as usize..(rows.end - chunk.first_row) as usize))
    }

    /// Batches of the rows `rows` with the columns of `columns` that the run has, in file order with
    /// columns of one value behind.
    ///
    /// # Errors
    /// [`RunError`]; later ones come out of the iterator.
    pub fn scan(&self, columns: &[&str], rows: Range<u64>) -> Result<RunBatches, RunError> {
        let batches = self.in_file(columns, rows)?;
        self.with_constants(columns, batches)
    }

    /// As [`RunReader::scan`], with the columns that are in the file.
    pub(super) fn in_file(&self, columns: &[&str], rows: Range<u64>) -> Result<RunBatches, RunError> {
        let parts = self.parts(rows);
        let file = self.file.clone();
        let batches: RunBatches = match self.decoded()?.clone() {
            Decoded::Ipc(ipc) => {
                let wanted = indices(ipc.schema(), columns);
                let schema = Arc::new(ipc.schema().project(&wanted)?);
                Box::new(parts.map(move |(chunk, rows)| {
                    ipc_batch(&schema, &wanted, rows, |c| ipc.column(&file, chunk, c))
                }))
            }
            Decoded::Parquet(parquet) => {
                let wanted = indices(parquet.schema(), columns);
                let derivings = self.derivings(&parquet).clone();
                Box::new(parts.flat_map(move |(group, rows)| {
                    let read = |needed: &[usize]| parquet.batches(&file, needed, group, rows);
                    derivings[group].clone().batches(&wanted, read)
                }))
            }
        };
        Ok(batches)
    }

    /// As [`RunReader::scan`] over all rows, for one pass: nothing that was decoded is kept, and the
    /// mapped pages are given back as the batches go.
    ///
    /// # Errors
    /// [`RunError`]; later ones come out of the iterator.
    pub fn scan_once(&self, columns: &[&str]) -> Result<RunBatches, RunError> {
        let parts = self.parts(0..self.meta.rows);
        let (disk, file) = (self.disk.clone(), self.file.clone());
        let fresh = move || file.over(disk.map(file.path())?);
        let batches: RunBatches = match self.decoded()?.clone() {
            Decoded::Ipc(ipc) => {
                let wanted = indices(ipc.schema(), columns);
                let schema = Arc::new(ipc.schema().project(&wanted)?);
                Box::new(parts.map(move |(chunk, rows)| {
                    let file = fresh()?;
                    ipc_batch(&schema, &wanted, rows, |c| ipc.decode(&file, chunk, c))
                }))
            }
            Decoded::Parquet(parquet) => {
                let wanted = indices(parquet.schema(), columns);
                let derivings = self.derivings(&parquet).clone();
                Box::new(parts.flat_map(move |(group, rows)| -> RunBatches {
                    match fresh() {
                        Ok(file) => derivings[group]
                            .clone()
                            .batches(&wanted, |needed| parquet.decoded(&file, needed, group, rows)),
                        Err(e) => Box::new(std::iter::once(Err(e))),
                    }
                }))
            }
        };
        self.with_constants(columns, batches)
    }

    /// What is needed to derive columns, by chunk.
    pub(super) fn derivings(&self, parquet: &ParquetFile) -> &Arc<[Deriving]> {
        let make = || {
            let (constants, schema) = (Arc::new(self.meta.constants.clone()), parquet.schema());
            let chunks = self.sidecar.chunks.iter();
            chunks.map(|c| Deriving::new(&c.derived, &constants, schema)).collect()
        };
        self.derivings.get_or_init(make)
    }

    fn with_constants(&self, columns: &[&str], batches: RunBatches) -> Result<RunBatches, RunError> {
        let constant = |name: &&str| self.meta.constants.get(*name).map(|c| ((*name).to_owned(), *c));
        let constants: Vec<(String, Constant)> = columns.iter().filter_map(constant).collect();
        if constants.is_empty() {
            return Ok(batches);
        }
        Ok(Box::new(batches.map(move |batch| add_constants(batch?, &constants))))
    }

    /// The first row whose key is not below `key`.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn lower_bound(&self, key: &[u8]) -> Result<u64, RunError> {
        self.bound(|k| k < key)
    }

    /// The rows of `key`; empty where it has none.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn find_key(&self, key: &[u8]) -> Result<Range<u64>, RunError> {
        let meta = &self.meta;
        if !key.is_empty() && key < meta.key_min.as_slice() || key > meta.key_max.as_slice() {
            return Ok(0..0);
        }
        if !self.may_have(key)? {
            return Ok(0..0);
        }
        if let Decoded::Parquet(parquet) = self.decoded()?
            && let Some(rows) = self.find_in_pages(parquet, key)?
        {
            return Ok(rows);
        }
        self.find_mapped(key)
    }

    /// Whether the filter of the chunk that a key would be in has it.
    pub(super) fn may_have(&self, key: &[u8]) -> Result<bool, RunError> {
        let chunks = &self.sidecar.chunks;
        let next = chunks.partition_point(|c| c.first_key.as_slice() <= key);
        let Some(chunk) = next.checked_sub(1).map(|i| &chunks[i]) else { return Ok(true) };
        let Some(FilterPlace { at, bytes }) = chunk.filter else { return Ok(true) };
        let hash = hash(key);
        let block = self.file.slice(at as usize + block_at(hash, bytes as usize), BLOCK_BYTES)?;
        Ok(may_have(hash, &block))
    }

    /// The image columns that have the value of the key in every row of the row's chunk that writes them, a
    /// bit each.
    pub(crate) fn keyed(&self, row: u64) -> u64 {
        let chunks = &self.sidecar.chunks;
        let next = chunks.partition_point(|c| c.first_row <= row);
        next.checked_sub(1).map_or(0, |i| chunks[i].keyed)
    }

    /// As [`RunReader::find_key`], by comparing keys between two of the sparse index.
    fn find_mapped(&self, key: &[u8]) -> Result<Range<u64>, RunError> {
        let keys = &self.sidecar.keys;
        let next = self.heads.below(keys, key);
        let row_of = |i: usize| keys.get(i).map_or(self.meta.rows, |k| k.row);
        let mut found = row_of(0)..row_of(0);
        if let Some(before) = next.checked_sub(1) {
            let from = row_of(before);
            let before = self.keys_of(from..row_of(next))?;
            let start = partition_point(&before, |k| k < key);
            let same = (start..before.len()).take_while(|i| before.value(*i) == key).count();
            found = from + start as u64..from + (start + same) as u64;
        }
        // Of the stretches that begin with the key, only the last may have others.
        if let Some(last) = keys[next..].partition_point(|k| k.key == key).checked_sub(1) {
            let from = row_of(next + last);
            let keys = self.keys_of(from..row_of(next + last + 1))?;
            found.end = from + partition_point(&keys, |k| k <= key) as u64;
        }
        Ok(found)
    }

    /// As [`RunReader::find_key`], by the pages of the key column; `None` if they cannot be read by themselves.
    fn find_in_pages(&self, parquet: &ParquetFile, key: &[u8]) -> Result<Option<Range<u64>>, RunError> {
        let Ok(column) = parquet.schema().index_of("key") else { return Ok(None) };
        let keys = &self.sidecar.keys;
        let row_of = |i: usize| keys.get(i).map_or(self.meta.rows, |k| k.row);
        let next = self.heads.below(keys, key);
        let first = next.saturating_sub(1);
        let Some(mut found) = self.find_between(parquet, column, key, row_of(first)..row_of(first + 1))?
        else {
            return Ok(None);
        };
        // Rows of the key may go on in stretches that begin with it; only the last of those may have others.
        let equal = keys[next..].partition_point(|k| k.key == key);
        let last = (next + equal).saturating_sub(1);
        if last > first {
            let Some(more) = self.find_between(parquet, column, key, row_of(last)..row_of(last + 1))? else {
                return Ok(None);
            };
            found.end = more.end;
        }
        Ok(Some(found))
    }

    /// The rows of `key` among `rows` of one chunk, empty at the first row above it.
    fn find_between(
        &self,
        parquet: &ParquetFile,
        column: usize,
        key: &[u8],
        rows: Range<u64>,
    ) -> Result<Option<Range<u64>>, RunError> {
        let mut found: Option<Range<u64>> = None;
        for (chunk, part) in self.parts(rows) {
            let first_row = self.sidecar.chunks[chunk].first_row;
            let Some(pages) = parquet.pages(&self.file, chunk, column) else { return Ok(None) };
            let mut at = part.start;
            while at < part.end {
                let page = pages.page_rows(at);
                let Some(rows) = pages.find(at, key)? else { return Ok(None) };
                let rows = first_row + rows.start as u64..first_row + rows.end as u64;
                let ended = rows.end < first_row + page.end as u64;
                found = Some(match found {
                    Some(f) if !f.is_empty() => f.start..rows.end,
                    _ => rows,
                });
                at = if ended { part.end } else { page.end.max(at + 1) };
            }
        }
        Ok(found)
    }

    /// Up to `n - 1` ascending keys that split the rows into about equal parts.
    pub fn split_keys(&self, n: usize) -> Vec<Vec<u8>> {
        let keys = &self.sidecar.keys;
        let at = |i: usize| i * keys.len() / n.max(1);
        let mut found: Vec<Vec<u8>> =
            (1..n).map(at).filter(|i| *i > 0).map(|i| keys[i].key.clone()).collect();
        found.dedup();
        found
    }

    /// The first row for which `before` of its key is false; it holds for a prefix of the rows.
    fn bound(&self, before: impl Fn(&[u8]) -> bool) -> Result<u64, RunError> {
        let keys = &self.sidecar.keys;
        let next = keys.partition_point(|k| before(&k.key));
        let Some(from) = next.checked_sub(1) else { return Ok(0) };
        let (start, end) = (keys[from].row, keys.get(next).map_or(self.meta.rows, |k| k.row));
        Ok(start + partition_point(&self.keys_of(start..end)?, before) as u64)
    }

    /// The keys of some rows that lie between two keys of the sparse index.
    fn keys_of(&self, rows: Range<u64>) -> Result<BinaryArray, RunError> {
        if let Decoded::Ipc(ipc) = self.decoded()?
            && let (Some((chunk, part)), Ok(column)) =
                (self.parts(rows.clone()).next(), ipc.schema().index_of("key"))
            && part.len() as u64 == rows.end - rows.start
        {
            let keys = ipc.column(&self.file, chunk, column)?;
            let keys = keys.as_binary_opt::<i32>().map(|k| k.slice(part.start, part.len()));
            return keys.ok_or_else(|| self.file.damaged("has no key column"));
        }
        let last = || self.last_keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((start, keys)) = &*last()
            && *start == rows.start
        {
            return Ok(keys.clone());
        }
        let batches = self.scan(&["key"], rows.clone())?.collect::<Result<Vec<_>, _>>()?;
        let keys = match batches.as_slice() {
            [one] => one.column_by_name("key").and_then(|a| a.as_binary_opt::<i32>()),
            _ => None,
        };
        let keys = keys.filter(|k| k.len() as u64 == rows.end - rows.start);
        let keys = keys.ok_or_else(|| self.file.damaged("has no key column"))?.clone();
        *last() = Some((rows.start, keys.clone()));
        Ok(keys)
    }
}

/// Number of leading keys for which `before` holds; it holds for a prefix.
fn partition_point(keys: &BinaryArray, before: impl Fn(&[u8]) -> bool) -> usize {
    let (mut low, mut high) = (0, keys.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match before(keys.value(middle)) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// Some rows of a chunk of an IPC file.
pub(super) fn ipc_batch(
    schema: &SchemaRef,
    wanted: &[usize],
    rows: Range<usize>,
    column: impl Fn(usize) -> Result<ArrayRef, RunError>,
) -> Result<RecordBatch, RunError> {
    let arrays = wanted.iter().map(|c| Ok::<_, RunError>(column(*c)?.slice(rows.start, rows.len())));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let arrays = arrays.collect::<Result<_, _>>()?;
    let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?;
    note_read(plain_bytes(&batch));
    Ok(batch)
}

pub(super) fn indices(schema: &SchemaRef, columns: &[&str]) -> Vec<usize> {
    let all = schema.fields().iter().enumerate();
    all.filter(|(_, f)| columns.contains(&f.name().as_str())).map(|(i, _)| i).collect()
}

fn add_constants(batch: RecordBatch, constants: &[(String, Constant)]) -> Result<RecordBatch, RunError> {
    let mut fields = batch.schema().fields().to_vec();
    let mut columns = batch.columns().to_vec();
    let meta = meta_fields();
    for (name, value) in constants {
        let Some(field) = meta.iter().find(|f| f.name() == name) else { continue };
        columns.push(constant_array(field.data_type(), *value, batch.num_rows())?);
        fields.push(Arc::new(Field::new(name, field.data_type().clone(), true)));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

/// The value of a column that is not in the file, `rows` times.
pub(crate) fn constant_array(ty: &DataType, value: Constant, rows: usize) -> Result<ArrayRef, RunError> {
    Ok(match (value, ty) {
        (Constant::Null, ty) => new_null_array(ty, rows),
        (Constant::Int(v), DataType::Int64) => Arc::new(Int64Array::from_value(v, rows)),
        (Constant::Uint(v), DataType::UInt64) => Arc::new(UInt64Array::from_value(v, rows)),
        (Constant::Uint(v), DataType::UInt32) => Arc::new(UInt32Array::from_value(v as u32, rows)),
        (Constant::Uint(v), DataType::UInt8) => Arc::new(UInt8Array::from_value(v as u8, rows)),
        (v, ty) => {
            return Err(RunError::NotEvents(format!("a column of type {ty} cannot be {v:?} throughout")));
        }
    })
}
