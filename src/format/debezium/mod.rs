//! What Debezium's envelope means, whatever it is written in: operations, origin, log positions, tables,
//! semantic types.

mod encoding;
pub mod envelope;
mod origin;
mod table;
pub mod values;

pub use encoding::Encoding;
pub use table::Topics;
