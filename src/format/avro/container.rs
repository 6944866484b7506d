//! Object container files: the schema in the header, then blocks of records.

use super::schema::Schema;
use super::value::Values;
use super::wire::Wire;
use crate::format::fields::Reject;
use crate::format::scratch::ScratchBuffer;
use std::io::Read;
use std::sync::Arc;

/// What a file begins with.
pub const MAGIC: &[u8] = b"Obj\x01";

/// Bytes of a block, packed or not, at most.
const BLOCK_BYTES_MAX: usize = 256 << 20;
/// Bytes of a header, at most.
const HEADER_BYTES_MAX: usize = 64 << 20;
const SYNC_BYTES: usize = 16;

/// How blocks are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    Null,
    Deflate,
    Snappy,
    Zstd,
}

/// What the header of a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The schema as JSON.
    pub schema: String,
    codec: Codec,
    sync: [u8; SYNC_BYTES],
}

/// Records that stand together.
#[derive(Debug)]
pub struct Block {
    /// How many.
    pub count: u64,
    /// One behind the other.
    pub data: Vec<u8>,
}

/// What could be read of bytes to which more may follow.
#[derive(Debug)]
pub enum Found<T> {
    /// A value and the bytes that it took.
    Whole(T, usize),
    /// More bytes are needed.
    CutOff,
}

impl Header {
    /// Reads the header that `bytes` begin with.
    ///
    /// # Errors
    /// In words, if there is none, or the file is packed in a way that is not known.
    pub fn read(bytes: &[u8]) -> Result<Found<Header>, String> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return if MAGIC.starts_with(bytes) {
                Ok(Found::CutOff)
            } else {
                Err("is no container file of Avro".to_owned())
            };
        };
        let mut wire = Wire::new(rest);
        match header(&mut wire) {
            Ok((schema, codec, sync)) => {
                let codec = match codec.as_str() {
                    "" | "null" => Codec::Null,
                    "deflate" => Codec::Deflate,
                    "snappy" => Codec::Snappy,
                    "zstandard" => Codec::Zstd,
                    other => {
                        return Err(format!(
                            "is packed with `{other}`; null, deflate, snappy and zstandard are read"
                        ));
                    }
                };
                Ok(Found::Whole(Header { schema, codec, sync }, MAGIC.len() + wire.at()))
            }
            Err(_) if bytes.len() < HEADER_BYTES_MAX => Ok(Found::CutOff),
            Err(reject) => Err(format!("its header is damaged: {}", reject.reason)),
        }
    }

    /// Reads the block that `bytes` begin with.
    ///
    /// # Errors
    /// In words, if it is damaged.
    pub fn block(&self, bytes: &[u8]) -> Result<Found<Block>, String> {
        let mut wire = Wire::new(bytes);
        let (Ok(count), Ok(size)) = (wire.long(), wire.long()) else {
            return if bytes.len() < 20 { Ok(Found::CutOff) } else { Err("a block is damaged".to_owned()) };
        };
        let (Ok(count), Ok(size)) = (u64::try_from(count), usize::try_from(size)) else {
            return Err("a block is damaged: its length is negative".to_owned());
        };
        if size > BLOCK_BYTES_MAX {
            return Err(format!("a block has {size} bytes, more than the {BLOCK_BYTES_MAX} that are read"));
        }
        let from = wire.at();
        let Some(packed) = bytes.get(from..from + size) else { return Ok(Found::CutOff) };
        let Some(sync) = bytes.get(from + size..from + size + SYNC_BYTES) else { return Ok(Found::CutOff) };
        if sync != self.sync {
            return Err("a block is damaged: the mark behind it is not that of the file".to_owned());
        }
        let data = self.unpacked(packed).map_err(|e| format!("a block is damaged: {e}"))?;
        Ok(Found::Whole(Block { count, data }, from + size + SYNC_BYTES))
    }

    fn unpacked(&self, packed: &[u8]) -> Result<Vec<u8>, String> {
        match self.codec {
            Codec::Null => Ok(packed.to_vec()),
            Codec::Deflate => bounded(flate2::read::DeflateDecoder::new(packed)),
            Codec::Snappy => snappy(packed),
            Codec::Zstd => bounded(zstd::Decoder::new(packed).map_err(|e| e.to_string())?),
        }
    }
}

fn header(wire: &mut Wire<'_>) -> Result<(String, String, [u8; SYNC_BYTES]), Reject> {
    let (mut schema, mut codec) = (None, String::new());
    loop {
        let count = wire.block()?;
        if count == 0 {
            break;
        }
        for _ in 0..count {
            let (key, value) = (wire.text()?, wire.bytes()?);
            let value = String::from_utf8_lossy(value);
            match key {
                "avro.schema" => schema = Some(value.into_owned()),
                "avro.codec" => codec = value.into_owned(),
                _ => {}
            }
        }
    }
    let mut sync = [0; SYNC_BYTES];
    sync.copy_from_slice(wire.take(SYNC_BYTES)?);
    let schema = schema.ok_or_else(|| wire.fault("it has no schema"))?;
    Ok((schema, codec, sync))
}

/// Everything that comes, unless it is too much.
fn bounded(packed: impl Read) -> Result<Vec<u8>, String> {
    let mut data = Vec::new();
    packed.take(BLOCK_BYTES_MAX as u64 + 1).read_to_end(&mut data).map_err(|e| e.to_string())?;
    match data.len() > BLOCK_BYTES_MAX {
        true => Err(format!("it has more than {BLOCK_BYTES_MAX} bytes")),
        false => Ok(data),
    }
}

/// Snappy, and 4 bytes with the checksum of what is packed.
fn snappy(packed: &[u8]) -> Result<Vec<u8>, String> {
    let Some((packed, checksum)) = packed.split_last_chunk::<4>() else {
        return Err("it has no checksum".to_owned());
    };
    let length = snap::raw::decompress_len(packed).map_err(|e| e.to_string())?;
    if length > BLOCK_BYTES_MAX {
        return Err(format!("it has more than {BLOCK_BYTES_MAX} bytes"));
    }
    let data = snap::raw::Decoder::new().decompress_vec(packed).map_err(|e| e.to_string())?;
    let mut crc = flate2::Crc::new();
    crc.update(&data);
    match crc.sum() == u32::from_be_bytes(*checksum) {
        true => Ok(data),
        false => Err("its checksum is another one".to_owned()),
    }
}

/// How many bytes the record takes that `bytes` begin with.
///
/// # Errors
/// If it does not end within them.
pub fn record_bytes(schema: &Arc<Schema>, bytes: &[u8]) -> Result<usize, Reject> {
    let mut buffer = ScratchBuffer::default();
    let mut scratch = buffer.scratch(0);
    let mut values = Values::new(schema, bytes, &mut scratch, false);
    values.skip(schema.root)?;
    Ok(values.wire.at())
}
