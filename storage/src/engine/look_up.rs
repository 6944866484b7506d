//! Prepared look-ups of keys.

use super::api::Snapshot;
use super::error::Error;
use super::request::{Bounds, PointRequest};
use super::scan::{PointReader, TableScan};
use crate::id::{ColumnId, TableId};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

/// A look-up of rows of one table by key, prepared once and asked often, also from several threads at
/// once. It answers as of the commit of the snapshot it was made of, and keeps that.
#[derive(Debug)]
pub struct KeyLookUp {
    snapshot: Snapshot,
    table: TableId,
    projection: Vec<ColumnId>,
    reader: PointReader,
}

impl Snapshot {
    /// Prepares looking up the columns `projection` of rows of a table by key.
    ///
    /// # Errors
    /// As [`Snapshot::points`].
    pub fn look_up(&self, table: TableId, projection: &[ColumnId]) -> Result<KeyLookUp, Error> {
        let scan = TableScan::new(self.view(), table)?;
        let schema = scan.latest_schema();
        let reader = PointReader::new(scan, projection, &schema)?;
        Ok(KeyLookUp { snapshot: self.clone(), table, projection: projection.to_vec(), reader })
    }
}

impl KeyLookUp {
    /// The columns of a row: types of the table's latest schema.
    pub fn schema(&self) -> &SchemaRef {
        self.reader.fields()
    }

    /// The row of a key by its key bytes at a point, as a batch of one row; `None` if it has none there.
    /// In a table without a key, as many equal rows as there are. Bounds beyond the pinned commit mean the
    /// pinned commit.
    ///
    /// # Errors
    /// As [`Snapshot::points`].
    pub fn get(&self, key: &[u8], bounds: Bounds) -> Result<Option<RecordBatch>, Error> {
        if !self.snapshot.has_index() {
            return self.reader.row(key, bounds);
        }
        let request = PointRequest { key: key.to_vec(), bounds };
        let (found, rows) = self.snapshot.points(self.table, &[request], &self.projection)?;
        Ok((!found.is_empty()).then_some(rows))
    }
}
