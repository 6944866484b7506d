//! Where exports lie, and how a new one takes the place of the old one in one step:
//!
//! ```text
//! DEST/orders                -> .asof-export/SET/current/orders/data
//! DEST/orders.manifest.json  -> .asof-export/SET/current/orders/manifest.json
//! DEST/.asof-export/SET/current -> 000012
//! DEST/.asof-export/SET/000012/orders/{manifest.json,data/...}
//! ```
//!
//! A set holds the tables that are exported together; renaming its link `current` is the step. What is
//! being written has a name that ends in `.partial`.

use super::manifest::{DATA, NAME};
use super::place::Place;
use crate::error::{Error, ErrorKind, Result};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// The directory with everything that readers do not look into.
const HIDDEN: &str = ".asof-export";
const CURRENT: &str = "current";
const PARTIAL: &str = ".partial";

/// A set of tables in a destination, locked for writing.
#[derive(Debug)]
pub(crate) struct Target {
    place: Place,
    dest: PathBuf,
    set: String,
    /// Generations that are kept beside the current one, for readers that are at them.
    keep: usize,
    _lock: File,
}

impl Target {
    /// Makes what is missing of a destination, locks the set and takes away what interrupted exports
    /// have left.
    pub fn open(place: Place, dest: &Path, set: &str, keep: usize) -> Result<Target> {
        let dir = dest.join(HIDDEN).join(set);
        if fs::symlink_metadata(dest).is_ok() && !dest.is_dir() {
            return Err(Error::usage(format!("{} is there and no directory", dest.display()))
                .hint("name a directory to export to"));
        }
        place.create_dirs(&dir)?;
        let lock = lock(&dir.join("lock"), dest)?;
        let target = Target { place, dest: dest.to_owned(), set: set.to_owned(), keep, _lock: lock };
        target.sweep(target.current(), usize::MAX)?;
        Ok(target)
    }

    fn dir(&self) -> PathBuf {
        self.dest.join(HIDDEN).join(&self.set)
    }

    /// The number of the generation that readers see.
    pub fn current(&self) -> Option<u64> {
        number(&fs::read_link(self.dir().join(CURRENT)).ok()?)
    }

    /// Where readers find the table called `stem` in file names.
    pub fn table(&self, stem: &str) -> PathBuf {
        self.dest.join(stem)
    }

    /// An error if something that is no export has the place of a table.
    pub fn check(&self, stem: &str) -> Result<()> {
        for path in [self.dest.join(stem), self.dest.join(format!("{stem}.{NAME}"))] {
            let ours = fs::read_link(&path).is_ok_and(|link| link.starts_with(HIDDEN));
            if fs::symlink_metadata(&path).is_ok() && !ours {
                return Err(Error::usage(format!("{} is there and no export of asof", path.display()))
                    .hint("export to another directory, or move it away"));
            }
        }
        Ok(())
    }

    /// Begins the next generation.
    pub fn begin(&self) -> Result<Generation<'_>> {
        let last = self.generations()?.into_iter().max().max(self.current()).unwrap_or(0);
        let number = last + 1;
        let dir = self.dir().join(format!("{number:06}{PARTIAL}"));
        self.place.create_dirs(&dir)?;
        Ok(Generation { target: self, number, dir, published: false })
    }

    /// Numbers of the complete generations, ascending.
    fn generations(&self) -> Result<Vec<u64>> {
        Ok(self.place.list(&self.dir())?.iter().filter_map(|p| number(p.file_name()?.as_ref())).collect())
    }

    /// Removes what is being written by nobody, and generations that are neither current nor among the
    /// `keep` before it.
    fn sweep(&self, current: Option<u64>, keep: usize) -> Result<()> {
        for path in self.place.list(&self.dir())? {
            if path.extension().is_some_and(|e| e == &PARTIAL[1..]) {
                self.place.remove_tree(&path)?;
            }
        }
        let all = self.generations()?;
        let older = all.iter().rev().filter(|n| Some(**n) < current).skip(keep);
        let newer = all.iter().filter(|n| Some(**n) > current);
        for n in older.chain(newer) {
            self.place.remove_tree(&self.dir().join(format!("{n:06}")))?;
        }
        Ok(())
    }

    /// Lets the names in the destination lead to the tables of this set. Each link is made once.
    fn link(&self, stems: &[String]) -> Result<()> {
        for stem in stems {
            self.check(stem)?;
            let inside = Path::new(HIDDEN).join(&self.set).join(CURRENT).join(stem);
            for (name, target) in
                [(format!("{stem}.{NAME}"), inside.join(NAME)), (stem.clone(), inside.join(DATA))]
            {
                let link = self.dest.join(name);
                if fs::read_link(&link).ok().as_ref() != Some(&target) {
                    self.place.relink(&target, &link)?;
                }
            }
        }
        self.place.sync_dir(&self.dest)
    }

    /// Removes sets that no name in the destination leads to any more. One that is locked is at work.
    fn forget_orphans(&self) -> Result<()> {
        let links: Vec<PathBuf> =
            self.place.list(&self.dest)?.iter().filter_map(|p| fs::read_link(p).ok()).collect();
        for path in self.place.list(&self.dest.join(HIDDEN))? {
            let inside = Path::new(HIDDEN).join(path.file_name().unwrap_or_default());
            let used = links.iter().any(|l| l.starts_with(&inside));
            if path != self.dir()
                && !used
                && let Ok(_held) = lock(&path.join("lock"), &self.dest)
            {
                self.place.remove_tree(&path)?;
            }
        }
        Ok(())
    }
}

fn number(name: &Path) -> Option<u64> {
    name.to_str().filter(|n| n.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

fn lock(path: &Path, dest: &Path) -> Result<File> {
    let cannot = |e: &std::io::Error| Error::failed(format!("cannot lock {}: {e}", path.display()));
    let file = File::options().create(true).append(true).open(path).map_err(|e| cannot(&e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Error::new(ErrorKind::Busy, format!("another export is writing to {}", dest.display()))
                .hint("wait until it is done, or export to another directory"))
        }
        Err(TryLockError::Error(e)) => Err(cannot(&e)),
    }
}

/// A generation that is being written. Dropped before it is published, it leaves nothing.
#[derive(Debug)]
pub(crate) struct Generation<'t> {
    target: &'t Target,
    pub number: u64,
    dir: PathBuf,
    published: bool,
}

impl Generation<'_> {
    /// Where the table called `stem` in file names is written.
    pub fn table_dir(&self, stem: &str) -> PathBuf {
        self.dir.join(stem)
    }

    pub fn place(&self) -> &Place {
        &self.target.place
    }

    /// Makes everything durable and puts it in the place of the generation before. Once it is there,
    /// only the new links of `stems` and the removal of old generations can still fail.
    pub fn publish(mut self, stems: &[String]) -> Result<()> {
        let Target { place, keep, .. } = self.target;
        let set = self.target.dir();
        place.sync_tree(&self.dir)?;
        let name = format!("{:06}", self.number);
        place.rename(&self.dir, &set.join(&name))?;
        place.sync_dir(&set)?;
        place.relink(Path::new(&name), &set.join(CURRENT))?;
        self.published = true;
        place.sync_dir(&set)?;
        self.target.link(stems)?;
        self.target.sweep(Some(self.number), *keep)?;
        self.target.forget_orphans()
    }
}

impl Drop for Generation<'_> {
    fn drop(&mut self) {
        if !self.published {
            // The next export sweeps what cannot be removed now.
            let _ = self.target.place.remove_tree(&self.dir);
        }
    }
}
