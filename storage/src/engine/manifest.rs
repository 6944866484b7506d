//! The manifest: which runs hold which part of the log, and the catalog at that point.
//!
//! One JSON document behind a line with its SHA-256, replaced as a whole (write aside, sync, rename,
//! sync the directory). It is derived: without it everything is rebuilt from the log. Commits stand in
//! a file of their own ([`super::commits`]); of it the manifest says what counts.

use super::catalog::Catalog;
use super::commits::{CommitRecord, CommitsPart, HINT};
use super::error::{Error, ErrorKind};
use crate::disk::Disk;
use crate::run::RunMeta;
use crate::schema::TableMeta;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;

/// Version of the document that is written; higher ones are refused. In version 3 runs have a form.
pub const MANIFEST_VERSION: u32 = 3;
/// Lower versions are as good as no manifest.
const MANIFEST_VERSION_MIN: u32 = 2;
/// How often reading starts anew because a writer replaced the list of commits meanwhile.
const READ_ATTEMPTS_MAX: usize = 10;

/// What there is instead of a document.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// A file that was read.
pub(crate) enum Stored {
    Missing,
    /// Why nothing can be taken from it.
    Unusable(String),
    Known(Box<Manifest>),
}

/// The document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub version: u32,
    /// Identity of the store, 32 hexadecimal digits; stands in every log segment too.
    pub store_id: String,
    /// Every event committed at or before this commit stands in a run.
    pub flushed: u64,
    /// Number for the next run file.
    pub next_run: u64,
    pub runs: Vec<RunMeta>,
    pub tables: Vec<TableMeta>,
    pub streams: Vec<super::Stream>,
    pub origins: Vec<super::Origin>,
    pub sources: Vec<super::SourceInfo>,
    pub positions: std::collections::BTreeMap<String, serde_json::Value>,
    /// Where the commits up to `flushed` stand.
    pub commits: CommitsPart,
}

impl Manifest {
    pub fn empty(store_id: String) -> Manifest {
        Manifest {
            version: MANIFEST_VERSION,
            store_id,
            flushed: 0,
            next_run: 1,
            runs: Vec::new(),
            tables: Vec::new(),
            streams: Vec::new(),
            origins: Vec::new(),
            sources: vec![super::SourceInfo::default()],
            positions: Default::default(),
            commits: CommitsPart::default(),
        }
    }

    pub fn catalog(&self) -> Catalog {
        Catalog {
            tables: self.tables.iter().map(|t| (t.id, Arc::new(t.clone()))).collect(),
            streams: self.streams.clone(),
            origins: self.origins.clone(),
            sources: self.sources.clone(),
            positions: self.positions.clone(),
        }
    }

    pub fn set_catalog(&mut self, catalog: &Catalog) {
        self.tables = catalog.tables.values().map(|t| (**t).clone()).collect();
        self.streams = catalog.streams.clone();
        self.origins = catalog.origins.clone();
        self.sources = catalog.sources.clone();
        self.positions = catalog.positions.clone();
    }

    /// Reads `dir/manifest`.
    ///
    /// # Errors
    /// `Io`; `Damaged` if the document is of a newer version.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Stored, Error> {
        let path = dir.join(NAME);
        if !disk.exists(&path)? {
            return Ok(Stored::Missing);
        }
        let bytes = disk.read(&path)?;
        let unusable = |what: &str| Ok(Stored::Unusable(format!("{}: {what}", path.display())));
        let Some(split) = bytes.iter().position(|b| *b == b'\n') else {
            return unusable("is no manifest");
        };
        let (line, body) = (&bytes[..split], &bytes[split + 1..]);
        if line != digest_line(body).as_bytes() {
            return unusable("its digest is wrong");
        }
        match serde_json::from_slice::<Version>(body) {
            Ok(Version { version: MANIFEST_VERSION_MIN..=MANIFEST_VERSION }) => {}
            Ok(Version { version }) if version > MANIFEST_VERSION => {
                let what = format!("{}: was written by a newer version of asofdb", path.display());
                return Err(Error::new(ErrorKind::Damaged, what));
            }
            _ => return unusable("was written by an older version of asofdb"),
        }
        match serde_json::from_slice(body) {
            // It is written back as of this version.
            Ok(manifest) => Ok(Stored::Known(Box::new(Manifest { version: MANIFEST_VERSION, ..manifest }))),
            Err(e) => unusable(&e.to_string()),
        }
    }

    /// Reads `dir/manifest`; `None` if there is none or nothing can be taken from it: everything is then
    /// derived from the log.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn load(disk: &dyn Disk, dir: &Path) -> Result<Option<Manifest>, Error> {
        match Manifest::read(disk, dir)? {
            Stored::Known(manifest) => Ok(Some(*manifest)),
            Stored::Missing | Stored::Unusable(_) => Ok(None),
        }
    }

    /// The commits that a manifest counts on, or why its list of them is not right. A writer in another
    /// process removes a list once a manifest without it is in place: then that one is read, and `self`
    /// becomes it.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn read_commits(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
    ) -> Result<Result<Vec<CommitRecord>, Error>, Error> {
        let mut attempts = 1;
        loop {
            let problem = match self.commits.read(disk, dir, &self.store_id) {
                Ok(records) if records.len() as u64 == self.flushed => return Ok(Ok(records)),
                Ok(records) => {
                    let what = format!("the manifest has {} of {} commits", records.len(), self.flushed);
                    Error::new(ErrorKind::Damaged, what).hint(HINT)
                }
                Err(e) => e,
            };
            match Manifest::load(disk, dir)? {
                Some(now) if now.commits != self.commits && attempts < READ_ATTEMPTS_MAX => *self = now,
                _ if problem.kind == ErrorKind::Damaged => return Ok(Err(problem)),
                _ => return Err(problem),
            }
            attempts += 1;
        }
    }

    /// The commits that the manifest on disk counts on, or what is wrong with it, as text for people.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn check(disk: &dyn Disk, dir: &Path) -> Result<Result<Vec<CommitRecord>, String>, Error> {
        let told = |what: String| Ok(Err(format!("{what} ({HINT})")));
        match Manifest::read(disk, dir)? {
            Stored::Missing => Ok(Ok(Vec::new())),
            Stored::Unusable(what) => told(what),
            Stored::Known(mut manifest) => match manifest.read_commits(disk, dir)? {
                Ok(commits) => Ok(Ok(commits)),
                Err(e) => told(e.message),
            },
        }
    }

    /// Replaces `dir/manifest`.
    pub fn store(&self, disk: &dyn Disk, dir: &Path) -> Result<(), Error> {
        let body = serde_json::to_vec(self)
            .map_err(|e| Error::new(ErrorKind::Invalid, format!("the manifest cannot be written: {e}")))?;
        let mut bytes = digest_line(&body).into_bytes();
        bytes.push(b'\n');
        bytes.extend_from_slice(&body);
        let (temporary, path) = (dir.join(TEMPORARY), dir.join(NAME));
        if disk.exists(&temporary)? {
            disk.remove(&temporary)?;
        }
        let mut file = disk.create(&temporary)?;
        file.write_at(0, &bytes)?;
        file.sync()?;
        drop(file);
        disk.rename(&temporary, &path)?;
        disk.sync_dir(dir)?;
        Ok(())
    }
}

const NAME: &str = "manifest";
const TEMPORARY: &str = "manifest.tmp";

fn digest_line(body: &[u8]) -> String {
    format!("asofdb manifest sha256 {}", crate::hex::encode(&Sha256::digest(body)))
}
