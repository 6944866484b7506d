//! Maxwell's JSON: one row a message, with the former values of the columns that changed.

mod decode;
mod key;
mod position;

pub use decode::{Maxwell, looks_like};

#[cfg(test)]
mod tests;
