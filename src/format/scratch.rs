//! Space for the text that a message does not hold as it is needed, and vectors that outlive their
//! borrows: decoding a message allocates nothing once the buffers have grown.

/// Scratch space that is dropped when it outgrows a message by this much.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The bytes behind a [`Scratch`], kept from message to message.
#[derive(Debug, Default)]
pub struct ScratchBuffer {
    bytes: Vec<u8>,
    text: String,
}

impl ScratchBuffer {
    /// Scratch space with room for `room` bytes.
    pub fn scratch(&mut self, room: usize) -> Scratch<'_> {
        if self.bytes.len() < room || self.bytes.len() > room.max(KEPT_BYTES_MAX) * 2 {
            self.bytes.resize(room.max(4096), 0);
            self.bytes.shrink_to(room.max(KEPT_BYTES_MAX));
        }
        if self.text.capacity() > KEPT_BYTES_MAX {
            self.text = String::new();
        }
        Scratch { rest: &mut self.bytes, text: &mut self.text, overflowed: false }
    }
}

/// Hands out pieces of a buffer that live as long as the buffer is borrowed.
#[derive(Debug)]
pub struct Scratch<'a> {
    rest: &'a mut [u8],
    text: &'a mut String,
    overflowed: bool,
}

impl<'a> Scratch<'a> {
    /// Keeps a copy of `bytes`. Without room for it the empty slice is handed out and
    /// [`Scratch::overflowed`] says so.
    pub fn put(&mut self, bytes: &[u8]) -> &'a [u8] {
        if bytes.len() > self.rest.len() {
            self.overflowed = true;
            return &[];
        }
        let (piece, rest) = std::mem::take(&mut self.rest).split_at_mut(bytes.len());
        self.rest = rest;
        piece.copy_from_slice(bytes);
        piece
    }

    /// Keeps what `write` appends to an empty string.
    pub fn put_str(&mut self, write: impl FnOnce(&mut String)) -> &'a str {
        let mut text = std::mem::take(self.text);
        text.clear();
        write(&mut text);
        let bytes = self.put(text.as_bytes());
        *self.text = text;
        std::str::from_utf8(bytes).unwrap_or("")
    }

    /// Something did not fit, so that what was handed out must not be used.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }
}
