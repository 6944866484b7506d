//! The open protocol: a record of Kafka holds many events, their keys in its key and their values in its
//! value, each behind its length.

use super::value::{HANDLE_KEY, cell};
use crate::change::{Column, Decoded, Message, Sink, SourceRef, Times};
use crate::format::block::{Block, table_name};
use crate::format::fields::{Reject, columns};
use crate::format::json::{self, Member, Raw};
use crate::format::options::FormatOptions;
use crate::format::row_buffer::{RowBuffer, RowHead};
use crate::format::scratch::{Scratch, ScratchBuffer};
use crate::format::tso::{Tso, tidb_token};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;

/// What a key begins with: the version of the protocol.
const VERSION: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 1];
/// TiDB's number for TRUNCATE TABLE.
const TRUNCATE_TABLE: i64 = 11;

/// Whether a record's key is one of the open protocol.
pub fn is_key(key: &[u8]) -> bool {
    let Some(frames) = key.strip_prefix(VERSION) else { return false };
    matches!(Frames { rest: frames, at: 0 }.next(), Some(Ok((event, _))) if event.starts_with(b"{"))
}

/// Decodes records of the open protocol.
#[derive(Debug, Default)]
pub(super) struct Open {
    scratch: ScratchBuffer,
    members: Vec<Member<'static>>,
    rows: RowBuffer<'static>,
}

impl Open {
    /// Decodes one record and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let Open { scratch, members, rows } = self;
        let length = |b: Option<&[u8]>| b.map_or(0, <[u8]>::len);
        let mut scratch = scratch.scratch(length(message.key) * 2 + length(message.value) * 3 + 4096);
        let mut reader = Reader {
            options,
            message,
            scratch: &mut scratch,
            members: recycle(std::mem::take(members)),
            rows: std::mem::take(rows).recycled(),
            key: Vec::new(),
        };
        let read = reader.events();
        let Reader { members: m, rows: mut r, .. } = reader;
        match read {
            _ if scratch.overflowed() => {
                sink(Decoded::Quarantine(Reject::new("the message needs more room than it should").fault()));
            }
            Ok(Some(kind)) => sink(Decoded::Ignored(kind)),
            Ok(None) => r.hand_out(message, sink),
            Err(reject) => sink(Decoded::Quarantine(reject.fault())),
        }
        (*members, *rows) = (recycle(m), r.recycled());
    }
}

/// Pieces behind their lengths, 8 bytes big-endian, with the byte at which each begins.
struct Frames<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<(&'a [u8], usize), Reject>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let at = self.at;
        let cut = self.rest.split_first_chunk::<8>().and_then(|(length, rest)| {
            let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
            (length <= rest.len()).then(|| rest.split_at(length))
        });
        let Some((piece, rest)) = cut else {
            self.rest = &[];
            return Some(Err(Reject::new("the length of an event goes beyond the end").at(at)));
        };
        (self.rest, self.at) = (rest, at + 8 + piece.len());
        Some(Ok((piece, at + 8)))
    }
}

struct Reader<'r, 'a> {
    options: &'r FormatOptions,
    message: &'r Message<'a>,
    scratch: &'r mut Scratch<'a>,
    members: Vec<Member<'a>>,
    rows: RowBuffer<'a>,
    key: Vec<Column<'a>>,
}

/// What the key of an event says.
struct EventKey<'a> {
    kind: i64,
    head: RowHead<'a>,
    only_key: bool,
}

impl<'a> Reader<'_, 'a> {
    /// The kind under which the record is ignored, if none of its events is about a row.
    fn events(&mut self) -> Result<Option<&'static str>, Reject> {
        let in_key = |e: Reject| e.at(0).hint("this is the record's key");
        let keys = self.message.key.and_then(|k| k.strip_prefix(VERSION)).unwrap_or(&[]);
        let mut values = Frames { rest: self.message.value.unwrap_or(&[]), at: 0 };
        let (mut ignored, mut rows) = (None, 0);
        for key in (Frames { rest: keys, at: VERSION.len() }) {
            let key = key.and_then(|(key, _)| self.event_key(key)).map_err(in_key)?;
            let value = values.next().transpose()?;
            let kind = match key.kind {
                1 => None,
                2 => match self.ddl(value)? {
                    Some(TRUNCATE_TABLE) => None,
                    _ => Some("ddl"),
                },
                3 => Some("resolved"),
                other => return Err(in_key(Reject::new(format!("unknown kind {other} of an event")))),
            };
            if kind.is_some() {
                ignored = kind;
                continue;
            }
            rows += 1;
            match (key.kind, value) {
                (1, Some((value, at))) => self.row(key, value, at)?,
                (1, None) => return Err(Reject::new("there are fewer values than keys of events")),
                _ => self.truncate(&key)?,
            }
        }
        if values.next().is_some() {
            return Err(Reject::new("there are more values than keys of events").at(values.at));
        }
        match ignored {
            _ if rows > 0 => Ok(None),
            Some(kind) => Ok(Some(kind)),
            None => Err(Reject::new("the record has no event")),
        }
    }

    fn event_key(&mut self, key: &'a [u8]) -> Result<EventKey<'a>, Reject> {
        self.members.clear();
        json::members(json::message_text(key)?, &mut self.members)?;
        let block = Block(&self.members);
        let kind = block.integer("t").ok_or_else(|| Reject::new("an event does not say its kind (`t`)"))?;
        if let Some(Raw::Text(place)) = block.raw("ccl")
            && !place.text.is_empty()
        {
            return Err(Reject::new("the row is stored elsewhere, as it was too large for a message"));
        }
        let tso = block.digits("ts").and_then(Tso::parse);
        let source = SourceRef {
            db: block.text("scm", self.scratch),
            table: block.text("tbl", self.scratch),
            ..SourceRef::default()
        };
        let head = RowHead {
            table: table_name(&source, self.scratch),
            source,
            times: Times { source: tso.map(Tso::micros), connector: None, broker: self.message.broker_time },
            token: tso.map(|tso| tidb_token(tso, self.scratch)),
            one_per_key: tso.is_some(),
            ..RowHead::new(Op::Insert, "u")
        };
        Ok(EventKey { kind, head, only_key: block.raw("ohk") == Some(Raw::Bool(true)) })
    }

    /// What a change of tables does, as TiDB numbers it.
    fn ddl(&mut self, value: Option<(&'a [u8], usize)>) -> Result<Option<i64>, Reject> {
        let Some((value, at)) = value.filter(|(value, _)| !value.is_empty()) else { return Ok(None) };
        self.list(value, at)?;
        Ok(Block(&self.members).integer("t"))
    }

    fn list(&mut self, value: &'a [u8], at: usize) -> Result<(), Reject> {
        self.members.clear();
        let inside = |e: json::JsonError| Reject::from(e).at(at + e.at);
        let text = json::message_text(value).map_err(inside)?;
        json::members(text, &mut self.members).map_err(inside)
    }

    fn truncate(&mut self, key: &EventKey<'a>) -> Result<(), Reject> {
        let head = RowHead { op: Op::Truncate, code: "truncate", ..key.head };
        self.rows.close(self.options, self.message, &head, self.scratch)
    }

    fn row(&mut self, key: EventKey<'a>, value: &'a [u8], at: usize) -> Result<(), Reject> {
        self.list(value, at)?;
        let block = Block(&self.members);
        let (u, p, d) = (block.raw("u"), block.raw("p"), block.raw("d"));
        let (op, code, row) = match (u, d) {
            (Some(u), None) if p.is_some() => (Op::Update, "u", u),
            (Some(u), None) => (Op::Insert, "u", u),
            (None, Some(d)) => (Op::Delete, "d", d),
            _ => return Err(Reject::new("a row with neither `u` nor `d`, or with both").at(at)),
        };
        if key.only_key && op != Op::Delete {
            return Err(Reject::new("the message has the key of its row only, as the row was too large")
                .hint("raise the size of TiCDC's messages")
                .at(at));
        }
        let first = self.rows.row.len();
        let mut out = std::mem::take(&mut self.rows.row);
        self.key.clear();
        let read = self.columns(&row, at, &mut out, true);
        self.rows.row = out;
        read?;
        if self.rows.row.len() == first {
            return Err(Reject::new("a row has no columns").at(at));
        }
        self.rows.key.extend_from_slice(&self.key);
        if let Some(p) = p {
            let mut former = Vec::new();
            self.columns(&p, at, &mut former, false)?;
            self.rows.before_of_changed(&former);
        }
        let head = RowHead { op, code, ..key.head };
        self.rows.close(self.options, self.message, &head, self.scratch)
    }

    /// Reads the columns of a row, and with `keyed` notes those that tell it apart.
    fn columns(
        &mut self,
        row: &Raw<'a>,
        at: usize,
        out: &mut Vec<Column<'a>>,
        keyed: bool,
    ) -> Result<(), Reject> {
        let Raw::Nested { text, .. } = *row else { return Err(Reject::new("a row is no object").at(at)) };
        let mut members = Vec::new();
        json::members(text, &mut members).map_err(|e| Reject::from(e).at(at + e.at))?;
        let (key, mut parts, mut handles) = (&mut self.key, Vec::new(), Vec::new());
        let first = out.len();
        columns(&members, at, self.scratch, out, |i, _, member, scratch| {
            let Raw::Nested { text, .. } = member.value else {
                return Err(Reject::new("a column is no object"));
            };
            parts.clear();
            json::members(text, &mut parts)?;
            let block = Block(&parts);
            let number = |name| block.digits(name).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            let flags = number("f");
            if flags & HANDLE_KEY != 0 || block.raw("h") == Some(Raw::Bool(true)) {
                handles.push(i);
            }
            cell(number("t"), flags, &block.raw("v").unwrap_or(Raw::Null), scratch)
        })?;
        if keyed {
            key.extend(handles.iter().map(|i| out[first + i]));
        }
        Ok(())
    }
}
