//! From a change to the cells of a row: names to columns, the key, declared types. Nothing of a
//! table changes here, so that a message that is refused leaves no trace in its schema.

use super::fit::fit;
use super::table::{TableIntake, key_name};
use crate::change::{Change, Column};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;
use asofdb_storage::value::Cell;
use std::ops::Range;

/// Why a message is refused.
#[derive(Debug)]
pub struct Refusal {
    /// What is wrong.
    pub reason: String,
    /// What may help.
    pub hint: Option<String>,
}

impl Refusal {
    /// A refusal without a hint.
    pub fn new(reason: impl Into<String>) -> Refusal {
        Refusal { reason: reason.into(), hint: None }
    }

    /// The same with a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }
}

/// The cells of one change, as ranges of the buffers they were put in.
#[derive(Debug)]
pub struct Prepared {
    /// Index of the table.
    pub table: usize,
    /// Cells of the row, by slot.
    pub cells: Range<usize>,
    /// The key before the change, in key order (rule B8).
    pub previous: Option<Range<usize>>,
    /// The whole old row of a table without a key (rule B15), by slot.
    pub old_row: Option<Range<usize>>,
}

/// Cells by slot. Those of an image stay where they are: a cell is large, and moving one costs more than
/// reading it.
#[derive(Debug, Default)]
pub struct Cells<'a> {
    placed: Vec<Placed>,
    own: Vec<Cell<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    slot: u32,
    /// Place in the image of the change, or in `own` behind [`OWN`].
    at: u32,
}

const OWN: u32 = 1 << 31;

impl<'a> Cells<'a> {
    /// None, with the allocations of `self`.
    pub fn recycled<'b>(mut self) -> Cells<'b> {
        self.placed.clear();
        Cells { placed: self.placed, own: recycle(self.own) }
    }

    fn len(&self) -> usize {
        self.placed.len()
    }

    fn truncate(&mut self, len: usize) {
        self.placed.truncate(len);
    }

    fn push(&mut self, slot: u32, cell: Cell<'a>) {
        self.placed.push(Placed { slot, at: OWN | self.own.len() as u32 });
        self.own.push(cell);
    }

    /// Cells of `change` with their slots.
    pub fn of<'c>(
        &'c self,
        change: &'c Change<'a>,
        range: &Range<usize>,
    ) -> impl ExactSizeIterator<Item = (u32, &'c Cell<'a>)> {
        self.placed[range.clone()].iter().map(|p| {
            let cell = match p.at & OWN {
                0 => &change.image[p.at as usize].cell,
                _ => &self.own[(p.at ^ OWN) as usize],
            };
            (p.slot, cell)
        })
    }

    /// The cell of a slot.
    fn find<'c>(&'c self, change: &'c Change<'a>, range: &Range<usize>, slot: u32) -> Option<&'c Cell<'a>> {
        self.of(change, range).find(|(s, _)| *s == slot).map(|(_, cell)| cell)
    }
}

/// Prepares a change for `table`, the `index`th.
pub fn prepare<'a>(
    table: &mut TableIntake,
    index: usize,
    change: &Change<'a>,
    cells: &mut Cells<'a>,
) -> Result<Prepared, Refusal> {
    let start = cells.len();
    let mut p = Prepared { table: index, cells: start..start, previous: None, old_row: None };
    if change.op == Op::Truncate {
        return Ok(p);
    }
    if change.op != Op::Delete {
        push_image(table, change, cells)?;
    } else if !table.is_keyed() {
        let old = if change.before.is_empty() { change.image } else { change.before };
        p.old_row = Some(old_row(table, old, cells)?);
        return Ok(p);
    }
    if !table.is_keyed() {
        p.cells = start..cells.len();
        if change.op == Op::Update {
            p.old_row = Some(old_row(table, change.before, cells)?);
        }
        return Ok(p);
    }
    push_key(table, change, start, cells)?;
    p.cells = start..cells.len();
    p.previous = previous(table, change, &p.cells, cells)?;
    Ok(p)
}

fn push_image<'a>(
    table: &mut TableIntake,
    change: &Change<'a>,
    cells: &mut Cells<'a>,
) -> Result<(), Refusal> {
    let mut before = None;
    let numbered = change.numbered;
    for (i, c) in change.image.iter().enumerate() {
        let slot = match numbered.numbers.get(i) {
            Some(number) => table.slot_numbered(numbered.dictionary, *number, c.name),
            None => table.slot_behind(before, c.name),
        };
        before = Some(slot);
        let leaves = matches!(c.cell, Cell::Leaves(_));
        if !leaves && table.slots[slot as usize].declared.is_none() {
            cells.placed.push(Placed { slot, at: i as u32 });
            continue;
        }
        // What identifies a row is one value.
        let whole = leaves && (!table.is_keyed() || table.key.contains(&slot));
        let cell = if whole { named(change.fields, c.name).unwrap_or(c.cell) } else { c.cell };
        cells.push(slot, fitted(table, slot, cell)?);
    }
    Ok(())
}

/// A cell as its column has it, if a type is declared.
fn fitted<'a>(table: &TableIntake, slot: u32, cell: Cell<'a>) -> Result<Cell<'a>, Refusal> {
    let s = &table.slots[slot as usize];
    let Some(ty) = s.declared else { return Ok(cell) };
    fit(cell, ty).ok_or_else(|| {
        let mut shown = String::new();
        asofdb_storage::value::write_text(&mut shown, &cell);
        let shown: String = shown.chars().take(60).collect();
        Refusal::new(format!("`{shown}` does not fit column {}, declared as {}", s.name, ty.name()))
            .hint("declare a wider type with --columns, or leave the type out to have it inferred")
    })
}

fn old_row<'a>(
    table: &mut TableIntake,
    old: &[Column<'a>],
    cells: &mut Cells<'a>,
) -> Result<Range<usize>, Refusal> {
    if old.is_empty() {
        return Err(Refusal::new(format!(
            "table {} has no key, and the event does not bring the whole old row",
            table.meta.name
        ))
        .hint("declare a key with --key, or have the source send the old row (REPLICA IDENTITY FULL)"));
    }
    let start = cells.len();
    for c in old {
        let slot = table.slot(c.name);
        cells.push(slot, fitted(table, slot, c.cell)?);
    }
    Ok(start..cells.len())
}

fn is_value(cell: &Cell<'_>) -> bool {
    !matches!(cell, Cell::Unchanged | Cell::Unknown | Cell::Null)
}

fn named<'a>(columns: &[Column<'a>], name: &str) -> Option<Cell<'a>> {
    columns.iter().find(|c| c.name == name).map(|c| c.cell)
}

/// Sees to it that every key column has a value among the cells from `start` on.
fn push_key<'a>(
    table: &TableIntake,
    change: &Change<'a>,
    start: usize,
    cells: &mut Cells<'a>,
) -> Result<(), Refusal> {
    for slot in &table.key {
        let here = cells.find(change, &(start..cells.len()), *slot);
        if here.is_some_and(is_value) {
            continue;
        }
        let here = here.copied();
        let name = &table.slots[*slot as usize].name;
        let single = table.key.len() == 1 && change.key.len() == 1;
        let of_key = change.key.iter().find(|c| key_name(c) == name || single && c.name.is_empty());
        let candidates = [
            here,
            named(change.image, name),
            named(change.fields, name),
            named(change.before, name).filter(|_| change.op == Op::Delete),
            of_key.map(|c| c.cell),
        ];
        match candidates.into_iter().flatten().find(is_value) {
            Some(cell) if here.is_none() => cells.push(*slot, fitted(table, *slot, cell)?),
            _ if candidates.iter().any(Option::is_some) => {
                return Err(Refusal::new(format!("key column {name} is NULL"))
                    .hint("a row without a key cannot be told from others; --key names the key columns"));
            }
            _ => {
                return Err(Refusal::new(format!("key column {name} is missing"))
                    .hint("--key names the columns that identify a row"));
            }
        }
    }
    Ok(())
}

/// The key before the change where it differs from the one after it.
fn previous<'a>(
    table: &TableIntake,
    change: &Change<'a>,
    row: &Range<usize>,
    cells: &mut Cells<'a>,
) -> Result<Option<Range<usize>>, Refusal> {
    let (old, sent) = match &change.previous {
        Some(p) => (p.key, true),
        None if matches!(change.op, Op::Update | Op::Upsert) => (change.before, false),
        None => return Ok(None),
    };
    let start = cells.len();
    for slot in &table.key {
        let name = &table.slots[*slot as usize].name;
        let unnamed = sent && table.key.len() == 1 && old.len() == 1 && old[0].name.is_empty();
        match if unnamed { Some(old[0].cell) } else { named(old, name) }.filter(is_value) {
            Some(cell) => cells.push(*slot, fitted(table, *slot, cell)?),
            // A source may send only those key columns that changed.
            None if sent && !old.is_empty() => {
                let now = cells.find(change, row, *slot).copied();
                cells.push(*slot, now.unwrap_or(Cell::Null));
            }
            None => {
                cells.truncate(start);
                return Ok(None);
            }
        }
    }
    let same = |(slot, old): (u32, &Cell<'a>)| {
        let now = cells.find(change, row, slot);
        now.is_some_and(|now| now == old || key_bytes_of(now) == key_bytes_of(old))
    };
    if cells.of(change, &(start..cells.len())).all(same) {
        cells.truncate(start);
        return Ok(None);
    }
    Ok(Some(start..cells.len()))
}

fn key_bytes_of(cell: &Cell<'_>) -> Vec<u8> {
    asofdb_storage::key::key_bytes([cell])
}
