//! The loop that all scans share: one key after the other until a batch is full.

use super::gather::Gather;
use super::group::Groups;
use crate::engine::error::Error;
use arrow::array::RecordBatch;

/// A scan that visits keys and gathers rows of them.
pub(crate) trait KeyScan {
    /// Moves to the next key; false at the end.
    fn next_key(&mut self) -> Result<bool, Error>;
    /// Adds the rows of the key.
    fn add_key(&mut self) -> Result<(), Error>;
    /// The rows that were added and not emitted.
    fn gathered(&self) -> &Gather;
    /// What they are gathered from.
    fn groups(&mut self) -> &mut Groups;
    /// Makes a batch of them.
    fn emit(&mut self) -> Result<RecordBatch, Error>;
}

/// The batches of a scan; ends after the first error.
pub(crate) struct Batches<S> {
    scan: S,
    /// Loaded batches when it was last looked whether there are too many.
    slots: usize,
    done: bool,
}

/// Rows that are kept loaded for rows that wait to be gathered.
const WAITING_ROWS_MAX: usize = 1 << 18;
/// Loaded batches, be they ever so small.
const WAITING_SLOTS_MAX: usize = 1024;

impl<S: KeyScan> Batches<S> {
    pub fn new(scan: S) -> Batches<S> {
        Batches { scan, slots: 0, done: false }
    }

    /// Whether many rows are kept loaded, most of which nothing was gathered from.
    fn holds_too_much(&mut self) -> bool {
        let groups = self.scan.groups();
        let slots = groups.slots().len();
        if slots == self.slots {
            return false;
        }
        self.slots = slots;
        slots > WAITING_SLOTS_MAX || groups.waiting_rows() > WAITING_ROWS_MAX
    }

    fn step(&mut self) -> Result<Option<RecordBatch>, Error> {
        while !self.done {
            if !self.scan.next_key()? {
                self.done = true;
                break;
            }
            self.scan.add_key()?;
            if self.scan.gathered().is_full() {
                return self.scan.emit().map(Some);
            }
            if self.holds_too_much() {
                if self.scan.gathered().rows() > 0 {
                    return self.scan.emit().map(Some);
                }
                self.scan.groups().retire();
            }
        }
        if self.scan.gathered().rows() > 0 { self.scan.emit().map(Some) } else { Ok(None) }
    }
}

impl<S: KeyScan> Iterator for Batches<S> {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step().transpose();
        self.done |= matches!(next, Some(Err(_)));
        next
    }
}
