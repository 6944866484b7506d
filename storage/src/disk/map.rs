//! The one place that maps files into memory.

use bytes::Bytes;
use std::fs::File;
use std::io;

/// The whole of `file` as mapped bytes. An empty file gives empty bytes.
///
/// The caller keeps to the contract of [`super::Disk::map`]: the file is never changed or shortened
/// by this store afterwards.
#[allow(unsafe_code)]
pub(super) fn map_file(file: &File) -> io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the map is read-only, and the store maps only files that are written once, synced and
    // renamed into place, then removed but never changed or shortened; so the bytes stay as they are
    // for the life of the map. A foreign process that breaks this is outside of what any map can bear.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}
