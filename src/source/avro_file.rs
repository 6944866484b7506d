//! Container files of Avro, block by block.

use super::blocks::Blocks;
use crate::format::avro::container::{Block, Found, Header};
use crate::format::{Decoder, Format, FormatOptions};

/// Records of no bytes that a block may have.
const EMPTY_RECORDS_MAX: u64 = 1_000_000;

/// What reading an open file takes.
pub(super) struct AvroFile {
    header: Header,
    pub decoder: Decoder,
}

impl AvroFile {
    /// Reads the header at the start of the window; how many bytes it took.
    ///
    /// # Errors
    /// In words, if it cannot be read.
    pub fn open(
        blocks: &mut Blocks,
        format: Format,
        options: &FormatOptions,
    ) -> Result<(AvroFile, usize), String> {
        loop {
            match Header::read(blocks.window())? {
                Found::Whole(header, bytes) => {
                    blocks.consume(bytes);
                    let decoder = Decoder::of_file(format, options.clone(), &header.schema)?;
                    return Ok((AvroFile { header, decoder }, bytes));
                }
                Found::CutOff if blocks.at_end => return Err("ends within its header".to_owned()),
                Found::CutOff => blocks.fill().map_err(|e| e.to_string())?,
            }
        }
    }

    /// The next block and the bytes it takes of the window, which it begins; `None` at the end.
    ///
    /// # Errors
    /// In words, if it is damaged or cut off.
    pub fn block(&self, blocks: &mut Blocks) -> Result<Option<(Block, usize)>, String> {
        loop {
            if blocks.window().is_empty() && blocks.at_end {
                return Ok(None);
            }
            match self.header.block(blocks.window())? {
                Found::Whole(block, bytes) => return Ok(Some((block, bytes))),
                Found::CutOff if blocks.at_end => return Err("ends within a block".to_owned()),
                Found::CutOff => blocks.fill().map_err(|e| e.to_string())?,
            }
        }
    }

    /// The places of the records of a block.
    ///
    /// # Errors
    /// In words, if they do not fill it.
    pub fn records(&self, block: &Block) -> Result<Vec<(usize, usize)>, String> {
        let damaged = |e: String| format!("a block is damaged: {e}");
        let mut out = Vec::new();
        let mut at = 0;
        for _ in 0..block.count {
            let bytes = self.decoder.record_bytes(&block.data[at..]).map_err(damaged)?;
            if bytes == 0 && block.count > EMPTY_RECORDS_MAX {
                return Err(damaged("it has more records than its bytes can hold".to_owned()));
            }
            out.push((at, at + bytes));
            at += bytes;
        }
        match at == block.data.len() {
            true => Ok(out),
            false => Err(damaged(format!("{} bytes are left behind its records", block.data.len() - at))),
        }
    }
}

#[cfg(test)]
#[path = "avro_file_tests.rs"]
mod tests;
