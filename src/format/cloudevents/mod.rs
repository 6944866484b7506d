//! CloudEvents around messages of any other format: structured, many in one array, or with the attributes in
//! the headers of a record. The format of what is inside is found from it.

mod collected;
mod debezium;
mod decode;
mod event;

pub use decode::CloudEvents;
pub use event::{in_headers, looks_like};

#[cfg(test)]
mod tests;
