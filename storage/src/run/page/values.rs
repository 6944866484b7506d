//! Values of a page by encoding and physical type.

use super::bytes::{plain, with_fronts, with_lengths};
use super::delta::Deltas;
use super::hybrid::Hybrid;
use super::{PageError, SHORT, packed};
use parquet::basic::Type;
use std::ops::Range;

// Encodings by number.
pub(crate) const PLAIN: i64 = 0;
pub(crate) const PLAIN_DICTIONARY: i64 = 2;
pub(crate) const RLE: i64 = 3;
pub(crate) const DELTA_BINARY_PACKED: i64 = 5;
pub(crate) const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
pub(crate) const DELTA_BYTE_ARRAY: i64 = 7;
pub(crate) const RLE_DICTIONARY: i64 = 8;
pub(crate) const BYTE_STREAM_SPLIT: i64 = 9;

/// How values lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Physical {
    Bool,
    /// Numbers of 4 or 8 bytes.
    Number(usize),
    /// Big-endian, this many bytes.
    Fixed(usize),
    Bytes,
}

impl Physical {
    pub fn of(ty: Type, length: i32) -> Option<Physical> {
        Some(match ty {
            Type::BOOLEAN => Physical::Bool,
            Type::INT32 | Type::FLOAT => Physical::Number(4),
            Type::INT64 | Type::DOUBLE => Physical::Number(8),
            Type::FIXED_LEN_BYTE_ARRAY => Physical::Fixed(usize::try_from(length).ok().filter(|n| *n > 0)?),
            Type::BYTE_ARRAY => Physical::Bytes,
            Type::INT96 => return None,
        })
    }
}

/// Values in the order of rows, without NULLs.
#[derive(Debug)]
pub(crate) enum Values {
    /// Bits of numbers and truth values; 4-byte ones have their sign extended.
    Numbers(Vec<i64>),
    Bytes {
        ends: Vec<usize>,
        bytes: Vec<u8>,
    },
}

impl Values {
    pub fn new(physical: Physical) -> Values {
        match physical {
            Physical::Bool | Physical::Number(_) => Values::Numbers(Vec::new()),
            Physical::Fixed(_) | Physical::Bytes => Values::Bytes { ends: Vec::new(), bytes: Vec::new() },
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Values::Numbers(all) => all.len(),
            Values::Bytes { ends, .. } => ends.len(),
        }
    }

    /// Value `i` of [`Values::Bytes`].
    pub fn string(&self, i: usize) -> &[u8] {
        match self {
            Values::Numbers(_) => &[],
            Values::Bytes { ends, bytes } => {
                let start = if i == 0 { 0 } else { ends[i - 1] };
                &bytes[start..ends[i]]
            }
        }
    }

    fn push_number(&mut self, n: i64) {
        if let Values::Numbers(all) = self {
            all.push(n);
        }
    }

    fn push_bytes(&mut self, value: &[u8]) {
        if let Values::Bytes { ends, bytes } = self {
            bytes.extend_from_slice(value);
            ends.push(bytes.len());
        }
    }

    fn push_of(&mut self, other: &Values, i: usize) -> Result<(), PageError> {
        if i >= other.len() {
            return Err(PageError("a page means a value that its dictionary does not have"));
        }
        match other {
            Values::Numbers(all) => self.push_number(all[i]),
            Values::Bytes { .. } => self.push_bytes(other.string(i)),
        }
        Ok(())
    }
}

/// A coding that is not read here.
pub(crate) fn is_known(physical: Physical, encoding: i64) -> bool {
    match encoding {
        PLAIN | PLAIN_DICTIONARY | RLE_DICTIONARY => true,
        RLE => physical == Physical::Bool,
        DELTA_BINARY_PACKED => matches!(physical, Physical::Number(_)),
        DELTA_LENGTH_BYTE_ARRAY => physical == Physical::Bytes,
        DELTA_BYTE_ARRAY => matches!(physical, Physical::Bytes | Physical::Fixed(_)),
        BYTE_STREAM_SPLIT => matches!(physical, Physical::Number(_) | Physical::Fixed(_)),
        _ => false,
    }
}

/// Appends the values `wanted` of the `count` values of a page.
pub(crate) fn read(
    physical: Physical,
    encoding: i64,
    bytes: &[u8],
    (count, wanted): (usize, Range<usize>),
    dictionary: Option<&Values>,
    out: &mut Values,
) -> Result<(), PageError> {
    match (encoding, physical) {
        (PLAIN_DICTIONARY | RLE_DICTIONARY, _) => {
            let dictionary = dictionary.ok_or(PageError("a page means a dictionary that is not there"))?;
            let width = *bytes.first().ok_or(SHORT)?;
            let mut result = Ok(());
            Hybrid::new(&bytes[1..], usize::from(width))?.read(wanted, |i| {
                let pushed = out.push_of(dictionary, i as usize);
                if result.is_ok() {
                    result = pushed;
                }
            })?;
            result
        }
        (PLAIN, Physical::Bool) => {
            if wanted.end > bytes.len() * 8 {
                return Err(SHORT);
            }
            wanted.for_each(|i| out.push_number(packed(bytes, i, 1) as i64));
            Ok(())
        }
        (RLE, _) => {
            let bytes = bytes.get(4..).ok_or(SHORT)?;
            Hybrid::new(bytes, 1)?.read(wanted, |bit| out.push_number(bit as i64))
        }
        (PLAIN, Physical::Number(width)) => fixed(bytes, width, wanted, |b| out.push_number(little(b))),
        (PLAIN, Physical::Fixed(width)) => fixed(bytes, width, wanted, |b| out.push_bytes(b)),
        (PLAIN, Physical::Bytes) => plain(bytes, wanted, |b| out.push_bytes(b)),
        (DELTA_BINARY_PACKED, _) => {
            let mut deltas = Deltas::new(bytes)?;
            deltas.skip(wanted.start)?;
            for _ in wanted {
                let n = deltas.next()?;
                out.push_number(if physical == Physical::Number(4) { i64::from(n as i32) } else { n });
            }
            Ok(())
        }
        (DELTA_LENGTH_BYTE_ARRAY, _) => with_lengths(bytes, wanted, |b| out.push_bytes(b)),
        (DELTA_BYTE_ARRAY, _) => with_fronts(bytes, wanted, |b| out.push_bytes(b)),
        (BYTE_STREAM_SPLIT, Physical::Number(width)) => {
            split(bytes, width, count, wanted, |b| out.push_number(little(b)))
        }
        (BYTE_STREAM_SPLIT, Physical::Fixed(width)) => {
            split(bytes, width, count, wanted, |b| out.push_bytes(b))
        }
        _ => Err(PageError("a page is coded in a way that is not known")),
    }
}

fn little(bytes: &[u8]) -> i64 {
    match *bytes {
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => i64::from_le_bytes(bytes.try_into().unwrap_or_default()),
    }
}

fn fixed(bytes: &[u8], width: usize, wanted: Range<usize>, each: impl FnMut(&[u8])) -> Result<(), PageError> {
    let bytes = bytes.get(wanted.start * width..wanted.end * width).ok_or(SHORT)?;
    bytes.chunks_exact(width).for_each(each);
    Ok(())
}

/// Values whose first bytes stand together, then the second ones, and so on.
fn split(
    bytes: &[u8],
    width: usize,
    count: usize,
    wanted: Range<usize>,
    mut each: impl FnMut(&[u8]),
) -> Result<(), PageError> {
    if wanted.end > count || count.checked_mul(width).is_none_or(|n| n > bytes.len()) {
        return Err(SHORT);
    }
    let mut value = vec![0; width];
    for i in wanted {
        value.iter_mut().enumerate().for_each(|(part, b)| *b = bytes[part * count + i]);
        each(&value);
    }
    Ok(())
}

impl Values {
    /// Bytes that they take in memory, about.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Values::Numbers(all) => all.len() * 8,
            Values::Bytes { ends, bytes } => ends.len() * 8 + bytes.len(),
        }
    }
}
