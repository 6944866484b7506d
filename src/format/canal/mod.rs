//! Canal's flat messages: many rows of one table in a message, all values as text. TiCDC speaks the same
//! with an extension.

mod cell;
mod decode;
mod mysql_type;

pub use decode::{Canal, extension};

/// Whether a message is an envelope of Canal, without an extension.
pub fn looks_like(text: &str) -> bool {
    extension(text) == Some(false)
}

#[cfg(test)]
mod tests;
