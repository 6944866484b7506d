//! What the engine keeps of a key: its newest row that is still open.

use super::error::IndexError;
use crate::event::{CellReader, RowError, put_cell, put_varint};
use crate::id::ColumnId;
use crate::value::Value;

/// The row of a key that holds now and from now on: both of its intervals have no end yet.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenRow {
    /// Start of the valid interval, microseconds or the integer of an integer axis; inclusive.
    pub valid_start: i64,
    /// Start of the system interval, microseconds; inclusive.
    pub system_start: i64,
    /// Values by ascending column. A column whose value is not known is left out.
    pub cells: Vec<(ColumnId, Value)>,
}

impl OpenRow {
    /// The bytes of the row.
    ///
    /// # Panics
    /// In debug builds, if the columns do not ascend.
    pub fn encode(&self) -> Vec<u8> {
        debug_assert!(self.cells.windows(2).all(|w| w[0].0 < w[1].0), "columns must ascend");
        let mut out = Vec::with_capacity(17 + self.cells.len() * 8);
        out.extend_from_slice(&self.valid_start.to_le_bytes());
        out.extend_from_slice(&self.system_start.to_le_bytes());
        put_varint(&mut out, self.cells.len() as u64);
        let mut next = 0;
        for (id, value) in &self.cells {
            put_varint(&mut out, id.0.wrapping_sub(next) as u64);
            next = id.0.wrapping_add(1);
            put_cell(&mut out, &value.as_cell());
        }
        out
    }

    /// The row of bytes that [`OpenRow::encode`] made. Any bytes are accepted as input.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] if the bytes are no row.
    pub fn decode(bytes: &[u8]) -> Result<OpenRow, IndexError> {
        decode(bytes).map_err(|RowError { what, at }| IndexError::Damaged {
            what: format!("an entry is no row: {what} at byte {at}"),
        })
    }
}

fn decode(bytes: &[u8]) -> Result<OpenRow, RowError> {
    let mut r = CellReader::new(bytes);
    let (valid_start, system_start) = (r.fixed()?, r.fixed()?);
    // Two bytes each at least, so a wrong count cannot ask for much memory.
    let count = r.count()?;
    let mut cells = Vec::with_capacity(count.min(1024));
    let mut next = Some(0u32);
    for _ in 0..count {
        let skip = r.narrow()?;
        let id = next.and_then(|n| n.checked_add(skip)).ok_or(r.error("column number too large"))?;
        next = id.checked_add(1);
        let value = r.cell()?.to_value().ok_or(r.error("a value that is not known"))?;
        cells.push((ColumnId(id), value));
    }
    if r.is_at_end() {
        Ok(OpenRow { valid_start, system_start, cells })
    } else {
        Err(r.error("more bytes than a row"))
    }
}
