//! Keys for which the plain fold does not do: leaves of structs (rule B5), truncates of the table (rule
//! B7), key changes (rule B8), and tables without a key (rule B15). Everything here goes through [`crate::timeline`].

use super::gather::{Gather, NULL_SLOT, internal};
use super::group::{Event, Groups};
use super::loaded::Loaded;
use super::source::SortedSource;
use super::values::Values;
use crate::engine::error::{Error, ErrorKind};
use crate::engine::request::Bounds;
use crate::event::Op;
use crate::id::ColumnId;
use crate::schema::TableSchema;
use crate::timeline::{Bound, EventOrder, KeyEvent, KeyHistory, RowHistory, Scratch, Truncate, Writer};
use std::sync::Arc;

/// A truncate of the table, as it is kept in memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredTruncate {
    pub valid_from: i64,
    pub ties: Option<Vec<u8>>,
    pub system: i64,
    pub origin: u32,
    pub position: u64,
    pub ordinal: u32,
    pub commit: u64,
    pub token: Vec<u8>,
    pub source: u32,
}

/// What of the catalog the timeline needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Stream of each origin.
    pub streams: Vec<u32>,
    /// Server number of each source; 0 = none.
    pub servers: Vec<u32>,
}

impl Names {
    fn stream(&self, origin: u32) -> u32 {
        self.streams.get(origin as usize).copied().unwrap_or(u32::MAX)
    }

    fn server(&self, source: u32) -> u32 {
        self.servers.get(source as usize).copied().unwrap_or(0)
    }
}

/// Builds histories of keys out of loaded batches.
pub(crate) struct Histories {
    pub sources: Vec<Arc<dyn SortedSource>>,
    /// Columns to load for old keys: all that a history and the projection read.
    pub columns: Vec<String>,
    pub schema: Arc<TableSchema>,
    pub system_declared: bool,
    pub truncates: Arc<Vec<StoredTruncate>>,
    pub names: Arc<Names>,
}

/// The events of a key and of the keys it was moved from, as loaded rows.
pub(crate) type Lineage = Vec<Vec<Event>>;

impl Histories {
    /// Whether the plain fold over `events` would not do.
    pub fn needed(&self, groups: &Groups, events: &[Event]) -> bool {
        self.schema.key.is_empty()
            || !self.truncates.is_empty()
            || events.iter().any(|e| {
                let (batch, row) = (groups.loaded(e.slot), e.row as usize);
                batch.previous(row).is_some() || batch.writes_leaves(row)
            })
    }

    /// Loads the events of all keys that the image of the key `events` belong to may come from.
    pub fn lineage(&self, groups: &mut Groups, events: &[Event]) -> Result<(Lineage, Vec<Vec<u8>>), Error> {
        let mut keys = vec![groups.key_of(events).to_vec()];
        let mut lineage = vec![events.to_vec()];
        let mut at = 0;
        while at < lineage.len() {
            for e in lineage[at].clone() {
                let batch = groups.loaded(e.slot);
                let Some(old) = batch.previous(e.row as usize) else { continue };
                if !keys.iter().any(|k| k == old) {
                    keys.push(old.to_vec());
                    let events = self.load_key(groups, &keys[keys.len() - 1])?;
                    lineage.push(events);
                }
            }
            at += 1;
            if keys.len() > crate::timeline::CHAIN_HOPS_MAX as usize {
                return Err(Error::new(ErrorKind::Limit, "a row was moved from more than 4096 other keys"));
            }
        }
        Ok((lineage, keys))
    }

    /// The events of one key from all sources, in no particular order.
    pub fn load_key(&self, groups: &mut Groups, key: &[u8]) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        for source in &self.sources {
            let Some(batch) = source.rows_of_key(key, &columns, &self.schema)? else { continue };
            let loaded = Loaded::new(batch)?;
            let n = loaded.len() as u32;
            let slot = groups.add_slot(Arc::new(loaded));
            events.extend((0..n).map(|row| Event { slot, row }));
        }
        Ok(events)
    }

    /// Where the columns stand at a point, for a row of `gather`, and how many equal rows there are (more than one only in
    /// tables without a key).
    pub fn resolve(
        &self,
        groups: &mut Groups,
        events: &[Event],
        bounds: &Bounds,
        projection: &[ColumnId],
        picks: &mut Vec<(u32, u32)>,
        gather: &mut Gather,
    ) -> Result<usize, Error> {
        if self.is_truncate_group(groups, events) {
            return Ok(0);
        }
        let (lineage, keys) = self.lineage(groups, events)?;
        let truncates = self.truncates_of(groups);
        let bound = Bound { valid: bounds.valid, system: bounds.system, commit: bounds.commit.0 };
        picks.clear();
        picks.resize(projection.len(), (NULL_SLOT, 0));
        if self.schema.key.is_empty() {
            let history = self.history(groups, &lineage, &keys, &truncates);
            let copies = RowHistory::new().count(&history, &bound);
            if let Some(e) = events.iter().find(|e| !groups.loaded(e.slot).op(e.row as usize).ends_row()) {
                picks.fill((e.slot, e.row));
            }
            return Ok(copies as usize);
        }
        let columns: Vec<u32> = projection.iter().map(|c| c.0).collect();
        let mut writers = vec![Writer::Null; columns.len()];
        let mut scratch = Scratch::default();
        let history = self.history(groups, &lineage, &keys, &truncates);
        let found = history.resolve(&bound, &columns, &mut writers, &mut scratch).map_err(internal)?;
        let values = Values::new(&history, groups.slots());
        for (i, pick) in picks.iter_mut().enumerate() {
            *pick = values.pick(projection[i], writers[i], i, gather);
        }
        Ok(found.is_some() as usize)
    }

    /// Whether `events` are the truncates of the table, which stand under the empty key.
    pub fn is_truncate_group(&self, groups: &Groups, events: &[Event]) -> bool {
        events.first().is_some_and(|e| groups.loaded(e.slot).op(e.row as usize) == Op::Truncate)
    }

    /// The truncates in the form of the timeline.
    pub fn truncates_of(&self, groups: &Groups) -> Vec<Truncate<'_>> {
        let truncate = |t: &'_ StoredTruncate| -> Truncate<'_> {
            // The lifetime of the borrow is that of `self.truncates`.
            Truncate {
                order: EventOrder {
                    valid_from: t.valid_from,
                    ties: None,
                    system: t.system,
                    origin_rank: groups.order().rank(t.origin),
                    position: t.position,
                    ordinal: t.ordinal,
                },
                commit: t.commit,
                stream: self.names.stream(t.origin),
                server: self.names.server(t.source),
                token: &[],
            }
        };
        let mut all: Vec<Truncate<'_>> = self
            .truncates
            .iter()
            .map(|t| {
                let mut made = truncate(t);
                made.order.ties = t.ties.as_deref();
                made.token = &t.token;
                made
            })
            .collect();
        Truncate::sort(&mut all);
        all
    }

    /// The history of a key, borrowing from the loaded batches.
    pub fn history<'a>(
        &'a self,
        groups: &'a Groups,
        lineage: &Lineage,
        keys: &[Vec<u8>],
        truncates: &'a [Truncate<'a>],
    ) -> KeyHistory<'a> {
        let mut history = KeyHistory::new(self.schema.columns.len() as u32, self.system_declared, truncates);
        for events in lineage {
            history.begin_key();
            for e in events {
                history.push(self.key_event(groups, *e, keys));
            }
        }
        history.finish();
        history
    }

    fn key_event<'a>(&self, groups: &'a Groups, e: Event, keys: &[Vec<u8>]) -> KeyEvent<'a> {
        let (batch, row) = (groups.loaded(e.slot), e.row as usize);
        let order = EventOrder {
            valid_from: batch.valid_from(row),
            ties: batch.ties(row),
            system: batch.system(row),
            origin_rank: groups.order().rank(batch.origin(row)),
            position: batch.position(row),
            ordinal: batch.ordinal(row),
        };
        let previous = batch.previous(row).and_then(|old| keys.iter().position(|k| k == old));
        KeyEvent {
            valid_to: batch.valid_to(row),
            op: batch.op(row),
            full: batch.is_full(row),
            mask: batch.mask(row),
            mask_rest: batch.mask_rest(row),
            unknown: batch.unknown(row),
            leaves: batch.writes_leaves(row),
            previous: previous.map(|n| n as u32),
            previous_deleted: batch.previous_deleted(row),
            stream: self.names.stream(batch.origin(row)),
            server: self.names.server(batch.source(row)),
            token: batch.token(row).unwrap_or(&[]),
            ..KeyEvent::new(order, batch.commit(row), (e.slot as u64) << 32 | e.row as u64)
        }
    }
}

/// The truncates that a source holds.
pub(crate) fn truncates_of_source(
    source: &dyn SortedSource,
    schema: &Arc<TableSchema>,
) -> Result<Vec<StoredTruncate>, Error> {
    let columns: Vec<String> = super::plan::HISTORY_COLUMNS.iter().map(|c| (*c).to_owned()).collect();
    let mut found = Vec::new();
    for batch in source.scan(&columns, source.find_key(&[])?, schema)? {
        let loaded = Loaded::new(batch?)?;
        found.extend((0..loaded.len()).map(|row| StoredTruncate {
            valid_from: loaded.valid_from(row),
            ties: loaded.ties(row).map(<[u8]>::to_vec),
            system: loaded.system(row),
            origin: loaded.origin(row),
            position: loaded.position(row),
            ordinal: loaded.ordinal(row),
            commit: loaded.commit(row),
            token: loaded.token(row).unwrap_or(&[]).to_vec(),
            source: loaded.source(row),
        }));
    }
    Ok(found)
}
