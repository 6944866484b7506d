//! Telling messages of Avro by content.

use super::framing::Part;
use super::schema::{Dialect, Schema};
use super::source::SchemaText;
use crate::change::Message;
use crate::format::json;
use crate::format::kind::Format;
use crate::format::options::FormatOptions;

/// The format of a message that is framed for a schema registry. Where nothing says what the schema is, it is
/// taken for a plain record, and reading it says what is missing.
pub fn framed_format(options: &FormatOptions, message: &Message<'_>) -> Option<Format> {
    let value = message.value.filter(|v| !v.is_empty())?;
    let framed = options.framing.framed(value, message.headers, Part::Value).ok()?;
    let source = options.schemas.as_ref();
    match source.and_then(|s| s.schema(framed.id).ok()) {
        Some(text) => Some(format_of(&Schema::parse(&text, Dialect::Avro).ok()?)),
        // Messages under a JSON schema have the same frame.
        None if framed.at > 0 && is_json(framed.body) => None,
        None => Some(Format::Avro),
    }
}

/// The format of the records of a file with that schema.
pub(crate) fn file_format(schema: &str) -> Format {
    let text = SchemaText { schema: schema.to_owned(), references: Vec::new() };
    Schema::parse(&text, Dialect::Avro).map_or(Format::Avro, |schema| format_of(&schema))
}

fn is_json(body: &[u8]) -> bool {
    std::str::from_utf8(body).is_ok_and(|text| json::single(text).is_ok())
}

/// An envelope of Debezium, or a plain record.
pub(super) fn format_of(schema: &Schema) -> Format {
    let has = |name: &str| {
        schema.record(schema.root).is_some_and(|record| record.fields.iter().any(|f| f.name == name))
    };
    match has("op") && has("source") && (has("before") || has("after")) {
        true => Format::DebeziumAvro,
        false => Format::Avro,
    }
}
