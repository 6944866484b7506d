//! A file in memory whose calls can be made to fail.

use redb::{BackendError, StorageBackend};
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug)]
pub(super) struct MemoryFile {
    pub bytes: Arc<Mutex<Vec<u8>>>,
    /// Changing calls until one fails; negative for never.
    pub calls_left: Arc<AtomicI64>,
    /// Whether a call failed.
    pub failed: Arc<AtomicBool>,
}

impl MemoryFile {
    pub fn new(bytes: Vec<u8>) -> MemoryFile {
        MemoryFile {
            bytes: Arc::new(Mutex::new(bytes)),
            calls_left: Arc::new(AtomicI64::new(-1)),
            failed: Arc::new(AtomicBool::new(false)),
        }
    }

    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().expect("no test panics while it holds the bytes")
    }

    fn count(&self) -> io::Result<()> {
        let left = self.calls_left.load(Ordering::SeqCst);
        if left == 0 {
            self.failed.store(true, Ordering::SeqCst);
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        self.calls_left.store((left - 1).max(-1), Ordering::SeqCst);
        Ok(())
    }
}

impl StorageBackend for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes();
        let end = (offset as usize).checked_add(out.len()).filter(|e| *e <= bytes.len());
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(&bytes[offset as usize..end]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.count()?;
        self.bytes().resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.count()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.count()?;
        let mut bytes = self.bytes();
        let end = offset as usize + data.len();
        if bytes.len() < end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes[offset as usize..end].copy_from_slice(data);
        Ok(())
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
