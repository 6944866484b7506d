//! Where events came from and how far that was read, for people: what the catalog keeps of it is
//! spread over several positions.

use super::numbers::Numbers;
use crate::source::SourcePosition;
use asofdb_storage::engine::Catalog;
use serde::Serialize;
use std::collections::BTreeMap;

/// A file or a stream that events were taken from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourceState {
    /// Name of the stream: the path of a file or directory, `topic/partition`, or a declared name.
    pub stream: String,
    /// The file within the stream, if it has files.
    pub file: Option<String>,
    /// The first position that was not read yet.
    pub position: Option<u64>,
    /// Bytes of the file that were read.
    pub bytes: Option<u64>,
    /// Lines of the file that were read.
    pub lines: Option<u64>,
    /// Where a partition of a topic ended when its position was stored.
    pub end: Option<u64>,
}

/// Everything that was read, in the order in which it was first seen; files without messages last.
pub fn sources(catalog: &Catalog) -> Vec<SourceState> {
    let numbers = Numbers::of_catalog(catalog, None);
    let mut read: BTreeMap<(String, u32, String, u32), SourcePosition> = catalog
        .positions
        .iter()
        .filter(|(key, _)| key.starts_with(super::files::POSITION_PREFIX))
        .filter_map(|(_, value)| serde_json::from_value::<SourcePosition>(value.clone()).ok())
        .map(|p| ((p.stream.clone(), p.stream_generation, p.origin.clone(), p.origin_generation), p))
        .collect();
    let mut all = Vec::new();
    for (origin, entry) in catalog.origins.iter().zip(&numbers.origins) {
        let Some(stream) = catalog.streams.get(origin.stream.0 as usize) else { continue };
        let generation = numbers.streams.get(origin.stream.0 as usize).map_or(0, |s| s.state.generation);
        let key = (stream.name.clone(), generation, entry.name.clone(), entry.generation);
        let position = read.remove(&key);
        let known = position.as_ref().map_or(0, |p| p.next).max(entry.next);
        all.push(SourceState {
            stream: stream.name.clone(),
            file: origin.path.clone().or_else(|| origin.file.clone()),
            position: (known > 0).then_some(known),
            bytes: position.as_ref().map(|p| p.bytes).filter(|n| *n > 0),
            lines: position.as_ref().map(|p| p.lines).filter(|n| *n > 0),
            end: position.as_ref().and_then(|p| p.end),
        });
    }
    all.extend(read.into_values().map(|p| SourceState {
        stream: p.stream,
        file: (!p.origin.is_empty()).then_some(p.origin),
        position: Some(p.next),
        bytes: Some(p.bytes),
        lines: Some(p.lines),
        end: p.end,
    }));
    all
}
