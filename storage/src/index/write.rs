//! Changing entries, in the order of keys.

use super::entry::{META, META_SEED, Names, seal, seed};
use super::error::{Fault, IndexError};
use super::file::Index;
use super::read::Applied;
use crate::id::TableId;
use redb::{ReadableTable, ReadableTableMetadata, WriteTransaction};
use std::ops::Bound;
use std::sync::atomic::Ordering;

/// A table of up to this many times the changes is written anew in one pass, which is faster than
/// finding and copying nearly all of its pages change by change.
const REWRITE_RATIO_MAX: u64 = 4;

/// The bytes of a key and its new value; `None` removes it.
pub type Change = (Vec<u8>, Option<Vec<u8>>);

/// How much of a table a rewrite changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything: entries that are not among the changes go.
    All,
    /// The changed keys only, about so many.
    Keys(u64),
}

impl Index {
    /// Applies `changes`, which ascend by key without repeats, to `table` in one commit, after which
    /// its entries reflect `applied`. An error among them ends the work.
    ///
    /// # Errors
    /// That error, or [`IndexError::Refused`] for keys out of order, or what writing runs into: nothing
    /// is changed then. If the commit itself fails, [`IndexError::InDoubt`] from now on.
    pub fn rewrite(
        &self,
        table: TableId,
        applied: Applied,
        extent: Extent,
        changes: impl Iterator<Item = Result<Change, IndexError>>,
    ) -> Result<(), IndexError> {
        let names = Names::new(table);
        let mut last: Option<Vec<u8>> = None;
        let changes = changes.map(move |change| {
            let change = change.map_err(Fault::Caller)?;
            if last.as_ref().is_some_and(|l| *l >= change.0) {
                return Err(Fault::Caller(IndexError::Refused("its keys are out of order".into())));
            }
            last = Some(change.0.clone());
            Ok(change)
        });
        self.change(|txn| {
            match extent {
                Extent::All => write_anew(txn, &names, seed(table), changes)?,
                Extent::Keys(count) => {
                    let old = txn.open_table(names.keys())?.len()?;
                    let merged = old <= REWRITE_RATIO_MAX.saturating_mul(count);
                    let apply = if merged { merge } else { change_each };
                    apply(txn, &names, seed(table), &mut { changes })?;
                }
            }
            let mut sealed = Vec::new();
            seal(&mut sealed, META_SEED, &names.applied, &applied.encode());
            txn.open_table(META)?.insert(names.applied.as_slice(), sealed.as_slice())?;
            Ok(())
        })
    }

    /// Removes all entries of `table`; nothing of it is applied any more.
    ///
    /// # Errors
    /// As for [`Index::rewrite`].
    pub fn clear(&self, table: TableId) -> Result<(), IndexError> {
        let names = Names::new(table);
        self.change(|txn| {
            txn.delete_table(names.keys())?;
            txn.open_table(META)?.remove(names.applied.as_slice())?;
            Ok(())
        })
    }

    /// Runs `work` in a transaction and commits it.
    pub(super) fn change(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<(), Fault>,
    ) -> Result<(), IndexError> {
        if self.in_doubt.load(Ordering::Acquire) {
            return Err(IndexError::InDoubt);
        }
        let mut committing = false;
        let result = super::error::guard(|| {
            let txn = self.db()?.begin_write()?;
            work(&txn)?;
            committing = true;
            Ok(txn.commit()?)
        });
        result.map_err(|fault| {
            if committing || matches!(fault, Fault::Panic(_)) {
                self.in_doubt.store(true, Ordering::Release);
            }
            fault.at(&self.path)
        })
    }
}

type Changes<'a> = dyn Iterator<Item = Result<Change, Fault>> + 'a;

fn write_anew(
    txn: &WriteTransaction,
    names: &Names,
    seed: u64,
    changes: impl Iterator<Item = Result<Change, Fault>>,
) -> Result<(), Fault> {
    txn.delete_table(names.keys())?;
    merge(txn, names, seed, &mut { changes })
}

/// Changes entry by entry.
fn change_each(
    txn: &WriteTransaction,
    names: &Names,
    seed: u64,
    changes: &mut Changes<'_>,
) -> Result<(), Fault> {
    let mut keys = txn.open_table(names.keys())?;
    let mut sealed = Vec::new();
    for change in changes {
        let (key, value) = change?;
        match value {
            Some(value) => {
                seal(&mut sealed, seed, &key, &value);
                keys.insert(key.as_slice(), sealed.as_slice())?;
            }
            None => {
                keys.remove(key.as_slice())?;
            }
        }
    }
    Ok(())
}

/// Writes the table anew with the changes in it.
fn merge(txn: &WriteTransaction, names: &Names, seed: u64, changes: &mut Changes<'_>) -> Result<(), Fault> {
    {
        let old = txn.open_table(names.keys())?;
        let mut next = txn.open_table(names.next())?;
        let mut cursor = next.upper_bound_mut(Bound::<&[u8]>::Unbounded)?;
        let mut old = old.iter()?.peekable();
        let mut sealed = Vec::new();
        for change in changes {
            let (key, value) = change?;
            while let Some((at, kept)) =
                old.next_if(|e| e.as_ref().map_or(true, |(at, _)| at.value() < key.as_slice())).transpose()?
            {
                cursor.insert_before(at.value(), kept.value())?;
            }
            old.next_if(|e| e.as_ref().is_ok_and(|(at, _)| at.value() == key.as_slice())).transpose()?;
            if let Some(value) = value {
                seal(&mut sealed, seed, &key, &value);
                cursor.insert_before(key.as_slice(), sealed.as_slice())?;
            }
        }
        for entry in old {
            let (at, kept) = entry?;
            cursor.insert_before(at.value(), kept.value())?;
        }
        cursor.close()?;
    }
    txn.delete_table(names.keys())?;
    txn.rename_table(names.next(), names.keys())?;
    Ok(())
}
