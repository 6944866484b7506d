//! Settling, when a batch closes, the events that need the other events of their key: repeats (rule
//! C1), tombstones and derived valid time (rules A4, A5). One look-up per table serves them all.

use super::batch::Batcher;
use super::cuts::Cuts;
use super::keys::{cells_of, parse, sides};
use super::report::IntakeReport;
use super::rows::Refusal;
use super::table::TableIntake;
use crate::change::{Change, Times};
use crate::error::Result;
use crate::source::Place;
use asofdb_storage::engine::{Catalog, RowBlock};
use asofdb_storage::event::{EventHead, Op, RowView, TimeSource, content_hash, encode_row};
use asofdb_storage::id::{OriginId, StreamId, TableId};
use asofdb_storage::timeline::{self, Arrival, Neighbour, Placement};
use asofdb_storage::value::Cell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// Stands for the instant of the commit that is being made, which nobody knows yet: later than any
/// instant that events carry.
const COMMIT_INSTANT: i64 = i64::MAX - 1;

/// A row of the batch that is not settled.
#[derive(Debug)]
pub struct Deferred {
    pub(super) table: usize,
    pub(super) row: u32,
    /// Number of its message among the held ones.
    pub(super) held: u32,
    pub(super) place: bool,
    pub(super) token: bool,
    pub(super) id: bool,
    pub(super) times: Times,
    pub(super) snapshot: bool,
    pub(super) tombstone: bool,
}

impl Deferred {
    pub fn new(
        table: usize,
        t: &TableIntake,
        change: &Change<'_>,
        place: bool,
        token: bool,
        id: bool,
    ) -> Deferred {
        let snapshot = change.snapshot || change.op == Op::Read;
        let row = t.block.ends.len() as u32 - 1;
        let tombstone = change.tombstone;
        Deferred { table, row, held: 0, place, token, id, times: change.times, snapshot, tombstone }
    }
}

/// A message with rows that are not settled.
#[derive(Debug)]
pub struct Held {
    kept: Vec<(u32, u32)>,
    repeat: Option<&'static str>,
    ignored: Option<&'static str>,
    conflict: bool,
    stream: String,
    file: String,
    origin: OriginId,
    position: u64,
    line: u64,
    raw: Vec<u8>,
}

impl Held {
    pub fn new(
        place: &Place<'_>,
        origin: OriginId,
        kept: Vec<(u32, u32)>,
        ignored: Option<&'static str>,
    ) -> Held {
        Held {
            kept,
            repeat: None,
            ignored,
            conflict: false,
            stream: String::new(),
            file: String::new(),
            origin,
            position: place.position,
            line: place.line,
            raw: Vec::new(),
        }
    }

    /// Keeps what a quarantine would show.
    pub fn keep(&mut self, place: &Place<'_>) {
        self.stream = place.stream.to_owned();
        self.file = place.file.to_owned();
        self.raw = place.kept().into_owned();
    }
}

/// Catalog key of the greatest integer operation id of a table.
pub fn operation_key(table: TableId) -> String {
    format!("intake/operation/{}", table.0)
}

/// The greatest integer operation id that the table has.
pub fn operation_id_high(catalog: &Catalog, table: TableId) -> Option<i64> {
    catalog.positions.get(&operation_key(table)).and_then(serde_json::Value::as_i64)
}

impl TableIntake {
    /// Whether an event with this operation id may be stored already: integers that only grow are
    /// new without a look-up.
    pub fn is_maybe_known_id(&mut self, id: &Cell<'_>) -> bool {
        let number = match id {
            Cell::Int(n) => Some(*n),
            Cell::Text(t) => asofdb_storage::value::canonical_number(t)
                .filter(|(_, scale)| *scale == 0)
                .and_then(|(n, _)| i64::try_from(n).ok()),
            _ => None,
        };
        match (number, self.operation_id_high) {
            (None, _) => true,
            (Some(n), Some(high)) if n <= high => true,
            (Some(n), _) => {
                (self.operation_id_high, self.operation_id_dirty) = (Some(n), true);
                false
            }
        }
    }
}

/// What becomes of a row.
enum Decision {
    Drop,
    Place { valid_from: Option<i64>, event_time: Option<i64>, source: TimeSource },
}

/// An event of a key in one stream, stored or of this batch.
struct Entry {
    place: (OriginId, u64, u32),
    valid: i64,
    op: Op,
    server: u32,
    token: Vec<u8>,
}

type Decisions = HashMap<(usize, u32), Decision>;

/// See [`Known::tokens`].
type TokenOfKey = (Vec<u8>, u32, Vec<u8>, u32, u64);

/// The events that are known of the keys of one table.
#[derive(Default)]
struct Known {
    entries: HashMap<(Vec<u8>, u32), Vec<Entry>>,
    keys: HashSet<Vec<u8>>,
    /// Key, server, token, ordinal, content of events with a token.
    tokens: HashSet<TokenOfKey>,
    ids: HashMap<Vec<u8>, u64>,
    servers: HashMap<String, u32>,
    /// What lies around the truncates that wait, by stream.
    cuts: HashMap<u32, Cuts>,
}

impl Known {
    fn server(&mut self, name: &str) -> u32 {
        let next = self.servers.len() as u32 + 1;
        match self.servers.get(name) {
            Some(n) => *n,
            None => *self.servers.entry(name.to_owned()).or_insert(next),
        }
    }
}

impl Batcher<'_> {
    /// Settles every row that waits. Commits before this one must have ended.
    ///
    /// # Errors
    /// Those of the store; `Source` under `strict`.
    pub fn settle(&mut self) -> Result<()> {
        let deferred = std::mem::take(&mut self.deferred);
        if deferred.is_empty() {
            return self.remember_ids();
        }
        let mut decisions = Decisions::new();
        for table in 0..self.tables.len() {
            let of_table: Vec<&Deferred> = deferred.iter().filter(|d| d.table == table).collect();
            if !of_table.is_empty() {
                self.settle_table(table, &of_table, &mut decisions)?;
            }
        }
        self.close_held(&deferred, &mut decisions)?;
        for table in 0..self.tables.len() {
            self.rewrite(table, &decisions)?;
        }
        self.remember_ids()
    }

    /// Adds the operation ids of the batch to those that are known, where they were asked for.
    fn remember_ids(&mut self) -> Result<()> {
        for t in &mut self.tables {
            let Some(ids) = &mut t.operation_ids else { continue };
            for row in t.block.rows() {
                let view = parse(row)?;
                if let Some(id) = view.head.operation_id {
                    ids.insert(id.to_owned(), content_hash(view.head.op, view.cell_bytes()));
                }
            }
        }
        Ok(())
    }

    fn settle_table(
        &mut self,
        table: usize,
        deferred: &[&Deferred],
        decisions: &mut Decisions,
    ) -> Result<()> {
        let block = std::mem::take(&mut self.tables[table].block);
        let mut known = Known::default();
        let any_id = deferred.iter().any(|d| d.id);
        {
            let rows: Vec<&[u8]> = block.rows().collect();
            for d in deferred {
                let view = parse(rows[d.row as usize])?;
                known.keys.extend(sides(&self.tables[table], &view)?);
                if d.place && view.head.op == Op::Truncate {
                    let (place, stream) = self.place_in_stream(&view.head);
                    known.cuts.entry(stream).or_default().push(place);
                }
            }
            self.add_stored(table, &mut known)?;
            self.add_around_cuts(table, &mut known)?;
            let mut next = deferred.iter().peekable();
            for (i, row) in rows.iter().enumerate() {
                let view = parse(row)?;
                let waiting = next.next_if(|d| d.row as usize == i);
                let keys = sides(&self.tables[table], &view)?;
                let concerns = keys.iter().any(|k| known.keys.contains(k)) || view.head.op == Op::Truncate;
                if waiting.is_none() && !concerns && !any_id && known.cuts.is_empty() {
                    continue;
                }
                self.settle_row(table, i as u32, &view, &keys, waiting.copied(), &mut known, decisions)?;
            }
        }
        self.tables[table].block = block;
        Ok(())
    }

    fn add_stored(&mut self, table: usize, known: &mut Known) -> Result<()> {
        known.keys.insert(Vec::new());
        let meta = &self.tables[table].meta;
        if meta.schemas.is_empty() {
            return Ok(());
        }
        let keys: Vec<Vec<u8>> = known.keys.iter().cloned().collect();
        let stored = self.sink.key_events(meta.id, &keys)?;
        for (key, events) in keys.into_iter().zip(stored) {
            for e in events {
                let name = self.numbers.streams[e.stream.0 as usize].state.server.clone();
                let server = known.server(&name);
                if let Some(content) = e.content.filter(|_| !e.token.is_empty()) {
                    known.tokens.insert((key.clone(), server, e.token.clone(), e.token_ordinal, content));
                }
                let entry = Entry {
                    place: (e.origin, e.position, e.ordinal),
                    valid: e.valid_from,
                    op: e.op,
                    server,
                    token: e.token,
                };
                known.entries.entry((key.clone(), e.stream.0)).or_default().push(entry);
            }
        }
        for list in known.entries.values_mut() {
            list.sort_by(|a, b| self.numbers.compare(a.place, b.place));
        }
        Ok(())
    }

    fn place_in_stream(&self, head: &EventHead<'_>) -> ((OriginId, u64, u32), u32) {
        let stream = self.numbers.origins[head.origin.0 as usize].stream;
        ((head.origin, head.position, head.ordinal), stream)
    }

    /// Finds what the store has before and after each truncate that waits, of any key.
    fn add_around_cuts(&self, table: usize, known: &mut Known) -> Result<()> {
        let meta = &self.tables[table].meta;
        for (stream, cuts) in &mut known.cuts {
            cuts.sort(|a, b| self.numbers.compare(*a, *b));
            if meta.schemas.is_empty() {
                continue;
            }
            self.sink.each_event(meta.id, StreamId(*stream), &mut |place, valid| {
                cuts.add(place, valid, |a, b| self.numbers.compare(*a, *b));
            })?;
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "one step of a loop")]
    fn settle_row(
        &mut self,
        table: usize,
        row: u32,
        view: &RowView<'_>,
        keys: &[Vec<u8>],
        waiting: Option<&Deferred>,
        known: &mut Known,
        decisions: &mut Decisions,
    ) -> Result<()> {
        let head = &view.head;
        let stream = self.numbers.origins[head.origin.0 as usize].stream;
        let server = known.server(&self.numbers.streams[stream as usize].state.server.clone());
        let content = content_hash(head.op, view.cell_bytes());
        let token = |key: &Vec<u8>| (key.clone(), server, head.token.to_owned(), head.token_ordinal, content);
        let mut valid = head.valid_from.unwrap_or(COMMIT_INSTANT);
        if let Some(d) = waiting {
            if d.token && known.tokens.contains(&token(&keys[0])) {
                decisions.insert((table, row), Decision::Drop);
                self.held[d.held as usize].repeat = Some("replayed");
                return Ok(());
            }
            if d.id && self.is_known_id(table, head, content, known, d.held as usize)? {
                decisions.insert((table, row), Decision::Drop);
                return Ok(());
            }
            if d.place {
                match self.place_row(d, head, stream, server, keys, known) {
                    None => {
                        decisions.insert((table, row), Decision::Drop);
                        self.held[d.held as usize].ignored.get_or_insert("tombstone");
                        return Ok(());
                    }
                    Some(placed) => {
                        valid = placed.valid_from;
                        self.note_placed(table, stream, &placed);
                        let valid_from = (valid != COMMIT_INSTANT).then_some(valid);
                        let (event_time, source) = (placed.event_time, placed.source);
                        decisions.insert((table, row), Decision::Place { valid_from, event_time, source });
                    }
                }
            }
            self.held[d.held as usize].kept.push((table as u32, row));
        }
        if let Some(id) = head.operation_id {
            known.ids.insert(id.to_owned(), content);
        }
        if let Some(cuts) = known.cuts.get_mut(&stream) {
            let place = (head.origin, head.position, head.ordinal);
            cuts.add(place, valid, |a, b| self.numbers.compare(*a, *b));
        }
        for (side, key) in keys.iter().enumerate() {
            if !head.token.is_empty() {
                known.tokens.insert(token(key));
            }
            let op = if side > 0 { Op::MovedAway } else { head.op };
            let place = (head.origin, head.position, head.ordinal);
            let entry = Entry { place, valid, op, server, token: head.token.to_owned() };
            let list = known.entries.entry((key.clone(), stream)).or_default();
            let at = list.partition_point(|e| self.numbers.compare(e.place, place) == Ordering::Less);
            list.insert(at, entry);
        }
        Ok(())
    }

    fn is_known_id(
        &mut self,
        table: usize,
        head: &EventHead<'_>,
        content: u64,
        known: &Known,
        held: usize,
    ) -> Result<bool> {
        let Some(id) = head.operation_id else { return Ok(false) };
        let t = &mut self.tables[table];
        if t.operation_ids.is_none() {
            // Once for the rest of the intake; what it stores itself is added batch by batch.
            let empty = t.meta.schemas.is_empty();
            let stored = if empty { HashMap::new() } else { self.sink.operation_ids(t.meta.id)? };
            t.operation_ids = Some(stored);
        }
        let stored = t.operation_ids.as_ref().and_then(|ids| ids.get(id));
        let stored = known.ids.get(id).or(stored).copied();
        match stored {
            None => Ok(false),
            Some(stored) => {
                let held = &mut self.held[held];
                if stored == content {
                    held.repeat = Some("same_operation_id");
                } else {
                    held.conflict = true;
                }
                Ok(true)
            }
        }
    }

    /// Places a row between its neighbours in the stream; `None` if it says nothing new.
    fn place_row(
        &self,
        d: &Deferred,
        head: &EventHead<'_>,
        stream: u32,
        server: u32,
        keys: &[Vec<u8>],
        known: &Known,
    ) -> Option<timeline::Placed> {
        let place = (head.origin, head.position, head.ordinal);
        let (mut before, mut after): (Option<&Entry>, Option<&Entry>) = (None, None);
        let truncates: &[u8] = &[];
        for key in keys.iter().map(Vec::as_slice).chain([truncates]) {
            let Some(list) = known.entries.get(&(key.to_vec(), stream)) else { continue };
            let at = list.partition_point(|e| self.numbers.compare(e.place, place) == Ordering::Less);
            if let Some(e) = at.checked_sub(1).map(|i| &list[i])
                && before.is_none_or(|b| b.valid < e.valid)
            {
                before = Some(e);
            }
            if let Some(e) = list.get(at)
                && after.is_none_or(|a| a.valid > e.valid)
            {
                after = Some(e);
            }
        }
        if head.op == Op::Truncate {
            return Some(self.place_truncate(d, place, known.cuts.get(&stream)?));
        }
        fn neighbour(e: &Entry) -> Neighbour<'_> {
            Neighbour { valid: e.valid, op: e.op, server: e.server, token: &e.token }
        }
        let times =
            timeline::Times { source: d.times.source, connector: d.times.connector, broker: d.times.broker };
        let arrival = Arrival {
            declared: None,
            times,
            snapshot_read: d.snapshot,
            tombstone: d.tombstone,
            server,
            token: head.token,
            commit_instant: COMMIT_INSTANT,
        };
        match timeline::place(&arrival, before.map(neighbour).as_ref(), after.map(neighbour).as_ref()) {
            Placement::Ignored => None,
            Placement::Placed(placed) => Some(placed),
        }
    }

    /// A truncate succeeds and precedes every key of its table in the stream.
    fn place_truncate(&self, d: &Deferred, place: (OriginId, u64, u32), cuts: &Cuts) -> timeline::Placed {
        let (before, after) = cuts.around(place, |a, b| self.numbers.compare(*a, *b));
        let neighbour = |valid: i64| Neighbour { valid, op: Op::Update, server: 0, token: &[] };
        let arrival = Arrival {
            declared: None,
            times: timeline::Times {
                source: d.times.source,
                connector: d.times.connector,
                broker: d.times.broker,
            },
            snapshot_read: false,
            tombstone: false,
            server: 0,
            token: &[],
            commit_instant: COMMIT_INSTANT,
        };
        let (before, after) = (before.map(neighbour), after.map(neighbour));
        match timeline::place(&arrival, before.as_ref(), after.as_ref()) {
            Placement::Placed(placed) => placed,
            Placement::Ignored => unreachable!("only tombstones are ignored"),
        }
    }

    fn note_placed(&mut self, table: usize, stream: u32, placed: &timeline::Placed) {
        self.counts.raised += placed.raised as u64;
        self.counts.lowered += placed.lowered as u64;
        let id = self.tables[table].meta.id.0;
        let s = &mut self.numbers.streams[stream as usize];
        if placed.valid_from == COMMIT_INSTANT {
            if !s.state.commit_instant.contains(&id) {
                s.state.commit_instant.push(id);
                s.dirty = true;
            }
        } else if s.state.high.get(&id).is_none_or(|high| *high < placed.valid_from) {
            s.state.high.insert(id, placed.valid_from);
            s.dirty = true;
        }
    }

    /// Counts the messages that waited; those with a conflict go to the quarantine as a whole.
    fn close_held(&mut self, deferred: &[Deferred], decisions: &mut Decisions) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        for (i, h) in held.into_iter().enumerate() {
            if h.conflict {
                for (table, row) in &h.kept {
                    decisions.insert((*table as usize, *row), Decision::Drop);
                }
                let table = deferred.iter().find(|d| d.held as usize == i).map(|d| d.table);
                let name = table.map(|t| self.tables[t].meta.name.clone());
                let refusal =
                    Refusal::new("an event with this operation id and other content is stored already")
                        .hint("operation ids must be unique; see history() for the stored event");
                let place = Place {
                    file: &h.file,
                    line: h.line,
                    raw: &h.raw,
                    ..Place::in_stream(&h.stream, h.position)
                };
                self.put_aside(&place, h.origin, name.as_deref(), refusal)?;
            } else if !h.kept.is_empty() {
                self.counts.accepted += 1;
            } else if let Some(kind) = h.repeat {
                IntakeReport::count(&mut self.counts.repeats, kind, 1);
            } else if let Some(kind) = h.ignored {
                IntakeReport::count(&mut self.counts.ignored, kind, 1);
            }
        }
        Ok(())
    }

    /// Writes the block of a table again without the rows that were dropped and with the times that
    /// were settled.
    fn rewrite(&mut self, table: usize, decisions: &Decisions) -> Result<()> {
        if !decisions.keys().any(|(t, _)| *t == table) {
            return Ok(());
        }
        let old = std::mem::take(&mut self.tables[table].block);
        let mut new = RowBlock { table: old.table, ..RowBlock::default() };
        for (i, row) in old.rows().enumerate() {
            match decisions.get(&(table, i as u32)) {
                None => new.bytes.extend_from_slice(row),
                Some(Decision::Drop) => {
                    self.rows[parse(row)?.head.op as usize] -= 1;
                    continue;
                }
                Some(Decision::Place { valid_from, event_time, source }) => {
                    let view = parse(row)?;
                    let cells = cells_of(&view)?;
                    let mut head = view.head.clone();
                    (head.valid_from, head.event_time) = (*valid_from, *event_time);
                    head.time_source = *source;
                    let head = EventHead { previous: view.previous.as_deref(), ..head };
                    encode_row(&mut new.bytes, &head, &cells);
                }
            }
            new.ends.push(new.bytes.len() as u32);
        }
        self.tables[table].block = new;
        Ok(())
    }
}
