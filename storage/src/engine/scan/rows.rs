//! Rows at a point (rule B2): the fold of each key's events, newest first, without building images.

use super::batches::KeyScan;
use super::gather::{Gather, NULL_SLOT};
use super::group::{Event, Groups};
use super::keys::KeyWalk;
use super::lineage::Histories;
use super::loaded::Loaded;
use crate::engine::error::Error;
use crate::engine::request::Bounds;
use crate::event::Op;
use crate::event::columns::OP_MASK;
use crate::id::ColumnId;
use crate::time::FOREVER;
use arrow::array::RecordBatch;

/// Whether an event counts at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Qualifier {
    bounds: Bounds,
    /// Checks that are needed; the others hold for every event of the sources.
    valid: bool,
    bounded: bool,
    system: bool,
    commit: bool,
}

impl Qualifier {
    pub fn new(bounds: Bounds, traits: &[super::source::Traits]) -> Qualifier {
        let any = |f: &dyn Fn(&super::source::Traits) -> bool| traits.iter().any(f);
        Qualifier {
            bounds,
            valid: any(&|t| t.valid_from.1 > bounds.valid),
            bounded: any(&|t| t.bounded),
            system: any(&|t| t.system.1 > bounds.system),
            commit: any(&|t| t.commit.1 > bounds.commit.0),
        }
    }

    /// Whether no event with these traits counts.
    pub fn excludes(bounds: &Bounds, traits: &super::source::Traits) -> bool {
        traits.valid_from.0 > bounds.valid
            || traits.system.0 > bounds.system
            || traits.commit.0 > bounds.commit.0
    }

    /// What each event does to the row of its key: [`NOTHING`], [`WRITES`] or [`ENDS`].
    pub fn effects(&self, batch: &Loaded, effects: &mut Vec<u8>) {
        effects.clear();
        match batch.ops() {
            Some(ops) => effects.extend(ops.iter().map(|op| EFFECTS[(op & OP_MASK) as usize])),
            None => effects.resize(batch.len(), WRITES),
        }
        if self.bounded {
            for (row, effect) in effects.iter_mut().enumerate() {
                *effect *= self.counts(batch, row) as u8;
            }
            return;
        }
        keep(effects, batch.valid_times().filter(|_| self.valid), self.bounds.valid);
        keep(effects, batch.system_times().filter(|_| self.system), self.bounds.system);
        keep(effects, batch.commits().filter(|_| self.commit), self.bounds.commit.0);
    }

    /// Whether events that are valid later than the point do not count, and some are.
    pub fn is_by_valid(&self) -> bool {
        self.valid
    }

    /// Which checks are needed, for [`Qualifier::columns_of`]; the higher four bits are 0.
    pub fn bits(&self) -> u8 {
        let checks = [self.valid, self.bounded, self.system, self.commit];
        checks.iter().enumerate().fold(0, |bits, (n, on)| bits | (*on as u8) << n)
    }

    /// Names of the columns that the checks read.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        Qualifier::columns_of(self.bits())
    }

    /// As [`Qualifier::columns`], of which only [`Qualifier::bits`] are known.
    pub fn columns_of(bits: u8) -> impl Iterator<Item = &'static str> {
        [(1, "valid_from"), (2, "valid_to"), (2, "valid_from"), (4, "system"), (8, "commit")]
            .into_iter()
            .filter_map(move |(bit, name)| (bits & bit != 0).then_some(name))
    }

    #[inline]
    pub fn counts(&self, batch: &Loaded, row: usize) -> bool {
        if self.valid && batch.valid_from(row) > self.bounds.valid {
            return false;
        }
        if self.bounded {
            let end = batch.valid_to(row);
            if end != FOREVER && (self.bounds.valid >= end || batch.valid_from(row) >= end) {
                return false;
            }
        }
        (!self.system || batch.system(row) <= self.bounds.system)
            && (!self.commit || batch.commit(row) <= self.bounds.commit.0)
    }
}

/// The event does not count.
pub(crate) const NOTHING: u8 = 0;
/// The event makes the row be there and writes columns.
pub(crate) const WRITES: u8 = 1;
/// The event ends the row.
pub(crate) const ENDS: u8 = 2;

/// Effects by number of [`Op`]; truncates are found elsewhere, and batches with other numbers refused.
const EFFECTS: [u8; OP_MASK as usize + 1] = [WRITES, WRITES, WRITES, WRITES, ENDS, NOTHING, ENDS, NOTHING];

/// Takes their effect from the events whose time is after `last`.
fn keep<T: Ord + Copy>(effects: &mut [u8], times: Option<&[T]>, last: T) {
    for (effect, time) in effects.iter_mut().zip(times.unwrap_or_default()) {
        *effect &= ((*time <= last) as u8).wrapping_neg();
    }
}

/// The rows of one part of a table at a point.
pub(crate) struct RowsScan {
    pub groups: Groups,
    pub walk: KeyWalk,
    pub bounds: Bounds,
    pub qualifier: Qualifier,
    pub projection: Vec<ColumnId>,
    /// Present where the plain fold is not enough: leaves, truncates, key changes, tables without a key.
    pub histories: Option<Histories>,
    pub gather: Gather,
    pub events: Vec<Event>,
    pub picks: Vec<(u32, u32)>,
}

impl KeyScan for RowsScan {
    fn next_key(&mut self) -> Result<bool, Error> {
        self.walk.next(&mut self.groups, &mut self.events)
    }

    fn add_key(&mut self) -> Result<(), Error> {
        if let Some(histories) = &self.histories
            && histories.needed(&self.groups, &self.events)
        {
            let copies = histories.resolve(
                &mut self.groups,
                &self.events,
                &self.bounds,
                &self.projection,
                &mut self.picks,
                &mut self.gather,
            )?;
            for _ in 0..copies {
                self.gather.push(|i| self.picks[i]);
            }
            return Ok(());
        }
        if pick_newest(&self.groups, &self.events, &self.qualifier, &self.projection, &mut self.picks) {
            self.gather.push(|i| self.picks[i]);
        }
        Ok(())
    }

    fn gathered(&self) -> &Gather {
        &self.gather
    }

    fn groups(&mut self) -> &mut Groups {
        &mut self.groups
    }

    fn emit(&mut self) -> Result<RecordBatch, Error> {
        let batch = self.gather.emit(self.groups.slots(), Vec::new())?;
        self.groups.retire();
        Ok(batch)
    }
}

/// Folds one key: false if it has no row, else `picks` holds where the value of each projected column
/// stands. For keys without leaves, truncates and key changes.
pub(crate) fn pick_newest(
    groups: &Groups,
    events: &[Event],
    qualifier: &Qualifier,
    projection: &[ColumnId],
    picks: &mut Vec<(u32, u32)>,
) -> bool {
    pick_newest_of(groups, events.iter(), qualifier, projection, picks)
}

/// As [`pick_newest`], where events that do not count may be left out.
pub(crate) fn pick_newest_of<'e>(
    groups: &Groups,
    events: impl Iterator<Item = &'e Event>,
    qualifier: &Qualifier,
    projection: &[ColumnId],
    picks: &mut Vec<(u32, u32)>,
) -> bool {
    let mut left = usize::MAX;
    for e in events {
        let (batch, row) = (groups.loaded(e.slot), e.row as usize);
        if batch.op(row) == Op::Truncate || !qualifier.counts(batch, row) {
            continue;
        }
        if batch.op(row).ends_row() {
            return left != usize::MAX;
        }
        if left == usize::MAX {
            picks.clear();
            picks.resize(projection.len(), (NULL_SLOT, 0));
            left = projection.len();
        }
        for (pick, id) in picks.iter_mut().zip(projection) {
            if pick.0 == NULL_SLOT && batch.authors(row, *id) {
                *pick = (e.slot, e.row);
                left -= 1;
            }
        }
        if left == 0 {
            return true;
        }
    }
    left != usize::MAX
}
