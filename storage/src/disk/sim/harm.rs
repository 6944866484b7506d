//! Disks that lie, and disks that are full.

use super::SimDisk;
use super::state::{FileOp, State};

impl SimDisk {
    /// Has the write with this number report success without being done: a lost write.
    pub fn lose_write(&self, operation: u64) {
        self.state().lost_write = Some(operation);
    }

    /// Whether syncs of files report success without making anything durable.
    pub fn lie_about_syncs(&self, lying: bool) {
        self.state().lying = lying;
    }

    /// Bytes that the visible files may have together; what would make them more is written as far as it
    /// fits and fails with [`std::io::ErrorKind::StorageFull`]. `None` = no bound.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Bytes that the visible files have together.
    pub fn bytes(&self) -> u64 {
        self.state().bytes()
    }
}

impl State {
    fn bytes(&self) -> u64 {
        self.names.visible.values().map(|id| self.files[id].visible.len() as u64).sum()
    }

    /// The part of a change to a file that the disk has room for, and whether that is all of it.
    pub(super) fn fitting(&self, id: u64, op: FileOp) -> (FileOp, bool) {
        let (Some(capacity), FileOp::Write { offset, bytes }) = (self.capacity, &op) else {
            return (op, true);
        };
        let there = self.files[&id].visible.len() as u64;
        let room = (there + capacity.saturating_sub(self.bytes())).saturating_sub(*offset);
        if room >= bytes.len() as u64 {
            return (op, true);
        }
        (FileOp::Write { offset: *offset, bytes: bytes[..room as usize].to_vec() }, false)
    }
}
