//! Point answers by replay.

use crate::change::{Act, Cell, Change};
use std::collections::BTreeMap;

/// A row: one cell for each column.
pub type Image = BTreeMap<u32, Cell>;

/// A table as the list of its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Number of columns beside the key.
    pub columns: u32,
    /// System time is part of the order of changes.
    pub system_declared: bool,
    /// The changes, in any order.
    pub changes: Vec<Change>,
}

/// Something that happens to the row of one key while it is replayed.
enum Happening<'m> {
    Leaves,
    Change(&'m Change),
}

impl Model {
    /// The row of `key` at valid time `valid` (`None`: the latest state), as believed at `system` and
    /// known at `commit`, all inclusive; `i64::MAX` and `u64::MAX` are no bounds.
    pub fn row(&self, key: u32, valid: Option<i64>, system: i64, commit: u64) -> Option<Image> {
        let mut image = self.replay(key, valid, system, commit, None)?;
        (0..self.columns).for_each(|c| _ = image.entry(c).or_insert(Cell::Null));
        Some(image)
    }

    /// The keys that any change speaks of, ascending.
    pub fn keys(&self) -> Vec<u32> {
        let named = self.changes.iter().filter(|c| c.act != Act::Truncate);
        let mut keys: Vec<u32> = named.flat_map(|c| [Some(c.key), c.previous]).flatten().collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn replay(
        &self,
        key: u32,
        valid: Option<i64>,
        system: i64,
        commit: u64,
        before: Option<&Change>,
    ) -> Option<Image> {
        let known: Vec<&Change> = self
            .changes
            .iter()
            .filter(|c| c.system <= system && c.commit <= commit && speaks_about(c, valid))
            .collect();
        let mut happenings = Vec::new();
        for change in known.iter().copied().filter(|c| c.act != Act::Truncate) {
            let cut = known.iter().any(|t| {
                t.act == Act::Truncate
                    && self.truncates(t, change)
                    && !before.is_some_and(|b| self.truncates(t, b))
            });
            let too_new = before.is_some_and(|b| self.place(change) >= self.place(b));
            if cut || too_new || before.is_some_and(|b| repeats_move(change, b, key)) {
                continue;
            }
            if change.previous == Some(key) {
                happenings.push((self.place(change), 0, Happening::Leaves));
            }
            if change.key == key {
                happenings.push((self.place(change), 1, Happening::Change(change)));
            }
        }
        happenings.sort_by_key(|(place, side, _)| (*place, *side));
        let mut row = None;
        for (_, _, happening) in happenings {
            row = match happening {
                Happening::Leaves => None,
                Happening::Change(change) => self.apply(row, change, system, commit),
            };
        }
        row
    }

    /// In a row under way a column that is not in the map was written by nobody.
    fn apply(&self, row: Option<Image>, change: &Change, system: i64, commit: u64) -> Option<Image> {
        if change.act == Act::Delete {
            return None;
        }
        let leaves = |c: u32| matches!(change.cells.get(&c), Some(Cell::Leaves(_))) && !change.full;
        let needs_old = (0..self.columns).any(|c| !change.authors(c) || leaves(c));
        let base = match change.previous {
            Some(old) if needs_old => self.replay(old, Some(change.valid), system, commit, Some(change)),
            Some(_) => None,
            None => row,
        };
        let mut image = base.unwrap_or_default();
        for column in 0..self.columns {
            match change.cells.get(&column) {
                Some(Cell::Unknown) => _ = image.entry(column).or_insert(Cell::Unknown),
                Some(cell) => _ = image.insert(column, written(*cell, change.full, image.get(&column))),
                None if change.full => _ = image.insert(column, Cell::Null),
                None => {}
            }
        }
        Some(image)
    }

    pub(crate) fn place(&self, c: &Change) -> (i64, Option<u8>, i64, u32, u64) {
        let system = if self.system_declared { c.system } else { 0 };
        (c.valid, c.tie, system, c.stream, c.position)
    }

    /// Whether truncate `t` comes after `c` and so ends what it wrote.
    pub(crate) fn truncates(&self, t: &Change, c: &Change) -> bool {
        let (a, b) = (self.place(c), self.place(t));
        let (times_a, times_b) = ((a.0, a.1, a.2), (b.0, b.1, b.2));
        if times_a != times_b {
            return times_a < times_b;
        }
        if t.stream == c.stream {
            return c.position < t.position;
        }
        match (t.log, c.log) {
            (Some((s, at)), Some((r, token))) if s == r => token < at,
            _ => false,
        }
    }
}

/// What a cell leaves in a column, given what was there.
fn written(cell: Cell, full: bool, before: Option<&Cell>) -> Cell {
    match (cell, before) {
        (Cell::Leaves(object), Some(Cell::Object(old))) if !full => Cell::Object(old.with(object)),
        (Cell::Leaves(object), _) => Cell::Object(object),
        (cell, _) => cell,
    }
}

fn speaks_about(c: &Change, valid: Option<i64>) -> bool {
    let bounded_right = c.valid_to.is_none_or(|end| valid.is_some_and(|v| v < end));
    let has_width = c.valid_to.is_none_or(|end| c.valid < end);
    valid.is_none_or(|v| c.valid <= v) && bounded_right && has_width
}

/// A delete of the old key that is only the other half of the key change `mover`.
fn repeats_move(c: &Change, mover: &Change, key: u32) -> bool {
    mover.previous_deleted && c.act == Act::Delete && c.key == key && c.valid == mover.valid
}
