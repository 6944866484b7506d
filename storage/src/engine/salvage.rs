//! Opening a store whose log is damaged, on request, at the price of what is behind the damage.

use super::api::{Engine, EngineOptions, OpenMode};
use super::error::{Error, ErrorKind};
use super::open::{LOCK, Loaded, load_manifest};
use super::request::CommitRequest;
use super::shared::Components;
use crate::disk::{Disk, LockHolder};
use crate::log::{Cut, Log, Start};
use crate::time::CommitSeq;
use serde_json::json;
use std::path::{Path, PathBuf};

/// What a salvage gave up, and where it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvaged {
    /// The cut.
    pub cut: Cut,
    /// Copies of what was cut.
    pub copies: Vec<PathBuf>,
    /// The commit that records it.
    pub commit: CommitSeq,
}

impl Engine {
    /// Cuts the log of the store in `dir` at its first damage, keeps a copy of what is cut in a directory
    /// `salvaged-N` of the store, opens the store and records the cut in a commit. Only what no run has is ever cut.
    ///
    /// # Errors
    /// `Invalid` if nothing is damaged where a store is opened from; `Damaged` where no cut makes the store whole:
    /// nothing is changed then. Else as [`Engine::open_with`].
    pub fn salvage(
        dir: &Path,
        options: EngineOptions,
        components: Components,
    ) -> Result<(Engine, Salvaged), Error> {
        let (cut, copies, aside) = cut(dir, &components)?;
        let engine = Engine::open_with(dir, OpenMode::Write, options, components)?;
        let note = json!({
            "kind": "salvage",
            "last_commit_kept": cut.last.0,
            "commits_seen_behind": cut.readable.iter().map(|c| c.0).collect::<Vec<_>>(),
            "segment": cut.damage.segment,
            "byte": cut.damage.offset,
            "damage": cut.damage.what,
            "bytes_cut": cut.bytes,
            "kept_in": aside,
        });
        let info = engine.commit(CommitRequest { note, ..CommitRequest::default() })?;
        Ok((engine, Salvaged { cut, copies, commit: CommitSeq(info.seq) }))
    }
}

/// Finds the cut and makes it; the copies, and the name of their directory.
fn cut(dir: &Path, components: &Components) -> Result<(Cut, Vec<PathBuf>, String), Error> {
    let disk = &*components.disk;
    let log = dir.join("log");
    if !disk.exists(&log)? {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no store in {}", dir.display())));
    }
    let _lock = disk.lock(&dir.join(LOCK), &LockHolder::this_process(&components.command))?;
    let id = Log::store_id_of(disk, &log)?.ok_or_else(|| {
        let what = format!("no segment of the log in {} tells which store it is of", log.display());
        Error::new(ErrorKind::Damaged, what)
            .hint("restore the store from a copy; nothing on disk was changed")
    })?;
    let Loaded { manifest, commits, .. } = load_manifest(disk, dir, components, Some(id))?;
    let start = commits.last().map_or(Start::Oldest, |c| Start::After(c.place));
    let cut = Cut::find(disk, &log, id, start)?.ok_or_else(|| {
        let what = match manifest.flushed {
            0 => format!("the log in {} is not damaged: there is nothing to cut", log.display()),
            n => format!(
                "the log in {} is not damaged behind commit {n}, and runs have all rows up to there: a cut would only lose them",
                log.display()
            ),
        };
        Error::new(ErrorKind::Invalid, what).hint("asof verify lists all damage; the store can be asked and exported")
    })?;
    let aside = free_name(disk, dir)?;
    let copies = cut.make(disk, &log, &dir.join(&aside))?;
    Ok((cut, copies, aside))
}

fn free_name(disk: &dyn Disk, dir: &Path) -> Result<String, Error> {
    let mut n = 1;
    loop {
        let name = format!("salvaged-{n}");
        if !disk.exists(&dir.join(&name))? {
            return Ok(name);
        }
        n += 1;
    }
}
