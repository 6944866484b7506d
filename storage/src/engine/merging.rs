//! Which runs are merged, and when.

use super::runs::RunSource;
use super::view::TableView;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Flushed runs that are merged into one of the first level. Many, since they are small and are
/// scanned without decoding.
const FLUSHED_FANOUT: usize = 8;
/// Runs of one level that are merged into one of the next.
const MERGE_FANOUT: usize = 4;
/// Rows that are merged while somebody waits for a store to close, unless runs have piled up.
const CLOSING_ROWS_MAX: u64 = 1_000_000;

/// What a round of merging is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merging {
    /// What keeps the number of runs bounded.
    Due,
    /// Of that, what takes little time.
    Closing,
    /// One run per table.
    Everything,
}

impl Merging {
    /// How many of a level's runs are merged; `rows` are those of each, oldest first.
    fn of_level(self, level: u8, rows: &[u64]) -> Option<usize> {
        let fanout = if level == 0 { FLUSHED_FANOUT } else { MERGE_FANOUT };
        let short = || rows[..fanout].iter().sum::<u64>() <= CLOSING_ROWS_MAX || rows.len() >= 2 * fanout;
        (rows.len() >= fanout && (self != Merging::Closing || short())).then_some(fanout)
    }
}

/// The next runs of a table to merge.
pub(crate) fn choose(table: &TableView, merging: Merging) -> Option<Vec<Arc<RunSource>>> {
    if merging == Merging::Everything {
        let one = table.runs.len() == 1 && table.runs[0].meta().level > 0;
        return (!table.runs.is_empty() && !one).then(|| table.runs.clone());
    }
    let mut by_level: BTreeMap<u8, Vec<Arc<RunSource>>> = BTreeMap::new();
    for run in &table.runs {
        by_level.entry(run.meta().level).or_default().push(run.clone());
    }
    by_level.into_iter().find_map(|(level, mut runs)| {
        let rows: Vec<u64> = runs.iter().map(|r| r.meta().rows).collect();
        Some(runs.drain(..merging.of_level(level, &rows)?).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_merged_once_they_are_full() {
        assert_eq!(Merging::Due.of_level(0, &[5; FLUSHED_FANOUT - 1]), None);
        assert_eq!(Merging::Due.of_level(0, &[u64::MAX / 100; 20]), Some(FLUSHED_FANOUT));
        assert_eq!(Merging::Due.of_level(1, &[1; MERGE_FANOUT - 1]), None);
        assert_eq!(Merging::Due.of_level(3, &[1; MERGE_FANOUT]), Some(MERGE_FANOUT));
    }

    #[test]
    fn closing_does_not_wait_for_long_merges_unless_runs_pile_up() {
        let each = CLOSING_ROWS_MAX / FLUSHED_FANOUT as u64;
        assert_eq!(Merging::Closing.of_level(0, &[each; FLUSHED_FANOUT - 1]), None);
        assert_eq!(Merging::Closing.of_level(0, &[each; FLUSHED_FANOUT]), Some(FLUSHED_FANOUT));
        assert_eq!(Merging::Closing.of_level(0, &[each + 1; FLUSHED_FANOUT]), None);
        assert_eq!(Merging::Closing.of_level(0, &[each + 1; 2 * FLUSHED_FANOUT]), Some(FLUSHED_FANOUT));
    }
}
