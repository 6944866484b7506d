//! How the sources of a table interleave: found out once, then followed by every scan over them.
//!
//! Every source is sorted by key and rule B3, so the merged order of all events is given by the number of
//! the source that each event comes from. That is a byte an event, with a bit where a key begins, and it
//! does not depend on the question: scans that follow it read neither keys nor what rule B3 compares.

use super::group::{Event, Groups, MergeOrder};
use super::source::SortedSource;
use crate::engine::error::Error;
use crate::schema::TableSchema;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bit of the first event of a key.
pub(crate) const NEW_KEY: u8 = 0x80;
/// Sources that a tape can tell apart.
pub(crate) const SOURCES_MAX: usize = 127;
/// Events whose order is kept.
const EVENTS_MAX: usize = 128 << 20;
/// Tapes that are kept of one set of sources: of all of them, and of those that some bound leaves.
const TAPES_MAX: usize = 2;
/// Events of a block; a key with more makes a longer one.
const BLOCK_EVENTS: usize = 32_768;

/// The merged order of some sources of a table.
#[derive(Debug)]
pub(crate) struct Tape {
    /// Numbers of the sources within the table.
    pub members: Vec<usize>,
    ranks: Arc<[u32]>,
    rows: usize,
    /// Parts that were asked for; there may be fewer.
    partitions: usize,
    pub parts: Vec<TapePart>,
}

/// The order of a part of the keys.
#[derive(Debug)]
pub(crate) struct TapePart {
    /// Rows of each member.
    pub ranges: Vec<Range<usize>>,
    /// The member of each event, with [`NEW_KEY`]; there once a scan came to the end.
    order: Mutex<Option<Arc<[u8]>>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tape {
    /// A tape of the sources `members`, whose rows are divided as `ranges` say; nothing is read yet.
    fn new(
        members: Vec<usize>,
        ranks: Arc<[u32]>,
        partitions: usize,
        ranges: Vec<Vec<Range<usize>>>,
    ) -> Tape {
        let rows = ranges.iter().flatten().map(|r| r.len()).sum();
        let parts = ranges.into_iter().map(|ranges| TapePart { ranges, order: Mutex::default() }).collect();
        Tape { members, ranks, rows, partitions, parts }
    }

    /// Whether a scan over the sources `live`, with `rows` rows, can follow it without visiting much else.
    fn serves(&self, live: &[usize], rows: usize, ranks: &[u32], partitions: usize) -> bool {
        live.iter().all(|n| self.members.contains(n))
            && self.rows / 2 <= rows
            && *self.ranks == *ranks
            && self.partitions == partitions
    }
}

/// The tapes of the sources of a table in one view. A copy of it is empty: it is for other sources.
#[derive(Debug, Default)]
pub(crate) struct Tapes(Mutex<Vec<Arc<Tape>>>);

impl Clone for Tapes {
    fn clone(&self) -> Tapes {
        Tapes::default()
    }
}

impl Tapes {
    /// A tape for the sources `live` in up to `partitions` parts; `divide` divides them if there is none.
    pub fn find(
        &self,
        live: &[usize],
        rows: usize,
        ranks: &Arc<[u32]>,
        partitions: usize,
        divide: impl FnOnce() -> Result<Vec<Vec<Range<usize>>>, Error>,
    ) -> Result<Arc<Tape>, Error> {
        let mut tapes = held(&self.0);
        if let Some(tape) = tapes.iter().find(|t| t.serves(live, rows, ranks, partitions)) {
            return Ok(tape.clone());
        }
        let tape = Arc::new(Tape::new(live.to_vec(), ranks.clone(), partitions, divide()?));
        if tapes.len() == TAPES_MAX {
            tapes.remove(0);
        }
        tapes.push(tape.clone());
        Ok(tape)
    }
}

/// Gives the order of one part of a tape, block by block; finds it out on the way if need be.
pub(crate) struct Follower {
    tape: Arc<Tape>,
    part: usize,
    at: usize,
    state: State,
}

enum State {
    Known(Arc<[u8]>),
    Merging(Box<Merger>),
}

struct Merger {
    groups: Groups,
    events: Vec<Event>,
    /// Everything that was found out, if it is to be kept; else the last block.
    order: Vec<u8>,
    kept: bool,
}

impl Follower {
    /// Over part `part`; `sources` are all of the table.
    pub fn new(
        tape: Arc<Tape>,
        part: usize,
        sources: &[Arc<dyn SortedSource>],
        schema: &Arc<TableSchema>,
        order: &MergeOrder,
    ) -> Result<Follower, Error> {
        let known = held(&tape.parts[part].order).clone();
        let state = match known {
            Some(order) => State::Known(order),
            None => {
                let members: Vec<_> = tape.members.iter().map(|n| sources[*n].clone()).collect();
                let groups = Groups::of_order(&members, &tape.parts[part].ranges, schema, order.clone())?;
                let kept = tape.rows <= EVENTS_MAX;
                State::Merging(Box::new(Merger { groups, events: Vec::new(), order: Vec::new(), kept }))
            }
        };
        Ok(Follower { tape, part, at: 0, state })
    }

    /// The order of the next events, whole keys; empty at the end.
    pub fn next_block(&mut self) -> Result<Block, Error> {
        let start = self.at;
        match &mut self.state {
            State::Known(order) => {
                self.at = order.len();
                Ok(Block { order: order.clone(), next: start })
            }
            State::Merging(merger) => {
                let block = merger.block(start)?;
                match merger.kept && block.is_empty() {
                    true => {
                        let order: Arc<[u8]> = std::mem::take(&mut merger.order).into();
                        *held(&self.tape.parts[self.part].order) = Some(order.clone());
                        self.state = State::Known(order);
                    }
                    false => self.at += block.len(),
                }
                Ok(Block { order: block.into(), next: 0 })
            }
        }
    }
}

impl Merger {
    /// The order of the next events, after the `start` events before.
    fn block(&mut self, start: usize) -> Result<Vec<u8>, Error> {
        let from = if self.kept { start } else { 0 };
        self.order.truncate(from);
        while self.order.len() < from + BLOCK_EVENTS && self.groups.next(&mut self.events)? {
            let first = self.order.len();
            self.order.extend(self.events.iter().map(|e| self.groups.source(e.slot) as u8));
            self.order[first] |= NEW_KEY;
        }
        self.groups.retire();
        Ok(self.order[from..].to_vec())
    }
}

/// Part of an order.
#[derive(Debug, Default)]
pub(crate) struct Block {
    order: Arc<[u8]>,
    next: usize,
}

impl Block {
    /// The events that were not taken yet.
    pub fn left(&self) -> &[u8] {
        &self.order[self.next..]
    }

    /// Takes `n` events.
    pub fn take(&mut self, n: usize) {
        self.next += n;
    }
}
