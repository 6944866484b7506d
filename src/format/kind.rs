//! The formats by name, and telling them by content.

use super::json::{self, Raw};
use std::fmt;

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Debezium's envelope as JSON, with or without embedded schemas.
    DebeziumJson,
    /// One JSON object a message.
    Json,
    /// Comma-separated values.
    Csv,
    /// Apache Parquet files.
    Parquet,
}

const NAMES: &[(&str, Format)] = &[
    ("debezium-json", Format::DebeziumJson),
    ("json", Format::Json),
    ("csv", Format::Csv),
    ("parquet", Format::Parquet),
    ("debezium", Format::DebeziumJson),
    ("ndjson", Format::Json),
    ("jsonl", Format::Json),
    ("plain", Format::Json),
    ("plain-json", Format::Json),
];

/// Formats that are known by name and not read yet.
const PLANNED: &[&str] = &[
    "debezium-avro",
    "debezium-flat",
    "debezium-mongodb",
    "maxwell",
    "canal",
    "ticdc",
    "ogg",
    "wal2json",
    "aws-dms",
    "dms",
    "delta-cdf",
    "avro",
    "cloudevents",
    "airbyte",
    "fivetran",
];

impl Format {
    /// The name used in options and messages.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, f)| *f == self).map_or("", |(name, _)| name)
    }

    /// Names of all formats, for help.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES[..4].iter().map(|(name, _)| *name)
    }

    /// The format of messages that begin like this one: an envelope of Debezium, or plain JSON.
    pub fn of_message(value: &[u8]) -> Format {
        let envelope = |text: &str| {
            let has = |name| json::member(text, name).is_some();
            let source = matches!(json::member(text, "source"), Some(Raw::Nested { .. }));
            has("op") && (has("before") || has("after") || source)
                || source && (has("ddl") || has("historyRecord") || has("tableChanges"))
        };
        let Ok(text) = std::str::from_utf8(value) else { return Format::Json };
        let inner = match json::member(text, "payload") {
            Some(Raw::Nested { text, .. }) if text.starts_with('{') => text,
            _ => text,
        };
        if envelope(text) || envelope(inner) { Format::DebeziumJson } else { Format::Json }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A format name that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("format {name} is not supported yet")]
pub struct UnknownFormat {
    /// The name as given.
    pub name: String,
    /// What may help.
    pub hint: String,
}

impl std::str::FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        let lower = name.to_ascii_lowercase();
        if let Some((_, format)) = NAMES.iter().find(|(n, _)| *n == lower) {
            return Ok(*format);
        }
        let known = NAMES.iter().map(|(name, _)| *name);
        let near = crate::near::nearest(&lower, known).filter(|_| !PLANNED.contains(&lower.as_str()));
        let all = Format::names().collect::<Vec<_>>().join(", ");
        let hint = match near {
            Some(near) => format!("did you mean {near}? The formats are {all}"),
            None => format!("the formats are {all}"),
        };
        Err(UnknownFormat { name: name.to_owned(), hint })
    }
}
