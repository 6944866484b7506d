//! Messages into the batch: counting, numbering, encoding. What needs the stored events of its key is
//! encoded as it stands and settled when the batch closes ([`super::pending`]).

use super::check::Wanted;
use super::numbers::Numbers;
use super::pending::{Deferred, Held};
use super::report::IntakeReport;
use super::rows::{Cells, Prepared, Refusal, prepare};
use super::sink::Sink;
use super::table::TableIntake;
use crate::change::{Change, Decoded};
use crate::error::{Error, ErrorKind, Result};
use crate::options::IntakeOptions;
use crate::source::Place;
use asofdb_storage::engine::{Catalog, Quarantined};
use asofdb_storage::id::{ColumnId, OriginId, TableId};
use asofdb_storage::time::AxisType;
use asofdb_storage::value::Cell;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
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
    last_table: usize,
    /// The table of all messages, where options name it and its key.
    only_table: Option<usize>,
    /// Messages come from the quarantine: their positions were passed long ago.
    pub(super) again: bool,
    /// Generations to add to those of places, for streams that became others (rule C3).
    pub(super) generations: HashMap<String, u32>,
    /// Origins whose options are stored already, for messages put aside.
    options_noted: HashSet<u32>,
    /// The place that was looked up last.
    last_place: Option<(u64, String, u32, String, u32, OriginId)>,
    /// Origins that this batch read from.
    pub(super) origins_read: Vec<u32>,
    pub(super) counts: IntakeReport,
    /// Messages of the batch that are repeats and nothing else ([`Decoded::Repeat`]).
    idle: u64,
    pub(super) rows: [u64; 7],
    pub(super) quarantine: Vec<Quarantined>,
    pub(super) deferred: Vec<Deferred>,
    pub(super) held: Vec<Held>,
    pub(super) wanted: Wanted,
    /// The message that was kept last as it came, and the table whose event has it.
    raw_kept: Option<(OriginId, u64, usize)>,
    cells: Cells<'static>,
    pub(super) encoded: Vec<(ColumnId, &'static Cell<'static>)>,
    prepared: Vec<Prepared>,
    pub(super) scratch: EmitScratch,
}

/// Buffers of [`Batcher::emit`].
#[derive(Default)]
pub(super) struct EmitScratch {
    pub ties: Vec<u8>,
    pub id: Vec<u8>,
    pub key: Vec<u8>,
}

/// What became of one change.
pub(super) enum Emitted {
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
            last_table: 0,
            only_table: None,
            again: false,
            generations: HashMap::new(),
            options_noted: HashSet::new(),
            wanted: Wanted::new(options),
            catalog,
            last_place: None,
            origins_read: Vec::new(),
            counts: IntakeReport::default(),
            idle: 0,
            rows: [0; 7],
            quarantine: Vec::new(),
            deferred: Vec::new(),
            held: Vec::new(),
            raw_kept: None,
            cells: Cells::default(),
            encoded: Vec::new(),
            prepared: Vec::new(),
            scratch: EmitScratch::default(),
        }
    }

    /// An empty batch for messages of the quarantine, which keep the positions they had.
    pub fn again(sink: &'o dyn Sink, options: &'o IntakeOptions) -> Batcher<'o> {
        Batcher { again: true, ..Batcher::new(sink, options) }
    }

    /// The same, with generations to add to those of places by stream.
    pub(super) fn with_generations(self, generations: HashMap<String, u32>) -> Batcher<'o> {
        Batcher { generations, ..self }
    }

    /// Messages in the batch so far.
    pub fn messages(&self) -> usize {
        self.counts.delivered as usize
    }

    /// Whether nothing came since the last call but rows that say nothing new: there is nothing to store.
    pub(super) fn take_idle(&mut self) -> bool {
        std::mem::take(&mut self.idle) == self.counts.delivered
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
        if let Decoded::Repeat(kind) = decoded {
            self.counts.delivered += 1;
            self.idle += 1;
            IntakeReport::count(&mut self.counts.repeats, kind, 1);
            return Ok(());
        }
        let origin = self.origin(place);
        self.counts.delivered += 1;
        self.counts.bytes += place.raw.len() as u64;
        let entry = &mut self.numbers.origins[origin.0 as usize];
        if self.again {
            self.numbers.streams[entry.stream as usize].leave();
        } else if place.position < entry.next {
            IntakeReport::count(&mut self.counts.repeats, "already_taken", 1);
            return Ok(());
        } else {
            entry.next = place.position + 1;
        }
        match decoded {
            Decoded::Repeat(_) => {}
            Decoded::Ignored(kind) => IntakeReport::count(&mut self.counts.ignored, kind, 1),
            Decoded::Quarantine(fault) => {
                let hint = (!fault.hint.is_empty()).then(|| fault.hint.to_owned());
                let refusal = Refusal { reason: fault.reason.to_owned(), hint };
                self.put_aside(place, origin, None, refusal)?;
            }
            Decoded::Changes([]) => self.counts.accepted += 1,
            Decoded::Changes(changes) if self.options.tables.is_empty() => {
                self.take_changes(place, origin, changes)?;
            }
            Decoded::Changes(changes) => self.take_listed(place, origin, changes)?,
        }
        Ok(())
    }

    /// The next batch looks its first place up again, to list its origin.
    pub(super) fn forget_place(&mut self) {
        self.last_place = None;
    }

    fn origin(&mut self, place: &Place<'_>) -> OriginId {
        if let Some((number, stream, generation, origin, origin_generation, id)) = &self.last_place
            && (place.number != 0 && *number == place.number
                || stream == place.stream
                    && origin == place.origin
                    && *generation == place.stream_generation
                    && *origin_generation == place.origin_generation)
        {
            return *id;
        }
        let more = self.generations.get(place.stream).copied().unwrap_or(0);
        let id = self.numbers.origin(&Place { stream_generation: place.stream_generation + more, ..*place });
        let (stream, origin) = (place.stream.to_owned(), place.origin.to_owned());
        self.last_place =
            Some((place.number, stream, place.stream_generation, origin, place.origin_generation, id));
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
        let at = if place.file.is_empty() || place.line == 0 {
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
        let kept = place.kept();
        let message = Quarantined {
            origin: Some(origin),
            stream: place.stream.to_owned(),
            file: (!place.file.is_empty()).then(|| place.file.to_owned()),
            position: place.position,
            line: (place.line > 0).then_some(place.line),
            table: table.map(str::to_owned),
            reason: refusal.reason,
            hint: refusal.hint,
            length: kept.len() as u64,
            raw: kept[..kept.len().min(RAW_BYTES_MAX)].to_vec(),
        };
        self.counts.quarantine(&message);
        self.quarantine.push(message);
        Ok(())
    }

    /// The options that the messages put aside were read with, where the store does not have them: a
    /// replay begins from them.
    pub(super) fn note_options(&mut self) -> Vec<(String, serde_json::Value)> {
        let mut out = Vec::new();
        for origin in self.quarantine.iter().filter_map(|q| q.origin) {
            if !self.again && self.options_noted.insert(origin.0) {
                let (key, options) = (options_key(origin), serde_json::json!(self.options));
                if self.catalog.positions.get(&key) != Some(&options) {
                    out.push((key, options));
                }
            }
        }
        out
    }

    /// Takes the changes of tables that the options list.
    fn take_listed(&mut self, place: &Place<'_>, origin: OriginId, changes: &[Change<'_>]) -> Result<()> {
        let listed = |change: &Change<'_>| {
            let name = change.table.unwrap_or_else(|| stem(place.stream));
            self.options.tables.iter().any(|t| t == name)
        };
        match changes.iter().filter(|c| listed(c)).count() {
            0 => IntakeReport::count(&mut self.counts.ignored, "other_table", 1),
            n if n == changes.len() => self.take_changes(place, origin, changes)?,
            _ => {
                let ours: Vec<Change<'_>> = changes.iter().filter(|c| listed(c)).cloned().collect();
                self.take_changes(place, origin, &ours)?;
            }
        }
        Ok(())
    }

    fn take_changes<'a>(
        &mut self,
        place: &Place<'a>,
        origin: OriginId,
        changes: &[Change<'a>],
    ) -> Result<()> {
        let mut cells: Cells<'a> = std::mem::take(&mut self.cells).recycled();
        let mut prepared = std::mem::take(&mut self.prepared);
        prepared.clear();
        let mut refused = None;
        for change in changes {
            self.wanted.look_at(change);
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
        self.cells = cells.recycled();
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
        let first = self.deferred.len();
        if let ([change], [p]) = (changes, prepared) {
            match self.emit(place, origin, 0, change, p, cells) {
                Emitted::Kept => self.counts.accepted += 1,
                Emitted::Ignored(kind) => IntakeReport::count(&mut self.counts.ignored, kind, 1),
                Emitted::Deferred(d) => {
                    self.deferred.push(Deferred { held: self.held.len() as u32, ..d });
                    let conflicts = change.declared.operation_id.is_some();
                    self.hold(Held::new(place, origin, Vec::new(), None), place, conflicts);
                }
            }
            return;
        }
        let (mut kept, mut ignored) = (Vec::new(), None);
        for (ordinal, (change, p)) in changes.iter().zip(prepared).enumerate() {
            let row = self.tables[p.table].block.ends.len() as u32;
            match self.emit(place, origin, ordinal as u32, change, p, cells) {
                Emitted::Kept => kept.push((p.table as u32, row)),
                Emitted::Ignored(kind) => ignored = Some(kind),
                Emitted::Deferred(d) => self.deferred.push(Deferred { held: self.held.len() as u32, ..d }),
            }
        }
        if self.deferred.len() > first {
            let conflicts = changes.iter().any(|c| c.declared.operation_id.is_some());
            self.hold(Held::new(place, origin, kept, ignored), place, conflicts);
        } else if !kept.is_empty() {
            self.counts.accepted += 1;
        } else if let Some(kind) = ignored {
            IntakeReport::count(&mut self.counts.ignored, kind, 1);
        }
    }

    /// Keeps a message until its rows are settled; what a quarantine would show only where one can
    /// still follow: if it `conflicts` with another of its operation id.
    fn hold(&mut self, mut held: Held, place: &Place<'_>, conflicts: bool) {
        if conflicts {
            held.keep(place);
        }
        self.held.push(held);
    }

    /// The table of a change, made where there is none.
    fn table(&mut self, place: &Place<'_>, change: &Change<'_>) -> Result<Result<usize, Refusal>> {
        if let Some(only) = self.only_table {
            return Ok(Ok(only));
        }
        let name = match self.options.table.as_deref().or(change.table) {
            Some(name) => name,
            None => stem(place.stream),
        };
        let last = self.tables.get(self.last_table).filter(|t| t.meta.name == name);
        let known = last.map(|_| self.last_table).or_else(|| self.table_ids.get(name).copied());
        if let Some(i) = known {
            self.last_table = i;
            let declared = self.options.key_of(name).is_some();
            self.only_table = (declared && self.options.table.is_some()).then_some(i);
            self.tables[i].check_key(change, declared)?;
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

    /// The message to keep with an event of `table`: one of its events there is enough.
    pub(super) fn raw_to_keep<'a>(
        &mut self,
        place: &Place<'a>,
        origin: OriginId,
        table: usize,
    ) -> Option<Cow<'a, [u8]>> {
        let this = Some((origin, place.position, table));
        let keep = self.options.keep_raw && self.raw_kept != this;
        keep.then(|| {
            self.raw_kept = this;
            place.kept()
        })
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
}

/// Catalog key of the options that the messages of an origin were read with.
pub(super) fn options_key(origin: OriginId) -> String {
    format!("intake/options/{}", origin.0)
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
