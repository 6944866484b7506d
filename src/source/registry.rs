//! Schemas from a registry by HTTP: Confluent's interface, which others speak too, and Apicurio's own.

use crate::error::{Error, Result};
use crate::format::avro::{NoSchema, SchemaSource, SchemaText};
use crate::format::fields::shortened;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The largest answer that is read.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// Schemas that one refers to, directly and not, at most.
const REFERENCES_MAX: usize = 1_000;
/// What a registry says that knows no schema of an id, or no subject or version.
const NOT_FOUND_CODES: [u64; 3] = [40401, 40402, 40403];

/// Where a registry is, and who asks. The password is never stored or shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registry {
    /// Its address, without name and password.
    pub url: String,
    /// `name:password` of basic authentication.
    #[serde(skip)]
    pub auth: Option<String>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let auth = self.auth.as_ref().map(|_| "...");
        f.debug_struct("Registry").field("url", &self.url).field("auth", &auth).finish()
    }
}

impl FromStr for Registry {
    type Err = Error;

    /// Reads `http[s]://[name:password@]host[:port][/path]`.
    fn from_str(text: &str) -> Result<Registry> {
        let wrong = || {
            Error::usage("the address of a registry begins with http:// or https://")
                .hint("for example: http://localhost:8081")
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        if !matches!(scheme, "http" | "https") || rest.is_empty() {
            return Err(wrong());
        }
        let host = rest.split('/').next().unwrap_or("");
        let (auth, rest) = match host.rfind('@') {
            Some(at) => (Some(unescaped(&rest[..at])), &rest[at + 1..]),
            None => (None, rest),
        };
        Ok(Registry { url: format!("{scheme}://{}", rest.trim_end_matches('/')), auth })
    }
}

/// A text without its percent signs.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        let digits: Vec<u8> = bytes.clone().take(2).collect();
        let code = std::str::from_utf8(&digits).ok().and_then(|d| u8::from_str_radix(d, 16).ok());
        match code {
            Some(code) if b == b'%' && digits.len() == 2 => {
                out.push(code);
                bytes.nth(1);
            }
            _ => out.push(b),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A part of a path, with percent signs.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for b in text.bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(b as char),
            _ => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

/// How long answers are waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For one answer.
    pub answer: Duration,
    /// Requests, at most.
    pub requests: u32,
    /// Before the second request; doubled before every further one.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { answer: Duration::from_secs(10), requests: 5, pause: Duration::from_millis(200) }
    }
}

/// Asks a registry for schemas, each once.
pub(crate) struct RegistryClient {
    registry: Registry,
    agent: ureq::Agent,
    patience: Patience,
    known: Mutex<HashMap<u64, Arc<SchemaText>>>,
}

impl fmt::Debug for RegistryClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.registry.fmt(f)
    }
}

/// What came back.
enum Answer {
    /// A value of JSON.
    Found(Value),
    /// There is no such schema.
    NotFound,
    /// There is no such path: another kind of registry.
    OtherPath,
}

impl RegistryClient {
    pub fn new(registry: Registry, patience: Patience) -> RegistryClient {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(patience.answer))
            .http_status_as_error(false)
            .proxy(None)
            .user_agent("asofdb")
            .build()
            .into();
        RegistryClient { registry, agent, patience, known: Mutex::default() }
    }

    fn unreachable(&self, what: impl fmt::Display) -> NoSchema {
        NoSchema::Unreachable(format!("the registry {} {what}", self.registry.url))
    }

    /// Asks until there is an answer or patience ends.
    fn get(&self, path: &str) -> Result<Answer, NoSchema> {
        let mut last = String::new();
        for request in 0..self.patience.requests.max(1) {
            if request > 0 {
                std::thread::sleep(self.patience.pause * (1 << (request - 1).min(10)));
            }
            match self.once(path) {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(refused)) => return Err(refused),
                Err(reason) => last = reason,
            }
        }
        Err(self.unreachable(format_args!("{last}, {} times", self.patience.requests)))
    }

    /// One request: an answer, a refusal, or what went wrong and may go right another time.
    fn once(&self, path: &str) -> Result<Result<Answer, NoSchema>, String> {
        let mut request = self.agent.get(format!("{}{path}", self.registry.url));
        request = request.header("Accept", "application/vnd.schemaregistry.v1+json, application/json");
        if let Some(auth) = &self.registry.auth {
            request = request.header("Authorization", format!("Basic {}", STANDARD.encode(auth)));
        }
        let mut response = request.call().map_err(|e| format!("does not answer ({e})"))?;
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        let body = body.map_err(|e| format!("breaks off its answer ({e})"))?;
        let json = serde_json::from_str::<Value>(&body);
        Ok(match (status, json) {
            (200, Ok(value)) => Ok(Answer::Found(value)),
            (200, Err(_)) => return Err(format!("answers what is no JSON (`{}`)", shortened(body.trim()))),
            (404, Ok(value)) if is_not_found(&value) => Ok(Answer::NotFound),
            (404, _) => Ok(Answer::OtherPath),
            (401 | 403, _) => Err(self.unreachable(format_args!(
                "refuses to answer (status {status}); it wants another name and password"
            ))),
            (429 | 500..=599, _) => return Err(format!("answers with status {status}")),
            _ => Err(self.unreachable(format_args!("answers with status {status}"))),
        })
    }

    fn by_id(&self, id: u64) -> Result<SchemaText, NoSchema> {
        let unknown = || {
            NoSchema::Unknown(format!("the registry {} has no schema with the id {id}", self.registry.url))
        };
        match self.get(&format!("/schemas/ids/{id}"))? {
            Answer::Found(value) => self.text(&value, id),
            Answer::NotFound => Err(unknown()),
            // The schema itself, with those that it refers to put into it.
            Answer::OtherPath => match self.get(&format!("/ids/globalIds/{id}?dereference=true"))? {
                Answer::Found(schema) => {
                    Ok(SchemaText { schema: schema.to_string(), references: Vec::new() })
                }
                Answer::NotFound | Answer::OtherPath => Err(unknown()),
            },
        }
    }

    fn text(&self, value: &Value, id: u64) -> Result<SchemaText, NoSchema> {
        if let Some(kind) = value["schemaType"].as_str().filter(|k| *k != "AVRO") {
            return Err(NoSchema::Unknown(format!("the schema {id} is one of {kind}, not of Avro")));
        }
        let schema = self.schema_of(value)?;
        let mut references = Vec::new();
        self.add_references(value, &mut HashSet::new(), &mut references)?;
        Ok(SchemaText { schema, references })
    }

    fn schema_of(&self, value: &Value) -> Result<String, NoSchema> {
        let schema = value["schema"].as_str().map(str::to_owned);
        schema.ok_or_else(|| self.unreachable("answers what is no schema; its address may be wrong"))
    }

    /// Adds the schemas that one refers to, those first that they refer to themselves.
    fn add_references(
        &self,
        value: &Value,
        seen: &mut HashSet<String>,
        out: &mut Vec<String>,
    ) -> Result<(), NoSchema> {
        for reference in value["references"].as_array().into_iter().flatten() {
            let subject = reference["subject"].as_str().unwrap_or("");
            let version = reference["version"].as_i64().map_or("latest".to_owned(), |v| v.to_string());
            let path = format!("/subjects/{}/versions/{version}", escaped(subject));
            if !seen.insert(path.clone()) {
                continue;
            }
            if seen.len() > REFERENCES_MAX {
                return Err(NoSchema::Unknown(format!(
                    "a schema refers to more than {REFERENCES_MAX} others"
                )));
            }
            let Answer::Found(found) = self.get(&path)? else {
                let reason = format!(
                    "a schema refers to version {version} of `{subject}`, which the registry {} does not have",
                    self.registry.url
                );
                return Err(NoSchema::Unknown(reason));
            };
            self.add_references(&found, seen, out)?;
            out.push(self.schema_of(&found)?);
        }
        Ok(())
    }
}

fn is_not_found(value: &Value) -> bool {
    value["error_code"].as_u64().is_some_and(|code| NOT_FOUND_CODES.contains(&code))
}

impl SchemaSource for RegistryClient {
    fn schema(&self, id: u64) -> Result<Arc<SchemaText>, NoSchema> {
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return Ok(known.clone());
        }
        let found = Arc::new(self.by_id(id)?);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(id, found.clone());
        Ok(found)
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
pub(super) mod tests;
