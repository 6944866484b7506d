//! Schemas that the store keeps: each as it was when a message that was taken first named it, in the commit of
//! that message.

use super::registry::{Patience, Registry, RegistryClient};
use crate::error::{Error, ErrorKind, Result};
use crate::format::avro::{NoSchema, SchemaSource, SchemaText};
use asofdb_storage::engine::Catalog;
use asofdb_storage::hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Prefix of the catalog keys of schemas.
const SCHEMA_PREFIX: &str = "schema/";

/// How long it is waited to hear whether a schema is still what it was.
const CHECK: Patience =
    Patience { answer: Duration::from_secs(2), requests: 1, pause: Duration::from_millis(1) };

/// A schema as the catalog has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Stored {
    registry: String,
    id: u64,
    fingerprint: String,
    schema: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    references: Vec<String>,
}

/// What tells whether two schemas are the same: a hash of their JSON, however it is spaced.
fn fingerprint(text: &SchemaText) -> String {
    let mut hash = Sha256::new();
    for part in std::iter::once(&text.schema).chain(&text.references) {
        let json = serde_json::from_str::<Value>(part).map_or_else(|_| part.clone(), |v| v.to_string());
        hash.update((json.len() as u64).to_le_bytes());
        hash.update(json.as_bytes());
    }
    format!("sha256:{}", hex::encode(&hash.finalize()))
}

impl Stored {
    fn new(registry: &str, id: u64, text: &SchemaText) -> Stored {
        let SchemaText { schema, references } = text.clone();
        Stored { registry: registry.to_owned(), id, fingerprint: fingerprint(text), schema, references }
    }

    fn key(&self) -> String {
        format!("{SCHEMA_PREFIX}{}#{}", self.registry, self.id)
    }

    /// Those of a catalog.
    fn all(catalog: &Catalog) -> Result<Vec<Stored>> {
        let stored = catalog.positions.range(SCHEMA_PREFIX.to_owned()..);
        let stored = stored.take_while(|(key, _)| key.starts_with(SCHEMA_PREFIX));
        stored
            .map(|(key, value)| {
                serde_json::from_value(value.clone()).map_err(|e| {
                    Error::new(ErrorKind::Damaged, format!("the stored schema {key} cannot be read: {e}"))
                })
            })
            .collect()
    }
}

/// The schemas in `positions` of a commit, for people: where each is from, and its fingerprint.
pub(crate) fn shown(positions: &[(String, Value)]) -> Vec<String> {
    let stored = positions.iter().filter_map(|(key, value)| {
        let name = key.strip_prefix(SCHEMA_PREFIX)?;
        Some(format!("{name} {}", value["fingerprint"].as_str()?))
    });
    stored.collect()
}

/// The schemas of one registry: those that the store keeps, and the others from the registry itself.
#[derive(Debug)]
pub(crate) struct KeptSchemas {
    url: String,
    /// `None` where nobody is to be asked.
    registry: Option<Clients>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct Clients {
    fetching: RegistryClient,
    checking: RegistryClient,
}

#[derive(Debug, Default)]
struct State {
    known: HashMap<u64, Kept>,
    /// Not in a commit yet.
    new: Vec<Stored>,
    /// The registry did not answer: what is known is not held against it any more.
    away: bool,
    round: u64,
}

#[derive(Debug)]
struct Kept {
    text: Arc<SchemaText>,
    fingerprint: String,
    /// The registry said the same, or nothing, in this process.
    checked: bool,
}

impl KeptSchemas {
    /// Those of `registry`, on top of what `catalog` has of it.
    ///
    /// # Errors
    /// `Damaged` if a stored schema cannot be read.
    pub fn of_registry(registry: &Registry, patience: Patience, catalog: &Catalog) -> Result<KeptSchemas> {
        let clients = Clients {
            fetching: RegistryClient::new(registry.clone(), patience),
            checking: RegistryClient::new(registry.clone(), CHECK),
        };
        Ok(KeptSchemas { registry: Some(clients), ..KeptSchemas::stored(&registry.url, catalog)? })
    }

    /// Those that `catalog` has of the registry at `url`, and no others.
    ///
    /// # Errors
    /// As there.
    pub fn stored(url: &str, catalog: &Catalog) -> Result<KeptSchemas> {
        let mut state = State::default();
        for stored in Stored::all(catalog)?.into_iter().filter(|s| s.registry == url) {
            let Stored { id, fingerprint, schema, references, .. } = stored;
            let text = Arc::new(SchemaText { schema, references });
            state.known.insert(id, Kept { text, fingerprint, checked: false });
        }
        Ok(KeptSchemas { url: url.to_owned(), registry: None, state: Mutex::new(state) })
    }

    /// The registries that `catalog` has schemas of.
    ///
    /// # Errors
    /// As there.
    pub fn registries(catalog: &Catalog) -> Result<Vec<String>> {
        let urls: BTreeSet<String> = Stored::all(catalog)?.into_iter().map(|s| s.registry).collect();
        Ok(urls.into_iter().collect())
    }

    fn changed(&self, id: u64, stored: &str, now: &str) -> NoSchema {
        NoSchema::Changed(format!(
            "the schema {id} of the registry {} is another one than when messages were first read with it: its \
             fingerprint was {stored} and is {now}",
            self.url
        ))
    }
}

impl SchemaSource for KeptSchemas {
    fn schema(&self, id: u64) -> std::result::Result<Arc<SchemaText>, NoSchema> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { known, new, away, .. } = &mut *state;
        if let Some(kept) = known.get_mut(&id) {
            if let Some(clients) = self.registry.as_ref().filter(|_| !kept.checked && !*away) {
                match clients.checking.schema(id).map(|text| fingerprint(&text)) {
                    Ok(now) if now != kept.fingerprint => {
                        return Err(self.changed(id, &kept.fingerprint, &now));
                    }
                    Err(NoSchema::Unreachable(_)) => *away = true,
                    // What was deleted there is what it was here.
                    Ok(_) | Err(_) => kept.checked = true,
                }
            }
            return Ok(kept.text.clone());
        }
        let Some(clients) = &self.registry else {
            return Err(NoSchema::Unknown(format!(
                "the store keeps no schema with the id {id} of the registry {}",
                self.url
            )));
        };
        let text = clients.fetching.schema(id)?;
        let stored = Stored::new(&self.url, id, &text);
        let fingerprint = stored.fingerprint.clone();
        known.insert(id, Kept { text: text.clone(), fingerprint, checked: true });
        new.push(stored);
        Ok(text)
    }

    fn take_new(&self) -> Vec<(String, Value)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.round += 1;
        std::mem::take(&mut state.new).iter().map(|s| (s.key(), serde_json::json!(s))).collect()
    }

    fn round(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).round
    }
}

#[cfg(test)]
#[path = "kept_schemas_tests.rs"]
mod tests;
