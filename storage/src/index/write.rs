//! Changing entries in large sorted steps.

use super::entry::{META, META_SEED, Names, seal, seed, unseal};
use super::error::{Fault, IndexError, guard};
use super::file::Index;
use crate::id::TableId;
use redb::{ReadableTable, ReadableTableMetadata, Table, WriteTransaction};
use std::ops::Bound;
use std::sync::atomic::Ordering;

/// Changes that are sorted at a time: this bounds memory.
const CHUNK_CHANGES_MAX: usize = 1 << 20;
const CHUNK_BYTES_MAX: usize = 64 << 20;

/// A table of up to this many times the changes is written anew in one pass, which is faster than
/// finding and copying nearly all of its pages change by change.
const REWRITE_RATIO_MAX: u64 = 4;

struct Change {
    hash: u128,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

type Keys<'txn> = Table<'txn, &'static [u8; 16], &'static [u8]>;
type More<'txn> = Table<'txn, &'static [u8], &'static [u8]>;

impl Index {
    /// Applies `changes` to `table` in one commit, after which its entries are right up to commit
    /// `applied`. A change is the bytes of a key and its new value; `None` removes it. Of several
    /// changes of one key the last counts. Keys are best given in ascending order.
    ///
    /// # Errors
    /// [`IndexError::InDoubt`] from now on if the commit itself fails; else nothing is changed.
    pub fn rewrite(
        &self,
        table: TableId,
        applied: u64,
        changes: impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
    ) -> Result<(), IndexError> {
        let names = Names::new(table);
        let mut changes = changes.map(|(key, value)| Change { hash: (self.hash)(&key), key, value });
        self.change(|txn| {
            loop {
                let mut chunk = take_chunk(&mut changes);
                if chunk.is_empty() {
                    break;
                }
                // Stable, so that the last change of a key stays the last.
                chunk.sort_by_key(|c| c.hash);
                apply(txn, &names, seed(table), chunk)?;
            }
            let mut sealed = Vec::new();
            seal(&mut sealed, META_SEED, &names.applied, &applied.to_le_bytes())?;
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
            txn.delete_table(names.more())?;
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
        let result = guard(|| {
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

fn take_chunk(changes: &mut impl Iterator<Item = Change>) -> Vec<Change> {
    let (mut chunk, mut bytes) = (Vec::new(), 0);
    while chunk.len() < CHUNK_CHANGES_MAX && bytes < CHUNK_BYTES_MAX {
        let Some(change) = changes.next() else { break };
        bytes += size_of::<Change>() + change.key.len() + change.value.as_ref().map_or(0, Vec::len);
        chunk.push(change);
    }
    chunk
}

fn apply(txn: &WriteTransaction, names: &Names, seed: u64, mut chunk: Vec<Change>) -> Result<(), Fault> {
    let (old, more) = (txn.open_table(names.keys())?.len()?, txn.open_table(names.more())?.is_empty()?);
    if more && old <= REWRITE_RATIO_MAX * chunk.len() as u64 {
        chunk = merge(txn, names, seed, chunk)?;
    }
    let mut keys = txn.open_table(names.keys())?;
    let mut more = txn.open_table(names.more())?;
    for change in chunk {
        let Change { hash, key, value } = change;
        match value {
            Some(value) => put(&mut keys, &mut more, seed, hash, &key, &value)?,
            None => remove(&mut keys, &mut more, seed, hash, &key)?,
        }
    }
    Ok(())
}

fn put(
    keys: &mut Keys<'_>,
    more: &mut More<'_>,
    seed: u64,
    hash: u128,
    key: &[u8],
    value: &[u8],
) -> Result<(), Fault> {
    let hash = hash.to_be_bytes();
    let mut sealed = Vec::new();
    seal(&mut sealed, seed, key, value)?;
    let other = match keys.insert(&hash, sealed.as_slice())? {
        Some(old) if unseal(old.value(), seed)?.0 == key => return Ok(()),
        Some(old) => Some(old.value().to_vec()),
        None => None,
    };
    if let Some(other) = other {
        keys.insert(&hash, other.as_slice())?;
        more.insert(key, sealed.as_slice())?;
    } else if !more.is_empty()? {
        more.remove(key)?;
    }
    Ok(())
}

fn remove(keys: &mut Keys<'_>, more: &mut More<'_>, seed: u64, hash: u128, key: &[u8]) -> Result<(), Fault> {
    let hash = hash.to_be_bytes();
    let own = match keys.get(&hash)? {
        Some(sealed) => unseal(sealed.value(), seed)?.0 == key,
        None => false,
    };
    if own {
        keys.remove(&hash)?;
    } else if !more.is_empty()? {
        more.remove(key)?;
    }
    Ok(())
}

/// Writes the table anew with the changes in it. Gives back the changes it could not take because
/// of a hash that stands twice.
fn merge(txn: &WriteTransaction, names: &Names, seed: u64, chunk: Vec<Change>) -> Result<Vec<Change>, Fault> {
    let mut late = Vec::new();
    {
        let old = txn.open_table(names.keys())?;
        let mut next = txn.open_table(names.next())?;
        let mut cursor = next.upper_bound_mut(Bound::<&[u8; 16]>::Unbounded)?;
        let mut old = old.iter()?.peekable();
        let (mut sealed, mut last) = (Vec::new(), None);
        for change in chunk {
            if last == Some(change.hash) {
                late.push(change);
                continue;
            }
            last = Some(change.hash);
            let hash = change.hash.to_be_bytes();
            while let Some((at, value)) =
                old.next_if(|e| e.as_ref().map_or(true, |(at, _)| *at.value() < hash)).transpose()?
            {
                cursor.insert_before(at.value(), value.value())?;
            }
            let same = old.next_if(|e| e.as_ref().is_ok_and(|(at, _)| *at.value() == hash)).transpose()?;
            if let Some((_, value)) = same
                && unseal(value.value(), seed)?.0 != change.key
            {
                cursor.insert_before(&hash, value.value())?;
                late.push(change);
            } else if let Some(value) = change.value {
                seal(&mut sealed, seed, &change.key, &value)?;
                cursor.insert_before(&hash, sealed.as_slice())?;
            }
        }
        for entry in old {
            let (at, value) = entry?;
            cursor.insert_before(at.value(), value.value())?;
        }
        cursor.close()?;
    }
    txn.delete_table(names.keys())?;
    txn.rename_table(names.next(), names.keys())?;
    Ok(late)
}
