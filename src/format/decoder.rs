//! One decoder for all formats that come as messages.

use super::debezium_json::DebeziumJson;
use super::maxwell::Maxwell;
use super::plain_json::PlainJson;
use super::{Format, FormatOptions};
use crate::change::{Message, Sink};

/// Decodes messages of one format under one set of options.
#[derive(Debug)]
pub struct Decoder {
    options: FormatOptions,
    state: State,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one a source")]
enum State {
    Debezium(DebeziumJson),
    Maxwell(Maxwell),
    Json(PlainJson),
}

impl Decoder {
    /// A decoder for messages; `None` for formats that come as whole files ([`Format::Csv`],
    /// [`Format::Parquet`]).
    pub fn new(format: Format, options: FormatOptions) -> Option<Decoder> {
        let state = match format {
            Format::DebeziumJson => State::Debezium(DebeziumJson::default()),
            Format::Maxwell => State::Maxwell(Maxwell::default()),
            Format::Json => State::Json(PlainJson::default()),
            Format::Csv | Format::Parquet => return None,
        };
        Some(Decoder { options, state })
    }

    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, message: &Message<'_>, sink: &mut Sink<'_>) {
        match &mut self.state {
            State::Debezium(debezium) => debezium.decode(&self.options, message, sink),
            State::Maxwell(maxwell) => maxwell.decode(&self.options, message, sink),
            State::Json(json) => json.decode(&self.options, message, sink),
        }
    }
}
