//! Debezium's change events of MongoDB: documents as texts of extended JSON.

mod bson;
mod decode;
mod delta;

pub use decode::DebeziumMongo;

use super::json::{self, Raw};

/// Whether a message is an envelope of MongoDB, wrapped or not: a collection stands where others name a table.
pub fn looks_like(text: &str) -> bool {
    let envelope = |text: &str| {
        let Some(Raw::Nested { text: source, .. }) = json::member(text, "source") else { return false };
        json::member(text, "op").is_some()
            && json::member(source, "collection").is_some()
            && json::member(source, "table").is_none()
    };
    let inner = match json::member(text, "payload") {
        Some(Raw::Nested { text, .. }) if text.starts_with('{') => text,
        _ => text,
    };
    envelope(text) || envelope(inner)
}

#[cfg(test)]
mod tests;
