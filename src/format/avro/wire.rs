//! Avro's binary encoding: bytes that nobody has checked.

use crate::format::fields::Reject;
use asofdb_storage::event::short_varint;

/// Values that a message may have beyond those that take bytes.
const STEPS_FREE: usize = 100_000;

/// Reads a message from its start.
#[derive(Debug)]
pub struct Wire<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Values that may still come: some take no bytes, and could come without end.
    steps: usize,
}

impl<'a> Wire<'a> {
    /// The encoded values that `bytes` begins with.
    pub fn new(bytes: &'a [u8]) -> Wire<'a> {
        Wire { bytes, at: 0, steps: STEPS_FREE.saturating_add(bytes.len().saturating_mul(16)) }
    }

    /// Bytes read.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes back to a byte that was read.
    pub fn seek(&mut self, at: usize) {
        self.at = at.min(self.bytes.len());
    }

    /// Bytes left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// A fault at this place.
    #[cold]
    pub fn fault(&self, what: impl Into<String>) -> Reject {
        Reject::new(what).at(self.at)
    }

    /// Counts a value.
    #[inline]
    pub fn step(&mut self) -> Result<(), Reject> {
        match self.steps.checked_sub(1) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(self.fault("the message has more values than its bytes can hold")),
        }
    }

    /// That many bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Reject> {
        match self.bytes[self.at..].get(..n) {
            Some(taken) => {
                self.at += n;
                Ok(taken)
            }
            None => Err(self.fault(format!(
                "{n} bytes should follow and there are {}; the message is cut off or was written with \
                 another schema",
                self.left()
            ))),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Reject> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// A long, or the number of a branch.
    #[inline]
    pub fn long(&mut self) -> Result<i64, Reject> {
        match self.short_long() {
            Some(n) => Ok(n),
            None => self.long_of_many(),
        }
    }

    /// The same; `None` if it is none, or one near the end of the message that takes a closer look.
    #[inline]
    pub fn short_long(&mut self) -> Option<i64> {
        let rest = &self.bytes[self.at..];
        let (n, bytes) = match *rest.first()? {
            b if b < 0x80 => (b as u64, 1),
            _ => short_varint(rest)?,
        };
        self.at += bytes;
        Some((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// Bytes behind their length; `None` as for [`Wire::short_long`], and if they are not there.
    #[inline]
    pub fn short_bytes(&mut self) -> Option<&'a [u8]> {
        let n = usize::try_from(self.short_long()?).ok()?;
        let taken = self.bytes[self.at..].get(..n)?;
        self.at += n;
        Some(taken)
    }

    /// That many bytes, if they are there.
    #[inline]
    pub fn short_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = *self.bytes[self.at..].first_chunk()?;
        self.at += N;
        Some(taken)
    }

    fn long_of_many(&mut self) -> Result<i64, Reject> {
        let (mut n, mut shift) = (0u64, 0);
        loop {
            let [b] = self.array()?;
            if shift == 63 && b > 1 {
                return Err(self.fault("an integer has more than 64 bits"));
            }
            n |= ((b & 0x7f) as u64) << shift;
            if b < 0x80 {
                return Ok((n >> 1) as i64 ^ -((n & 1) as i64));
            }
            shift += 7;
        }
    }

    /// An int.
    #[inline]
    pub fn int(&mut self) -> Result<i32, Reject> {
        let n = self.long()?;
        i32::try_from(n).map_err(|_| self.fault(format!("{n} is no int of 32 bits")))
    }

    /// A boolean.
    pub fn boolean(&mut self) -> Result<bool, Reject> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [b] => Err(self.fault(format!("{b} is neither true nor false"))),
        }
    }

    /// A float.
    pub fn float(&mut self) -> Result<f32, Reject> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    /// A double.
    pub fn double(&mut self) -> Result<f64, Reject> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// Bytes.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Reject> {
        let n = self.long()?;
        match usize::try_from(n) {
            Ok(n) => self.take(n),
            Err(_) => Err(self.fault(format!("{n} is no length"))),
        }
    }

    /// A string.
    #[inline]
    pub fn text(&mut self) -> Result<&'a str, Reject> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.fault("a string is not UTF-8"))
    }

    /// The number of values of the next block of an array or map; 0 at the end.
    pub fn block(&mut self) -> Result<u64, Reject> {
        let n = self.long()?;
        if n < 0 {
            // The size of the block in bytes, for those who pass over it.
            self.long()?;
        }
        Ok(n.unsigned_abs())
    }
}
