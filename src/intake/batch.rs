//! Messages into the batch: counting, numbering, encoding. What needs the stored events of its key is
//! encoded as it stands and settled when the batch closes ([`super::pending`]).

use super::check::Wanted;
use super::numbers::Numbers;
use super::pending::{Deferred, Held};
use super::report::IntakeReport;
use super::rows::{Cells, Prepared, Refusal, prepare, recycle};
use super::sink::Sink;
use super::table::TableIntake;
use crate::change::{Change, Decoded};
use crate::error::{Error, ErrorKind, Result};
use crate::options::IntakeOptions;
use crate::source::Place;
use asofdb_storage::engine::{Catalog, Quarantined};
use asofdb_storage::event::{EventHead, Op, TimeSource, encode_row};
use asofdb_storage::id::{ColumnId, OriginId, TableId};
use asofdb_storage::key::put_key_cell;
use asofdb_storage::time::{AxisType, BEGINNING, FOREVER};
use asofdb_storage::value::Cell;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of a quarantined message that are kept.
const RAW_BYTES_MAX: usize = 1 << 20;
/// Bytes that the name of a table may have.
const TABLE_NAME_BYTES_MAX: usize = 200;

/// The batch that is being filled, and all that lasts from batch to batch.
pub struct Batcher<'o> {
    pub(super) options: &'o IntakeOptions,
    pub(super) sink: &'o dyn Sink,
    catalog: Arc<Catalog>,
    pub(super) numbers: Numbers,
    pub(super) tables: Vec<TableIntake>,
    table_ids: HashMap<String, usize>,
    next_table: u32,
    /// The place that was looked up last.
    last_place: Option<(String, u32, String, u32, OriginId)>,
    /// Origins that this batch read from.
    pub(super) origins_read: Vec<u32>,
    pub(super) counts: IntakeReport,
    pub(super) rows: [u64; 7],
    pub(super) quarantine: Vec<Quarantined>,
    pub(super) deferred: Vec<Deferred>,
    pub(super) held: Vec<Held>,
    pub(super) wanted: Wanted,
    cells: Cells<'static>,
    encoded: Vec<(ColumnId, Cell<'static>)>,
    prepared: Vec<Prepared>,
    scratch: EmitScratch,
}

#[derive(Default)]
struct EmitScratch {
    ties: Vec<u8>,
    id: Vec<u8>,
    key: Vec<u8>,
}

/// What became of one change.
enum Emitted {
    Kept,
    Ignored(&'static str),
    Deferred(Deferred),
}

impl<'o> Batcher<'o> {
    /// An empty batch on top of what the store has.
    pub fn new(sink: &'o dyn Sink, options: &'o IntakeOptions) -> Batcher<'o> {
        let catalog = sink.catalog();
        Batcher {
            options,
            sink,
            numbers: Numbers::of_catalog(&catalog, sink.commit_at()),
            tables: Vec::new(),
            table_ids: HashMap::new(),
            next_table: catalog.tables.keys().last().map_or(0, |id| id.0 + 1),
            wanted: Wanted::new(options),
            catalog,
            last_place: None,
            origins_read: Vec::new(),
            counts: IntakeReport::default(),
            rows: [0; 7],
            quarantine: Vec::new(),
            deferred: Vec::new(),
            held: Vec::new(),
            cells: Vec::new(),
            encoded: Vec::new(),
            prepared: Vec::new(),
            scratch: EmitScratch::default(),
        }
    }

    /// Messages in the batch so far.
    pub fn messages(&self) -> usize {
        self.counts.delivered as usize
    }

    /// Bytes of rows in the batch so far.
    pub fn bytes(&self) -> usize {
        self.tables.iter().map(|t| t.block.bytes.len()).sum()
    }

    /// Takes what a message decoded to.
    ///
    /// # Errors
    /// `Source` under `strict` for a message that cannot be taken; `Usage` where the options and the
    /// store contradict each other.
    pub fn take(&mut self, place: &Place<'_>, decoded: Decoded<'_>) -> Result<()> {
        let origin = self.origin(place);
        self.counts.delivered += 1;
        self.counts.bytes += place.raw.len() as u64;
        let entry = &mut self.numbers.origins[origin.0 as usize];
        if place.position < entry.next {
            IntakeReport::count(&mut self.counts.repeats, "already_taken", 1);
            return Ok(());
        }
        entry.next = place.position + 1;
        match decoded {
            Decoded::Ignored(kind) => IntakeReport::count(&mut self.counts.ignored, kind, 1),
            Decoded::Quarantine(fault) => {
                let hint = (!fault.hint.is_empty()).then(|| fault.hint.to_owned());
                let refusal = Refusal { reason: fault.reason.to_owned(), hint };
                self.put_aside(place, origin, None, refusal)?;
            }
            Decoded::Changes([]) => self.counts.accepted += 1,
            Decoded::Changes(changes) => self.take_changes(place, origin, changes)?,
        }
        Ok(())
    }

    /// The next batch looks its first place up again, to list its origin.
    pub(super) fn forget_place(&mut self) {
        self.last_place = None;
    }

    fn origin(&mut self, place: &Place<'_>) -> OriginId {
        if let Some((stream, generation, origin, origin_generation, id)) = &self.last_place
            && stream == place.stream
            && origin == place.origin
            && *generation == place.stream_generation
            && *origin_generation == place.origin_generation
        {
            return *id;
        }
        let id = self.numbers.origin(place);
        let (stream, origin) = (place.stream.to_owned(), place.origin.to_owned());
        self.last_place = Some((stream, place.stream_generation, origin, place.origin_generation, id));
        if !self.origins_read.contains(&id.0) {
            self.origins_read.push(id.0);
        }
        id
    }

    /// Puts a message into the quarantine (rule C2).
    pub(super) fn put_aside(
        &mut self,
        place: &Place<'_>,
        origin: OriginId,
        table: Option<&str>,
        refusal: Refusal,
    ) -> Result<()> {
        let stream = self.numbers.origins[origin.0 as usize].stream;
        self.numbers.streams[stream as usize].ended = None;
        self.wanted.look_into(place.raw);
        let at = if place.file.is_empty() {
            format!("{} position {}", place.stream, place.position)
        } else {
            format!("{} line {}", place.file, place.line)
        };
        if self.options.strict {
            let mut e = Error::new(ErrorKind::Source, format!("{at}: {}", refusal.reason));
            if let Some(hint) = refusal.hint {
                e = e.hint(hint);
            }
            return Err(e.hint("without --strict the message goes to the quarantine and the rest goes on"));
        }
        let message = Quarantined {
            origin: Some(origin),
            stream: place.stream.to_owned(),
            file: (!place.file.is_empty()).then(|| place.file.to_owned()),
            position: place.position,
            line: (place.line > 0).then_some(place.line),
            table: table.map(str::to_owned),
            reason: refusal.reason,
            hint: refusal.hint,
            length: place.raw.len() as u64,
            raw: place.raw[..place.raw.len().min(RAW_BYTES_MAX)].to_vec(),
        };
        self.counts.quarantine(&message);
        self.quarantine.push(message);
        Ok(())
    }

    fn take_changes<'a>(
        &mut self,
        place: &Place<'a>,
        origin: OriginId,
        changes: &[Change<'a>],
    ) -> Result<()> {
        let mut cells: Cells<'a> = recycle(std::mem::take(&mut self.cells));
        let mut prepared = std::mem::take(&mut self.prepared);
        prepared.clear();
        let mut refused = None;
        for change in changes {
            self.wanted.look_at(change.fields);
            let table = match self.table(place, change)? {
                Ok(table) => table,
                Err(refusal) => {
                    refused = Some((None, refusal));
                    break;
                }
            };
            let declared = self.check_declared(table, change);
            match declared.and_then(|()| prepare(&mut self.tables[table], table, change, &mut cells)) {
                Ok(p) => prepared.push(p),
                Err(refusal) => {
                    refused = Some((Some(self.tables[table].meta.name.clone()), refusal));
                    break;
                }
            }
        }
        match refused {
            Some((table, refusal)) => self.put_aside(place, origin, table.as_deref(), refusal)?,
            None => self.emit_all(place, origin, changes, &prepared, &cells),
        }
        self.cells = recycle(cells);
        self.prepared = prepared;
        Ok(())
    }

    fn emit_all<'a>(
        &mut self,
        place: &Place<'a>,
        origin: OriginId,
        changes: &[Change<'a>],
        prepared: &[Prepared],
        cells: &Cells<'a>,
    ) {
        let (mut kept, mut ignored) = (Vec::new(), None);
        let first = self.deferred.len();
        for (ordinal, (change, p)) in changes.iter().zip(prepared).enumerate() {
            let row = self.tables[p.table].block.ends.len() as u32;
            match self.emit(place, origin, ordinal as u32, change, p, cells) {
                Emitted::Kept => kept.push((p.table as u32, row)),
                Emitted::Ignored(kind) => ignored = Some(kind),
                Emitted::Deferred(d) => self.deferred.push(Deferred { held: self.held.len() as u32, ..d }),
            }
        }
        if self.deferred.len() > first {
            let mut held = Held::new(place, origin, kept, ignored);
            if self.options.operation_id.is_some() {
                held.keep(place);
            }
            self.held.push(held);
        } else if !kept.is_empty() {
            self.counts.accepted += 1;
        } else if let Some(kind) = ignored {
            IntakeReport::count(&mut self.counts.ignored, kind, 1);
        }
    }

    /// The table of a change, made where there is none.
    fn table(&mut self, place: &Place<'_>, change: &Change<'_>) -> Result<Result<usize, Refusal>> {
        let name = match self.options.table.as_deref().or(change.table) {
            Some(name) => name,
            None => stem(place.stream),
        };
        if let Some(i) = self.table_ids.get(name) {
            let i = *i;
            self.tables[i].check_key(change, self.options.key_of(name).is_some())?;
            return Ok(Ok(i));
        }
        if name.is_empty() {
            return Err(Error::usage("the events name no table").hint("say which one with --table"));
        }
        if name.len() > TABLE_NAME_BYTES_MAX || name.chars().any(char::is_control) {
            let shown: String = name.chars().take(40).flat_map(char::escape_default).collect();
            return Ok(Err(Refusal::new(format!("`{shown}` cannot be the name of a table"))
                .hint(format!("--table gives another one, of at most {TABLE_NAME_BYTES_MAX} bytes"))));
        }
        let mut table = match self.catalog.table(name) {
            Some(meta) => TableIntake::of_catalog(meta, self.options)?,
            None => {
                let id = TableId(self.next_table);
                TableIntake::new(id, name, self.options, change)
            }
        };
        if self.catalog.table(name).is_some() {
            table.check_key(change, self.options.key_of(name).is_some())?;
            table.operation_id_high = super::pending::operation_id_high(&self.catalog, table.meta.id);
        } else {
            self.next_table += 1;
        }
        self.table_ids.insert(name.to_owned(), self.tables.len());
        self.tables.push(table);
        Ok(Ok(self.tables.len() - 1))
    }

    /// Declared times must be there, and on the axes of the table (rule A2).
    fn check_declared(&mut self, table: usize, change: &Change<'_>) -> Result<(), Refusal> {
        let t = &mut self.tables[table];
        let d = &change.declared;
        for (declared, value, what) in
            [(t.meta.valid_declared, &d.valid_from, "valid"), (t.meta.system_declared, &d.system, "system")]
        {
            if declared && value.is_none() {
                return Err(Refusal::new(format!("the message has no {what} time"))
                    .hint(format!("a message without a value carries none; --{what} names a column")));
            }
        }
        let valid = d.valid_from.map_or(AxisType::Instant, |v| v.axis);
        let system = d.system.map_or(AxisType::Instant, |v| v.axis);
        if !t.axes_known {
            (t.meta.valid_axis, t.meta.system_axis, t.axes_known) = (valid, system, true);
        }
        let end = d.valid_to.map_or(valid, |v| v.axis);
        for (ours, theirs, what) in [
            (t.meta.valid_axis, valid, "valid time"),
            (t.meta.valid_axis, end, "valid end"),
            (t.meta.system_axis, system, "system time"),
        ] {
            if ours != theirs {
                let word = |a| if a == AxisType::Instant { "an instant" } else { "a plain number" };
                return Err(Refusal::new(format!(
                    "{what} is {}, in a table where it is {}",
                    word(theirs),
                    word(ours)
                ))
                .hint("a unit makes numbers instants: --valid COL:us"));
            }
        }
        if let (Some(from), Some(to)) = (d.valid_from, d.valid_to)
            && to.value < from.value
        {
            return Err(Refusal::new("valid time ends before it begins"));
        }
        Ok(())
    }

    /// Encodes one change.
    fn emit<'a>(
        &mut self,
        place: &Place<'a>,
        origin: OriginId,
        ordinal: u32,
        change: &Change<'a>,
        p: &Prepared,
        cells: &Cells<'a>,
    ) -> Emitted {
        let entry = &self.numbers.origins[origin.0 as usize];
        let (stream_id, behind) = (entry.stream as usize, entry.behind);
        let mut head = EventHead { ordinal, ..EventHead::new(change.op, origin, place.position) };
        head.full = change.full;
        head.system = change.declared.system.map(|s| s.value);
        head.valid_to = change.declared.valid_to.map_or(FOREVER, |v| v.value);
        head.transaction_id = change.transaction_id;
        head.source = self.numbers.source(&change.source, change.token.as_ref());
        head.raw = self.options.keep_raw.then_some(place.raw);
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
            put_key(t, &cells[p.cells.clone()], &mut key);
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
        if s.token == token.position {
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
        if change.op == Op::Truncate {
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
            if change.op == Op::Truncate {
                s.commit_instant_sure.push(id);
            }
        }
        change.op != Op::Truncate && (time.is_none() || late || unknown_high || behind || change.tombstone)
    }

    /// Gives the cells their columns and appends the row to the table's block.
    fn encode<'a>(&mut self, head: &mut EventHead<'_>, change: &Change<'a>, p: &Prepared, cells: &Cells<'a>) {
        let t = &mut self.tables[p.table];
        let mut row: Vec<(ColumnId, Cell<'a>)> = recycle(std::mem::take(&mut self.encoded));
        row.extend(cells[p.cells.clone()].iter().map(|(slot, cell)| (t.take(*slot, cell), *cell)));
        if !row.is_sorted_by(|a, b| a.0 < b.0) {
            row.sort_by_key(|(id, _)| *id);
        }
        let mut previous: Vec<Cell<'a>> = Vec::new();
        if let Some(range) = &p.previous {
            cells[range.clone()].iter().for_each(|(slot, cell)| {
                t.take(*slot, cell);
                previous.push(*cell);
            });
        } else if let Some(range) = &p.old_row {
            let old: Vec<_> =
                cells[range.clone()].iter().map(|(slot, cell)| (t.take(*slot, cell), *cell)).collect();
            previous = vec![Cell::Null; t.columns().len()];
            old.into_iter().for_each(|(id, cell)| previous[id.0 as usize] = cell);
        }
        let mut head =
            EventHead { previous: (!previous.is_empty()).then_some(&previous[..]), ..head.clone() };
        head.previous_deleted = change.previous.is_some_and(|p| p.deletes_sent) && p.previous.is_some();
        encode_row(&mut t.block.bytes, &head, &row);
        t.block.ends.push(t.block.bytes.len() as u32);
        self.rows[head.op as usize] += 1;
        self.encoded = recycle(row);
    }
}

/// The key bytes of cells by slot.
fn put_key(t: &TableIntake, cells: &[(u32, Cell<'_>)], out: &mut Vec<u8>) {
    for slot in &t.key {
        let cell = cells.iter().find(|(s, _)| s == slot).map_or(Cell::Null, |(_, c)| *c);
        put_key_cell(out, &cell);
    }
}

/// The name of a table for events that come from a file and name none: that of the file.
fn stem(stream: &str) -> &str {
    let name = stream.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or("");
    match name.find('.') {
        Some(0) | None if name == "-" => "",
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}
