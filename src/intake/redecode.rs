//! Messages that the history of a table keeps as they came (`--keep-raw`), decoded again into another table with
//! other options. Nothing but the store is read: no file, no topic, no registry.

use super::driver::{Messages, Step, Take};
use super::files::declared_format;
use super::numbers::Numbers;
use super::replay::reading_of;
use super::report::Progress;
use crate::change::{Change, Decoded};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Format, FormatOptions};
use crate::near::near_names_hint;
use crate::options::IntakeOptions;
use crate::source::{KeptMessages, Place};
use asofdb_storage::engine::{Catalog, KeyFilter, ScanKind, ScanRequest, Snapshot};
use asofdb_storage::event::EventColumns;
use asofdb_storage::id::OriginId;
use asofdb_storage::schema::TableMeta;
use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Bytes of messages that are held at once; each such part takes a pass over the table.
const PART_BYTES: u64 = 256 << 20;

/// Messages between two looks at the progress.
const MESSAGES_PER_STEP: usize = 16_384;

/// Where a message stands: its origin and its position there.
type At = (OriginId, u64);

/// The kept messages of a table, in the order in which they stand in their streams.
pub struct RawMessages {
    snapshot: Snapshot,
    catalog: Arc<Catalog>,
    meta: Arc<TableMeta>,
    into: String,
    format: Option<Format>,
    decoding: FormatOptions,
    numbers: Numbers,
    decoders: HashMap<OriginId, KeptMessages>,
    /// All of them with their lengths, those of one stream together.
    messages: Vec<(At, u64)>,
    next: usize,
    bytes_total: u64,
    notices: Vec<String>,
    part: HashMap<At, Vec<u8>>,
    part_bytes: u64,
}

impl RawMessages {
    /// Those of `table` in `snapshot`, for the table that `options` name.
    ///
    /// # Errors
    /// `Failed` if there is no such table, or a message of it was not kept; `Usage` if no other table is named
    /// for them; those of the options and the store.
    pub fn open(snapshot: Snapshot, table: &str, options: &IntakeOptions) -> Result<RawMessages> {
        let catalog = snapshot.catalog().clone();
        let Some(meta) = catalog.table(table).cloned() else {
            return Err(Error::failed(format!("there is no table {table}"))
                .hint(near_names_hint(table, catalog.tables.values().map(|t| t.name.as_str()))));
        };
        let into = into(&catalog, table, options)?;
        let mut raw = RawMessages {
            numbers: Numbers::of_catalog(&catalog, None),
            format: declared_format(options)?,
            decoding: options.decoding_kept(&catalog)?,
            decoders: HashMap::new(),
            messages: Vec::new(),
            next: 0,
            bytes_total: 0,
            notices: Vec::new(),
            part: HashMap::new(),
            part_bytes: PART_BYTES,
            snapshot,
            catalog,
            meta,
            into,
        };
        raw.list()?;
        raw.leave_out_taken()?;
        raw.bytes_total = raw.messages.iter().map(|(_, length)| length).sum();
        Ok(raw)
    }

    /// Finds all messages, and refuses if one is missing.
    fn list(&mut self) -> Result<()> {
        let mut lengths: HashMap<At, u64> = HashMap::new();
        self.each(&self.meta, &mut |at, raw| {
            let length = lengths.entry(at).or_default();
            *length = (*length).max(raw.len() as u64);
        })?;
        self.messages = lengths.into_iter().collect();
        let stream = |at: &At| self.numbers.origins[at.0.0 as usize].stream;
        let order = |a: &At, b: &At| match stream(a).cmp(&stream(b)) {
            Ordering::Equal => self.numbers.compare((a.0, a.1, 0), (b.0, b.1, 0)),
            other => other,
        };
        self.messages.sort_unstable_by(|a, b| order(&a.0, &b.0));
        let missing = self.messages.iter().filter(|(_, length)| *length == 0).count();
        let Some((at, _)) = self.messages.iter().find(|(_, length)| *length == 0) else { return Ok(()) };
        Err(Error::failed(format!(
            "{missing} of {} messages of {} were not kept as they came, the first at {} position {}",
            self.messages.len(),
            self.meta.name,
            self.stream_name(at.0),
            at.1
        ))
        .hint("--keep-raw keeps the messages that come from then on; rows of Parquet and of Avro files never are"))
    }

    /// All events of a table, with the message where it is kept.
    fn each(&self, meta: &TableMeta, take: &mut dyn FnMut(At, &[u8])) -> Result<()> {
        let request = ScanRequest {
            table: meta.id,
            kind: ScanKind::History,
            commit: self.snapshot.commit(),
            schema: Arc::new(meta.schema().clone()),
            projection: Vec::new(),
            keys: KeyFilter::All,
            partitions: 1,
            rows_per_key_max: usize::MAX,
        };
        for batch in self.snapshot.scan(&request)?.into_iter().flatten() {
            let events = EventColumns::new(batch?)
                .map_err(|e| Error::new(ErrorKind::Damaged, format!("events of the store: {e}")))?;
            for i in 0..events.len() {
                // NULL is read as no bytes.
                let at = (OriginId(events.origin().value(i)), events.position().value(i));
                take(at, events.raw().value(i));
            }
        }
        Ok(())
    }

    /// Leaves out what an earlier call went past. What then left no row is said: it may have come since.
    fn leave_out_taken(&mut self) -> Result<()> {
        let Some(into) = self.catalog.table(&self.into).cloned() else { return Ok(()) };
        let mut rows = HashSet::new();
        self.each(&into, &mut |at, _| {
            rows.insert(at);
        })?;
        let mut without_row = 0;
        let messages = std::mem::take(&mut self.messages);
        self.messages = messages
            .into_iter()
            .filter(|((origin, position), _)| {
                let stream = into_stream(self.stream_name(*origin), &self.into);
                let (generation, name, origin_generation) =
                    self.numbers.place_of(*origin).unwrap_or((0, "", 0));
                let Some(known) = self.numbers.known_origin(&stream, generation, name, origin_generation)
                else {
                    return true;
                };
                let ahead = *position >= self.numbers.origins[known.0 as usize].next;
                without_row += u64::from(!ahead && !rows.contains(&(known, *position)));
                ahead
            })
            .collect();
        if without_row > 0 {
            self.notices.push(format!(
                "{without_row} messages of {} before those taken now left no row in {}: they were put aside or \
                 ignored, or were stored since; decoding into a new table takes all",
                self.meta.name, self.into
            ));
        }
        Ok(())
    }

    /// Fetches the messages that come next, as many as may be held.
    fn fetch(&mut self) -> Result<()> {
        let mut part: HashMap<At, Vec<u8>> = HashMap::new();
        let mut bytes = 0;
        for (at, length) in &self.messages[self.next..] {
            if bytes > 0 && bytes + length > self.part_bytes {
                break;
            }
            bytes += length;
            part.insert(*at, Vec::new());
        }
        self.each(&self.meta, &mut |at, raw| {
            if let Some(kept) = part.get_mut(&at)
                && kept.is_empty()
            {
                kept.extend_from_slice(raw);
            }
        })?;
        self.part = part;
        Ok(())
    }

    fn stream_name(&self, origin: OriginId) -> &str {
        let origin = self.catalog.origins.get(origin.0 as usize);
        let stream = origin.and_then(|o| self.catalog.streams.get(o.stream.0 as usize));
        stream.map_or("", |s| s.name.as_str())
    }

    /// Decodes the next message.
    fn one(&mut self, take: &mut Take<'_>) -> Result<()> {
        let (at, _) = self.messages[self.next];
        let raw = match self.part.remove(&at) {
            Some(raw) => raw,
            None => {
                self.fetch()?;
                self.part.remove(&at).unwrap_or_default()
            }
        };
        self.next += 1;
        let (name, catalog) = (self.stream_name(at.0).to_owned(), self.catalog.clone());
        let stream = into_stream(&name, &self.into);
        let (stream_generation, origin, origin_generation) =
            self.numbers.place_of(at.0).unwrap_or((0, "", 0));
        let place = Place {
            number: 0,
            stream: &stream,
            stream_generation,
            origin,
            origin_generation,
            position: at.1,
            file: catalog.origins.get(at.0.0 as usize).and_then(|o| o.path.as_deref()).unwrap_or(""),
            line: 0,
            byte: 0,
            raw: &raw,
            record: None,
        };
        let decoder = match self.decoders.entry(at.0) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(room) => {
                let reading = reading_of(&catalog, &Place { stream: &name, ..place });
                let decoder = KeptMessages::new(reading.as_ref(), self.format, &self.decoding, &raw);
                room.insert(decoder.map_err(|reason| Error::failed(format!("{name}: {reason}")))?)
            }
        };
        let (mut taken, table) = (Ok(()), self.meta.name.as_str());
        decoder.decode(&place, &mut |place, decoded| {
            taken = match decoded {
                Decoded::Changes(changes) if changes.iter().any(|c| c.table != changes[0].table) => {
                    let own: Vec<Change<'_>> =
                        changes.iter().filter(|c| c.table.is_none_or(|t| t == table)).cloned().collect();
                    take(place, Decoded::Changes(&own))
                }
                decoded => take(place, decoded),
            };
        });
        taken
    }
}

/// The stream that the messages of a stream make in another table.
fn into_stream(name: &str, into: &str) -> String {
    format!("{name} as {into}")
}

/// The table that the messages go to: a new one, or one that has messages decoded again already.
fn into(catalog: &Catalog, table: &str, options: &IntakeOptions) -> Result<String> {
    let Some(into) = options.table.clone().filter(|into| into != table) else {
        return Err(Error::usage(format!("the messages of {table} go to another table"))
            .hint("name a new one; the two can be compared then"));
    };
    let made_here = catalog.streams.iter().any(|s| s.name.ends_with(&into_stream("", &into)));
    if catalog.table(&into).is_some() && !made_here {
        return Err(Error::usage(format!("there is a table {into} already, of other messages"))
            .hint("name a new table"));
    }
    Ok(into)
}

impl Messages for RawMessages {
    fn read(&mut self, room: usize, take: &mut Take<'_>) -> Result<Step> {
        for _ in 0..room.clamp(1, MESSAGES_PER_STEP) {
            if self.next == self.messages.len() {
                return Ok(Step::End);
            }
            self.one(take)?;
        }
        Ok(Step::More)
    }

    fn positions(&mut self) -> Vec<(String, serde_json::Value)> {
        Vec::new()
    }

    fn progress(&self, progress: &mut Progress) {
        progress.source.clone_from(&self.meta.name);
        progress.bytes_total = Some(self.bytes_total);
    }

    fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }
}

#[cfg(test)]
#[path = "redecode_tests.rs"]
mod tests;
