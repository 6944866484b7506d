//! The open interval row of each key: the one whose valid and system interval both have no end.

use super::batches::{Batches, KeyScan};
use super::gather::{Gather, projected_fields};
use super::group::{Event, Groups};
use super::intervals::picks_of;
use super::keys::KeyWalk;
use super::lineage::Histories;
use super::plan::{HISTORY_COLUMNS, TableScan};
use super::source::SortedSource;
use super::values::Values;
use crate::engine::error::Error;
use crate::engine::request::{KeyFilter, ScanStream};
use crate::event::image_column_name;
use crate::id::ColumnId;
use crate::time::FOREVER;
use crate::timeline::{Limits, Rectangles, Tracked, Writer};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rectangles of one key before its row is left out. Rows that take long are asked for seldom.
const LIMITS: Limits = Limits { rows_max: 100_000, steps_max: 1_000_000 };

struct OpenRowScan {
    groups: Groups,
    walk: KeyWalk,
    histories: Histories,
    projection: Vec<ColumnId>,
    gather: Gather,
    starts: [Vec<i64>; 2],
    events: Vec<Event>,
    rectangles: Rectangles,
}

impl TableScan {
    /// Open rows by ascending key, all columns of the latest schema: the key's bytes, the columns, then
    /// `valid_start` and `system_start`. A key whose row takes too long to find has none.
    pub fn open_rows(&self, keys: &KeyFilter) -> Result<ScanStream, Error> {
        let schema = Arc::new(self.meta.schema().clone());
        let projection: Vec<ColumnId> = schema.columns.iter().map(|c| c.id).collect();
        let mut names = vec!["key".to_owned()];
        names.extend(projection.iter().map(|id| image_column_name(*id)));
        let mut fields = vec![Field::new("key", DataType::Binary, false)];
        fields.extend(projected_fields(&schema, &projection)?);
        let extra = ["valid_start", "system_start"].map(|n| Field::new(n, DataType::Int64, false));
        let columns: Vec<String> =
            HISTORY_COLUMNS.iter().map(|c| (*c).to_owned()).chain(names[1..].iter().cloned()).collect();
        let parts = match keys {
            KeyFilter::All => {
                vec![(self.sources.iter().map(|s| 0..s.rows()).collect::<Vec<_>>(), KeyFilter::All)]
            }
            some => self.key_parts(some)?,
        };
        let mut streams: Vec<ScanStream> = Vec::with_capacity(parts.len());
        for (ranges, keys) in parts {
            streams.push(Box::new(Batches::new(OpenRowScan {
                groups: Groups::new(&self.sources, &ranges, &columns, &schema, self.order.clone())?,
                walk: keys.into(),
                histories: self.histories(&columns, &schema),
                projection: projection.clone(),
                gather: Gather::physical(names.clone(), fields.clone(), &extra),
                starts: Default::default(),
                events: Vec::new(),
                rectangles: Rectangles::new(),
            })));
        }
        Ok(Box::new(streams.into_iter().flatten()))
    }

    /// The keys of some sources of the table, ascending; empty ones left out.
    pub fn keys_of(&self, sources: &[Arc<dyn SortedSource>]) -> Result<KeysOf, Error> {
        let columns = ["key", "key_no", "valid_from", "ties", "system", "origin", "position", "ordinal"];
        let ranges: Vec<_> = sources.iter().map(|s| 0..s.rows()).collect();
        let schema = Arc::new(self.meta.schema().clone());
        let groups = Groups::new(sources, &ranges, &columns.map(str::to_owned), &schema, self.order.clone())?;
        Ok(KeysOf { groups: Box::new(groups), events: Vec::new() })
    }
}

/// See [`TableScan::keys_of`].
pub(crate) struct KeysOf {
    groups: Box<Groups>,
    events: Vec<Event>,
}

impl KeysOf {
    /// Up to `n` more keys; fewer only at the end.
    pub fn next(&mut self, n: usize) -> Result<Vec<Vec<u8>>, Error> {
        let mut keys = Vec::new();
        while keys.len() < n && self.groups.next(&mut self.events)? {
            let key = self.groups.key_of(&self.events);
            if !key.is_empty() {
                keys.push(key.to_vec());
            }
        }
        self.groups.retire();
        Ok(keys)
    }
}

impl KeyScan for OpenRowScan {
    fn next_key(&mut self) -> Result<bool, Error> {
        self.walk.next(&mut self.groups, &mut self.events)
    }

    fn add_key(&mut self) -> Result<(), Error> {
        if self.histories.is_truncate_group(&self.groups, &self.events) {
            return Ok(());
        }
        let (lineage, keys) = self.histories.lineage(&mut self.groups, &self.events)?;
        let truncates = self.histories.truncates_of(&self.groups);
        let history = self.histories.history(&self.groups, &lineage, &keys, &truncates);
        let values = Values::new(&history, self.groups.slots());
        let same = |c: u32, a: Writer, b: Writer| values.same(c, a, b);
        let gather = &mut self.gather;
        let mut open = None;
        let emit = |r: crate::timeline::Rectangle<'_>| {
            if r.valid_end == FOREVER && r.system_end == FOREVER {
                let picks = picks_of(&values, r.image, &self.projection, 1, gather);
                open = Some(([r.valid_start, r.system_start], picks));
            }
            ControlFlow::Continue(())
        };
        // What a table tracks shapes interval rows only: here rows answer for points.
        let streamed = self.rectangles.stream(&history, u64::MAX, Tracked::All, &LIMITS, same, emit);
        if let (Ok(_), Some((starts, picks))) = (streamed, open) {
            let first = self.events[0];
            self.gather.push(|i| i.checked_sub(1).map_or((first.slot, first.row), |i| picks[i]));
            self.starts.iter_mut().zip(starts).for_each(|(all, start)| all.push(start));
        }
        Ok(())
    }

    fn gathered(&self) -> &Gather {
        &self.gather
    }

    fn groups(&mut self) -> &mut Groups {
        &mut self.groups
    }

    fn emit(&mut self) -> Result<RecordBatch, Error> {
        let column = |t: &mut Vec<i64>| Arc::new(Int64Array::from(std::mem::take(t))) as ArrayRef;
        let extra = self.starts.iter_mut().map(column).collect();
        let batch = self.gather.emit(self.groups.slots(), extra)?;
        self.groups.retire();
        Ok(batch)
    }
}
