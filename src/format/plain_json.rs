//! Plain JSON: one object a message, its members are the columns. With a Kafka key, a message
//! without a value is a delete.

use super::declare;
use super::fields::{Reject, columns, untyped_cell};
use super::json::{self, Member, RawText};
use super::layout::Layout;
use super::options::FormatOptions;
use super::roles::{Plain, Roles};
use super::scratch::{Scratch, ScratchBuffer};
use crate::change::{Change, Column, Decoded, Message, Numbered, Sink};
use asofdb_storage::recycle;
use asofdb_storage::value::Cell;

/// Decodes plain JSON. Buffers grow to the longest message and stay.
#[derive(Debug, Default)]
pub struct PlainJson {
    scratch: ScratchBuffer,
    parts: Parts<'static>,
    quick: Quick,
}

/// The way that flat objects take whose names were seen before.
#[derive(Debug, Default)]
enum Quick {
    /// Nobody has looked at the options.
    #[default]
    Untried,
    /// They ask for more.
    Closed,
    Open(Box<(Layout, Roles)>),
}

#[derive(Debug, Default)]
struct Parts<'a> {
    members: Vec<Member<'a>>,
    columns: Vec<Column<'a>>,
    numbers: Vec<u16>,
    image: Vec<Column<'a>>,
    key: Vec<Column<'a>>,
    ties: Vec<Cell<'a>>,
}

impl<'a> Parts<'a> {
    fn recycled<'b>(self) -> Parts<'b> {
        Parts {
            members: recycle(self.members),
            columns: recycle(self.columns),
            numbers: recycle(self.numbers),
            image: recycle(self.image),
            key: recycle(self.key),
            ties: recycle(self.ties),
        }
    }
}

impl PlainJson {
    /// Decodes one message and hands it to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let PlainJson { scratch, parts, quick } = self;
        if let Quick::Untried = quick {
            let roles = Roles::new(options);
            *quick = roles.map_or(Quick::Closed, |roles| Quick::Open(Box::new((Layout::default(), roles))));
        }
        let length = |b: Option<&[u8]>| b.map_or(0, <[u8]>::len);
        let mut scratch = scratch.scratch((length(message.key) + length(message.value)) * 2);
        let mut p = std::mem::take(parts).recycled();
        let (mut dictionary, mut step) = (0, None);
        if let (Quick::Open(quick), None) = (quick, message.key) {
            step = decode_quick(options, message, quick, &mut p);
            dictionary = quick.0.dictionary;
        }
        match step.unwrap_or_else(|| decode(options, message, &mut p, &mut scratch)) {
            _ if scratch.overflowed() => {
                sink(Decoded::Quarantine(Reject::new("the message needs more room than it should").fault()));
            }
            Ok(Step::Ignored(kind)) => sink(Decoded::Ignored(kind)),
            Ok(Step::PreImage) => sink(Decoded::Changes(&[])),
            Ok(Step::Change { mut change, filtered }) => {
                change.declared.ties = &p.ties;
                change.fields = &p.columns;
                change.image = if filtered { &p.image } else { &p.columns };
                change.key = &p.key;
                change.headers = message.headers;
                sink(Decoded::Changes(std::slice::from_ref(&change)));
            }
            Ok(Step::Quick { plain, filtered }) => {
                let mut change = plain.change();
                change.fields = &p.columns;
                change.image = if filtered { &p.image } else { &p.columns };
                change.numbered = Numbered { dictionary, numbers: &p.numbers };
                change.headers = message.headers;
                sink(Decoded::Changes(std::slice::from_ref(&change)));
            }
            Err(reject) => sink(Decoded::Quarantine(reject.fault())),
        }
        *parts = p.recycled();
    }
}

#[allow(clippy::large_enum_variant, reason = "lives for one call")]
enum Step<'a> {
    Change { change: Change<'a>, filtered: bool },
    Quick { plain: Plain<'a>, filtered: bool },
    PreImage,
    Ignored(&'static str),
}

/// `None` if the message has to go the other way.
fn decode_quick<'a>(
    options: &FormatOptions,
    message: &Message<'a>,
    (layout, roles): &mut (Layout, Roles),
    p: &mut Parts<'a>,
) -> Option<Result<Step<'a>, Reject>> {
    let text = std::str::from_utf8(message.value?).ok()?;
    let quick = if layout.scan(text, &mut p.columns, &mut p.numbers) {
        roles.change(options, layout.names(), message, &p.columns, &mut p.numbers, &mut p.image)
    } else {
        None
    };
    if quick.is_none() {
        p.columns.clear();
        p.numbers.clear();
    }
    let step =
        |plain: Option<_>| plain.map_or(Step::PreImage, |(plain, filtered)| Step::Quick { plain, filtered });
    quick.map(|plain| plain.map(step))
}

fn decode<'a>(
    options: &FormatOptions,
    message: &Message<'a>,
    p: &mut Parts<'a>,
    scratch: &mut Scratch<'a>,
) -> Result<Step<'a>, Reject> {
    if let Some(key) = message.key.filter(|k| !k.is_empty()) {
        key_columns(json::message_text(key)?, p, scratch)
            .map_err(|e| e.at(0).hint("this is the record's key"))?;
    }
    let text = match message.value {
        Some(value) => json::message_text(value)?,
        None => "null",
    };
    if text.trim_ascii() == "null" {
        return Ok(tombstone(options, message, p, scratch));
    }
    p.members.clear();
    json::members(text, &mut p.members)?;
    columns(&p.members, 0, scratch, &mut p.columns, |_, _, m, s| untyped_cell(&m.value, s))?;
    if p.columns.is_empty() {
        return Err(Reject::new("the object is empty"));
    }
    let plain = declare::plain_change(options, message, &p.columns, &mut p.image, &mut p.ties, scratch)?;
    Ok(plain.map_or(Step::PreImage, |(change, filtered)| Step::Change { change, filtered }))
}

fn tombstone<'a>(
    options: &FormatOptions,
    message: &Message<'a>,
    p: &mut Parts<'a>,
    scratch: &mut Scratch<'a>,
) -> Step<'a> {
    match declare::plain_tombstone(options, message, &p.key, &mut p.ties, scratch) {
        Some(change) => Step::Change { change, filtered: false },
        None => Step::Ignored(super::TOMBSTONE_WITHOUT_KEY),
    }
}

/// The columns of a record's key: an object's members, or one unnamed column.
fn key_columns<'a>(text: &'a str, p: &mut Parts<'a>, scratch: &mut Scratch<'a>) -> Result<(), Reject> {
    match json::single(text) {
        Ok(json::Raw::Null) => Ok(()),
        Ok(json::Raw::Nested { .. }) if text.trim_start().starts_with('{') => {
            json::members(text, &mut p.members)?;
            columns(&p.members, 0, scratch, &mut p.key, |_, _, m, s| untyped_cell(&m.value, s))
        }
        Ok(value) => {
            let name = RawText { text: "", escaped: false };
            let one = [Member { name, value, at: 0 }];
            columns(&one, 0, scratch, &mut p.key, |_, _, m, s| untyped_cell(&m.value, s))
        }
        // A key that is not JSON is a text.
        Err(_) => {
            p.key.push(Column { name: "", cell: Cell::Text(text) });
            Ok(())
        }
    }
}

#[cfg(test)]
#[path = "plain_json_tests.rs"]
pub(crate) mod tests;
