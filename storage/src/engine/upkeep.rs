//! Status and verification.

use super::commits::{CommitRecord, HINT};
use super::error::{Error, ErrorKind};
use super::maintain::memory_events;
use super::manifest::Manifest;
use super::replay::quarantine_of;
use super::request::Quarantined;
use super::shared::{Shared, locked};
use super::view::View;
use crate::disk::LockState;
use crate::log::{FramePlace, Head, Log, LogSettings, Segments};
use crate::time::CommitSeq;
use std::sync::atomic::Ordering;

/// What `verify` found.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyReport {
    /// Frames of the log that were checked.
    pub frames: u64,
    /// Runs that were checked.
    pub runs: u64,
    /// Head of the chain over all commits, in hexadecimal.
    pub head: String,
    /// Every damaged place, as text for people; empty = everything is as it was written.
    pub damage: Vec<String>,
    /// The commit whose head was asked for, if it was found in the chain.
    pub head_at: Option<CommitSeq>,
}

/// Sizes and counts of a store.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Status {
    /// Newest commit.
    pub commit: u64,
    /// Its instant, microseconds since 1970.
    pub commit_at: Option<i64>,
    /// Head of the chain over all commits, in hexadecimal; `None` where the log was not opened.
    pub head: Option<String>,
    /// Events over all tables.
    pub events: u64,
    /// Events that no run holds yet.
    pub memory_events: u64,
    /// Messages in quarantine that were not settled since.
    pub quarantined: u64,
    /// Messages that were in quarantine and were settled since.
    pub resolved: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Events that are in runs only: the segments of the log that had their rows were shrunk. (Of a few
    /// blocks such a segment may have kept the rows.)
    pub log_events_shrunk: u64,
    /// Bytes of the runs.
    pub run_bytes: u64,
    /// Bytes of the keyed index.
    pub index_bytes: u64,
    /// Bytes of runs that flushes wrote since this process opened the store.
    pub flushed_bytes: u64,
    /// Bytes of runs that merges wrote since this process opened the store.
    pub merged_bytes: u64,
    /// The process that writes to the store, if another one does.
    pub writer: Option<String>,
    /// The last process that wrote to the store, if it ended without closing it.
    pub abandoned_by: Option<String>,
    /// Tables by number.
    pub tables: Vec<TableStatus>,
    /// What was cut off the end of the log when the store was opened: an unfinished commit.
    pub recovered: Option<String>,
    /// Error of the last round of background work, if it failed.
    pub background_error: Option<String>,
}

/// Sizes and counts of a table.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct TableStatus {
    /// Name.
    pub name: String,
    /// Events, in runs and in memory.
    pub events: u64,
    /// Runs.
    pub runs: u64,
    /// Bytes of the runs.
    pub run_bytes: u64,
    /// The commit up to which the keyed index answers; 0 where it does not: it is behind the runs, or
    /// rows of the table depend on more than their own key.
    pub indexed: u64,
    /// Columns.
    pub columns: u64,
    /// Names of the key columns.
    pub key: Vec<String>,
}

impl Shared {
    /// See [`super::Engine::status`].
    pub fn status(&self) -> Result<Status, Error> {
        let view = self.view();
        let disk = &*self.components.disk;
        let size = |dir: std::path::PathBuf| -> Result<u64, Error> {
            let mut bytes = 0;
            for path in disk.list(&dir)? {
                bytes += disk.len(&path)?.unwrap_or(0);
            }
            Ok(bytes)
        };
        let tables: Vec<TableStatus> =
            view.catalog.tables.values().map(|t| self.table_status(&view, t)).collect();
        let (put_aside, resolved) = super::quarantine::counts(&view);
        let state = match self.lock {
            Some(_) => LockState::Free,
            None => disk.lock_state(&self.dir.join("LOCK")),
        };
        let (writer, abandoned_by) = match state {
            LockState::Free => (None, None),
            LockState::Held(None) => (Some("another process".to_owned()), None),
            LockState::Held(Some(holder)) => (Some(holder.to_string()), None),
            LockState::Abandoned(holder) => (None, Some(holder.to_string())),
        };
        Ok(Status {
            commit: view.commit.0,
            commit_at: view.commit_at,
            head: locked(&self.writer).as_ref().map(|w| w.log.head().to_string()),
            events: tables.iter().map(|t| t.events).sum(),
            memory_events: memory_events(&view) as u64,
            quarantined: put_aside.saturating_sub(resolved),
            resolved,
            log_bytes: size(self.log_dir())?,
            log_events_shrunk: self.events_shrunk(&view)?,
            run_bytes: size(self.runs_dir())?,
            index_bytes: disk.len(&self.index_path())?.unwrap_or(0),
            flushed_bytes: self.written[0].load(Ordering::Relaxed),
            merged_bytes: self.written[1].load(Ordering::Relaxed),
            writer,
            abandoned_by,
            tables,
            recovered: self.recovered.clone(),
            background_error: self.signal.failure().map(|e| e.message).or_else(|| self.keyed.failure()),
        })
    }

    /// See [`super::Engine::verify`].
    pub fn verify(&self, head: Option<&str>) -> Result<VerifyReport, Error> {
        let head = head
            .map(|h| h.parse::<Head>().map_err(|e| Error::new(ErrorKind::Invalid, format!("{h}: {e}"))))
            .transpose()?;
        let guard = locked(&self.writer);
        let log = match guard.as_ref() {
            Some(writer) => writer.log.verify(head)?,
            None => self.open_log()?.verify(head)?,
        };
        drop(guard);
        let mut report = VerifyReport {
            frames: log.frames,
            runs: 0,
            head: log.head.to_string(),
            damage: log.damage.iter().map(|d| d.to_string()).collect(),
            head_at: log.expected_at,
        };
        if let (Some(head), None) = (head, log.expected_at) {
            report.damage.push(format!("head {head} is not in the chain: history was changed or cut since"));
        }
        for table in self.view().tables.values() {
            for run in &table.runs {
                report.runs += 1;
                if let Err(e) = run.reader.verify() {
                    report.damage.push(e.to_string());
                }
            }
        }
        report.damage.extend(self.stored_commits()?.err());
        report.damage.extend(self.check_index()?);
        Ok(report)
    }

    /// The commits that the manifest on disk counts on, or what is wrong with it.
    pub fn stored_commits(&self) -> Result<Result<Vec<CommitRecord>, String>, Error> {
        // Until this is done it is not replaced by this process.
        let manifest = locked(&self.manifest);
        let stored = Manifest::check(&*self.components.disk, &self.dir)?;
        let missing = stored.as_ref().is_ok_and(|c| (c.len() as u64) < manifest.flushed);
        let what = || format!("{}: the manifest is missing or an older one ({HINT})", self.dir.display());
        Ok(if missing { Err(what()) } else { stored })
    }

    /// Events of commits in segments that were shrunk.
    fn events_shrunk(&self, view: &View) -> Result<u64, Error> {
        let segments = self.segments().list()?;
        let commits = view.commits.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut events = 0;
        for (i, segment) in segments.iter().enumerate().filter(|(_, s)| s.shrunk) {
            let end = segments.get(i + 1).map_or(u64::MAX, |next| next.first.0);
            let first = commits.partition_point(|c| c.info.seq < segment.first.0);
            let of_segment = commits[first..].iter().take_while(|c| c.info.seq < end);
            events += of_segment.map(|c| c.info.events).sum::<u64>();
        }
        Ok(events)
    }

    /// The segments of the log.
    pub fn segments(&self) -> Segments {
        Segments::new(self.components.disk.clone(), &self.log_dir(), self.log_settings.store_id)
    }

    /// The log for reading, beside whoever writes.
    pub fn open_log(&self) -> Result<Log, Error> {
        let settings = LogSettings { writable: false, floor: CommitSeq(0), ..self.log_settings };
        Ok(Log::open(self.components.disk.clone(), &self.log_dir(), settings)?.0)
    }

    /// The quarantined messages of the frames at these places.
    pub fn quarantine(&self, places: &[FramePlace]) -> Result<Vec<(CommitSeq, Quarantined)>, Error> {
        let mut found = Vec::new();
        if places.is_empty() {
            return Ok(found);
        }
        let log = self.open_log()?;
        for place in places {
            let frame = log.read_frame(*place)?;
            let messages = quarantine_of(&frame)?;
            found.extend(messages.into_iter().map(|q| (frame.sequence, q)));
        }
        Ok(found)
    }
}

impl Shared {
    fn table_status(&self, view: &View, meta: &crate::schema::TableMeta) -> TableStatus {
        let parts = view.tables.get(&meta.id).cloned().unwrap_or_default();
        let schema = meta.schema();
        TableStatus {
            name: meta.name.clone(),
            events: parts.runs.iter().map(|r| r.meta().events).sum::<u64>()
                + parts.memory.iter().map(|b| b.events as u64).sum::<u64>(),
            runs: parts.runs.len() as u64,
            run_bytes: parts.runs.iter().map(|r| r.meta().bytes).sum(),
            indexed: self.indexed(view, meta.id),
            columns: schema.columns.len() as u64,
            key: schema.key.iter().map(|id| schema.columns[id.0 as usize].name.clone()).collect(),
        }
    }
}
