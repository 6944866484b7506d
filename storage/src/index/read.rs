//! Reading entries.

use super::entry::{META, META_SEED, Names, seed, unseal};
use super::error::{Fault, IndexError};
use super::file::Index;
use crate::id::TableId;
use redb::{Key, ReadOnlyTable, ReadTransaction, ReadableTableMetadata, TableDefinition, TableError, Value};

/// What the entries of a table reflect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The commit up to which they are right; 0 if there are none.
    pub commit: u64,
    /// Its instant, which tells it from a commit of the same number in another history.
    pub at: i64,
    /// Version of the schema whose types the values have.
    pub schema: u32,
}

impl Applied {
    pub(super) fn encode(self) -> [u8; 20] {
        let mut out = [0; 20];
        out[..8].copy_from_slice(&self.commit.to_le_bytes());
        out[8..16].copy_from_slice(&self.at.to_le_bytes());
        out[16..].copy_from_slice(&self.schema.to_le_bytes());
        out
    }

    pub(super) fn decode(sealed: &[u8], name: &[u8]) -> Result<Applied, Fault> {
        let value = unseal(sealed, META_SEED, name)?;
        let short = || Fault::Damaged("the commit it stands at is no commit".into());
        let (commit, rest) = value.split_first_chunk().ok_or_else(short)?;
        let (at, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let schema = rest.try_into().map_err(|_| short())?;
        Ok(Applied {
            commit: u64::from_le_bytes(*commit),
            at: i64::from_le_bytes(*at),
            schema: u32::from_le_bytes(schema),
        })
    }
}

/// Values of several keys, `None` where one has none.
pub type Values = Vec<Option<Vec<u8>>>;

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

fn applied_in(txn: &ReadTransaction, names: &Names) -> Result<Applied, Fault> {
    match txn.open_table(META)?.get(names.applied.as_slice())? {
        Some(sealed) => Applied::decode(sealed.value(), &names.applied),
        None => Ok(Applied::default()),
    }
}

impl Index {
    /// What the entries of `table` reflect.
    ///
    /// # Errors
    /// [`IndexError`], see there.
    pub fn applied(&self, table: TableId) -> Result<Applied, IndexError> {
        let names = Names::new(table);
        self.look(|txn| applied_in(txn, &names))
    }

    /// The value of a key of `table`. `None` if it has none, or if a page of a file that was opened
    /// without a check is damaged.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] if the entry is not what was written; [`IndexError`] otherwise.
    pub fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        Ok(self.values(table, &[key])?.1.pop().flatten())
    }

    /// The values of some keys as [`Index::get`] gives them, with what all of them reflect.
    ///
    /// # Errors
    /// As for [`Index::get`].
    pub fn values(&self, table: TableId, keys: &[&[u8]]) -> Result<(Applied, Values), IndexError> {
        let (names, seed) = (Names::new(table), seed(table));
        self.look(|txn| {
            let applied = applied_in(txn, &names)?;
            let Some(entries) = open_if_any(txn, names.keys())? else {
                return Ok((applied, vec![None; keys.len()]));
            };
            let value = |key: &&[u8]| match entries.get(*key)? {
                Some(sealed) => Ok(Some(unseal(sealed.value(), seed, key)?.to_vec())),
                None => Ok(None),
            };
            Ok((applied, keys.iter().map(value).collect::<Result<_, Fault>>()?))
        })
    }

    /// Number of keys of `table` that have a value.
    ///
    /// # Errors
    /// [`IndexError`], see there.
    pub fn entries(&self, table: TableId) -> Result<u64, IndexError> {
        let names = Names::new(table);
        self.look(|txn| open_if_any(txn, names.keys())?.map_or(Ok(0), |t| Ok(t.len()?)))
    }
}
