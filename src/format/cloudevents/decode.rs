//! Events to changes: what is inside is decoded by the format that it is found to have.

use super::collected::Collected;
use super::debezium;
use super::event::{Event, in_headers};
use crate::change::{Change, Decoded, Message, Sink};
use crate::format::fields::Reject;
use crate::format::json::{self, Raw};
use crate::format::scratch::{Scratch, ScratchBuffer};
use crate::format::{Decoder, Format, FormatOptions};
use asofdb_storage::value::Cell;

/// Names of columns beyond this many get no room of their own for copies.
const ROOMY_COLUMNS_MAX: usize = 1 << 16;

/// Decodes CloudEvents, whatever they carry.
#[derive(Debug, Default)]
pub struct CloudEvents {
    scratch: ScratchBuffer,
    inner: Inner,
}

impl CloudEvents {
    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let CloudEvents { scratch, inner } = self;
        let mut scratch = scratch.scratch(room(message));
        if let Err(reject) = inner.message(options, message, &mut scratch, sink) {
            sink(Decoded::Quarantine(reject.fault()));
        }
    }
}

/// The scratch space a message can need: data without escapes, and copies of rows that are handed out together.
fn room(message: &Message<'_>) -> usize {
    let parts =
        [message.key, message.value].into_iter().flatten().chain(message.headers.iter().map(|h| h.value));
    let (mut bytes, mut colons) = (0, 0);
    for part in parts {
        bytes += part.len();
        colons += memchr::memchr_iter(b':', part).count();
    }
    bytes * 6 + colons.min(ROOMY_COLUMNS_MAX) * 64 + 4096
}

/// Decoders of what is inside.
#[derive(Debug, Default)]
struct Inner {
    decoders: Vec<(Format, Decoder)>,
    /// The format of the last event that had data.
    last: Option<Format>,
}

impl Inner {
    /// What cannot be taken before anything was handed out is an error.
    fn message<'a>(
        &mut self,
        options: &FormatOptions,
        message: &Message<'a>,
        scratch: &mut Scratch<'a>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Reject> {
        if in_headers(message.headers) {
            let event = Event::of_headers(message, scratch)?;
            return self.event(options, message, &event, scratch, sink);
        }
        let text = match message.value {
            Some(value) => json::message_text(value)?,
            None => "null",
        };
        match json::single(text)? {
            // A tombstone is no event: it is one of what is inside.
            Raw::Null => {
                let bare = Message { value: None, ..*message };
                let format = self.last.unwrap_or(Format::DebeziumJson);
                self.decoder(format, options)?.decode(&bare, sink);
                Ok(())
            }
            Raw::Nested { text: array, .. } if array.starts_with('[') => {
                self.batch(options, message, text, scratch, sink)
            }
            _ => {
                let event = Event::of_object(text, 0, scratch)?;
                self.event(options, message, &event, scratch, sink)
            }
        }
    }

    fn batch<'a>(
        &mut self,
        options: &FormatOptions,
        message: &Message<'a>,
        text: &'a str,
        scratch: &mut Scratch<'a>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Reject> {
        let mut elements = Vec::new();
        json::elements(text, &mut elements)?;
        let (mut collected, mut ignored) = (Collected::default(), None);
        let mut any = false;
        for (number, element) in elements.iter().enumerate() {
            let Raw::Nested { text, .. } = element.value else {
                return Err(Reject::new("an event of the batch is no object").at(element.at));
            };
            let event = Event::of_object(text, element.at, scratch)?;
            // What was decoded does not outlive the call, and the scratch space is lent to it.
            let mut rows: Result<(), Reject> = Ok(());
            let mut own = ScratchBuffer::default();
            let mut lent = own.scratch(text.len() * 3 + 4096);
            self.event(options, message, &event, &mut lent, &mut |decoded| match decoded {
                Decoded::Changes(changes) => {
                    any = true;
                    for change in changes {
                        if rows.is_ok() {
                            rows = collected.keep(change, scratch);
                        }
                    }
                }
                Decoded::Ignored(kind) | Decoded::Repeat(kind) => ignored = Some(kind),
                Decoded::Quarantine(fault) => {
                    let reason = format!("event {} of the batch: {}", number + 1, fault.reason);
                    rows = Err(Reject::new(reason).at(fault.offset as usize));
                }
            })?;
            rows?;
        }
        if scratch.overflowed() {
            return Err(too_much_room());
        }
        match ignored {
            Some(kind) if !any => sink(Decoded::Ignored(kind)),
            None if elements.is_empty() => sink(Decoded::Ignored("empty_batch")),
            _ => collected.hand_out(message, sink),
        }
        Ok(())
    }

    fn event<'a>(
        &mut self,
        options: &FormatOptions,
        message: &Message<'a>,
        event: &Event<'a>,
        scratch: &mut Scratch<'a>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Reject> {
        let data = event.data.and_then(|data| std::str::from_utf8(data).ok());
        let envelope = match event.data.is_none() || data.is_some() {
            true => debezium::envelope(event, data, scratch)?,
            false => None,
        };
        let (format, value) = match (envelope, event.data) {
            (Some(envelope), _) => (Format::DebeziumJson, Some(envelope.as_bytes())),
            (None, Some(data)) => (Format::of_record(message.key, Some(data), &[]), Some(data)),
            (None, None) => (self.last.unwrap_or(Format::Json), None),
        };
        if format == Format::CloudEvents {
            return Err(Reject::new("the data of the event are an event again").at(event.at));
        }
        let identity = scratch.put_str(|out| {
            out.push_str(event.source);
            out.push(' ');
            out.push_str(event.id);
        });
        if scratch.overflowed() {
            return Err(too_much_room());
        }
        self.last = Some(format);
        let inside = Message { value, ..*message };
        let as_is = envelope.is_none() && event.as_is;
        // Only plain rows have nothing else that tells repeats: Debezium gives the rows of a snapshot one id.
        let identity = (format == Format::Json).then_some(identity);
        self.decoder(format, options)?.decode(&inside, &mut |decoded| match decoded {
            Decoded::Changes([change]) => {
                let mut change = marked(change, event.time, identity);
                // One event is one change: at its position a second one is the same again.
                change.one_per_key |= change.token.is_some();
                sink(Decoded::Changes(&[change]));
            }
            Decoded::Changes(changes) => {
                let changes: Vec<_> = changes.iter().map(|c| marked(c, event.time, None)).collect();
                sink(Decoded::Changes(&changes));
            }
            Decoded::Quarantine(fault) => {
                let offset = event.at as u64 + if as_is { fault.offset } else { 0 };
                sink(Decoded::Quarantine(crate::change::Fault { offset, ..fault }));
            }
            ignored => sink(ignored),
        });
        Ok(())
    }

    fn decoder(&mut self, format: Format, options: &FormatOptions) -> Result<&mut Decoder, Reject> {
        if let Some(at) = self.decoders.iter().position(|(f, _)| *f == format) {
            return Ok(&mut self.decoders[at].1);
        }
        let Some(decoder) = Decoder::new(format, options.clone()) else {
            return Err(Reject::new(format!("{format} does not come in events")));
        };
        self.decoders.push((format, decoder));
        let at = self.decoders.len() - 1;
        Ok(&mut self.decoders[at].1)
    }
}

fn too_much_room() -> Reject {
    Reject::new("the message needs more room than it should")
}

/// A change with what its event says and the data do not.
fn marked<'c>(change: &Change<'c>, time: Option<i64>, identity: Option<&'c str>) -> Change<'c> {
    let mut change = *change;
    change.times.source = change.times.source.or(time);
    if change.token.is_none() && change.declared.operation_id.is_none() {
        change.declared.operation_id = identity.map(Cell::Text);
    }
    change
}
