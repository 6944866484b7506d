//! What the store knows beside events: tables, streams, origins, sources, commits. Every change
//! stands in a log frame, so the catalog can be rebuilt from the log.

use super::quarantine::Resolved;
use crate::id::{OriginId, SourceId, StreamId, TableId};
use crate::schema::TableMeta;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A stream: see rule B3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Its number, given when the store first took an event from it.
    pub id: StreamId,
    /// Its name: a path, `topic/partition`, or what `--source-name` said. Names may repeat.
    pub name: String,
}

/// An origin: a part of a stream inside which positions are plain numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its number.
    pub id: OriginId,
    /// The stream it belongs to.
    pub stream: StreamId,
    /// The file within a directory stream, as a path relative to the directory.
    pub file: Option<String>,
    /// The file shown as `_ingest_file_name`.
    pub path: Option<String>,
}

/// What envelopes say of where events come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourceInfo {
    /// Its number; 0 is the empty one.
    pub id: SourceId,
    /// Server or connector name.
    pub server: Option<String>,
    /// Database.
    pub database: Option<String>,
    /// Schema.
    pub schema: Option<String>,
    /// Table.
    pub table: Option<String>,
}

/// One change of the catalog, as the log keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatalogChange {
    /// A new table, or a new state of one.
    Table(TableMeta),
    /// A new stream.
    Stream(Stream),
    /// A new origin.
    Origin(Origin),
    /// A new source.
    Source(SourceInfo),
}

/// The catalog as of one commit.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Tables by number.
    pub tables: BTreeMap<TableId, Arc<TableMeta>>,
    /// Streams; `streams[i].id == StreamId(i)`.
    pub streams: Vec<Stream>,
    /// Origins; `origins[i].id == OriginId(i)`.
    pub origins: Vec<Origin>,
    /// Sources; `sources[i].id == SourceId(i)`; the first is the empty one.
    pub sources: Vec<SourceInfo>,
    /// Where each source of events was read up to: opaque to the engine, keyed by the caller.
    pub positions: BTreeMap<String, serde_json::Value>,
}

impl Catalog {
    /// The table called `name`, compared exactly.
    pub fn table(&self, name: &str) -> Option<&Arc<TableMeta>> {
        self.tables.values().find(|t| t.name == name)
    }
}

/// One commit, as `commits()` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommitInfo {
    /// Number of the commit: 1, 2, 3, …
    pub seq: u64,
    /// Its instant, microseconds since 1970; strictly increasing.
    pub at: i64,
    /// Events it stored.
    pub events: u64,
    /// Messages it quarantined.
    pub quarantined: u64,
    /// Messages put aside by earlier commits that this one settled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolved: Vec<Resolved>,
    /// What made it: `ingest`, `accept-gap`, …; with counts by kind, as JSON.
    pub note: serde_json::Value,
}
