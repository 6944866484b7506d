//! Interval rows by asking at every instant of change.

use crate::change::{Act, Change};
use crate::model::Model;
use std::collections::BTreeMap;

/// An interval row of one belief: start, end (`i64::MAX` while open) and the columns, NULL as `None`.
pub type Version = (i64, i64, Vec<Option<i64>>);

/// An interval row on both axes; ends are `i64::MAX` while open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rectangle {
    /// Valid time, half-open.
    pub valid: (i64, i64),
    /// System time, half-open.
    pub system: (i64, i64),
    /// The columns, NULL as `None`.
    pub image: Vec<Option<i64>>,
}

impl Model {
    /// Every valid time at which an answer can change, ascending.
    pub fn valid_breaks(&self) -> Vec<i64> {
        let starts = self.changes.iter().map(|c| c.valid);
        sorted(starts.chain(self.changes.iter().filter_map(|c| c.valid_to)))
    }

    /// Every system time at which an answer can change, ascending.
    pub fn system_breaks(&self) -> Vec<i64> {
        sorted(self.changes.iter().map(|c| c.system))
    }

    /// The interval rows of one belief (SCD type 2 at `i64::MAX`), where neighbours with equal
    /// `tracked` columns (`None`: all) are one row that shows the values of the last.
    pub fn versions(&self, key: u32, system: i64, commit: u64, tracked: Option<&[u32]>) -> Vec<Version> {
        let breaks = self.valid_breaks();
        let mut versions: Vec<Version> = Vec::new();
        for (i, start) in breaks.iter().enumerate() {
            let end = breaks.get(i + 1).copied().unwrap_or(i64::MAX);
            let Some(row) = self.row(key, Some(*start), system, commit) else { continue };
            let image: Vec<Option<i64>> = row.values().map(|cell| cell.shown()).collect();
            let seen = |image: &[Option<i64>]| match tracked {
                Some(columns) => columns.iter().map(|c| image[*c as usize]).collect(),
                None => image.to_vec(),
            };
            match versions.last_mut() {
                Some(last) if last.1 == *start && seen(&last.2) == seen(&image) => {
                    (last.1, last.2) = (end, image);
                }
                _ => versions.push((*start, end, image)),
            }
        }
        versions
    }

    /// The interval rows on both axes, sorted.
    pub fn rectangles(&self, key: u32, commit: u64, tracked: Option<&[u32]>) -> Vec<Rectangle> {
        let breaks = self.system_breaks();
        let mut believed: BTreeMap<Version, Vec<usize>> = BTreeMap::new();
        for (i, system) in breaks.iter().enumerate() {
            for version in self.versions(key, *system, commit, tracked) {
                believed.entry(version).or_default().push(i);
            }
        }
        let mut rectangles = Vec::new();
        for ((start, end, image), slices) in believed {
            for run in slices.chunk_by(|a, b| a + 1 == *b) {
                let last = run[run.len() - 1];
                rectangles.push(Rectangle {
                    valid: (start, end),
                    system: (breaks[run[0]], breaks.get(last + 1).copied().unwrap_or(i64::MAX)),
                    image: image.clone(),
                });
            }
        }
        rectangles.sort();
        rectangles
    }
}

impl Model {
    /// How many rows of a table without a key hold, of the row content that `key` stands for: each
    /// upsert adds one, each delete ends the oldest that holds at its instant.
    pub fn count(&self, key: u32, valid: Option<i64>, system: i64, commit: u64) -> usize {
        let known = |c: &&Change| c.system <= system && c.commit <= commit;
        let until = |c: &Change, v: Option<i64>| v.is_none_or(|v| c.valid <= v);
        let truncates: Vec<&Change> =
            self.changes.iter().filter(known).filter(|c| c.act == Act::Truncate).collect();
        let ended = |c: &Change, v: Option<i64>| {
            let own_end = c.valid_to.is_some_and(|end| v.is_none_or(|v| end <= v));
            own_end || truncates.iter().any(|t| until(t, v) && self.truncates(t, c))
        };
        let speaks = |c: &&Change| {
            let has_width = c.valid_to.is_none_or(|end| c.valid < end);
            c.act != Act::Truncate && c.key == key && until(c, valid) && has_width
        };
        let mut changes: Vec<&Change> = self.changes.iter().filter(known).filter(speaks).collect();
        changes.sort_by_key(|c| self.place(c));
        let mut rows: Vec<&Change> = Vec::new();
        for change in changes {
            if change.act == Act::Upsert {
                rows.push(change);
            } else if let Some(oldest) = rows.iter().position(|row| !ended(row, Some(change.valid))) {
                rows.remove(oldest);
            }
        }
        rows.iter().filter(|row| !ended(row, valid)).count()
    }
}

fn sorted(times: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut times: Vec<i64> = times.filter(|t| *t != i64::MAX).collect();
    times.sort_unstable();
    times.dedup();
    times
}
