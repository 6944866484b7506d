//! A frame as it is read: the content of one commit.

use super::chain::{self, BlockHasher, FrameSecret, Hash, Head, Salt, Salts};
use super::layout::*;
use crate::id::TableId;
use crate::time::CommitSeq;
use bytes::Bytes;

/// One commit.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Number of the commit.
    pub sequence: CommitSeq,
    /// Instant of the commit, microseconds; strictly grows from frame to frame.
    pub instant_us: i64,
    /// Head of the chain before this frame.
    pub previous: Head,
    /// Head of the chain after this frame, as it is written; [`Frame::computed_head`] recomputes it.
    pub head: Head,
    /// Catalog changes, positions, quarantine and whatever else the engine writes.
    pub sections: Vec<Section>,
    /// Events.
    pub blocks: Vec<RowBlock>,
    pub(super) secret: Option<FrameSecret>,
}

/// Opaque bytes of a kind that the engine defines.
#[derive(Clone, Debug)]
pub struct Section {
    /// The engine's number for what the bytes are.
    pub kind: u8,
    /// The bytes; `None` once they are erased.
    pub bytes: Option<Bytes>,
    pub(super) proof: SectionProof,
}

#[derive(Clone, Debug)]
pub(super) enum SectionProof {
    Secret,
    Salt(Salt),
    Commitment(Hash),
}

/// How much of a block's rows is still in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockForm {
    /// All rows.
    Rows,
    /// Some rows were erased.
    Sparse,
    /// All rows live elsewhere; the log keeps the root over their commitments.
    Digested,
}

/// Rows of one table, written under one version of its schema.
#[derive(Clone, Debug)]
pub struct RowBlock {
    /// The table.
    pub table: TableId,
    /// Version of its schema at the commit.
    pub schema_version: u32,
    /// How much is left.
    pub form: BlockForm,
    /// Number of rows that were committed, erased ones included.
    pub committed_rows: u32,
    /// For sparse blocks, which rows are left: their numbers among the committed ones, ascending.
    pub kept: Option<Vec<u32>>,
    /// End of each row that is left within `bytes`.
    pub ends: Vec<u32>,
    /// The rows that are left, one after the other.
    pub bytes: Bytes,
    /// For digested blocks, what it takes to make the rows again from where they live; opaque here.
    pub recipe: Bytes,
    pub(super) proof: BlockProof,
}

#[derive(Clone, Debug)]
pub(super) enum BlockProof {
    Secret,
    /// Salts of the kept rows, commitments of the erased ones.
    Sparse {
        salts: Bytes,
        commitments: Bytes,
    },
    Root(Hash),
}

impl RowBlock {
    /// Number of rows that are left.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no row is left.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Row `i` of those that are left.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }

    /// The rows that are left.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.row(i))
    }

    /// Number of row `i` of those that are left among the committed ones.
    pub fn committed_number(&self, i: usize) -> u32 {
        self.kept.as_ref().map_or(i as u32, |kept| kept[i])
    }

    /// Root over the commitments; `number` is the place of the block in its frame.
    pub(super) fn root(&self, secret: Option<&FrameSecret>, number: u32) -> Option<Hash> {
        match &self.proof {
            BlockProof::Secret => Some(chain::hash_rows(
                secret?,
                number,
                self.table,
                self.schema_version,
                &self.ends,
                &self.bytes,
            )),
            BlockProof::Root(root) => Some(*root),
            BlockProof::Sparse { salts, commitments } => {
                let mut hasher = BlockHasher::new(self.table.0, self.schema_version, self.committed_rows);
                let mut erased = commitments.chunks_exact(HASH_BYTES);
                let mut salts = salts.chunks_exact(SALT_BYTES);
                let mut kept = self.kept.as_deref().unwrap_or_default().iter().enumerate().peekable();
                for row in 0..self.committed_rows {
                    if let Some((i, _)) = kept.next_if(|(_, number)| **number == row) {
                        let salt = salts.next()?.try_into().ok()?;
                        hasher.add(&chain::commitment(&salt, self.row(i)));
                    } else {
                        hasher.add(erased.next()?);
                    }
                }
                Some(hasher.root())
            }
        }
    }
}

impl Section {
    fn commitment(&self, salts: Option<&mut Salts<'_>>, number: u64) -> Option<Hash> {
        match (&self.proof, &self.bytes) {
            (SectionProof::Secret, Some(bytes)) => Some(chain::commitment(&salts?.get(number), bytes)),
            (SectionProof::Salt(salt), Some(bytes)) => Some(chain::commitment(salt, bytes)),
            (SectionProof::Commitment(hash), _) => Some(*hash),
            (_, None) => None,
        }
    }
}

impl Frame {
    /// The first section of this kind that is not erased.
    pub fn section(&self, kind: u8) -> Option<&Bytes> {
        self.sections.iter().find(|s| s.kind == kind).and_then(|s| s.bytes.as_ref())
    }

    /// Number of rows that are left in all blocks.
    pub fn row_count(&self) -> u64 {
        self.blocks.iter().map(|b| b.len() as u64).sum()
    }

    /// Whether these are the rows that block `number` was committed with: whether its root follows from
    /// them. `ends` as in [`RowBlock::ends`]. False for blocks of which rows were erased.
    pub fn proves(&self, number: usize, ends: &[u32], bytes: &[u8]) -> bool {
        let (Some(block), Some(secret)) = (self.blocks.get(number), &self.secret) else { return false };
        let root = |ends, bytes| {
            chain::hash_rows(secret, number as u32, block.table, block.schema_version, ends, bytes)
        };
        match &block.proof {
            BlockProof::Root(known) => *known == root(ends, bytes),
            BlockProof::Secret => (ends, bytes) == (&block.ends[..], &block.bytes[..]),
            BlockProof::Sparse { .. } => false,
        }
    }

    /// The head as it follows from the content. Differs from [`Frame::head`] only if somebody has
    /// changed the file. `None` if the frame lacks what it takes, which parsing rules out.
    pub fn computed_head(&self) -> Option<Head> {
        let mut salts = self.secret.as_ref().map(Salts::sections);
        let sections = self
            .sections
            .iter()
            .enumerate()
            .map(|(i, s)| Some(chain::section_hash(s.kind, &s.commitment(salts.as_mut(), i as u64)?)));
        let sections = sections.collect::<Option<Vec<_>>>()?;
        let blocks = self.blocks.iter().enumerate().map(|(i, b)| b.root(self.secret.as_ref(), i as u32));
        let blocks = blocks.collect::<Option<Vec<_>>>()?;
        Some(chain::frame_head(&self.previous, self.sequence.0, self.instant_us, &sections, &blocks))
    }
}
