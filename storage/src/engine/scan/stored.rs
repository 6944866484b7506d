//! Stored events, for intake.

use super::group::{Event, Groups};
use super::keys::KeyWalk;
use super::plan::{HISTORY_COLUMNS, TableScan};
use super::single::KeyReader;
use crate::engine::error::Error;
use crate::engine::request::{KeyFilter, StoredEvent};
use crate::id::{OriginId, StreamId};
use crate::time::CommitSeq;
use std::sync::Arc;

impl TableScan {
    /// The stored events of each key, ascending in rule B3 order.
    pub fn key_events(&self, keys: &[Vec<u8>]) -> Result<Vec<Vec<StoredEvent>>, Error> {
        let schema = self.latest_schema();
        let mut columns: Vec<String> = HISTORY_COLUMNS.iter().map(|c| (*c).to_owned()).collect();
        columns.extend(["token_ordinal", "content", "operation_id"].map(str::to_owned));
        let mut sorted: Vec<Vec<u8>> = keys.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let mut found = std::collections::HashMap::new();
        if self.looks_up(sorted.len()) {
            let mut reader = KeyReader::new(self, &columns, &schema);
            let mut events = Vec::new();
            for key in sorted {
                if reader.read(&key, &mut events)? {
                    let stored = events.iter().rev().map(|e| self.stored_event(&reader.groups, *e)).collect();
                    found.insert(key, stored);
                }
                reader.groups.retire();
            }
            return Ok(keys.iter().map(|k| found.get(k).cloned().unwrap_or_default()).collect());
        }
        for (ranges, keys) in self.key_parts(&KeyFilter::Keys(sorted))? {
            let mut groups = Groups::new(&self.sources, &ranges, &columns, &schema, self.order.clone())?;
            let mut walk = KeyWalk::from(keys);
            let mut events = Vec::new();
            while walk.next(&mut groups, &mut events)? {
                let stored = events.iter().rev().map(|e| self.stored_event(&groups, *e)).collect();
                found.insert(groups.key_of(&events).to_vec(), stored);
                groups.retire();
            }
        }
        Ok(keys.iter().map(|k| found.get(k).cloned().unwrap_or_default()).collect())
    }

    fn stored_event(&self, groups: &Groups, e: Event) -> StoredEvent {
        let (batch, row) = (groups.loaded(e.slot), e.row as usize);
        let origin = batch.origin(row);
        StoredEvent {
            op: batch.op(row),
            valid_from: batch.valid_from(row),
            system: batch.system(row),
            commit: CommitSeq(batch.commit(row)),
            stream: StreamId(self.names.streams.get(origin as usize).copied().unwrap_or(u32::MAX)),
            origin: OriginId(origin),
            position: batch.position(row),
            ordinal: batch.ordinal(row),
            token: batch.token(row).unwrap_or(&[]).to_vec(),
            token_ordinal: batch.token_ordinal(row),
            content: batch.content(row),
            operation_id: batch.operation_id(row).map(<[u8]>::to_vec),
        }
    }

    /// Operation ids of all stored events with the hash of each event's content.
    pub fn operation_ids(&self) -> Result<std::collections::HashMap<Vec<u8>, u64>, Error> {
        let schema = Arc::new(self.meta.schema().clone());
        let columns = ["key_no", "operation_id", "content"].map(str::to_owned);
        let mut ids = std::collections::HashMap::new();
        for source in &self.sources {
            for batch in source.scan(&columns, 0..source.rows(), &schema)? {
                let loaded = super::loaded::Loaded::new(batch?)?;
                for row in 0..loaded.len() {
                    if let Some(id) = loaded.operation_id(row) {
                        ids.insert(id.to_vec(), loaded.content(row).unwrap_or(0));
                    }
                }
            }
        }
        Ok(ids)
    }
}
