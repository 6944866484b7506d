//! From the body of a frame to sections and row blocks. The checksum was right before this is
//! called, yet any bytes are taken: a wrong body is an error, never a panic.

use super::chain::{FrameSecret, Hash};
use super::frame::{BlockForm, BlockProof, Frame, RowBlock, Section, SectionProof};
use super::header::{FrameHead, get_u32};
use super::layout::*;
use crate::id::TableId;
use crate::time::CommitSeq;
use bytes::Bytes;

/// Why the content of a frame cannot be read.
#[derive(Debug)]
pub(super) enum ParseError {
    Damaged(&'static str),
    Newer(String),
}

impl From<&'static str> for ParseError {
    fn from(what: &'static str) -> ParseError {
        ParseError::Damaged(what)
    }
}

/// Reads a whole frame whose checksum is right.
pub(super) fn parse_frame(bytes: &Bytes, sequence: u64) -> Result<Frame, ParseError> {
    let head = FrameHead::decode(bytes).map_err(ParseError::Newer)?;
    let mut body = Cursor { rest: bytes.slice(frame::BODY..) };
    let mut sections = Vec::with_capacity(body.bounded(head.sections, SECTION_HEADER_BYTES)?);
    for _ in 0..head.sections {
        sections.push(parse_section(&mut body, head.sparse)?);
    }
    let mut blocks = Vec::with_capacity(body.bounded(head.blocks, BLOCK_HEADER_BYTES)?);
    for _ in 0..head.blocks {
        blocks.push(parse_block(&mut body, head.sparse)?);
    }
    if !body.rest.is_empty() {
        return Err("there are bytes after the last row block".into());
    }
    Ok(Frame {
        sequence: CommitSeq(sequence),
        instant_us: head.instant_us,
        previous: head.previous,
        head: head.head,
        sections,
        blocks,
        secret: (!head.sparse).then_some(FrameSecret(head.secret)),
    })
}

struct Cursor {
    rest: Bytes,
}

impl Cursor {
    fn take(&mut self, n: usize) -> Result<Bytes, &'static str> {
        if n > self.rest.len() {
            return Err("the content of the frame ends too early");
        }
        Ok(self.rest.split_to(n))
    }

    fn hash(&mut self) -> Result<Hash, &'static str> {
        let bytes = self.take(HASH_BYTES)?;
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(&bytes);
        Ok(hash)
    }

    /// A count of things of at least `each` bytes, so never more than the bytes that are left.
    fn bounded(&self, count: u32, each: usize) -> Result<usize, &'static str> {
        let count = count as usize;
        if count > self.rest.len() / each {
            return Err("a count is larger than the frame");
        }
        Ok(count)
    }
}

fn parse_section(body: &mut Cursor, sparse: bool) -> Result<Section, ParseError> {
    let header = body.take(SECTION_HEADER_BYTES)?;
    let (kind, form, length) = (header[0], header[1], get_u32(&header, 4) as usize);
    if header[2..4] != [0; 2] {
        return Err(ParseError::Newer("a section has flags".into()));
    }
    match (form, sparse) {
        (SECTION_PLAIN, false) => {
            Ok(Section { kind, bytes: Some(body.take(length)?), proof: SectionProof::Secret })
        }
        (SECTION_SALTED, true) => {
            let mut salt = [0; SALT_BYTES];
            salt.copy_from_slice(&body.take(SALT_BYTES)?);
            Ok(Section { kind, bytes: Some(body.take(length)?), proof: SectionProof::Salt(salt) })
        }
        (SECTION_ERASED, true) if length == 0 => {
            Ok(Section { kind, bytes: None, proof: SectionProof::Commitment(body.hash()?) })
        }
        (SECTION_PLAIN | SECTION_SALTED | SECTION_ERASED, _) => {
            Err("a section has a form that does not fit its frame".into())
        }
        _ => Err(ParseError::Newer(format!("a section of form {form}"))),
    }
}

fn parse_block(body: &mut Cursor, sparse: bool) -> Result<RowBlock, ParseError> {
    let header = body.take(BLOCK_HEADER_BYTES)?;
    let form = match (header[0], sparse) {
        (BLOCK_ROWS, false) => BlockForm::Rows,
        (BLOCK_SPARSE, true) => BlockForm::Sparse,
        (BLOCK_DIGESTED, _) => BlockForm::Digested,
        (BLOCK_ROWS | BLOCK_SPARSE, _) => {
            return Err("a row block has a form that does not fit its frame".into());
        }
        (other, _) => return Err(ParseError::Newer(format!("a row block of form {other}"))),
    };
    if header[1..4] != [0; 3] {
        return Err(ParseError::Newer("a row block has flags".into()));
    }
    let field = |i: usize| get_u32(&header, 4 + 4 * i);
    let (rows, kept) = (field(2), field(3));
    let (list_bytes, row_bytes) = (field(4) as usize, field(5) as usize);
    let (kept_rows, proof) = match form {
        BlockForm::Rows if kept != rows => return Err("a full row block lacks rows".into()),
        BlockForm::Rows => (None, BlockProof::Secret),
        BlockForm::Digested if (kept, list_bytes) != (0, 0) => {
            return Err("a digested row block has rows".into());
        }
        BlockForm::Digested => (Some(Vec::new()), BlockProof::Root(body.hash()?)),
        BlockForm::Sparse => {
            let (numbers, proof) = parse_sparse(body, rows, kept)?;
            (Some(numbers), proof)
        }
    };
    let lengths = body.take(list_bytes)?;
    let content = body.take(row_bytes)?;
    let (bytes, recipe) = match form {
        BlockForm::Digested => (Bytes::new(), content),
        _ => (content, Bytes::new()),
    };
    let ends = parse_lengths(&lengths, kept, bytes.len())?;
    Ok(RowBlock {
        table: TableId(field(0)),
        schema_version: field(1),
        form,
        committed_rows: rows,
        kept: kept_rows,
        ends,
        bytes,
        recipe,
        proof,
    })
}

/// The bitmap of kept rows, their salts, and the commitments of the others.
fn parse_sparse(body: &mut Cursor, rows: u32, kept: u32) -> Result<(Vec<u32>, BlockProof), ParseError> {
    let bitmap = body.take((rows as usize).div_ceil(8))?;
    let is_kept = |row: u32| bitmap[row as usize / 8] >> (row % 8) & 1 == 1;
    let set: u64 = bitmap.iter().map(|b| b.count_ones() as u64).sum();
    let padding = bitmap.last().map_or(0, |last| if rows.is_multiple_of(8) { 0 } else { last >> (rows % 8) });
    if set != kept as u64 || padding != 0 {
        return Err("the bitmap of a sparse row block does not fit its counts".into());
    }
    let salts = body.take(kept as usize * SALT_BYTES)?;
    let commitments = body.take((rows - kept) as usize * HASH_BYTES)?;
    let numbers = (0..rows).filter(|row| is_kept(*row)).collect();
    Ok((numbers, BlockProof::Sparse { salts, commitments }))
}

/// The ends of `count` rows from the list of their lengths, which must add up to `row_bytes`.
fn parse_lengths(list: &[u8], count: u32, row_bytes: usize) -> Result<Vec<u32>, &'static str> {
    // Every row has at least one byte of length and one of content.
    if count as usize > list.len().min(row_bytes) {
        return Err("a row block counts more rows than it has room for");
    }
    let mut ends = Vec::with_capacity(count as usize);
    let (mut at, mut end) = (0, 0u64);
    for _ in 0..count {
        let mut length = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = *list.get(at).ok_or("the list of row lengths ends too early")?;
            at += 1;
            length |= ((byte & 0x7f) as u64) << shift;
            if byte < 0x80 {
                break;
            }
            if shift == 28 {
                return Err("a row length is too long");
            }
        }
        end += length;
        if length == 0 {
            return Err("a row is empty");
        }
        ends.push(end as u32);
    }
    // Ends grow, so if the last is right, none was too large for its type.
    if at != list.len() || end != row_bytes as u64 {
        return Err("the row lengths do not add up");
    }
    Ok(ends)
}
