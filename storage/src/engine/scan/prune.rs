//! Which parts of a source a question can do without, by the times that its events have.
//!
//! An event that was stored, known or began after what is asked for has no part in the answer, so a stretch
//! of events that all did is passed over. Where rows come with the time they ended at, only the commit
//! bounds: later events are what ends them.

use super::rows::Qualifier;
use super::source::{BatchIter, RowReader, SortedSource, Traits};
use crate::engine::error::Error;
use crate::engine::request::Bounds;
use crate::run::{ChunkMeta, RunMeta};
use crate::schema::TableSchema;
use crate::time::FOREVER;
use arrow::array::RecordBatch;
use std::ops::Range;
use std::sync::Arc;

/// What a question asks for, as far as it says which events have no part in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// The last that count.
    pub bounds: Bounds,
    /// Whether rows at the bounds are asked for, so that what had ended before does not count either.
    pub point: bool,
}

/// Consecutive rows of a source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stretch {
    pub rows: Range<usize>,
    /// What is to be checked of each event; `None` if none of them counts.
    pub qualifier: Option<Qualifier>,
}

/// The rows `rows` of a source, divided where what must be checked changes.
pub(crate) fn stretches(source: &dyn SortedSource, rows: Range<usize>, reach: &Reach) -> Vec<Stretch> {
    let bounds = &reach.bounds;
    let (traits, chunks) = (source.traits(), source.run().map_or(&[][..], |(_, chunks)| chunks));
    let qualifier = |t: &Traits| (!Qualifier::excludes(bounds, t)).then(|| Qualifier::new(*bounds, &[*t]));
    let whole = qualifier(&traits);
    if chunks.len() < 2 || whole.is_none() {
        return vec![Stretch { rows, qualifier: whole }];
    }
    let mut found: Vec<Stretch> = Vec::new();
    for chunk in chunks {
        let part = (chunk.first_row as usize).max(rows.start)
            ..((chunk.first_row + chunk.rows) as usize).min(rows.end);
        if part.is_empty() {
            continue;
        }
        let qualifier =
            qualifier(&traits_of(chunk, traits)).filter(|_| !(reach.point && have_ended(chunk, bounds)));
        match found.last_mut() {
            Some(last) if last.qualifier == qualifier => last.rows.end = part.end,
            _ => found.push(Stretch { rows: part, qualifier }),
        }
    }
    found
}

/// What the rows of a chunk may hold.
fn traits_of(chunk: &ChunkMeta, run: Traits) -> Traits {
    let spans = &chunk.spans;
    Traits {
        valid_from: (spans.valid_from.min, spans.valid_from.max),
        system: (spans.system.min, spans.system.max),
        commit: (spans.commit.min, spans.commit.max),
        bounded: run.bounded && spans.valid_to.min != FOREVER,
        ..run
    }
}

/// Whether every event of a chunk speaks of a time that ends before what is asked for (rule B13).
fn have_ended(chunk: &ChunkMeta, bounds: &Bounds) -> bool {
    let last = chunk.spans.valid_to.max;
    last != FOREVER && last <= bounds.valid
}

/// A source without the stretches none of whose events counts. Row numbers stay those of the source.
#[derive(Debug)]
pub(crate) struct Pruned {
    source: Arc<dyn SortedSource>,
    reach: Reach,
}

impl Pruned {
    pub fn all(sources: &[Arc<dyn SortedSource>], reach: Reach) -> Vec<Arc<dyn SortedSource>> {
        let pruned = |s: &Arc<dyn SortedSource>| {
            Arc::new(Pruned { source: s.clone(), reach }) as Arc<dyn SortedSource>
        };
        sources.iter().map(pruned).collect()
    }
}

impl SortedSource for Pruned {
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
        self.source.lower_bound(key)
    }

    fn find_key(&self, key: &[u8]) -> Result<Range<usize>, Error> {
        match Qualifier::excludes(&self.reach.bounds, &self.source.traits()) {
            true => Ok(0..0),
            false => self.source.find_key(key),
        }
    }

    fn scan(
        &self,
        columns: &[String],
        rows: Range<usize>,
        schema: &Arc<TableSchema>,
    ) -> Result<BatchIter, Error> {
        let live = stretches(self.source.as_ref(), rows, &self.reach);
        let (source, columns, schema) = (self.source.clone(), columns.to_vec(), schema.clone());
        let live = live.into_iter().filter(|s| s.qualifier.is_some());
        Ok(Box::new(live.flat_map(move |s| opened(source.scan(&columns, s.rows, &schema)))))
    }

    fn rows_of_key(
        &self,
        key: &[u8],
        columns: &[&str],
        schema: &Arc<TableSchema>,
    ) -> Result<Option<RecordBatch>, Error> {
        match Qualifier::excludes(&self.reach.bounds, &self.source.traits()) {
            true => Ok(None),
            false => self.source.rows_of_key(key, columns, schema),
        }
    }

    fn row_reader(
        self: Arc<Self>,
        columns: &[&str],
        known: &[&str],
        schema: &Arc<TableSchema>,
    ) -> Result<Arc<dyn RowReader>, Error> {
        self.source.clone().row_reader(columns, known, schema)
    }

    fn keyed(&self, row: usize, schema: &TableSchema) -> u64 {
        self.source.keyed(row, schema)
    }

    fn split_keys(&self, n: usize) -> Result<Vec<Vec<u8>>, Error> {
        self.source.split_keys(n)
    }
}

/// Batches, or the error instead of them.
pub(crate) fn opened(batches: Result<BatchIter, Error>) -> BatchIter {
    batches.unwrap_or_else(|e| Box::new(std::iter::once(Err(e))))
}
