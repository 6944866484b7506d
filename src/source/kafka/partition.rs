//! One partition: what its messages decode to, and how far it was read.

use super::super::PlacedSink;
use super::super::detect;
use super::super::kdump::Record;
use super::super::kept::Reading;
use super::super::position::place_number;
use super::super::position::{Place, SourceError, SourcePosition};
use super::Resume;
use crate::change::Header;
use crate::format::{Decoder, Format, FormatOptions};
use asofdb_storage::recycle;
use rdkafka::Message;
use rdkafka::message::{Headers, OwnedMessage};
use std::collections::VecDeque;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Messages that wait for the format of their topic, at most.
const WAITING_MAX: usize = 10_000;

/// What is known of the format of a topic's messages.
pub(super) struct Formats<'o> {
    /// What is said of it.
    pub declared: Option<Format>,
    /// How messages are read.
    pub options: &'o FormatOptions,
    /// What was found, and is to be said.
    pub found: &'o mut Vec<(String, Format)>,
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was handed over.
    Yes,
    /// It waits: its partition is not to be read on.
    Waits,
}

/// A partition that is read.
pub(super) struct Partition {
    pub topic: String,
    pub number: i32,
    /// Its name as a stream.
    pub stream: String,
    pub generation: u32,
    /// The offset after the last message that was handed over.
    pub next: u64,
    /// Its oldest offset when it was last asked for.
    pub first: u64,
    /// The offset after its newest then.
    pub end: u64,
    /// All of it that was asked for was handed over.
    pub done: bool,
    /// Why it cannot be read on.
    pub blocked: Option<SourceError>,
    /// Messages taken from the queue and not handed over.
    pub waiting: VecDeque<OwnedMessage>,
    /// Something was handed over since the last position.
    dirty: bool,
    /// Of the last message handed over.
    digest: u64,
    place: u64,
    decoder: Option<Decoder>,
    format: Option<Format>,
    state: Option<serde_json::Value>,
    headers: Vec<Header<'static>>,
}

impl Partition {
    /// A partition that goes on as `resume` says.
    pub fn new(topic: &str, number: i32, stream: String, resume: &Resume) -> Partition {
        Partition {
            topic: topic.to_owned(),
            number,
            stream,
            generation: resume.generation,
            next: resume.next.unwrap_or(0),
            first: 0,
            end: 0,
            done: false,
            blocked: None,
            waiting: VecDeque::new(),
            dirty: false,
            digest: 0,
            place: place_number(),
            decoder: None,
            format: resume.format,
            state: resume.state.clone(),
            headers: Vec::new(),
        }
    }

    /// Hands a message over.
    pub fn take(&mut self, m: &impl Message, formats: &mut Formats<'_>, sink: &mut PlacedSink<'_>) -> Taken {
        let mut headers = recycle(std::mem::take(&mut self.headers));
        let taken = self.take_with(m, &mut headers, formats, sink);
        self.headers = recycle(headers);
        taken
    }

    fn take_with<'m, M: Message>(
        &mut self,
        m: &'m M,
        headers: &mut Vec<Header<'m>>,
        formats: &mut Formats<'_>,
        sink: &mut PlacedSink<'_>,
    ) -> Taken {
        if let Some(all) = m.headers() {
            headers.extend(all.iter().map(|h| Header { name: h.key, value: h.value.unwrap_or(&[]) }));
        }
        let record = record_of(m, headers);
        let offset = record.offset;
        if let Err(reason) = self.ready(&record, formats) {
            self.blocked = reason;
            return Taken::Waits;
        }
        let Some(decoder) = &mut self.decoder else { return Taken::Waits };
        let message = record.message();
        if let Err(unready) = decoder.ready(&message) {
            let error = SourceError::new(format!("{} offset {offset}", self.stream), unready.reason);
            self.blocked = Some(error.hint(unready.hint));
            return Taken::Waits;
        }
        // The generation of the stream is known to the intake, which adds it.
        let place = Place {
            number: self.place,
            raw: record.value.unwrap_or(&[]),
            record: Some(record),
            ..Place::in_stream(&self.stream, offset)
        };
        self.next = offset.saturating_add(1);
        self.digest = digest(&record);
        self.dirty = true;
        decoder.decode(&message, &mut |decoded| sink(&place, decoded));
        Taken::Yes
    }

    /// Makes sure that there is a decoder. `Err(None)` = the message says nothing of its format.
    fn ready(&mut self, record: &Record<'_>, formats: &mut Formats<'_>) -> Result<(), Option<SourceError>> {
        if self.decoder.is_some() {
            return Ok(());
        }
        let found = formats.found.iter().find(|(topic, _)| *topic == self.topic).map(|(_, format)| *format);
        let known = formats.declared.or(self.format).or(found);
        let format = match known {
            Some(format) => format,
            None if record.value.is_none() => return Err(None),
            None => detect::of_record(record, formats.options),
        };
        let decoder = Decoder::resumed(format, formats.options.clone(), self.state.as_ref());
        let Some(decoder) = decoder else {
            return Err(Some(SourceError::new(
                &self.stream,
                format!("messages of a topic are not {format}"),
            )));
        };
        if found.is_none() && formats.declared.is_none() {
            formats.found.push((self.topic.clone(), format));
        }
        (self.decoder, self.format) = (Some(decoder), Some(format));
        Ok(())
    }

    /// Whether messages can be decoded, or could be if they came now.
    pub fn knows_format(&self, formats: &Formats<'_>) -> bool {
        let known = self.decoder.is_some() || self.format.is_some() || formats.declared.is_some();
        known || formats.found.iter().any(|(topic, _)| *topic == self.topic)
    }

    /// Learns the format from a message that comes after some that say nothing of it.
    pub fn learn(&mut self, m: &impl Message, formats: &mut Formats<'_>) {
        if let Err(Some(reason)) = self.ready(&record_of(m, &[]), formats) {
            self.blocked = Some(reason);
        }
    }

    /// Keeps a message that could not be handed over.
    pub fn keep(&mut self, message: OwnedMessage) {
        self.waiting.push_back(message);
        if self.waiting.len() > WAITING_MAX && self.blocked.is_none() {
            self.blocked = Some(self.unknown_format());
        }
    }

    /// Nothing but tombstones was seen.
    pub fn unknown_format(&self) -> SourceError {
        let reason = "the format of its messages is not known: none has a value";
        SourceError::new(&self.stream, reason).hint("say it with --format")
    }

    /// The position to store, if it changed.
    pub fn position(&mut self) -> Option<SourcePosition> {
        if !std::mem::take(&mut self.dirty) {
            return None;
        }
        let reading =
            self.format.map(|format| Reading { format, records: true, header: None, delimiter: None });
        Some(SourcePosition {
            stream: self.stream.clone(),
            stream_generation: self.generation,
            next: self.next,
            digest: digits(self.digest),
            end: Some(self.end.max(self.next)),
            reading,
            state: self.decoder.as_ref().and_then(Decoder::state),
            ..SourcePosition::default()
        })
    }
}

/// The record that a message is.
pub(super) fn record_of<'m>(m: &'m impl Message, headers: &'m [Header<'m>]) -> Record<'m> {
    Record {
        topic: m.topic(),
        partition: u32::try_from(m.partition()).unwrap_or(0),
        offset: u64::try_from(m.offset()).unwrap_or(0),
        time: m.timestamp().to_millis().filter(|t| *t >= 0).and_then(|t| t.checked_mul(1_000)),
        key: m.key(),
        value: m.payload(),
        headers,
    }
}

/// A digest as it is stored.
pub(super) fn digits(digest: u64) -> String {
    format!("{digest:016x}")
}

/// A digest of a message, to know it again.
pub(super) fn digest(record: &Record<'_>) -> u64 {
    // A part that is null differs from one that is empty.
    let part = |bytes: Option<&[u8]>, seed: u64| match bytes {
        None => xxh3_64_with_seed(&[], seed.rotate_left(7) ^ 1),
        Some(bytes) => xxh3_64_with_seed(bytes, seed),
    };
    let time = record.time.unwrap_or(i64::MIN) as u64;
    part(record.value, part(record.key, record.offset.rotate_left(32) ^ time))
}
