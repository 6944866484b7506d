//! The events of one key after the other, merged over all sources.

mod seek;

use super::gather::internal;
use super::loaded::Loaded;
use super::source::{BatchIter, SortedSource};
use crate::engine::error::{Error, ErrorKind};
use crate::key::key_prefix;
use crate::schema::TableSchema;
use arrow::compute::concat_batches;
use arrow::datatypes::Schema;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// An event: a row of a loaded batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub slot: u32,
    pub row: u32,
}

/// How events of one key from different sources compare, see rule B3.
#[derive(Clone, Debug)]
pub(crate) struct MergeOrder {
    /// Dense rank by origin number.
    pub ranks: Arc<[u32]>,
    /// Whether system time takes part.
    pub system_declared: bool,
}

impl MergeOrder {
    /// Rule B3 over two events of one key with the same valid time and tie-breaks, ascending.
    fn compare_rest(&self, a: (&Loaded, usize), b: (&Loaded, usize)) -> Ordering {
        let ((x, i), (y, j)) = (a, b);
        let system = || if self.system_declared { x.system(i).cmp(&y.system(j)) } else { Ordering::Equal };
        system()
            .then_with(|| self.rank(x.origin(i)).cmp(&self.rank(y.origin(j))))
            .then_with(|| x.position(i).cmp(&y.position(j)))
            .then_with(|| x.ordinal(i).cmp(&y.ordinal(j)))
    }

    /// Rule B3 over two events of one key, ascending; needs all columns that it compares.
    pub fn compare(&self, (x, i): (&Loaded, usize), (y, j): (&Loaded, usize)) -> Ordering {
        let first = x.valid_from(i).cmp(&y.valid_from(j)).then_with(|| x.ties(i).cmp(&y.ties(j)));
        first.then_with(|| self.compare_rest((x, i), (y, j)))
    }

    pub fn rank(&self, origin: u32) -> u32 {
        self.ranks.get(origin as usize).copied().unwrap_or(u32::MAX)
    }
}

/// What rule B3 compares where valid time and tie-breaks are the same.
const REST_COLUMNS: [&str; 4] = ["system", "origin", "position", "ordinal"];

struct Cursor {
    batches: BatchIter,
    /// Number of the source.
    source: usize,
    /// The row of the source that comes after the current batch.
    next_row: usize,
    slot: u32,
    row: u32,
    len: u32,
    done: bool,
}

/// Where a loaded batch comes from.
#[derive(Clone, Debug)]
struct Provenance {
    source: usize,
    rows: Range<usize>,
    /// The batch with the columns of [`REST_COLUMNS`], once they were needed.
    rest: Option<Arc<Loaded>>,
}

/// Loads what is seldom compared when it is.
struct Late {
    sources: Vec<Arc<dyn SortedSource>>,
    columns: Vec<String>,
    schema: Arc<TableSchema>,
}

/// Iterates over the keys of a set of sources; see [`Groups::next`].
pub(crate) struct Groups {
    cursors: Vec<Cursor>,
    /// First bytes of the key of the current row of each cursor, kept only where there are several.
    prefixes: Vec<u128>,
    slots: Vec<Arc<Loaded>>,
    /// Of the slots that cursors loaded; those that were added stand behind.
    origins: Vec<Option<Provenance>>,
    order: MergeOrder,
    late: Option<Late>,
    /// Cursors that stand at the least key.
    least: Vec<usize>,
    /// Starts and ends of what is left of each contributing source within the group, for merging.
    parts: Vec<(usize, usize)>,
    scratch: Vec<Event>,
    /// Whether some cursor came to its end.
    ended: bool,
}

impl Groups {
    /// Over the given rows of each source. `columns` must hold what [`Loaded`] is asked for later;
    /// with more than one source also the columns of rule B3 and the key.
    pub fn new(
        sources: &[Arc<dyn SortedSource>],
        ranges: &[Range<usize>],
        columns: &[String],
        schema: &Arc<TableSchema>,
        order: MergeOrder,
    ) -> Result<Groups, Error> {
        let mut groups = Groups::empty(order);
        for (i, (source, range)) in sources.iter().zip(ranges).enumerate().filter(|(_, (_, r))| !r.is_empty())
        {
            let batches = source.scan(columns, range.clone(), schema)?;
            let cursor = Cursor {
                batches,
                source: i,
                next_row: range.start,
                slot: u32::MAX,
                row: 0,
                len: 0,
                done: false,
            };
            groups.cursors.push(cursor);
        }
        for i in 0..groups.cursors.len() {
            groups.load(i)?;
        }
        groups.cursors.retain(|c| !c.done);
        groups.ended = false;
        if groups.cursors.len() > 1 {
            groups.prefixes = (0..groups.cursors.len()).map(|i| groups.prefix(i)).collect();
        }
        Ok(groups)
    }

    /// Over nothing: keys are given with [`Groups::add_key`].
    pub fn empty(order: MergeOrder) -> Groups {
        Groups {
            cursors: Vec::new(),
            prefixes: Vec::new(),
            slots: Vec::new(),
            origins: Vec::new(),
            order,
            late: None,
            least: Vec::new(),
            parts: Vec::new(),
            scratch: Vec::new(),
            ended: false,
        }
    }

    /// Puts the events of one key into `events`, newest first; `batches` are all of it, each of one source.
    pub fn add_key(
        &mut self,
        batches: impl IntoIterator<Item = Loaded>,
        events: &mut Vec<Event>,
    ) -> Result<(), Error> {
        events.clear();
        self.parts.clear();
        for loaded in batches {
            let (slot, start) = (self.slots.len() as u32, events.len());
            events.extend((0..loaded.len() as u32).map(|row| Event { slot, row }));
            if events.len() > start {
                self.parts.push((start, events.len()));
            }
            self.slots.push(Arc::new(loaded));
        }
        if self.parts.len() > 1 { self.merge(events) } else { Ok(()) }
    }

    /// To learn nothing but the order of the events of several sources.
    pub fn of_order(
        sources: &[Arc<dyn SortedSource>],
        ranges: &[Range<usize>],
        schema: &Arc<TableSchema>,
        order: MergeOrder,
    ) -> Result<Groups, Error> {
        let mut columns = vec!["key", "key_no", "valid_from"];
        if sources.iter().any(|s| s.traits().ties) {
            columns.push("ties");
        }
        let columns: Vec<String> = columns.into_iter().map(str::to_owned).collect();
        let mut groups = Groups::new(sources, ranges, &columns, schema, order)?;
        groups.late = Some(Late {
            sources: sources.to_vec(),
            columns: ["key_no"].iter().chain(&REST_COLUMNS).map(|c| (*c).to_owned()).collect(),
            schema: schema.clone(),
        });
        Ok(groups)
    }

    /// The number of the source that a batch was loaded from by a cursor.
    pub fn source(&self, slot: u32) -> usize {
        self.origins[slot as usize].as_ref().map_or(0, |o| o.source)
    }

    /// The loaded batch that events with this slot number are rows of.
    pub fn loaded(&self, slot: u32) -> &Loaded {
        &self.slots[slot as usize]
    }

    /// All loaded batches by slot number.
    pub fn slots(&self) -> &[Arc<Loaded>] {
        &self.slots
    }

    /// The order of events.
    pub fn order(&self) -> &MergeOrder {
        &self.order
    }

    /// Key bytes of the group that [`Groups::next`] gave; needs the key column.
    pub fn key_of<'a>(&'a self, events: &[Event]) -> &'a [u8] {
        self.loaded(events[0].slot).key(events[0].row as usize)
    }

    /// Puts the events of the next key into `events`, newest first (rule B3 descending). False at
    /// the end.
    pub fn next(&mut self, events: &mut Vec<Event>) -> Result<bool, Error> {
        events.clear();
        match self.cursors.len() {
            0 => return Ok(false),
            1 => self.take(0, events)?,
            _ => {
                self.find_least();
                self.parts.clear();
                for n in 0..self.least.len() {
                    let (i, start) = (self.least[n], events.len());
                    self.take(i, events)?;
                    self.prefixes[i] = self.prefix(i);
                    self.parts.push((start, events.len()));
                }
                if self.parts.len() > 1 {
                    self.merge(events)?;
                }
            }
        }
        if self.ended {
            self.drop_ended();
        }
        Ok(!events.is_empty())
    }

    fn drop_ended(&mut self) {
        self.ended = false;
        let mut done = self.cursors.iter().map(|c| c.done);
        self.prefixes.retain(|_| !done.next().unwrap_or(false));
        self.cursors.retain(|c| !c.done);
    }

    /// Finds the cursors at the least key; prefixes decide nearly always.
    fn find_least(&mut self) {
        let mut least = u128::MAX;
        for prefix in &self.prefixes {
            least = least.min(*prefix);
        }
        self.least.clear();
        self.least.extend((0..self.prefixes.len()).filter(|i| self.prefixes[*i] == least));
        if self.least.len() > 1 {
            self.keep_least_keys();
        }
    }

    /// Leaves those of `least` whose whole key is the least one.
    fn keep_least_keys(&mut self) {
        let key = |i: usize| {
            let c = &self.cursors[i];
            self.slots[c.slot as usize].key(c.row as usize)
        };
        let mut best = key(self.least[0]);
        let mut kept = 1;
        for n in 1..self.least.len() {
            let i = self.least[n];
            match key(i).cmp(best) {
                Ordering::Greater => continue,
                Ordering::Equal => {}
                Ordering::Less => (best, kept) = (key(i), 0),
            }
            self.least[kept] = i;
            kept += 1;
        }
        self.least.truncate(kept);
    }

    fn prefix(&self, i: usize) -> u128 {
        let c = &self.cursors[i];
        if c.done { 0 } else { key_prefix(self.slots[c.slot as usize].key(c.row as usize)) }
    }

    /// Takes all rows of the current key of one cursor; they may go on in its next batch.
    fn take(&mut self, i: usize, events: &mut Vec<Event>) -> Result<(), Error> {
        let c = &self.cursors[i];
        let number = self.slots[c.slot as usize].key_numbers()[c.row as usize];
        loop {
            let c = &mut self.cursors[i];
            let numbers = &self.slots[c.slot as usize].key_numbers()[c.row as usize..];
            let rows = numbers.iter().take_while(|n| **n == number).count() as u32;
            events.extend((c.row..c.row + rows).map(|row| Event { slot: c.slot, row }));
            c.row += rows;
            if c.row < c.len {
                return Ok(());
            }
            self.load(i)?;
            if self.cursors[i].done {
                return Ok(());
            }
        }
    }

    fn load(&mut self, i: usize) -> Result<(), Error> {
        let c = &mut self.cursors[i];
        loop {
            match c.batches.next().transpose()? {
                None => {
                    c.done = true;
                    self.ended = true;
                    return Ok(());
                }
                Some(batch) if batch.num_rows() == 0 => continue,
                Some(batch) => {
                    let loaded = Loaded::new(batch)?;
                    (c.slot, c.row, c.len) = (self.slots.len() as u32, 0, loaded.len() as u32);
                    let rows = c.next_row..c.next_row + loaded.len();
                    c.next_row = rows.end;
                    let origin = Provenance { source: c.source, rows, rest: None };
                    self.origins.resize(self.slots.len(), None);
                    self.origins.push(Some(origin));
                    self.slots.push(Arc::new(loaded));
                    return Ok(());
                }
            }
        }
    }

    /// Merges the parts of `events`, each newest first. Parts are few and mostly tiny.
    fn merge(&mut self, events: &mut Vec<Event>) -> Result<(), Error> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        while self.parts.len() > 1 {
            let mut best = 0;
            for p in 1..self.parts.len() {
                if self.is_newer(events[self.parts[p].0], events[self.parts[best].0])? {
                    best = p;
                }
            }
            let (at, end) = &mut self.parts[best];
            scratch.push(events[*at]);
            *at += 1;
            if at == end {
                self.parts.swap_remove(best);
            }
        }
        for (at, end) in &self.parts {
            scratch.extend_from_slice(&events[*at..*end]);
        }
        std::mem::swap(events, &mut scratch);
        self.scratch = scratch;
        Ok(())
    }

    /// Whether `a` comes after `b`, of the same key, by rule B3.
    fn is_newer(&mut self, a: Event, b: Event) -> Result<bool, Error> {
        let ((x, i), (y, j)) = ((self.loaded(a.slot), a.row as usize), (self.loaded(b.slot), b.row as usize));
        let order = x.valid_from(i).cmp(&y.valid_from(j)).then_with(|| x.ties(i).cmp(&y.ties(j)));
        if order != Ordering::Equal {
            return Ok(order == Ordering::Greater);
        }
        if self.late.is_none() {
            return Ok(self.order.compare_rest((x, i), (y, j)) == Ordering::Greater);
        }
        let (x, y) = (self.rest(a.slot)?, self.rest(b.slot)?);
        Ok(self.order.compare_rest((&x, i), (&y, j)) == Ordering::Greater)
    }

    /// The columns of [`REST_COLUMNS`] of a loaded batch.
    fn rest(&mut self, slot: u32) -> Result<Arc<Loaded>, Error> {
        let (Some(late), Some(origin)) = (&self.late, &mut self.origins[slot as usize]) else {
            return Ok(self.slots[slot as usize].clone());
        };
        if let Some(rest) = &origin.rest {
            return Ok(rest.clone());
        }
        let batches = late.sources[origin.source].scan(&late.columns, origin.rows.clone(), &late.schema)?;
        let batches = batches.collect::<Result<Vec<_>, Error>>()?;
        let schema = batches.first().map(|b| b.schema()).unwrap_or_else(|| Arc::new(Schema::empty()));
        let rest = Arc::new(Loaded::new(concat_batches(&schema, &batches).map_err(internal)?)?);
        if rest.len() != origin.rows.len() {
            return Err(Error::new(ErrorKind::Damaged, "a source has another number of rows than it says"));
        }
        origin.rest = Some(rest.clone());
        Ok(rest)
    }

    /// Rows of loaded batches that no cursor reads any more.
    pub fn waiting_rows(&self) -> usize {
        let all = self.slots.iter().map(|s| s.len()).sum::<usize>();
        all - self.cursors.iter().map(|c| c.len as usize).sum::<usize>().min(all)
    }

    /// Keeps a batch that was loaded aside; returns its slot. It is forgotten by the next
    /// [`Groups::retire`].
    pub fn add_slot(&mut self, loaded: Arc<Loaded>) -> u32 {
        self.slots.push(loaded);
        self.slots.len() as u32 - 1
    }

    /// Forgets batches that no cursor reads any more. Slot numbers change: events taken before are
    /// void.
    pub fn retire(&mut self) {
        if self.slots.len() <= self.cursors.len() {
            return;
        }
        self.retire_but(&mut []);
    }
}
