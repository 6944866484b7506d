//! Format 1: one object a transaction. Names, types and values of columns are lists of their own.

use super::decode::{Lists, Parts, Reader, Step, Transaction, text, transaction, unknown};
use crate::format::fields::Reject;
use crate::format::json::{self, Member, Raw};
use asofdb_storage::event::Op;

/// Reads the transaction whose members are in `lists.outer`.
pub fn read<'a>(reader: &mut Reader<'_, 'a>, lists: &mut Lists<'a>) -> Step {
    let mut transaction = transaction(&lists.outer, reader.options);
    let Some(Member { value: Raw::Nested { text: list, .. }, at, .. }) =
        lists.outer.iter().find(|m| m.name.text == "change")
    else {
        return Err(Reject::new("`change` is not a list"));
    };
    let (list, base) = (*list, *at);
    let mut changes = std::mem::take(&mut lists.outer);
    changes.clear();
    json::elements(list, &mut changes).map_err(|e| Reject::from(e).at(base + e.at))?;
    let mut ignored = if changes.is_empty() { Some("empty_transaction") } else { None };
    for change in &changes {
        let at = base + change.at;
        if !one(reader, lists, change, at, &mut transaction)? {
            ignored = Some("message");
        }
    }
    lists.outer = changes;
    Ok(ignored.filter(|_| reader.rows.is_empty()))
}

/// Reads one change; false for a message that is about no row.
fn one<'a>(
    reader: &mut Reader<'_, 'a>,
    lists: &mut Lists<'a>,
    change: &Member<'a>,
    at: usize,
    transaction: &mut Transaction,
) -> Result<bool, Reject> {
    let Raw::Nested { text: object, .. } = change.value else {
        return Err(Reject::new("a change is no object").at(at));
    };
    lists.inner.clear();
    json::members(object, &mut lists.inner).map_err(|e| Reject::from(e).at(at + e.at))?;
    let op = match text(&lists.inner, "kind", reader.scratch)? {
        Some("insert") => Op::Insert,
        Some("update") => Op::Update,
        Some("delete") => Op::Delete,
        Some("truncate") => Op::Truncate,
        Some("message") => return Ok(false),
        other => return Err(unknown(other.unwrap_or("")).at(at)),
    };
    let schema = text(&lists.inner, "schema", reader.scratch)?;
    let Some(table) = text(&lists.inner, "table", reader.scratch)? else {
        return Err(Reject::new("the change names no table").at(at));
    };
    lists.key.clear();
    if let Some((pk, _)) = nested(lists, "pk", at)? {
        let names = json::member(pk, "pknames");
        names_of(reader, names, &mut lists.parts, &mut lists.key)?;
    }
    let mut identity = 0..0;
    if let Some((old, at)) = nested(lists, "oldkeys", at)? {
        let names = ["keynames", "keytypes", "keyvalues"].map(|name| json::member(old, name));
        list(reader, lists, names, at)?;
        identity = reader.columns(lists, at)?;
    }
    let names = ["columnnames", "columntypes", "columnvalues"];
    let names = names.map(|name| lists.inner.iter().find(|m| m.name.text == name).map(|m| m.value));
    list(reader, lists, names, at)?;
    let columns = reader.columns(lists, at)?;
    let parts = Parts { op, schema, table, columns, identity };
    reader.push(parts, &lists.key, transaction, None).map_err(|e| e.at(at))?;
    Ok(true)
}

/// The text of a member that is an object, and where it begins.
fn nested<'a>(lists: &Lists<'a>, name: &str, at: usize) -> Result<Option<(&'a str, usize)>, Reject> {
    match lists.inner.iter().find(|m| m.name.text == name) {
        Some(Member { value: Raw::Nested { text, .. }, at: inside, .. }) if text.starts_with('{') => {
            Ok(Some((text, at + inside)))
        }
        None | Some(Member { value: Raw::Null, .. }) => Ok(None),
        Some(_) => Err(Reject::new(format!("`{name}` is no object")).at(at)),
    }
}

/// Puts the elements of a list of texts into `out`.
fn names_of<'a>(
    reader: &mut Reader<'_, 'a>,
    names: Option<Raw<'a>>,
    parts: &mut Vec<Member<'a>>,
    out: &mut Vec<&'a str>,
) -> Result<(), Reject> {
    parts.clear();
    if let Some(Raw::Nested { text, .. }) = names {
        json::elements(text, parts)?;
    }
    for name in parts.iter() {
        let Raw::Text(name) = name.value else {
            return Err(Reject::new("the name of a column or type is not a text"));
        };
        out.push(name.resolve(reader.scratch));
    }
    Ok(())
}

/// Puts the columns that lists of names, types and values describe into `lists`.
fn list<'a>(
    reader: &mut Reader<'_, 'a>,
    lists: &mut Lists<'a>,
    [names, types, values]: [Option<Raw<'a>>; 3],
    at: usize,
) -> Result<(), Reject> {
    lists.members.clear();
    lists.types.clear();
    names_of(reader, types, &mut lists.parts, &mut lists.types)?;
    if let Some(Raw::Nested { text, .. }) = values {
        json::elements(text, &mut lists.members).map_err(|e| Reject::from(e).at(at))?;
    }
    lists.parts.clear();
    if let Some(Raw::Nested { text, .. }) = names {
        json::elements(text, &mut lists.parts).map_err(|e| Reject::from(e).at(at))?;
    }
    if lists.parts.len() != lists.members.len() {
        let (names, values) = (lists.parts.len(), lists.members.len());
        return Err(
            Reject::new(format!("the change has {names} names of columns and {values} values")).at(at)
        );
    }
    for (member, name) in lists.members.iter_mut().zip(&lists.parts) {
        let Raw::Text(name) = name.value else {
            return Err(Reject::new("the name of a column is not a text").at(at));
        };
        // Where it stands in the list is of no use to people: they look for the change.
        (member.name, member.at) = (name, 0);
    }
    Ok(())
}
