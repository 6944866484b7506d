//! The envelope that Debezium's converter spreads over attributes and data, put together again.

use super::event::Event;
use crate::format::fields::Reject;
use crate::format::json::{self, Member, Raw};
use crate::format::scratch::Scratch;

const PREFIX: &str = "iodebezium";

/// Fields of the source whose names are no attributes as they stand: those are of small letters and digits.
const RENAMED: [(&str, &str); 13] = [
    ("tsms", "ts_ms"),
    ("tsus", "ts_us"),
    ("tsns", "ts_ns"),
    ("txid", "txId"),
    ("serverid", "server_id"),
    ("commitlsn", "commit_lsn"),
    ("changelsn", "change_lsn"),
    ("eventserialno", "event_serial_no"),
    ("commitscn", "commit_scn"),
    ("rsid", "rs_id"),
    ("lcrposition", "lcr_position"),
    ("username", "user_name"),
    ("rowid", "row_id"),
];

/// The envelope of an event with these data; `None` if it is none of the converter, or its data are an
/// envelope already.
///
/// # Errors
/// If the data are no object.
pub fn envelope<'a>(
    event: &Event<'a>,
    data: Option<&'a str>,
    scratch: &mut Scratch<'a>,
) -> Result<Option<&'a str>, Reject> {
    let own = |m: &Member<'a>| m.name.text.strip_prefix(PREFIX);
    let Some(op) = event.attributes.iter().find(|m| own(m) == Some("op")) else { return Ok(None) };
    let mut members = Vec::new();
    let mut schema = None;
    if let Some(data) = data.filter(|data| data.trim_ascii() != "null") {
        json::members(data, &mut members).map_err(|e| Reject::from(e).at(event.at))?;
        let member = |name: &str| members.iter().find(|m| m.name.text == name).map(|m| m.value);
        if let (2, Some(Raw::Nested { text: s, .. }), Some(payload)) =
            (members.len(), member("schema"), member("payload"))
        {
            schema = Some(s);
            members.clear();
            if let Raw::Nested { text, .. } = payload {
                json::members(text, &mut members).map_err(|e| Reject::from(e).at(event.at))?;
            }
        }
    }
    if members.iter().any(|m| m.name.text == "op") {
        return Ok(None);
    }
    Ok(Some(scratch.put_str(|out| {
        if let Some(schema) = schema {
            out.push_str("{\"schema\":");
            out.push_str(schema);
            out.push_str(",\"payload\":");
        }
        out.push_str("{\"op\":");
        write(out, &op.value);
        for member in &members {
            out.push(',');
            named(out, member.name.text, &member.value);
        }
        out.push_str(",\"source\":{\"\":null");
        let attributes = event.attributes.iter().filter_map(|m| Some((own(m)?, &m.value)));
        for (name, value) in attributes.filter(|(name, _)| !matches!(*name, "op" | "")) {
            out.push(',');
            let field = RENAMED.iter().find(|(attribute, _)| *attribute == name);
            named(out, field.map_or(name, |(_, field)| field), value);
        }
        out.push_str(if schema.is_some() { "}}}" } else { "}}" });
    })))
}

fn named(out: &mut String, name: &str, value: &Raw<'_>) {
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
    write(out, value);
}

fn write(out: &mut String, value: &Raw<'_>) {
    match value {
        Raw::Null => out.push_str("null"),
        Raw::Bool(v) => out.push_str(if *v { "true" } else { "false" }),
        Raw::Number(text) | Raw::Nested { text, .. } => out.push_str(text),
        Raw::Text(t) => {
            out.push('"');
            out.push_str(t.text);
            out.push('"');
        }
    }
}
