//! Opening, creating and removing the file.

use super::backend::SeamFile;
use super::entry::{INDEX_FORMAT_VERSION, META, META_FORMAT, META_SEED, META_STORE};
use super::entry::{seal, unseal};
use super::error::{Fault, IndexError, guard};
use crate::disk::{Disk, DiskError, DiskOp};
use redb::StorageBackend;
use redb::backends::FileBackend;
use redb::{Builder, ConcurrencyMode, Database, ReadOnlyDatabase, ReadTransaction, ReadableDatabase};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// An open index. Reads may go on from any thread while one thread writes.
pub struct Index {
    /// Only `None` while the handle is dropped.
    db: Option<Base>,
    pub(super) path: PathBuf,
    pub(super) in_doubt: AtomicBool,
}

enum Base {
    Writing(Database),
    Reading(ReadOnlyDatabase),
}

/// What to open and how.
#[derive(Clone, Copy, Debug)]
pub struct IndexOpening<'a> {
    /// Identity of the store that the index must belong to.
    pub store_id: &'a str,
    /// Bounds redb's page cache.
    pub cache_bytes: usize,
    /// Whether every page is checked, which takes time in proportion to the size. A file that was
    /// not closed is checked in any case.
    pub check: bool,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index at `path` for reading and writing, or makes an empty one (mode 0600) if there is
    /// no file or an empty one.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] if the file is damaged, is no index, or is that of another store;
    /// [`IndexError::Busy`] if it is open elsewhere; [`IndexError::Disk`] if it cannot be reached.
    pub fn open(disk: &dyn Disk, path: &Path, opening: IndexOpening<'_>) -> Result<Index, IndexError> {
        if !disk.exists(path)? {
            disk.create(path)?;
        }
        // The name may be in no durable directory yet, whoever created it.
        if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            disk.sync_dir(dir)?;
        }
        if !disk.is_system() {
            return Index::open_backend(SeamFile::new(disk.open_write(path)?), path, opening);
        }
        let file = regular_file(path, OpenOptions::new().read(true).write(true))?;
        let backend = guard(|| Ok(FileBackend::new(file)?)).map_err(|f| f.at(path))?;
        Index::open_backend(backend, path, opening)
    }

    /// Opens the index at `path` for reading beside a writer in another process; `None` if there is
    /// none, or none that can be read without a repair.
    ///
    /// # Errors
    /// As for [`Index::open`].
    pub fn open_reading(
        disk: &dyn Disk,
        path: &Path,
        opening: IndexOpening<'_>,
    ) -> Result<Option<Index>, IndexError> {
        // Only the system's locks keep a writer from pages that are being read.
        if !disk.is_system() || disk.len(path)?.unwrap_or(0) == 0 {
            return Ok(None);
        }
        let file = regular_file(path, OpenOptions::new().read(true))?;
        let db = guard(|| {
            let mut builder = Builder::new();
            builder.set_cache_size(opening.cache_bytes).set_concurrency_mode(ConcurrencyMode::SingleWriter);
            Ok(builder.open_read_only_with_backend(FileBackend::new(file)?)?)
        });
        let db = match db {
            Err(Fault::Redb(e)) if matches!(*e, redb::Error::RepairAborted) => return Ok(None),
            other => other.map_err(|f| f.at(path))?,
        };
        let index = Index::of(Base::Reading(db), path);
        index.check_meta(opening.store_id)?;
        Ok(Some(index))
    }

    pub(super) fn open_backend(
        backend: impl StorageBackend,
        path: &Path,
        opening: IndexOpening<'_>,
    ) -> Result<Index, IndexError> {
        let db = guard(|| {
            let empty = backend.len().map_err(redb::DatabaseError::from)? == 0;
            let db = Builder::new()
                .set_cache_size(opening.cache_bytes)
                .set_concurrency_mode(ConcurrencyMode::SingleWriter)
                .set_check_integrity_on_open(opening.check)
                .create_with_backend(backend)?;
            Ok((empty, db))
        });
        let (empty, db) = db.map_err(|f| f.at(path))?;
        let index = Index::of(Base::Writing(db), path);
        if empty {
            index.write_meta(opening.store_id)?;
        }
        index.check_meta(opening.store_id)?;
        Ok(index)
    }

    fn of(db: Base, path: &Path) -> Index {
        Index { db: Some(db), path: path.to_path_buf(), in_doubt: AtomicBool::new(false) }
    }

    fn write_meta(&self, store_id: &str) -> Result<(), IndexError> {
        self.change(|txn| {
            let mut meta = txn.open_table(META)?;
            let mut sealed = Vec::new();
            for (key, value) in
                [(META_STORE, store_id.as_bytes()), (META_FORMAT, &INDEX_FORMAT_VERSION.to_le_bytes())]
            {
                seal(&mut sealed, META_SEED, key, value);
                meta.insert(key, sealed.as_slice())?;
            }
            Ok(())
        })
    }

    fn check_meta(&self, store_id: &str) -> Result<(), IndexError> {
        self.look(|txn| {
            let meta = txn.open_table(META)?;
            let read = |name: &[u8]| match meta.get(name)? {
                Some(sealed) => Ok(unseal(sealed.value(), META_SEED, name)?.to_vec()),
                None => Err(Fault::Damaged("it was never finished".into())),
            };
            if read(META_FORMAT)? != INDEX_FORMAT_VERSION.to_le_bytes() {
                return Err(Fault::Damaged("it was written by another version of asofdb".into()));
            }
            let found = read(META_STORE)?;
            if found != store_id.as_bytes() {
                let found = String::from_utf8_lossy(&found).into_owned();
                return Err(Fault::Damaged(format!("it is of another store ({found}, not {store_id})")));
            }
            Ok(())
        })
    }

    /// Removes the file at `path`; Ok if there is none. Open handles go on with what they have.
    ///
    /// # Errors
    /// [`IndexError::Disk`] if the disk refuses.
    pub fn remove(disk: &dyn Disk, path: &Path) -> Result<(), IndexError> {
        match disk.remove(path) {
            Ok(()) => {}
            Err(e) if e.is_not_found() => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            disk.sync_dir(dir)?;
        }
        Ok(())
    }

    pub(super) fn db(&self) -> Result<&Database, Fault> {
        match &self.db {
            Some(Base::Writing(db)) => Ok(db),
            Some(Base::Reading(_)) => {
                Err(Fault::Caller(IndexError::Refused("it is open for reading".into())))
            }
            None => Err(redb::StorageError::DatabaseClosed.into()),
        }
    }

    fn snapshot(&self) -> Result<ReadTransaction, Fault> {
        match &self.db {
            Some(Base::Writing(db)) => Ok(db.begin_read()?),
            Some(Base::Reading(db)) => Ok(db.begin_read()?),
            None => Err(redb::StorageError::DatabaseClosed.into()),
        }
    }

    /// Runs `work` on a snapshot of the last commit.
    pub(super) fn look<T>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, Fault>,
    ) -> Result<T, IndexError> {
        if self.in_doubt.load(Ordering::Acquire) {
            return Err(IndexError::InDoubt);
        }
        guard(|| work(&self.snapshot()?)).map_err(|f| f.at(&self.path))
    }
}

/// Refuses links, devices and pipes, which could lead out of the store or hang.
fn regular_file(path: &Path, options: &mut OpenOptions) -> Result<File, IndexError> {
    let refused = |e| IndexError::Disk(DiskError::new(DiskOp::Open, path, e));
    if !std::fs::symlink_metadata(path).map_err(refused)?.file_type().is_file() {
        return Err(IndexError::Damaged { what: format!("{} is not a regular file", path.display()) });
    }
    options.custom_flags(libc::O_NOFOLLOW).open(path).map_err(refused)
}

impl Drop for Index {
    fn drop(&mut self) {
        let db = self.db.take();
        // Closing commits; what that runs into, the next open finds.
        let _ = guard(|| {
            drop(db);
            Ok(())
        });
    }
}
