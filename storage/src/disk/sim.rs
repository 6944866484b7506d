//! A disk in memory that forgets what was not synced. For tests only.
//!
//! Every file has bytes that programs see and bytes that would survive a power cut, with a list of
//! writes between the two; every directory the same for its names. [`SimDisk::crash_image`] gives a
//! disk as a power cut at this moment may leave it: of the unsynced writes some random pages in any
//! order, one of them torn at any byte; of the unsynced names each kept or lost on its own. A failed
//! sync drops the waiting writes without a trace but leaves them visible, as real systems do.
//!
//! Every call counts as one operation, so a test can cut the power or make a call fail at
//! n = 1, 2, 3, … until nothing happens any more.

mod crash;
mod harm;
mod state;

use super::error::{DiskError, DiskOp, poisoned, to_usize};
use super::lock::{LockHolder, LockState, refusal};
use super::{Disk, DiskFile, DiskLock};
use bytes::Bytes;
use state::{FileOp, NameOp, State};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Which call fails, and how.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Number of the operation that fails, counted from 1.
    pub operation: u64,
    /// The error it gives, such as [`ErrorKind::StorageFull`]; [`ErrorKind::Other`] stands for EIO.
    pub kind: ErrorKind,
    /// Whether every call after it fails as well.
    pub forever: bool,
    /// Whether the call does its work before it reports failure.
    pub takes_effect: bool,
}

/// A simulated disk. Clones share the same state.
#[derive(Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// What [`SimDisk::begin`] decided about a call.
struct Ticket {
    fail_after: Option<ErrorKind>,
}

// All files in hexadecimal would drown every message.
impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        write!(f, "SimDisk({} files, {} operations)", state.names.visible.len(), state.operations)
    }
}

impl SimDisk {
    /// An empty disk with an existing root directory.
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// What every operation so far was, in order: for assertions about order and number of syncs.
    pub fn trace(&self) -> Vec<(DiskOp, PathBuf)> {
        self.state().trace.clone()
    }

    /// Makes a later call fail. Replaces an earlier fault.
    pub fn set_fault(&self, fault: Fault) {
        self.state().fault = Some(fault);
    }

    /// Takes the fault back: the disk works again.
    pub fn clear_fault(&self) {
        self.state().fault = None;
    }

    /// How many calls a fault has made fail so far.
    pub fn faults_fired(&self) -> u64 {
        self.state().faults_fired
    }

    /// Cuts the power once `operation` calls are done: every later call fails.
    pub fn cut_power_after(&self, operation: u64) {
        self.state().power_until = Some(operation);
    }

    /// The disk as a power cut at this moment may leave it; equal seeds give equal images. Seed 0
    /// keeps nothing that was not synced, seed 1 everything.
    pub fn crash_image(&self, seed: u64) -> SimDisk {
        SimDisk { state: Arc::new(Mutex::new(crash::image(&self.state(), seed))) }
    }

    /// A disk with the same visible bytes, all durable, without faults and with its count at zero.
    pub fn settled_copy(&self) -> SimDisk {
        SimDisk { state: Arc::new(Mutex::new(crash::settled(&self.state()))) }
    }

    /// Replaces the bytes of a file, durably and without counting: damage done from outside.
    pub fn overwrite(&self, path: &Path, bytes: Vec<u8>) {
        self.state().put_durable(path, bytes);
    }

    /// The visible bytes of a file, without counting.
    pub fn peek(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let id = state.names.visible.get(path)?;
        Some(state.files[id].visible.clone())
    }

    fn begin(&self, op: DiskOp, path: &Path) -> Result<(MutexGuard<'_, State>, Ticket), DiskError> {
        let mut state = self.state();
        let fail = |kind: ErrorKind| DiskError::new(op, path, io::Error::new(kind, "simulated fault"));
        if state.power_until.is_some_and(|n| state.operations >= n) {
            return Err(DiskError::new(op, path, io::Error::other("simulated power cut")));
        }
        state.operations += 1;
        state.trace.push((op, path.to_path_buf()));
        let n = state.operations;
        let hit = state.fault.filter(|f| if f.forever { n >= f.operation } else { n == f.operation });
        let Some(fault) = hit else { return Ok((state, Ticket { fail_after: None })) };
        state.faults_fired += 1;
        if fault.takes_effect {
            return Ok((state, Ticket { fail_after: Some(fault.kind) }));
        }
        if op == DiskOp::Sync {
            state.lose_waiting(path);
        }
        Err(fail(fault.kind))
    }
}

impl Ticket {
    fn end<T>(self, op: DiskOp, path: &Path, value: T) -> Result<T, DiskError> {
        match self.fail_after {
            None => Ok(value),
            Some(kind) => {
                Err(DiskError::new(op, path, io::Error::new(kind, "simulated fault, yet it was done")))
            }
        }
    }
}

fn missing(op: DiskOp, path: &Path) -> DiskError {
    DiskError::new(op, path, ErrorKind::NotFound.into())
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> Result<Box<dyn DiskFile>, DiskError> {
        let op = DiskOp::Create;
        let (mut state, ticket) = self.begin(op, path)?;
        if state.names.visible.contains_key(path) || state.dirs.contains(path) {
            return Err(DiskError::new(op, path, ErrorKind::AlreadyExists.into()));
        }
        if !state.has_parent(path) {
            return Err(missing(op, path));
        }
        let id = state.new_file();
        state.change_names(NameOp::Link { path: path.to_path_buf(), id });
        drop(state);
        ticket.end(op, path, self.handle(path, id, true))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn DiskFile>, DiskError> {
        self.open_as(path, false)
    }

    fn open_write(&self, path: &Path) -> Result<Box<dyn DiskFile>, DiskError> {
        self.open_as(path, true)
    }

    fn map(&self, path: &Path) -> Result<Bytes, DiskError> {
        let (state, ticket) = self.begin(DiskOp::Map, path)?;
        let id = state.names.visible.get(path).ok_or_else(|| missing(DiskOp::Map, path))?;
        let bytes = Bytes::from(state.files[id].visible.clone());
        ticket.end(DiskOp::Map, path, bytes)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let op = DiskOp::Rename;
        let (mut state, ticket) = self.begin(op, from)?;
        let id = *state.names.visible.get(from).ok_or_else(|| missing(op, from))?;
        if !state.has_parent(to) {
            return Err(missing(op, to));
        }
        state.change_names(NameOp::Move { from: from.to_path_buf(), to: to.to_path_buf(), id });
        ticket.end(op, from, ())
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        let (mut state, ticket) = self.begin(DiskOp::Remove, path)?;
        if !state.names.visible.contains_key(path) {
            return Err(missing(DiskOp::Remove, path));
        }
        state.change_names(NameOp::Unlink { path: path.to_path_buf() });
        ticket.end(DiskOp::Remove, path, ())
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, DiskError> {
        let (state, ticket) = self.begin(DiskOp::List, dir)?;
        if !state.is_dir(dir) {
            return Err(missing(DiskOp::List, dir));
        }
        let names = state.names.visible.keys().chain(state.dirs.iter());
        let mut paths: Vec<PathBuf> = names.filter(|p| p.parent() == Some(dir)).cloned().collect();
        paths.sort();
        ticket.end(DiskOp::List, dir, paths)
    }

    fn create_dir(&self, dir: &Path) -> Result<(), DiskError> {
        let (mut state, ticket) = self.begin(DiskOp::CreateDir, dir)?;
        if !state.has_parent(dir) {
            return Err(missing(DiskOp::CreateDir, dir));
        }
        state.create_dir(dir);
        ticket.end(DiskOp::CreateDir, dir, ())
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), DiskError> {
        let (mut state, ticket) = self.begin(DiskOp::SyncDir, dir)?;
        if !state.is_dir(dir) {
            return Err(missing(DiskOp::SyncDir, dir));
        }
        state.sync_dir(dir);
        ticket.end(DiskOp::SyncDir, dir, ())
    }

    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        let (state, ticket) = self.begin(DiskOp::Stat, path)?;
        let len = match state.names.visible.get(path) {
            Some(id) => Some(state.files[id].visible.len() as u64),
            None => state.dirs.contains(path).then_some(0),
        };
        ticket.end(DiskOp::Stat, path, len)
    }

    fn lock(&self, path: &Path, holder: &LockHolder) -> Result<Box<dyn DiskLock>, DiskError> {
        let op = DiskOp::Lock;
        let (mut state, ticket) = self.begin(op, path)?;
        if let Some(other) = state.locks.get(path) {
            return Err(DiskError::new(op, path, refusal(Some(other.clone()))));
        }
        if !state.has_parent(path) {
            return Err(missing(op, path));
        }
        if !state.names.visible.contains_key(path) {
            let id = state.new_file();
            state.change_names(NameOp::Link { path: path.to_path_buf(), id });
        }
        let id = state.names.visible[path];
        state.change_file(id, FileOp::SetLen(0));
        state.change_file(id, FileOp::Write { offset: 0, bytes: holder.to_bytes() });
        state.locks.insert(path.to_path_buf(), holder.clone());
        drop(state);
        ticket.end(
            op,
            path,
            Box::new(SimLock { disk: self.clone(), path: path.to_path_buf() }) as Box<dyn DiskLock>,
        )
    }

    fn lock_holder(&self, path: &Path) -> Option<LockHolder> {
        LockHolder::from_bytes(&self.peek(path)?)
    }

    fn lock_state(&self, path: &Path) -> LockState {
        let held = self.state().locks.get(path).cloned();
        match (held, self.lock_holder(path)) {
            (Some(holder), _) => LockState::Held(Some(holder)),
            (None, Some(holder)) => LockState::Abandoned(holder),
            (None, None) => LockState::Free,
        }
    }
}

impl SimDisk {
    fn open_as(&self, path: &Path, writable: bool) -> Result<Box<dyn DiskFile>, DiskError> {
        let (state, ticket) = self.begin(DiskOp::Open, path)?;
        let id = *state.names.visible.get(path).ok_or_else(|| missing(DiskOp::Open, path))?;
        drop(state);
        ticket.end(DiskOp::Open, path, self.handle(path, id, writable))
    }

    fn handle(&self, path: &Path, id: u64, writable: bool) -> Box<dyn DiskFile> {
        Box::new(SimFile { disk: self.clone(), path: path.to_path_buf(), id, writable, poisoned: false })
    }
}

#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl DiskLock for SimLock {
    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        state.locks.remove(&self.path);
        if let Some(id) = state.names.visible.get(&self.path).copied() {
            state.change_file(id, FileOp::SetLen(0));
        }
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    path: PathBuf,
    id: u64,
    writable: bool,
    poisoned: bool,
}

impl SimFile {
    fn check(&self, op: DiskOp) -> Result<(), DiskError> {
        if self.poisoned {
            return Err(poisoned(op, &self.path));
        }
        if !self.writable {
            return Err(DiskError::new(op, &self.path, ErrorKind::PermissionDenied.into()));
        }
        Ok(())
    }

    fn change(&self, op: DiskOp, change: FileOp) -> Result<(), DiskError> {
        self.check(op)?;
        let (mut state, ticket) = self.disk.begin(op, &self.path)?;
        let (fitting, whole) = state.fitting(self.id, change);
        if state.lost_write != Some(state.operations) {
            state.change_file(self.id, fitting);
        }
        if !whole {
            return Err(DiskError::new(op, &self.path, ErrorKind::StorageFull.into()));
        }
        ticket.end(op, &self.path, ())
    }
}

impl DiskFile for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64, DiskError> {
        let (state, ticket) = self.disk.begin(DiskOp::Stat, &self.path)?;
        ticket.end(DiskOp::Stat, &self.path, state.files[&self.id].visible.len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        let (state, ticket) = self.disk.begin(DiskOp::Read, &self.path)?;
        let start = to_usize(offset, &self.path)?;
        let bytes = &state.files[&self.id].visible;
        let part = start.checked_add(out.len()).and_then(|end| bytes.get(start..end));
        let part =
            part.ok_or_else(|| DiskError::new(DiskOp::Read, &self.path, ErrorKind::UnexpectedEof.into()))?;
        out.copy_from_slice(part);
        ticket.end(DiskOp::Read, &self.path, ())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.change(DiskOp::Write, FileOp::Write { offset, bytes: bytes.to_vec() })
    }

    fn set_len(&mut self, len: u64) -> Result<(), DiskError> {
        self.change(DiskOp::SetLen, FileOp::SetLen(len))
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        self.check(DiskOp::Sync)?;
        let result = self.disk.begin(DiskOp::Sync, &self.path).and_then(|(mut state, ticket)| {
            if !state.lying {
                state.sync_file(self.id);
            }
            ticket.end(DiskOp::Sync, &self.path, ())
        });
        self.poisoned = result.is_err();
        result
    }
}

#[cfg(test)]
mod tests;
