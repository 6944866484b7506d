//! The bytes of a run file, checked block by block before they are used.

use super::error::RunError;
use super::meta::Sidecar;
use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// A run file. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct CheckedFile {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    bytes: Bytes,
    block_bytes: usize,
    digests: Vec<u8>,
    /// 1 for blocks whose digest was found right.
    checked: Vec<AtomicU8>,
}

impl CheckedFile {
    /// Wraps the mapped bytes of a run file; nothing is read yet.
    pub fn new(path: PathBuf, bytes: Bytes, sidecar: &Sidecar) -> Result<CheckedFile, RunError> {
        if bytes.len() as u64 != sidecar.bytes {
            let what = format!("has {} bytes, not {}", bytes.len(), sidecar.bytes);
            return Err(RunError::Damaged { file: path, what });
        }
        let blocks = sidecar.digests.len() / 32;
        let inner = Inner {
            path,
            bytes,
            block_bytes: sidecar.block_bytes as usize,
            digests: sidecar.digests.clone(),
            checked: (0..blocks).map(|_| AtomicU8::new(0)).collect(),
        };
        Ok(CheckedFile { inner: Arc::new(inner) })
    }

    /// A part of the file, after its blocks were checked.
    pub fn slice(&self, start: usize, length: usize) -> Result<Bytes, RunError> {
        let end = start.checked_add(length).filter(|end| *end <= self.inner.bytes.len());
        let end =
            end.ok_or_else(|| self.damaged(format!("ends before byte {}", start.saturating_add(length))))?;
        if length > 0 {
            for block in start / self.inner.block_bytes..=(end - 1) / self.inner.block_bytes {
                self.check(block)?;
            }
        }
        Ok(self.inner.bytes.slice(start..end))
    }

    /// The whole file.
    pub fn all(&self) -> Result<Bytes, RunError> {
        self.slice(0, self.inner.bytes.len())
    }

    /// Checks every block again, whether it was checked before or not.
    pub fn recheck(&self) -> Result<(), RunError> {
        self.inner.checked.iter().for_each(|c| c.store(0, Ordering::Relaxed));
        self.all().map(|_| ())
    }

    pub fn damaged(&self, what: impl Into<String>) -> RunError {
        RunError::Damaged { file: self.inner.path.clone(), what: what.into() }
    }

    fn check(&self, block: usize) -> Result<(), RunError> {
        let inner = &*self.inner;
        if inner.checked[block].load(Ordering::Relaxed) == 1 {
            return Ok(());
        }
        let start = block * inner.block_bytes;
        let end = (start + inner.block_bytes).min(inner.bytes.len());
        if Sha256::digest(&inner.bytes[start..end])[..] != inner.digests[block * 32..block * 32 + 32] {
            return Err(self.damaged(format!("bytes {start} to {end} do not have their digest")));
        }
        inner.checked[block].store(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Length for CheckedFile {
    fn len(&self) -> u64 {
        self.inner.bytes.len() as u64
    }
}

impl ChunkReader for CheckedFile {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        let rest = self.inner.bytes.len().saturating_sub(start as usize);
        Ok(self.get_bytes(start, rest)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.slice(start as usize, length).map_err(|e| ParquetError::External(Box::new(e)))
    }
}
