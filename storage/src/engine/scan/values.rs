//! Values of the writers of images: where they stand, and what leaves of several events make together
//! (rule B5).

use super::gather::{Gather, NULL_SLOT};
use super::loaded::Loaded;
use super::same::same_value;
use crate::id::ColumnId;
use crate::leaves::merge_leaves;
use crate::timeline::{KeyHistory, Writer};
use arrow::array::{Array, ArrayRef, AsArray};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes of made values that are kept for one key.
const MADE_BYTES_MAX: usize = 16 << 20;

/// The values of one key's history.
pub(crate) struct Values<'h, 'a> {
    history: &'h KeyHistory<'a>,
    slots: &'h [Arc<Loaded>],
    made: RefCell<Made>,
}

/// Values of merges, by number of the merge and column.
#[derive(Default)]
struct Made {
    texts: HashMap<(u32, u32), Rc<str>>,
    bytes: usize,
}

impl Made {
    fn keep(&mut self, merge: u32, column: u32, text: &Rc<str>) {
        if self.bytes > MADE_BYTES_MAX {
            *self = Made::default();
        }
        self.bytes += text.len();
        self.texts.insert((merge, column), text.clone());
    }
}

/// The loaded row of an event of a history.
fn place(row: u64) -> (u32, u32) {
    ((row >> 32) as u32, row as u32)
}

impl<'h, 'a> Values<'h, 'a> {
    pub fn new(history: &'h KeyHistory<'a>, slots: &'h [Arc<Loaded>]) -> Values<'h, 'a> {
        Values { history, slots, made: RefCell::default() }
    }

    /// Where the value of a writer stands, for the projected column `at` of `gather`.
    pub fn pick(&self, column: ColumnId, writer: Writer, at: usize, gather: &mut Gather) -> (u32, u32) {
        match writer {
            Writer::Null | Writer::Unknown => (NULL_SLOT, 0),
            Writer::Event(number) => place(self.history.event(number).row),
            Writer::Merge(number) => {
                self.made(column, number).map_or((NULL_SLOT, 0), |text| gather.make(at, &text))
            }
        }
    }

    /// Whether two writers stand for the same value of a column.
    pub fn same(&self, column: u32, a: Writer, b: Writer) -> bool {
        let column = ColumnId(column);
        if matches!(a, Writer::Merge(_)) || matches!(b, Writer::Merge(_)) {
            return self.text(column, a) == self.text(column, b);
        }
        match (self.stored(column, a), self.stored(column, b)) {
            (None, None) => true,
            (Some((x, i)), Some((y, j))) => same_value(x, i, y, j),
            _ => false,
        }
    }

    /// A value as it is stored; `None` for NULL.
    fn stored(&self, column: ColumnId, writer: Writer) -> Option<(&'h ArrayRef, usize)> {
        let Writer::Event(number) = writer else { return None };
        let (slot, row) = place(self.history.event(number).row);
        let array = self.slots[slot as usize].image(column)?;
        array.is_valid(row as usize).then_some((array, row as usize))
    }

    /// The text of a value of a column of texts; `None` for NULL.
    fn text(&self, column: ColumnId, writer: Writer) -> Option<Rc<str>> {
        if let Writer::Merge(number) = writer {
            return self.made(column, number);
        }
        let (array, row) = self.stored(column, writer)?;
        array.as_string_opt::<i32>().map(|a| Rc::from(a.value(row)))
    }

    /// What a merge makes: from what is known below it upwards, so that long chains do not recurse.
    fn made(&self, column: ColumnId, number: u32) -> Option<Rc<str>> {
        let mut open = Vec::new();
        let mut writer = Writer::Merge(number);
        let mut text = loop {
            let Writer::Merge(number) = writer else { break self.text(column, writer) };
            if let Some(text) = self.made.borrow().texts.get(&(number, column.0)) {
                break Some(text.clone());
            }
            let merge = self.history.merge(number);
            open.push((number, merge.event));
            writer = merge.below;
        };
        for (number, event) in open.into_iter().rev() {
            let written = self.text(column, Writer::Event(event))?;
            let merged = text.map_or_else(|| written.clone(), |below| merge_leaves(&below, &written).into());
            self.made.borrow_mut().keep(number, column.0, &merged);
            text = Some(merged);
        }
        text
    }
}
