//! Numbers as packed differences (DELTA_BINARY_PACKED).

use super::{PageError, SHORT, packed, varint, zigzag};
use std::ops::Range;

/// Numbers that are unpacked at a time.
const AHEAD: usize = 64;

/// Reads the numbers one after the other.
pub(crate) struct Deltas<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Numbers of a miniblock, and miniblocks of a block.
    mini_values: usize,
    minis: usize,
    /// Numbers that were not unpacked yet.
    left: usize,
    /// The last number that was unpacked.
    value: i64,
    min_delta: i64,
    /// Widths of the miniblocks of the block, and which of them is read.
    widths: &'a [u8],
    mini: usize,
    /// Bytes of the miniblock, and the next number in it.
    packed: &'a [u8],
    next: usize,
    /// Numbers that were unpacked, and which of them were not handed out.
    ahead: [i64; AHEAD],
    ready: Range<usize>,
}

const WRONG: PageError = PageError("a page of differences has a wrong header");

impl<'a> Deltas<'a> {
    pub fn new(bytes: &'a [u8]) -> Result<Deltas<'a>, PageError> {
        let mut at = 0;
        let mut header = || varint(bytes, &mut at).and_then(|n| usize::try_from(n).map_err(|_| WRONG));
        let (block, minis, total) = (header()?, header()?, header()?);
        let value = zigzag(varint(bytes, &mut at)?);
        let even = minis > 0 && block.is_multiple_of(minis.saturating_mul(8));
        if !even || minis > 1 << 16 || block == 0 || block > 1 << 24 {
            return Err(WRONG);
        }
        let mini_values = block / minis;
        let mut ahead = [0; AHEAD];
        ahead[0] = value;
        Ok(Deltas {
            bytes,
            at,
            mini_values,
            minis,
            left: total.saturating_sub(1),
            value,
            min_delta: 0,
            widths: &[],
            mini: 0,
            packed: &[],
            next: mini_values,
            ahead,
            ready: 0..total.min(1),
        })
    }

    /// Begins the next miniblock.
    fn step(&mut self) -> Result<(), PageError> {
        self.mini += 1;
        if self.mini >= self.widths.len() {
            self.min_delta = zigzag(varint(self.bytes, &mut self.at)?);
            self.widths = self.bytes.get(self.at..self.at + self.minis).ok_or(SHORT)?;
            self.at += self.minis;
            self.mini = 0;
        }
        let width = self.width();
        if width > 64 {
            return Err(PageError("a page has differences of more than 64 bits"));
        }
        // The last miniblock may be cut off behind its last number.
        let there = self.bytes.len() - self.at;
        if there * 8 < self.left.min(self.mini_values) * width {
            return Err(SHORT);
        }
        let bytes = (self.mini_values * width / 8).min(there);
        self.packed = &self.bytes[self.at..self.at + bytes];
        self.at += bytes;
        self.next = 0;
        Ok(())
    }

    fn width(&self) -> usize {
        usize::from(self.widths[self.mini])
    }

    /// Unpacks some numbers; an error behind the last.
    fn unpack(&mut self) -> Result<(), PageError> {
        if self.left == 0 {
            return Err(SHORT);
        }
        if self.next == self.mini_values {
            self.step()?;
        }
        let (width, first) = (self.width(), self.next);
        let n = AHEAD.min(self.left).min(self.mini_values - first);
        let (mut value, min_delta) = (self.value, self.min_delta);
        let wide = width > 56 || self.packed.len() * 8 < (first + n) * width + 64;
        let mask = if width < 64 { (1u64 << width) - 1 } else { u64::MAX };
        for (i, out) in self.ahead[..n].iter_mut().enumerate() {
            let delta = if wide {
                packed(self.packed, first + i, width)
            } else {
                let bit = (first + i) * width;
                match self.packed[bit / 8..].first_chunk() {
                    Some(bytes) => u64::from_le_bytes(*bytes) >> (bit % 8) & mask,
                    None => 0,
                }
            };
            value = value.wrapping_add(min_delta).wrapping_add(delta as i64);
            *out = value;
        }
        self.value = value;
        self.next += n;
        self.left -= n;
        self.ready = 0..n;
        Ok(())
    }

    /// The next number; an error behind the last.
    #[inline]
    pub fn next(&mut self) -> Result<i64, PageError> {
        if self.ready.is_empty() {
            self.unpack()?;
        }
        let value = self.ahead[self.ready.start];
        self.ready.start += 1;
        Ok(value)
    }

    /// Goes over the next `n` numbers; returns their sum.
    pub fn skip(&mut self, mut n: usize) -> Result<i64, PageError> {
        let mut sum = 0i64;
        while n > 0 {
            if self.ready.is_empty() {
                self.unpack()?;
            }
            let part = n.min(self.ready.len());
            let numbers = &self.ahead[self.ready.start..self.ready.start + part];
            sum = numbers.iter().fold(sum, |sum, n| sum.wrapping_add(*n));
            self.ready.start += part;
            n -= part;
        }
        Ok(sum)
    }

    /// Where the bytes behind all numbers begin.
    pub fn end(mut self) -> Result<usize, PageError> {
        // The rest of a miniblock lies before `at` already.
        self.left = self.left.saturating_sub(self.mini_values - self.next);
        while self.left > 0 {
            self.step()?;
            self.left = self.left.saturating_sub(self.mini_values);
        }
        Ok(self.at)
    }
}
