//! Which keys have events of some time, found in the chunks that may hold such events.

use super::plan::TableScan;
use super::source::SortedSource;
use crate::engine::error::{Error, ErrorKind};
use crate::time::CommitSeq;
use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, UInt64Type};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// Touches that are listed; who asks about more reads everything.
const TOUCHES_MAX: usize = 1 << 20;

/// Which events are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touching {
    /// By commits that stored them.
    pub commits: RangeInclusive<u64>,
    /// By the effective valid times they have.
    pub valid: RangeInclusive<i64>,
    /// Events must touch no key but their own: no key changes and no truncates.
    pub alone: bool,
}

/// A key and a commit that stored an event of it.
pub type Touch = (Vec<u8>, CommitSeq);

impl TableScan {
    /// See [`crate::engine::Snapshot::touched`].
    pub fn touched(&self, asked: &Touching) -> Result<Option<Vec<Touch>>, Error> {
        let spread = || !self.parts.truncates.is_empty() || self.sources.iter().any(|s| s.traits().moves);
        if self.meta.schema().key.is_empty() || asked.alone && spread() {
            return Ok(None);
        }
        let live: Vec<_> = self.sources.iter().map(|s| (s, live_rows(s.as_ref(), asked))).collect();
        let rows = |(_, ranges): &(_, Vec<Range<usize>>)| ranges.iter().map(Range::len).sum::<usize>();
        let all = self.sources.iter().map(|s| s.rows()).sum::<usize>();
        if live.iter().map(rows).sum::<usize>() > all / 2 {
            return Ok(None);
        }
        let mut found = Vec::new();
        for (source, ranges) in live {
            for range in ranges {
                self.add_touches(source, range, asked, &mut found)?;
                if found.len() > TOUCHES_MAX {
                    return Ok(None);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(Some(found))
    }

    fn add_touches(
        &self,
        source: &Arc<dyn SortedSource>,
        rows: Range<usize>,
        asked: &Touching,
        found: &mut Vec<Touch>,
    ) -> Result<(), Error> {
        let columns = ["key", "commit", "valid_from"].map(str::to_owned);
        for batch in source.scan(&columns, rows, &self.latest_schema())? {
            let batch = batch?;
            let [key, commit, valid] = ["key", "commit", "valid_from"].map(|name| batch.column_by_name(name));
            let key = key.and_then(|a| a.as_binary_opt::<i32>());
            let commit = commit.and_then(|a| a.as_primitive_opt::<UInt64Type>());
            let valid = valid.and_then(|a| a.as_primitive_opt::<Int64Type>());
            let (Some(key), Some(commit), Some(valid)) = (key, commit, valid) else {
                return Err(Error::new(ErrorKind::Damaged, "a source lacks a column that every event has"));
            };
            let times = commit.values().iter().zip(valid.values());
            for (row, (commit, valid)) in times.enumerate() {
                if asked.commits.contains(commit) && asked.valid.contains(valid) {
                    let touch = (key.value(row), CommitSeq(*commit));
                    if found.last().is_none_or(|(k, c)| (k.as_slice(), *c) != touch) {
                        found.push((touch.0.to_vec(), touch.1));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The rows of a source among which such events may be.
fn live_rows(source: &dyn SortedSource, asked: &Touching) -> Vec<Range<usize>> {
    let meets = |commit: (u64, u64), valid: (i64, i64)| {
        commit.0 <= *asked.commits.end()
            && commit.1 >= *asked.commits.start()
            && valid.0 <= *asked.valid.end()
            && valid.1 >= *asked.valid.start()
    };
    let traits = source.traits();
    if !meets(traits.commit, traits.valid_from) {
        return Vec::new();
    }
    let Some((_, chunks)) = source.run() else { return std::iter::once(0..source.rows()).collect() };
    let mut live: Vec<Range<usize>> = Vec::new();
    for chunk in chunks {
        let s = &chunk.spans;
        if !meets((s.commit.min, s.commit.max), (s.valid_from.min, s.valid_from.max)) {
            continue;
        }
        let rows = chunk.first_row as usize..(chunk.first_row + chunk.rows) as usize;
        match live.last_mut() {
            Some(last) if last.end == rows.start => last.end = rows.end,
            _ => live.push(rows),
        }
    }
    live
}
