//! Format 2: one object a change, and one each for the beginning and the end of a transaction.

use super::decode::{Lists, Parts, Reader, Step, Transaction, position, text, transaction, unknown};
use crate::format::fields::Reject;
use crate::format::json::{self, Member, Raw};
use asofdb_storage::event::Op;
use std::ops::Range;

/// Reads the message whose members are in `lists.outer`.
pub fn read<'a>(reader: &mut Reader<'_, 'a>, lists: &mut Lists<'a>, open: &mut Option<Transaction>) -> Step {
    let op = match text(&lists.outer, "action", reader.scratch)? {
        Some("I") => Op::Insert,
        Some("U") => Op::Update,
        Some("D") => Op::Delete,
        Some("T") => Op::Truncate,
        Some("M") => return Ok(Some("message")),
        Some("B") => {
            *open = Some(transaction(&lists.outer, reader.options));
            return Ok(Some("begin"));
        }
        Some("C") => {
            *open = None;
            return Ok(Some("commit"));
        }
        other => return Err(unknown(other.unwrap_or(""))),
    };
    // The row may repeat what the beginning said; it is all there is if nobody saw the beginning.
    let mut own = transaction(&lists.outer, reader.options);
    if let Some(open) = open {
        own = Transaction {
            time: own.time.or(open.time),
            end: open.end,
            xid: own.xid.or_else(|| open.xid.clone()),
            rows: open.rows,
        };
        open.rows += 1;
    }
    let lsn = text(&lists.outer, "lsn", reader.scratch)?.and_then(position);
    let schema = text(&lists.outer, "schema", reader.scratch)?;
    let Some(table) = text(&lists.outer, "table", reader.scratch)? else {
        return Err(Reject::new("the change names no table"));
    };
    list(reader, lists, "pk")?;
    lists.key.clear();
    for m in &lists.members {
        lists.key.push(m.name.resolve(reader.scratch));
    }
    let identity = columns(reader, lists, "identity")?;
    let columns = columns(reader, lists, "columns")?;
    let parts = Parts { op, schema, table, columns, identity };
    reader.push(parts, &lists.key, &mut own, lsn)?;
    Ok(None)
}

fn columns<'a>(
    reader: &mut Reader<'_, 'a>,
    lists: &mut Lists<'a>,
    name: &str,
) -> Result<Range<usize>, Reject> {
    let base = list(reader, lists, name)?;
    reader.columns(lists, base)
}

/// Puts the columns that a list of objects describes into `lists`; where the list begins.
fn list<'a>(reader: &mut Reader<'_, 'a>, lists: &mut Lists<'a>, name: &str) -> Result<usize, Reject> {
    lists.members.clear();
    lists.types.clear();
    lists.parts.clear();
    let base = match lists.outer.iter().find(|m| m.name.text == name) {
        Some(Member { value: Raw::Nested { text, .. }, at, .. }) => {
            json::elements(text, &mut lists.parts).map_err(|e| Reject::from(e).at(at + e.at))?;
            *at
        }
        None | Some(Member { value: Raw::Null, .. }) => 0,
        Some(m) => return Err(Reject::new(format!("`{name}` is not a list")).at(m.at)),
    };
    for column in &lists.parts {
        let bad = |what: &str| Reject::new(format!("a column of `{name}` {what}")).at(base + column.at);
        let Raw::Nested { text: object, .. } = column.value else { return Err(bad("is no object")) };
        lists.inner.clear();
        json::members(object, &mut lists.inner).map_err(|e| Reject::from(e).at(base + column.at + e.at))?;
        let part = |name: &str| lists.inner.iter().find(|m| m.name.text == name).map(|m| m.value);
        let Some(Raw::Text(name)) = part("name") else { return Err(bad("has no name")) };
        let ty = match part("type") {
            Some(Raw::Text(t)) => t.resolve(reader.scratch),
            _ => "",
        };
        let value = part("value").unwrap_or(Raw::Null);
        lists.members.push(Member { name, value, at: column.at });
        lists.types.push(ty);
    }
    Ok(base)
}
