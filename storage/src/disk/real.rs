//! The file system of the operating system.

use super::error::{DiskError, DiskOp, poisoned};
use super::lock::{LockHolder, LockState, refusal};
use super::{Disk, DiskFile, DiskLock};
use bytes::Bytes;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;
/// A lock file is one line; longer ones are not ours.
const LOCK_BYTES_MAX: usize = 64 << 10;

/// Longer than [`Disk::lock_state`] has a lock.
const LOOK_TIME: std::time::Duration = std::time::Duration::from_millis(20);

/// The real file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

trait At<T> {
    fn at(self, op: DiskOp, path: &Path) -> Result<T, DiskError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, op: DiskOp, path: &Path) -> Result<T, DiskError> {
        self.map_err(|e| DiskError::new(op, path, e))
    }
}

/// Refuses links, devices and pipes, which could lead out of the store or hang.
fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if !kind.is_file() {
        let what = if kind.is_symlink() { "a symbolic link" } else { "not a regular file" };
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("it is {what}; the store follows none")));
    }
    options.custom_flags(libc::O_NOFOLLOW).open(path)
}

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> Result<Box<dyn DiskFile>, DiskError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(path)
            .at(DiskOp::Create, path)?;
        Ok(RealFile::boxed(path, file))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn DiskFile>, DiskError> {
        let file = open_regular(path, OpenOptions::new().read(true)).at(DiskOp::Open, path)?;
        Ok(RealFile::boxed(path, file))
    }

    fn open_write(&self, path: &Path) -> Result<Box<dyn DiskFile>, DiskError> {
        let file = open_regular(path, OpenOptions::new().read(true).write(true)).at(DiskOp::Open, path)?;
        Ok(RealFile::boxed(path, file))
    }

    fn map(&self, path: &Path) -> Result<Bytes, DiskError> {
        let file = open_regular(path, OpenOptions::new().read(true)).at(DiskOp::Open, path)?;
        super::map::map_file(&file).at(DiskOp::Map, path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        fs::rename(from, to).at(DiskOp::Rename, from)
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        fs::remove_file(path).at(DiskOp::Remove, path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, DiskError> {
        let entries = fs::read_dir(dir).at(DiskOp::List, dir)?;
        let mut paths = entries
            .map(|entry| entry.map(|e| e.path()))
            .collect::<io::Result<Vec<_>>>()
            .at(DiskOp::List, dir)?;
        paths.sort();
        Ok(paths)
    }

    fn create_dir(&self, dir: &Path) -> Result<(), DiskError> {
        match DirBuilder::new().mode(DIR_MODE).create(dir) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
            other => other.at(DiskOp::CreateDir, dir),
        }
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), DiskError> {
        File::open(dir).and_then(|d| d.sync_all()).at(DiskOp::SyncDir, dir)
    }

    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        match fs::symlink_metadata(path) {
            Ok(meta) => Ok(Some(meta.len())),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(DiskError::new(DiskOp::Stat, path, e)),
        }
    }

    fn is_system(&self) -> bool {
        true
    }

    fn lock(&self, path: &Path, holder: &LockHolder) -> Result<Box<dyn DiskLock>, DiskError> {
        let refused = || DiskError::new(DiskOp::Lock, path, refusal(self.lock_holder(path)));
        let directory = lock_directory(path).at(DiskOp::Lock, path)?.ok_or_else(refused)?;
        let file = open_lock_file(path).at(DiskOp::Lock, path)?;
        // Somebody who only looks has it for a moment.
        let locked = file.try_lock().or_else(|_| {
            std::thread::sleep(LOOK_TIME);
            file.try_lock()
        });
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(refused()),
            Err(TryLockError::Error(e)) => return Err(DiskError::new(DiskOp::Lock, path, e)),
        }
        still_there(&file, path).at(DiskOp::Lock, path)?;
        let line = holder.to_bytes();
        file.set_len(0).and_then(|()| file.write_all_at(&line, 0)).at(DiskOp::Lock, path)?;
        Ok(Box::new(RealLock { path: path.to_path_buf(), file, _directory: directory }))
    }

    fn lock_holder(&self, path: &Path) -> Option<LockHolder> {
        let file = open_regular(path, OpenOptions::new().read(true)).ok()?;
        let len = usize::try_from(file.metadata().ok()?.len()).ok().filter(|n| *n <= LOCK_BYTES_MAX)?;
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, 0).ok()?;
        LockHolder::from_bytes(&bytes)
    }

    fn lock_state(&self, path: &Path) -> LockState {
        let Ok(file) = open_regular(path, OpenOptions::new().read(true)) else { return LockState::Free };
        let holder = self.lock_holder(path);
        match (file.try_lock_shared(), holder) {
            (Err(TryLockError::WouldBlock), holder) => LockState::Held(holder),
            (_, Some(holder)) => LockState::Abandoned(holder),
            (_, None) => LockState::Free,
        }
    }
}

/// Locks the directory too, which still stands where somebody removes the lock file of a process that
/// lives; `None` if another has it.
fn lock_directory(path: &Path) -> io::Result<Option<File>> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = File::open(parent)?;
    match directory.try_lock() {
        Ok(()) => Ok(Some(directory)),
        Err(TryLockError::WouldBlock) => Ok(None),
        // Not every file system locks directories; the lock file is what counts.
        Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => Ok(Some(directory)),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

fn open_lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match options.clone().create_new(true).mode(FILE_MODE).open(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => open_regular(path, &mut options),
        other => other,
    }
}

/// A lock on a file that somebody has removed or replaced protects nothing.
fn still_there(file: &File, path: &Path) -> io::Result<()> {
    let (held, named) = (file.metadata()?, fs::symlink_metadata(path)?);
    if (held.dev(), held.ino()) != (named.dev(), named.ino()) {
        return Err(io::Error::other("the lock file was replaced while it was locked; try again"));
    }
    Ok(())
}

#[derive(Debug)]
struct RealLock {
    path: PathBuf,
    // Closing the files gives the lock back.
    file: File,
    _directory: File,
}

impl Drop for RealLock {
    fn drop(&mut self) {
        // An empty file says that the holder left in order; if that fails, it says that it did not.
        let _ = self.file.set_len(0);
    }
}

impl DiskLock for RealLock {
    fn path(&self) -> &Path {
        &self.path
    }
}

#[derive(Debug)]
struct RealFile {
    path: PathBuf,
    file: File,
    poisoned: bool,
}

impl RealFile {
    fn boxed(path: &Path, file: File) -> Box<dyn DiskFile> {
        Box::new(RealFile { path: path.to_path_buf(), file, poisoned: false })
    }

    fn check(&self, op: DiskOp) -> Result<(), DiskError> {
        if self.poisoned { Err(poisoned(op, &self.path)) } else { Ok(()) }
    }
}

impl DiskFile for RealFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64, DiskError> {
        Ok(self.file.metadata().at(DiskOp::Stat, &self.path)?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        self.file.read_exact_at(out, offset).at(DiskOp::Read, &self.path)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.check(DiskOp::Write)?;
        self.file.write_all_at(bytes, offset).at(DiskOp::Write, &self.path)
    }

    fn set_len(&mut self, len: u64) -> Result<(), DiskError> {
        self.check(DiskOp::SetLen)?;
        self.file.set_len(len).at(DiskOp::SetLen, &self.path)
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        self.check(DiskOp::Sync)?;
        let done = self.file.sync_data();
        self.poisoned = done.is_err();
        done.at(DiskOp::Sync, &self.path)
    }
}
