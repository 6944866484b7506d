//! From the model's changes to histories of the core, and its answers back.

use asofdb_storage::event::Op;
use asofdb_storage::time::FOREVER;
use asofdb_storage::timeline::{
    Belief, Bound, EventOrder, KeyEvent, KeyHistory, Limits, Rectangles, Scratch, TimelineError, Tracked,
    Truncate, Writer,
};
use asofdb_testkit::{Act, Cell, Change, Model, Rectangle, Version};
use std::ops::ControlFlow;

/// A model with the bytes that events borrow.
pub struct Table {
    pub model: Model,
    bytes: Vec<Bytes>,
}

struct Bytes {
    tie: Option<[u8; 1]>,
    token: Vec<u8>,
    mask: Vec<u8>,
    unknown: Vec<u8>,
    leaves: bool,
}

impl Table {
    pub fn new(model: Model) -> Table {
        let bytes = model.changes.iter().map(|c| Bytes::of(c, model.columns)).collect();
        Table { model, bytes }
    }

    pub fn truncates(&self) -> Vec<Truncate<'_>> {
        let mut truncates = Vec::new();
        for (i, c) in self.model.changes.iter().enumerate().filter(|(_, c)| c.act == Act::Truncate) {
            truncates.push(Truncate {
                order: self.order(i),
                commit: c.commit,
                stream: c.stream,
                server: c.log.map_or(0, |(server, _)| server),
                token: &self.bytes[i].token,
            });
        }
        Truncate::sort(&mut truncates);
        truncates
    }

    /// The history of `key` with those of all other keys behind it.
    pub fn history<'a>(&'a self, truncates: &'a [Truncate<'a>], key: u32) -> KeyHistory<'a> {
        let mut keys = vec![key];
        keys.extend(self.model.keys().into_iter().filter(|k| *k != key));
        let mut history = KeyHistory::new(self.model.columns, self.model.system_declared, truncates);
        for key in &keys {
            history.begin_key();
            for (i, c) in self.model.changes.iter().enumerate().filter(|(_, c)| c.act != Act::Truncate) {
                if c.previous == Some(*key) {
                    let moved = KeyEvent { previous: None, ..self.event(i, &keys) };
                    history.push(KeyEvent { op: Op::MovedAway, mask: u64::MAX, mask_rest: None, ..moved });
                }
                if c.key == *key {
                    history.push(self.event(i, &keys));
                }
            }
        }
        history.finish();
        history
    }

    fn order(&self, i: usize) -> EventOrder<'_> {
        let c = &self.model.changes[i];
        EventOrder {
            valid_from: c.valid,
            ties: self.bytes[i].tie.as_ref().map(|t| t.as_slice()),
            system: c.system,
            origin_rank: c.stream,
            position: c.position,
            ordinal: 0,
        }
    }

    fn event(&self, i: usize, keys: &[u32]) -> KeyEvent<'_> {
        let (c, bytes) = (&self.model.changes[i], &self.bytes[i]);
        let plain = c.full && bytes.unknown.is_empty() || c.act == Act::Delete;
        let word = bytes.mask.iter().take(8).rev().fold(0, |word, b| word << 8 | *b as u64);
        let rest = bytes.mask.get(8..).filter(|rest| !plain && !rest.is_empty());
        KeyEvent {
            valid_to: c.valid_to.unwrap_or(FOREVER),
            op: if c.act == Act::Delete { Op::Delete } else { Op::Upsert },
            full: c.full || c.act == Act::Delete,
            mask: if plain { u64::MAX } else { word },
            mask_rest: rest,
            unknown: &bytes.unknown,
            leaves: bytes.leaves,
            previous: c.previous.and_then(|p| keys.iter().position(|k| *k == p)).map(|at| at as u32),
            previous_deleted: c.previous_deleted,
            stream: c.stream,
            server: c.log.map_or(0, |(server, _)| server),
            token: &bytes.token,
            ..KeyEvent::new(self.order(i), c.commit, i as u64)
        }
    }

    /// What a writer stands for: leaves are laid over what is below them.
    fn value(&self, history: &KeyHistory<'_>, writer: Writer, column: u32) -> Cell {
        let sent = |number: u32| {
            let change = &self.model.changes[history.event(number).row as usize];
            change.cells.get(&column).copied().unwrap_or(Cell::Null)
        };
        match writer {
            Writer::Null => Cell::Null,
            Writer::Unknown => Cell::Unknown,
            Writer::Event(number) => match sent(number) {
                Cell::Leaves(object) => Cell::Object(object),
                cell => cell,
            },
            Writer::Merge(number) => {
                let merge = history.merge(number);
                match (self.value(history, merge.below, column), sent(merge.event)) {
                    (Cell::Object(old), Cell::Leaves(object)) => Cell::Object(old.with(object)),
                    (_, Cell::Leaves(object)) => Cell::Object(object),
                    (_, cell) => panic!("{cell:?} has no leaves"),
                }
            }
        }
    }

    fn shown(&self, history: &KeyHistory<'_>, writer: Writer, column: u32) -> Option<i64> {
        self.value(history, writer, column).shown()
    }

    pub fn row(&self, history: &KeyHistory<'_>, bound: &Bound) -> Result<Option<Vec<Cell>>, TimelineError> {
        let columns: Vec<u32> = (0..self.model.columns).collect();
        let mut writers = vec![Writer::Null; columns.len()];
        let decided = history.resolve(bound, &columns, &mut writers, &mut Scratch::default())?;
        let cells = writers.iter().zip(columns).map(|(w, column)| self.value(history, *w, column));
        Ok(decided.map(|_| cells.collect()))
    }

    fn image(&self, history: &KeyHistory<'_>, writers: &[Writer]) -> Vec<Option<i64>> {
        let shown = |(c, w): (usize, &Writer)| self.shown(history, *w, c as u32);
        writers.iter().enumerate().map(shown).collect()
    }

    pub fn versions(
        &self,
        history: &KeyHistory<'_>,
        belief: &mut Belief,
        (system, commit): (i64, u64),
        tracked: Option<&[u32]>,
    ) -> Vec<Version> {
        let same = |c, a, b| self.shown(history, a, c) == self.shown(history, b, c);
        belief
            .compute(history, system, commit, tracked.map_or(Tracked::All, Tracked::Only), u64::MAX, same)
            .expect("within limits");
        let versions = belief.versions().iter().enumerate();
        versions.map(|(i, v)| (v.start, v.end, self.image(history, belief.image(i)))).collect()
    }

    /// Rectangles in the order they come, with the event that decided each.
    pub fn rectangles(
        &self,
        history: &KeyHistory<'_>,
        rectangles: &mut Rectangles,
        commit: u64,
        tracked: Option<&[u32]>,
        plain: bool,
    ) -> Result<Vec<(Rectangle, u64)>, TimelineError> {
        let mut rows = Vec::new();
        let same = |c, a, b| self.shown(history, a, c) == self.shown(history, b, c);
        let tracked = tracked.map_or(Tracked::All, Tracked::Only);
        let limits = Limits::default();
        let emit = |r: asofdb_storage::timeline::Rectangle<'_>| {
            let rectangle = Rectangle {
                valid: (r.valid_start, r.valid_end),
                system: (r.system_start, r.system_end),
                image: self.image(history, r.image),
            };
            rows.push((rectangle, history.event(r.event).row));
            ControlFlow::Continue(())
        };
        if plain {
            _ = rectangles.stream_plain(history, commit, tracked, &limits, same, emit)?;
        } else {
            _ = rectangles.stream(history, commit, tracked, &limits, same, emit)?;
        }
        Ok(rows)
    }
}

impl Bytes {
    fn of(change: &Change, columns: u32) -> Bytes {
        let mut mask = vec![0u8; columns.div_ceil(64) as usize * 8];
        let (mut unknown, mut leaves) = (Vec::new(), false);
        for column in 0..columns {
            let (at, bit) = (column as usize / 8, 1u8 << (column % 8));
            if change.authors(column) {
                mask[at] |= bit;
            }
            let by_leaf = !change.full && matches!(change.cells.get(&column), Some(Cell::Leaves(_)));
            leaves |= by_leaf;
            if by_leaf || change.cells.get(&column) == Some(&Cell::Unknown) {
                unknown.resize(mask.len(), 0);
                unknown[at] |= bit;
            }
        }
        let token = change.log.map_or(Vec::new(), |(_, at)| vec![at + 1]);
        Bytes { tie: change.tie.map(|t| [t]), token, mask, unknown, leaves }
    }
}

/// All rectangles of a key, both ways, checked against each other; sorted.
pub fn both_ways(table: &Table, key: u32, commit: u64, tracked: Option<&[u32]>) -> Vec<Rectangle> {
    let truncates = table.truncates();
    let history = table.history(&truncates, key);
    let mut scratch = Rectangles::new();
    let swept = table.rectangles(&history, &mut scratch, commit, tracked, false).expect("within limits");
    let plain = table.rectangles(&history, &mut scratch, commit, tracked, true).expect("within limits");
    assert_eq!(swept, plain, "the sweep and the plain way differ for {:#?}", table.model);
    let mut rows: Vec<Rectangle> = swept.into_iter().map(|(r, _)| r).collect();
    rows.sort();
    rows
}

/// All permutations of `n` items (Heap's algorithm), handed to `visit` one by one.
pub fn permutations(n: usize, visit: &mut impl FnMut(&[usize])) {
    let mut order: Vec<usize> = (0..n).collect();
    let mut counters = vec![0; n];
    visit(&order);
    let mut i = 0;
    while i < n {
        if counters[i] < i {
            order.swap(if i % 2 == 0 { 0 } else { counters[i] }, i);
            visit(&order);
            counters[i] += 1;
            i = 0;
        } else {
            counters[i] = 0;
            i += 1;
        }
    }
}
