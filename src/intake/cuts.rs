//! What lies before and after some truncates in one stream, over all keys of a table (rule A5).

use asofdb_storage::id::OriginId;
use std::cmp::Ordering;

/// Origin, position and number within the message.
pub type Spot = (OriginId, u64, u32);

/// Places of truncates, and of the stretches between them the greatest and the least valid time: what
/// it holds grows with the truncates, not with the events.
#[derive(Debug, Default)]
pub struct Cuts {
    cuts: Vec<Spot>,
    /// Of the stretch before each cut and the one after the last: least and greatest valid time.
    stretches: Vec<Option<(i64, i64)>>,
}

impl Cuts {
    /// One more truncate; [`Cuts::sort`] follows when all are there.
    pub fn push(&mut self, cut: Spot) {
        self.cuts.push(cut);
    }

    /// Puts the truncates into the order of the stream.
    pub fn sort(&mut self, compare: impl Fn(&Spot, &Spot) -> Ordering) {
        self.cuts.sort_by(&compare);
        self.stretches = vec![None; self.cuts.len() + 1];
    }

    /// Takes note of an event. A truncate itself counts to the stretch before it.
    pub fn add(&mut self, spot: Spot, valid: i64, compare: impl Fn(&Spot, &Spot) -> Ordering) {
        let at = self.cuts.partition_point(|c| compare(c, &spot) == Ordering::Less);
        let (least, greatest) = self.stretches[at].unwrap_or((valid, valid));
        self.stretches[at] = Some((least.min(valid), greatest.max(valid)));
    }

    /// The greatest valid time before a truncate and the least after it.
    pub fn around(
        &self,
        cut: Spot,
        compare: impl Fn(&Spot, &Spot) -> Ordering,
    ) -> (Option<i64>, Option<i64>) {
        let at = self.cuts.partition_point(|c| compare(c, &cut) == Ordering::Less);
        let (before, after) = self.stretches.split_at((at + 1).min(self.stretches.len()));
        let greatest = before.iter().flatten().map(|(_, greatest)| *greatest).max();
        (greatest, after.iter().flatten().map(|(least, _)| *least).min())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_around_truncates_are_told_apart() {
        let spot = |position| (OriginId(0), position, 0);
        let mut cuts = Cuts::default();
        [20, 10].into_iter().for_each(|p| cuts.push(spot(p)));
        cuts.sort(Spot::cmp);
        assert_eq!(cuts.around(spot(10), Spot::cmp), (None, None));
        for (position, valid) in [(5, 100), (6, 90), (15, 300), (25, 500), (26, 400)] {
            cuts.add(spot(position), valid, Spot::cmp);
        }
        assert_eq!(cuts.around(spot(10), Spot::cmp), (Some(100), Some(300)));
        assert_eq!(cuts.around(spot(20), Spot::cmp), (Some(300), Some(400)));
        cuts.add(spot(10), 200, Spot::cmp);
        assert_eq!(cuts.around(spot(10), Spot::cmp), (Some(200), Some(300)), "it precedes what follows");
    }
}
