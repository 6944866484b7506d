//! The rows of sources that hold some keys, divided into parts that share no key.

use super::source::SortedSource;
use crate::engine::error::Error;
use crate::engine::request::KeyFilter;
use crate::key::KeyRange;
use std::ops::Range;
use std::sync::Arc;

/// Rows that are not worth being divided.
const ROWS_MIN: usize = 4096;
/// Keys of a source among which those are found that divide a range.
const SPLITS: usize = 64;

/// The rows that a filter leaves, one range per source in each part: about `n` parts, and at least one
/// for each range of keys.
pub(crate) fn divide(
    sources: &[Arc<dyn SortedSource>],
    keys: &KeyFilter,
    n: usize,
) -> Result<Vec<Vec<Range<usize>>>, Error> {
    let Some(largest) = sources.iter().max_by_key(|s| s.rows()) else { return Ok(Vec::new()) };
    let KeyFilter::Ranges(ranges) = keys else {
        let splits = if n > 1 && largest.rows() > ROWS_MIN { largest.split_keys(n)? } else { Vec::new() };
        let all = sources.iter().map(|s| 0..s.rows()).collect();
        return split(sources, all, &splits);
    };
    let mut parts = Vec::new();
    let finer = if n > 1 && largest.rows() > ROWS_MIN { largest.split_keys(SPLITS)? } else { Vec::new() };
    for range in ranges {
        let rows = rows_of(sources, range)?;
        if rows.iter().all(Range::is_empty) {
            continue;
        }
        let within: Vec<_> = finer.iter().filter(|k| range.from < **k && **k < range.before).collect();
        // The keys between the parts: of those within, as far apart as may be.
        let at = |i: usize| i * within.len() / n;
        let mut splits: Vec<Vec<u8>> =
            (1..n).filter_map(|i| within.get(at(i)).map(|k| (*k).clone())).collect();
        splits.dedup();
        parts.extend(split(sources, rows, &splits)?);
    }
    Ok(parts)
}

/// Rows in some ranges of keys.
pub(crate) fn rows_within(sources: &[Arc<dyn SortedSource>], ranges: &[KeyRange]) -> Result<usize, Error> {
    let mut rows = 0;
    for range in ranges {
        rows += rows_of(sources, range)?.iter().map(Range::len).sum::<usize>();
    }
    Ok(rows)
}

/// The rows of each source with keys of a range.
fn rows_of(sources: &[Arc<dyn SortedSource>], range: &KeyRange) -> Result<Vec<Range<usize>>, Error> {
    let rows = |s: &Arc<dyn SortedSource>| {
        let start = s.lower_bound(&range.from)?;
        Ok(start..s.lower_bound(&range.before)?.max(start))
    };
    sources.iter().map(rows).collect()
}

/// Divides rows at some ascending keys.
fn split(
    sources: &[Arc<dyn SortedSource>],
    rows: Vec<Range<usize>>,
    keys: &[Vec<u8>],
) -> Result<Vec<Vec<Range<usize>>>, Error> {
    let mut parts = vec![Vec::with_capacity(sources.len()); keys.len() + 1];
    for (source, rows) in sources.iter().zip(rows) {
        let mut start = rows.start;
        for (i, key) in keys.iter().enumerate() {
            let end = source.lower_bound(key)?.clamp(start, rows.end);
            parts[i].push(start..end);
            start = end;
        }
        parts[keys.len()].push(start..rows.end);
    }
    Ok(parts)
}
