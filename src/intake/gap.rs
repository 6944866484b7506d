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
    /// How it shows that it is another stream than the one that was taken from.
    pub replaced: Option<String>,
    /// Where reading begins if nothing was taken from it yet, unless that is where it begins.
    pub begin: Option<u64>,
}

/// How far a stream was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// The position to go on from; `None` if nothing was taken or decided.
    pub next: Option<u64>,
    /// How many other streams of the name came before.
    pub generation: u32,
}

/// What is stored of the identity of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    identity: Option<String>,
    /// How many other streams of the name came before.
    #[serde(default)]
    generation: u32,
    /// Where reading began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begin: Option<u64>,
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
    /// Where reading begins is among them: to be stored before the first message comes, or what comes between
    /// this run and the next would not be taken.
    pub begins: bool,
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

/// The position up to which the stream of that name and generation was taken; `None` if there is none.
pub(super) fn next_in(catalog: &Catalog, numbers: &Numbers, stream: &str, generation: u32) -> Option<u64> {
    let is_it = |id: usize| numbers.streams.get(id).is_some_and(|s| s.state.generation == generation);
    let mut named = catalog.streams.iter().filter(|s| s.name == stream);
    let id = named.find(|s| is_it(s.id.0 as usize))?.id;
    numbers.origins.iter().filter(|o| o.stream == id.0).map(|o| o.next).max()
}

/// How far a stream was taken whose generations the caller counts in the same way; with what `checked` says.
pub(super) fn taken(catalog: &Catalog, numbers: &Numbers, stream: &str, checked: Option<&Starts>) -> Taken {
    let known: Identity = stored(catalog, &identity_key(stream)).unwrap_or_default();
    let now = checked.and_then(|c| c.generations.get(stream).copied()).unwrap_or(known.generation);
    let begin = known.begin.filter(|_| now == known.generation);
    Taken { next: next_in(catalog, numbers, stream, now).or(begin), generation: now }
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
        let next = taken(catalog, &numbers, name, None).next;
        if let Some(next) = next {
            let accepted: Option<Accepted> = stored(catalog, &gap_key(name));
            let accepted = accepted.is_some_and(|a| a == Accepted { next, identity: known.identity.clone() });
            let other = known.another(start);
            let gap = (start.first > next).then(|| {
                format!(
                    "stream {name} begins at position {} now, and the store is at {next}: what lies between is gone",
                    start.first
                )
            });
            let what = other.as_ref().map(|what| format!("stream {name} is another one now: {what}")).or(gap);
            if let Some(what) = what.filter(|_| !accepted) {
                return Err(Error::new(ErrorKind::Source, what).hint(format!(
                    "asof accept-gap STORE '{name}' records that the gap is accepted; then the intake goes on"
                )));
            }
            if other.is_some() {
                (known.generation, known.begin) = (known.generation + 1, None);
            }
        } else if start.begin.is_some() {
            (known.begin, out.begins) = (start.begin, true);
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

impl Identity {
    /// What shows that a stream is another one than that.
    fn another(&self, start: &StreamStart) -> Option<String> {
        let other = self.identity.is_some() && start.identity.is_some() && self.identity != start.identity;
        let was = |identity: &Option<String>| identity.clone().unwrap_or_else(|| "none".into());
        let identities =
            other.then(|| format!("it was {}, and is {}", was(&self.identity), was(&start.identity)));
        identities.or_else(|| start.replaced.clone())
    }
}

/// The commit that accepts the gap of a stream at the place where the store is; `None` if that was
/// accepted before.
///
/// # Errors
/// `Failed` if the store took nothing from such a stream; names near ones.
pub(crate) fn accept(catalog: &Catalog, stream: &str) -> Result<Option<CommitRequest>> {
    let taken = taken(catalog, &Numbers::of_catalog(catalog, None), stream, None);
    let Some(next) = taken.next else {
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
