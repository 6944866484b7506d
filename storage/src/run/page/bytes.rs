//! Byte strings in pages, and finding one among sorted ones.

use super::delta::Deltas;
use super::{PageError, SHORT};
use std::cmp::Ordering;
use std::ops::Range;

/// Hands on the strings `wanted` of plain ones: each behind its length.
pub(crate) fn plain(
    bytes: &[u8],
    wanted: Range<usize>,
    mut each: impl FnMut(&[u8]),
) -> Result<(), PageError> {
    let mut at = 0usize;
    for i in 0..wanted.end {
        let length = bytes.get(at..at + 4).ok_or(SHORT)?;
        let length = u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
        let value = bytes.get(at + 4..at + 4 + length).ok_or(SHORT)?;
        if i >= wanted.start {
            each(value);
        }
        at += 4 + length;
    }
    Ok(())
}

/// Strings whose lengths stand before all of them (DELTA_LENGTH_BYTE_ARRAY).
struct Lengths<'a> {
    lengths: Deltas<'a>,
    rest: &'a [u8],
}

impl<'a> Lengths<'a> {
    fn new(bytes: &'a [u8]) -> Result<Lengths<'a>, PageError> {
        let rest = bytes.get(Deltas::new(bytes)?.end()?..).ok_or(SHORT)?;
        Ok(Lengths { lengths: Deltas::new(bytes)?, rest })
    }

    #[inline]
    fn next(&mut self) -> Result<&'a [u8], PageError> {
        let length = self.lengths.next()?;
        self.take(length)
    }

    fn skip(&mut self, n: usize) -> Result<(), PageError> {
        let sum = self.lengths.skip(n)?;
        self.take(sum).map(|_| ())
    }

    #[inline]
    fn take(&mut self, n: i64) -> Result<&'a [u8], PageError> {
        let n = usize::try_from(n).ok().filter(|n| *n <= self.rest.len()).ok_or(SHORT)?;
        let (value, rest) = self.rest.split_at(n);
        self.rest = rest;
        Ok(value)
    }
}

/// Hands on the strings `wanted` of DELTA_LENGTH_BYTE_ARRAY.
pub(crate) fn with_lengths(
    bytes: &[u8],
    wanted: Range<usize>,
    mut each: impl FnMut(&[u8]),
) -> Result<(), PageError> {
    let mut strings = Lengths::new(bytes)?;
    strings.skip(wanted.start)?;
    for _ in wanted {
        each(strings.next()?);
    }
    Ok(())
}

/// Strings that say how many bytes they share with the one before (DELTA_BYTE_ARRAY).
struct Fronts<'a> {
    shared: Deltas<'a>,
    suffixes: Lengths<'a>,
}

impl<'a> Fronts<'a> {
    fn new(bytes: &'a [u8]) -> Result<Fronts<'a>, PageError> {
        let end = Deltas::new(bytes)?.end()?;
        let suffixes = Lengths::new(bytes.get(end..).ok_or(SHORT)?)?;
        Ok(Fronts { shared: Deltas::new(bytes)?, suffixes })
    }

    /// Bytes shared with the string before, and the rest.
    #[inline]
    fn next(&mut self) -> Result<(usize, &'a [u8]), PageError> {
        let shared = usize::try_from(self.shared.next()?).map_err(|_| SHORT)?;
        Ok((shared, self.suffixes.next()?))
    }
}

/// Hands on the strings `wanted` of DELTA_BYTE_ARRAY.
pub(crate) fn with_fronts(
    bytes: &[u8],
    wanted: Range<usize>,
    mut each: impl FnMut(&[u8]),
) -> Result<(), PageError> {
    let mut fronts = Fronts::new(bytes)?;
    let mut value: Vec<u8> = Vec::new();
    for i in 0..wanted.end {
        let (shared, suffix) = fronts.next()?;
        if shared > value.len() {
            return Err(PageError("a string shares more than the one before it has"));
        }
        value.truncate(shared);
        value.extend_from_slice(suffix);
        if i >= wanted.start {
            each(&value);
        }
    }
    Ok(())
}

/// Which of `n` ascending strings of DELTA_BYTE_ARRAY equal `key`: the first that is not below it, and
/// the first that is above it.
pub(crate) fn find_with_fronts(bytes: &[u8], n: usize, key: &[u8]) -> Result<Range<usize>, PageError> {
    let mut fronts = Fronts::new(bytes)?;
    // How many bytes the string before shares with the key, and how it compares.
    let (mut common, mut order) = (0, Ordering::Less);
    let mut start = None;
    for i in 0..n {
        let (shared, suffix) = fronts.next()?;
        // A string that shares more with the one before than that shares with the key compares as that.
        if i == 0 || shared <= common {
            let rest =
                key.get(shared..).ok_or(PageError("a string shares more than the one before it has"))?;
            let same = rest.iter().zip(suffix).take_while(|(a, b)| a == b).count();
            common = shared + same;
            order = match (suffix.get(same), rest.get(same)) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Less,
                (Some(_), None) => Ordering::Greater,
                (Some(a), Some(b)) => a.cmp(b),
            };
        }
        if order == Ordering::Equal && start.is_none() {
            start = Some(i);
        }
        if order == Ordering::Greater {
            return Ok(start.unwrap_or(i)..i);
        }
    }
    Ok(start.unwrap_or(n)..n)
}

/// As [`find_with_fronts`], of plain strings.
pub(crate) fn find_plain(bytes: &[u8], n: usize, key: &[u8]) -> Result<Range<usize>, PageError> {
    let (mut below, mut up_to) = (0, 0);
    plain(bytes, 0..n, |value| {
        below += usize::from(value < key);
        up_to += usize::from(value <= key);
    })?;
    Ok(below..up_to)
}
