//! Rows with columns about themselves as JSON, one a message.

use super::Shape;
use crate::change::{Decoded, Message, Sink};
use crate::format::dms::Parts;
use crate::format::fields::{Reject, columns, untyped_cell};
use crate::format::json::{self, Member};
use crate::format::options::FormatOptions;
use crate::format::scratch::{Scratch, ScratchBuffer};
use asofdb_storage::recycle;

/// Decodes such rows.
#[derive(Debug)]
pub struct ShapedJson {
    shape: Shape,
    scratch: ScratchBuffer,
    parts: Parts<'static>,
    members: Vec<Member<'static>>,
}

impl ShapedJson {
    /// A decoder for rows of that shape.
    pub fn new(shape: Shape) -> ShapedJson {
        let (scratch, parts, members) = (ScratchBuffer::default(), Parts::default(), Vec::new());
        ShapedJson { shape, scratch, parts, members }
    }

    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let ShapedJson { shape, scratch, parts, members } = self;
        let value = message.value.unwrap_or(b"null");
        if value.trim_ascii() == b"null" {
            return sink(Decoded::Ignored(crate::format::TOMBSTONE_WITHOUT_KEY));
        }
        let mut scratch = scratch.scratch(value.len() * 3 + 4096);
        let mut p = std::mem::take(parts).recycled();
        let mut members_now = recycle(std::mem::take(members));
        let row = row(value, &mut members_now, &mut p, &mut scratch);
        let change = row.and_then(|()| p.change(None, Some(*shape), options, message, &mut scratch));
        match change {
            _ if scratch.overflowed() => {
                sink(Decoded::Quarantine(Reject::new("the message needs more room than it should").fault()));
            }
            Ok(change) => p.hand_out(change, sink),
            Err(reject) => sink(Decoded::Quarantine(reject.fault())),
        }
        *parts = p.recycled();
        *members = recycle(members_now);
    }
}

fn row<'a>(
    value: &'a [u8],
    members: &mut Vec<Member<'a>>,
    p: &mut Parts<'a>,
    scratch: &mut Scratch<'a>,
) -> Result<(), Reject> {
    json::members(json::message_text(value)?, members)?;
    columns(members, 0, scratch, &mut p.columns, |_, _, m, s| untyped_cell(&m.value, s))
}
