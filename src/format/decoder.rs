//! One decoder for all formats that come as messages.

use super::canal::Canal;
use super::csv::Csv;
use super::debezium_json::DebeziumJson;
use super::maxwell::Maxwell;
use super::plain_json::PlainJson;
use super::ticdc::{Ticdc, TicdcCsv};
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
    Canal(Canal),
    Ticdc(Ticdc),
    Json(PlainJson),
}

impl Decoder {
    /// A decoder for messages; `None` for formats that come as whole files ([`Format::Csv`],
    /// [`Format::TicdcCsv`], [`Format::Parquet`]).
    pub fn new(format: Format, options: FormatOptions) -> Option<Decoder> {
        let state = match format {
            Format::DebeziumJson => State::Debezium(DebeziumJson::default()),
            Format::Maxwell => State::Maxwell(Maxwell::default()),
            Format::Json => State::Json(PlainJson::default()),
            Format::Canal => State::Canal(Canal::default()),
            Format::Ticdc => State::Ticdc(Ticdc::default()),
            Format::Csv | Format::TicdcCsv | Format::Parquet => return None,
        };
        Some(Decoder { options, state })
    }

    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, message: &Message<'_>, sink: &mut Sink<'_>) {
        match &mut self.state {
            State::Debezium(debezium) => debezium.decode(&self.options, message, sink),
            State::Maxwell(maxwell) => maxwell.decode(&self.options, message, sink),
            State::Canal(canal) => canal.decode(&self.options, message, sink),
            State::Ticdc(ticdc) => ticdc.decode(&self.options, message, sink),
            State::Json(json) => json.decode(&self.options, message, sink),
        }
    }
}

/// Decodes the records of one file of CSV.
#[derive(Debug)]
pub enum CsvDecoder {
    /// Columns and nothing else.
    Plain(Csv),
    /// TiCDC's.
    Ticdc(TicdcCsv),
}

impl CsvDecoder {
    /// A decoder for records with these columns.
    pub fn new(format: Format, header: Vec<String>) -> CsvDecoder {
        match format {
            Format::TicdcCsv => CsvDecoder::Ticdc(TicdcCsv::new(header)),
            _ => CsvDecoder::Plain(Csv::new(header)),
        }
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        match self {
            CsvDecoder::Plain(csv) => csv.columns(),
            CsvDecoder::Ticdc(csv) => csv.columns(),
        }
    }

    /// Decodes one record, with or without its line break, and hands it to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        match self {
            CsvDecoder::Plain(csv) => csv.decode(options, message, sink),
            CsvDecoder::Ticdc(csv) => csv.decode(options, message, sink),
        }
    }
}
