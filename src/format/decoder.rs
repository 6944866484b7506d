//! One decoder for all formats that come as messages.

use super::avro::{DebeziumAvro, PlainAvro, Unready};
use super::canal::Canal;
use super::cloudevents::CloudEvents;
use super::csv::Csv;
use super::debezium_json::DebeziumJson;
use super::debezium_mongodb::DebeziumMongo;
use super::dms::Dms;
use super::maxwell::Maxwell;
use super::ogg::Ogg;
use super::plain_json::PlainJson;
use super::shaped::{Shape, ShapedJson};
use super::striim::Striim;
use super::ticdc::{Ticdc, TicdcCsv};
use super::wal2json::Wal2Json;
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
    Wal2json(Wal2Json),
    Dms(Dms),
    Ogg(Ogg),
    Striim(Striim),
    CloudEvents(CloudEvents),
    Shaped(ShapedJson),
    Json(PlainJson),
    Avro(PlainAvro),
    DebeziumAvro(DebeziumAvro),
    DebeziumMongo(DebeziumMongo),
}

impl Decoder {
    /// A decoder for messages; `None` for formats that come as whole files ([`Format::Csv`],
    /// [`Format::TicdcCsv`], [`Format::Parquet`]).
    pub fn new(format: Format, options: FormatOptions) -> Option<Decoder> {
        let state = match format {
            Format::DebeziumJson => State::Debezium(DebeziumJson::default()),
            Format::DebeziumFlat => State::Debezium(DebeziumJson::flat()),
            Format::Maxwell => State::Maxwell(Maxwell::default()),
            Format::Wal2json => State::Wal2json(Wal2Json::default()),
            Format::Dms => State::Dms(Dms::default()),
            Format::Ogg => State::Ogg(Ogg::default()),
            Format::Striim => State::Striim(Striim::default()),
            Format::CloudEvents => State::CloudEvents(CloudEvents::default()),
            Format::DeltaCdf => State::Shaped(ShapedJson::new(Shape::DeltaCdf)),
            Format::Airbyte => State::Shaped(ShapedJson::new(Shape::Airbyte)),
            Format::Fivetran => State::Shaped(ShapedJson::new(Shape::Fivetran)),
            Format::Json => State::Json(PlainJson::default()),
            Format::Canal => State::Canal(Canal::default()),
            Format::Ticdc => State::Ticdc(Ticdc::default()),
            Format::Avro => State::Avro(PlainAvro::default()),
            Format::DebeziumAvro => State::DebeziumAvro(DebeziumAvro::default()),
            Format::DebeziumMongodb => State::DebeziumMongo(DebeziumMongo::default()),
            Format::Csv | Format::TicdcCsv | Format::Parquet => return None,
        };
        Some(Decoder { options, state })
    }

    /// What the next message may depend on, to go on with after an interruption; `None` = nothing.
    pub fn state(&self) -> Option<serde_json::Value> {
        match &self.state {
            State::Wal2json(wal2json) => wal2json.state().and_then(|s| serde_json::to_value(s).ok()),
            _ => None,
        }
    }

    /// A decoder that goes on with what [`Self::state`] said; what cannot be read is as if nothing had been.
    pub fn resumed(
        format: Format,
        options: FormatOptions,
        state: Option<&serde_json::Value>,
    ) -> Option<Decoder> {
        let mut decoder = Decoder::new(format, options)?;
        if let (State::Wal2json(wal2json), Some(state)) = (&mut decoder.state, state)
            && let Ok(state) = serde_json::from_value(state.clone())
        {
            wal2json.resume(state);
        }
        Some(decoder)
    }

    /// A decoder for the records of a file that holds their schema.
    ///
    /// # Errors
    /// In words, if the schema is none, or the format is none of such files.
    pub fn of_file(format: Format, options: FormatOptions, schema: &str) -> Result<Decoder, String> {
        let state = match format {
            Format::Avro => State::Avro(PlainAvro::of_file(schema)?),
            Format::DebeziumAvro => State::DebeziumAvro(DebeziumAvro::of_file(schema)?),
            other => return Err(format!("holds records of Avro, not {other}")),
        };
        Ok(Decoder { options, state })
    }

    /// How many bytes the record of a file takes that `bytes` begin with.
    ///
    /// # Errors
    /// In words, if it does not end within them.
    pub fn record_bytes(&self, bytes: &[u8]) -> Result<usize, String> {
        match &self.state {
            State::Avro(avro) => avro.record_bytes(bytes),
            State::DebeziumAvro(avro) => avro.record_bytes(bytes),
            _ => Err("is no file of records".to_owned()),
        }
    }

    /// Finds what decoding a message takes beside it. To be asked before [`Decoder::decode`].
    ///
    /// # Errors
    /// If that cannot be had now: the message is not to be decoded, and to be read again later.
    pub fn ready(&mut self, message: &Message<'_>) -> Result<(), Unready> {
        match &mut self.state {
            State::Avro(avro) => avro.ready(&self.options, message),
            State::DebeziumAvro(avro) => avro.ready(&self.options, message),
            // Their messages say everything.
            _ => Ok(()),
        }
    }

    /// Decodes one message and hands what it is to `sink`, exactly once.
    pub fn decode(&mut self, message: &Message<'_>, sink: &mut Sink<'_>) {
        match &mut self.state {
            State::Debezium(debezium) => debezium.decode(&self.options, message, sink),
            State::Maxwell(maxwell) => maxwell.decode(&self.options, message, sink),
            State::Canal(canal) => canal.decode(&self.options, message, sink),
            State::Ticdc(ticdc) => ticdc.decode(&self.options, message, sink),
            State::Wal2json(wal2json) => wal2json.decode(&self.options, message, sink),
            State::Dms(dms) => dms.decode(&self.options, message, sink),
            State::Ogg(ogg) => ogg.decode(&self.options, message, sink),
            State::Striim(striim) => striim.decode(&self.options, message, sink),
            State::CloudEvents(events) => events.decode(&self.options, message, sink),
            State::Shaped(rows) => rows.decode(&self.options, message, sink),
            State::Json(json) => json.decode(&self.options, message, sink),
            State::Avro(avro) => avro.decode(&self.options, message, sink),
            State::DebeziumAvro(avro) => avro.decode(&self.options, message, sink),
            State::DebeziumMongo(mongo) => mongo.decode(&self.options, message, sink),
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
    /// A decoder for records with these columns of the file at `path`.
    pub fn new(format: Format, header: Vec<String>, path: &str) -> CsvDecoder {
        match format {
            Format::TicdcCsv => CsvDecoder::Ticdc(TicdcCsv::new(header)),
            Format::Dms => CsvDecoder::Plain(Csv::new(header).of_dms(path)),
            _ => CsvDecoder::Plain(Csv::new(header).shaped(Shape::of_format(format))),
        }
    }

    /// The records that follow are of the file at `path`.
    pub fn set_path(&mut self, path: &str) {
        if let CsvDecoder::Plain(csv) = self {
            csv.set_path(path);
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
