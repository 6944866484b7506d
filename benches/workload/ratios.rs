//! What both took, round by round, and the ratios between them.

use crate::Outcome;
use crate::figures::{digits, median, ratio, spread};
use std::collections::BTreeMap;

/// Figures of all rounds by name.
#[derive(Debug, Default)]
pub struct Rounds(BTreeMap<String, Vec<f64>>);

/// A comparison: what it is, ours and the peer's figure by name, whether more is better, and the ratio to
/// reach.
pub type Comparison<'c> = (&'c str, &'c str, &'c str, bool, Option<f64>);

impl Rounds {
    /// Notes a figure of a round.
    pub fn note(&mut self, name: impl Into<String>, figure: f64) {
        self.0.entry(name.into()).or_default().push(figure);
    }

    /// The figures of all rounds.
    pub fn of(&self, name: &str) -> &[f64] {
        self.0.get(name).map_or(&[], |f| f)
    }

    /// How many times better ours is than the peer's, by medians.
    pub fn better(&self, (_, ours, peers, more_is_better, _): &Comparison<'_>) -> Option<f64> {
        let (ours, peers) = (median(self.of(ours))?, median(self.of(peers))?);
        if *more_is_better { ratio(ours, peers) } else { ratio(peers, ours) }
    }

    /// Prints the comparisons as a table.
    pub fn print(&self, title: &str, comparisons: &[Comparison<'_>]) -> Outcome<()> {
        println!("\n| {title} | asofdb | DuckDB | times better | to reach |\n|---|---|---|---|---|");
        for comparison in comparisons {
            let (what, ours, peers, _, reach) = comparison;
            let times = self.better(comparison).map_or("-".into(), digits);
            let reach = reach.map_or(String::new(), |r| digits(r).trim_end_matches(".00").to_owned());
            println!(
                "| {what} | {} | {} | {times} | {reach} |",
                spread(self.of(ours)),
                spread(self.of(peers))
            );
        }
        Ok(())
    }
}
