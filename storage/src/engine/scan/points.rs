//! Many point questions at once, by ascending keys: each event is read once, however many questions there are.

use super::gather::{Gather, internal};
use super::group::{Event, Groups};
use super::lineage::Histories;
use super::look_up::PointReader;
use super::plan::TableScan;
use super::rows::{Qualifier, pick_newest, pick_newest_of};
use super::single::{KeyReader, SLOTS_MAX};
use super::source::Traits;
use crate::engine::error::{Error, ErrorKind};
use crate::engine::request::{Bounds, PointRequest};
use crate::event::Op;
use crate::id::ColumnId;
use crate::schema::TableSchema;
use arrow::array::{Array, BinaryArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use std::ops::Range;
use std::sync::Arc;

/// Keys that are looked up one by one in any case.
pub(crate) const SINGLE_KEYS: usize = 64;

/// Rows that a pass reads in the time in which one key is looked up in one source, about.
const ROWS_PER_LOOK_UP: usize = 1024;

/// Rows that a pass rather reads than that it is begun anew behind them, by source.
const ROWS_SKIPPED_MIN: usize = 16_384;

/// Loaded batches that may have come since the last rows were gathered.
const WAITING_MAX: usize = 32;

/// Events of a key from which on the newest one in question is searched for.
const SEARCHED_EVENTS_MIN: usize = 16;

/// Events of a block of a key with many, see [`Blocks`], and questions that they are worth it for.
const BLOCK_EVENTS: usize = 256;
const BLOCK_QUESTIONS_MIN: usize = 8;

/// Answers point questions whose keys ascend from call to call; see [`crate::engine::Snapshot::point_scan`].
pub(crate) struct PointScan {
    scan: TableScan,
    schema: Arc<TableSchema>,
    /// Names of the columns that are read: questions may be bounded on any axis.
    columns: Vec<String>,
    singles_max: usize,
    fold: Fold,
    walk: Option<Walk>,
}

/// A pass over the events that is under way.
struct Walk {
    groups: Groups,
    histories: Option<Histories>,
    /// The last key that was asked for, and its events.
    key: Vec<u8>,
    events: Vec<Event>,
}

impl PointScan {
    /// Keys up to `singles_max` of one call are looked up one by one, more if they are few among many.
    pub fn new(scan: TableScan, projection: &[ColumnId], singles_max: usize) -> Result<PointScan, Error> {
        let schema = scan.latest_schema();
        let times = ["valid_from", "valid_to", "system", "commit"].into_iter();
        let columns = scan.row_columns(projection, times, true);
        let fold = Fold::new(&scan, &schema, projection)?;
        Ok(PointScan { scan, schema, columns, singles_max, fold, walk: None })
    }

    pub fn singles_max(&self) -> usize {
        self.singles_max
    }

    /// See [`PointScan::new`].
    pub fn set_singles(&mut self, singles_max: usize) {
        self.singles_max = singles_max;
    }

    /// Answers one question for each key; returns the numbers of the questions that have a row, ascending, and
    /// their rows. `keys` ascend, may repeat, and are not below those of the call before.
    pub fn answer(
        &mut self,
        keys: &BinaryArray,
        bounds: &[Bounds],
    ) -> Result<(Vec<u32>, RecordBatch), Error> {
        if keys.len() != bounds.len() || keys.null_count() > 0 {
            return Err(Error::new(ErrorKind::Invalid, "a point question lacks its key or its bounds"));
        }
        let questions = distinct(keys);
        let mut answer = Answer { bounds, pending: Vec::new(), found: Vec::new(), batches: Vec::new() };
        match self.pass_from(keys, questions.len())? {
            None => self.look_up(keys, &questions, &mut answer)?,
            Some(starts) => {
                let walk = self.walk(&starts)?;
                self.pass(keys, &questions, walk, &mut answer)?;
            }
        }
        answer.finish(&mut self.fold)
    }

    /// Where a pass over the events of the keys begins in each source; `None` if they are to be looked up.
    fn pass_from(&self, keys: &BinaryArray, distinct: usize) -> Result<Option<Vec<usize>>, Error> {
        if distinct <= self.singles_max {
            return Ok(None);
        }
        // The least key behind the last one; a source need not have that.
        let (first, after) = (keys.value(0), [keys.value(keys.len() - 1), &[0]].concat());
        let (mut starts, mut rows) = (Vec::with_capacity(self.scan.sources.len()), 0);
        for source in &self.scan.sources {
            let start = source.lower_bound(first)?;
            rows += source.lower_bound(&after)?.saturating_sub(start);
            starts.push(start);
        }
        Ok((distinct * ROWS_PER_LOOK_UP * starts.len() >= rows).then_some(starts))
    }

    fn look_up(
        &mut self,
        keys: &BinaryArray,
        questions: &[Range<usize>],
        answer: &mut Answer,
    ) -> Result<(), Error> {
        let mut reader = KeyReader::new(&self.scan, &self.columns, &self.schema);
        let mut events = Vec::new();
        for asked in questions {
            if reader.read(keys.value(asked.start), &mut events)? {
                let KeyReader { groups, histories, .. } = &mut reader;
                self.fold.key(groups, &mut events, histories.as_ref(), asked.clone(), answer)?;
            }
            if self.fold.gather.is_full() || reader.groups.slots().len() >= SLOTS_MAX {
                self.fold.emit(&mut reader.groups, &mut [], answer)?;
            }
        }
        self.fold.emit(&mut reader.groups, &mut [], answer)
    }

    /// The pass under way if it is not far before `starts`, else a new one.
    fn walk(&mut self, starts: &[usize]) -> Result<Walk, Error> {
        if let Some(walk) = self.walk.take()
            && walk.groups.distance(starts).is_none_or(|rows| rows <= ROWS_SKIPPED_MIN * starts.len())
        {
            return Ok(walk);
        }
        let sources = &self.scan.sources;
        let ranges: Vec<Range<usize>> =
            sources.iter().zip(starts).map(|(source, start)| *start..source.rows()).collect();
        let (columns, schema) = (&self.columns, &self.schema);
        Ok(Walk {
            groups: Groups::new(sources, &ranges, columns, schema, self.scan.order.clone())?,
            histories: self.scan.needs_histories().then(|| self.scan.histories(columns, schema)),
            key: Vec::new(),
            events: Vec::new(),
        })
    }

    fn pass(
        &mut self,
        keys: &BinaryArray,
        questions: &[Range<usize>],
        mut walk: Walk,
        answer: &mut Answer,
    ) -> Result<(), Error> {
        let Walk { groups, histories, key, events } = &mut walk;
        let mut kept = groups.slots().len();
        for asked in questions {
            let wanted = keys.value(asked.start);
            // The last key of the call before may be asked for again.
            if events.is_empty() || wanted != key.as_slice() {
                groups.seek(wanted, events)?;
                key.clear();
                key.extend_from_slice(wanted);
            }
            if !events.is_empty() {
                self.fold.key(groups, events, histories.as_ref(), asked.clone(), answer)?;
            }
            if self.fold.gather.is_full() || groups.slots().len() > kept + WAITING_MAX {
                self.fold.emit(groups, events, answer)?;
                kept = groups.slots().len();
            }
        }
        self.fold.emit(groups, events, answer)?;
        self.walk = Some(walk);
        Ok(())
    }
}

/// The questions of each key.
fn distinct(keys: &BinaryArray) -> Vec<Range<usize>> {
    let mut all = Vec::with_capacity(keys.len());
    let mut start = 0;
    for i in 1..=keys.len() {
        if i == keys.len() || keys.value(i) != keys.value(start) {
            all.push(start..i);
            start = i;
        }
    }
    all
}

/// Folds the events of one key after the other.
struct Fold {
    projection: Vec<ColumnId>,
    gather: Gather,
    picks: Vec<(u32, u32)>,
    /// What the events of any source may hold.
    traits: Traits,
}

impl Fold {
    fn new(scan: &TableScan, schema: &TableSchema, projection: &[ColumnId]) -> Result<Fold, Error> {
        let gather = Gather::new(schema, projection, &[])?;
        Ok(Fold {
            projection: projection.to_vec(),
            gather,
            picks: Vec::new(),
            traits: Traits::of_all(&scan.traits()),
        })
    }

    /// Answers all questions about the key of `events`.
    fn key(
        &mut self,
        groups: &mut Groups,
        events: &mut [Event],
        histories: Option<&Histories>,
        asked: Range<usize>,
        answer: &mut Answer,
    ) -> Result<(), Error> {
        let histories = histories.filter(|h| h.needed(groups, events));
        let first = groups.loaded(events[0].slot);
        if histories.is_none() && first.op(events[0].row as usize) == Op::Truncate {
            return Ok(());
        }
        let many = events.len() > 2 * BLOCK_EVENTS && asked.len() >= BLOCK_QUESTIONS_MIN;
        let blocks = (many && histories.is_none()).then(|| Blocks::new(groups, events));
        for number in asked {
            let bounds = answer.bounds[number];
            let copies = match histories {
                Some(histories) => {
                    let (picks, gather) = (&mut self.picks, &mut self.gather);
                    histories.resolve(groups, events, &bounds, &self.projection, picks, gather)?
                }
                None => self.pick(groups, events, blocks.as_ref(), bounds) as usize,
            };
            for _ in 0..copies {
                self.gather.push(|i| self.picks[i]);
                answer.pending.push(number as u32);
            }
            if self.gather.is_full() {
                self.emit(groups, events, answer)?;
            }
        }
        Ok(())
    }

    fn pick(&mut self, groups: &Groups, events: &[Event], blocks: Option<&Blocks>, bounds: Bounds) -> bool {
        let qualifier = Qualifier::new(bounds, &[self.traits]);
        let mut from = 0;
        if events.len() >= SEARCHED_EVENTS_MIN {
            // Newest first is latest valid time first.
            let later = |e: &Event| groups.loaded(e.slot).valid_from(e.row as usize) > bounds.valid;
            from = events.partition_point(later);
        }
        let (projection, picks) = (&self.projection, &mut self.picks);
        match blocks {
            None => pick_newest(groups, &events[from..], &qualifier, projection, picks),
            Some(blocks) => {
                let events = blocks.events(events, from, bounds);
                pick_newest_of(groups, events, &qualifier, projection, picks)
            }
        }
    }

    /// Makes a batch of what was gathered, and lets loaded batches go but those of `events`.
    fn emit(&mut self, groups: &mut Groups, events: &mut [Event], answer: &mut Answer) -> Result<(), Error> {
        if self.gather.rows() > 0 {
            answer.batches.push(self.gather.emit(groups.slots(), Vec::new())?);
            answer.found.append(&mut answer.pending);
        }
        groups.retire_but(events);
        Ok(())
    }
}

/// The least system time and commit of every [`BLOCK_EVENTS`] events of a key: blocks that came after the bounds of a
/// question are stepped over, so that many questions about a key with many events do not look at each of them.
struct Blocks(Vec<(i64, u64)>);

impl Blocks {
    fn new(groups: &Groups, events: &[Event]) -> Blocks {
        let known = |e: &Event| {
            let (batch, row) = (groups.loaded(e.slot), e.row as usize);
            (batch.system(row), batch.commit(row))
        };
        let least = |block: &[Event]| {
            let least = block.iter().map(known).reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)));
            least.unwrap_or_default()
        };
        Blocks(events.chunks(BLOCK_EVENTS).map(least).collect())
    }

    /// The events from number `from` on without blocks of which none counts.
    fn events<'e>(
        &'e self,
        events: &'e [Event],
        from: usize,
        bounds: Bounds,
    ) -> impl Iterator<Item = &'e Event> {
        let first = from / BLOCK_EVENTS;
        let known = move |(_, (system, commit)): &(usize, &(i64, u64))| {
            *system <= bounds.system && *commit <= bounds.commit.0
        };
        let block = move |(n, _): (usize, &(i64, u64))| {
            let start = (n * BLOCK_EVENTS).max(from);
            &events[start..((n + 1) * BLOCK_EVENTS).min(events.len())]
        };
        self.0.iter().enumerate().skip(first).filter(known).flat_map(block)
    }
}

/// Rows found so far.
struct Answer<'a> {
    bounds: &'a [Bounds],
    pending: Vec<u32>,
    found: Vec<u32>,
    batches: Vec<RecordBatch>,
}

impl Answer<'_> {
    fn finish(self, fold: &mut Fold) -> Result<(Vec<u32>, RecordBatch), Error> {
        let rows = match self.batches.as_slice() {
            [] => fold.gather.emit(&[], Vec::new())?,
            [one] => one.clone(),
            [first, ..] => concat_batches(&first.schema(), &self.batches).map_err(internal)?,
        };
        Ok((self.found, rows))
    }
}

impl TableScan {
    /// Answers point questions in any order; see [`crate::engine::Snapshot::points`].
    pub fn points(
        &self,
        requests: &[PointRequest],
        projection: &[ColumnId],
    ) -> Result<(Vec<u32>, RecordBatch), Error> {
        if let [one] = requests {
            let reader = PointReader::new(self.clone(), projection, &self.latest_schema())?;
            return Ok(match reader.row(&one.key, one.bounds)? {
                Some(row) => (vec![0; row.num_rows()], row),
                None => (Vec::new(), RecordBatch::new_empty(reader.fields().clone())),
            });
        }
        let mut by_key: Vec<u32> = (0..requests.len() as u32).collect();
        by_key.sort_by(|a, b| requests[*a as usize].key.cmp(&requests[*b as usize].key));
        let sorted = || by_key.iter().map(|i| &requests[*i as usize]);
        let keys = BinaryArray::from_iter_values(sorted().map(|r| &r.key));
        let bounds: Vec<Bounds> = sorted().map(|r| r.bounds).collect();
        let (found, rows) = PointScan::new(self.clone(), projection, SINGLE_KEYS)?.answer(&keys, &bounds)?;
        let mut numbers: Vec<u32> = found.iter().map(|i| by_key[*i as usize]).collect();
        if numbers.is_sorted() {
            return Ok((numbers, rows));
        }
        let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
        order.sort_by_key(|i| numbers[*i as usize]);
        numbers.sort_unstable();
        if rows.num_columns() == 0 {
            return Ok((numbers, rows));
        }
        let rows = take_record_batch(&rows, &UInt32Array::from(order)).map_err(internal)?;
        Ok((numbers, rows))
    }
}
