//! Debezium's change events as JSON: with embedded schemas, without, or half wrapped, key and value
//! each in its own way.

mod cell;
mod decode;
mod origin;
mod parts;
mod schema;
mod table;

pub use decode::DebeziumJson;

use super::json::RawText as Text;

#[cfg(test)]
mod quick_tests;
#[cfg(test)]
mod tests;
