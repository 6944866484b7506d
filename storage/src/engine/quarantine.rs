//! What became of messages that were put aside. The log keeps the messages; a commit that settles
//! some of them says so in its own frame, so nothing that was written is ever changed.

use super::catalog::CommitInfo;
use super::error::{Error, ErrorKind};
use super::view::View;
use crate::time::CommitSeq;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Neighbouring messages of one commit's quarantine. On disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// The commit that put them aside.
    pub commit: u64,
    /// The first of them, counted from 0 within that commit.
    pub first: u64,
    /// The last of them, inclusive.
    pub last: u64,
}

impl Resolved {
    /// The least number of ranges that hold the messages `numbers` of `commit`, ascending.
    pub fn ranges(commit: u64, numbers: impl IntoIterator<Item = u64>) -> Vec<Resolved> {
        let mut ranges: Vec<Resolved> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some(range) if range.last + 1 == number => range.last = number,
                _ => ranges.push(Resolved { commit, first: number, last: number }),
            }
        }
        ranges
    }

    fn len(&self) -> u64 {
        self.last - self.first + 1
    }
}

/// Which messages were settled, and by which commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolutions {
    /// From commit and first message to the last message and the commit that settled them.
    ranges: BTreeMap<(u64, u64), (u64, u64)>,
}

impl Resolutions {
    /// What these commits settled.
    pub fn of<'c>(commits: impl Iterator<Item = &'c CommitInfo>) -> Resolutions {
        let mut all = Resolutions::default();
        for info in commits {
            for r in &info.resolved {
                all.ranges.insert((r.commit, r.first), (r.last, info.seq));
            }
        }
        all
    }

    /// The commit that settled a message, counted from 0 within the commit that put it aside; `None`
    /// if it waits still.
    pub fn of_message(&self, commit: CommitSeq, number: u64) -> Option<CommitSeq> {
        let (_, (last, by)) = self.ranges.range((commit.0, 0)..=(commit.0, number)).next_back()?;
        (number <= *last).then_some(CommitSeq(*by))
    }
}

/// How many messages were put aside, and how many of them were settled since.
pub(crate) fn counts(view: &View) -> (u64, u64) {
    let commits = view.commits.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    let known = || commits.iter().take(view.commit.0 as usize).map(|c| &c.info);
    let resolved = known().flat_map(|c| &c.resolved).map(Resolved::len).sum();
    (known().map(|c| c.quarantined).sum(), resolved)
}

/// A commit may settle only what earlier ones put aside, and nothing twice.
pub(crate) fn check_resolved(view: &View, resolved: &[Resolved]) -> Result<(), Error> {
    if resolved.is_empty() {
        return Ok(());
    }
    let commits = view.commits.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    let known = &commits[..(view.commit.0 as usize).min(commits.len())];
    let mut all = Resolutions::of(known.iter().map(|c| &c.info));
    for r in resolved {
        let put_aside = r.commit.checked_sub(1).and_then(|at| known.get(at as usize));
        let there = put_aside.is_some_and(|c| r.first <= r.last && r.last < c.info.quarantined);
        if !there {
            let what = format!("commit {} put no messages {} to {} aside", r.commit, r.first, r.last);
            return Err(Error::new(ErrorKind::Invalid, what));
        }
        let before = all.ranges.range((r.commit, 0)..=(r.commit, r.last)).next_back();
        if let Some((_, (last, by))) = before
            && *last >= r.first
        {
            let what = format!("message {} of commit {} was settled by commit {by}", r.first, r.commit);
            return Err(Error::new(ErrorKind::Invalid, what));
        }
        all.ranges.insert((r.commit, r.first), (r.last, view.commit.0 + 1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, SeededEntropy};
    use crate::disk::SimDisk;
    use crate::engine::{CommitRequest, Components, Engine, EngineOptions, OpenMode, Quarantined};
    use std::path::Path;
    use std::sync::Arc;

    fn engine() -> Engine {
        let components = Components {
            disk: Arc::new(SimDisk::new()),
            clock: Arc::new(ManualClock::new(1_000_000)),
            entropy: Arc::new(SeededEntropy::new(7)),
            command: "test".into(),
        };
        let options = EngineOptions { background: false, ..EngineOptions::default() };
        Engine::open_with(Path::new("/store"), OpenMode::Create, options, components).expect("a store")
    }

    fn message(position: u64) -> Quarantined {
        Quarantined {
            origin: None,
            stream: "s".into(),
            file: None,
            position,
            line: None,
            table: None,
            reason: "broken".into(),
            hint: None,
            length: 1,
            raw: vec![b'x'],
        }
    }

    #[test]
    fn nothing_is_settled_twice_and_nothing_that_was_not_put_aside() {
        let engine = engine();
        let quarantine = (0..5).map(message).collect();
        engine.commit(CommitRequest { quarantine, ..CommitRequest::default() }).expect("a commit");
        let settle = |commit, first, last| {
            let resolved = vec![Resolved { commit, first, last }];
            engine.commit(CommitRequest { resolved, ..CommitRequest::default() }).map(|info| info.seq)
        };
        for (commit, first, last) in [(0, 0, 0), (2, 0, 0), (1, 0, 5), (1, 3, 2)] {
            assert!(settle(commit, first, last).is_err(), "{commit}, {first} to {last}");
        }
        assert_eq!(settle(1, 1, 2).expect("a commit"), 2);
        for (first, last) in [(1, 1), (2, 4), (0, 1), (0, 4)] {
            let error = settle(1, first, last).expect_err("settled before");
            assert!(error.message.contains("commit 2"), "{error}");
        }
        assert_eq!(settle(1, 3, 4).expect("a commit"), 3);
        let known = engine.pin().resolutions();
        let by: Vec<_> = (0..6).map(|n| known.of_message(CommitSeq(1), n).map(|c| c.0)).collect();
        assert_eq!(by, [None, Some(2), Some(2), Some(3), Some(3), None]);
        assert_eq!(known.of_message(CommitSeq(2), 1), None);
        let status = engine.status().expect("a status");
        assert_eq!((status.quarantined, status.resolved), (1, 4));
    }

    #[test]
    fn neighbours_make_ranges() {
        let range = |first, last| Resolved { commit: 7, first, last };
        assert_eq!(Resolved::ranges(7, [0, 1, 2, 5, 7, 8]), [range(0, 2), range(5, 5), range(7, 8)]);
        assert!(Resolved::ranges(7, []).is_empty());
    }
}
