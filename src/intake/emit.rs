//! One change as a row: its place in the stream, its times, its cells.

use super::batch::{Batcher, EmitScratch, Emitted};
use super::pending::Deferred;
use super::rows::{Cells, Prepared};
use super::table::TableIntake;
use crate::change::Change;
use crate::source::Place;
use asofdb_storage::event::{EventHead, Op, TimeSource, encode_row};
use asofdb_storage::id::{ColumnId, OriginId};
use asofdb_storage::key::put_key_cell;
use asofdb_storage::recycle;
use asofdb_storage::time::{BEGINNING, FOREVER};
use asofdb_storage::value::Cell;

impl Batcher<'_> {
    /// Encodes one change.
    pub(super) fn emit<'a>(
        &mut self,
        place: &Place<'a>,
        origin: OriginId,
        ordinal: u32,
        change: &Change<'a>,
        p: &Prepared,
        cells: &Cells<'a>,
    ) -> Emitted {
        let entry = &self.numbers.origins[origin.0 as usize];
        let (stream_id, behind) = (entry.stream as usize, entry.behind || self.again);
        let mut head = EventHead { ordinal, ..EventHead::new(change.op, origin, place.position) };
        (head.full, head.system) = (change.full, change.declared.system.map(|s| s.value));
        head.valid_to = change.declared.valid_to.map_or(FOREVER, |v| v.value);
        head.transaction_id = change.transaction_id;
        head.source = self.numbers.source(&change.source, change.token.as_ref());
        let kept = self.raw_to_keep(place, origin, p.table);
        head.raw = kept.as_deref();
        let EmitScratch { mut ties, mut id, mut key } = std::mem::take(&mut self.scratch);
        ties.clear();
        id.clear();
        change.declared.ties.iter().for_each(|c| put_key_cell(&mut ties, c));
        head.ties = &ties;
        let mut check_id = false;
        if let Some(cell) = &change.declared.operation_id {
            put_key_cell(&mut id, cell);
            check_id = self.tables[p.table].is_maybe_known_id(cell);
            head.operation_id = Some(&id);
        }
        let check_token = self.token(stream_id, change, &mut head);
        let ends = change.op == Op::Delete && self.tables[p.table].is_keyed();
        let stream = &mut self.numbers.streams[stream_id];
        let mut ignored = None;
        if ends {
            key.clear();
            let t = &self.tables[p.table];
            put_key(t, cells, change, p, &mut key);
            if change.tombstone
                && let Some((table, tombstone)) = stream.ended
                && table == p.table
                && stream.ended_key == key
            {
                ignored = Some(if tombstone { "tombstone_repeated" } else { "tombstone" });
            }
            stream.ended = Some((p.table, change.tombstone));
            stream.ended_key.clone_from(&key);
        } else {
            stream.ended = None;
        }
        let emitted = match ignored {
            Some(kind) => Emitted::Ignored(kind),
            None => {
                let place_it = self.set_time(&mut head, change, p.table, stream_id, behind);
                self.encode(&mut head, change, p, cells);
                if place_it || check_token || check_id {
                    Emitted::Deferred(Deferred::new(
                        p.table,
                        &self.tables[p.table],
                        change,
                        place_it,
                        check_token,
                        check_id,
                    ))
                } else {
                    Emitted::Kept
                }
            }
        };
        self.scratch = EmitScratch { ties, id, key };
        emitted
    }

    /// Numbers the log position of a change; says whether the event may be a repeat (rule C1).
    fn token<'h>(&mut self, stream: usize, change: &Change<'h>, head: &mut EventHead<'h>) -> bool {
        let Some(token) = change.token else { return false };
        let s = &mut self.numbers.streams[stream];
        if s.token == token.position && !change.one_per_key {
            s.state.token_count += 1;
        } else {
            s.token.clear();
            s.token.extend_from_slice(token.position);
            s.state.token_count = 1;
        }
        if s.state.server != token.server {
            s.state.server = token.server.to_owned();
        }
        s.dirty = true;
        head.token = token.position;
        head.token_ordinal = s.state.token_count - 1;
        let ordinal = head.token_ordinal;
        match self.numbers.servers.get_mut(token.server) {
            None => {
                let state = (token.position.to_vec(), ordinal, true);
                self.numbers.servers.insert(token.server.to_owned(), state);
                false
            }
            Some((high, high_ordinal, dirty)) => {
                let new = (token.position, ordinal) > (high.as_slice(), *high_ordinal);
                if new {
                    high.clear();
                    high.extend_from_slice(token.position);
                    (*high_ordinal, *dirty) = (ordinal, true);
                }
                !new
            }
        }
    }

    /// Sets the valid time of an event (rule A4) as far as it is known without its key's other
    /// events; says whether rule A5 needs them.
    fn set_time(
        &mut self,
        head: &mut EventHead<'_>,
        change: &Change<'_>,
        table: usize,
        stream: usize,
        behind: bool,
    ) -> bool {
        let t = &self.tables[table];
        let s = &mut self.numbers.streams[stream];
        let id = t.meta.id.0;
        let high = s.state.high.get(&id).copied().unwrap_or(BEGINNING);
        let unknown_high = s.state.commit_instant.contains(&id) || s.commit_instant_maybe.contains(&id);
        let usable = |t: Option<i64>| t.filter(|t| *t != 0);
        let snapshot = change.snapshot || change.op == Op::Read;
        let (time, source) = if let Some(v) = change.declared.valid_from {
            (Some(v.value), TimeSource::Declared)
        } else if let Some(v) = usable(change.times.source) {
            (Some(v), TimeSource::Source)
        } else if let Some(v) = usable(change.times.connector) {
            (Some(v), TimeSource::Connector)
        } else if let Some(v) = usable(change.times.broker).filter(|_| !snapshot) {
            (Some(v), TimeSource::Broker)
        } else {
            (None, TimeSource::Commit)
        };
        (head.valid_from, head.event_time, head.time_source) = (time, time, source);
        let late = time.is_some_and(|t| t < high);
        self.counts.late += late as u64;
        if let Some(v) = time
            && v > high
        {
            s.state.high.insert(id, v);
            s.dirty = true;
        }
        if source == TimeSource::Declared {
            return false;
        }
        if !t.is_keyed() {
            if time.is_none() && snapshot {
                (head.valid_from, head.time_source) = (Some(BEGINNING), TimeSource::Beginning);
            }
            return false;
        }
        if change.op == Op::Truncate && !behind {
            // It succeeds every key of its table in the stream, so the high-water mark is its predecessor.
            if unknown_high {
                head.valid_from = None;
            } else if late || time.is_none() && high != BEGINNING {
                head.valid_from = Some(high);
            }
            self.counts.raised += (time.is_some() && head.valid_from != time) as u64;
            if time.is_none() && head.valid_from.is_some() {
                head.time_source = TimeSource::Predecessor;
            }
        }
        if head.valid_from.is_none() && !s.commit_instant_maybe.contains(&id) {
            s.commit_instant_maybe.push(id);
            if change.op == Op::Truncate && !behind {
                s.commit_instant_sure.push(id);
            }
        }
        let truncate = change.op == Op::Truncate;
        behind || !truncate && (time.is_none() || late || unknown_high || change.tombstone)
    }

    /// Gives the cells their columns and appends the row to the table's block.
    fn encode<'a>(&mut self, head: &mut EventHead<'_>, change: &Change<'a>, p: &Prepared, cells: &Cells<'a>) {
        let t = &mut self.tables[p.table];
        let mut row: Vec<(ColumnId, &Cell<'a>)> = recycle(std::mem::take(&mut self.encoded));
        row.extend(cells.of(change, &p.cells).map(|(slot, cell)| (t.take(slot, cell), cell)));
        if !row.is_sorted_by(|a, b| a.0 < b.0) {
            row.sort_by_key(|(id, _)| *id);
        }
        let mut previous: Vec<Cell<'a>> = Vec::new();
        if let Some(range) = &p.previous {
            cells.of(change, range).for_each(|(slot, cell)| {
                t.take(slot, cell);
                previous.push(*cell);
            });
        } else if let Some(range) = &p.old_row {
            let old: Vec<_> =
                cells.of(change, range).map(|(slot, cell)| (t.take(slot, cell), *cell)).collect();
            previous = vec![Cell::Null; t.columns().len()];
            old.into_iter().for_each(|(id, cell)| previous[id.0 as usize] = cell);
        }
        if previous.is_empty() {
            encode_row(&mut t.block.bytes, head, &row);
        } else {
            let mut head = EventHead { previous: Some(&previous), ..head.clone() };
            head.previous_deleted = change.previous.is_some_and(|p| p.deletes_sent) && p.previous.is_some();
            encode_row(&mut t.block.bytes, &head, &row);
        }
        t.block.ends.push(t.block.bytes.len() as u32);
        self.rows[head.op as usize] += 1;
        self.encoded = recycle(row);
    }
}

/// The key bytes of a prepared change.
fn put_key(t: &TableIntake, cells: &Cells<'_>, change: &Change<'_>, p: &Prepared, out: &mut Vec<u8>) {
    for slot in &t.key {
        let cell = cells.of(change, &p.cells).find(|(s, _)| s == slot).map_or(&Cell::Null, |(_, c)| c);
        put_key_cell(out, cell);
    }
}
