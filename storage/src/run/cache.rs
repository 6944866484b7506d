//! Decoded columns of Parquet runs, kept for the next scan.
//!
//! Scans pass over all chunks again and again, so dropping what was used longest ago would drop every
//! column just before it is needed. A column that must go is therefore picked without regard to use. Before
//! one goes, all are squeezed into fewer bytes, which costs some time whenever they are read.

use super::kept::Kept;
use arrow::array::ArrayRef;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A column of a chunk, in batches of [`super::parquet::BATCH_ROWS`] rows.
pub(crate) type Column = Arc<[Kept]>;

/// Which column it is: run, chunk, column of the file.
pub(crate) type ColumnKey = (u64, u32, u32);

/// Share of the cache that one column may take.
const COLUMN_SHARE: usize = 16;

/// Decoded columns up to a number of bytes; shared by all runs of a store.
#[derive(Debug)]
pub struct ColumnCache {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    columns: HashMap<ColumnKey, (Column, usize)>,
    /// All keys of `columns`, to pick one of.
    keys: Vec<ColumnKey>,
    /// Keys of columns that are as they were decoded.
    plain: Vec<ColumnKey>,
    picked: u64,
}

impl ColumnCache {
    /// An empty cache of at most `bytes_max` bytes; 0 keeps nothing.
    pub fn new(bytes_max: usize) -> ColumnCache {
        ColumnCache { bytes_max, state: Mutex::default() }
    }

    /// Bytes that are held now.
    pub fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// A column, if it is held.
    pub(crate) fn get(&self, key: ColumnKey) -> Option<Column> {
        self.state().columns.get(&key).map(|(column, _)| column.clone())
    }

    /// Holds a column from now on, if it is small enough.
    pub(crate) fn put(&self, key: ColumnKey, column: Vec<ArrayRef>) {
        let column: Vec<Kept> = column.into_iter().map(Kept::Plain).collect();
        let bytes = column.iter().map(Kept::bytes).sum::<usize>();
        if bytes > self.bytes_max / COLUMN_SHARE {
            return;
        }
        let mut state = self.state();
        if state.columns.contains_key(&key) {
            return;
        }
        state.bytes += bytes;
        state.keys.push(key);
        state.plain.push(key);
        state.columns.insert(key, (column.into(), bytes));
        while state.bytes > self.bytes_max {
            if !state.squeeze_one() {
                state.drop_one();
            }
        }
    }

    /// Drops the columns of a run.
    pub(crate) fn forget(&self, run: u64) {
        let mut state = self.state();
        let State { bytes, columns, keys, plain, .. } = &mut *state;
        keys.retain(|k| k.0 != run);
        plain.retain(|k| k.0 != run);
        columns.retain(|k, (_, size)| {
            *bytes -= if k.0 == run { *size } else { 0 };
            k.0 != run
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Squeezes a column that was not yet; false if there is none.
    fn squeeze_one(&mut self) -> bool {
        let Some(key) = self.plain.pop() else { return false };
        // A column that was dropped meanwhile takes no bytes any more.
        if let Some((column, bytes)) = self.columns.get_mut(&key) {
            let squeezed: Column = column.iter().map(Kept::squeezed).collect();
            let fewer = squeezed.iter().map(Kept::bytes).sum();
            self.bytes = self.bytes - *bytes + fewer;
            (*column, *bytes) = (squeezed, fewer);
        }
        true
    }

    fn drop_one(&mut self) {
        // A linear congruential generator: any spread over the keys will do.
        self.picked = self.picked.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (self.picked >> 33) as usize % self.keys.len().max(1);
        if at < self.keys.len() {
            let key = self.keys.swap_remove(at);
            self.bytes -= self.columns.remove(&key).map_or(0, |(_, bytes)| bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, Float64Array, Int64Array};

    fn column(rows: usize) -> Vec<ArrayRef> {
        vec![Arc::new(Float64Array::from_value(7.0, rows))]
    }

    #[test]
    fn holds_no_more_than_its_bytes_and_counts_them() {
        let each = column(1000)[0].get_array_memory_size();
        let cache = ColumnCache::new(each * 20);
        for i in 0..40 {
            cache.put((1, i, 0), column(1000));
            assert!(cache.bytes() <= each * 20);
        }
        let held = (0..40).filter(|i| cache.get((1, *i, 0)).is_some()).count();
        assert_eq!(held * each, cache.bytes(), "as many as it says");
        assert_eq!(held, 20);
        let early = (0..20).filter(|i| cache.get((1, *i, 0)).is_some()).count();
        assert!(early > 0, "a scan over more than fits leaves some of what was there");
    }

    #[test]
    fn columns_are_squeezed_before_any_is_dropped() {
        let numbers = |n: i64| -> Vec<ArrayRef> {
            vec![Arc::new((0..1000).map(|i| Some(n + i % 100)).collect::<Int64Array>())]
        };
        let each = numbers(0)[0].get_array_memory_size();
        let cache = ColumnCache::new(each * 20);
        for i in 0..60 {
            cache.put((1, i, 0), numbers(i64::from(i)));
            assert!(cache.bytes() <= each * 20);
            let plain = |i: &u32| matches!(&cache.get((1, *i, 0)).expect("a column")[0], Kept::Plain(_));
            assert!(i >= 20 || (0..=i).all(|i| plain(&i)), "while there is room");
        }
        for i in 0..60 {
            let column = cache.get((1, i, 0)).expect("a column");
            assert_eq!(column[0].array().expect("an array").as_ref(), numbers(i64::from(i))[0].as_ref());
        }
        cache.forget(1);
        assert_eq!(cache.bytes(), 0);
        cache.put((2, 0, 0), numbers(0));
        assert_eq!(cache.bytes(), each);
    }

    #[test]
    fn refuses_a_column_that_would_take_most_of_it_and_forgets_runs() {
        let each = column(1000)[0].get_array_memory_size();
        let cache = ColumnCache::new(each * 20);
        cache.put((1, 0, 0), column(3000));
        assert!(cache.get((1, 0, 0)).is_none());
        cache.put((1, 0, 0), column(1000));
        cache.put((2, 0, 0), column(1000));
        cache.forget(1);
        assert!(cache.get((1, 0, 0)).is_none() && cache.get((2, 0, 0)).is_some());
        assert_eq!(cache.bytes(), each);
    }
}
