//! What it takes to make the rows of a block again, exactly, from columns: the habits of whoever wrote
//! them, their order, and the differences between what the columns give and what was logged.

use super::head::Op;
use super::row::{CellReader, RowError, RowView};
use super::varint::put_varint;
use crate::schema::TableSchema;
use crate::value::{Cell, ColumnType};

/// What the rows of a block have in common and columns do not tell. Any habit is right together with
/// its differences; a fitting one has few.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Habit(u8);

impl Habit {
    /// Full images give NULL columns as NULL and do not leave them out.
    pub const NULLS_FULL: u8 = 1;
    /// So do deletes.
    pub const NULLS_ENDING: u8 = 2;
    /// Deletes and truncates say that they are full.
    pub const ENDING_FULL: u8 = 4;
    /// Numbers in decimal columns have the scale of the column, not the least that does.
    pub const FIXED_SCALE: u8 = 8;
    const KNOWN: u8 = 15;

    #[cfg(test)]
    pub(crate) fn from_bits(bits: u8) -> Habit {
        Habit(bits)
    }

    pub(crate) fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    /// The habit that some rows show, committed under `then`. What cannot be read shows nothing.
    pub(crate) fn of<'r>(rows: impl Iterator<Item = &'r [u8]>, then: &TableSchema) -> Habit {
        let mut seen = [[0u32; 2]; 4];
        for view in rows.filter_map(|row| RowView::parse(row).ok()) {
            let ends = view.head.op.ends_row();
            if ends {
                seen[2][view.head.full as usize] += 1;
            }
            let mut cells = 0;
            for (id, cell) in view.cells().filter_map(Result::ok) {
                cells += 1;
                let ty = then.columns.get(id.0 as usize).map(|c| c.ty);
                match (cell, ty) {
                    (Cell::Null, _) if ends || view.head.full => seen[ends as usize][1] += 1,
                    (Cell::Decimal { scale, unscaled }, Some(ColumnType::Decimal { scale: own, .. })) => {
                        let least = unscaled % 10 != 0 && scale > 0;
                        seen[3][1] += (scale == own && !least) as u32;
                        seen[3][0] += (scale != own) as u32;
                    }
                    _ => {}
                }
            }
            if (ends || view.head.full) && view.head.op != Op::Truncate {
                seen[ends as usize][0] += then.columns.len().saturating_sub(cells) as u32;
            }
        }
        let bits = seen.iter().enumerate().filter(|(_, [without, with])| with > without);
        Habit(bits.fold(0, |habit, (bit, _)| habit | 1 << bit))
    }
}

/// The order of a block's rows: the origins they come from, each with how many rows in a row. Within
/// an origin rows ascend by position and ordinal. Empty = ascending over all origins.
pub(crate) type Shape = Vec<(u32, u32)>;

/// The order of rows with these origins, positions and ordinals; `None` if rows of an origin do not
/// ascend, so that their places do not tell their order.
pub(crate) fn order_of(places: impl Iterator<Item = (u32, u64, u32)>) -> Option<Shape> {
    let mut shape: Shape = Vec::new();
    let mut last: Vec<Option<(u64, u32)>> = Vec::new();
    for (origin, position, ordinal) in places {
        let at = origin as usize;
        if at >= ORIGINS_MAX {
            return None;
        }
        if last.len() <= at {
            last.resize(at + 1, None);
        }
        if last[at].is_some_and(|before| before >= (position, ordinal)) {
            return None;
        }
        last[at] = Some((position, ordinal));
        match shape.last_mut() {
            Some((same, count)) if *same == origin => *count += 1,
            _ => shape.push((origin, 1)),
        }
    }
    let ascends = shape.windows(2).all(|w| w[0].0 < w[1].0);
    Some(if ascends { Vec::new() } else { shape })
}

/// Origins that one block may have.
const ORIGINS_MAX: usize = 1 << 20;

/// How a row differs from what the columns give of it: after `prefix` bytes that are the same and before
/// `suffix` such bytes it has `middle`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Difference {
    row: u32,
    prefix: usize,
    suffix: usize,
    middle: Vec<u8>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recipe {
    pub habit: Habit,
    pub order: Shape,
    differences: Vec<Difference>,
}

impl Recipe {
    pub(crate) fn new(habit: Habit, order: Shape) -> Recipe {
        Recipe { habit, order, differences: Vec::new() }
    }

    /// Notes how `row`, the next with number `number`, differs from what the columns give.
    pub(crate) fn note(&mut self, number: u32, guess: &[u8], row: &[u8]) {
        if guess == row {
            return;
        }
        let same = |(a, b): &(&u8, &u8)| a == b;
        let prefix = guess.iter().zip(row).take_while(same).count();
        let (a, b) = (&guess[prefix..], &row[prefix..]);
        let suffix = a.iter().rev().zip(b.iter().rev()).take_while(same).count();
        let middle = b[..b.len() - suffix].to_vec();
        self.differences.push(Difference { row: number, prefix, suffix, middle });
    }

    /// The rows in their order, out of what the columns give in the order of their places. `None` if
    /// these are other rows than the recipe is for.
    pub(crate) fn rows(&self, guesses: &[&[u8]], origins: &[u32]) -> Option<(Vec<u32>, Vec<u8>)> {
        let (mut ends, mut bytes) = (Vec::with_capacity(guesses.len()), Vec::new());
        let mut differences = self.differences.iter().peekable();
        for (number, at) in self.sequence(origins)?.into_iter().enumerate() {
            let guess = guesses.get(at)?;
            match differences.next_if(|d| d.row as usize == number) {
                Some(Difference { prefix, suffix, middle, .. }) => {
                    bytes.extend_from_slice(guess.get(..*prefix)?);
                    bytes.extend_from_slice(middle);
                    bytes.extend_from_slice(guess.get(guess.len().checked_sub(*suffix)?..)?);
                }
                None => bytes.extend_from_slice(guess),
            }
            ends.push(u32::try_from(bytes.len()).ok()?);
        }
        differences.peek().is_none().then_some((ends, bytes))
    }

    /// Which of the ascending rows comes when.
    fn sequence(&self, origins: &[u32]) -> Option<Vec<usize>> {
        if self.order.is_empty() {
            return Some((0..origins.len()).collect());
        }
        let mut next: std::collections::BTreeMap<u32, usize> = Default::default();
        let mut found = Vec::with_capacity(origins.len());
        for (origin, count) in &self.order {
            let at = next.entry(*origin).or_insert_with(|| origins.partition_point(|o| o < origin));
            for _ in 0..*count {
                (origins.get(*at) == Some(origin)).then(|| found.push(*at))?;
                *at += 1;
            }
        }
        (found.len() == origins.len()).then_some(found)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.habit.0];
        put_varint(&mut out, self.order.len() as u64);
        for (origin, count) in &self.order {
            put_varint(&mut out, *origin as u64);
            put_varint(&mut out, *count as u64);
        }
        put_varint(&mut out, self.differences.len() as u64);
        let mut next = 0;
        for d in &self.differences {
            put_varint(&mut out, (d.row - next) as u64);
            next = d.row + 1;
            put_varint(&mut out, d.prefix as u64);
            put_varint(&mut out, d.suffix as u64);
            put_varint(&mut out, d.middle.len() as u64);
            out.extend_from_slice(&d.middle);
        }
        out
    }

    /// Reads what [`Recipe::encode`] wrote; total on any bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Recipe, RowError> {
        let wrong = |what| RowError { what, at: 0 };
        let (habit, rest) = bytes.split_first().ok_or(wrong("the recipe is empty"))?;
        if habit & !Habit::KNOWN != 0 {
            return Err(wrong("the recipe needs a newer version"));
        }
        let mut r = CellReader::new(rest);
        let mut recipe = Recipe::new(Habit(*habit), Vec::new());
        for _ in 0..r.count()? {
            recipe.order.push((r.narrow()?, r.narrow()?));
        }
        let mut next = 0u32;
        for _ in 0..r.count()? {
            let row = next.checked_add(r.narrow()?).ok_or(wrong("a row number is too large"))?;
            next = row.checked_add(1).ok_or(wrong("a row number is too large"))?;
            let (prefix, suffix) = (r.narrow()? as usize, r.narrow()? as usize);
            recipe.differences.push(Difference { row, prefix, suffix, middle: r.bytes()?.to_vec() });
        }
        if !r.is_at_end() {
            return Err(wrong("there are bytes after the recipe"));
        }
        Ok(recipe)
    }
}

#[cfg(test)]
#[path = "recipe_tests.rs"]
mod tests;
