//! Frames that have lost some of their content and still prove the rest.

use super::build::{finish, put_block_header, put_lengths};
use super::chain::{self, Salts};
use super::frame::{BlockForm, BlockProof, Frame, RowBlock, Section, SectionProof};
use super::header::{FrameHead, StoreId, body_crc};
use super::layout::*;

/// The bytes of `frame` in segment `segment` of the store, without the rows and sections for which
/// `erase_row` and `erase_section` say true. What is erased leaves only its commitment, what stays
/// gets its salt written out, and the secret goes, so nobody can tell from a guess what was there.
/// The head stays the same. Rows are numbered as [`RowBlock::row`] takes them.
///
/// `None` if the frame lacks what it takes, which parsing rules out.
pub fn sparse_frame(
    frame: &Frame,
    store_id: [u8; 16],
    segment: u64,
    mut erase_row: impl FnMut(&RowBlock, usize) -> bool,
    mut erase_section: impl FnMut(&Section) -> bool,
) -> Option<Vec<u8>> {
    let mut out = vec![0; frame::BODY];
    let mut salts = frame.secret.as_ref().map(Salts::sections);
    for (i, section) in frame.sections.iter().enumerate() {
        let salt = salts.as_mut().map(|s| s.get(i as u64));
        put_section(&mut out, section, salt, erase_section(section))?;
    }
    for (i, block) in frame.blocks.iter().enumerate() {
        let salts = frame.secret.as_ref().map(|s| Salts::rows(s, i as u32));
        put_block(&mut out, block, salts, |row| erase_row(block, row))?;
    }
    let fields = FrameHead {
        sparse: true,
        instant_us: frame.instant_us,
        secret: [0; 32],
        previous: frame.previous,
        head: frame.head,
        sections: frame.sections.len() as u32,
        blocks: frame.blocks.len() as u32,
    };
    let body = body_crc(&out[frame::BODY..]);
    finish(&mut out, StoreId::from(store_id), segment, frame.sequence.0, &fields, &body);
    Some(out)
}

/// Appends a block whose rows live elsewhere.
pub(super) fn put_digested(out: &mut Vec<u8>, block: &RowBlock, root: &chain::Hash, recipe: &[u8]) {
    let (table, rows) = (block.table.0, block.committed_rows);
    put_block_header(out, BLOCK_DIGESTED, [table, block.schema_version, rows, 0, 0, recipe.len() as u32]);
    out.extend_from_slice(root);
    out.extend_from_slice(recipe);
}

fn put_section(out: &mut Vec<u8>, section: &Section, salt: Option<chain::Salt>, erase: bool) -> Option<()> {
    let salt = match section.proof {
        SectionProof::Secret => Some(salt?),
        SectionProof::Salt(salt) => Some(salt),
        SectionProof::Commitment(_) => None,
    };
    let header = |out: &mut Vec<u8>, form: u8, length: usize| {
        out.extend_from_slice(&[section.kind, form, 0, 0]);
        out.extend_from_slice(&(length as u32).to_le_bytes());
    };
    match (&section.bytes, salt) {
        (Some(bytes), Some(salt)) if !erase => {
            header(out, SECTION_SALTED, bytes.len());
            out.extend_from_slice(&salt);
            out.extend_from_slice(bytes);
        }
        (Some(bytes), Some(salt)) => {
            header(out, SECTION_ERASED, 0);
            out.extend_from_slice(&chain::commitment(&salt, bytes));
        }
        _ => {
            let SectionProof::Commitment(commitment) = section.proof else { return None };
            header(out, SECTION_ERASED, 0);
            out.extend_from_slice(&commitment);
        }
    }
    Some(())
}

fn put_block(
    out: &mut Vec<u8>,
    block: &RowBlock,
    mut derived: Option<Salts<'_>>,
    mut erase: impl FnMut(usize) -> bool,
) -> Option<()> {
    let rows = block.committed_rows;
    let ids = [block.table.0, block.schema_version];
    if let BlockProof::Root(root) = block.proof {
        put_digested(out, block, &root, &block.recipe);
        return Some(());
    }
    let mut old_salts: &[u8] = &[];
    let mut old_commitments: &[u8] = &[];
    if let BlockProof::Sparse { salts, commitments } = &block.proof {
        (old_salts, old_commitments) = (salts, commitments);
    }
    let (mut old_salts, mut old_commitments) =
        (old_salts.chunks_exact(SALT_BYTES), old_commitments.chunks_exact(HASH_BYTES));
    let mut bitmap = vec![0u8; (rows as usize).div_ceil(8)];
    let (mut salts, mut commitments, mut ends, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut left = 0;
    for row in 0..rows {
        if left >= block.len() || block.committed_number(left) != row {
            commitments.extend_from_slice(old_commitments.next()?);
            continue;
        }
        let salt = match block.form {
            BlockForm::Rows => derived.as_mut()?.get(row as u64),
            _ => old_salts.next()?.try_into().ok()?,
        };
        if erase(left) {
            commitments.extend_from_slice(&chain::commitment(&salt, block.row(left)));
        } else {
            bitmap[row as usize / 8] |= 1 << (row % 8);
            salts.extend_from_slice(&salt);
            bytes.extend_from_slice(block.row(left));
            ends.push(bytes.len() as u32);
        }
        left += 1;
    }
    let header = out.len();
    put_block_header(out, BLOCK_SPARSE, [ids[0], ids[1], rows, ends.len() as u32, 0, bytes.len() as u32]);
    out.extend_from_slice(&bitmap);
    out.extend_from_slice(&salts);
    out.extend_from_slice(&commitments);
    put_lengths(out, &ends, header);
    out.extend_from_slice(&bytes);
    Some(())
}
