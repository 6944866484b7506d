//! Every event with the row after it: what `history()` shows.

use super::batches::KeyScan;
use super::gather::{Gather, NULL_SLOT, internal, projected_fields};
use super::group::{Event, Groups};
use super::keys::KeyWalk;
use super::lineage::Histories;
use super::values::Values;
use crate::engine::error::Error;
use crate::engine::request::ScanRequest;
use crate::event::Op;
use crate::event::columns::{META_COLUMNS, meta_fields};
use crate::event::image_column_name;
use crate::id::ColumnId;
use crate::timeline::{Bound, Writer};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Field};
use std::sync::Arc;

/// Where the value of each projected column stands.
type Picks = Vec<(u32, u32)>;

pub(crate) struct EventScan {
    groups: Groups,
    walk: KeyWalk,
    histories: Histories,
    commit: u64,
    projection: Vec<ColumnId>,
    key: Vec<ColumnId>,
    gather: Gather,
    exists: Vec<bool>,
    events: Vec<Event>,
}

impl KeyScan for EventScan {
    fn next_key(&mut self) -> Result<bool, Error> {
        self.walk.next(&mut self.groups, &mut self.events)
    }

    fn add_key(&mut self) -> Result<(), Error> {
        let events = std::mem::take(&mut self.events);
        let keyless = self.histories.schema.key.is_empty();
        if self.histories.is_truncate_group(&self.groups, &events) || keyless {
            for e in events.iter().rev() {
                let exists = !self.groups.loaded(e.slot).op(e.row as usize).ends_row();
                self.add(*e, exists, |_| (e.slot, e.row));
            }
        } else {
            self.add_images(&events)?;
        }
        self.events = events;
        Ok(())
    }

    fn gathered(&self) -> &Gather {
        &self.gather
    }

    fn groups(&mut self) -> &mut Groups {
        &mut self.groups
    }

    fn emit(&mut self) -> Result<RecordBatch, Error> {
        let exists: ArrayRef = Arc::new(BooleanArray::from(std::mem::take(&mut self.exists)));
        let batch = self.gather.emit(self.groups.slots(), vec![exists])?;
        self.groups.retire();
        Ok(batch)
    }
}

impl EventScan {
    pub fn new(
        groups: Groups,
        walk: KeyWalk,
        histories: Histories,
        request: &ScanRequest,
    ) -> Result<EventScan, Error> {
        let meta = meta_fields();
        let mut names: Vec<String> = meta.iter().map(|f| f.name().clone()).collect();
        names.extend(request.projection.iter().map(|id| image_column_name(*id)));
        let nullable = |f: &Field| Field::new(f.name(), f.data_type().clone(), true);
        let mut fields: Vec<Field> = meta.iter().map(nullable).collect();
        fields.extend(projected_fields(&request.schema, &request.projection)?);
        let exists = Field::new("exists", DataType::Boolean, false);
        Ok(EventScan {
            groups,
            walk,
            histories,
            commit: request.commit.0,
            projection: request.projection.clone(),
            key: request.schema.key.clone(),
            gather: Gather::physical(names, fields, &[exists]),
            exists: Vec::new(),
            events: Vec::new(),
        })
    }

    fn add_images(&mut self, events: &[Event]) -> Result<(), Error> {
        let (lineage, keys) = self.histories.lineage(&mut self.groups, events)?;
        let truncates = self.histories.truncates_of(&self.groups);
        let history = self.histories.history(&self.groups, &lineage, &keys, &truncates);
        let values = Values::new(&history, self.groups.slots());
        let columns: Vec<u32> = self.projection.iter().map(|c| c.0).collect();
        let mut writers = vec![Writer::Null; columns.len()];
        let mut scratch = crate::timeline::Scratch::default();
        scratch.limit_steps(u64::MAX);
        let mut rows: Vec<(Event, bool, Picks)> = Vec::with_capacity(events.len());
        for number in history.key_range(0) {
            let event = history.event(number);
            if event.commit > self.commit || event.op == Op::MovedAway {
                continue;
            }
            let place_of = Event { slot: (event.row >> 32) as u32, row: event.row as u32 };
            if event.op.ends_row() {
                let own = |id: &ColumnId| match self.key.contains(id) {
                    true => (place_of.slot, place_of.row),
                    false => (NULL_SLOT, 0),
                };
                rows.push((place_of, false, self.projection.iter().map(own).collect()));
                continue;
            }
            let bound = Bound { valid: event.order.valid_from, system: i64::MAX, commit: self.commit };
            writers.fill(Writer::Null);
            history.image_of(number, &bound, &columns, &mut writers, &mut scratch).map_err(internal)?;
            let mut picks = Picks::with_capacity(writers.len());
            for (i, (id, writer)) in self.projection.iter().zip(&writers).enumerate() {
                picks.push(values.pick(*id, *writer, META_COLUMNS + i, &mut self.gather));
            }
            rows.push((place_of, true, picks));
        }
        drop(values);
        drop(history);
        drop(truncates);
        for (e, exists, picks) in rows {
            self.add(e, exists, |i| picks[i]);
        }
        Ok(())
    }

    /// Adds an event; `pick` gives the place of each projected column.
    fn add(&mut self, e: Event, exists: bool, pick: impl Fn(usize) -> (u32, u32)) {
        if self.groups.loaded(e.slot).commit(e.row as usize) > self.commit
            || self.groups.loaded(e.slot).op(e.row as usize) == Op::MovedAway
        {
            return;
        }
        self.gather.push(|i| i.checked_sub(META_COLUMNS).map_or((e.slot, e.row), &pick));
        self.exists.push(exists);
    }
}
