//! Debezium's change events as JSON: with embedded schemas, without, or half wrapped, key and value
//! each in its own way.

mod cell;
mod decode;
mod flat;
mod parts;
mod schema;

pub use decode::DebeziumJson;
pub use flat::looks_like as looks_flat;

use super::json::{self, Raw};

/// Whether a message is an envelope, wrapped or not.
pub fn looks_like(text: &str) -> bool {
    let envelope = |text: &str| {
        let has = |name| json::member(text, name).is_some();
        let source = matches!(json::member(text, "source"), Some(Raw::Nested { .. }));
        has("op") && (has("before") || has("after") || source)
            || source && (has("ddl") || has("historyRecord") || has("tableChanges"))
    };
    let inner = match json::member(text, "payload") {
        Some(Raw::Nested { text, .. }) if text.starts_with('{') => text,
        _ => text,
    };
    envelope(text) || envelope(inner)
}

#[cfg(test)]
mod flat_tests;
#[cfg(test)]
mod quick_tests;
#[cfg(test)]
mod tests;
