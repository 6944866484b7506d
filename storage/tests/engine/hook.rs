//! A disk that calls back before every operation, so that tests act in the middle of others.

use asofdb_storage::disk::{Disk, DiskError, DiskFile, DiskLock, DiskOp, LockHolder, LockState, SimDisk};
use bytes::Bytes;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Hook = Box<dyn FnMut(DiskOp, &Path) + Send>;

/// A simulated disk with a hook. What the hook does itself calls back no more.
#[derive(Clone)]
pub struct HookDisk {
    pub disk: SimDisk,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl fmt::Debug for HookDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.disk.fmt(f)
    }
}

impl HookDisk {
    pub fn new(disk: &SimDisk) -> HookDisk {
        HookDisk { disk: disk.clone(), hook: Arc::default() }
    }

    pub fn set(&self, hook: impl FnMut(DiskOp, &Path) + Send + 'static) {
        *self.hook.lock().expect("no hook panicked") = Some(Box::new(hook));
    }

    pub fn clear(&self) {
        *self.hook.lock().expect("no hook panicked") = None;
    }

    fn call(&self, op: DiskOp, path: &Path) {
        let hook = self.hook.lock().expect("no hook panicked").take();
        if let Some(mut hook) = hook {
            hook(op, path);
            self.hook.lock().expect("no hook panicked").get_or_insert(hook);
        }
    }
}

impl Disk for HookDisk {
    fn create(&self, path: &Path) -> Result<Box<dyn DiskFile>, DiskError> {
        self.call(DiskOp::Create, path);
        self.disk.create(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn DiskFile>, DiskError> {
        self.call(DiskOp::Open, path);
        self.disk.open(path)
    }

    fn open_write(&self, path: &Path) -> Result<Box<dyn DiskFile>, DiskError> {
        self.call(DiskOp::Open, path);
        self.disk.open_write(path)
    }

    fn map(&self, path: &Path) -> Result<Bytes, DiskError> {
        self.call(DiskOp::Map, path);
        self.disk.map(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.call(DiskOp::Rename, from);
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.call(DiskOp::Remove, path);
        self.disk.remove(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, DiskError> {
        self.call(DiskOp::List, dir);
        self.disk.list(dir)
    }

    fn create_dir(&self, dir: &Path) -> Result<(), DiskError> {
        self.call(DiskOp::CreateDir, dir);
        self.disk.create_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), DiskError> {
        self.call(DiskOp::SyncDir, dir);
        self.disk.sync_dir(dir)
    }

    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        self.call(DiskOp::Stat, path);
        self.disk.len(path)
    }

    fn lock(&self, path: &Path, holder: &LockHolder) -> Result<Box<dyn DiskLock>, DiskError> {
        self.call(DiskOp::Lock, path);
        self.disk.lock(path, holder)
    }

    fn lock_holder(&self, path: &Path) -> Option<LockHolder> {
        self.disk.lock_holder(path)
    }

    fn lock_state(&self, path: &Path) -> LockState {
        self.disk.lock_state(path)
    }
}
