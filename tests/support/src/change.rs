//! One change of a history.

use crate::object::Object;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What a change gives for one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    /// NULL.
    Null,
    /// A placeholder: the value was not sent.
    Unknown,
    /// A value.
    Int(i64),
    /// An object, written as a whole.
    Object(Object),
    /// An object of which only the leaves are written, unless the change is full.
    Leaves(Object),
}

impl Cell {
    /// The value as interval rows show and compare it; objects as their codes.
    pub fn shown(self) -> Option<i64> {
        match self {
            Cell::Int(v) => Some(v),
            Cell::Object(object) | Cell::Leaves(object) => Some(object.code()),
            Cell::Null | Cell::Unknown => None,
        }
    }
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// Writes a row.
    Upsert,
    /// Ends a row.
    Delete,
    /// Ends every row; its key means nothing.
    Truncate,
}

/// One change: what a message says, and when and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The kind.
    pub act: Act,
    /// Key of the row.
    pub key: u32,
    /// Key before the change, if it changes it.
    pub previous: Option<u32>,
    /// Deletes of the previous key at the same valid time are part of the key change.
    pub previous_deleted: bool,
    /// Columns that are not given are NULL; otherwise they stay as they were.
    pub full: bool,
    /// Given columns.
    pub cells: BTreeMap<u32, Cell>,
    /// Valid time.
    pub valid: i64,
    /// Own end in valid time, exclusive.
    pub valid_to: Option<i64>,
    /// Sequence tie-break; `None` is before all.
    pub tie: Option<u8>,
    /// System time.
    pub system: i64,
    /// Commit number.
    pub commit: u64,
    /// Number of the stream, which is also its rank.
    pub stream: u32,
    /// Position within the stream; unique there.
    pub position: u64,
    /// Server and log position, if usable.
    pub log: Option<(u32, u8)>,
}

impl Change {
    fn new(act: Act, key: u32, valid: i64, system: i64) -> Change {
        Change {
            act,
            key,
            previous: None,
            previous_deleted: false,
            full: act == Act::Upsert,
            cells: BTreeMap::new(),
            valid,
            valid_to: None,
            tie: None,
            system,
            commit: 1,
            stream: 0,
            position: 0,
            log: None,
        }
    }

    /// A full upsert.
    pub fn upsert(key: u32, valid: i64, system: i64, cells: &[(u32, i64)]) -> Change {
        let cells = cells.iter().map(|(c, v)| (*c, Cell::Int(*v))).collect();
        Change { cells, ..Change::new(Act::Upsert, key, valid, system) }
    }

    /// An upsert that leaves columns which are not given as they were.
    pub fn partial(key: u32, valid: i64, system: i64, cells: &[(u32, i64)]) -> Change {
        Change { full: false, ..Change::upsert(key, valid, system, cells) }
    }

    /// A delete.
    pub fn delete(key: u32, valid: i64, system: i64) -> Change {
        Change::new(Act::Delete, key, valid, system)
    }

    /// A truncate of the whole table.
    pub fn truncate(valid: i64, system: i64) -> Change {
        Change::new(Act::Truncate, 0, valid, system)
    }

    /// Whether the change writes a value or NULL to a column.
    pub fn authors(&self, column: u32) -> bool {
        match self.cells.get(&column) {
            Some(cell) => *cell != Cell::Unknown,
            None => self.full,
        }
    }

    /// The change as one flat JSON object: `op` (`u`, `d`, `t`), `key`, `valid`, `valid_to`, `system`,
    /// and the authored columns as `c0`, `c1`, …; columns that a full change does not give are null,
    /// placeholders are left out.
    pub fn to_json(&self, columns: u32) -> Value {
        let op = match self.act {
            Act::Upsert => "u",
            Act::Delete => "d",
            Act::Truncate => "t",
        };
        let mut object = Map::new();
        object.insert("op".into(), json!(op));
        if self.act != Act::Truncate {
            object.insert("key".into(), json!(self.key));
        }
        object.insert("valid".into(), json!(self.valid));
        if let Some(end) = self.valid_to {
            object.insert("valid_to".into(), json!(end));
        }
        object.insert("system".into(), json!(self.system));
        for column in (0..columns).filter(|c| self.act == Act::Upsert && self.authors(*c)) {
            let cell = self.cells.get(&column).copied().unwrap_or(Cell::Null);
            object.insert(format!("c{column}"), json!(cell.shown()));
        }
        Value::Object(object)
    }
}
