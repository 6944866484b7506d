//! Single values out of single pages of a Parquet file.
//!
//! A look-up of one key needs a few rows of one page of each column. What the readers of the Parquet
//! crate set up to read a whole column costs more than reading those rows, so they are read here: the
//! page, its levels, and of its values only those that are asked for. Pages that are coded in a way that
//! is not known here are left to the crate.

mod arrays;
mod bytes;
mod column;
mod delta;
mod header;
mod hybrid;
mod values;

pub(crate) use column::{Dictionaries, PageColumn};

use std::fmt;

/// What is wrong with a page.
#[derive(Debug, PartialEq)]
pub(crate) struct PageError(pub &'static str);

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for PageError {}

/// A page that ends within a value.
pub(crate) const SHORT: PageError = PageError("a page ends within a value");

/// Unsigned LEB128 at `*at`.
pub(crate) fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, PageError> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let b = *bytes.get(*at).ok_or(SHORT)?;
        *at += 1;
        n |= u64::from(b & 0x7f) << shift;
        if b < 0x80 {
            return Ok(n);
        }
    }
    Err(PageError("a number in a page is too long"))
}

/// The signed number that a zigzag coding stands for.
pub(crate) fn zigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

/// The `n`th number of `width` bits, low bits first, in packed bytes; zeros beyond the end.
#[inline]
pub(crate) fn packed(bytes: &[u8], n: usize, width: usize) -> u64 {
    if width == 0 {
        return 0;
    }
    let bit = n * width;
    let (at, shift) = (bit / 8, bit % 8);
    let low = match bytes.get(at..at + 8) {
        Some(b) => u64::from_le_bytes(b.try_into().unwrap_or_default()),
        None => {
            let mut b = [0; 8];
            let rest = bytes.get(at..).unwrap_or_default();
            let n = rest.len().min(8);
            b[..n].copy_from_slice(&rest[..n]);
            u64::from_le_bytes(b)
        }
    };
    let mut value = low >> shift;
    if shift + width > 64 {
        value |= u64::from(bytes.get(at + 8).copied().unwrap_or(0)) << (64 - shift);
    }
    if width < 64 { value & ((1 << width) - 1) } else { value }
}

#[cfg(test)]
mod tests;
