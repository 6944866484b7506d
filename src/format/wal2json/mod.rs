//! What the PostgreSQL plugin wal2json writes: format 1, one object a transaction, and format 2, one
//! object a change with those that begin and end a transaction around them.

mod decode;
mod one;
mod two;
mod typed;

pub use decode::{Wal2Json, looks_like};

#[cfg(test)]
mod tests;
