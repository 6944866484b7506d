//! How many bytes of run files this thread has used so far: like a clock, it is read before and after
//! what is to be measured, and whoever reads nothing from it pays an addition for every part of a file.

use arrow::array::{Array, RecordBatch};
use std::cell::Cell;

thread_local! {
    static USED: Cell<Used> = const { Cell::new(Used { read: 0, kept: 0 }) };
}

/// Bytes of run files as they are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Taken from a file.
    pub read: u64,
    /// Of columns that were at hand, decoded before.
    pub kept: u64,
}

impl Used {
    /// What this thread has used until now.
    pub fn so_far() -> Used {
        USED.get()
    }

    /// What was used since `earlier`, by the same thread.
    pub fn since(earlier: Used) -> Used {
        let now = Used::so_far();
        Used { read: now.read.wrapping_sub(earlier.read), kept: now.kept.wrapping_sub(earlier.kept) }
    }
}

/// Notes that bytes of a file were read.
pub(super) fn note_read(bytes: u64) {
    let used = USED.get();
    USED.set(Used { read: used.read.wrapping_add(bytes), ..used });
}

/// Notes that a column was at hand that takes so many bytes in its file.
pub(super) fn note_kept(bytes: u64) {
    let used = USED.get();
    USED.set(Used { kept: used.kept.wrapping_add(bytes), ..used });
}

/// Bytes that the rows of a batch take where nothing is compressed.
pub(crate) fn plain_bytes(batch: &RecordBatch) -> u64 {
    let bytes = |a: &dyn Array| a.to_data().get_slice_memory_size().unwrap_or(0) as u64;
    batch.columns().iter().map(|a| bytes(a.as_ref())).sum()
}
