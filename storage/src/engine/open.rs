//! Opening a store: lock, manifest, runs, then the log from where the runs end.

use super::api::{EngineOptions, OpenMode};
use super::commits::{CommitRecord, CommitsFiles, file_number, other_lists};
use super::error::{Error, ErrorKind};
use super::keyed::Keyed;
use super::manifest::Manifest;
use super::replay::{ONLY_COPY, take_head};
use super::runs::RunSource;
use super::scan;
use super::scan::StoredTruncate;
use super::shared::{Components, Shared, Signal, Writer, locked};
use super::view::{Ranks, View};
use crate::disk::{Disk, DiskError, LockHolder};
use crate::event::Op;
use crate::id::TableId;
use crate::log::{Log, LogError, LogSettings, Segments, Start};
use crate::run::{ColumnCache, RunReader};
use crate::time::CommitSeq;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};

impl From<DiskError> for Error {
    fn from(e: DiskError) -> Error {
        let kind = if e.is_locked() { ErrorKind::Busy } else { ErrorKind::Io };
        Error::new(kind, e.to_string())
    }
}

impl From<LogError> for Error {
    fn from(e: LogError) -> Error {
        let kind = match &e {
            LogError::Disk(_) | LogError::InDoubt => ErrorKind::Io,
            LogError::ReadOnly | LogError::Refused(_) => ErrorKind::Invalid,
            _ => ErrorKind::Damaged,
        };
        let is_cut = matches!(e, LogError::Damaged(_) | LogError::Missing { .. });
        let error = Error::new(kind, e.to_string());
        if is_cut { error.hint(SALVAGE) } else { error }
    }
}

/// What is left to do where there is no copy of a damaged log.
const SALVAGE: &str = "without a copy, 'asof rebuild --salvage' gives up what is behind the damage, keeps it aside, and \
                       says what is lost";

/// Name of the lock file.
pub(super) const LOCK: &str = "LOCK";

/// How often opening for reading starts anew because a writer replaced runs meanwhile.
const READ_ATTEMPTS_MAX: usize = 10;

impl Shared {
    /// See [`super::Engine::open_with`].
    pub fn open(
        dir: &Path,
        mode: OpenMode,
        options: EngineOptions,
        components: Components,
    ) -> Result<Shared, Error> {
        let mut attempts = 1;
        loop {
            let mut runs = Vec::new();
            let opened = Shared::open_once(dir, mode, options.clone(), components.clone(), &mut runs);
            if opened.is_ok() || mode != OpenMode::Read || attempts == READ_ATTEMPTS_MAX {
                return opened;
            }
            // A writer in another process removes runs once a manifest without them is in place.
            let now = Manifest::load(&*components.disk, dir)?.map(|m| run_ids(&m)).unwrap_or_default();
            if now == runs {
                return opened;
            }
            attempts += 1;
        }
    }

    /// Opens the store as its manifest says now; `runs` gets the runs that it names.
    fn open_once(
        dir: &Path,
        mode: OpenMode,
        options: EngineOptions,
        components: Components,
        runs: &mut Vec<u64>,
    ) -> Result<Shared, Error> {
        let disk = components.disk.clone();
        prepare_directory(&*disk, dir, mode)?;
        let lock = match mode {
            OpenMode::Read => None,
            _ => Some(disk.lock(&dir.join(LOCK), &LockHolder::this_process(&components.command))?),
        };
        let known = Log::store_id_of(&*disk, &dir.join("log"))?;
        let Loaded { manifest, commits, last_file } = load_manifest(&*disk, dir, &components, known)?;
        runs.extend(run_ids(&manifest));
        let floor = commits.last().map(|c| c.place);
        let id = crate::hex::decode_array(&manifest.store_id)
            .ok_or_else(|| Error::new(ErrorKind::Damaged, "the manifest has no store id"))?;
        let settings = LogSettings {
            segment_bytes_max: options.segment_bytes_max,
            writable: mode != OpenMode::Read,
            start: floor.map_or(Start::Oldest, Start::After),
            floor: CommitSeq(manifest.flushed),
            ..LogSettings::new(id)
        };
        let (log, recovered) = Log::open(disk.clone(), &dir.join("log"), settings)?;
        let mut shared = Shared {
            dir: dir.to_owned(),
            columns: Arc::new(ColumnCache::new(options.column_cache_bytes)),
            mode,
            store_id: manifest.store_id.clone(),
            keyed: Keyed::default(),
            options,
            view: RwLock::new(Arc::new(empty_view(&manifest, commits))),
            commits_files: CommitsFiles::new(last_file),
            writer: Mutex::new(None),
            next_run: AtomicU64::new(manifest.next_run),
            manifest: Mutex::new(manifest),
            written: Default::default(),
            full: Mutex::default(),
            merging: Mutex::default(),
            shrinking: Mutex::default(),
            signal: Signal::default(),
            stopping: AtomicBool::new(false),
            lock,
            recovered: recovered.dropped.map(|d| d.to_string()),
            log_settings: settings,
            components,
        };
        shared.open_runs(mode != OpenMode::Read)?;
        let start = floor.map_or(Start::Oldest, Start::After);
        // Reading from a frame on reads that frame, which may be large.
        let news = (log.last() != floor).then(|| log.read_from(start)).transpose()?;
        shared.replay_frames(news.into_iter().flatten(), mode != OpenMode::Read)?;
        if mode != OpenMode::Read {
            let last_at = shared.view().commit_at.unwrap_or(i64::MIN);
            *locked(&shared.writer) = Some(Writer { log, last_at, in_doubt: false });
        }
        if !shared.options.background {
            shared.open_index();
        }
        Ok(shared)
    }

    /// Opens the runs of the manifest; removes files that no manifest names.
    fn open_runs(&mut self, writer: bool) -> Result<(), Error> {
        let manifest = locked(&self.manifest);
        let disk = self.components.disk.clone();
        let dir = self.dir.join("runs");
        let mut view = (*self.view()).clone();
        for meta in &manifest.runs {
            let Some(table) = view.catalog.tables.get(&meta.table) else { continue };
            let version = table.schemas.iter().find(|(_, s)| s.version == meta.schema_version);
            let schema = version.map(|(_, s)| s.clone()).ok_or_else(|| {
                let name = meta.file_name();
                Error::new(ErrorKind::Damaged, format!("run {name} has an unknown schema version"))
            })?;
            let reader = RunReader::open(disk.clone(), &dir, meta, self.columns.clone())?;
            let run = Arc::new(RunSource { reader: Arc::new(reader), schema: Arc::new(schema) });
            let truncates = stored_truncates(&run, meta.table)?;
            let entry = Arc::make_mut(view.tables.entry(meta.table).or_default());
            Arc::make_mut(&mut entry.truncates).extend(truncates);
            entry.runs.push(run);
        }
        if writer {
            remove_orphans(&*disk, &self.dir, &manifest)?;
        }
        drop(manifest);
        self.publish(view);
        Ok(())
    }
}

fn run_ids(manifest: &Manifest) -> Vec<u64> {
    manifest.runs.iter().map(|r| r.id).collect()
}

fn prepare_directory(disk: &dyn Disk, dir: &Path, mode: OpenMode) -> Result<(), Error> {
    let (log, runs) = (dir.join("log"), dir.join("runs"));
    let made = disk.exists(&log)? && disk.exists(&runs)?;
    if made {
        return Ok(());
    }
    if mode != OpenMode::Create && !disk.exists(&log)? {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no store in {}", dir.display()))
            .hint("`asof ingest STORE FILE` makes one"));
    }
    if mode == OpenMode::Read {
        return Err(Error::new(ErrorKind::Damaged, format!("{} is missing", runs.display()))
            .hint("open the store for writing once: runs are derived from the log again"));
    }
    if disk.exists(dir)? && !is_unfinished(disk, dir)? {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("{} is not a store and not empty", dir.display()),
        )
        .hint("name a directory that does not exist yet"));
    }
    disk.create_dir(dir)?;
    disk.create_dir(&runs)?;
    disk.create_dir(&log)?;
    disk.sync_dir(dir)?;
    if let Some(parent) = dir.parent().filter(|p| !p.as_os_str().is_empty()) {
        disk.sync_dir(parent)?;
    }
    Ok(())
}

/// Whether a directory holds nothing but parts of a store, as after a power cut while it was made.
fn is_unfinished(disk: &dyn Disk, dir: &Path) -> Result<bool, Error> {
    let ours = |path: &std::path::PathBuf| {
        let name = path.file_name().and_then(|n| n.to_str());
        name.is_some_and(|n| ["log", "runs", LOCK, "manifest", "manifest.tmp", "index.redb"].contains(&n))
            || file_number(path).is_some()
    };
    Ok(disk.list(dir)?.iter().all(ours))
}

/// The manifest, or an empty one from which everything is derived again. The log knows the store by
/// its id: a manifest of another store is as good as none.
pub(super) fn load_manifest(
    disk: &dyn Disk,
    dir: &Path,
    components: &Components,
    known: Option<[u8; 16]>,
) -> Result<Loaded, Error> {
    let hex = |id: [u8; 16]| crate::hex::encode(&id);
    let anew = |id, last_file| Loaded { manifest: Manifest::empty(hex(id)), commits: Vec::new(), last_file };
    let mut last_file = 0;
    if let Some(mut manifest) = Manifest::load(disk, dir)? {
        let mut commits = manifest.read_commits(disk, dir)?;
        last_file = manifest.commits.file;
        if let (Err(_), Some(id)) = (&commits, known)
            && manifest.store_id == hex(id)
            && is_shrunk(components, dir, id)?
        {
            commits = commits_of_log(components, dir, id, manifest.flushed);
            // The next flush writes them anew.
            manifest.commits = Default::default();
        }
        match (commits, known) {
            (Ok(commits), Some(id)) if manifest.store_id == hex(id) => {
                return Ok(Loaded { manifest, commits, last_file });
            }
            (_, Some(_)) => {}
            (_, None) if manifest.flushed == 0 => {
                return Ok(Loaded { manifest, commits: Vec::new(), last_file });
            }
            (_, None) => {
                let what = format!(
                    "the log of {} is gone, but its manifest says that it had commits",
                    dir.display()
                );
                return Err(Error::new(ErrorKind::Damaged, what)
                    .hint("put the files of the log directory back from a backup"));
            }
        }
    }
    if let Some(id) = known {
        if is_shrunk(components, dir, id)? {
            let what = format!(
                "the manifest of {} is missing or damaged, and the log was shrunk: the manifest is what \
                 names the runs that have its rows",
                dir.display()
            );
            return Err(Error::new(ErrorKind::Damaged, what).hint(ONLY_COPY));
        }
        return Ok(anew(id, last_file));
    }
    let mut id = [0u8; 16];
    let random = components.entropy.fill(&mut id);
    random.map_err(|e| Error::new(ErrorKind::Io, format!("no random bytes for a store id: {e}")))?;
    Ok(anew(id, last_file))
}

/// Whether rows of the log live in runs only.
fn is_shrunk(components: &Components, dir: &Path, id: [u8; 16]) -> Result<bool, Error> {
    let segments = Segments::new(components.disk.clone(), &dir.join("log"), id);
    Ok(segments.list()?.iter().any(|s| s.shrunk))
}

/// The first commits of the log, of which it always has everything but rows.
fn commits_of_log(
    components: &Components,
    dir: &Path,
    id: [u8; 16],
    flushed: u64,
) -> Result<Vec<CommitRecord>, Error> {
    let settings = LogSettings { writable: false, floor: CommitSeq(flushed), ..LogSettings::new(id) };
    let (log, _) = Log::open(components.disk.clone(), &dir.join("log"), settings)?;
    let mut view = empty_view(&Manifest::empty(crate::hex::encode(&id)), Vec::new());
    for frame in log.read_from(Start::Oldest)?.take(flushed as usize) {
        let (place, frame) = frame?;
        take_head(&mut view, place, &frame)?;
    }
    let commits = view.commits.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
    Ok(commits)
}

/// What a store is opened from.
pub(super) struct Loaded {
    pub manifest: Manifest,
    /// The commits up to `manifest.flushed`.
    pub commits: Vec<CommitRecord>,
    /// Number of the list of commits that the manifest on disk names, whether it counts or not.
    pub last_file: u64,
}

/// The view of a manifest without runs; `commits` are those up to `manifest.flushed`.
pub(crate) fn empty_view(manifest: &Manifest, commits: Vec<CommitRecord>) -> View {
    let catalog = manifest.catalog();
    View {
        commit: CommitSeq(manifest.flushed),
        commit_at: commits.last().map(|c| c.info.at),
        ranks: Arc::new(Ranks::of(&catalog)),
        catalog: Arc::new(catalog),
        tables: Default::default(),
        commits: Arc::new(RwLock::new(commits)),
    }
}

/// Removes files that a manifest does not name.
fn remove_orphans(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<(), Error> {
    let runs = dir.join("runs");
    let orphan = |path: &std::path::PathBuf| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        let Some(run) = crate::run::run_of_file(name) else { return false };
        !manifest.runs.iter().any(|r| r.id == run && (name == r.file_name() || name == r.sidecar_name()))
    };
    let mut orphans: Vec<_> = disk.list(&runs)?.into_iter().filter(orphan).collect();
    orphans.extend(other_lists(disk, dir, &manifest.commits)?);
    if orphans.is_empty() {
        return Ok(());
    }
    // A power cut must not bring back a manifest that names them: whoever wrote this one may have been
    // killed before its name was durable.
    disk.sync_dir(dir)?;
    orphans.iter().try_for_each(|path| disk.remove(path))?;
    Ok(disk.sync_dir(&runs)?)
}

/// The truncates that a run holds, under the empty key.
fn stored_truncates(run: &Arc<RunSource>, table: TableId) -> Result<Vec<StoredTruncate>, Error> {
    if !run.meta().flags.has(Op::Truncate) {
        return Ok(Vec::new());
    }
    scan::truncates_of_source(&**run, &run.schema)
        .map_err(|e| Error::new(e.kind, format!("table {}: {}", table.0, e.message)))
}
