//! The quarantine (rule C2) as a program sees it: numbered messages, and what became of them.

use crate::error::{Error, Result};
use crate::intake::Waiting;
use asofdb_storage::engine::{CommitInfo, Quarantined, Resolutions, Snapshot};
use asofdb_storage::time::CommitSeq;
use std::collections::{BTreeSet, VecDeque};

/// Messages that are read from the log at once.
const READ_MAX: u64 = 1_000;

/// A message that was put aside.
#[derive(Clone, Debug, PartialEq)]
pub struct QuarantineEntry {
    /// Its number, from 1, in the order in which messages were put aside; never changes.
    pub number: u64,
    /// The commit that put it aside.
    pub commit: CommitSeq,
    /// The message, and why it could not be taken then.
    pub message: Quarantined,
    /// The commit that settled it; `None` if it waits still.
    pub resolved_by: Option<CommitSeq>,
}

impl QuarantineEntry {
    /// Numbers all messages of a store, oldest first.
    pub fn number(
        messages: Vec<(CommitSeq, Quarantined)>,
        resolutions: &Resolutions,
    ) -> Vec<QuarantineEntry> {
        let mut out: Vec<QuarantineEntry> = Vec::with_capacity(messages.len());
        let mut within = 0;
        for (commit, message) in messages {
            within = if out.last().is_some_and(|last| last.commit == commit) { within + 1 } else { 0 };
            let resolved_by = resolutions.of_message(commit, within);
            out.push(QuarantineEntry { number: out.len() as u64 + 1, commit, message, resolved_by });
        }
        out
    }
}

/// The messages that wait, read from the log in pieces.
pub(crate) struct WaitingMessages {
    snapshot: Snapshot,
    resolutions: Resolutions,
    /// Empty = all.
    wanted: BTreeSet<u64>,
    /// Commits with messages, with the number of the first.
    commits: VecDeque<(CommitInfo, u64)>,
    read: VecDeque<Waiting>,
}

impl WaitingMessages {
    /// Those with the `numbers` given, or all.
    ///
    /// # Errors
    /// `Usage` for a number that there is not.
    pub fn new(snapshot: Snapshot, numbers: &[u64]) -> Result<WaitingMessages> {
        let mut next = 1;
        let mut commits = VecDeque::new();
        for info in snapshot.commits()?.into_iter().filter(|c| c.quarantined > 0) {
            let first = next;
            next += info.quarantined;
            commits.push_back((info, first));
        }
        if let Some(wrong) = numbers.iter().find(|n| **n == 0 || **n >= next) {
            return Err(Error::usage(format!("there is no message {wrong} in the quarantine")).hint(
                if next == 1 { "it is empty".into() } else { format!("they go from 1 to {}", next - 1) },
            ));
        }
        let (resolutions, wanted) = (snapshot.resolutions(), numbers.iter().copied().collect());
        Ok(WaitingMessages { snapshot, resolutions, wanted, commits, read: VecDeque::new() })
    }

    /// Reads the messages of the next few commits that have some that wait.
    fn fill(&mut self) -> Result<()> {
        let mut some = Vec::new();
        let mut count = 0;
        while let Some((info, first)) = self.commits.front()
            && count < READ_MAX
        {
            let waits = |n: u64| {
                let wanted = self.wanted.is_empty() || self.wanted.contains(&(first + n));
                wanted && self.resolutions.of_message(CommitSeq(info.seq), n).is_none()
            };
            if (0..info.quarantined).any(waits) {
                some.push((CommitSeq(info.seq), *first));
                count += info.quarantined;
            }
            self.commits.pop_front();
        }
        let commits: Vec<CommitSeq> = some.iter().map(|(commit, _)| *commit).collect();
        let mut number = 0;
        let mut last = None;
        for (commit, message) in self.snapshot.quarantine_of(&commits)? {
            number = if last == Some(commit) { number + 1 } else { 0 };
            last = Some(commit);
            let first = some.iter().find(|(c, _)| *c == commit).map_or(1, |(_, first)| *first);
            let wanted = self.wanted.is_empty() || self.wanted.contains(&(first + number));
            if wanted && self.resolutions.of_message(commit, number).is_none() {
                self.read.push_back(Waiting { commit, number, message });
            }
        }
        Ok(())
    }
}

impl Iterator for WaitingMessages {
    type Item = Result<Waiting>;

    fn next(&mut self) -> Option<Result<Waiting>> {
        while self.read.is_empty() && !self.commits.is_empty() {
            if let Err(e) = self.fill() {
                self.commits.clear();
                return Some(Err(e));
            }
        }
        self.read.pop_front().map(Ok)
    }
}
