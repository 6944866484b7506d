//! What stands in front of a message: a zero byte and the id of its schema.

use crate::change::{Header, Message};
use crate::format::fields::Reject;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// How the id of a schema goes with a message. Ids in headers, as Apicurio puts them there, are
/// understood anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// A zero byte and 4 bytes, the highest first.
    #[default]
    Confluent,
    /// A zero byte and 8 bytes, the highest first.
    Apicurio,
}

/// Which part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Key,
    Value,
    /// The header with the former key of a row.
    Former,
}

/// The name of that header.
pub(super) const OLD_KEY: &str = "__debezium.oldkey";

impl Part {
    /// All of them.
    pub const ALL: [Part; 3] = [Part::Key, Part::Value, Part::Former];

    /// The bytes of this part of a message, unless it is not there.
    pub fn of<'a>(self, message: &Message<'a>) -> Option<&'a [u8]> {
        let bytes = match self {
            Part::Key => message.key,
            Part::Value => message.value,
            Part::Former => {
                let header = message.headers.iter().find(|h| h.name == OLD_KEY);
                header.map(|h| h.value).filter(|v| v.first() == Some(&0))
            }
        };
        bytes.filter(|b| !b.is_empty())
    }
}

/// A message behind its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Framed<'a> {
    pub id: u64,
    pub body: &'a [u8],
    /// Bytes of the frame.
    pub at: usize,
}

/// How a message begins in another of Avro's encodings.
const FINGERPRINT: [u8; 2] = [0xc3, 0x01];

/// Why there is no frame. Keys are plain text so often that a [`Reject`] is only made where one is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::format) enum Unframed {
    Fingerprint,
    Other,
    /// The message ends after so many bytes.
    Short(usize),
}

impl From<Unframed> for Reject {
    fn from(unframed: Unframed) -> Reject {
        let what = match unframed {
            Unframed::Fingerprint => "the message has a fingerprint in front of it instead of a schema id",
            Unframed::Other => "the message does not begin with a zero byte and a schema id",
            Unframed::Short(bytes) => {
                return Reject::new("the message ends within its schema id").at(bytes);
            }
        };
        Reject::new(what).hint("Avro messages carry the id that a schema registry gave")
    }
}

impl FromStr for Framing {
    type Err = String;

    fn from_str(text: &str) -> Result<Framing, String> {
        match text {
            "confluent" => Ok(Framing::Confluent),
            "apicurio" => Ok(Framing::Apicurio),
            _ => Err(format!("`{text}` is not a framing; they are confluent and apicurio")),
        }
    }
}

impl Framing {
    fn id_bytes(self) -> usize {
        match self {
            Framing::Confluent => 4,
            Framing::Apicurio => 8,
        }
    }

    /// Takes the frame off.
    #[inline]
    pub(super) fn framed<'a>(
        self,
        bytes: &'a [u8],
        headers: &[Header<'_>],
        part: Part,
    ) -> Result<Framed<'a>, Unframed> {
        if let Some(id) = header_id(headers, part) {
            return Ok(Framed { id, body: bytes, at: 0 });
        }
        if bytes.first() != Some(&0) {
            return Err(if bytes.starts_with(&FINGERPRINT) {
                Unframed::Fingerprint
            } else {
                Unframed::Other
            });
        }
        let end = 1 + self.id_bytes();
        let Some((id, body)) = bytes.get(1..end).zip(bytes.get(end..)) else {
            return Err(Unframed::Short(bytes.len()));
        };
        let id = id.iter().fold(0, |id, b| id << 8 | *b as u64);
        Ok(Framed { id, body, at: end })
    }
}

/// Apicurio's ids of 8 bytes in headers.
fn header_id(headers: &[Header<'_>], part: Part) -> Option<u64> {
    let names = match part {
        Part::Key => ["apicurio.key.globalId", "apicurio.key.contentId"],
        Part::Value => ["apicurio.value.globalId", "apicurio.value.contentId"],
        Part::Former => return None,
    };
    let header = names.iter().find_map(|n| headers.iter().find(|h| h.name == *n))?;
    Some(u64::from_be_bytes(header.value.try_into().ok()?))
}
