//! What an update changes, where the document itself is not sent.

use super::bson::{cell, write_value};
use crate::change::Column;
use crate::format::fields::{Reject, shortened};
use crate::format::json::{self, Member, Raw};
use crate::format::scratch::Scratch;
use asofdb_storage::value::Cell;

const WHOLE_HINT: &str = "the connector sends whole documents with capture.mode=change_streams_update_full";

/// A part of a document that is written.
enum Node<'a> {
    Value(Raw<'a>),
    /// Removed: a field that is not there is NULL.
    Removed,
    Inside(Vec<(&'a str, Node<'a>)>),
}

/// Fields by their paths, in the order in which they came.
#[derive(Default)]
struct Tree<'a>(Vec<(&'a str, Node<'a>)>);

impl<'a> Tree<'a> {
    /// Notes what is written to a path.
    fn put(&mut self, path: &'a str, node: Node<'a>) -> Result<(), Reject> {
        let mut list = &mut self.0;
        let mut parts = path.split('.').peekable();
        let conflict = || Reject::new(format!("the update names `{}` twice", shortened(path)));
        for depth in 0.. {
            let Some(part) = parts.next() else { break };
            if depth > 0 && part.bytes().all(|b| b.is_ascii_digit()) || part.is_empty() {
                let reason = format!("the update writes to a part of an array, `{}`", shortened(path));
                return Err(Reject::new(reason).hint(WHOLE_HINT));
            }
            if depth >= json::DEPTH_MAX / 2 {
                return Err(Reject::new("the update writes too deep into a document"));
            }
            let found = list.iter().position(|(name, _)| *name == part);
            if parts.peek().is_none() {
                if found.is_some() {
                    return Err(conflict());
                }
                list.push((part, node));
                return Ok(());
            }
            let at = found.unwrap_or_else(|| {
                list.push((part, Node::Inside(Vec::new())));
                list.len() - 1
            });
            list = match &mut list[at].1 {
                Node::Inside(inside) => inside,
                _ => return Err(conflict()),
            };
        }
        Ok(())
    }
}

/// The columns that an update writes: `updatedFields`, `removedFields`, `truncatedArrays`, all of which may
/// be there or not.
pub fn columns<'a>(
    description: &'a str,
    scratch: &mut Scratch<'a>,
    out: &mut Vec<Column<'a>>,
) -> Result<(), Reject> {
    let mut tree = Tree::default();
    if let Some(Raw::Nested { text, .. }) = json::member(description, "truncatedArrays")
        && text.len() > 2
    {
        return Err(Reject::new("the update cuts an array and does not hold it").hint(WHOLE_HINT));
    }
    let updated = match json::member(description, "updatedFields") {
        Some(Raw::Text(t)) => t.resolve(scratch),
        Some(Raw::Nested { text, .. }) => text,
        _ => "{}",
    };
    fields(updated, scratch, &mut tree)?;
    if let Some(Raw::Nested { text, .. }) = json::member(description, "removedFields") {
        let mut removed = Vec::new();
        json::elements(text, &mut removed)?;
        for field in removed {
            if let Raw::Text(path) = field.value {
                tree.put(path.resolve(scratch), Node::Removed)?;
            }
        }
    }
    write(&tree, scratch, out)
}

/// The columns that a `patch` of connectors before 2.0 writes, and whether it is a whole document.
pub fn patched<'a>(
    patch: &'a str,
    scratch: &mut Scratch<'a>,
    out: &mut Vec<Column<'a>>,
) -> Result<bool, Reject> {
    let (set, unset) = (json::member(patch, "$set"), json::member(patch, "$unset"));
    if set.is_none() && unset.is_none() {
        super::decode::document(patch, scratch, out)?;
        return Ok(true);
    }
    let mut tree = Tree::default();
    if let Some(Raw::Nested { text, .. }) = set {
        fields(text, scratch, &mut tree)?;
    }
    if let Some(Raw::Nested { text, .. }) = unset {
        let mut members = Vec::new();
        json::members(text, &mut members)?;
        for member in members {
            tree.put(member.name.resolve(scratch), Node::Removed)?;
        }
    }
    write(&tree, scratch, out)?;
    Ok(false)
}

fn fields<'a>(text: &'a str, scratch: &mut Scratch<'a>, tree: &mut Tree<'a>) -> Result<(), Reject> {
    let mut members: Vec<Member<'a>> = Vec::new();
    json::members(text, &mut members)?;
    for member in members {
        tree.put(member.name.resolve(scratch), Node::Value(member.value))?;
    }
    Ok(())
}

fn write<'a>(tree: &Tree<'a>, scratch: &mut Scratch<'a>, out: &mut Vec<Column<'a>>) -> Result<(), Reject> {
    for (name, node) in &tree.0 {
        let cell = match node {
            Node::Value(raw) => cell(raw, scratch)?,
            Node::Removed => Cell::Null,
            Node::Inside(inside) => {
                let mut text = String::new();
                write_leaves(inside, &mut text, scratch)?;
                Cell::Leaves(scratch.put_str(|out| out.push_str(&text)))
            }
        };
        out.push(Column { name, cell });
    }
    Ok(())
}

fn write_leaves<'a>(
    list: &[(&'a str, Node<'a>)],
    out: &mut String,
    scratch: &mut Scratch<'a>,
) -> Result<(), Reject> {
    out.push('{');
    for (i, (name, node)) in list.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&serde_json::Value::String((*name).to_owned()).to_string());
        out.push(':');
        match node {
            Node::Value(raw) => write_value(raw, out, scratch)?,
            Node::Removed => out.push_str("null"),
            Node::Inside(inside) => write_leaves(inside, out, scratch)?,
        }
    }
    out.push('}');
    Ok(())
}
