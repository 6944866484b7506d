//! Reading a file in blocks, with a digest of what was consumed.

use super::ahead::{Ahead, ROOM_BEFORE};
use asofdb_storage::hex;
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use xxhash_rust::xxh3::Xxh3;

/// How much is read at a time.
pub(super) const BLOCK_BYTES: usize = 1 << 20;
/// Bytes of an input from which on a thread reads ahead: it is not worth one for less.
const AHEAD_FROM_BYTES: u64 = 4 << 20;

/// What a digest by XXH3 begins with; one by SHA-256 has digits only.
const XXH3: &str = "xxh3:";

/// Tells whether a file is the one that was read. Nothing depends on nobody being able to make another file
/// with the same digest: who can replace the file can change what is taken from it.
enum Hash {
    Xxh3(Box<Xxh3>),
    /// Positions that older versions stored.
    Sha256(Sha256),
}

impl Hash {
    fn update(&mut self, bytes: &[u8]) {
        match self {
            Hash::Xxh3(hash) => hash.update(bytes),
            Hash::Sha256(hash) => hash.update(bytes),
        }
    }

    fn digest(&self) -> String {
        match self {
            Hash::Xxh3(hash) => format!("{XXH3}{:032x}", hash.digest128()),
            Hash::Sha256(hash) => hex::encode(&hash.clone().finalize()),
        }
    }
}

/// Who reads.
enum Input {
    Here(Box<dyn Read + Send>),
    Ahead(Ahead),
    /// It was read to its end, or cannot be read on.
    None,
}

/// A window over a stream of bytes that moves forward only.
pub(super) struct Blocks {
    input: Input,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    hashed: usize,
    hash: Hash,
    /// Bytes consumed.
    pub bytes: u64,
    /// Nothing is left to read behind the window.
    pub at_end: bool,
}

impl Blocks {
    pub fn new(input: Box<dyn Read + Send>) -> Blocks {
        let hash = Hash::Xxh3(Box::default());
        let input = Input::Here(input);
        Blocks { input, buffer: Vec::new(), start: 0, end: 0, hashed: 0, hash, bytes: 0, at_end: false }
    }

    /// The bytes that were read and not consumed.
    pub fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads on; the window grows unless the input is at its end.
    pub fn fill(&mut self) -> io::Result<()> {
        self.settle();
        if self.bytes >= AHEAD_FROM_BYTES && !self.at_end {
            self.read_ahead()?;
        }
        match &mut self.input {
            Input::Here(_) => self.fill_here(),
            Input::Ahead(_) => self.fill_ahead(),
            Input::None => {
                self.at_end = true;
                Ok(())
            }
        }
    }

    fn read_ahead(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.input, Input::None) {
            Input::Here(input) => self.input = Input::Ahead(Ahead::of(input)?),
            other => self.input = other,
        }
        Ok(())
    }

    fn fill_here(&mut self) -> io::Result<()> {
        let Input::Here(input) = &mut self.input else { return Ok(()) };
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            (self.start, self.hashed) = (0, 0);
        }
        if self.buffer.len() < self.end + BLOCK_BYTES {
            self.buffer.resize(self.end + BLOCK_BYTES, 0);
        }
        loop {
            match input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            return Ok(());
        }
    }

    /// Goes on with the next block; what is left of the window moves in front of it, or the block behind a
    /// window that is too large for that.
    fn fill_ahead(&mut self) -> io::Result<()> {
        let Input::Ahead(ahead) = &mut self.input else { return Ok(()) };
        let block = ahead.next()?;
        let (mut buffer, end) = (block.buffer, block.end);
        if end == ROOM_BEFORE {
            (self.at_end, self.input) = (true, Input::None);
            return Ok(());
        }
        let left = self.end - self.start;
        if left <= ROOM_BEFORE {
            let start = ROOM_BEFORE - left;
            buffer[start..ROOM_BEFORE].copy_from_slice(&self.buffer[self.start..self.end]);
            std::mem::swap(&mut self.buffer, &mut buffer);
            (self.start, self.hashed, self.end) = (start, start, end);
            if buffer.len() <= ROOM_BEFORE + BLOCK_BYTES {
                ahead.give_back(buffer);
            }
            return Ok(());
        }
        self.buffer.truncate(self.end);
        self.buffer.drain(..self.start);
        self.buffer.extend_from_slice(&buffer[ROOM_BEFORE..end]);
        (self.start, self.hashed, self.end) = (0, 0, self.buffer.len());
        ahead.give_back(buffer);
        Ok(())
    }

    /// Moves the window past its first `n` bytes.
    pub fn consume(&mut self, n: usize) {
        let n = n.min(self.end - self.start);
        self.start += n;
        self.bytes += n as u64;
    }

    fn settle(&mut self) {
        self.hash.update(&self.buffer[self.hashed..self.start]);
        self.hashed = self.start;
    }

    /// Digest of what was consumed.
    pub fn digest(&mut self) -> String {
        self.settle();
        self.hash.digest()
    }

    /// Has [`Blocks::digest`] be of the kind that `digest` is. Nothing may have been consumed.
    pub fn digest_like(&mut self, digest: &str) {
        debug_assert_eq!(self.bytes, 0);
        if !digest.is_empty() && !digest.starts_with(XXH3) {
            self.hash = Hash::Sha256(Sha256::new());
        }
    }

    /// Consumes exactly `n` bytes; whether there were so many.
    pub fn skip(&mut self, mut n: u64) -> io::Result<bool> {
        while n > 0 {
            let here = (self.window().len() as u64).min(n);
            self.consume(here as usize);
            n -= here;
            if n > 0 {
                if self.at_end {
                    return Ok(false);
                }
                self.fill()?;
            }
        }
        Ok(true)
    }

    /// Finds the end of the line at the start of the window, reading on as needed.
    pub fn line(&mut self, bytes_max: usize) -> io::Result<Line> {
        let mut searched = 0;
        loop {
            if let Some(n) = memchr::memchr(b'\n', &self.window()[searched..]) {
                return Ok(Line::Whole { text: searched + n, all: searched + n + 1 });
            }
            searched = self.window().len();
            if self.at_end {
                return Ok(if searched == 0 {
                    Line::None
                } else {
                    Line::Whole { text: searched, all: searched }
                });
            }
            if searched > bytes_max {
                return Ok(Line::TooLong);
            }
            self.fill()?;
        }
    }

    /// Consumes up to the next line break, holding one block at a time; how many bytes.
    pub fn skip_line(&mut self) -> io::Result<u64> {
        let from = self.bytes;
        loop {
            let found = memchr::memchr(b'\n', self.window());
            self.consume(found.map_or(self.window().len(), |n| n + 1));
            if found.is_some() || self.at_end {
                return Ok(self.bytes - from);
            }
            self.fill()?;
        }
    }
}

/// A line at the start of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// `text` bytes, `all` with its line break.
    Whole { text: usize, all: usize },
    /// Longer than it may be.
    TooLong,
    /// There is nothing left.
    None,
}

/// SHA-256 in hexadecimal digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    asofdb_storage::hex::encode(&Sha256::digest(bytes))
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
