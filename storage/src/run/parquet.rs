//! Run files in Parquet.

use super::cache::{Column, ColumnCache, ColumnKey};
use super::check::CheckedFile;
use super::error::RunError;
use super::kept::Kept;
use super::meter::note_kept;
use super::page::{Dictionaries, PageColumn};
use super::read::RunBatches;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
    RowSelection, RowSelector,
};
use parquet::file::metadata::PageIndexPolicy;
use std::ops::Range;
use std::sync::Arc;

/// Rows of the batches that are read.
pub(crate) const BATCH_ROWS: usize = 32_768;

/// The decoded footer of a file. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ParquetFile {
    metadata: ArrowReaderMetadata,
    /// Number of the run in the cache, and the cache.
    run: u64,
    cache: Arc<ColumnCache>,
    dictionaries: Arc<Dictionaries>,
}

impl ParquetFile {
    pub fn open(
        file: &CheckedFile,
        chunks: usize,
        run: u64,
        cache: Arc<ColumnCache>,
    ) -> Result<ParquetFile, RunError> {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(file, options).map_err(|e| file.decoding(&e))?;
        if metadata.metadata().num_row_groups() != chunks {
            return Err(file.damaged("has another number of row groups than its sidecar"));
        }
        Ok(ParquetFile { metadata, run, cache, dictionaries: Arc::default() })
    }

    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// A column of a row group by pages; `None` if it must be read otherwise.
    pub fn pages<'a>(&'a self, file: &'a CheckedFile, group: usize, column: usize) -> Option<PageColumn<'a>> {
        PageColumn::new(file, self.metadata.metadata(), group, column)
    }

    /// A few rows of a row group with the columns `wanted`; of each only the page is read that holds them.
    /// `None` if they must be read otherwise.
    pub fn few(
        &self,
        file: &CheckedFile,
        wanted: &[usize],
        group: usize,
        rows: Range<usize>,
    ) -> Result<Option<Vec<ArrayRef>>, RunError> {
        let columns = wanted.iter().map(|c| self.pages(file, group, *c)).collect::<Option<Vec<_>>>();
        let Some(columns) = columns else { return Ok(None) };
        // Memory brings the pages side by side if they are asked for before the first is read.
        std::hint::black_box(columns.iter().map(|c| c.touch(rows.start)).fold(0, |a, b| a ^ b));
        let mut arrays = Vec::with_capacity(wanted.len());
        for (c, pages) in wanted.iter().zip(columns) {
            let ty = self.schema().field(*c).data_type();
            match pages.read(rows.clone(), ty, &self.dictionaries)? {
                Some(array) => arrays.push(array),
                None => return Ok(None),
            }
        }
        Ok(Some(arrays))
    }

    /// Batches of some rows of a row group with the columns `wanted`, in file order. Columns that are
    /// not at hand are decoded; where most rows are wanted, all rows are, and kept for the next time.
    pub fn batches(
        &self,
        file: &CheckedFile,
        wanted: &[usize],
        group: usize,
        rows: Range<usize>,
    ) -> RunBatches {
        let key = |c: &usize| (self.run, group as u32, *c as u32);
        let held: Vec<Option<Column>> = wanted.iter().map(|c| self.cache.get(key(c))).collect();
        let all = self.metadata.metadata().row_group(group).num_rows() as usize;
        let complete = held.iter().all(Option::is_some);
        if !complete && rows.len() * 2 < all {
            return self.decoded(file, wanted, group, rows);
        }
        let at_hand = wanted.iter().zip(&held).filter(|(_, h)| h.is_some());
        let bytes = at_hand.map(|(c, _)| self.column_bytes(group, *c)).sum::<u64>();
        note_kept(bytes * rows.len() as u64 / all.max(1) as u64);
        let missing: Vec<usize> =
            wanted.iter().zip(&held).filter(|(_, h)| h.is_none()).map(|(c, _)| *c).collect();
        let fresh = if complete { None } else { Some(self.decoded(file, &missing, group, 0..all)) };
        let schema = match self.schema().project(wanted) {
            Ok(schema) => Arc::new(schema),
            Err(e) => return Box::new(std::iter::once(Err(e.into()))),
        };
        let keys = missing.iter().map(key).collect();
        let taken = vec![Vec::new(); missing.len()];
        Box::new(Held {
            parquet: self.clone(),
            file: file.clone(),
            schema,
            held,
            fresh,
            taken,
            keys,
            rows,
            all,
            at: 0,
        })
    }

    /// Bytes of a column of a row group as it is stored; the columns are flat.
    fn column_bytes(&self, group: usize, column: usize) -> u64 {
        self.metadata.metadata().row_group(group).column(column).compressed_size().max(0) as u64
    }

    pub fn decoded(
        &self,
        file: &CheckedFile,
        wanted: &[usize],
        group: usize,
        rows: Range<usize>,
    ) -> RunBatches {
        match self.reader(file, wanted, group, rows) {
            Ok(reader) => {
                let file = file.clone();
                Box::new(reader.map(move |batch| batch.map_err(|e| file.decoding(&e))))
            }
            Err(e) => Box::new(std::iter::once(Err(e))),
        }
    }

    fn reader(
        &self,
        file: &CheckedFile,
        wanted: &[usize],
        group: usize,
        rows: Range<usize>,
    ) -> Result<ParquetRecordBatchReader, RunError> {
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), wanted.iter().copied());
        let whole = self.metadata.metadata().row_group(group).num_rows() as usize == rows.len();
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), self.metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS.min(rows.len().max(1)));
        let builder = match whole {
            true => builder,
            false => builder.with_row_selection(RowSelection::from(vec![
                RowSelector::skip(rows.start),
                RowSelector::select(rows.len()),
            ])),
        };
        builder.build().map_err(|e| file.decoding(&e))
    }
}

/// Batches of a chunk out of columns that are held and columns that are decoded as they go.
struct Held {
    parquet: ParquetFile,
    file: CheckedFile,
    schema: SchemaRef,
    /// The wanted columns; `None` for those that `fresh` brings.
    held: Vec<Option<Column>>,
    fresh: Option<RunBatches>,
    /// What `fresh` brought, by column, to be held once the chunk is over.
    taken: Vec<Vec<ArrayRef>>,
    keys: Vec<ColumnKey>,
    /// Rows of the chunk that are wanted, of `all`.
    rows: Range<usize>,
    all: usize,
    /// The next batch.
    at: usize,
}

impl Held {
    fn step(&mut self) -> Result<Option<RecordBatch>, RunError> {
        let start = self.at * BATCH_ROWS;
        if start >= self.all {
            return Ok(None);
        }
        let len = BATCH_ROWS.min(self.all - start);
        let mut fresh = self.fresh(len)?.into_iter();
        let at = self.at;
        self.at += 1;
        if start + len >= self.all {
            self.keep();
        }
        let from = self.rows.start.clamp(start, start + len) - start;
        let to = self.rows.end.clamp(start, start + len) - start;
        let columns = self.held.iter().map(|held| {
            let array = match held {
                Some(column) => column.get(at).map(Kept::array).transpose()?,
                None => fresh.next(),
            };
            Ok(array.filter(|a| a.len() == len).map(|a| a.slice(from, to - from)))
        });
        let columns = columns.collect::<Result<Option<Vec<_>>, RunError>>()?.ok_or_else(|| self.uneven())?;
        let options = RecordBatchOptions::new().with_row_count(Some(to - from));
        Ok(Some(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?))
    }

    /// The columns of the next batch that are not held.
    fn fresh(&mut self, len: usize) -> Result<Vec<ArrayRef>, RunError> {
        let Some(batches) = &mut self.fresh else { return Ok(Vec::new()) };
        let batch = batches.next().transpose()?.filter(|b| b.num_rows() == len);
        let batch = batch.ok_or_else(|| self.uneven())?;
        self.taken.iter_mut().zip(batch.columns()).for_each(|(t, array)| t.push(array.clone()));
        Ok(batch.columns().to_vec())
    }

    fn keep(&mut self) {
        for (key, column) in self.keys.iter().zip(std::mem::take(&mut self.taken)) {
            self.parquet.cache.put(*key, column);
        }
    }

    fn uneven(&self) -> RunError {
        self.file.damaged("a chunk has another number of rows than its sidecar says")
    }
}

impl Iterator for Held {
    type Item = Result<RecordBatch, RunError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let batch = self.step();
            if batch.is_err() {
                self.at = usize::MAX / BATCH_ROWS;
            }
            match batch.transpose()? {
                // Rows before and behind the wanted ones are decoded only to be held.
                Ok(batch) if batch.num_rows() == 0 => continue,
                batch => return Some(batch),
            }
        }
    }
}
