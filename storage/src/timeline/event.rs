//! The events of one key, laid out for folding.

use super::order::{EventOrder, Truncate, compare_events};
use crate::event::Op;
use crate::event::columns::bit;
use crate::time::FOREVER;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

/// One event as the fold sees it. Masks are laid out like the columns of
/// [`crate::event::EventColumns`], so that they can be borrowed from there.
#[derive(Clone, Copy, Debug)]
pub struct KeyEvent<'a> {
    /// Place in the total order, with effective valid time and system time.
    pub order: EventOrder<'a>,
    /// Own valid end, [`FOREVER`] if it has none (rule B13).
    pub valid_to: i64,
    /// Commit that took the event.
    pub commit: u64,
    /// The kind of change; [`Op::Truncate`] does not belong here, see [`Truncate`].
    pub op: Op,
    /// A full image: columns beyond the masks are authored as NULL.
    pub full: bool,
    /// Authored columns 0 to 63.
    pub mask: u64,
    /// Authored columns from 64 on, little-endian bits; beyond its end as `full` says.
    pub mask_rest: Option<&'a [u8]>,
    /// Placeholders (rule B6), and of the authored columns those that are written leaf by leaf;
    /// little-endian bits from column 0 on; empty = none.
    pub unknown: &'a [u8],
    /// Some column is written leaf by leaf (rule B5).
    pub leaves: bool,
    /// Number of the old key's history in the [`KeyHistory`], if this event is the new key's side of
    /// a key change (rule B8).
    pub previous: Option<u32>,
    /// Read the old key as if its deletes at this event's valid instant were not there.
    pub previous_deleted: bool,
    /// Stream of the event. Looked at only where the table has truncates, like the next two.
    pub stream: u32,
    /// Server whose log `token` is a position of; 0 = none.
    pub server: u32,
    /// Usable log position; empty = none.
    pub token: &'a [u8],
    /// The caller's own name for the event: the core only hands it back.
    pub row: u64,
}

impl<'a> KeyEvent<'a> {
    /// A full upsert without anything special.
    pub fn new(order: EventOrder<'a>, commit: u64, row: u64) -> KeyEvent<'a> {
        KeyEvent {
            order,
            valid_to: FOREVER,
            commit,
            op: Op::Upsert,
            full: true,
            mask: u64::MAX,
            mask_rest: None,
            unknown: &[],
            leaves: false,
            previous: None,
            previous_deleted: false,
            stream: 0,
            server: 0,
            token: &[],
            row,
        }
    }

    /// Whether the event writes a value or NULL to `column`. Events that end rows write all.
    #[inline]
    pub fn authors(&self, column: u32) -> bool {
        match (column, self.mask_rest) {
            (0..64, _) => self.mask >> column & 1 == 1,
            (_, None) => self.full,
            (_, Some(rest)) => bit(rest, column as usize - 64).unwrap_or(self.full),
        }
    }

    /// Whether the event writes only leaves of `column`, so that what is below shows through.
    #[inline]
    pub fn writes_leaves(&self, column: u32) -> bool {
        self.leaves && bit(self.unknown, column as usize).unwrap_or(false) && self.authors(column)
    }

    /// Whether the event holds a placeholder for `column`, which it does not author.
    #[inline]
    pub fn is_unknown(&self, column: u32) -> bool {
        !self.unknown.is_empty() && bit(self.unknown, column as usize).unwrap_or(false)
    }

    /// Whether nothing older shows through the event, at any column count.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.op.ends_row()
            || (self.full && self.mask == u64::MAX && self.mask_rest.is_none() && self.unknown.is_empty())
    }

    /// Whether the event speaks about valid time `v`; [`FOREVER`] is the open end (rule B13).
    #[inline]
    pub(crate) fn covers(&self, v: i64) -> bool {
        self.order.valid_from <= v && (self.valid_to == FOREVER || v < self.valid_to) && !self.is_void()
    }

    /// An event without width speaks about nothing.
    #[inline]
    pub(crate) fn is_void(&self) -> bool {
        self.order.valid_from >= self.valid_to
    }
}

/// Who wrote a column of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writer {
    /// Nobody since the row began: NULL.
    Null,
    /// A placeholder with nothing to inherit from (rule B6). Shown as NULL, countable.
    Unknown,
    /// The event with this number in the [`KeyHistory`]; what it wrote may be NULL.
    Event(u32),
    /// Several events: the last wrote leaves into what those before it had left (rule B5). See
    /// [`KeyHistory::merge`]. Within one history equal chains have equal numbers.
    Merge(u32),
}

/// Leaves that an event wrote into the value of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Merge {
    /// Who wrote the value before; an event or another merge.
    pub below: Writer,
    /// The event whose leaves were written into it.
    pub event: u32,
}

/// The merges of a history, each once.
#[derive(Clone, Debug, Default)]
struct Merges {
    all: Vec<Merge>,
    numbers: HashMap<Merge, u32>,
}

/// All events of a key, of the keys its row was moved from, and the truncates of the table.
///
/// Filled by [`KeyHistory::begin_key`] and [`KeyHistory::push`], the asked key first, then closed by
/// [`KeyHistory::finish`]. Meant to be cleared and filled again, key after key.
#[derive(Clone, Debug)]
pub struct KeyHistory<'a> {
    columns: u32,
    system_declared: bool,
    truncates: &'a [Truncate<'a>],
    events: Vec<KeyEvent<'a>>,
    ends: Vec<u32>,
    merges: RefCell<Merges>,
}

impl<'a> KeyHistory<'a> {
    /// An empty history of a table with `columns` columns. `truncates` are those of the table as
    /// [`Truncate::sort`] leaves them.
    pub fn new(columns: u32, system_declared: bool, truncates: &'a [Truncate<'a>]) -> KeyHistory<'a> {
        debug_assert!(truncates.is_sorted_by_key(|t| t.order.valid_from), "truncates are sorted");
        KeyHistory {
            columns,
            system_declared,
            truncates,
            events: Vec::new(),
            ends: Vec::new(),
            merges: RefCell::default(),
        }
    }

    /// Forgets all events and keeps the memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.ends.clear();
        *self.merges.get_mut() = Merges::default();
    }

    /// Begins the history of the next key and returns its number: 0 is the key that is asked about,
    /// the others are old keys that [`KeyEvent::previous`] refers to. Any key may refer to any.
    pub fn begin_key(&mut self) -> u32 {
        self.ends.push(self.events.len() as u32);
        self.ends.len() as u32 - 1
    }

    /// Adds an event of the key begun last, in any order; both directions of rule B3 are cheapest.
    pub fn push(&mut self, event: KeyEvent<'a>) {
        debug_assert!(!self.ends.is_empty(), "begin_key comes first");
        debug_assert!(event.op != Op::Truncate, "truncates are given to new");
        self.events.push(event);
        if let Some(end) = self.ends.last_mut() {
            *end = self.events.len() as u32;
        }
    }

    /// Brings the events of every key into the order of rule B3. Event numbers hold from here on.
    pub fn finish(&mut self) {
        let declared = self.system_declared;
        let mut start = 0;
        for end in &self.ends {
            self.events[start..*end as usize].sort_by(|a, b| compare_events(a, b, declared));
            start = *end as usize;
        }
    }

    /// The event with this number.
    ///
    /// # Panics
    /// If there is none; numbers come from answers about this history.
    #[inline]
    pub fn event(&self, number: u32) -> &KeyEvent<'a> {
        &self.events[number as usize]
    }

    /// All events: those of key 0 first, each key ascending in the order of rule B3.
    pub fn events(&self) -> &[KeyEvent<'a>] {
        &self.events
    }

    /// The truncates of the table, ascending by valid time.
    pub fn truncates(&self) -> &'a [Truncate<'a>] {
        self.truncates
    }

    /// Number of columns of an image.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// Whether system time is part of the order.
    pub fn system_declared(&self) -> bool {
        self.system_declared
    }

    /// The numbers of the events of `key`, ascending; empty for a key that was never begun.
    pub fn key_range(&self, key: u32) -> Range<u32> {
        let Some(end) = self.ends.get(key as usize) else { return 0..0 };
        let start = if key == 0 { 0 } else { self.ends[key as usize - 1] };
        start..*end
    }

    /// The merge with this number.
    ///
    /// # Panics
    /// If there is none; numbers come from answers about this history.
    pub fn merge(&self, number: u32) -> Merge {
        self.merges.borrow().all[number as usize]
    }

    /// The writer of a column after event `number`, which authors it, given the one before.
    #[inline]
    pub(crate) fn written(&self, column: u32, number: u32, before: Writer) -> Writer {
        let event = self.event(number);
        if event.leaves && event.writes_leaves(column) {
            self.merged(before, number)
        } else {
            Writer::Event(number)
        }
    }

    /// The leaves of event `number` in what `below` left; where that is nothing they stand alone.
    #[cold]
    pub(crate) fn merged(&self, below: Writer, number: u32) -> Writer {
        if matches!(below, Writer::Null | Writer::Unknown) {
            return Writer::Event(number);
        }
        let merge = Merge { below, event: number };
        let Merges { all, numbers } = &mut *self.merges.borrow_mut();
        Writer::Merge(*numbers.entry(merge).or_insert_with(|| {
            all.push(merge);
            all.len() as u32 - 1
        }))
    }

    /// Whether two writers stand for the same value of a column, by the caller's comparison.
    #[inline]
    pub(crate) fn same_value(
        &self,
        same: &mut impl FnMut(u32, Writer, Writer) -> bool,
        column: u32,
        a: Writer,
        b: Writer,
    ) -> bool {
        let nobody = |w: Writer| matches!(w, Writer::Null | Writer::Unknown);
        a == b || (nobody(a) && nobody(b)) || same(column, a, b)
    }
}
