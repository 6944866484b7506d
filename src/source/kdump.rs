//! Kafka dumps as files: one record a line, with topic, partition, offset, time, headers, and key
//! and value as text or base64.

use crate::change::{Header, Message};
use crate::format::fields::Reject;
use crate::format::json::{self, Member, Raw};
use crate::format::scratch::{Scratch, ScratchBuffer};
use asofdb_storage::recycle;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A record of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Topic.
    pub topic: &'a str,
    /// Partition.
    pub partition: u32,
    /// Offset within the partition.
    pub offset: u64,
    /// The broker's time, microseconds since 1970-01-01T00:00:00Z.
    pub time: Option<i64>,
    /// Key; `None` = null.
    pub key: Option<&'a [u8]>,
    /// Value; `None` = null, a tombstone.
    pub value: Option<&'a [u8]>,
    /// Headers.
    pub headers: &'a [Header<'a>],
}

impl<'a> Record<'a> {
    /// The message that the record is.
    pub fn message(&self) -> Message<'a> {
        Message {
            key: self.key,
            value: self.value,
            headers: self.headers,
            broker_time: self.time,
            topic: Some(self.topic),
            position: self.offset,
        }
    }

    /// The record as a line of a dump, without its line break.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::Map::new();
        line.insert("topic".into(), self.topic.into());
        line.insert("partition".into(), self.partition.into());
        line.insert("offset".into(), self.offset.into());
        if let Some(time) = self.time {
            line.insert("timestamp".into(), time.div_euclid(1_000).into());
        }
        let mut put = |name: &str, bytes: Option<&[u8]>| match bytes.map(std::str::from_utf8) {
            None => line.insert(name.into(), serde_json::Value::Null),
            Some(Ok(text)) => line.insert(name.into(), text.into()),
            Some(Err(_)) => line.insert(format!("{name}_b64"), STANDARD.encode(bytes.unwrap_or(&[])).into()),
        };
        put("key", self.key);
        put("value", self.value);
        let header = |h: &Header<'_>| match std::str::from_utf8(h.value) {
            Ok(text) => serde_json::json!([h.name, text]),
            Err(_) => serde_json::json!([h.name, null, STANDARD.encode(h.value)]),
        };
        if !self.headers.is_empty() {
            line.insert("headers".into(), self.headers.iter().map(header).collect());
        }
        serde_json::Value::Object(line).to_string().into_bytes()
    }
}

/// Receives a record, or what is wrong with the line.
pub(super) type Take<'t> = dyn FnMut(Result<Record<'_>, &Reject>) + 't;

/// Reads records; buffers are kept from line to line. A header is a pair of name and text; bytes that are no
/// text follow as base64, after a null.
#[derive(Debug, Default)]
pub(super) struct Kdump {
    scratch: ScratchBuffer,
    members: Vec<Member<'static>>,
    headers: Vec<Header<'static>>,
}

impl Kdump {
    /// Whether a line looks like a record of a dump.
    pub fn is_record(line: &str) -> bool {
        let has = |name| json::member(line, name).is_some();
        has("topic") && has("partition") && has("offset") && (has("value") || has("value_b64"))
    }

    /// Reads one line and hands the record over with its headers.
    pub fn read(&mut self, line: &[u8], take: &mut Take<'_>) {
        let Kdump { scratch, members, headers } = self;
        let mut scratch = scratch.scratch(line.len() * 2);
        let mut members_now = recycle(std::mem::take(members));
        let mut headers_now = recycle(std::mem::take(headers));
        match record(line, &mut members_now, &mut headers_now, &mut scratch) {
            Ok(record) => take(Ok(Record { headers: &headers_now, ..record })),
            Err(reject) => take(Err(&reject)),
        }
        (*members, *headers) = (recycle(members_now), recycle(headers_now));
    }
}

fn record<'a>(
    line: &'a [u8],
    members: &mut Vec<Member<'a>>,
    headers: &mut Vec<Header<'a>>,
    scratch: &mut Scratch<'a>,
) -> Result<Record<'a>, Reject> {
    json::members(json::message_text(line)?, members)?;
    let find = |name: &str| members.iter().find(|m| m.name.text == name).map(|m| m.value);
    let number = |name: &str| match find(name) {
        Some(Raw::Number(text)) => text.parse::<u64>().ok(),
        _ => None,
    };
    let wrong = |name: &str| {
        Reject::new(format!("the record has no {name}")).hint("a line of a Kafka dump is one record")
    };
    let topic = match find("topic") {
        Some(Raw::Text(t)) => t.resolve(scratch),
        _ => return Err(wrong("topic")),
    };
    let partition =
        number("partition").and_then(|n| u32::try_from(n).ok()).ok_or_else(|| wrong("partition"))?;
    let offset = number("offset").ok_or_else(|| wrong("offset"))?;
    let time = match find("timestamp") {
        Some(Raw::Number(text)) => {
            text.parse::<i64>().ok().filter(|t| *t > 0).and_then(|t| t.checked_mul(1_000))
        }
        _ => None,
    };
    let key = bytes(find("key"), find("key_b64"), "key", scratch)?;
    let value = bytes(find("value"), find("value_b64"), "value", scratch)?;
    if let Some(Raw::Nested { text, .. }) = find("headers") {
        read_headers(text, headers, scratch)?;
    }
    Ok(Record { topic, partition, offset, time, key, value, headers: &[] })
}

fn bytes<'a>(
    text: Option<Raw<'a>>,
    base64: Option<Raw<'a>>,
    name: &str,
    scratch: &mut Scratch<'a>,
) -> Result<Option<&'a [u8]>, Reject> {
    match (text, base64) {
        (Some(Raw::Text(t)), _) => Ok(Some(t.resolve(scratch).as_bytes())),
        (_, Some(Raw::Text(t))) => match STANDARD.decode(t.resolve(scratch)) {
            Ok(decoded) => Ok(Some(scratch.put(&decoded))),
            Err(_) => Err(Reject::new(format!("the record's {name} is not base64"))),
        },
        (None | Some(Raw::Null), None | Some(Raw::Null)) => Ok(None),
        _ => Err(Reject::new(format!("the record's {name} is neither a text nor null"))),
    }
}

fn read_headers<'a>(
    text: &'a str,
    headers: &mut Vec<Header<'a>>,
    scratch: &mut Scratch<'a>,
) -> Result<(), Reject> {
    let mut pairs = Vec::new();
    json::elements(text, &mut pairs)?;
    for pair in pairs {
        let Raw::Nested { text, .. } = pair.value else { return Err(Reject::new("a header is no pair")) };
        let mut pair = Vec::new();
        json::elements(text, &mut pair)?;
        let [name, value, rest @ ..] = pair.as_slice() else {
            return Err(Reject::new("a header is no pair"));
        };
        let Raw::Text(name) = name.value else { return Err(Reject::new("a header has no name")) };
        let value =
            bytes(Some(value.value), rest.first().map(|r| r.value), "header", scratch)?.unwrap_or(&[]);
        headers.push(Header { name: name.resolve(scratch), value });
    }
    Ok(())
}
