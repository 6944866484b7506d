//! Schemas from files: what a schema registry holds, as it was dumped.

use super::kept_schemas::KeptSchemas;
use super::position::SourceError;
use super::registry::Patience;
use crate::error::{Error, ErrorKind, Result};
use crate::format::avro::{NoSchema, SchemaSource, SchemaText};
use crate::options::IntakeOptions;
use asofdb_storage::engine::Catalog;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The schemas of one file.
#[derive(Debug)]
pub(crate) struct SchemaFile {
    file: String,
    by_id: HashMap<u64, Result<Arc<SchemaText>, String>>,
}

/// A schema of a subject.
struct Entry<'v> {
    subject: &'v str,
    version: Option<u64>,
    id: u64,
    body: &'v Value,
}

impl SchemaFile {
    /// Reads a file: subjects with `id` and `schema`, the list that a registry answers `/schemas` with, or
    /// schemas by id.
    ///
    /// # Errors
    /// If it cannot be read, or is none of these.
    pub fn open(file: &str) -> Result<SchemaFile, SourceError> {
        let text = std::fs::read_to_string(file).map_err(|e| SourceError::new(file, e.to_string()))?;
        SchemaFile::parse(file, &text)
    }

    /// See [`SchemaFile::open`].
    pub fn parse(file: &str, text: &str) -> Result<SchemaFile, SourceError> {
        let wrong = |reason: String| {
            SourceError::new(file, reason)
                .hint("a file of schemas is {\"subjects\":{\"orders-value\":{\"id\":1,\"schema\":...}}}")
        };
        let all: Value = serde_json::from_str(text).map_err(|e| wrong(format!("is no JSON: {e}")))?;
        let entries = entries(&all).map_err(&wrong)?;
        if entries.is_empty() {
            return Err(wrong("has no schemas".to_owned()));
        }
        let texts = entries.iter().map(|e| (e.id, text_of(e, &entries).map(Arc::new)));
        Ok(SchemaFile { by_id: texts.collect(), file: file.to_owned() })
    }
}

impl SchemaSource for SchemaFile {
    fn schema(&self, id: u64) -> Result<Arc<SchemaText>, NoSchema> {
        match self.by_id.get(&id) {
            Some(Ok(schema)) => Ok(schema.clone()),
            Some(Err(reason)) => Err(NoSchema::Unknown(reason.clone())),
            None => Err(NoSchema::Unknown(format!("{} has no schema with the id {id}", self.file))),
        }
    }
}

/// Where an intake finds schemas, beside those that `catalog` has; `None` if nothing says so.
///
/// # Errors
/// If a file of schemas or a stored schema cannot be read.
pub(crate) fn places(options: &IntakeOptions, catalog: &Catalog) -> Result<Option<Arc<dyn SchemaSource>>> {
    let mut places = files(options)?;
    if let Some(registry) = &options.registry {
        places.push(Arc::new(KeptSchemas::of_registry(registry, Patience::default(), catalog)?));
    }
    Ok(together(places))
}

/// Where schemas are without asking anybody: in files, and in `catalog`, which says from which registry.
///
/// # Errors
/// As there; `Usage` if there are several registries and none of them is named.
pub(crate) fn kept_places(
    options: &IntakeOptions,
    catalog: &Catalog,
) -> Result<Option<Arc<dyn SchemaSource>>> {
    let mut places = files(options)?;
    let known = KeptSchemas::registries(catalog)?;
    match (&options.registry, known.as_slice()) {
        (Some(registry), _) => places.push(Arc::new(KeptSchemas::stored(&registry.url, catalog)?)),
        (None, []) => {}
        (None, [only]) => places.push(Arc::new(KeptSchemas::stored(only, catalog)?)),
        (None, several) => {
            return Err(Error::usage("the store keeps schemas of several registries")
                .hint(format!("--registry says which: {}", several.join(", "))));
        }
    }
    Ok(together(places))
}

/// The files of schemas.
fn files(options: &IntakeOptions) -> Result<Vec<Arc<dyn SchemaSource>>> {
    let mut places: Vec<Arc<dyn SchemaSource>> = Vec::new();
    for file in &options.schemas {
        let opened =
            SchemaFile::open(file).map_err(|e| Error::new(ErrorKind::Source, e.to_string()).hint(e.hint))?;
        places.push(Arc::new(opened));
    }
    Ok(places)
}

fn together(mut places: Vec<Arc<dyn SchemaSource>>) -> Option<Arc<dyn SchemaSource>> {
    match places.len() {
        0 => None,
        1 => places.pop(),
        _ => Some(Arc::new(SchemaPlaces(places))),
    }
}

/// Several places, asked one after the other.
#[derive(Debug)]
pub(crate) struct SchemaPlaces(pub Vec<Arc<dyn SchemaSource>>);

impl SchemaSource for SchemaPlaces {
    fn schema(&self, id: u64) -> Result<Arc<SchemaText>, NoSchema> {
        let mut unknown = Vec::new();
        for place in &self.0 {
            match place.schema(id) {
                Err(NoSchema::Unknown(reason)) => unknown.push(reason),
                found => return found,
            }
        }
        Err(NoSchema::Unknown(unknown.join("; ")))
    }

    fn take_new(&self) -> Vec<(String, Value)> {
        self.0.iter().flat_map(|place| place.take_new()).collect()
    }

    fn round(&self) -> u64 {
        self.0.iter().map(|place| place.round()).sum()
    }
}

fn entries(all: &Value) -> Result<Vec<Entry<'_>>, String> {
    let mut out = Vec::new();
    match (all, all.get("subjects")) {
        (_, Some(Value::Object(subjects))) => {
            for (subject, versions) in subjects {
                let versions = versions.as_array().map_or(std::slice::from_ref(versions), Vec::as_slice);
                for body in versions {
                    out.push(entry(subject, body)?);
                }
            }
        }
        (Value::Array(list), _) => {
            for body in list {
                out.push(entry(body["subject"].as_str().unwrap_or(""), body)?);
            }
        }
        (Value::Object(by_id), _) => {
            for (id, body) in by_id {
                let id = id.parse().map_err(|_| format!("`{id}` is no id of a schema"))?;
                out.push(Entry { subject: "", version: None, id, body });
            }
        }
        _ => return Err("is no list of schemas".to_owned()),
    }
    Ok(out)
}

fn entry<'v>(subject: &'v str, body: &'v Value) -> Result<Entry<'v>, String> {
    let id = body["id"].as_u64().ok_or_else(|| format!("the schema of `{subject}` has no id"))?;
    if body.get("schema").is_none() {
        return Err(format!("the entry of `{subject}` has no schema"));
    }
    Ok(Entry { subject, version: body["version"].as_u64(), id, body })
}

/// A schema as JSON text: it may stand in the file as JSON or as a text that holds JSON.
fn schema_text(body: &Value) -> String {
    match body.get("schema").unwrap_or(body) {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn text_of(entry: &Entry<'_>, all: &[Entry<'_>]) -> Result<SchemaText, String> {
    if let Some(kind) = entry.body["schemaType"].as_str().filter(|k| *k != "AVRO") {
        return Err(format!("the schema {} is one of {kind}, not of Avro", entry.id));
    }
    let mut out = SchemaText { schema: schema_text(entry.body), references: Vec::new() };
    add_references(entry, all, &mut HashSet::new(), &mut out.references)?;
    Ok(out)
}

/// Adds the schemas that one refers to, those first that they refer to themselves.
fn add_references(
    entry: &Entry<'_>,
    all: &[Entry<'_>],
    seen: &mut HashSet<u64>,
    out: &mut Vec<String>,
) -> Result<(), String> {
    for reference in entry.body["references"].as_array().into_iter().flatten() {
        let subject = reference["subject"].as_str().unwrap_or("");
        let version = reference["version"].as_u64();
        let is = |e: &&Entry<'_>| {
            e.subject == subject && (version.is_none() || e.version.is_none() || e.version == version)
        };
        let Some(found) = all.iter().find(is) else {
            return Err(format!("the schema {} refers to `{subject}`, which is not there", entry.id));
        };
        if seen.insert(found.id) {
            add_references(found, all, seen, out)?;
            out.push(schema_text(found.body));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str, id: u64) -> Result<SchemaText, NoSchema> {
        SchemaFile::parse("s.json", text).unwrap().schema(id).map(|s| (*s).clone())
    }

    #[test]
    fn schemas_stand_under_subjects_in_lists_or_by_id() {
        for text in [
            r#"{"subjects":{"a-value":{"id":3,"schema":{"type":"int"}}}}"#,
            r#"{"subjects":{"a-value":[{"id":1,"schema":"int"},{"id":3,"schema":"{\"type\":\"int\"}"}]}}"#,
            r#"[{"subject":"a-value","version":2,"id":3,"schema":"{\"type\":\"int\"}"}]"#,
            r#"{"3":{"type":"int"}}"#,
        ] {
            assert_eq!(schema(text, 3).unwrap().schema, r#"{"type":"int"}"#, "{text}");
            let unknown = NoSchema::Unknown("s.json has no schema with the id 4".into());
            assert_eq!(schema(text, 4), Err(unknown));
        }
    }

    #[test]
    fn references_come_before_what_refers_to_them() {
        let text = r#"[
            {"subject":"c","version":1,"id":3,"schema":"C","references":[{"name":"b","subject":"b","version":1},{"name":"a","subject":"a","version":2}]},
            {"subject":"b","version":1,"id":2,"schema":"B","references":[{"name":"a","subject":"a","version":2}]},
            {"subject":"a","version":1,"id":0,"schema":"A1"},
            {"subject":"a","version":2,"id":1,"schema":"A2"},
            {"subject":"d","version":1,"id":4,"schema":"D","references":[{"name":"x","subject":"x","version":1}]}]"#;
        assert_eq!(schema(text, 3).unwrap().references, ["A2", "B"]);
        let NoSchema::Unknown(reason) = schema(text, 4).unwrap_err() else { panic!() };
        assert_eq!(reason, "the schema 4 refers to `x`, which is not there");
    }

    #[test]
    fn what_is_no_file_of_schemas_is_said() {
        for (text, what) in [
            ("{", "is no JSON"),
            ("[]", "has no schemas"),
            (r#"{"a":1}"#, "`a` is no id"),
            (r#"[{"subject":"a","schema":"int"}]"#, "has no id"),
            (r#"{"subjects":{"a":{"id":1}}}"#, "has no schema"),
        ] {
            let error = SchemaFile::parse("s.json", text).unwrap_err();
            assert!(error.reason.contains(what), "{error}");
        }
        let protobuf = r#"[{"subject":"a","id":1,"schemaType":"PROTOBUF","schema":"x"}]"#;
        let NoSchema::Unknown(reason) = schema(protobuf, 1).unwrap_err() else { panic!() };
        assert!(reason.contains("PROTOBUF"), "{reason}");
    }
}
