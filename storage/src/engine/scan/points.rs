//! Many point questions at once, and the stored events of keys.

use super::gather::{Gather, internal};
use super::group::{Event, Groups};
use super::keys::KeyWalk;
use super::lineage::Histories;
use super::look_up::PointReader;
use super::plan::{HISTORY_COLUMNS, TableScan};
use super::rows::{Qualifier, pick_newest};
use super::single::{KeyReader, SLOTS_MAX};
use crate::engine::error::Error;
use crate::engine::request::{Bounds, KeyFilter, PointRequest, StoredEvent};
use crate::event::Op;
use crate::id::{ColumnId, OriginId, StreamId};
use crate::time::CommitSeq;
use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use std::ops::Range;
use std::sync::Arc;

impl TableScan {
    /// Answers point questions; see [`crate::engine::Snapshot::points`].
    pub fn points(
        &self,
        requests: &[PointRequest],
        projection: &[ColumnId],
    ) -> Result<(Vec<u32>, RecordBatch), Error> {
        let schema = self.latest_schema();
        if let [one] = requests {
            let reader = PointReader::new(self.clone(), projection, &schema)?;
            return Ok(match reader.row(&one.key, one.bounds)? {
                Some(row) => (vec![0; row.num_rows()], row),
                None => (Vec::new(), RecordBatch::new_empty(reader.fields().clone())),
            });
        }
        let mut by_key: Vec<u32> = (0..requests.len() as u32).collect();
        by_key.sort_by(|a, b| requests[*a as usize].key.cmp(&requests[*b as usize].key));
        let keys = distinct_keys(requests, &by_key);
        let columns = self.point_columns(projection);
        let mut answer = Answer {
            requests,
            by_key,
            next: 0,
            projection,
            gather: Gather::new(&schema, projection, &[])?,
            pending: Vec::new(),
            found: Vec::new(),
            batches: Vec::new(),
            picks: Vec::new(),
            traits: self.sources.iter().map(|s| s.traits()).collect(),
        };
        if self.looks_up(keys.len()) {
            let mut reader = KeyReader::new(self, &columns, &schema);
            let mut events = Vec::new();
            for key in &keys {
                if reader.read(key, &mut events)? {
                    answer.key(&mut reader.groups, &events, reader.histories.as_ref())?;
                }
                if reader.groups.slots().len() >= SLOTS_MAX {
                    answer.emit(&mut reader.groups)?;
                }
            }
            answer.emit(&mut reader.groups)?;
            return answer.finish(&schema);
        }
        for (ranges, keys) in self.key_parts(&KeyFilter::Keys(keys))? {
            let mut groups = Groups::new(&self.sources, &ranges, &columns, &schema, self.order.clone())?;
            let histories = self.needs_histories().then(|| self.histories(&columns, &schema));
            let mut walk = KeyWalk::from(keys);
            let mut events = Vec::new();
            while walk.next(&mut groups, &mut events)? {
                answer.key(&mut groups, &events, histories.as_ref())?;
                if answer.gather.is_full() {
                    answer.emit(&mut groups)?;
                }
            }
            answer.emit(&mut groups)?;
        }
        answer.finish(&schema)
    }

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

    /// Names of the columns that point questions read: any of them may be bounded on any axis.
    fn point_columns(&self, projection: &[ColumnId]) -> Vec<String> {
        let times = ["valid_from", "valid_to", "system", "commit"].into_iter();
        self.row_columns(projection, times, true)
    }
}

fn distinct_keys(requests: &[PointRequest], by_key: &[u32]) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for i in by_key {
        let key = &requests[*i as usize].key;
        if keys.last() != Some(key) {
            keys.push(key.clone());
        }
    }
    keys
}

/// Rows found so far.
struct Answer<'a> {
    requests: &'a [PointRequest],
    by_key: Vec<u32>,
    next: usize,
    projection: &'a [ColumnId],
    gather: Gather,
    pending: Vec<u32>,
    found: Vec<u32>,
    batches: Vec<RecordBatch>,
    picks: Vec<(u32, u32)>,
    traits: Vec<super::source::Traits>,
}

impl Answer<'_> {
    /// Answers all questions about the key of `events`.
    fn key(
        &mut self,
        groups: &mut Groups,
        events: &[Event],
        histories: Option<&Histories>,
    ) -> Result<(), Error> {
        let questions = self.questions(groups.key_of(events));
        let histories = histories.filter(|h| h.needed(groups, events));
        if histories.is_none() && groups.loaded(events[0].slot).op(events[0].row as usize) == Op::Truncate {
            return Ok(());
        }
        for at in questions {
            let number = self.by_key[at];
            let bounds: Bounds = self.requests[number as usize].bounds;
            let copies = if let Some(histories) = histories {
                let (picks, gather) = (&mut self.picks, &mut self.gather);
                histories.resolve(groups, events, &bounds, self.projection, picks, gather)?
            } else {
                let qualifier = Qualifier::new(bounds, &self.traits);
                pick_newest(groups, events, &qualifier, self.projection, &mut self.picks) as usize
            };
            for _ in 0..copies {
                self.gather.push(|i| self.picks[i]);
                self.pending.push(number);
            }
        }
        Ok(())
    }

    /// The questions about `key`; keys come ascending.
    fn questions(&mut self, key: &[u8]) -> Range<usize> {
        let key_at = |at: usize| self.by_key.get(at).map(|i| self.requests[*i as usize].key.as_slice());
        let mut start = self.next;
        while key_at(start).is_some_and(|k| k < key) {
            start += 1;
        }
        let mut end = start;
        while key_at(end).is_some_and(|k| k == key) {
            end += 1;
        }
        self.next = end;
        start..end
    }

    fn emit(&mut self, groups: &mut Groups) -> Result<(), Error> {
        if self.gather.rows() > 0 {
            self.batches.push(self.gather.emit(groups.slots(), Vec::new())?);
            self.found.append(&mut self.pending);
        }
        groups.retire();
        Ok(())
    }

    /// Brings the rows into the order of the questions.
    fn finish(mut self, schema: &crate::schema::TableSchema) -> Result<(Vec<u32>, RecordBatch), Error> {
        if self.batches.is_empty() {
            let empty = Gather::new(schema, self.projection, &[])?.emit(&[], Vec::new())?;
            return Ok((Vec::new(), empty));
        }
        let all = match self.batches.as_slice() {
            [one] => one.clone(),
            many => concat_batches(&many[0].schema(), many).map_err(internal)?,
        };
        if self.found.is_sorted() {
            return Ok((self.found, all));
        }
        let mut order: Vec<u32> = (0..self.found.len() as u32).collect();
        order.sort_by_key(|i| self.found[*i as usize]);
        self.found.sort_unstable();
        if self.projection.is_empty() {
            return Ok((self.found, all));
        }
        let rows = take_record_batch(&all, &UInt32Array::from(order)).map_err(internal)?;
        Ok((self.found, rows))
    }
}

impl TableScan {
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
