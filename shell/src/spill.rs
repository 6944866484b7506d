//! Where questions spill to: a directory of this process alone, in the state directory of XDG. It is removed when the
//! command ends; what a killed process left is removed by the next one.

use crate::repl::history::state_directory;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How the directories are called, in front of a process id.
const PREFIX: &str = "asof-spill-";
/// Locked by the process that has the directory.
const LOCK: &str = "LOCK";
/// Processes may have had the same id, as in containers.
const NAMES_MAX: u32 = 100;

/// A directory that this process has.
#[derive(Debug)]
struct Spill {
    directory: PathBuf,
    // Closing it gives the lock back.
    _lock: File,
}

static SPILL: Mutex<Option<Spill>> = Mutex::new(None);

/// The directory of this process, made if it is not there yet; `None` where none can be made.
pub fn directory() -> Option<PathBuf> {
    let mut spill = SPILL.lock().unwrap_or_else(PoisonError::into_inner);
    if spill.is_none() {
        let state = state_directory(|name| std::env::var_os(name).map(PathBuf::from));
        let roots = state.map(|s| s.join("spill")).into_iter().chain([std::env::temp_dir()]);
        *spill = roots.into_iter().find_map(|root| Spill::new(&root).ok());
    }
    spill.as_ref().map(|s| s.directory.clone())
}

/// Removes the directory of this process.
pub fn end() {
    *SPILL.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

impl Spill {
    /// Makes a directory in `root`, after those that nobody has any more were removed.
    fn new(root: &Path) -> io::Result<Spill> {
        DirBuilder::new().recursive(true).mode(0o700).create(root)?;
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for n in 0..NAMES_MAX {
            let directory = root.join(format!("{PREFIX}{}-{n}", std::process::id()));
            match make(&directory) {
                Ok(lock) => {
                    let spill = Spill { directory, _lock: lock };
                    spill.remove_abandoned(root)?;
                    return Ok(spill);
                }
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    /// Removes directories of processes of the same user that are gone.
    fn remove_abandoned(&self, root: &Path) -> io::Result<()> {
        let owner = std::fs::metadata(&self.directory)?.uid();
        for entry in std::fs::read_dir(root)?.flatten() {
            let path = entry.path();
            let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
                && path != self.directory
                && std::fs::symlink_metadata(&path).is_ok_and(|m| m.is_dir() && m.uid() == owner);
            // A process that has just made its directory is about to make its lock: it is left alone.
            if ours && take_over(&path).is_some() {
                drop(std::fs::remove_dir_all(&path));
            }
        }
        Ok(())
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next command.
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

/// Makes a directory and takes its lock. Fails if somebody else was faster with either.
fn make(directory: &Path) -> io::Result<File> {
    DirBuilder::new().mode(0o700).create(directory)?;
    let mut options = OpenOptions::new();
    let lock = options.write(true).create_new(true).mode(0o600).open(directory.join(LOCK))?;
    lock.try_lock()?;
    Ok(lock)
}

/// The lock of a directory whose process is gone.
fn take_over(directory: &Path) -> Option<File> {
    let lock = OpenOptions::new().write(true).open(directory.join(LOCK)).ok()?;
    lock.try_lock().ok()?;
    Some(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in ["asof-spill-1-0", "asof-spill-2-0", "asof-spill-3-0", "other"] {
            std::fs::create_dir_all(at(name).join("datafusion-x")).unwrap();
            std::fs::write(at(name).join("datafusion-x/part"), "rows").unwrap();
        }
        for name in ["asof-spill-1-0", "asof-spill-2-0", "other"] {
            std::fs::write(at(name).join(LOCK), "").unwrap();
        }
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join(LOCK), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), at("asof-spill-4-0")).unwrap();
        let alive = File::open(at("asof-spill-2-0").join(LOCK)).unwrap();
        alive.lock().unwrap();

        let spill = Spill::new(root.path()).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&spill.directory), mode(&spill.directory.join(LOCK))), (0o700, 0o600));
        let there = ["asof-spill-1-0", "asof-spill-2-0", "asof-spill-3-0", "asof-spill-4-0", "other"];
        assert_eq!(there.map(|name| at(name).exists()), [false, true, true, true, true]);
        assert!(outside.path().join(LOCK).exists(), "a link is not followed");

        // Two of one process do not meet, and each takes its own away.
        let second = Spill::new(root.path()).unwrap();
        let (one, two) = (spill.directory.clone(), second.directory.clone());
        drop(spill);
        assert_eq!((one.exists(), two.exists()), (false, true));
    }
}
