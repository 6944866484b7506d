//! Checking every entry.

use super::entry::{META, META_SEED, Names, seed, unseal};
use super::error::{Fault, IndexError};
use super::file::Index;
use super::read::{Applied, open_if_any};
use crate::id::TableId;
use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata, TableHandle};

/// Problems that are listed; more say nothing new.
const PROBLEMS_MAX: usize = 100;

impl Index {
    /// Checks every entry: checksum, full key, place and number. The list of what is wrong is empty
    /// if all is right.
    ///
    /// # Errors
    /// [`IndexError`] if the entries cannot even be read.
    pub fn verify(&self) -> Result<Vec<String>, IndexError> {
        self.look(|txn| {
            let mut problems = Vec::new();
            let mut tables = Vec::new();
            for handle in txn.list_tables()? {
                match table_of(handle.name()) {
                    Some(table) => tables.push(table),
                    None if handle.name() == "meta" => {}
                    None => problems.push(format!("unknown table {:?}", handle.name())),
                }
            }
            tables.sort();
            tables.dedup();
            check_meta(txn, &mut problems)?;
            for table in tables {
                check_keys(txn, table, &mut problems)?;
            }
            problems.truncate(PROBLEMS_MAX);
            Ok(problems)
        })
    }
}

fn check_keys(txn: &ReadTransaction, id: TableId, problems: &mut Vec<String>) -> Result<(), Fault> {
    let Some(table) = open_if_any(txn, Names::new(id).keys())? else { return Ok(()) };
    let mut count = 0;
    for entry in table.iter()? {
        let (at, sealed) = entry?;
        if unseal(sealed.value(), seed(id), at.value()).is_err() && problems.len() < PROBLEMS_MAX {
            let key: String = at.value().iter().map(|b| format!("{b:02x}")).collect();
            problems.push(format!("table {}: the entry of key {key} is damaged", id.0));
        }
        count += 1;
    }
    check_count(id, count, table.len()?, problems);
    Ok(())
}

fn check_count(id: TableId, found: u64, stated: u64, problems: &mut Vec<String>) {
    if found != stated {
        problems.push(format!("table {}: {found} entries instead of {stated}", id.0));
    }
}

fn check_meta(txn: &ReadTransaction, problems: &mut Vec<String>) -> Result<(), Fault> {
    for entry in txn.open_table(META)?.iter()? {
        let (name, sealed) = entry?;
        let right = match name.value().starts_with(b"applied ") {
            true => Applied::decode(sealed.value(), name.value()).is_ok(),
            false => unseal(sealed.value(), META_SEED, name.value()).is_ok(),
        };
        if !right {
            problems.push(format!("the description {:?} is damaged", String::from_utf8_lossy(name.value())));
        }
    }
    Ok(())
}

fn table_of(name: &str) -> Option<TableId> {
    name.strip_prefix("keys ")?.parse().ok().map(TableId)
}
