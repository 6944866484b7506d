//! TiCDC: canal-json with TiDB's extension, the open protocol, and CSV.

mod csv;
mod open;
mod value;

pub use csv::{TicdcCsv, looks_like_csv};

use super::FormatOptions;
use super::canal::{self, Canal};
use crate::change::{Message, Sink};
use open::Open;

/// Decodes messages of TiCDC: those of the open protocol are known by their keys, all others are
/// canal-json.
#[derive(Debug, Default)]
pub struct Ticdc {
    canal: Canal,
    open: Open,
}

impl Ticdc {
    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        if message.key.is_some_and(open::is_key) {
            self.open.decode(options, message, sink);
        } else {
            self.canal.decode(options, message, sink);
        }
    }
}

/// Whether a message is canal-json with TiDB's extension.
pub fn looks_like(text: &str) -> bool {
    canal::extension(text) == Some(true)
}

/// Whether the key of a record is that of a message of the open protocol.
pub fn looks_like_open(key: &[u8]) -> bool {
    open::is_key(key)
}

#[cfg(test)]
mod tests;
