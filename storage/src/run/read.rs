//! Reading runs: whole columns over row ranges, and keys.

use super::check::CheckedFile;
use super::error::RunError;
use super::meta::*;
use crate::disk::Disk;
use arrow::array::*;
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::{FileDecoder, read_footer_length};
use arrow::ipc::{Block, root_as_footer};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
    RowSelection, RowSelector,
};
use parquet::file::metadata::PageIndexPolicy;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Rows of the batches that a Parquet run is read in.
const BATCH_ROWS: usize = 32_768;

/// An open run.
#[derive(Debug)]
pub struct RunReader {
    meta: RunMeta,
    sidecar: Sidecar,
    file: CheckedFile,
    decoded: OnceLock<Decoded>,
}

#[derive(Debug)]
enum Decoded {
    Ipc { schema: SchemaRef, blocks: Vec<Block>, version: arrow::ipc::MetadataVersion, buffer: Buffer },
    Parquet(ArrowReaderMetadata),
}

/// Batches of a run.
pub type RunBatches = Box<dyn Iterator<Item = Result<RecordBatch, RunError>> + Send>;

impl RunReader {
    /// Opens a run; its sidecar is checked and read, the run file only mapped.
    ///
    /// # Errors
    /// [`RunError::Damaged`] if a file is missing, of another length, or not what the manifest says.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, meta: &RunMeta) -> Result<RunReader, RunError> {
        let present = |path: &Path| -> Result<(), RunError> {
            match disk.exists(path)? {
                true => Ok(()),
                false => Err(RunError::Damaged { file: path.to_owned(), what: "the file is missing".into() }),
            }
        };
        let (path, side) = (dir.join(meta.file_name()), dir.join(meta.sidecar_name()));
        present(&side)?;
        present(&path)?;
        let sidecar = Sidecar::decode(&disk.read(&side)?, meta, &side)?;
        let file = CheckedFile::new(path.clone(), disk.map(&path)?, &sidecar)?;
        Ok(RunReader { meta: meta.clone(), sidecar, file, decoded: OnceLock::new() })
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

    fn decoded(&self) -> Result<&Decoded, RunError> {
        if let Some(decoded) = self.decoded.get() {
            return Ok(decoded);
        }
        let decoded = match self.meta.format {
            RunFormat::Ipc => self.decode_ipc()?,
            RunFormat::Parquet => {
                let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
                Decoded::Parquet(ArrowReaderMetadata::load(&self.file, options)?)
            }
        };
        Ok(self.decoded.get_or_init(|| decoded))
    }

    fn decode_ipc(&self) -> Result<Decoded, RunError> {
        let bytes = self.file.all()?;
        let damaged = |what: &str| self.file.damaged(what);
        let tail = bytes.len().checked_sub(10).ok_or_else(|| damaged("is too short"))?;
        let length: [u8; 10] = bytes[tail..].try_into().map_err(|_| damaged("is too short"))?;
        let length = read_footer_length(length)?;
        let start = tail.checked_sub(length).ok_or_else(|| damaged("its footer is longer than the file"))?;
        let footer = root_as_footer(&bytes[start..tail]).map_err(|e| damaged(&e.to_string()))?;
        let schema = footer.schema().ok_or_else(|| damaged("has no schema"))?;
        let blocks = footer.recordBatches().ok_or_else(|| damaged("has no batches"))?;
        let blocks: Vec<Block> = blocks.iter().copied().collect();
        if blocks.len() != self.sidecar.chunks.len() {
            return Err(damaged("has another number of chunks than its sidecar"));
        }
        Ok(Decoded::Ipc {
            schema: Arc::new(fb_to_schema(schema)),
            version: footer.version(),
            blocks,
            buffer: Buffer::from(bytes.clone()),
        })
    }

    /// Batches of the rows `rows` with the columns of `columns` that the run has, in file order with
    /// columns of one value behind.
    ///
    /// # Errors
    /// [`RunError`]; later ones come out of the iterator.
    pub fn scan(&self, columns: &[&str], rows: Range<u64>) -> Result<RunBatches, RunError> {
        let constants: Vec<(String, Constant)> = columns
            .iter()
            .filter_map(|name| self.meta.constants.get(*name).map(|c| ((*name).to_owned(), *c)))
            .collect();
        let mut parts: Vec<(usize, Range<usize>)> = Vec::new();
        for (i, chunk) in self.sidecar.chunks.iter().enumerate() {
            let (start, end) = (rows.start.max(chunk.first_row), rows.end.min(chunk.first_row + chunk.rows));
            if start < end {
                parts.push((i, (start - chunk.first_row) as usize..(end - chunk.first_row) as usize));
            }
        }
        let batches: RunBatches =
            match self.decoded()? {
                Decoded::Ipc { schema, blocks, version, buffer } => {
                    let wanted: Vec<usize> = indices(schema, columns);
                    let decoder = FileDecoder::new(schema.clone(), *version).with_projection(wanted);
                    let parts: Vec<(Block, Range<usize>)> =
                        parts.into_iter().map(|(i, r)| (blocks[i], r)).collect();
                    let (file, buffer) = (self.file.clone(), buffer.clone());
                    Box::new(
                        parts
                            .into_iter()
                            .map(move |(block, rows)| ipc_batch(&file, &decoder, &buffer, &block, rows)),
                    )
                }
                Decoded::Parquet(metadata) => {
                    let wanted: Vec<usize> = indices(metadata.schema(), columns);
                    let (file, metadata) = (self.file.clone(), metadata.clone());
                    Box::new(parts.into_iter().flat_map(move |(group, rows)| {
                        parquet_batches(&file, &metadata, &wanted, group, rows)
                    }))
                }
            };
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
        if !key.is_empty() && (key < self.meta.key_min.as_slice() && !self.meta.key_min.is_empty())
            || key > self.meta.key_max.as_slice()
        {
            return Ok(0..0);
        }
        let start = self.bound(|k| k < key)?;
        Ok(start..self.bound(|k| k <= key)?)
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
        let mut row = start;
        for batch in self.scan(&["key"], start..end)? {
            let batch = batch?;
            let column = batch.column_by_name("key").and_then(|a| a.as_binary_opt::<i32>());
            let column = column.ok_or_else(|| self.file.damaged("has no key column"))?;
            for i in 0..column.len() {
                if !before(column.value(i)) {
                    return Ok(row + i as u64);
                }
            }
            row += column.len() as u64;
        }
        Ok(end)
    }
}

fn indices(schema: &SchemaRef, columns: &[&str]) -> Vec<usize> {
    let all = schema.fields().iter().enumerate();
    all.filter(|(_, f)| columns.contains(&f.name().as_str())).map(|(i, _)| i).collect()
}

fn ipc_batch(
    file: &CheckedFile,
    decoder: &FileDecoder,
    buffer: &Buffer,
    block: &Block,
    rows: Range<usize>,
) -> Result<RecordBatch, RunError> {
    let length = block.bodyLength() as usize + block.metaDataLength() as usize;
    let data = buffer.slice_with_length(block.offset() as usize, length);
    let batch = decoder.read_record_batch(block, &data)?.ok_or_else(|| file.damaged("a chunk is empty"))?;
    if rows.end > batch.num_rows() {
        return Err(file.damaged("a chunk is shorter than its sidecar says"));
    }
    Ok(batch.slice(rows.start, rows.len()))
}

type ParquetPart = Box<dyn Iterator<Item = Result<RecordBatch, RunError>> + Send>;

fn parquet_batches(
    file: &CheckedFile,
    metadata: &ArrowReaderMetadata,
    wanted: &[usize],
    group: usize,
    rows: Range<usize>,
) -> ParquetPart {
    match parquet_reader(file, metadata, wanted, group, rows) {
        Ok(reader) => Box::new(reader.map(|b| b.map_err(RunError::from))),
        Err(e) => Box::new(std::iter::once(Err(e))),
    }
}

fn parquet_reader(
    file: &CheckedFile,
    metadata: &ArrowReaderMetadata,
    wanted: &[usize],
    group: usize,
    rows: Range<usize>,
) -> Result<ParquetRecordBatchReader, RunError> {
    let mask = ProjectionMask::roots(metadata.parquet_schema(), wanted.iter().copied());
    let selection = RowSelection::from(vec![RowSelector::skip(rows.start), RowSelector::select(rows.len())]);
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
        .with_row_groups(vec![group])
        .with_projection(mask)
        .with_batch_size(BATCH_ROWS)
        .with_row_selection(selection);
    Ok(builder.build()?)
}

fn add_constants(batch: RecordBatch, constants: &[(String, Constant)]) -> Result<RecordBatch, RunError> {
    let mut fields = batch.schema().fields().to_vec();
    let mut columns = batch.columns().to_vec();
    for (name, value) in constants {
        let meta = crate::event::columns::meta_fields();
        let Some(field) = meta.iter().find(|f| f.name() == name) else { continue };
        columns.push(constant_array(field.data_type(), *value, batch.num_rows())?);
        fields.push(Arc::new(Field::new(name, field.data_type().clone(), true)));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

fn constant_array(ty: &DataType, value: Constant, rows: usize) -> Result<ArrayRef, RunError> {
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
