//! Rows that Airbyte loads: typed tables, and raw ones with the row as JSON.

use super::shape::{Said, integer, ordered, sent, time};
use crate::change::{Column, Times, Token};
use crate::format::fields::{Reject, columns as cells, untyped_cell};
use crate::format::json;
use crate::format::options::FormatOptions;
use crate::format::scratch::Scratch;
use asofdb_storage::event::Op;
use asofdb_storage::value::Cell;

const DATA: &str = "_airbyte_data";

/// Adds the columns of a raw table's row, which is one document.
///
/// # Errors
/// If that cannot be read.
pub fn unpack<'a>(columns: &mut Vec<Column<'a>>, scratch: &mut Scratch<'a>) -> Result<(), Reject> {
    let Some(&(Cell::Json(text) | Cell::Text(text))) = sent(columns, DATA) else { return Ok(()) };
    let mut members = Vec::new();
    json::members(text, &mut members).map_err(|e| Reject::new(format!("`{DATA}` is no row: {}", e.what)))?;
    let mut row = Vec::new();
    cells(&members, 0, scratch, &mut row, |_, _, m, s| untyped_cell(&m.value, s))?;
    columns.retain(|c| !row.iter().any(|r| r.name == c.name));
    columns.append(&mut row);
    Ok(())
}

/// What a row says of itself.
pub fn said<'a>(options: &FormatOptions, columns: &[Column<'a>], scratch: &mut Scratch<'a>) -> Said<'a> {
    let deleted = sent(columns, "_ab_cdc_deleted_at").is_some();
    let op = if deleted { Op::Delete } else { options.default_op };
    let time = |name| time(options, columns, name);
    let source = time("_ab_cdc_updated_at").or_else(|| time("_ab_cdc_deleted_at"));
    let connector = time("_airbyte_extracted_at").or_else(|| time("_airbyte_emitted_at"));
    let mut said = Said::new(op, Times { source, connector, broker: None });
    // Equal for all rows of a snapshot: what tells them apart is their key and content.
    if let Some((server, position)) = position(columns) {
        said.token = Some(Token { server, position: scratch.put(&position) });
    }
    // Rows of a table come in any order.
    let order = ["_ab_cdc_lsn", "_ab_cdc_cursor"].into_iter().filter_map(|n| integer(columns, n)).next();
    let order = order.and_then(|n| i64::try_from(n).ok());
    said.ties[0] = Some(order.map_or(Cell::Null, Cell::Int));
    said
}

/// The log, and the place in it.
fn position<'a>(columns: &[Column<'a>]) -> Option<(&'a str, [u8; 16])> {
    let mut position = [0; 16];
    if let Some(lsn) = integer(columns, "_ab_cdc_lsn").filter(|n| *n > 0) {
        position.copy_from_slice(&lsn.to_be_bytes());
        return Some(("airbyte/lsn", position));
    }
    let Some(&Cell::Text(file)) = sent(columns, "_ab_cdc_log_file") else { return None };
    let (base, number) = file.rsplit_once('.')?;
    let place = integer(columns, "_ab_cdc_log_pos").and_then(|n| i64::try_from(n).ok())?;
    position[..8].copy_from_slice(&number.parse::<u64>().ok()?.to_be_bytes());
    position[8..].copy_from_slice(&ordered(place));
    Some((base, position))
}
