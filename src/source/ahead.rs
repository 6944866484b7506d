//! Reading ahead on a thread, so that the kernel's copies and decompression go on beside decoding.

use super::blocks::BLOCK_BYTES;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Blocks that were read and not asked for, at most; one more is being read.
const AHEAD: usize = 2;

/// Room in front of the bytes of a block, for what is left of the one before it.
pub(super) const ROOM_BEFORE: usize = 64 << 10;

/// Bytes read at once, behind [`ROOM_BEFORE`].
pub(super) struct Block {
    pub buffer: Vec<u8>,
    /// Where they end; none at the end of the input.
    pub end: usize,
}

/// Input that a thread reads.
pub(super) struct Ahead {
    blocks: Receiver<io::Result<Block>>,
    used: Sender<Vec<u8>>,
}

impl Ahead {
    /// Has a thread read on.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn of(input: Box<dyn Read + Send>) -> io::Result<Ahead> {
        let (to, blocks) = sync_channel(AHEAD);
        let (used, free) = channel();
        // Nobody waits for it to end: it may stand in a read of standard input that gives nothing.
        let thread = std::thread::Builder::new().name("asofdb-read".into());
        thread.spawn(move || read(input, &to, &free))?;
        Ok(Ahead { blocks, used })
    }

    /// The next block.
    ///
    /// # Errors
    /// Of the input.
    pub fn next(&mut self) -> io::Result<Block> {
        let stopped = |_| io::Error::other("the thread that reads stopped before the end");
        self.blocks.recv().map_err(stopped)?
    }

    /// Gives a buffer back.
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        // At the end nobody takes it.
        let _ = self.used.send(buffer);
    }
}

/// Reads to the end, or until nobody asks.
fn read(mut input: Box<dyn Read + Send>, to: &SyncSender<io::Result<Block>>, free: &Receiver<Vec<u8>>) {
    loop {
        let mut buffer = free.try_recv().unwrap_or_default();
        buffer.resize(ROOM_BEFORE + BLOCK_BYTES, 0);
        let block = match input.read(&mut buffer[ROOM_BEFORE..]) {
            Ok(n) => Ok(Block { buffer, end: ROOM_BEFORE + n }),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => Err(e),
        };
        let last = block.as_ref().map_or(true, |b| b.end == ROOM_BEFORE);
        if to.send(block).is_err() || last {
            return;
        }
    }
}
