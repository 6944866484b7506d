//! Order-preserving key bytes.
//!
//! The encoding does not depend on the type a column has at the moment: a key column that widens
//! from integers to text keeps the identity of its rows, so 5, 5.0 and `5` are one key and the rows
//! of a table do not depend on the order in which values came (rule B1). Each component is a tag
//! and a self-delimiting body; whole keys compare as bytes. Order: NULL, unknown, integers by
//! value, fractions, then text and bytes.

mod range;

pub use range::KeyRange;

use crate::value::{Cell, canonical_number, write_text};
use std::borrow::Cow;

const NULL: u8 = 0x05;
const UNKNOWN: u8 = 0x06;
const INT_BELOW: u8 = 0x20;
const INT64: u8 = 0x21;
const INT_ABOVE: u8 = 0x22;
const FRACTION: u8 = 0x30;
const TEXT: u8 = 0x40;
const BYTES: u8 = 0x50;

/// Appends one key component.
pub fn put_key_cell(out: &mut Vec<u8>, cell: &Cell<'_>) {
    match cell {
        Cell::Null | Cell::Unchanged => out.push(NULL),
        Cell::Unknown => out.push(UNKNOWN),
        Cell::Int(v) => put_int(out, *v as i128),
        Cell::Decimal { unscaled, scale } => put_decimal(out, *unscaled, *scale),
        Cell::Text(s) => match canonical_number(s) {
            Some((unscaled, scale)) => put_decimal(out, unscaled, scale),
            None => put_escaped(out, TEXT, s.as_bytes()),
        },
        Cell::Bytes(b) => put_escaped(out, BYTES, b),
        Cell::Json(s) | Cell::Leaves(s) => put_escaped(out, TEXT, s.as_bytes()),
        other => {
            let mut text = String::new();
            write_text(&mut text, other);
            match canonical_number(&text) {
                Some((unscaled, scale)) => put_decimal(out, unscaled, scale),
                None => put_escaped(out, TEXT, text.as_bytes()),
            }
        }
    }
}

/// The bytes of a whole key, or of a row of a table without a key.
pub fn key_bytes<'a>(cells: impl IntoIterator<Item = &'a Cell<'a>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    cells.into_iter().for_each(|c| put_key_cell(&mut out, c));
    out
}

fn put_int(out: &mut Vec<u8>, v: i128) {
    match i64::try_from(v) {
        Ok(n) => {
            out.push(INT64);
            out.extend_from_slice(&((n as u64) ^ (1 << 63)).to_be_bytes());
        }
        Err(_) => {
            out.push(if v < 0 { INT_BELOW } else { INT_ABOVE });
            out.extend_from_slice(&((v as u128) ^ (1 << 127)).to_be_bytes());
        }
    }
}

fn put_decimal(out: &mut Vec<u8>, mut unscaled: i128, mut scale: u8) {
    while scale > 0 && unscaled % 10 == 0 {
        unscaled /= 10;
        scale -= 1;
    }
    if scale == 0 {
        return put_int(out, unscaled);
    }
    let mut text = String::new();
    write_text(&mut text, &Cell::Decimal { unscaled, scale });
    put_escaped(out, FRACTION, text.as_bytes());
}

fn put_escaped(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    for part in bytes.split_inclusive(|b| *b == 0) {
        out.extend_from_slice(part);
        if part.ends_with(&[0]) {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 1]);
}

/// What one component of a key says, as far as it says it exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart<'k> {
    /// A whole number of 64 bits, whatever it was written as.
    Int(i64),
    /// A text that is no number.
    Text(Cow<'k, str>),
    /// Anything else.
    Other,
}

/// The components of key bytes in order, up to the first that is damaged.
pub fn key_parts(key: &[u8]) -> KeyParts<'_> {
    KeyParts { rest: key }
}

/// See [`key_parts`].
#[derive(Clone, Debug)]
pub struct KeyParts<'k> {
    rest: &'k [u8],
}

impl<'k> Iterator for KeyParts<'k> {
    type Item = KeyPart<'k>;

    fn next(&mut self) -> Option<KeyPart<'k>> {
        let (tag, rest) = self.rest.split_first()?;
        let length = match *tag {
            NULL | UNKNOWN => 0,
            INT64 => 8,
            INT_BELOW | INT_ABOVE => 16,
            FRACTION | TEXT | BYTES => escaped_length(rest)?,
            _ => return None,
        };
        let (body, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(match *tag {
            INT64 => KeyPart::Int((u64::from_be_bytes(body.try_into().ok()?) ^ (1 << 63)) as i64),
            TEXT => unescaped(&body[..length - 2]).map_or(KeyPart::Other, KeyPart::Text),
            _ => KeyPart::Other,
        })
    }
}

/// Bytes of an escaped body with its end.
fn escaped_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|b| *b == 0)? + 2;
        match bytes.get(at - 1)? {
            0xff => {}
            1 => return Some(at),
            _ => return None,
        }
    }
}

fn unescaped(body: &[u8]) -> Option<Cow<'_, str>> {
    if !body.contains(&0) {
        return std::str::from_utf8(body).ok().map(Cow::Borrowed);
    }
    let mut bytes = Vec::with_capacity(body.len());
    for part in body.split_inclusive(|b| *b == 0) {
        // An escape is what follows a zero.
        let escape = bytes.last() == Some(&0) && part.first() == Some(&0xff);
        bytes.extend_from_slice(&part[usize::from(escape)..]);
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// The first 16 bytes of a key as a number that orders like the key, for sorting without touching
/// the key itself. Equal prefixes say nothing.
pub fn key_prefix(key: &[u8]) -> u128 {
    let mut b = [0u8; 16];
    let n = key.len().min(16);
    b[..n].copy_from_slice(&key[..n]);
    u128::from_be_bytes(b)
}

/// One component of a key, as far as its bytes tell what it was.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Component {
    /// NULL.
    Null,
    /// A placeholder.
    Unknown,
    /// A number without a fraction.
    Int(i128),
    /// A text, or the digits of a number with a fraction.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// The first component of a key and the bytes behind it; `None` if the bytes are no key.
pub(crate) fn first_component(key: &[u8]) -> Option<(Component, &[u8])> {
    let (tag, rest) = key.split_first()?;
    match *tag {
        NULL => Some((Component::Null, rest)),
        UNKNOWN => Some((Component::Unknown, rest)),
        INT64 => {
            let (digits, rest) = rest.split_first_chunk::<8>()?;
            Some((Component::Int((u64::from_be_bytes(*digits) ^ (1 << 63)) as i64 as i128), rest))
        }
        INT_BELOW | INT_ABOVE => {
            let (digits, rest) = rest.split_first_chunk::<16>()?;
            Some((Component::Int((u128::from_be_bytes(*digits) ^ (1 << 127)) as i128), rest))
        }
        FRACTION | TEXT => {
            let (bytes, rest) = unescaped_part(rest)?;
            Some((Component::Text(String::from_utf8(bytes).ok()?), rest))
        }
        BYTES => unescaped_part(rest).map(|(bytes, rest)| (Component::Bytes(bytes), rest)),
        _ => None,
    }
}

fn unescaped_part(escaped: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut out, mut at) = (Vec::new(), 0);
    loop {
        let zero = at + escaped.get(at..)?.iter().position(|b| *b == 0)?;
        out.extend_from_slice(&escaped[at..zero]);
        match escaped.get(zero + 1)? {
            0xff => out.push(0),
            _ => return Some((out, &escaped[zero + 2..])),
        }
        at = zero + 2;
    }
}
