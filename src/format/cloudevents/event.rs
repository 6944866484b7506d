//! One event: its attributes and its data.

use crate::change::{Header, Message};
use crate::format::block::Block;
use crate::format::fields::{Reject, shortened};
use crate::format::json::{self, Member, Raw, RawText};
use crate::format::scratch::Scratch;
use crate::format::time_text::{self, TimeText};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What names of headers with attributes begin with.
const PREFIX: &str = "ce_";
/// Attributes that every event has.
const REQUIRED: [&str; 4] = ["specversion", "id", "source", "type"];

/// An event.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// Its number at its source.
    pub id: &'a str,
    /// Who numbers it.
    pub source: &'a str,
    /// When it happened.
    pub time: Option<i64>,
    /// All attributes.
    pub attributes: Vec<Member<'a>>,
    /// What it carries.
    pub data: Option<&'a [u8]>,
    /// Where the data begin in the message.
    pub at: usize,
    /// The data stand in the message as they are.
    pub as_is: bool,
}

/// Whether a message is an event, or an array of events.
pub fn looks_like(text: &str) -> bool {
    let mut members = Vec::new();
    let listed = match text.trim_ascii_start().starts_with('[') {
        true => match json::elements(text, &mut members).ok().and_then(|()| members.first().copied()) {
            Some(Member { value: Raw::Nested { text, .. }, .. }) => {
                members.clear();
                json::members(text, &mut members)
            }
            _ => return false,
        },
        false => json::members(text, &mut members),
    };
    let is_text = |name: &&str| matches!(Block(&members).raw(name), Some(Raw::Text(_)));
    listed.is_ok() && REQUIRED.iter().all(is_text)
}

/// Whether the headers of a record hold the attributes of an event.
pub fn in_headers(headers: &[Header<'_>]) -> bool {
    let has = |name: &&str| headers.iter().any(|h| h.name.strip_prefix(PREFIX) == Some(name));
    REQUIRED.iter().all(has)
}

impl<'a> Event<'a> {
    /// The event that an object is, which stands at byte `base` of its message.
    ///
    /// # Errors
    /// If it lacks a required attribute, or its data cannot be read.
    pub fn of_object(text: &'a str, base: usize, scratch: &mut Scratch<'a>) -> Result<Event<'a>, Reject> {
        let mut attributes = Vec::new();
        json::members(text, &mut attributes).map_err(|e| Reject::from(e).at(base + e.at))?;
        crate::format::block::unique(&attributes, base)?;
        let member = |name: &str| attributes.iter().find(|m| m.name.text == name).copied();
        let (data, at, as_is) = match (member("data"), member("data_base64")) {
            (Some(Member { value: Raw::Nested { text, .. }, at, .. }), _) => {
                (Some(text.as_bytes()), at, true)
            }
            // Encoders that know nothing of JSON put it in as text.
            (Some(Member { value: Raw::Text(t), at, .. }), _) => {
                (Some(t.resolve(scratch).as_bytes()), at, false)
            }
            (None | Some(Member { value: Raw::Null, .. }), Some(Member { value: Raw::Text(t), at, .. })) => {
                let bytes = STANDARD.decode(t.resolve(scratch));
                let bytes = bytes.map_err(|_| Reject::new("`data_base64` is not base64").at(base + at))?;
                (Some(scratch.put(&bytes)), at, false)
            }
            (None | Some(Member { value: Raw::Null, .. }), None | Some(Member { value: Raw::Null, .. })) => {
                (None, 0, false)
            }
            _ => return Err(Reject::new("the data of the event is no object").at(base)),
        };
        attributes.retain(|m| !matches!(m.name.text, "data" | "data_base64"));
        Event { id: "", source: "", time: None, attributes, data, at: base + at, as_is }
            .checked(base, scratch)
    }

    /// The event whose attributes are headers of a record.
    ///
    /// # Errors
    /// If it lacks a required attribute.
    pub fn of_headers(message: &Message<'a>, scratch: &mut Scratch<'a>) -> Result<Event<'a>, Reject> {
        let mut attributes = Vec::new();
        for header in message.headers {
            let Some(name) = header.name.strip_prefix(PREFIX) else { continue };
            let Ok(text) = std::str::from_utf8(header.value) else {
                let name = shortened(name);
                return Err(Reject::new(format!("the attribute `{name}` of the event is not UTF-8")));
            };
            // Attributes are read as members, so what is special in a text of JSON is escaped.
            let special = |b: u8| b < b' ' || matches!(b, b'"' | b'\\');
            let text = match text.bytes().any(special) {
                true => {
                    let json = serde_json::Value::from(text).to_string();
                    let inner = json.get(1..json.len() - 1).unwrap_or("");
                    RawText { text: scratch.put_str(|out| out.push_str(inner)), escaped: true }
                }
                false => RawText { text, escaped: false },
            };
            let name = RawText { text: name, escaped: false };
            attributes.push(Member { name, value: Raw::Text(text), at: 0 });
        }
        let data = message.value;
        Event { id: "", source: "", time: None, attributes, data, at: 0, as_is: true }.checked(0, scratch)
    }

    fn checked(mut self, base: usize, scratch: &mut Scratch<'a>) -> Result<Event<'a>, Reject> {
        for name in REQUIRED {
            if self.text(name, scratch).is_none_or(str::is_empty) {
                return Err(Reject::new(format!("the event has no `{name}`"))
                    .hint("an event of CloudEvents has specversion, id, source and type")
                    .at(base));
            }
        }
        self.id = self.text("id", scratch).unwrap_or("");
        self.source = self.text("source", scratch).unwrap_or("");
        self.time = match self.text("time", scratch).and_then(|t| time_text::parse(t.trim())) {
            Some(TimeText::Instant(t)) => Some(t.us),
            _ => None,
        };
        Ok(self)
    }

    /// An attribute that is a text.
    pub fn text(&self, name: &str, scratch: &mut Scratch<'a>) -> Option<&'a str> {
        match Block(&self.attributes).raw(name)? {
            Raw::Text(t) => Some(t.resolve(scratch)),
            _ => None,
        }
    }
}
