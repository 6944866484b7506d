//! Embedded schemas: which type a column of a wrapped message has.

use crate::format::debezium::Encoding;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Schemas kept; past this the cache starts afresh.
const SCHEMAS_MAX: usize = 256;
/// Longer schemas are parsed for every message.
const SCHEMA_BYTES_MAX: usize = 1 << 20;

/// The encodings of the columns of one struct.
#[derive(Debug, Default)]
pub struct Fields {
    by_place: Vec<(String, Encoding)>,
    by_name: HashMap<String, Encoding>,
}

impl Fields {
    /// The encoding of the column that is the `place`-th of its object.
    pub fn encoding(&self, place: usize, name: &str) -> Encoding {
        match self.by_place.get(place) {
            Some((n, encoding)) if n == name => *encoding,
            _ => self.by_name.get(name).copied().unwrap_or(Encoding::Untyped),
        }
    }

    fn of_struct(schema: &Value) -> Fields {
        let mut fields = Fields::default();
        for field in schema["fields"].as_array().into_iter().flatten() {
            if let Some(name) = field["field"].as_str() {
                let encoding = encoding(field);
                fields.by_place.push((name.to_owned(), encoding));
                fields.by_name.insert(name.to_owned(), encoding);
            }
        }
        fields
    }
}

/// What an embedded schema says of a message.
#[derive(Debug, Default)]
pub struct Schema {
    /// The members of the payload itself: the columns of a key.
    pub top: Fields,
    /// The columns of `before` and `after`.
    pub row: Fields,
}

/// Schemas by their text.
#[derive(Debug, Default)]
pub struct SchemaCache {
    known: HashMap<String, Arc<Schema>>,
    last: Option<(String, Arc<Schema>)>,
}

impl SchemaCache {
    /// The schema of that text. A text that is no schema says nothing of any column.
    pub fn get(&mut self, text: &str) -> Arc<Schema> {
        if let Some((last, schema)) = &self.last
            && last == text
        {
            return schema.clone();
        }
        let schema = match self.known.get(text) {
            Some(schema) => schema.clone(),
            None => Arc::new(parse(text)),
        };
        if text.len() <= SCHEMA_BYTES_MAX {
            if self.known.len() >= SCHEMAS_MAX {
                self.known.clear();
            }
            self.known.insert(text.to_owned(), schema.clone());
            self.last = Some((text.to_owned(), schema.clone()));
        }
        schema
    }
}

fn parse(text: &str) -> Schema {
    let Ok(schema) = serde_json::from_str::<Value>(text) else { return Schema::default() };
    let child = |name: &str| {
        let fields = schema["fields"].as_array()?;
        fields.iter().find(|f| f["field"].as_str() == Some(name) && f["type"] == "struct")
    };
    let row = child("after").or_else(|| child("before")).map(Fields::of_struct).unwrap_or_default();
    Schema { top: Fields::of_struct(&schema), row }
}

fn encoding(field: &Value) -> Encoding {
    let scale = || {
        let scale = &field["parameters"]["scale"];
        scale.as_str().and_then(|s| s.parse().ok()).or(scale.as_i64()).unwrap_or(0)
    };
    let named = Encoding::of_name(field["name"].as_str().unwrap_or(""), scale);
    named.unwrap_or_else(|| match field["type"].as_str().unwrap_or("") {
        "float" | "double" | "float32" | "float64" => Encoding::Float,
        "bytes" => Encoding::Bytes,
        _ => Encoding::Untyped,
    })
}
