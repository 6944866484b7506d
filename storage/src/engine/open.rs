//! Opening a store: lock, manifest, runs, then the log from where the runs end.

use super::api::{EngineOptions, OpenMode};
use super::catalog::CatalogChange;
use super::commit::{InfoSection, add_rows, apply_changes, section};
use super::error::{Error, ErrorKind};
use super::keyed::Keyed;
use super::manifest::{CommitRecord, Manifest};
use super::memory::CommittedRows;
use super::request::Quarantined;
use super::runs::RunSource;
use super::scan;
use super::scan::StoredTruncate;
use super::shared::{Components, Shared, Signal, Writer, locked};
use super::view::{Ranks, View};
use crate::disk::{Disk, DiskError, LockHolder};
use crate::event::{FrameContext, Op};
use crate::id::TableId;
use crate::log::{Frame, FramePlace, Log, LogError, LogSettings, Start};
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
        Error::new(kind, e.to_string())
    }
}

/// Name of the lock file.
const LOCK: &str = "LOCK";

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
        let manifest = load_manifest(&*disk, dir, &components, known)?;
        runs.extend(run_ids(&manifest));
        let floor = manifest.commits.last().map(|c| c.place);
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
            view: RwLock::new(Arc::new(empty_view(&manifest))),
            writer: Mutex::new(None),
            next_run: AtomicU64::new(manifest.next_run),
            manifest: Mutex::new(manifest),
            merging: Mutex::default(),
            signal: Signal::default(),
            stopping: AtomicBool::new(false),
            lock,
            recovered: recovered.dropped.map(|d| d.to_string()),
            log_settings: settings,
            components,
        };
        shared.open_runs(mode != OpenMode::Read)?;
        let start = floor.map_or(Start::Oldest, Start::After);
        shared.replay_frames(log.read_from(start)?, mode != OpenMode::Read)?;
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
            remove_orphans(&*disk, &dir, &manifest)?;
        }
        drop(manifest);
        self.publish(view);
        Ok(())
    }

    /// Takes frames of the log that no run holds.
    pub fn replay_frames(
        &self,
        frames: impl Iterator<Item = Result<(FramePlace, Frame), LogError>>,
        writer: bool,
    ) -> Result<(), Error> {
        for frame in frames {
            let (place, frame) = frame?;
            let mut view = (*self.view()).clone();
            take_frame(&mut view, place, &frame)?;
            self.publish(view);
            let full = self.is_full(&self.view(), 2);
            if writer && full && self.view().stale_tables().is_empty() {
                self.flush()?;
            }
        }
        self.renew_stale(writer)
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
    };
    Ok(disk.list(dir)?.iter().all(ours))
}

/// The manifest, or an empty one from which everything is derived again. The log knows the store by
/// its id: a manifest of another store is as good as none.
fn load_manifest(
    disk: &dyn Disk,
    dir: &Path,
    components: &Components,
    known: Option<[u8; 16]>,
) -> Result<Manifest, Error> {
    let loaded = Manifest::load(disk, dir)?;
    let hex = |id: [u8; 16]| crate::hex::encode(&id);
    match (loaded, known) {
        (Some(manifest), Some(id)) if manifest.store_id == hex(id) => Ok(manifest),
        (Some(manifest), None) if manifest.flushed == 0 => Ok(manifest),
        (Some(_), None) => Err(Error::new(
            ErrorKind::Damaged,
            format!("the log of {} is gone, but its manifest says that it had commits", dir.display()),
        )
        .hint("put the files of the log directory back from a backup")),
        (_, Some(id)) => Ok(Manifest::empty(hex(id))),
        (None, None) => {
            let mut id = [0u8; 16];
            let random = components.entropy.fill(&mut id);
            random.map_err(|e| Error::new(ErrorKind::Io, format!("no random bytes for a store id: {e}")))?;
            Ok(Manifest::empty(hex(id)))
        }
    }
}

pub(crate) fn empty_view(manifest: &Manifest) -> View {
    let catalog = manifest.catalog();
    View {
        commit: CommitSeq(manifest.flushed),
        commit_at: manifest.commits.last().map(|c| c.info.at),
        ranks: Arc::new(Ranks::of(&catalog)),
        catalog: Arc::new(catalog),
        tables: Default::default(),
        commits: Arc::new(RwLock::new(manifest.commits.clone())),
    }
}

fn remove_orphans(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<(), Error> {
    let mut removed = false;
    for path in disk.list(dir)? {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        let Some(run) = crate::run::run_of_file(name) else { continue };
        let known =
            manifest.runs.iter().any(|r| r.id == run && (name == r.file_name() || name == r.sidecar_name()));
        if !known {
            disk.remove(&path)?;
            removed = true;
        }
    }
    if removed {
        disk.sync_dir(dir)?;
    }
    Ok(())
}

/// The truncates that a run holds, under the empty key.
fn stored_truncates(run: &Arc<RunSource>, table: TableId) -> Result<Vec<StoredTruncate>, Error> {
    if !run.meta().flags.has(Op::Truncate) {
        return Ok(Vec::new());
    }
    scan::truncates_of_source(&**run, &run.schema)
        .map_err(|e| Error::new(e.kind, format!("table {}: {}", table.0, e.message)))
}

/// The rows of a frame by table.
pub(crate) fn rows_of(frame: &Frame) -> impl Iterator<Item = CommittedRows> + use<'_> {
    let context = FrameContext { commit: frame.sequence, commit_at: frame.instant_us };
    frame.blocks.iter().map(move |b| CommittedRows {
        context,
        table: b.table,
        ends: b.ends.clone(),
        bytes: b.bytes.clone(),
    })
}

/// Brings a view one frame on.
pub(crate) fn take_frame(view: &mut View, place: FramePlace, frame: &Frame) -> Result<(), Error> {
    take_head(view, place, frame)?;
    rows_of(frame).try_for_each(|rows| add_rows(view, rows))
}

/// Brings a view one frame on, without the rows.
pub(crate) fn take_head(view: &mut View, place: FramePlace, frame: &Frame) -> Result<(), Error> {
    let damaged = |what: String| {
        Error::new(ErrorKind::Damaged, format!("commit {} of the log: {what}", frame.sequence))
    };
    if frame.sequence.0 != view.commit.0 + 1 {
        return Err(damaged(format!("commit {} should follow commit {}", view.commit.0 + 1, view.commit)));
    }
    if let Some(bytes) = frame.section(section::CATALOG) {
        let changes: Vec<CatalogChange> =
            serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        view.catalog = Arc::new(apply_changes(&view.catalog, changes)?);
        view.ranks = Arc::new(Ranks::of(&view.catalog));
    }
    if let Some(bytes) = frame.section(section::POSITIONS) {
        let positions: Vec<(String, serde_json::Value)> =
            serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        Arc::make_mut(&mut view.catalog).positions.extend(positions);
    }
    let info: InfoSection = match frame.section(section::INFO) {
        Some(bytes) => serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?,
        None => return Err(damaged("has no information section".into())),
    };
    view.commit = frame.sequence;
    view.commit_at = Some(frame.instant_us);
    let info = info.commit(FrameContext { commit: frame.sequence, commit_at: frame.instant_us });
    view.commits.write().unwrap_or_else(|poisoned| poisoned.into_inner()).push(CommitRecord { info, place });
    Ok(())
}

/// The quarantined messages of a frame.
pub(crate) fn quarantine_of(frame: &Frame) -> Result<Vec<Quarantined>, Error> {
    let Some(bytes) = frame.section(section::QUARANTINE) else { return Ok(Vec::new()) };
    serde_json::from_slice(bytes)
        .map_err(|e| Error::new(ErrorKind::Damaged, format!("commit {}: quarantine: {e}", frame.sequence)))
}
