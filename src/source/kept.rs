//! Messages that were put aside, decoded again one by one, away from their files.

use super::file::PlacedSink;
use super::kdump::Kdump;
use super::position::Place;
use crate::change::{Decoded, Message};
use crate::format::avro::Unready;
use crate::format::fields::Reject;
use crate::format::{CsvDecoder, Decoder, Format, FormatOptions};
use serde::{Deserialize, Serialize};

/// How the messages of a file are read: what decoding one of them alone takes beside the options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The format.
    pub format: Format,
    /// Every message is a record of a Kafka dump.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub records: bool,
    /// CSV: names of the columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Vec<String>>,
    /// CSV: what separates fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
}

impl Reading {
    /// What a message of unknown origin looks like.
    fn of_message(raw: &[u8]) -> Reading {
        let records = std::str::from_utf8(raw).is_ok_and(Kdump::is_record);
        Reading { format: Format::of_message(raw), records, header: None, delimiter: None }
    }
}

/// Decodes messages of one file that were kept as they came.
pub struct KeptMessages {
    body: Body,
    options: FormatOptions,
}

enum Body {
    Message(Decoder),
    Record(Decoder, Kdump),
    Csv(CsvDecoder),
}

impl KeptMessages {
    /// A decoder for messages that were read as `reading` says; without it their form is found out
    /// from `sample`, one of them. A `format` that is given wins.
    ///
    /// # Errors
    /// In words, for formats whose messages do not stand alone.
    pub fn new(
        reading: Option<&Reading>,
        format: Option<Format>,
        options: &FormatOptions,
        sample: &[u8],
    ) -> Result<KeptMessages, String> {
        let reading = reading.cloned().unwrap_or_else(|| Reading::of_message(sample));
        let format = format.unwrap_or(reading.format);
        let mut options = options.clone();
        let body = match (format, reading.header) {
            (format, Some(header))
                if matches!(format, Format::Csv | Format::TicdcCsv) || format.is_of_tables() =>
            {
                options.delimiter = reading.delimiter.map_or(options.delimiter, |d| d as u8);
                Body::Csv(CsvDecoder::new(format, header, ""))
            }
            (Format::Csv | Format::TicdcCsv, None) => {
                return Err("nothing is known of the header of its CSV file".into());
            }
            _ => {
                let decoder = Decoder::new(format, options.clone());
                let decoder = decoder.ok_or_else(|| format!("rows of {format} are not kept as they came"))?;
                if reading.records { Body::Record(decoder, Kdump::default()) } else { Body::Message(decoder) }
            }
        };
        Ok(KeptMessages { body, options })
    }

    /// Decodes the message at `place`, whose bytes are [`Place::raw`]; hands it over exactly once.
    pub fn decode(&mut self, place: &Place<'_>, sink: &mut PlacedSink<'_>) {
        let message = Message { value: Some(place.raw), position: place.position, ..Message::default() };
        match &mut self.body {
            Body::Message(decoder) => decoder.decode(&message, &mut |decoded| sink(place, decoded)),
            Body::Csv(csv) => {
                csv.set_path(place.file);
                csv.decode(&self.options, &message, &mut |decoded| sink(place, decoded));
            }
            Body::Record(decoder, dump) => dump.read(place.raw, &mut |record| match record {
                Err(reject) => sink(place, Decoded::Quarantine(reject.fault())),
                Ok(record) => {
                    let message = record.message();
                    match decoder.ready(&message) {
                        Ok(()) => decoder.decode(&message, &mut |decoded| sink(place, decoded)),
                        Err(Unready { reason, hint }) => {
                            sink(place, Decoded::Quarantine(Reject::new(reason).hint(hint).fault()));
                        }
                    }
                }
            }),
        }
    }
}
