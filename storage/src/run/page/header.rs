//! The header before a page: a struct in the compact protocol of Thrift.

use super::{PageError, SHORT, varint, zigzag};

/// What a header says that is needed here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Header {
    /// 0 data, 2 dictionary, 3 data of version 2.
    pub kind: i64,
    pub uncompressed_bytes: usize,
    pub compressed_bytes: usize,
    /// Values, NULLs included.
    pub values: usize,
    pub encoding: i64,
    /// Bytes of definition levels that stand uncompressed before the values; version 2 only.
    pub levels_bytes: usize,
    /// Whether the values are compressed, where the column is.
    pub compressed: bool,
}

pub(crate) const DATA: i64 = 0;
pub(crate) const DICTIONARY: i64 = 2;
pub(crate) const DATA_V2: i64 = 3;

/// Structs within structs that are skipped.
const DEPTH_MAX: u32 = 8;

// Types of fields in the compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

impl Header {
    /// Reads a header at the start of `bytes`; also returns its length.
    pub fn parse(bytes: &[u8]) -> Result<(Header, usize), PageError> {
        let mut header = Header { compressed: true, ..Header::default() };
        let (mut at, mut last) = (0, 0);
        while let Some((id, ty)) = field(bytes, &mut at, &mut last)? {
            match (id, ty) {
                (1, _) => header.kind = number(bytes, &mut at, ty)?,
                (2, _) => header.uncompressed_bytes = count(bytes, &mut at, ty)?,
                (3, _) => header.compressed_bytes = count(bytes, &mut at, ty)?,
                (5 | 7 | 8, STRUCT) => header.inner(bytes, &mut at, id)?,
                _ => skip(bytes, &mut at, ty, 0)?,
            }
        }
        Ok((header, at))
    }

    /// The header of the kind of page: 5 data, 7 dictionary, 8 data of version 2.
    fn inner(&mut self, bytes: &[u8], at: &mut usize, kind: i64) -> Result<(), PageError> {
        let mut last = 0;
        while let Some((id, ty)) = field(bytes, at, &mut last)? {
            match (kind, id) {
                (_, 1) => self.values = count(bytes, at, ty)?,
                (5 | 7, 2) | (8, 4) => self.encoding = number(bytes, at, ty)?,
                (8, 5) => self.levels_bytes = count(bytes, at, ty)?,
                (8, 6) if count(bytes, at, ty)? > 0 => {
                    return Err(PageError("a page has repetition levels"));
                }
                (8, 6) => {}
                (8, 7) => self.compressed = ty == TRUE,
                _ => skip(bytes, at, ty, 0)?,
            }
        }
        Ok(())
    }
}

/// Number and type of the next field; `None` at the end of the struct.
fn field(bytes: &[u8], at: &mut usize, last: &mut i64) -> Result<Option<(i64, u8)>, PageError> {
    let b = *bytes.get(*at).ok_or(SHORT)?;
    *at += 1;
    if b == 0 {
        return Ok(None);
    }
    *last = match b >> 4 {
        0 => zigzag(varint(bytes, at)?),
        step => last.wrapping_add(i64::from(step)),
    };
    Ok(Some((*last, b & 15)))
}

fn number(bytes: &[u8], at: &mut usize, ty: u8) -> Result<i64, PageError> {
    match ty {
        4..=I64 => Ok(zigzag(varint(bytes, at)?)),
        _ => Err(PageError("a field of a page header has another type")),
    }
}

fn count(bytes: &[u8], at: &mut usize, ty: u8) -> Result<usize, PageError> {
    let n = number(bytes, at, ty)?;
    u32::try_from(n).map(|n| n as usize).map_err(|_| PageError("a page header has a negative count"))
}

fn skip(bytes: &[u8], at: &mut usize, ty: u8, depth: u32) -> Result<(), PageError> {
    if depth > DEPTH_MAX {
        return Err(PageError("a page header is nested too deep"));
    }
    match ty {
        TRUE | FALSE => {}
        BYTE => *at += 1,
        4..=I64 => drop(varint(bytes, at)?),
        DOUBLE => *at += 8,
        BINARY => {
            let n = varint(bytes, at)?;
            *at = usize::try_from(n).ok().and_then(|n| at.checked_add(n)).ok_or(SHORT)?;
        }
        LIST | SET => {
            let head = *bytes.get(*at).ok_or(SHORT)?;
            *at += 1;
            let n = if head >> 4 == 15 { varint(bytes, at)? } else { u64::from(head >> 4) };
            for _ in 0..n {
                // In a list, truth values are bytes of their own.
                let ty = if matches!(head & 15, TRUE | FALSE) { BYTE } else { head & 15 };
                skip(bytes, at, ty, depth + 1)?;
                if *at > bytes.len() {
                    return Err(SHORT);
                }
            }
        }
        STRUCT => {
            let mut last = 0;
            while let Some((_, ty)) = field(bytes, at, &mut last)? {
                skip(bytes, at, ty, depth + 1)?;
            }
        }
        _ => return Err(PageError("a page header has a field of an unknown type")),
    }
    if *at > bytes.len() { Err(SHORT) } else { Ok(()) }
}
