//! Flows in the catalog: each under a key of its own, with the commit that declares it. A flow that was
//! dropped leaves an empty entry.

use super::definition::Flow;
use crate::error::{Error, ErrorKind, Result};
use crate::near::near_names_hint;
use asofdb_storage::engine::{Catalog, CommitRequest};
use serde::{Deserialize, Serialize};

/// Prefix of the catalog keys of flows.
const PREFIX: &str = "flow/";
/// Version of what is stored; higher ones are refused.
const VERSION: u32 = 1;

/// What stands in the catalog.
#[derive(Serialize, Deserialize)]
struct Stored<F> {
    version: u32,
    flow: F,
}

/// A flow of the catalog, or why it cannot be read.
#[derive(Clone, Debug)]
pub struct NamedFlow {
    /// Its name.
    pub name: String,
    /// The flow; an error where a newer version declared it.
    pub flow: Result<Flow>,
}

/// All declared flows by name.
pub fn flows(catalog: &Catalog) -> Vec<NamedFlow> {
    let entries = catalog.positions.range(PREFIX.to_owned()..);
    let entries = entries.map_while(|(key, value)| Some((key.strip_prefix(PREFIX)?, value)));
    let live = entries.filter(|(_, value)| !value.is_null());
    live.map(|(name, value)| NamedFlow { name: name.to_owned(), flow: read(name, value) }).collect()
}

/// The flow called `name`; its case matters only where two differ by it.
///
/// # Errors
/// `Failed` if there is none (names near ones), or a newer version declared it.
pub fn find(catalog: &Catalog, name: &str) -> Result<Flow> {
    let all = flows(catalog);
    match named(&all, name) {
        Some(found) => found.flow.clone(),
        None => Err(Error::failed(format!("there is no flow {name}"))
            .hint(near_names_hint(name, all.iter().map(|f| f.name.as_str())))),
    }
}

/// The one of `all` that is called `name`, in its case if there is one.
pub(crate) fn named<'f>(all: &'f [NamedFlow], name: &str) -> Option<&'f NamedFlow> {
    let exact = all.iter().find(|f| f.name == name);
    exact.or_else(|| all.iter().find(|f| f.name.eq_ignore_ascii_case(name)))
}

fn read(name: &str, value: &serde_json::Value) -> Result<Flow> {
    let unreadable = |e: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Failed, format!("flow {name} cannot be read: {e}"))
            .hint("it may have been declared by a newer version; CREATE OR REPLACE FLOW declares it again")
    };
    let stored: Stored<serde_json::Value> =
        serde_json::from_value(value.clone()).map_err(|e| unreadable(&e))?;
    if stored.version > VERSION {
        return Err(unreadable(&format!("its version is {}", stored.version)));
    }
    serde_json::from_value(stored.flow).map_err(|e| unreadable(&e))
}

/// The commit that declares a flow, in place of one of its name.
pub(crate) fn declare(flow: &Flow, kind: &str) -> CommitRequest {
    let stored = serde_json::json!(Stored { version: VERSION, flow });
    change(kind, &flow.name, stored)
}

/// The commit that drops a flow.
pub(crate) fn drop_flow(name: &str) -> CommitRequest {
    change("drop-flow", name, serde_json::Value::Null)
}

fn change(kind: &str, name: &str, value: serde_json::Value) -> CommitRequest {
    CommitRequest {
        positions: vec![(format!("{PREFIX}{name}"), value)],
        note: serde_json::json!({ "kind": kind, "flow": name }),
        ..CommitRequest::default()
    }
}
