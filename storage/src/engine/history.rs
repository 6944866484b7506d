//! Frames of the log with the rows that a shrunk log has given up: they are made again from runs.
//!
//! A run is sorted by key and a frame has the events of one commit, so rows are made for many frames in
//! one pass over the runs; how many is bounded by the memory they take. What is made is checked against
//! the root in the log: it is what was committed, to the byte, or an error.

use super::catalog::Catalog;
use super::error::{Error, ErrorKind};
use super::memory::{CommittedRows, MemoryBatch};
use super::replay::{ONLY_COPY, block_rows};
use super::runs::RunSource;
use super::scan::internal;
use super::verify::in_order_of;
use super::view::View;
use crate::event::{EventColumns, FrameContext, Recipe, Recoder, event_schema};
use crate::id::TableId;
use crate::log::{BlockForm, Frame, FramePlace, LogError};
use crate::schema::{TableMeta, TableSchema};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Bytes of rows that are made in one pass.
const PASS_BYTES: u64 = 192 << 20;
/// Bytes of frames that are read ahead for it.
const FRAMES_BYTES: u64 = 64 << 20;
/// Batches that are decoded before they are looked at.
const BATCHES_AHEAD: usize = 2;
/// How much longer a row of the log is than its share of a compressed run, at most in most cases.
const ROW_TIMES: u64 = 4;

/// The events of a view by table.
pub(crate) struct History {
    catalog: Arc<Catalog>,
    runs: BTreeMap<TableId, Vec<Arc<RunSource>>>,
    /// The log may have given up what was in memory when the view was taken.
    memory: BTreeMap<TableId, Vec<Arc<MemoryBatch>>>,
    schemas: BTreeMap<(TableId, u32), Arc<TableSchema>>,
}

/// A frame with the rows of its blocks; those that cannot be made are an error.
pub(crate) type FilledFrame = (FramePlace, Frame, Vec<Result<CommittedRows, Error>>);

/// Frames in order, see [`History::fill`].
pub(crate) struct Filled<'t, I> {
    frames: I,
    history: History,
    tables: Option<&'t [TableId]>,
    rows_max: u64,
    ahead: VecDeque<(FramePlace, Frame)>,
    /// Rows that were made for the frames ahead, by commit and number of the block.
    made: BTreeMap<(u64, usize), Result<CommittedRows, Error>>,
    failed: Option<Error>,
}

/// The rows of one block under construction.
struct Making {
    commit: u64,
    block: usize,
    recipe: Recipe,
    then: Arc<TableSchema>,
    commit_at: i64,
    /// Place of each row and where it ends in `bytes`, in the order of the runs.
    rows: Vec<((u32, u64, u32), usize)>,
    bytes: Vec<u8>,
}

impl History {
    pub fn of(view: &View) -> History {
        let runs = view.tables.iter().map(|(id, table)| (*id, table.runs.clone())).collect();
        let memory = view.tables.iter().map(|(id, table)| (*id, table.memory.clone())).collect();
        let tables = view.catalog.tables.values();
        let schemas = tables.flat_map(|t| t.schemas.iter().map(|(_, s)| ((t.id, s.version), s)));
        let schemas = schemas.map(|(known, s)| (known, Arc::new(s.clone()))).collect();
        History { catalog: view.catalog.clone(), runs, memory, schemas }
    }

    /// The frames with their rows; only those of `tables` if some are named.
    pub fn fill<I>(self, frames: I, tables: Option<&[TableId]>) -> Filled<'_, I>
    where
        I: Iterator<Item = Result<(FramePlace, Frame), LogError>>,
    {
        let of_run = |r: &Arc<RunSource>| ROW_TIMES * r.meta().bytes / r.meta().rows.max(1);
        let row_bytes = self.runs.values().flatten().map(of_run).max().unwrap_or(0).max(64);
        let rows_max = (PASS_BYTES / row_bytes).max(1);
        let (ahead, made) = (VecDeque::new(), BTreeMap::new());
        Filled { frames, history: self, tables, rows_max, ahead, made, failed: None }
    }

    /// Makes the rows of blocks of one table, in one pass over its runs and batches in memory.
    fn make(&self, meta: &TableMeta, making: &mut [Making]) -> Result<(), Error> {
        let (Some(first), Some(last)) = (making.first(), making.last()) else { return Ok(()) };
        let (first, last) = (first.commit, last.commit);
        let mut by_commit = vec![None; (last - first + 1) as usize];
        making.iter().enumerate().for_each(|(i, m)| by_commit[(m.commit - first) as usize] = Some(i));
        let mut take = |events: &EventColumns, schema: &TableSchema| {
            let mut recoder = Recoder::new(events, schema, meta.system_declared)?;
            for (i, commit) in events.commit().values().iter().enumerate() {
                let at = commit.checked_sub(first).and_then(|at| by_commit.get(at as usize));
                let Some(Some(number)) = at else { continue };
                if recoder.is_logged(i) {
                    let m = &mut making[*number];
                    recoder.row(i, &m.then, m.commit_at, m.recipe.habit, &mut m.bytes);
                    m.rows.push((recoder.place(i), m.bytes.len()));
                }
            }
            Some(())
        };
        for run in self.runs.get(&meta.id).into_iter().flatten() {
            let outside = |s: crate::run::TimeSpans| s.commit.max < first || s.commit.min > last;
            if !run.meta().spans.is_none_or(outside) {
                for_each_batch(run, |events| take(events, &run.schema).ok_or_else(|| other_types(run)))?;
            }
        }
        for batch in self.memory.get(&meta.id).into_iter().flatten() {
            let events = EventColumns::new(batch.sorted()?.plain.clone()).map_err(internal)?;
            let wrong =
                || internal("a batch in memory has columns of other types than its schema".to_owned());
            take(&events, &batch.schema).ok_or_else(wrong)?;
        }
        Ok(())
    }
}

/// Gives `take` all of a run, batch after batch; the next ones are decoded on another thread meanwhile.
pub(crate) fn for_each_batch(
    run: &RunSource,
    mut take: impl FnMut(&EventColumns) -> Result<(), Error>,
) -> Result<(), Error> {
    let own = event_schema(&run.schema);
    let names: Vec<&str> = own.fields().iter().map(|f| f.name().as_str()).collect();
    let batches = run.reader.scan_once(&names)?;
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::sync_channel(BATCHES_AHEAD);
        // Ends early where nobody listens any more.
        scope.spawn(move || batches.map(|batch| sender.send(batch)).find(Result::is_err));
        for batch in receiver {
            take(&EventColumns::new(in_order_of(&own, &batch?)?).map_err(internal)?)?;
        }
        Ok(())
    })
}

pub(crate) fn other_types(run: &RunSource) -> Error {
    let what = format!("run {} has columns of other types than its schema", run.meta().file_name());
    Error::new(ErrorKind::Damaged, what)
}

impl Making {
    /// The rows in the order in which they were committed; `None` if they are not those.
    fn finish(mut self, frame: &Frame) -> Option<CommittedRows> {
        let mut start = 0;
        let mut parts = Vec::with_capacity(self.rows.len());
        for (place, end) in &self.rows {
            parts.push((*place, &self.bytes[start..*end]));
            start = *end;
        }
        parts.sort_unstable_by_key(|(place, _)| *place);
        let origins: Vec<u32> = parts.iter().map(|((origin, ..), _)| *origin).collect();
        let guesses: Vec<&[u8]> = parts.iter().map(|(_, row)| *row).collect();
        let (ends, bytes) = self.recipe.rows(&guesses, &origins)?;
        self.bytes = Vec::new();
        let block = &frame.blocks[self.block];
        if ends.len() != block.committed_rows as usize || !frame.proves(self.block, &ends, &bytes) {
            return None;
        }
        let context = FrameContext { commit: frame.sequence, commit_at: frame.instant_us };
        Some(CommittedRows { context, table: block.table, ends, bytes: Bytes::from(bytes) })
    }
}

impl<I: Iterator<Item = Result<(FramePlace, Frame), LogError>>> Filled<'_, I> {
    fn wants(&self, table: TableId) -> bool {
        self.tables.is_none_or(|tables| tables.contains(&table))
    }

    /// Reads frames ahead while they lack rows and what they lack fits in one pass.
    fn read_ahead(&mut self) {
        let (mut missing, mut frames_bytes) = (0, 0);
        while missing < self.rows_max && frames_bytes < FRAMES_BYTES && self.failed.is_none() {
            match self.frames.next() {
                None => return,
                Some(Err(e)) => self.failed = Some(e.into()),
                Some(Ok((place, frame))) => {
                    let wanted = frame.blocks.iter().filter(|b| self.wants(b.table));
                    let digested = wanted.filter(|b| b.form == BlockForm::Digested);
                    missing += digested.map(|b| b.committed_rows as u64).sum::<u64>();
                    frames_bytes += place.bytes;
                    let heavy = frame.row_count() > 0;
                    self.ahead.push_back((place, frame));
                    if heavy {
                        return;
                    }
                }
            }
        }
    }

    /// Makes what the frames ahead lack.
    fn make_missing(&mut self) -> Result<(), Error> {
        let mut missing: BTreeMap<TableId, Vec<Making>> = BTreeMap::new();
        for (_, frame) in &self.ahead {
            for (number, block) in frame.blocks.iter().enumerate() {
                if block.form == BlockForm::Digested && self.wants(block.table) {
                    let making = self.start(frame, number)?;
                    missing.entry(block.table).or_default().push(making);
                }
            }
        }
        // Frames come without a gap.
        let first = self.ahead.front().map_or(0, |(_, f)| f.sequence.0);
        for (table, mut making) in missing {
            let Some(meta) = self.history.catalog.tables.get(&table).cloned() else { continue };
            let made = self.history.make(&meta, &mut making);
            for making in making {
                let key = (making.commit, making.block);
                let frame = self.ahead.get((making.commit - first) as usize);
                let rows = match (&made, frame) {
                    (Err(e), _) => Err(e.clone()),
                    (Ok(()), Some((_, frame))) => {
                        making.finish(frame).ok_or_else(|| other_rows(&meta, key.0))
                    }
                    (Ok(()), None) => continue,
                };
                self.made.insert(key, rows);
            }
        }
        Ok(())
    }

    fn start(&self, frame: &Frame, number: usize) -> Result<Making, Error> {
        let block = &frame.blocks[number];
        let commit = frame.sequence;
        let damaged = |what: String| {
            let what = format!("commit {commit} of the log, table {}: {what}", block.table.0);
            Error::new(ErrorKind::Damaged, what).hint(ONLY_COPY)
        };
        let recipe = Recipe::decode(&block.recipe).map_err(|e| damaged(e.what.to_owned()))?;
        let then = self.history.schemas.get(&(block.table, block.schema_version)).cloned();
        let then = then.ok_or_else(|| damaged("its schema is unknown".into()))?;
        Ok(Making {
            commit: commit.0,
            block: number,
            recipe,
            then,
            commit_at: frame.instant_us,
            rows: Vec::new(),
            bytes: Vec::new(),
        })
    }
}

fn other_rows(meta: &TableMeta, commit: u64) -> Error {
    let what = format!(
        "table {}, commit {commit}: the runs do not hold the rows that were committed, and the log has \
         given them up",
        meta.name
    );
    Error::new(ErrorKind::Damaged, what).hint(ONLY_COPY)
}

impl<I: Iterator<Item = Result<(FramePlace, Frame), LogError>>> Iterator for Filled<'_, I> {
    type Item = Result<FilledFrame, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ahead.is_empty() && self.failed.is_none() {
            self.read_ahead();
            if let Err(e) = self.make_missing() {
                self.ahead.clear();
                self.failed = Some(e);
            }
        }
        let Some((place, frame)) = self.ahead.pop_front() else { return self.failed.take().map(Err) };
        let mut rows = Vec::with_capacity(frame.blocks.len());
        for (number, block) in frame.blocks.iter().enumerate() {
            if self.wants(block.table) {
                let made = self.made.remove(&(frame.sequence.0, number));
                rows.push(made.unwrap_or_else(|| block_rows(&frame, block)));
            }
        }
        Some(Ok((place, frame, rows)))
    }
}
