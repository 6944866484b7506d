//! Where the value of one cell comes from: the events that the fold of rules B2 and B5 takes it from.

use super::gather::{Gather, internal, projected_fields};
use super::group::{Event, Groups};
use super::keys::KeyWalk;
use super::lineage::Histories;
use super::plan::TableScan;
use crate::engine::error::{Error, ErrorKind};
use crate::engine::request::Bounds;
use crate::event::columns::meta_fields;
use crate::event::image_column_name;
use crate::id::ColumnId;
use crate::schema::TableSchema;
use crate::timeline::{Bound, KeyHistory, Scratch, Truncate, Writer};
use arrow::array::RecordBatch;
use std::sync::Arc;

/// Why a cell is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// One event wrote it; what it wrote may be NULL.
    Set,
    /// Several events wrote leaves of it, the newest first (rule B5).
    Leaves,
    /// There is no row: a delete ended it, or a key change took it away.
    Ended,
    /// There is no row: a truncate of the table ended it (rule B7).
    Truncated,
    /// There is a row, but no event wrote the column since it began.
    NeverWritten,
    /// There is a row, but of the column only placeholders were sent (rule B6).
    OnlyPlaceholders,
    /// There are events of the key that are known by then, but none speaks about that valid time.
    NoneHolds {
        /// The first valid time that one speaks about.
        first: i64,
    },
    /// The key has events, all of them later in system time or in commits.
    NotKnownYet {
        /// The first system time of the events up to the commit; `None` if there are none of those.
        first: Option<i64>,
        /// The first commit.
        commit: u64,
    },
    /// The key has no events.
    UnknownKey,
}

/// The answer to [`crate::engine::Snapshot::why`].
#[derive(Clone, Debug)]
pub struct Why {
    /// Why.
    pub cause: Cause,
    /// The events that the cause names: the columns before images of [`crate::event::columns`], then the
    /// asked one as each event wrote it (not as the row has it).
    pub events: RecordBatch,
}

impl TableScan {
    /// Which events gave `column` of the row of `key` its value at a point.
    pub fn why(
        &self,
        key: &[u8],
        column: ColumnId,
        bounds: &Bounds,
        schema: &Arc<TableSchema>,
    ) -> Result<Why, Error> {
        if schema.key.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "a table without a key has no rows to tell apart"));
        }
        let meta = meta_fields();
        let mut names: Vec<String> = meta.iter().map(|f| f.name().clone()).collect();
        names.push(image_column_name(column));
        let mut columns = names.clone();
        columns.push("key_no".to_owned());
        let histories = self.histories(&columns, schema);
        let mut groups = Groups::empty(self.order.clone());
        let mut gather = {
            let mut fields = meta.to_vec();
            fields.extend(projected_fields(schema, &[column])?);
            Gather::physical(names, fields, &[])
        };
        let mut events = Vec::new();
        let mut walk = KeyWalk::LookedUp {
            keys: vec![key.to_vec()].into_iter(),
            sources: self.sources.clone(),
            columns: columns.clone(),
            schema: schema.clone(),
        };
        let (cause, found) = match walk.next(&mut groups, &mut events)? {
            true => find(&histories, &mut groups, &events, column, bounds)?,
            false => (Cause::UnknownKey, Vec::new()),
        };
        for e in &found {
            gather.push(|_| (e.slot, e.row));
        }
        Ok(Why { cause, events: gather.emit(groups.slots(), Vec::new())? })
    }
}

/// The cause, and the events it names.
fn find(
    histories: &Histories,
    groups: &mut Groups,
    events: &[Event],
    column: ColumnId,
    bounds: &Bounds,
) -> Result<(Cause, Vec<Event>), Error> {
    let (lineage, keys) = histories.lineage(groups, events)?;
    let table_wide = histories.truncate_events(groups)?;
    let truncates = histories.truncates_of(groups);
    let history = histories.history(groups, &lineage, &keys, &truncates);
    let bound = Bound { valid: bounds.valid, system: bounds.system, commit: bounds.commit.0 };
    let place = |number: u32| {
        let row = history.event(number).row;
        Event { slot: (row >> 32) as u32, row: row as u32 }
    };
    let Some(first) = history.deciding(&bound) else {
        if let Some(n) = history.truncate_at(&bound) {
            return Ok((Cause::Truncated, of_truncate(groups, &table_wide, &truncates[n as usize])));
        }
        return Ok((absent(&history, &bound), Vec::new()));
    };
    if history.event(first).op.ends_row() {
        return Ok((Cause::Ended, vec![place(first)]));
    }
    let mut writers = [Writer::Null];
    history.resolve(&bound, &[column.0], &mut writers, &mut Scratch::default()).map_err(internal)?;
    let mut found = Vec::new();
    let mut writer = writers[0];
    while let Writer::Merge(n) = writer {
        let merge = history.merge(n);
        found.push(place(merge.event));
        writer = merge.below;
    }
    Ok(match (writer, found.is_empty()) {
        (Writer::Event(n), alone) => {
            found.push(place(n));
            (if alone { Cause::Set } else { Cause::Leaves }, found)
        }
        (Writer::Unknown, true) => (Cause::OnlyPlaceholders, found),
        (_, true) => (Cause::NeverWritten, found),
        (_, false) => (Cause::Leaves, found),
    })
}

/// Why no event decides, where no truncate did it.
fn absent(history: &KeyHistory<'_>, bound: &Bound) -> Cause {
    let own = || history.key_range(0).map(|n| history.event(n));
    let known = own().filter(|e| bound.knows(e));
    if let Some(first) = known.map(|e| e.order.valid_from).min() {
        return Cause::NoneHolds { first };
    }
    let committed = own().filter(|e| e.commit <= bound.commit);
    Cause::NotKnownYet {
        first: committed.map(|e| e.order.system).min(),
        commit: own().map(|e| e.commit).min().unwrap_or(0),
    }
}

/// The loaded row of a truncate.
fn of_truncate(groups: &Groups, loaded: &[Event], truncate: &Truncate<'_>) -> Vec<Event> {
    let order = &truncate.order;
    let is_it = |e: &&Event| {
        let (batch, row) = (groups.loaded(e.slot), e.row as usize);
        let rank = groups.order().rank(batch.origin(row));
        (rank, batch.position(row), batch.ordinal(row), batch.commit(row))
            == (order.origin_rank, order.position, order.ordinal, truncate.commit)
    };
    loaded.iter().filter(is_it).take(1).copied().collect()
}

impl Histories {
    /// The events under the empty key, which are truncates of the table.
    fn truncate_events(&self, groups: &mut Groups) -> Result<Vec<Event>, Error> {
        if self.truncates.is_empty() { Ok(Vec::new()) } else { self.load_key(groups, &[]) }
    }
}
