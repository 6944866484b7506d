//! Point questions of one table in the order of their keys, for as many calls as they take.

use super::api::Snapshot;
use super::error::Error;
use super::request::{Bounds, PointRequest};
use super::scan::{PointScan, SINGLE_KEYS, ScanCounts, TableScan};
use super::shared::Shared;
use super::view::View;
use crate::id::{ColumnId, TableId};
use arrow::array::{Array, BinaryArray, RecordBatch};
use std::fmt;
use std::sync::Arc;

impl Snapshot {
    /// Begins to answer point questions whose keys ascend: all calls of [`SortedPoints::answer`] together read
    /// the events that lie between the first key and the last one once, however many there are. Rows have the
    /// columns of `projection`, in the types of the table's latest schema. `counts` counts what is read.
    ///
    /// # Errors
    /// As [`Snapshot::points`].
    pub fn sorted_points(
        &self,
        table: TableId,
        projection: &[ColumnId],
        counts: Option<&Arc<ScanCounts>>,
    ) -> Result<SortedPoints, Error> {
        let (view, shared) = self.parts();
        let scan = TableScan::new(view, table)?;
        let scan = match counts {
            Some(counts) => scan.counted(counts),
            None => scan,
        };
        let scan = PointScan::new(scan, projection, SINGLE_KEYS)?;
        let counts = counts.cloned();
        let projection = projection.to_vec();
        Ok(SortedPoints { view: view.clone(), shared: shared.clone(), table, projection, counts, scan })
    }

    /// Up to `n - 1` ascending keys that divide the events of a table into about equal parts; fewer of small
    /// tables.
    ///
    /// # Errors
    /// As [`Snapshot::points`].
    pub fn split_keys(&self, table: TableId, n: usize) -> Result<Vec<Vec<u8>>, Error> {
        TableScan::new(self.parts().0, table)?.split_keys(n)
    }
}

/// See [`Snapshot::sorted_points`].
pub struct SortedPoints {
    view: Arc<View>,
    shared: Arc<Shared>,
    table: TableId,
    projection: Vec<ColumnId>,
    counts: Option<Arc<ScanCounts>>,
    scan: PointScan,
}

impl fmt::Debug for SortedPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SortedPoints").field("table", &self.table).finish_non_exhaustive()
    }
}

impl SortedPoints {
    /// Up to so many keys of a call are looked up one by one, in the keyed index if there is one (64 if it is not
    /// said); more only if they lie far apart. The answers are the same.
    #[must_use]
    pub fn looking_up(mut self, keys: usize) -> SortedPoints {
        self.scan.set_singles(keys);
        self
    }

    /// Answers a question for each key, with the bounds at the same place. `keys` are key bytes; they ascend,
    /// may repeat, and the first is not below the last one of the call before. Returns the numbers of the
    /// questions that have a row, ascending, and the rows. Bounds beyond the pinned commit mean the pinned
    /// commit.
    ///
    /// # Errors
    /// `Invalid` if a key is NULL, or there are fewer bounds than keys; else as [`Snapshot::points`].
    pub fn answer(
        &mut self,
        keys: &BinaryArray,
        bounds: &[Bounds],
    ) -> Result<(Vec<u32>, RecordBatch), Error> {
        // A keyed index knows single keys.
        if keys.len() <= self.scan.singles_max() && keys.null_count() == 0 && self.shared.index().is_some() {
            let request =
                |(key, bounds): (&[u8], &Bounds)| PointRequest { key: key.to_vec(), bounds: *bounds };
            let requests: Vec<_> = keys.iter().flatten().zip(bounds).map(request).collect();
            return self.shared.points(
                &self.view,
                self.table,
                &requests,
                &self.projection,
                self.counts.as_ref(),
            );
        }
        self.scan.answer(keys, bounds)
    }
}
