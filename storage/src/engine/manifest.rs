//! The manifest: which runs hold which part of the log, and the catalog at that point.
//!
//! One JSON document behind a line with its SHA-256, replaced as a whole (write aside, sync, rename,
//! sync the directory). It is derived: without it everything is rebuilt from the log.

use super::catalog::{Catalog, CommitInfo};
use super::error::{Error, ErrorKind};
use crate::disk::Disk;
use crate::log::FramePlace;
use crate::run::RunMeta;
use crate::schema::TableMeta;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;

/// Version of the document; readers refuse higher ones.
pub const MANIFEST_VERSION: u32 = 1;

/// A commit with the place of its frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommitRecord {
    pub info: CommitInfo,
    pub place: FramePlace,
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
    pub commits: Vec<CommitRecord>,
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
            commits: Vec::new(),
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

    /// Reads `dir/manifest`; `None` if there is none or its digest or form is wrong: everything is
    /// then derived from the log.
    ///
    /// # Errors
    /// `Io`; `Damaged` if the document is of a newer version.
    pub fn load(disk: &dyn Disk, dir: &Path) -> Result<Option<Manifest>, Error> {
        let path = dir.join(NAME);
        if !disk.exists(&path)? {
            return Ok(None);
        }
        let bytes = disk.read(&path)?;
        let Some(split) = bytes.iter().position(|b| *b == b'\n') else { return Ok(None) };
        let (line, body) = (&bytes[..split], &bytes[split + 1..]);
        if line != digest_line(body).as_bytes() {
            return Ok(None);
        }
        let Ok(manifest) = serde_json::from_slice::<Manifest>(body) else { return Ok(None) };
        if manifest.version > MANIFEST_VERSION {
            let what = format!("{}: was written by a newer version of asofdb", path.display());
            return Err(Error::new(ErrorKind::Damaged, what));
        }
        Ok(Some(manifest))
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
