//! Runs of equal numbers mixed with packed numbers: levels, and places in a dictionary.

use super::{PageError, SHORT, packed, varint};
use std::ops::Range;

/// One stretch of numbers.
enum Stretch<'a> {
    Equal(u64),
    Packed(&'a [u8]),
}

/// Reads numbers of `width` bits.
pub(crate) struct Hybrid<'a> {
    bytes: &'a [u8],
    width: usize,
    at: usize,
}

impl<'a> Hybrid<'a> {
    pub fn new(bytes: &'a [u8], width: usize) -> Result<Hybrid<'a>, PageError> {
        if width > 32 {
            return Err(PageError("a page has numbers of more than 32 bits"));
        }
        Ok(Hybrid { bytes, width, at: 0 })
    }

    /// The next stretch and how many numbers it has.
    fn next(&mut self) -> Result<(usize, Stretch<'a>), PageError> {
        let head = varint(self.bytes, &mut self.at)?;
        let n = usize::try_from(head >> 1).map_err(|_| SHORT)?;
        if head & 1 == 0 {
            let bytes = self.take(self.width.div_ceil(8))?;
            return Ok((n, Stretch::Equal(packed(bytes, 0, bytes.len() * 8))));
        }
        // A writer may leave the last group of eight incomplete.
        let bytes = n.saturating_mul(self.width).min(self.bytes.len() - self.at);
        Ok((n.saturating_mul(8), Stretch::Packed(self.take(bytes)?)))
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], PageError> {
        let bytes = self.bytes.get(self.at..self.at + n).ok_or(SHORT)?;
        self.at += n;
        Ok(bytes)
    }

    /// Hands on the numbers `wanted`, ascending. Numbers that are read must be there.
    pub fn read(mut self, wanted: Range<usize>, mut each: impl FnMut(u64)) -> Result<(), PageError> {
        let mut start = 0usize;
        while start < wanted.end {
            let (n, stretch) = self.next()?;
            if n == 0 && self.at >= self.bytes.len() {
                return Err(SHORT);
            }
            let end = start.saturating_add(n);
            for i in wanted.start.max(start)..wanted.end.min(end) {
                each(match stretch {
                    Stretch::Equal(value) => value,
                    Stretch::Packed(bytes) => {
                        if (i - start + 1) * self.width > bytes.len() * 8 {
                            return Err(SHORT);
                        }
                        packed(bytes, i - start, self.width)
                    }
                });
            }
            start = end;
        }
        Ok(())
    }

    /// How many of the first `n` numbers of one bit are 1.
    pub fn ones(mut self, n: usize) -> Result<usize, PageError> {
        let (mut start, mut ones) = (0usize, 0);
        while start < n {
            let (count, stretch) = self.next()?;
            if count == 0 && self.at >= self.bytes.len() {
                return Err(SHORT);
            }
            let part = count.min(n - start);
            ones += match stretch {
                Stretch::Equal(value) => usize::from(value == 1) * part,
                Stretch::Packed(bytes) if part > bytes.len() * 8 => return Err(SHORT),
                Stretch::Packed(bytes) => {
                    let whole = bytes[..part / 8].iter().map(|b| b.count_ones() as usize).sum::<usize>();
                    let rest = part % 8;
                    let last = if rest > 0 { bytes[part / 8] & ((1 << rest) - 1) } else { 0 };
                    whole + last.count_ones() as usize
                }
            };
            start += part;
        }
        Ok(ones)
    }
}
