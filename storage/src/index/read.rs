//! Reading entries.

use super::entry::{META, META_SEED, Names, seed, unseal};
use super::error::{Fault, IndexError};
use super::file::Index;
use crate::id::TableId;
use redb::{Key, ReadOnlyTable, ReadTransaction, ReadableTableMetadata, TableDefinition, TableError, Value};

/// A table that is made with its first entry.
pub(super) fn open_if_any<K: Key + 'static, V: Value + 'static>(
    txn: &ReadTransaction,
    definition: TableDefinition<'_, K, V>,
) -> Result<Option<ReadOnlyTable<K, V>>, Fault> {
    match txn.open_table(definition) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

pub(super) fn applied_of(sealed: &[u8], name: &[u8]) -> Result<u64, Fault> {
    let (key, value) = unseal(sealed, META_SEED)?;
    match <[u8; 8]>::try_from(value) {
        Ok(n) if key == name => Ok(u64::from_le_bytes(n)),
        _ => Err(Fault::Damaged("the commit it stands at is mixed up".into())),
    }
}

impl Index {
    /// The commit up to which the entries of `table` are right; 0 if there are none.
    ///
    /// # Errors
    /// [`IndexError`], see there.
    pub fn applied(&self, table: TableId) -> Result<u64, IndexError> {
        let names = Names::new(table);
        self.look(|txn| match txn.open_table(META)?.get(names.applied.as_slice())? {
            Some(sealed) => applied_of(sealed.value(), &names.applied),
            None => Ok(0),
        })
    }

    /// The value of a key of `table`, `None` if it has none.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] if the entry is not what was written; [`IndexError`] otherwise.
    pub fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        let (names, seed) = (Names::new(table), seed(table));
        let hash = (self.hash)(key).to_be_bytes();
        self.look(|txn| {
            if let Some(keys) = open_if_any(txn, names.keys())?
                && let Some(sealed) = keys.get(&hash)?
            {
                let (found, value) = unseal(sealed.value(), seed)?;
                if found == key {
                    return Ok(Some(value.to_vec()));
                }
                if (self.hash)(found).to_be_bytes() != hash {
                    return Err(Fault::Damaged("an entry stands at the wrong place".into()));
                }
            }
            let Some(more) = open_if_any(txn, names.more())? else { return Ok(None) };
            let Some(sealed) = more.get(key)? else { return Ok(None) };
            match unseal(sealed.value(), seed)? {
                (found, value) if found == key => Ok(Some(value.to_vec())),
                _ => Err(Fault::Damaged("an entry stands at the wrong place".into())),
            }
        })
    }

    /// Number of keys of `table` that have a value.
    ///
    /// # Errors
    /// [`IndexError`], see there.
    pub fn entries(&self, table: TableId) -> Result<u64, IndexError> {
        let names = Names::new(table);
        self.look(|txn| {
            let keys = open_if_any(txn, names.keys())?.map_or(Ok(0), |t| t.len())?;
            let more = open_if_any(txn, names.more())?.map_or(Ok(0), |t| t.len())?;
            Ok(keys + more)
        })
    }
}
