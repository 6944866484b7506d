//! Record keys: an object with `pk.` before the names of key columns, or an array of database, table and
//! key columns.

use crate::change::{Column, SourceRef};
use crate::format::block::Block;
use crate::format::fields::{Reject, columns, untyped_cell};
use crate::format::json::{self, Member, Raw};
use crate::format::scratch::Scratch;

/// What stands before the names of key columns.
const PREFIX: &str = "pk.";

/// A record key.
#[derive(Debug, Default)]
pub struct Key<'a> {
    pub database: Option<&'a str>,
    pub table: Option<&'a str>,
    /// Empty for tables without a key.
    pub columns: Vec<Column<'a>>,
}

impl<'a> Key<'a> {
    /// Where the row belongs.
    pub fn source(&self) -> SourceRef<'a> {
        SourceRef { db: self.database, table: self.table, ..SourceRef::default() }
    }
}

/// Reads a record key; `None` if it is not Maxwell's.
///
/// # Errors
/// If it names a column twice, or holds a number beyond every type.
pub fn key<'a>(bytes: &'a [u8], scratch: &mut Scratch<'a>) -> Result<Option<Key<'a>>, Reject> {
    let Ok(text) = json::message_text(bytes) else { return Ok(None) };
    let mut members = Vec::new();
    if json::members(text, &mut members).is_ok() {
        return of_object(&members, scratch).map(Some);
    }
    members.clear();
    match json::elements(text, &mut members) {
        Ok(()) => of_array(&members, scratch),
        Err(_) => Ok(None),
    }
}

fn of_object<'a>(members: &[Member<'a>], scratch: &mut Scratch<'a>) -> Result<Key<'a>, Reject> {
    let block = Block(members);
    let (database, table) = (block.text("database", scratch), block.text("table", scratch));
    let own: Vec<Member<'_>> = members.iter().filter(|m| m.name.text.starts_with(PREFIX)).copied().collect();
    let mut key = Key { database, table, columns: Vec::new() };
    columns(&own, 0, scratch, &mut key.columns, |_, _, m, s| untyped_cell(&m.value, s))?;
    for column in &mut key.columns {
        column.name = column.name.strip_prefix(PREFIX).unwrap_or(column.name);
    }
    Ok(key)
}

fn of_array<'a>(elements: &[Member<'a>], scratch: &mut Scratch<'a>) -> Result<Option<Key<'a>>, Reject> {
    let [Raw::Text(database), Raw::Text(table), Raw::Nested { text, .. }] =
        *elements.iter().map(|e| e.value).collect::<Vec<_>>()
    else {
        return Ok(None);
    };
    let mut key = Key::default();
    (key.database, key.table) = (Some(database.resolve(scratch)), Some(table.resolve(scratch)));
    let mut parts = Vec::new();
    if json::elements(text, &mut parts).is_err() {
        return Ok(None);
    }
    let mut members = Vec::new();
    for part in &parts {
        match part.value {
            Raw::Nested { text, .. } if text.starts_with('{') => json::members(text, &mut members)?,
            _ => return Ok(None),
        }
    }
    columns(&members, 0, scratch, &mut key.columns, |_, _, m, s| untyped_cell(&m.value, s))?;
    Ok(Some(key))
}
