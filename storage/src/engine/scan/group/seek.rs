//! The events of certain keys, which are asked for in ascending order.

use super::{Event, Groups};
use crate::engine::error::Error;
use std::cmp::Ordering;

impl Groups {
    /// Puts the events of `key` into `events`, newest first; false if it has none. Keys must come ascending,
    /// each once, and not between calls of [`Groups::next`]; needs the key column.
    pub fn seek(&mut self, key: &[u8], events: &mut Vec<Event>) -> Result<bool, Error> {
        events.clear();
        self.parts.clear();
        for i in 0..self.cursors.len() {
            if self.advance(i, key)? {
                let start = events.len();
                self.take(i, events)?;
                self.parts.push((start, events.len()));
            }
        }
        if self.ended {
            self.drop_ended();
        }
        if self.parts.len() > 1 {
            self.merge(events)?;
        }
        Ok(!events.is_empty())
    }

    /// Moves a cursor to its first row whose key is not below `key`; whether that is its key.
    fn advance(&mut self, i: usize, key: &[u8]) -> Result<bool, Error> {
        loop {
            let c = &mut self.cursors[i];
            if c.done {
                return Ok(false);
            }
            let batch = &self.slots[c.slot as usize];
            let (row, order) = first_from(c.row as usize, c.len as usize, |row| batch.key(row).cmp(key));
            if row < c.len as usize {
                c.row = row as u32;
                return Ok(order == Ordering::Equal);
            }
            self.load(i)?;
        }
    }

    /// How many rows lie between where the cursors stand and `starts`, by source; `None` if one of them is past.
    pub fn distance(&self, starts: &[usize]) -> Option<usize> {
        let distance = |c: &super::Cursor| {
            let at = c.next_row - (c.len - c.row) as usize;
            starts.get(c.source)?.checked_sub(at)
        };
        self.cursors.iter().map(distance).sum()
    }

    /// Forgets batches that neither a cursor nor one of `events` stands in. Slot numbers change: those of
    /// `events` are brought up to date, all other events are void.
    pub fn retire_but(&mut self, events: &mut [Event]) {
        const NOWHERE: u32 = u32::MAX;
        let mut places = vec![NOWHERE; self.slots.len()];
        let (mut kept, mut origins) = (Vec::new(), Vec::new());
        let cursors = self.cursors.iter_mut().map(|c| &mut c.slot);
        for slot in cursors.chain(events.iter_mut().map(|e| &mut e.slot)) {
            let old = *slot as usize;
            if places[old] == NOWHERE {
                places[old] = kept.len() as u32;
                kept.push(self.slots[old].clone());
                origins.push(self.origins.get_mut(old).and_then(Option::take));
            }
            *slot = places[old];
        }
        (self.slots, self.origins) = (kept, origins);
    }
}

/// The first of the rows `from..to` that does not compare as less, and how it compares; they ascend, and the
/// row is mostly near. `to` if there is none.
fn first_from(from: usize, to: usize, compare: impl Fn(usize) -> Ordering) -> (usize, Ordering) {
    let (mut low, mut step) = (from, 1);
    // Everything before `low` is less.
    let (mut high, mut order) = loop {
        let at = low + step - 1;
        if at >= to {
            break (to, Ordering::Greater);
        }
        match compare(at) {
            Ordering::Less => (low, step) = (at + 1, step * 2),
            order => break (at, order),
        }
    };
    while low < high {
        let middle = low + (high - low) / 2;
        match compare(middle) {
            Ordering::Less => low = middle + 1,
            found => (high, order) = (middle, found),
        }
    }
    (high, order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_is_found_from_every_start() {
        let rows = [1, 1, 4, 4, 4, 7, 9, 9, 12, 12, 12, 12, 15];
        for from in 0..=rows.len() {
            for wanted in 0..17 {
                let right = (from..rows.len()).find(|i| rows[*i] >= wanted).unwrap_or(rows.len());
                let order = rows.get(right).map_or(Ordering::Greater, |r| r.cmp(&wanted));
                let found = first_from(from, rows.len(), |i| rows[i].cmp(&wanted));
                assert_eq!(found, (right, order), "{wanted} from {from}");
            }
        }
    }
}
