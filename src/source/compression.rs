//! Compressed files and standard input, known by how they begin.

use super::position::SourceError;
use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// What a frame that carries no content begins with, behind its first byte, which is 0x50 to 0x5f.
const ZSTD_SKIPPED: &[u8] = &[0x2a, 0x4d, 0x18];
/// Endings of the names of compressed files.
const ENDINGS: [&str; 3] = [".gz", ".zst", ".zstd"];
/// The largest window of a zstd frame, as a power of two: 128 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// How much may come out of compressed input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    /// So much always may.
    pub free_bytes: u64,
    /// Past that, so many bytes for each that went in.
    pub ratio: u64,
}

impl Default for Caps {
    fn default() -> Caps {
        Caps { free_bytes: 1 << 30, ratio: 1_000 }
    }
}

/// How input is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    fn of(head: &[u8]) -> Compression {
        match head {
            h if h.starts_with(GZIP) => Compression::Gzip,
            h if h.starts_with(ZSTD) => Compression::Zstd,
            [0x50..=0x5f, rest @ ..] if rest.starts_with(ZSTD_SKIPPED) => Compression::Zstd,
            _ => Compression::None,
        }
    }
}

/// Whether something that begins like this is compressed.
pub(super) fn is_compressed(head: &[u8]) -> bool {
    Compression::of(head) != Compression::None
}

/// The name that a file has without compression.
pub(super) fn uncompressed(name: &str) -> &str {
    ENDINGS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

/// What `input` holds, decompressed if it begins like something compressed.
///
/// # Errors
/// If it cannot be read, or is compressed twice.
pub(super) fn decompressed(
    input: Box<dyn Read + Send>,
    shown: &str,
    caps: Caps,
) -> Result<Box<dyn Read + Send>, SourceError> {
    let failed = |e: io::Error| SourceError::new(shown, e);
    let (head, input) = peeked(input).map_err(failed)?;
    let compression = Compression::of(&head);
    if compression == Compression::None {
        return Ok(input);
    }
    let read = Arc::new(AtomicU64::new(0));
    let counted = BufReader::new(Counted { input, read: read.clone() });
    let decoder: Box<dyn Read + Send> = match compression {
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(counted).map_err(failed)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(failed)?;
            Box::new(decoder)
        }
        Compression::Gzip | Compression::None => Box::new(flate2::bufread::MultiGzDecoder::new(counted)),
    };
    let (head, inside) = peeked(Box::new(Capped { decoder, read, written: 0, caps })).map_err(failed)?;
    if Compression::of(&head) != Compression::None {
        return Err(SourceError::new(shown, "is compressed twice").hint("take the outer compression off"));
    }
    Ok(inside)
}

/// The first bytes of `input`, and all of it.
fn peeked(mut input: Box<dyn Read + Send>) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut head = Vec::new();
    input.by_ref().take(4).read_to_end(&mut head)?;
    Ok((head.clone(), Box::new(Cursor::new(head).chain(input))))
}

/// Counts what is read from it.
struct Counted {
    input: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Fails once far more came out than went in.
struct Capped {
    decoder: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
    written: u64,
    caps: Caps,
}

impl Read for Capped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.decoder.read(buffer).map_err(|e| io::Error::new(e.kind(), reason(&e)))?;
        self.written += n as u64;
        let most = self.read.load(Ordering::Relaxed).saturating_mul(self.caps.ratio);
        if self.written > most.max(self.caps.free_bytes) {
            return Err(io::Error::other(format!(
                "its compressed content has more than {} times its size, which is no data but a bomb; if it \
                 is data, decompress it first",
                self.caps.ratio
            )));
        }
        Ok(n)
    }
}

/// What is wrong with compressed content, for people.
fn reason(e: &io::Error) -> String {
    let text = e.to_string();
    match e.kind() {
        io::ErrorKind::UnexpectedEof => "its compressed content is cut off at its end".into(),
        _ if text.contains("too much memory") => format!(
            "its compressed content needs a window of more than {} MiB; decompress it first",
            (1_u64 << ZSTD_WINDOW_LOG_MAX) >> 20
        ),
        _ => format!("its compressed content is damaged ({text})"),
    }
}

#[cfg(test)]
#[path = "compression_tests.rs"]
mod tests;
