//! The keys that encoded rows speak of.

use super::table::TableIntake;
use crate::error::{Error, Result};
use asofdb_storage::event::{Op, RowView};
use asofdb_storage::id::ColumnId;
use asofdb_storage::key::put_key_cell;
use asofdb_storage::value::Cell;

/// A row that this batch encoded.
///
/// # Errors
/// If it cannot be read, which is a fault of ours.
pub fn parse(row: &[u8]) -> Result<RowView<'_>> {
    RowView::parse(row).map_err(|e| Error::failed(format!("a row of the batch cannot be read back: {e}")))
}

/// The authored cells of a row.
///
/// # Errors
/// As [`parse`].
pub fn cells_of<'a>(view: &RowView<'a>) -> Result<Vec<(ColumnId, Cell<'a>)>> {
    view.cells()
        .collect::<std::result::Result<_, _>>()
        .map_err(|e| Error::failed(format!("a row of the batch cannot be read back: {e}")))
}

/// The keys that a row speaks of: its own first, then the one it had before.
pub fn sides(t: &TableIntake, view: &RowView<'_>) -> Result<Vec<Vec<u8>>> {
    if view.head.op == Op::Truncate {
        return Ok(vec![Vec::new()]);
    }
    let cells = cells_of(view)?;
    let ids = t.key_ids();
    if ids.is_empty() {
        let old = view.previous.as_ref().map(|p| {
            let cells: Vec<_> = p.iter().enumerate().map(|(i, c)| (ColumnId(i as u32), *c)).collect();
            whole_row(&cells)
        });
        return Ok(if view.head.op == Op::Delete {
            vec![old.unwrap_or_default()]
        } else {
            std::iter::once(whole_row(&cells)).chain(old).collect()
        });
    }
    let mut key = Vec::new();
    for id in &ids {
        let cell = cells.iter().find(|(c, _)| c == id).map_or(Cell::Null, |(_, c)| *c);
        put_key_cell(&mut key, &cell);
    }
    let mut out = vec![key];
    if let Some(previous) = &view.previous {
        let mut key = Vec::new();
        previous.iter().for_each(|c| put_key_cell(&mut key, c));
        out.push(key);
    }
    Ok(out)
}

/// The key bytes of a row of a table without a key, as storage makes them.
fn whole_row(cells: &[(ColumnId, Cell<'_>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (id, cell) in cells.iter().filter(|(_, c)| *c != Cell::Null) {
        out.extend_from_slice(&id.0.to_be_bytes());
        put_key_cell(&mut out, cell);
    }
    if out.is_empty() {
        put_key_cell(&mut out, &Cell::Null);
    }
    out
}
