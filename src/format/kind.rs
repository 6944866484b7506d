//! The formats by name, and telling them by content.

use super::shaped::Shape;
use super::{
    canal, cloudevents, debezium_json, debezium_mongodb, dms, maxwell, ogg, striim, ticdc, wal2json,
};
use crate::change::Header;
use std::fmt;

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Debezium's envelope as JSON, with or without embedded schemas.
    DebeziumJson,
    /// Rows that Debezium's `ExtractNewRecordState` took out of their envelopes, as JSON.
    DebeziumFlat,
    /// Maxwell's JSON.
    Maxwell,
    /// Canal's flat messages as JSON.
    Canal,
    /// TiCDC's canal-json and its open protocol.
    Ticdc,
    /// TiCDC's CSV.
    TicdcCsv,
    /// What the PostgreSQL plugin wal2json writes, format 1 or 2.
    Wal2json,
    /// What AWS DMS writes.
    Dms,
    /// Oracle GoldenGate's JSON.
    Ogg,
    /// Striim's JSON.
    Striim,
    /// Messages of other formats as data of CloudEvents.
    #[serde(rename = "cloudevents")]
    CloudEvents,
    /// Rows of the change data feed of a Delta table.
    DeltaCdf,
    /// Rows that Airbyte loads.
    Airbyte,
    /// Rows that Fivetran loads.
    Fivetran,
    /// One JSON object a message.
    Json,
    /// Comma-separated values.
    Csv,
    /// Apache Parquet files.
    Parquet,
    /// Records of Avro, whose schemas a registry has.
    Avro,
    /// Debezium's envelope in Avro.
    DebeziumAvro,
    /// Debezium's envelope of MongoDB.
    DebeziumMongodb,
}

pub(super) const NAMES: &[(&str, Format)] = &[
    ("debezium-json", Format::DebeziumJson),
    ("debezium-flat", Format::DebeziumFlat),
    ("maxwell", Format::Maxwell),
    ("canal", Format::Canal),
    ("ticdc", Format::Ticdc),
    ("ticdc-csv", Format::TicdcCsv),
    ("wal2json", Format::Wal2json),
    ("dms", Format::Dms),
    ("ogg", Format::Ogg),
    ("striim", Format::Striim),
    ("cloudevents", Format::CloudEvents),
    ("delta-cdf", Format::DeltaCdf),
    ("airbyte", Format::Airbyte),
    ("fivetran", Format::Fivetran),
    ("json", Format::Json),
    ("csv", Format::Csv),
    ("parquet", Format::Parquet),
    ("avro", Format::Avro),
    ("debezium-avro", Format::DebeziumAvro),
    ("debezium-mongodb", Format::DebeziumMongodb),
];

/// Other names that people use.
const ALIASES: &[(&str, Format)] = &[
    ("debezium", Format::DebeziumJson),
    ("maxwell-json", Format::Maxwell),
    ("canal-json", Format::Canal),
    ("ticdc-open", Format::Ticdc),
    ("ticdc-canal-json", Format::Ticdc),
    ("aws-dms", Format::Dms),
    ("cloud-events", Format::CloudEvents),
    ("cloudevents-json", Format::CloudEvents),
    ("goldengate", Format::Ogg),
    ("ogg-json", Format::Ogg),
    ("ndjson", Format::Json),
    ("jsonl", Format::Json),
    ("plain", Format::Json),
    ("plain-json", Format::Json),
];

/// Whether the text of a message is an envelope.
type LooksLike = fn(&str) -> bool;

/// Envelopes by what tells them from others; none of these looks at names of columns.
const ENVELOPES: &[(Format, LooksLike)] = &[
    (Format::CloudEvents, cloudevents::looks_like),
    (Format::DebeziumMongodb, debezium_mongodb::looks_like),
    (Format::DebeziumJson, debezium_json::looks_like),
    (Format::DebeziumFlat, debezium_json::looks_flat),
    (Format::Maxwell, maxwell::looks_like),
    (Format::Canal, canal::looks_like),
    (Format::Ticdc, ticdc::looks_like),
    (Format::Wal2json, wal2json::looks_like),
    (Format::Dms, dms::looks_like),
    (Format::Ogg, ogg::looks_like),
    (Format::Striim, striim::looks_like),
];

impl Format {
    /// The name used in options and messages.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, f)| *f == self).map_or("", |(name, _)| name)
    }

    /// Its messages name schemas that a registry has.
    pub fn is_framed(self) -> bool {
        matches!(self, Format::Avro | Format::DebeziumAvro)
    }

    /// Its rows come as messages, as CSV or as Parquet.
    pub fn is_of_tables(self) -> bool {
        self == Format::Dms || Shape::of_format(self).is_some()
    }

    /// Names of all formats, for help.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// The format of a message, from its envelope alone; plain JSON where there is none that is known.
    pub fn of_message(value: &[u8]) -> Format {
        let Ok(text) = std::str::from_utf8(value) else { return Format::Json };
        let known = ENVELOPES.iter().find(|(_, looks_like)| looks_like(text));
        let shape = || Shape::of_message(text).map_or(Format::Json, Shape::format);
        known.map_or_else(shape, |(format, _)| *format)
    }

    /// The format of a file that begins with this record of CSV.
    pub fn of_csv(record: &str) -> Format {
        if ticdc::looks_like_csv(record) {
            return Format::TicdcCsv;
        }
        let names: Vec<&str> = record.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        Shape::of_names(|name| names.contains(&name)).map_or(Format::Csv, Shape::format)
    }

    /// The format of a record of Kafka: some show in its key or its headers only.
    pub fn of_record(key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header<'_>]) -> Format {
        if cloudevents::in_headers(headers) {
            return Format::CloudEvents;
        }
        if key.is_some_and(ticdc::looks_like_open) {
            return Format::Ticdc;
        }
        value.map_or(Format::Json, Format::of_message)
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
        let mut all = NAMES.iter().chain(ALIASES);
        if let Some((_, format)) = all.find(|(n, _)| *n == lower) {
            return Ok(*format);
        }
        let known = NAMES.iter().chain(ALIASES).map(|(name, _)| *name);
        let near = crate::near::nearest(&lower, known);
        let all = Format::names().collect::<Vec<_>>().join(", ");
        let hint = match near {
            Some(near) => format!("did you mean {near}? The formats are {all}"),
            None => format!("the formats are {all}"),
        };
        Err(UnknownFormat { name: name.to_owned(), hint })
    }
}
