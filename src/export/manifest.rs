//! What an export says of itself: a JSON file beside the data, never inside it, so that readers of
//! whole directories find nothing but Parquet.

use super::options::ExportLayout;
use crate::error::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The form of the manifest that this version writes.
pub(crate) const FORM: u32 = 1;

/// Name of the file.
pub(crate) const NAME: &str = "manifest.json";
/// Name of the directory with the data, beside it.
pub(crate) const DATA: &str = "data";

/// The manifest of the export of one table. It holds nothing that differs between two exports of the
/// same commit with the same options, other than the names of the files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Form of the manifest: 1.
    pub asof_export: u32,
    /// The table.
    pub table: String,
    /// What the rows are.
    pub layout: ExportLayout,
    /// The commit whose events the rows come from.
    pub commit: u64,
    /// Its instant, RFC 3339; none in an empty store.
    pub commit_at: Option<String>,
    /// Valid time that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<String>,
    /// System time that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The condition on rows.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Key columns in key order.
    pub key: Vec<String>,
    /// Columns of the files with their types.
    pub columns: Vec<(String, String)>,
    /// Columns that the directories stand for, outermost first.
    pub partition_by: Vec<String>,
    /// Rows in all files.
    pub rows: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// The files.
    pub files: Vec<ExportedFile>,
}

/// One file of an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedFile {
    /// Where it is, from the directory of the table.
    pub path: String,
    /// Its rows.
    pub rows: u64,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Values of the partition columns; `null` is NULL.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub partition: BTreeMap<String, Option<String>>,
}

impl Manifest {
    /// The manifest of the export of a table: `path` is that of the table's directory.
    ///
    /// # Errors
    /// `Failed` if there is none or it cannot be read.
    pub fn read(path: impl AsRef<Path>) -> Result<Manifest> {
        // The directory is a link: what lies beside the data lies where the link leads.
        let file = path.as_ref().join("..").join(NAME);
        let text =
            fs::read(&file).map_err(|e| Error::failed(format!("cannot read {}: {e}", file.display())))?;
        let manifest: Manifest = serde_json::from_slice(&text)
            .map_err(|e| Error::failed(format!("{} is no manifest: {e}", file.display())))?;
        match manifest.asof_export {
            FORM => Ok(manifest),
            form => Err(Error::failed(format!("{} has form {form}, which is newer", file.display()))
                .hint("read it with the version that wrote it")),
        }
    }

    /// Checks that the files of the manifest, and no others, are in the table's directory `path`, byte
    /// by byte.
    ///
    /// # Errors
    /// `Damaged`, naming the first file that differs.
    pub fn verify(&self, path: impl AsRef<Path>) -> Result<()> {
        let dir = path.as_ref();
        let damaged = |path: &Path, what: &str| {
            Error::new(ErrorKind::Damaged, format!("{}: {what}", path.display()))
                .hint("export the table again")
        };
        for file in &self.files {
            let path = dir.join(&file.path);
            let found = digest(&path).map_err(|e| damaged(&path, &format!("cannot be read: {e}")))?;
            if found != (file.bytes, file.sha256.clone()) {
                return Err(damaged(&path, "does not hold what was written"));
            }
        }
        let walk = walkdir::WalkDir::new(dir.join("")).into_iter().filter_map(std::result::Result::ok);
        let there = walk.filter(|e| e.file_type().is_file()).count();
        if there != self.files.len() {
            return Err(damaged(dir, &format!("{there} files are there, and not {}", self.files.len())));
        }
        Ok(())
    }
}

fn digest(path: &Path) -> std::io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let (mut sha256, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 256 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((bytes, asofdb_storage::hex::encode(&sha256.finalize()))),
            n => {
                sha256.update(&buffer[..n]);
                bytes += n as u64;
            }
        }
    }
}
