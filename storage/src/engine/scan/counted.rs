//! A source that counts what is read of it.

use super::counts::ScanCounts;
use super::source::{BatchIter, RowReader, SortedSource, Traits};
use crate::engine::error::Error;
use crate::run::{ChunkMeta, RunFormat, RunMeta, Used, plain_bytes};
use crate::schema::TableSchema;
use arrow::array::RecordBatch;
use std::ops::Range;
use std::sync::Arc;

/// See the module. Bytes are those that the thread used while the source worked for it.
#[derive(Debug)]
pub(crate) struct Counted {
    source: Arc<dyn SortedSource>,
    counts: Arc<ScanCounts>,
    /// Whether what is read are the events of the question, and not what its order is found out by.
    events: bool,
}

impl Counted {
    pub fn all(
        sources: &[Arc<dyn SortedSource>],
        counts: &Arc<ScanCounts>,
        events: bool,
    ) -> Vec<Arc<dyn SortedSource>> {
        let counted = |s: &Arc<dyn SortedSource>| {
            Arc::new(Counted { source: s.clone(), counts: counts.clone(), events }) as Arc<dyn SortedSource>
        };
        sources.iter().map(counted).collect()
    }

    fn metered<T>(&self, work: impl FnOnce() -> T) -> T {
        metered(&self.counts, work)
    }
}

fn metered<T>(counts: &ScanCounts, work: impl FnOnce() -> T) -> T {
    let before = Used::so_far();
    let done = work();
    counts.used(Used::since(before));
    done
}

impl SortedSource for Counted {
    fn rows(&self) -> usize {
        self.source.rows()
    }

    fn traits(&self) -> Traits {
        self.source.traits()
    }

    fn run(&self) -> Option<(&RunMeta, &[ChunkMeta])> {
        self.source.run()
    }

    fn lower_bound(&self, key: &[u8]) -> Result<usize, Error> {
        self.metered(|| self.source.lower_bound(key))
    }

    fn find_key(&self, key: &[u8]) -> Result<Range<usize>, Error> {
        self.metered(|| self.source.find_key(key))
    }

    fn scan(
        &self,
        columns: &[String],
        rows: Range<usize>,
        schema: &Arc<TableSchema>,
    ) -> Result<BatchIter, Error> {
        let mut batches = self.metered(|| self.source.scan(columns, rows.clone(), schema))?;
        let (source, counts, events) = (self.source.clone(), self.counts.clone(), self.events);
        let mut next = rows.start;
        Ok(Box::new(std::iter::from_fn(move || {
            let batch = metered(&counts, || batches.next());
            if let Some(Ok(batch)) = &batch {
                let read = next..next + batch.num_rows();
                next = read.end;
                if events {
                    counts.events(source.as_ref(), read);
                }
            }
            batch
        })))
    }

    fn rows_of_key(
        &self,
        key: &[u8],
        columns: &[&str],
        schema: &Arc<TableSchema>,
    ) -> Result<Option<RecordBatch>, Error> {
        let found = self.metered(|| self.source.rows_of_key(key, columns, schema))?;
        if let Some(batch) = &found
            && self.events
        {
            self.count_mapped(batch);
            self.counts.events(self.source.as_ref(), self.place_of(key, batch.num_rows()));
        }
        Ok(found)
    }

    fn row_reader(
        self: Arc<Self>,
        columns: &[&str],
        known: &[&str],
        schema: &Arc<TableSchema>,
    ) -> Result<Arc<dyn RowReader>, Error> {
        let rows = self.metered(|| self.source.clone().row_reader(columns, known, schema))?;
        Ok(Arc::new(CountedRows { rows, of: self }))
    }

    fn keyed(&self, row: usize, schema: &TableSchema) -> u64 {
        self.source.keyed(row, schema)
    }

    fn split_keys(&self, n: usize) -> Result<Vec<Vec<u8>>, Error> {
        self.metered(|| self.source.split_keys(n))
    }
}

impl Counted {
    /// Files that are not compressed are used where they are mapped.
    fn count_mapped(&self, batch: &RecordBatch) {
        if self.source.run().is_some_and(|(meta, _)| meta.format == RunFormat::Ipc) {
            self.counts.used(Used { read: plain_bytes(batch), kept: 0 });
        }
    }

    /// Where the rows of a key may be, near enough to tell the chunk.
    fn place_of(&self, key: &[u8], rows: usize) -> Range<usize> {
        let chunks = self.source.run().map_or(&[][..], |(_, chunks)| chunks);
        let after = chunks.partition_point(|c| c.first_key.as_slice() <= key);
        let start = after.checked_sub(1).map_or(0, |chunk| chunks[chunk].first_row as usize);
        start..start + rows
    }
}

/// A reader of rows that counts what is read.
#[derive(Debug)]
struct CountedRows {
    rows: Arc<dyn RowReader>,
    of: Arc<Counted>,
}

impl RowReader for CountedRows {
    fn rows(&self, rows: Range<usize>, known: Option<&RecordBatch>) -> Result<RecordBatch, Error> {
        let batch = self.of.metered(|| self.rows.rows(rows.clone(), known))?;
        if self.of.events {
            self.of.count_mapped(&batch);
            // More columns of an event are no further event.
            if known.is_none() {
                self.of.counts.events(self.of.source.as_ref(), rows);
            }
        }
        Ok(batch)
    }
}
