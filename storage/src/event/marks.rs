//! What a row authors, as bits.

use crate::value::Cell;

/// What the cells of a row author.
#[derive(Default)]
pub(super) struct Marks {
    /// Authored columns 0 to 63.
    pub mask: u64,
    /// Those from 64 on.
    pub rest: Vec<u8>,
    /// Placeholders, and columns written leaf by leaf.
    pub unknown: Vec<u8>,
    /// Some column is written leaf by leaf.
    pub leaves: bool,
    /// A placeholder among the columns that [`Marks::rest`] is about.
    unknown_in_rest: bool,
}

impl Marks {
    /// Of a row without cells.
    pub fn new(full: bool) -> Marks {
        Marks { mask: if full { u64::MAX } else { 0 }, ..Marks::default() }
    }

    /// Takes in the cell of column `at`; columns ascend.
    #[inline]
    pub fn add(&mut self, at: usize, cell: &Cell<'_>, full: bool) {
        if !full && matches!(cell, Cell::Leaves(_)) {
            self.leaves = true;
            set_bit(&mut self.unknown, at);
        }
        match (cell, at) {
            (Cell::Unknown, 0..64) => {
                self.mask &= !(1 << at);
                set_bit(&mut self.unknown, at);
            }
            (Cell::Unknown, _) => {
                set_bit(&mut self.unknown, at);
                self.unknown_in_rest = true;
            }
            (_, 0..64) => self.mask |= 1 << at,
            _ => set_bit(&mut self.rest, at - 64),
        }
    }

    /// The words behind the mask of a full image: those without its placeholders, or none.
    pub fn full_rest(&mut self, mask_words: usize) {
        self.rest.clear();
        if self.unknown_in_rest {
            self.rest.resize((mask_words - 1) * 8, 0xff);
            for (rest, unknown) in self.rest.iter_mut().zip(self.unknown.iter().skip(8)) {
                *rest &= !unknown;
            }
        }
    }
}

/// Reserves one bit per column; words are little-endian.
fn set_bit(words: &mut Vec<u8>, i: usize) {
    if words.len() <= i / 8 {
        words.resize((i / 64 + 1) * 8, 0);
    }
    words[i / 8] |= 1 << (i % 8);
}
