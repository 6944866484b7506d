//! Gaps between what the store took from a stream and what the stream still has (rule C3). A stream
//! with a gap stops until somebody accepts it by a command that is recorded.

use super::numbers::Numbers;
use crate::error::{Error, ErrorKind, Result};
use crate::near::near_names_hint;
use asofdb_storage::engine::{Catalog, CommitRequest};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Where a stream begins that keeps its messages for some time only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStart {
    /// Its name, as in [`crate::source::Place::stream`].
    pub stream: String,
    /// The lowest position that it has, or will have if it is empty.
    pub first: u64,
    /// What tells it from another stream of the same name, such as the id of a topic.
    pub identity: Option<String>,
}

/// What is stored of the identity of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    identity: Option<String>,
    /// How many other streams of the name came before.
    #[serde(default)]
    generation: u32,
}

/// The place at which a gap was accepted; a later gap is another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Accepted {
    next: u64,
    identity: Option<String>,
}

/// What an intake needs to know of streams with starts.
#[derive(Debug, Default)]
pub struct Starts {
    /// Generations to add to those that the source knows.
    pub generations: HashMap<String, u32>,
    /// Identities to store.
    pub positions: Vec<(String, serde_json::Value)>,
}

fn identity_key(stream: &str) -> String {
    format!("intake/identity/{stream}")
}

fn gap_key(stream: &str) -> String {
    format!("intake/gap/{stream}")
}

fn stored<T: serde::de::DeserializeOwned>(catalog: &Catalog, key: &str) -> Option<T> {
    serde_json::from_value(catalog.positions.get(key)?.clone()).ok()
}

/// The position up to which the newest stream of that name was taken; `None` if there is none.
fn next_of(catalog: &Catalog, numbers: &Numbers, stream: &str) -> Option<u64> {
    let id = catalog.streams.iter().rev().find(|s| s.name == stream)?.id;
    let origins = numbers.origins.iter().filter(|o| o.stream == id.0);
    Some(origins.map(|o| o.next).max().unwrap_or(0))
}

/// Compares where streams begin with where the store is.
///
/// # Errors
/// `Source` for a gap that was not accepted.
pub fn check(catalog: &Catalog, starts: &[StreamStart]) -> Result<Starts> {
    let mut out = Starts::default();
    if starts.is_empty() {
        return Ok(out);
    }
    let numbers = Numbers::of_catalog(catalog, None);
    for start in starts {
        let name = &start.stream;
        let mut known: Identity = stored(catalog, &identity_key(name)).unwrap_or_default();
        if let Some(next) = next_of(catalog, &numbers, name) {
            let accepted: Option<Accepted> = stored(catalog, &gap_key(name));
            let here = Accepted { next, identity: known.identity.clone() };
            let accepted = accepted.is_some_and(|a| a == here);
            let other =
                known.identity.is_some() && start.identity.is_some() && known.identity != start.identity;
            let what = match (other, start.first > next) {
                (false, false) => None,
                (true, _) => Some(format!(
                    "stream {name} is another one now: it was {}, and is {}",
                    known.identity.as_deref().unwrap_or("none"),
                    start.identity.as_deref().unwrap_or("none")
                )),
                (false, true) => Some(format!(
                    "stream {name} begins at position {} now, and the store is at {next}: what lies between is gone",
                    start.first
                )),
            };
            if let Some(what) = what.filter(|_| !accepted) {
                return Err(Error::new(ErrorKind::Source, what).hint(format!(
                    "asof accept-gap STORE '{name}' records that the gap is accepted; then the intake goes on"
                )));
            }
            known.generation += u32::from(other);
        }
        if known.generation > 0 {
            out.generations.insert(name.clone(), known.generation);
        }
        known.identity = start.identity.clone().or(known.identity);
        let value = serde_json::json!(known);
        if catalog.positions.get(&identity_key(name)) != Some(&value) {
            out.positions.push((identity_key(name), value));
        }
    }
    Ok(out)
}

/// The commit that accepts the gap of a stream at the place where the store is; `None` if that was
/// accepted before.
///
/// # Errors
/// `Failed` if the store took nothing from such a stream; names near ones.
pub(crate) fn accept(catalog: &Catalog, stream: &str) -> Result<Option<CommitRequest>> {
    let Some(next) = next_of(catalog, &Numbers::of_catalog(catalog, None), stream) else {
        let known = catalog.streams.iter().map(|s| s.name.as_str());
        return Err(Error::failed(format!("the store took nothing from a stream {stream}"))
            .hint(near_names_hint(stream, known)));
    };
    let identity = stored::<Identity>(catalog, &identity_key(stream)).unwrap_or_default().identity;
    let value = serde_json::json!(Accepted { next, identity });
    if catalog.positions.get(&gap_key(stream)) == Some(&value) {
        return Ok(None);
    }
    let note = serde_json::json!({"kind": "accept-gap", "stream": stream, "next": next});
    Ok(Some(CommitRequest { positions: vec![(gap_key(stream), value)], note, ..CommitRequest::default() }))
}
