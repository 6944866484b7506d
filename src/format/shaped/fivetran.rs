//! Rows that Fivetran loads, with the mark of deletes, or as versions of rows (history mode).

use super::shape::{Said, ordered, sent, time};
use crate::change::{Column, Times, Token};
use crate::format::fields::Reject;
use crate::format::options::FormatOptions;
use crate::format::scratch::Scratch;
use asofdb_storage::event::Op;
use asofdb_storage::value::Cell;

const MILLISECOND: i64 = 1_000;
/// 9999-01-01: the end of a version that holds is the last instant of that year.
const FOREVER: i64 = 253_370_764_800_000_000;

/// What a row says of itself.
///
/// # Errors
/// If its mark of deletes is neither true nor false.
pub fn said<'a>(
    options: &FormatOptions,
    columns: &[Column<'a>],
    scratch: &mut Scratch<'a>,
) -> Result<Said<'a>, Reject> {
    let deleted = match sent(columns, "_fivetran_deleted") {
        Some(mark) => {
            truth(mark).ok_or_else(|| Reject::new("`_fivetran_deleted` is neither true nor false"))?
        }
        None => false,
    };
    let op = if deleted { Op::Delete } else { options.default_op };
    // When the row was loaded: the source's own time is not sent.
    let connector = time(options, columns, "_fivetran_synced");
    let Some(start) = time(options, columns, "_fivetran_start") else {
        return Ok(Said::new(op, Times { connector, ..Times::default() }));
    };
    let mut said = Said::new(op, Times { source: Some(start), connector, broker: None });
    // Versions come in any order.
    let mut token = |at: i64| Token { server: "fivetran", position: scratch.put(&ordered(at)) };
    (said.token, said.ties[0]) = (Some(token(start)), Some(Cell::Int(1)));
    // The end is the last millisecond in which the version held.
    let end = time(options, columns, "_fivetran_end").filter(|end| *end < FOREVER);
    said.until = end.map(|end| end + MILLISECOND).filter(|end| *end > start).map(|end| (end, token(end)));
    Ok(said)
}

fn truth(mark: &Cell<'_>) -> Option<bool> {
    match *mark {
        Cell::Bool(v) => Some(v),
        Cell::Int(n @ (0 | 1)) => Some(n == 1),
        Cell::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "1" | "y" | "yes" => Some(true),
            "false" | "f" | "0" | "n" | "no" | "" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
