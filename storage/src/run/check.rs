//! The bytes of a run file, checked block by block before they are used.

use super::error::RunError;
use super::meta::{RunFormat, Sidecar};
use super::meter::note_read;
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// A run file. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct CheckedFile {
    inner: Arc<Inner>,
    bytes: Bytes,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    format: RunFormat,
    block_bytes: usize,
    digests: Vec<u8>,
    /// 1 for blocks whose digest was found right.
    checked: Vec<AtomicU8>,
    /// Whether a block was found damaged: then errors of a decoder come from there.
    damaged: AtomicBool,
}

impl CheckedFile {
    /// Wraps the mapped bytes of a run file; nothing is read yet.
    pub fn new(
        path: PathBuf,
        bytes: Bytes,
        format: RunFormat,
        sidecar: &Sidecar,
    ) -> Result<CheckedFile, RunError> {
        if bytes.len() as u64 != sidecar.bytes {
            let what = format!("has {} bytes, not {}", bytes.len(), sidecar.bytes);
            return Err(RunError::Damaged { file: path, what });
        }
        let blocks = sidecar.digests.len() / format.digest_bytes();
        let inner = Inner {
            path,
            format,
            block_bytes: sidecar.block_bytes as usize,
            digests: sidecar.digests.clone(),
            checked: (0..blocks).map(|_| AtomicU8::new(0)).collect(),
            damaged: AtomicBool::new(false),
        };
        Ok(CheckedFile { inner: Arc::new(inner), bytes })
    }

    /// The same file, mapped once more: what is read through this mapping leaves memory with it.
    pub fn over(&self, bytes: Bytes) -> Result<CheckedFile, RunError> {
        if bytes.len() != self.bytes.len() {
            return Err(self.damaged(format!("has {} bytes now, not {}", bytes.len(), self.bytes.len())));
        }
        Ok(CheckedFile { inner: self.inner.clone(), bytes })
    }

    /// Takes all blocks for checked: this process has just written them.
    pub fn trust(&self) {
        self.inner.checked.iter().for_each(|c| c.store(1, Ordering::Relaxed));
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// A part of the file, after its blocks were checked; all of it counts as read.
    pub fn slice(&self, start: usize, length: usize) -> Result<Bytes, RunError> {
        note_read(length as u64);
        self.checked(start, length)
    }

    /// As [`CheckedFile::slice`], where the caller notes what of it is read.
    pub fn checked(&self, start: usize, length: usize) -> Result<Bytes, RunError> {
        let part = self.unchecked(start, length)?;
        if length > 0 {
            let block_bytes = self.inner.block_bytes;
            (start / block_bytes..=(start + length - 1) / block_bytes).try_for_each(|b| self.check(b))?;
        }
        Ok(part)
    }

    /// A part of the file of which only such bytes may be read that [`CheckedFile::slice`] has given.
    pub fn unchecked(&self, start: usize, length: usize) -> Result<Bytes, RunError> {
        match start.checked_add(length) {
            Some(end) if end <= self.bytes.len() => Ok(self.bytes.slice(start..end)),
            _ => Err(self.damaged(format!("ends before byte {}", start.saturating_add(length)))),
        }
    }

    /// Length of the file.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Checks every block again, whether it was checked before or not.
    pub fn recheck(&self) -> Result<(), RunError> {
        self.inner.checked.iter().for_each(|c| c.store(0, Ordering::Relaxed));
        self.checked(0, self.bytes_len()).map(|_| ())
    }

    /// The error of this file for what a decoder said: that of a damaged block if there was one.
    pub fn decoding(&self, error: &dyn std::error::Error) -> RunError {
        if self.inner.damaged.load(Ordering::Relaxed)
            && let Err(e) = self.recheck()
        {
            return e;
        }
        self.damaged(error.to_string())
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
        let end = (start + inner.block_bytes).min(self.bytes.len());
        let (mut found, length) = (Vec::new(), inner.format.digest_bytes());
        inner.format.put_digest(&mut found, &self.bytes[start..end]);
        if found != inner.digests[block * length..(block + 1) * length] {
            inner.damaged.store(true, Ordering::Relaxed);
            return Err(self.damaged(format!("bytes {start} to {end} do not have their digest")));
        }
        inner.checked[block].store(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Length for CheckedFile {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl ChunkReader for CheckedFile {
    type T = CheckedRead;

    fn get_read(&self, start: u64) -> parquet::errors::Result<CheckedRead> {
        Ok(CheckedRead { file: self.clone(), at: start as usize })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.slice(start as usize, length).map_err(|e| ParquetError::External(Box::new(e)))
    }
}

/// Reads on from one place and checks only the blocks it comes to.
pub(crate) struct CheckedRead {
    file: CheckedFile,
    at: usize,
}

impl Read for CheckedRead {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = out.len().min(self.file.bytes_len().saturating_sub(self.at));
        let part = self.file.slice(self.at, n).map_err(std::io::Error::other)?;
        out[..n].copy_from_slice(&part);
        self.at += n;
        Ok(n)
    }
}
