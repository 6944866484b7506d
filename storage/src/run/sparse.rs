//! The sparse key index in a sidecar: hexadecimal digits of keys without what they share with the one
//! before. Each is varint rows since the last one, varint shared bytes, varint other bytes, those bytes.

use super::meta::{SparseKey, hex_bytes};
use super::page::varint;
use crate::event::put_varint;
use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Sidecars of the first version list the keys.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Packed(#[serde(with = "hex_bytes")] Vec<u8>),
    Listed(Vec<SparseKey>),
}

pub(super) fn serialize<S: Serializer>(keys: &[SparseKey], s: S) -> Result<S::Ok, S::Error> {
    let mut out = Vec::with_capacity(keys.len() * 12);
    let mut last: (u64, &[u8]) = (0, &[]);
    for k in keys {
        let shared = k.key.iter().zip(last.1).take_while(|(a, b)| a == b).count();
        put_varint(&mut out, k.row.wrapping_sub(last.0));
        put_varint(&mut out, shared as u64);
        put_varint(&mut out, (k.key.len() - shared) as u64);
        out.extend_from_slice(&k.key[shared..]);
        last = (k.row, &k.key);
    }
    hex_bytes::serialize(&out, s)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<SparseKey>, D::Error> {
    match Stored::deserialize(d)? {
        Stored::Listed(keys) => Ok(keys),
        Stored::Packed(bytes) => unpack(&bytes).ok_or_else(|| D::Error::custom("not a list of keys")),
    }
}

fn unpack(bytes: &[u8]) -> Option<Vec<SparseKey>> {
    let mut keys: Vec<SparseKey> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let mut number = || varint(bytes, &mut at).ok();
        let (rows, shared, other) = (number()?, number()?, number()?);
        let (shared, other) = (usize::try_from(shared).ok()?, usize::try_from(other).ok()?);
        let suffix = bytes.get(at..at.checked_add(other)?)?;
        at += other;
        let last = keys.last();
        let mut key = last.map_or(&[][..], |k| &k.key).get(..shared)?.to_vec();
        key.extend_from_slice(suffix);
        let row = last.map_or(0, |k| k.row).checked_add(rows)?;
        keys.push(SparseKey { row, key });
    }
    Some(keys)
}
