//! A table while events go into it: its columns by name, its schema as it grows (rule B14), its key.

use crate::change::{Change, Column, Op};
use crate::error::{Error, Result};
use crate::options::{ColumnChoice, Columns, IntakeOptions};
use asofdb_storage::engine::RowBlock;
use asofdb_storage::id::{ColumnId, TableId};
use asofdb_storage::schema::{self, TableMeta, TableSchema};
use asofdb_storage::time::AxisType;
use asofdb_storage::value::{Cell, ColumnType};
use std::collections::HashMap;

/// The name that a record key without column names gets.
pub const UNNAMED_KEY: &str = "_key";

/// A number in a dictionary whose slot is not known yet.
const UNNUMBERED: u32 = u32::MAX;

/// A name that messages use.
#[derive(Debug)]
pub struct Slot {
    /// The name.
    pub name: String,
    /// Its column, once a row had it.
    pub column: Option<ColumnId>,
    /// Declared type.
    pub declared: Option<ColumnType>,
}

/// See the module.
#[derive(Debug)]
pub struct TableIntake {
    /// What the catalog has, or will have with the next commit.
    pub meta: TableMeta,
    /// The catalog does not have it yet in this state.
    pub dirty: bool,
    /// The axis of valid time is settled: an event had one.
    pub axes_known: bool,
    /// Names by number.
    pub slots: Vec<Slot>,
    /// Key columns as slots; empty = no key.
    pub key: Vec<u32>,
    /// The rows of the batch.
    pub block: RowBlock,
    /// Greatest integer operation id, stored or pending.
    pub operation_id_high: Option<i64>,
    /// It grew since the last commit.
    pub operation_id_dirty: bool,
    /// Operation ids of the table with the hash of their content, once an event needed them.
    pub operation_ids: Option<HashMap<Vec<u8>, u64>>,
    by_name: HashMap<String, u32>,
    /// Slot of each number of a dictionary, [`UNNUMBERED`] for those that are not known.
    numbered: (u32, Vec<u32>),
    /// Which slot came last behind each slot, the first of a message behind none, which is number 0.
    followers: Vec<u32>,
    columns: Vec<schema::Column>,
    declared: Vec<(String, Option<ColumnType>)>,
    /// The columns to track, where the options say something about it.
    track: Option<ColumnChoice>,
}

impl TableIntake {
    /// The table as the catalog has it.
    ///
    /// # Errors
    /// If the options contradict what the table is.
    pub fn of_catalog(meta: &TableMeta, options: &IntakeOptions) -> Result<TableIntake> {
        let schema = meta.schema().clone();
        if let Some(declared) = options.key_of(&meta.name) {
            let key: Vec<&str> =
                schema.key.iter().map(|id| schema.columns[id.0 as usize].name.as_str()).collect();
            if key != declared {
                return Err(key_changed(&meta.name, &key, declared));
            }
        }
        for (option, now, then) in [
            ("--valid", options.valid.is_some(), meta.valid_declared),
            ("--system", options.system.is_some(), meta.system_declared),
        ] {
            if now != then {
                let (has, hint) = if then { ("was", "the same") } else { ("was not", "no") };
                return Err(Error::usage(format!(
                    "table {} {has} declared with {option}, and this intake is{}",
                    meta.name,
                    if now { "" } else { " not" }
                ))
                .hint(format!(
                    "give {hint} {option}, or take these events into another table with --table"
                )));
            }
        }
        let mut t = TableIntake::empty(meta.clone(), options);
        t.dirty = false;
        t.axes_known = true;
        for c in &schema.columns {
            let slot = t.slot(&c.name);
            let slot = &mut t.slots[slot as usize];
            slot.column = Some(c.id);
            if let Some(now) = slot.declared.filter(|now| c.declared && *now != c.ty) {
                return Err(type_changed(&meta.name, c, now));
            }
            slot.declared = slot.declared.or(c.declared.then_some(c.ty));
        }
        t.columns = schema.columns.clone();
        t.dirty = t.track.is_some() && t.tracked() != t.meta.tracked;
        t.key = schema.key.iter().map(|id| t.by_name[&schema.columns[id.0 as usize].name]).collect();
        Ok(t)
    }

    /// A new table for the events that begin with `change`. Its key is the declared one, else that of
    /// the change.
    pub fn new(id: TableId, name: &str, options: &IntakeOptions, change: &Change<'_>) -> TableIntake {
        let meta = TableMeta {
            id,
            name: name.to_owned(),
            schemas: Vec::new(),
            valid_declared: options.valid.is_some(),
            system_declared: options.system.is_some(),
            valid_axis: AxisType::Instant,
            system_axis: AxisType::Instant,
            tracked: None,
        };
        let mut t = TableIntake::empty(meta, options);
        let key: Vec<String> = match options.key_of(name) {
            Some(declared) => declared.to_vec(),
            None => change.key.iter().map(|c| key_name(c).to_owned()).collect(),
        };
        t.key = key.iter().map(|k| t.slot(k)).collect();
        t
    }

    fn empty(meta: TableMeta, options: &IntakeOptions) -> TableIntake {
        let declared = match &options.columns {
            Some(Columns::List(list)) => list.iter().map(|c| (c.name.clone(), c.ty)).collect(),
            Some(Columns::Except(_)) | None => Vec::new(),
        };
        TableIntake {
            block: RowBlock { table: meta.id, ..RowBlock::default() },
            meta,
            dirty: true,
            axes_known: false,
            slots: Vec::new(),
            key: Vec::new(),
            operation_id_high: None,
            operation_id_dirty: false,
            operation_ids: None,
            by_name: HashMap::new(),
            numbered: (0, Vec::new()),
            followers: Vec::new(),
            columns: Vec::new(),
            declared,
            track: options.track_history.clone(),
        }
    }

    /// The number of a name.
    pub fn slot(&mut self, name: &str) -> u32 {
        if let Some(slot) = self.by_name.get(name) {
            return *slot;
        }
        let slot = self.slots.len() as u32;
        let declared = self.declared.iter().find(|(n, _)| n == name).and_then(|(_, ty)| *ty);
        self.slots.push(Slot { name: name.to_owned(), column: None, declared });
        self.by_name.insert(name.to_owned(), slot);
        slot
    }

    /// The slot of a name that has a number in a dictionary.
    #[inline]
    pub fn slot_numbered(&mut self, dictionary: u32, number: u16, name: &str) -> u32 {
        let (own, slots) = &self.numbered;
        match slots.get(number as usize) {
            Some(slot) if *own == dictionary && *slot != UNNUMBERED => *slot,
            _ => self.number(dictionary, number, name),
        }
    }

    #[cold]
    fn number(&mut self, dictionary: u32, number: u16, name: &str) -> u32 {
        let slot = self.slot(name);
        let (own, slots) = &mut self.numbered;
        if *own != dictionary {
            *own = dictionary;
            slots.clear();
        }
        if slots.len() <= number as usize {
            slots.resize(number as usize + 1, UNNUMBERED);
        }
        slots[number as usize] = slot;
        slot
    }

    /// The number of the name of a message behind that of slot `before`: messages use the same names in
    /// the same order, if not always all of them, so that one comparison mostly finds it.
    #[inline]
    pub fn slot_behind(&mut self, before: Option<u32>, name: &str) -> u32 {
        let at = before.map_or(0, |slot| slot as usize + 1);
        if let Some(slot) = self.followers.get(at)
            && self.slots[*slot as usize].name == name
        {
            return *slot;
        }
        let slot = self.slot(name);
        if self.followers.len() <= at {
            self.followers.resize(at + 1, slot);
        }
        self.followers[at] = slot;
        slot
    }

    /// Whether the table has a key.
    pub fn is_keyed(&self) -> bool {
        !self.key.is_empty()
    }

    /// The names of the key columns.
    pub fn key_names(&self) -> impl Iterator<Item = &str> {
        self.key.iter().map(|s| self.slots[*s as usize].name.as_str())
    }

    /// The column of a slot, and room for the value in it: new columns begin here and types widen.
    #[inline]
    pub fn take(&mut self, slot: u32, cell: &Cell<'_>) -> ColumnId {
        let s = &mut self.slots[slot as usize];
        let id = match s.column {
            Some(id) => id,
            None => {
                let id = ColumnId(self.columns.len() as u32);
                s.column = Some(id);
                let ty = s.declared.unwrap_or(ColumnType::Null);
                let declared = s.declared.is_some();
                self.columns.push(schema::Column { id, name: s.name.clone(), ty, declared });
                self.dirty = true;
                id
            }
        };
        let column = &mut self.columns[id.0 as usize];
        let of_cell = cell.column_type();
        if of_cell != column.ty && !column.declared {
            let joined = column.ty.join(of_cell);
            if joined != column.ty {
                column.ty = joined;
                self.dirty = true;
            }
        }
        id
    }

    /// The columns as they are now.
    pub fn columns(&self) -> &[schema::Column] {
        &self.columns
    }

    /// The ids of the key columns.
    pub fn key_ids(&self) -> Vec<ColumnId> {
        self.key.iter().filter_map(|s| self.slots[*s as usize].column).collect()
    }

    /// Closes the schema of the batch: a new version if anything changed.
    pub fn close_schema(&mut self) {
        let schema = TableSchema {
            version: self.meta.schemas.last().map_or(1, |(_, s)| s.version + 1),
            columns: self.columns.clone(),
            key: self.key_ids(),
        };
        let unchanged =
            self.meta.schemas.last().is_some_and(|(_, s)| s.columns == schema.columns && s.key == schema.key);
        if !unchanged {
            self.meta.schemas.push((0, schema));
        }
        self.meta.tracked = self.tracked();
    }

    /// The names of the tracked columns; `None` = all. A choice that leaves some out is one of names as
    /// soon as the columns are known.
    fn tracked(&self) -> Option<Vec<String>> {
        match &self.track {
            None => self.meta.tracked.clone(),
            Some(ColumnChoice::All) => None,
            Some(choice) => {
                let names = self.columns.iter().map(|c| &c.name);
                Some(names.filter(|n| choice.contains(n)).cloned().collect())
            }
        }
    }

    /// Checks that a change without a declared key does not come with another one than the table's. A table
    /// that has had nothing but truncates, which come without a key, gets that of its first row.
    ///
    /// # Errors
    /// Says what to do.
    pub fn check_key(&mut self, change: &Change<'_>, declared: bool) -> Result<()> {
        if declared || change.key.is_empty() {
            return Ok(());
        }
        if self.key.is_empty() && self.columns.is_empty() && change.op != Op::Truncate {
            self.key = change.key.iter().map(|c| self.slot(key_name(c))).collect();
            self.dirty = true;
            return Ok(());
        }
        let known = |c: &Column<'_>| self.key_names().any(|k| k == key_name(c));
        let unnamed = change.key.len() == 1 && change.key[0].name.is_empty() && self.key.len() == 1;
        let same = change.key.len() == self.key.len() && (unnamed || change.key.iter().all(known));
        if same {
            return Ok(());
        }
        let theirs: Vec<&str> = change.key.iter().map(key_name).collect();
        let ours: Vec<&str> = self.key_names().collect();
        Err(key_changed(&self.meta.name, &ours, &theirs))
    }
}

/// The name of a key column of a message.
pub fn key_name<'a>(c: &Column<'a>) -> &'a str {
    if c.name.is_empty() { UNNAMED_KEY } else { c.name }
}

/// Stored values have the declared type, so another one cannot hold beside it.
fn type_changed(table: &str, column: &schema::Column, now: ColumnType) -> Error {
    let (name, then) = (&column.name, column.ty.name());
    Error::usage(format!(
        "column {name} of table {table} is declared as {then}, and this intake declares {}",
        now.name()
    ))
    .hint("give the same type or none, or take these events into another table with --table")
}

fn key_changed(table: &str, ours: &[&str], theirs: &[impl AsRef<str>]) -> Error {
    let list = |names: &[&str]| {
        if names.is_empty() { "no key".into() } else { format!("key ({})", names.join(", ")) }
    };
    let theirs: Vec<&str> = theirs.iter().map(AsRef::as_ref).collect();
    let keep = if ours.is_empty() {
        "or begin the table anew with the right --key".to_owned()
    } else {
        format!("or keep the key with --key {table}:{}", ours.join(","))
    };
    Error::usage(format!("table {table} has {}, but these events come with {}", list(ours), list(&theirs)))
        .hint(format!("take these events into another table with --table, {keep}"))
}
