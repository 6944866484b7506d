//! The file of an index behind the seam for file systems.

use crate::disk::{DiskError, DiskFile};
use redb::{BackendError, StorageBackend};
use std::io;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock};

/// A file that no other process has open, so that locks within it are always free.
#[derive(Debug)]
pub(super) struct SeamFile(RwLock<Box<dyn DiskFile>>);

impl SeamFile {
    pub fn new(file: Box<dyn DiskFile>) -> SeamFile {
        SeamFile(RwLock::new(file))
    }

    fn write<T>(&self, work: impl FnOnce(&mut dyn DiskFile) -> Result<T, DiskError>) -> io::Result<T> {
        work(&mut **self.0.write().unwrap_or_else(PoisonError::into_inner)).map_err(refused)
    }

    fn read<T>(&self, work: impl FnOnce(&dyn DiskFile) -> Result<T, DiskError>) -> io::Result<T> {
        work(&**self.0.read().unwrap_or_else(PoisonError::into_inner)).map_err(refused)
    }
}

/// The number of the system tells a refusal of the disk from a complaint of redb.
fn refused(_: DiskError) -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

impl StorageBackend for SeamFile {
    fn len(&self) -> io::Result<u64> {
        self.read(|f| f.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if offset.saturating_add(out.len() as u64) > StorageBackend::len(self)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        SeamFile::read(self, |f| f.read_at(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.write(|f| f.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.write(|f| f.sync())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        SeamFile::write(self, |f| f.write_at(offset, data))
    }

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn try_lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn unlock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn query_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(false)
    }
}
