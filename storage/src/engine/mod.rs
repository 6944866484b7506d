//! The engine: commit protocol, recovery, readers' snapshots, flushing, compaction and upkeep.

mod api;
mod catalog;
mod commit;
mod commits;
mod error;
#[cfg(test)]
mod fixtures;
mod flush;
mod history;
mod keyed;
mod look_up;
mod maintain;
mod manifest;
mod memory;
mod merging;
mod open;
mod point_scan;
mod quarantine;
mod rebuild;
mod replay;
mod request;
mod runs;
mod salvage;
mod scan;
mod shared;
mod shrink;
mod stale;
mod upkeep;
mod verify;
mod view;

pub use api::{Engine, EngineOptions, OpenMode, Snapshot};
pub use catalog::{Catalog, CatalogChange, CommitInfo, Origin, SourceInfo, Stream};
pub use error::{Error, ErrorKind};
pub use look_up::KeyLookUp;
pub use point_scan::SortedPoints;
pub use quarantine::{Resolutions, Resolved};
pub use request::{
    Bounds, CommitRequest, KeyFilter, PointRequest, Quarantined, RangeSpec, RowBlock, ScanKind, ScanRequest,
    ScanStream, StoredEvent,
};
pub use salvage::Salvaged;
pub use scan::{Cause, ScanCounts, ScanFigures, Touch, Touching, Why};
pub use shared::Components;
pub use shrink::Shrunk;
pub use upkeep::{Status, TableStatus, VerifyReport};
pub use verify::FullReport;

/// Raw bytes in JSON: text where they are UTF-8, else `{"hex": "…"}`.
mod bytes_as_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Hex { hex: String },
    }

    pub fn serialize<S: Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Form::Text(text.to_owned()).serialize(s),
            Err(_) => Form::Hex { hex: crate::hex::encode(bytes) }.serialize(s),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
        match Form::deserialize(d)? {
            Form::Text(text) => Ok(text.into_bytes()),
            Form::Hex { hex } => {
                crate::hex::decode(&hex).ok_or_else(|| serde::de::Error::custom("not hexadecimal"))
            }
        }
    }
}
