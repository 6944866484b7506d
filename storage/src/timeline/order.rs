//! The total order of events (rule B3), of truncates against events (rule B7), and of files.

use crate::event::Op;
use crate::timeline::KeyEvent;
use std::cmp::Ordering;

/// Everything that places an event in the total order of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventOrder<'a> {
    /// Effective valid time.
    pub valid_from: i64,
    /// Sequence tie-breaks, compared as bytes; `None` sorts first.
    pub ties: Option<&'a [u8]>,
    /// System time. Part of the order only where it is declared.
    pub system: i64,
    /// Rank of the origin among all origins of the table, see [`origin_ranks`].
    pub origin_rank: u32,
    /// Offset or row within the origin.
    pub position: u64,
    /// Number within the message.
    pub ordinal: u32,
}

impl EventOrder<'_> {
    /// Compares by rule B3.
    #[inline]
    pub fn compare(&self, other: &EventOrder<'_>, system_declared: bool) -> Ordering {
        self.compare_times(other, system_declared).then_with(|| self.place().cmp(&other.place()))
    }

    /// Compares only what stands before the stream in rule B3: equal events from different streams
    /// are what `ties()` lists.
    #[inline]
    pub fn compare_times(&self, other: &EventOrder<'_>, system_declared: bool) -> Ordering {
        self.valid_from
            .cmp(&other.valid_from)
            .then_with(|| self.ties.cmp(&other.ties))
            .then_with(|| if system_declared { self.system.cmp(&other.system) } else { Ordering::Equal })
    }

    fn place(&self) -> (u32, u64, u32) {
        (self.origin_rank, self.position, self.ordinal)
    }
}

/// A truncate: from its point on, every row of the table is gone (rule B7). It is kept beside the
/// events of the keys, because across streams it has no place in their total order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncate<'a> {
    /// Times and place.
    pub order: EventOrder<'a>,
    /// Commit that took it.
    pub commit: u64,
    /// Stream it came from.
    pub stream: u32,
    /// Server whose log `token` is a position of; 0 = none.
    pub server: u32,
    /// Usable log position; empty = none.
    pub token: &'a [u8],
}

impl Truncate<'_> {
    /// Sorts truncates as [`crate::timeline::KeyHistory::new`] wants them.
    pub fn sort(truncates: &mut [Truncate<'_>]) {
        truncates.sort_by_key(|t| (t.order.valid_from, t.order.system, t.commit));
    }

    /// Whether `event` lies before the truncate, so that the truncate ends what it wrote. Within a
    /// stream by position, the truncate first at the same one; across streams of one server by log
    /// position; otherwise the truncate comes first.
    pub fn kills(&self, event: &KeyEvent<'_>, system_declared: bool) -> bool {
        match event.order.compare_times(&self.order, system_declared) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal if event.stream == self.stream => {
                (event.order.origin_rank, event.order.position)
                    < (self.order.origin_rank, self.order.position)
            }
            Ordering::Equal => {
                let comparable = self.server != 0
                    && event.server == self.server
                    && !event.token.is_empty()
                    && !self.token.is_empty();
                comparable && event.token < self.token
            }
        }
    }
}

/// The order of two events of one key. The old key's side of a key change goes before the new key's
/// where both are one key.
#[inline]
pub(crate) fn compare_events(a: &KeyEvent<'_>, b: &KeyEvent<'_>, system_declared: bool) -> Ordering {
    let side = |e: &KeyEvent<'_>| e.op != Op::MovedAway;
    a.order.compare(&b.order, system_declared).then_with(|| side(a).cmp(&side(b)))
}

/// A part of a stream inside which positions are plain numbers, for [`origin_ranks`].
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Name of the stream.
    pub stream_name: &'a str,
    /// Number the store gave the stream.
    pub stream: u32,
    /// Path of the file within a directory stream; empty for streams with plain offsets.
    pub path: &'a str,
}

/// The rank of each origin in rule B3, dense from 0: streams by name, then number, where system time
/// is declared, else by number alone; files of a stream in natural order.
pub fn origin_ranks(origins: &[Origin<'_>], system_declared: bool) -> Vec<u32> {
    let mut by_rank: Vec<usize> = (0..origins.len()).collect();
    by_rank.sort_by(|&a, &b| {
        let (x, y) = (&origins[a], &origins[b]);
        let name = if system_declared { x.stream_name.cmp(y.stream_name) } else { Ordering::Equal };
        name.then(x.stream.cmp(&y.stream)).then_with(|| natural_cmp(x.path, y.path)).then(a.cmp(&b))
    });
    let mut ranks = vec![0; origins.len()];
    for (rank, at) in by_rank.into_iter().enumerate() {
        ranks[at] = rank as u32;
    }
    ranks
}

/// Natural order of paths: runs of ASCII digits compare by value, everything else by bytes; texts
/// that differ only in leading zeros compare by bytes. The files of a full load (see [`full_load_number`])
/// come before all others of their folder. A total order.
pub fn natural_cmp(a: &str, b: &str) -> Ordering {
    match (full_load_first(a), full_load_first(b)) {
        (None, None) => natural(a, b),
        (x, y) => natural(x.as_deref().unwrap_or(a), y.as_deref().unwrap_or(b)).then_with(|| a.cmp(b)),
    }
}

/// The path under which a file of a full load is ranked: a name that is before all others, and a decimal number.
fn full_load_first(path: &str) -> Option<String> {
    let at = path.rfind('/').map_or(0, |at| at + 1);
    let number = full_load_number(&path[at..])?;
    Some(format!("{}\0{number}{}", &path[..at], &path[at + FULL_LOAD.len() + 8..]))
}

const FULL_LOAD: &str = "LOAD";

/// The number of a file of a full load, as AWS DMS names them: `LOAD` and eight hexadecimal digits.
pub fn full_load_number(file: &str) -> Option<u32> {
    let rest = file.strip_prefix(FULL_LOAD)?;
    let digits = rest.get(..8).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let ends = matches!(rest.as_bytes().get(8), None | Some(b'.'));
    ends.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

fn natural(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a.as_bytes(), b.as_bytes());
    loop {
        match (x.first(), y.first()) {
            (None, None) => return a.cmp(b),
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some(p), Some(q)) if p.is_ascii_digit() && q.is_ascii_digit() => {
                let (m, n) = (take_digits(&mut x), take_digits(&mut y));
                match m.len().cmp(&n.len()).then_with(|| m.cmp(n)) {
                    Ordering::Equal => {}
                    unequal => return unequal,
                }
            }
            (Some(p), Some(q)) => {
                if p != q {
                    return p.cmp(q);
                }
                (x, y) = (&x[1..], &y[1..]);
            }
        }
    }
}

/// Cuts a run of digits off the front and returns it without leading zeros.
fn take_digits<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|c| !c.is_ascii_digit()).unwrap_or(text.len());
    let (run, rest) = text.split_at(end);
    *text = rest;
    let zeros = run.iter().position(|c| *c != b'0').unwrap_or(run.len());
    &run[zeros..]
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
