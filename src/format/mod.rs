//! From bytes to changes. Every decoder is pure and total: any bytes give changes, a kind that is
//! ignored, or a fault for the quarantine, within time and memory bounded by the message.

pub mod avro;
pub mod expr;
pub mod json;
pub mod number;
pub mod options;
pub(crate) mod parquet;
pub mod time_text;

mod block;
mod canal;
mod cloudevents;
mod csv;
mod debezium;
mod debezium_json;
mod debezium_mongodb;
pub(crate) mod declare;
mod decoder;
pub(crate) mod dms;
pub(crate) mod fields;
mod infer;
pub(crate) mod kind;
mod layout;
mod maxwell;
mod ogg;
mod plain_json;
mod roles;
mod row_buffer;
mod rows;
pub(crate) mod scratch;
mod shaped;
mod striim;
mod swar;
mod ticdc;
mod tso;
mod wal2json;

pub use csv::{Csv, RecordEnd, record_end};
pub use decoder::{CsvDecoder, Decoder};
pub use kind::{Format, UnknownFormat};
pub use options::FormatOptions;

#[cfg(test)]
mod any_bytes_tests;

/// The kind under which tombstones without a key are counted.
pub const TOMBSTONE_WITHOUT_KEY: &str = "null_or_empty_key_tombstone";
