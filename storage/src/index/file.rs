//! Opening, creating and removing the file.

use super::entry::{INDEX_FORMAT_VERSION, KeyHash, META, META_FORMAT, META_SEED, META_STORE, key_hash};
use super::entry::{seal, unseal};
use super::error::{Fault, IndexError, guard};
use crate::disk::{Disk, DiskError, DiskOp, RealDisk};
use redb::backends::FileBackend;
use redb::{Builder, ConcurrencyMode, Database, ReadableDatabase, StorageBackend};
use std::fmt;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// An open index. Reads may go on from any thread while one thread writes.
pub struct Index {
    /// Only `None` while the handle is dropped.
    db: Option<Database>,
    pub(super) path: PathBuf,
    pub(super) in_doubt: AtomicBool,
    pub(super) hash: KeyHash,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index at `path`, or makes an empty one (mode 0600) if there is no file or an empty
    /// one. An existing file is read and checked as a whole, which takes time in proportion to its
    /// size. `cache_bytes` bounds redb's page cache.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] if the file is damaged, is no index, or is that of another store;
    /// [`IndexError::Busy`] if it is open elsewhere; [`IndexError::Disk`] if it cannot be reached.
    pub fn open(path: &Path, store_id: &str, cache_bytes: usize) -> Result<Index, IndexError> {
        Index::open_hashing(path, store_id, cache_bytes, key_hash)
    }

    /// As [`Index::open`], with another hash of keys.
    pub(super) fn open_hashing(
        path: &Path,
        store_id: &str,
        cache_bytes: usize,
        hash: KeyHash,
    ) -> Result<Index, IndexError> {
        if !RealDisk.exists(path)? {
            RealDisk.create(path)?;
        }
        // The name may be in no durable directory yet, whoever created it.
        if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            RealDisk.sync_dir(dir)?;
        }
        let refused = |e| IndexError::Disk(DiskError::new(DiskOp::Open, path, e));
        let kind = std::fs::symlink_metadata(path).map_err(refused)?.file_type();
        if !kind.is_file() {
            return Err(IndexError::Damaged { what: format!("{} is not a regular file", path.display()) });
        }
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path);
        let file = file.map_err(refused)?;
        let backend = guard(|| Ok(FileBackend::new(file)?)).map_err(|f| f.at(path))?;
        Index::open_backend(backend, path, store_id, cache_bytes, hash)
    }

    pub(super) fn open_backend(
        backend: impl StorageBackend,
        path: &Path,
        store_id: &str,
        cache_bytes: usize,
        hash: KeyHash,
    ) -> Result<Index, IndexError> {
        let db = guard(|| {
            let empty = backend.len().map_err(redb::DatabaseError::from)? == 0;
            let db = Builder::new()
                .set_cache_size(cache_bytes)
                .set_concurrency_mode(ConcurrencyMode::SingleWriter)
                // Reads verify no page, and a damaged page may hide a key, which no checksum of a
                // value shows: so also after a clean shutdown.
                .set_check_integrity_on_open(true)
                .create_with_backend(backend)?;
            Ok((empty, db))
        });
        let (empty, db) = db.map_err(|f| f.at(path))?;
        let index = Index { db: Some(db), path: path.to_path_buf(), in_doubt: AtomicBool::new(false), hash };
        if empty {
            index.write_meta(store_id)?;
        }
        index.check_meta(store_id)?;
        Ok(index)
    }

    fn write_meta(&self, store_id: &str) -> Result<(), IndexError> {
        self.change(|txn| {
            let mut meta = txn.open_table(META)?;
            let mut sealed = Vec::new();
            for (key, value) in
                [(META_STORE, store_id.as_bytes()), (META_FORMAT, &INDEX_FORMAT_VERSION.to_le_bytes())]
            {
                seal(&mut sealed, META_SEED, key, value)?;
                meta.insert(key, sealed.as_slice())?;
            }
            Ok(())
        })
    }

    fn check_meta(&self, store_id: &str) -> Result<(), IndexError> {
        self.look(|txn| {
            let meta = txn.open_table(META)?;
            let read = |name: &[u8]| match meta.get(name)? {
                Some(sealed) => match unseal(sealed.value(), META_SEED)? {
                    (key, value) if key == name => Ok(value.to_vec()),
                    _ => Err(Fault::Damaged("its description is mixed up".into())),
                },
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

    /// Removes the file at `path`; Ok if there is none. No handle may be open.
    ///
    /// # Errors
    /// [`IndexError::Disk`] if the disk refuses.
    pub fn remove(path: &Path) -> Result<(), IndexError> {
        match RealDisk.remove(path) {
            Ok(()) => {}
            Err(e) if e.is_not_found() => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            RealDisk.sync_dir(dir)?;
        }
        Ok(())
    }

    /// Length of the file.
    ///
    /// # Errors
    /// [`IndexError::Disk`] if the disk refuses.
    pub fn bytes(&self) -> Result<u64, IndexError> {
        Ok(RealDisk.len(&self.path)?.unwrap_or(0))
    }

    pub(super) fn db(&self) -> Result<&Database, Fault> {
        self.db.as_ref().ok_or_else(|| redb::StorageError::DatabaseClosed.into())
    }

    /// Runs `work` on a snapshot of the last commit.
    pub(super) fn look<T>(
        &self,
        work: impl FnOnce(&redb::ReadTransaction) -> Result<T, Fault>,
    ) -> Result<T, IndexError> {
        if self.in_doubt.load(Ordering::Acquire) {
            return Err(IndexError::InDoubt);
        }
        guard(|| work(&self.db()?.begin_read()?)).map_err(|f| f.at(&self.path))
    }
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
