//! Rows at a point (rule B2) of whole tables: one pass over the events of all keys, without a list of the
//! events of each.
//!
//! For tables where the plain fold does; all others, and questions about certain keys, go through
//! [`super::rows`].

use super::gather::{Gather, NULL_SLOT};
use super::loaded::Loaded;
use super::rows::{ENDS, NOTHING, Qualifier, WRITES};
use super::tape::{Block, Follower, NEW_KEY};
use crate::engine::error::{Error, ErrorKind};
use crate::id::ColumnId;
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use std::sync::Arc;

/// Rows of a batch without columns.
const COUNTED_ROWS: usize = 65_536;
/// Loaded batches that wait for a result to be full, beside those that are being read.
const WAITING_MAX: usize = 32;
/// Column numbers that fit the mask of authored columns.
const MASKED_COLUMNS: u32 = 64;

/// Rows of a source, one part after the other.
pub(crate) enum Piece {
    /// Rows and what is to be checked of them.
    Loaded(RecordBatch, Qualifier),
    /// So many rows none of which counts; they are not read.
    Pruned(usize),
}

/// The rows of a source in order.
pub(crate) type Pieces = Box<dyn Iterator<Item = Result<Piece, Error>> + Send>;

/// One source of a fold.
pub(crate) struct Input {
    /// `None` if no event of it counts.
    pub pieces: Option<Pieces>,
    /// Of the current batch: what each event does, see [`Qualifier::effects`].
    effects: Vec<u8>,
    masks: Option<ScalarBuffer<u64>>,
    slot: u32,
    row: usize,
}

impl Input {
    pub fn new(pieces: Option<Pieces>) -> Input {
        Input { pieces, effects: Vec::new(), masks: None, slot: NULL_SLOT, row: 0 }
    }
}

/// What is known of the current key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    /// No event has counted yet.
    Open,
    /// It has a row, of which some columns have no value yet.
    Found,
    /// Later events make no difference.
    Done,
}

/// The rows of one part of a table at a point.
pub(crate) struct FoldScan {
    inputs: Vec<Input>,
    /// The order of the events of all inputs; `None` if there is only one.
    follower: Option<Box<Follower>>,
    block: Block,
    /// Number of the last key of the only input.
    last_key: Option<u32>,
    /// Whether columns are gathered.
    gathers: bool,
    /// Bits of the projected columns.
    wanted: u64,
    /// Those of them that have no value yet, for the current key.
    missing: u64,
    /// Place in the projection by column number.
    places: [u8; MASKED_COLUMNS as usize],
    key: Key,
    exists: bool,
    picks: Vec<(u32, u32)>,
    gather: Gather,
    slots: Vec<Arc<Loaded>>,
    /// Inputs are over.
    ended: bool,
    failed: bool,
}

/// Whether a fold can gather these columns.
pub(crate) fn can_gather(projection: &[ColumnId]) -> bool {
    let distinct = |i: usize| !projection[..i].contains(&projection[i]);
    (0..projection.len()).all(|i| projection[i].0 < MASKED_COLUMNS && distinct(i))
}

impl FoldScan {
    /// Over the only input, or as many as `follower` tells apart. `projection` must pass [`can_gather`].
    pub fn new(
        inputs: Vec<Input>,
        follower: Option<Follower>,
        projection: &[ColumnId],
        gather: Gather,
    ) -> FoldScan {
        let mut places = [0; MASKED_COLUMNS as usize];
        let mut wanted = 0;
        for (place, id) in projection.iter().enumerate() {
            places[id.0 as usize] = place as u8;
            wanted |= 1 << id.0;
        }
        FoldScan {
            inputs,
            follower: follower.map(Box::new),
            block: Block::default(),
            last_key: None,
            gathers: !projection.is_empty(),
            wanted,
            missing: wanted,
            places,
            key: Key::Done,
            exists: false,
            picks: vec![(NULL_SLOT, 0); projection.len()],
            gather,
            slots: Vec::new(),
            ended: false,
            failed: false,
        }
    }

    /// Loads the next batch of an input; false at its end.
    fn load(&mut self, input: usize) -> Result<bool, Error> {
        if self.gather.rows() == 0 && !self.exists && self.slots.len() > self.inputs.len() + WAITING_MAX {
            self.retire();
        }
        let single = self.follower.is_none();
        let input = &mut self.inputs[input];
        input.row = 0;
        input.effects.clear();
        let Some(pieces) = &mut input.pieces else { return Ok(false) };
        for piece in pieces {
            let (batch, qualifier) = match piece? {
                Piece::Loaded(batch, qualifier) if batch.num_rows() > 0 => (batch, qualifier),
                // The order of the sources has a place for each of them.
                Piece::Pruned(rows) if !single && rows > 0 => {
                    input.effects.resize(rows, NOTHING);
                    input.masks = None;
                    return Ok(true);
                }
                _ => continue,
            };
            let loaded = if single { Loaded::new(batch)? } else { Loaded::without_keys(batch)? };
            qualifier.effects(&loaded, &mut input.effects);
            if single {
                mark_keys(loaded.key_numbers(), &mut self.last_key, &mut input.effects);
            }
            input.masks = loaded.masks().cloned();
            if self.gathers {
                input.slot = self.slots.len() as u32;
                self.slots.push(Arc::new(loaded));
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn is_full(&self) -> bool {
        match self.gathers {
            false => self.gather.rows() >= COUNTED_ROWS,
            true => {
                self.gather.is_full()
                    || self.gather.rows() > 0 && self.slots.len() > self.inputs.len() + WAITING_MAX
            }
        }
    }

    /// Ends the current key and begins the next.
    #[inline(always)]
    fn next_key(&mut self) {
        if self.exists {
            let picks = &self.picks;
            self.gather.push(|i| picks[i]);
            self.picks.fill((NULL_SLOT, 0));
            self.missing = self.wanted;
            self.exists = false;
        }
        self.key = Key::Open;
    }

    /// Takes in what the next older event of the current key does.
    #[inline(always)]
    fn event(&mut self, effect: u8, mask: u64, place: (u32, u32)) {
        if effect == NOTHING || self.key == Key::Done {
            return;
        }
        if effect == ENDS {
            self.key = Key::Done;
            return;
        }
        self.exists = true;
        let mut writes = mask & self.missing;
        self.missing &= !mask;
        while writes != 0 {
            self.picks[self.places[writes.trailing_zeros() as usize] as usize] = place;
            writes &= writes - 1;
        }
        self.key = if self.missing == 0 { Key::Done } else { Key::Found };
    }

    /// Goes on until a batch is full or the input over.
    fn advance_single(&mut self) -> Result<(), Error> {
        loop {
            if self.inputs[0].row == self.inputs[0].effects.len() && !self.load(0)? {
                self.next_key();
                self.ended = true;
                return Ok(());
            }
            let mut effects = std::mem::take(&mut self.inputs[0].effects);
            let masks = self.inputs[0].masks.take();
            let (slot, mut row) = (self.inputs[0].slot, self.inputs[0].row);
            while row < effects.len() {
                let effect = effects[row];
                if effect & NEW_KEY != 0 {
                    self.next_key();
                    if self.is_full() {
                        // Begun anew when the scan goes on.
                        break;
                    }
                }
                let mask = masks.as_ref().map_or(u64::MAX, |m| m[row]);
                self.event(effect & !NEW_KEY, mask, (slot, row as u32));
                row += 1;
            }
            std::mem::swap(&mut self.inputs[0].effects, &mut effects);
            (self.inputs[0].masks, self.inputs[0].row) = (masks, row);
            if row < self.inputs[0].effects.len() {
                return Ok(());
            }
        }
    }

    /// As [`FoldScan::advance_single`], where nothing is gathered.
    fn count_single(&mut self) -> Result<(), Error> {
        let mut rows = 0;
        let mut open = self.key == Key::Open;
        while rows < COUNTED_ROWS {
            if !self.load(0)? {
                self.ended = true;
                break;
            }
            for effect in &self.inputs[0].effects {
                open |= effect & NEW_KEY != 0;
                let effect = effect & !NEW_KEY;
                rows += (open & (effect == WRITES)) as usize;
                open &= effect == NOTHING;
            }
        }
        self.key = if open { Key::Open } else { Key::Done };
        self.gather.count(rows);
        Ok(())
    }

    /// Goes on until a batch is full or the order over.
    fn advance_followed(&mut self) -> Result<(), Error> {
        let mut block = std::mem::take(&mut self.block);
        loop {
            if block.left().is_empty() {
                block = self.follower.as_mut().map(|f| f.next_block()).transpose()?.unwrap_or_default();
                if block.left().is_empty() {
                    self.next_key();
                    self.ended = true;
                    return Ok(());
                }
            }
            let taken = match self.gathers {
                true => self.follow(block.left())?,
                false => self.count_followed(block.left())?,
            };
            block.take(taken);
            if self.is_full() {
                self.block = block;
                return Ok(());
            }
        }
    }

    /// Takes the events in, as many as there is room for the rows of; returns how many.
    fn follow(&mut self, order: &[u8]) -> Result<usize, Error> {
        for (at, entry) in order.iter().enumerate() {
            if entry & NEW_KEY != 0 {
                self.next_key();
                if self.is_full() {
                    return Ok(at);
                }
            }
            let n = (entry & !NEW_KEY) as usize;
            if self.inputs[n].row == self.inputs[n].effects.len() && !self.reload(n)? {
                continue;
            }
            let input = &mut self.inputs[n];
            let (effect, row) = (input.effects[input.row], input.row);
            input.row += 1;
            let mask = input.masks.as_ref().map_or(u64::MAX, |m| m[row]);
            let place = (input.slot, row as u32);
            self.event(effect, mask, place);
        }
        Ok(order.len())
    }

    /// As [`FoldScan::follow`], where nothing is gathered.
    fn count_followed(&mut self, order: &[u8]) -> Result<usize, Error> {
        let order = &order[..order.len().min(COUNTED_ROWS)];
        let (mut rows, mut open) = (0, self.key == Key::Open);
        for entry in order {
            open |= entry & NEW_KEY != 0;
            let n = (entry & !NEW_KEY) as usize;
            if self.inputs[n].row == self.inputs[n].effects.len() && !self.reload(n)? {
                continue;
            }
            let input = &mut self.inputs[n];
            let effect = input.effects[input.row];
            input.row += 1;
            rows += (open & (effect == WRITES)) as usize;
            open &= effect == NOTHING;
        }
        self.key = if open { Key::Open } else { Key::Done };
        self.gather.count(rows);
        Ok(order.len())
    }

    /// Loads what the order says there is; false if no event of the input counts.
    fn reload(&mut self, input: usize) -> Result<bool, Error> {
        if self.inputs[input].pieces.is_none() {
            return Ok(false);
        }
        match self.load(input)? {
            true => Ok(true),
            false => Err(Error::new(ErrorKind::Damaged, "a source has fewer rows than it says")),
        }
    }

    fn step(&mut self) -> Result<Option<RecordBatch>, Error> {
        match (self.ended, self.follower.is_some(), self.gathers) {
            (true, ..) => {}
            (_, true, _) => self.advance_followed()?,
            (_, _, true) => self.advance_single()?,
            (_, _, false) => self.count_single()?,
        }
        if self.gather.rows() == 0 {
            return Ok(None);
        }
        let batch = self.gather.emit(&self.slots, Vec::new())?;
        self.retire();
        Ok(Some(batch))
    }

    /// Forgets loaded batches that no input reads any more. Nothing must have been picked of the current
    /// key.
    fn retire(&mut self) {
        if !self.gathers {
            return;
        }
        let mut kept = Vec::with_capacity(self.inputs.len());
        for input in self.inputs.iter_mut().filter(|i| i.slot != NULL_SLOT) {
            kept.push(self.slots[input.slot as usize].clone());
            input.slot = kept.len() as u32 - 1;
        }
        self.slots = kept;
    }
}

/// Marks the rows where a key begins.
fn mark_keys(numbers: &[u32], last: &mut Option<u32>, effects: &mut [u8]) {
    let Some(first) = numbers.first() else { return };
    if *last != Some(*first) {
        effects[0] |= NEW_KEY;
    }
    for (effect, pair) in effects[1..].iter_mut().zip(numbers.windows(2)) {
        *effect |= ((pair[0] != pair[1]) as u8) * NEW_KEY;
    }
    *last = numbers.last().copied();
}

impl Iterator for FoldScan {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.step().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}
