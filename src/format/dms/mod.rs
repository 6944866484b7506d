//! What AWS DMS writes: JSON messages to Kafka and Kinesis, CSV and Parquet files to S3.

mod file;
mod message;

pub use file::{DmsFile, Parts, header};
pub use message::{Dms, looks_like};

/// What the names of columns of the old row begin with.
const OLD: &str = "BI_";

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod tests;
