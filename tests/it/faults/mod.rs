//! Hostile input and faults of a process, through the library. Tests are called after their rows in
//! `docs/testing.md`.

mod hostile;
mod names;
mod panics;

use asofdb::{IntakeOptions, IntakeReport, Result, Store};
use std::path::Path;

/// A store in a directory of its own.
pub struct Place {
    pub dir: tempfile::TempDir,
    pub store: Store,
}

impl Place {
    pub fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path().join("s.asof")).unwrap();
        Place { dir, store }
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file and takes it in.
    pub fn take(&self, name: &str, bytes: &[u8], options: &IntakeOptions) -> Result<IntakeReport> {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        self.store.ingest_files(&[path.display().to_string()], options)
    }

    /// Nothing of the store is damaged.
    pub fn assert_sound(&self) {
        assert_eq!(self.store.engine().verify_full().unwrap().damage, Vec::<String>::new());
    }
}

/// Options for a table with the key `id`.
pub fn keyed(table: &str, format: &str) -> IntakeOptions {
    IntakeOptions {
        format: (!format.is_empty()).then(|| format.to_owned()),
        table: Some(table.to_owned()),
        keys: vec!["id".parse().unwrap()],
        ..IntakeOptions::default()
    }
}

/// Files in a directory and below it, without links.
pub fn files_below(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let below = |p: std::path::PathBuf| match p.is_dir() && !p.is_symlink() {
        true => files_below(&p),
        false => vec![p],
    };
    entries.flat_map(below).collect()
}
