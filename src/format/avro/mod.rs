//! Avro messages under the schema they were written with, found by the id in front of them.

pub(crate) mod container;
mod envelope;
mod flat;
mod framing;
mod known;
mod message;
mod plain;
mod schema;
mod shape;
mod source;
mod value;
mod wire;

pub use envelope::DebeziumAvro;
pub use framing::Framing;
pub use known::Unready;
pub use plain::PlainAvro;
pub(crate) use shape::file_format;
pub use shape::framed_format;
pub use source::{NoSchema, SchemaSource, SchemaText};

#[cfg(test)]
mod tests;
