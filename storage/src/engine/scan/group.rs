//! The events of one key after the other, merged over all sources.

use super::loaded::Loaded;
use super::source::{BatchIter, SortedSource};
use crate::engine::error::Error;
use crate::key::key_prefix;
use crate::schema::TableSchema;
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
    /// Rule B3 over two events of one key, ascending.
    pub fn compare(&self, a: (&Loaded, usize), b: (&Loaded, usize)) -> Ordering {
        let ((x, i), (y, j)) = (a, b);
        x.valid_from(i)
            .cmp(&y.valid_from(j))
            .then_with(|| x.ties(i).cmp(&y.ties(j)))
            .then_with(|| if self.system_declared { x.system(i).cmp(&y.system(j)) } else { Ordering::Equal })
            .then_with(|| self.rank(x.origin(i)).cmp(&self.rank(y.origin(j))))
            .then_with(|| x.position(i).cmp(&y.position(j)))
            .then_with(|| x.ordinal(i).cmp(&y.ordinal(j)))
    }

    pub fn rank(&self, origin: u32) -> u32 {
        self.ranks.get(origin as usize).copied().unwrap_or(u32::MAX)
    }
}

struct Cursor {
    batches: BatchIter,
    slot: u32,
    row: u32,
    len: u32,
    /// First bytes of the key of the current row, kept only where there are other cursors.
    prefix: u128,
    done: bool,
}

/// Iterates over the keys of a set of sources; see [`Groups::next`].
pub(crate) struct Groups {
    cursors: Vec<Cursor>,
    slots: Vec<Arc<Loaded>>,
    order: MergeOrder,
    /// Cursors that stand at the least key.
    least: Vec<usize>,
    /// Ends of the events of each contributing source within the group, for merging.
    parts: Vec<usize>,
    scratch: Vec<Event>,
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
        for (source, range) in sources.iter().zip(ranges).filter(|(_, r)| !r.is_empty()) {
            let batches = source.scan(columns, range.clone(), schema)?;
            groups.cursors.push(Cursor { batches, slot: u32::MAX, row: 0, len: 0, prefix: 0, done: false });
        }
        for i in 0..groups.cursors.len() {
            groups.load(i)?;
        }
        groups.cursors.retain(|c| !c.done);
        if groups.cursors.len() > 1 {
            for i in 0..groups.cursors.len() {
                groups.cursors[i].prefix = groups.prefix(i);
            }
        }
        Ok(groups)
    }

    /// Over nothing: keys are given with [`Groups::add_key`].
    pub fn empty(order: MergeOrder) -> Groups {
        Groups {
            cursors: Vec::new(),
            slots: Vec::new(),
            order,
            least: Vec::new(),
            parts: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Puts the events of one key into `events`, newest first; `batches` are all of it, each of one source.
    pub fn add_key(&mut self, batches: impl IntoIterator<Item = Loaded>, events: &mut Vec<Event>) {
        events.clear();
        self.parts.clear();
        for loaded in batches {
            let (slot, rows) = (self.slots.len() as u32, loaded.len() as u32);
            events.extend((0..rows).map(|row| Event { slot, row }));
            self.parts.push(events.len());
            self.slots.push(Arc::new(loaded));
        }
        if self.parts.len() > 1 {
            self.merge(events);
        }
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
        if self.cursors.len() == 1 {
            self.take(0, events)?;
        } else {
            if self.cursors.is_empty() {
                return Ok(false);
            }
            self.find_least();
            self.parts.clear();
            for n in 0..self.least.len() {
                let i = self.least[n];
                self.take(i, events)?;
                self.cursors[i].prefix = self.prefix(i);
                self.parts.push(events.len());
            }
            if self.parts.len() > 1 {
                self.merge(events);
            }
        }
        self.cursors.retain(|c| !c.done);
        Ok(!events.is_empty())
    }

    /// Finds the cursors at the least key; prefixes decide nearly always.
    fn find_least(&mut self) {
        let key = |c: &Cursor| self.slots[c.slot as usize].key(c.row as usize);
        self.least.clear();
        self.least.push(0);
        for i in 1..self.cursors.len() {
            let (c, best) = (&self.cursors[i], &self.cursors[self.least[0]]);
            match c.prefix.cmp(&best.prefix).then_with(|| key(c).cmp(key(best))) {
                Ordering::Less => {
                    self.least.clear();
                    self.least.push(i);
                }
                Ordering::Equal => self.least.push(i),
                Ordering::Greater => {}
            }
        }
    }

    fn prefix(&self, i: usize) -> u128 {
        let c = &self.cursors[i];
        if c.done { 0 } else { key_prefix(self.slots[c.slot as usize].key(c.row as usize)) }
    }

    /// Takes all rows of the current key of one cursor; they may go on in its next batch.
    fn take(&mut self, i: usize, events: &mut Vec<Event>) -> Result<(), Error> {
        let c = &self.cursors[i];
        if c.done {
            return Ok(());
        }
        let number = self.slots[c.slot as usize].key_numbers()[c.row as usize];
        loop {
            let c = &mut self.cursors[i];
            let numbers = self.slots[c.slot as usize].key_numbers();
            while c.row < c.len && numbers[c.row as usize] == number {
                events.push(Event { slot: c.slot, row: c.row });
                c.row += 1;
            }
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
                    return Ok(());
                }
                Some(batch) if batch.num_rows() == 0 => continue,
                Some(batch) => {
                    let loaded = Loaded::new(batch)?;
                    (c.slot, c.row, c.len) = (self.slots.len() as u32, 0, loaded.len() as u32);
                    self.slots.push(Arc::new(loaded));
                    return Ok(());
                }
            }
        }
    }

    /// Merges the parts of `events`, each newest first. Parts are few and mostly tiny.
    fn merge(&mut self, events: &mut Vec<Event>) {
        let mut heads: Vec<(usize, usize)> = Vec::with_capacity(self.parts.len());
        let mut start = 0;
        for end in &self.parts {
            heads.push((start, *end));
            start = *end;
        }
        self.scratch.clear();
        while self.scratch.len() < events.len() {
            let mut best: Option<usize> = None;
            for (p, (at, end)) in heads.iter().enumerate() {
                if at == end {
                    continue;
                }
                let newer = best.is_none_or(|b| {
                    let (x, y) = (events[*at], events[heads[b].0]);
                    let at = |e: Event| (&*self.slots[e.slot as usize], e.row as usize);
                    self.order.compare(at(x), at(y)) == Ordering::Greater
                });
                if newer {
                    best = Some(p);
                }
            }
            let Some(best) = best else { break };
            self.scratch.push(events[heads[best].0]);
            heads[best].0 += 1;
        }
        std::mem::swap(events, &mut self.scratch);
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
        let mut kept = Vec::with_capacity(self.cursors.len());
        for c in &mut self.cursors {
            kept.push(self.slots[c.slot as usize].clone());
            c.slot = kept.len() as u32 - 1;
        }
        self.slots = kept;
    }
}
