//! Deriving runs, manifest and list of commits from the log again, beside readers and commits.
//!
//! Everything is made aside: readers keep the view they find until the new one replaces it in one
//! step, and the manifest on disk names the old runs until then. What stops in the middle leaves run
//! files that no manifest names.

use super::commit::add_rows;
use super::error::Error;
use super::history::History;
use super::manifest::Manifest;
use super::merging::Merging;
use super::open::empty_view;
use super::replay::{gather, take_frame, take_head};
use super::runs::RunSource;
use super::shared::{Shared, locked};
use super::view::View;
use crate::log::{Frame, FramePlace, LogReader, Start};
use crate::time::CommitSeq;
use std::sync::Arc;

/// Frames that are read with commits held up; while more wait they are read beside them.
const LAST_FRAMES_MAX: u64 = 64;

/// A store under construction.
struct Fresh {
    view: View,
    /// The frame that was taken last.
    last: Option<FramePlace>,
    /// Runs that were written, so that they can be removed if it comes to nothing.
    written: Vec<Arc<RunSource>>,
    /// Whether the manifest on disk may name them: a write that failed may have had effect.
    may_be_named: bool,
    /// Level of the runs that are written: such as the log needs no rows of, where it has given up some.
    level: u8,
}

impl Shared {
    /// See [`super::Engine::rebuild`].
    pub fn rebuild(&self) -> Result<(), Error> {
        // Until the end no run is flushed or merged and no schema changes; other commits go on.
        let mut manifest = locked(&self.manifest);
        let mut fresh = Fresh::new(&manifest, u8::from(self.segments().list()?.iter().any(|s| s.shrunk)));
        let replaced = self.rebuild_into(&mut fresh, &mut manifest);
        drop(manifest);
        match replaced {
            Ok(old) => {
                self.remove_runs(&old)?;
                self.merge(Merging::Due)?;
                self.renew_index();
                Ok(())
            }
            Err(e) => {
                if !fresh.may_be_named {
                    // What cannot be removed now is removed when the store is opened again.
                    let _ = self.remove_runs(&fresh.written);
                }
                Err(e)
            }
        }
    }

    /// Fills `fresh` and puts it in the place of what there is. Gives the runs it replaced.
    fn rebuild_into(&self, fresh: &mut Fresh, manifest: &mut Manifest) -> Result<Vec<Arc<RunSource>>, Error> {
        // The catalog first: all rows are then taken under the schemas that they end with.
        for frame in self.frames(Start::Oldest)? {
            let (place, frame) = frame?;
            take_head(&mut fresh.view, place, &frame)?;
            fresh.last = Some(place);
        }
        let history = History::of(&self.view());
        for frame in history.fill(self.frames(Start::Oldest)?, None) {
            let (_, frame, rows) = frame?;
            if frame.sequence > fresh.view.commit {
                break;
            }
            for rows in rows {
                add_rows(&mut fresh.view, rows?)?;
            }
            self.relieve(fresh)?;
        }
        self.catch_up(fresh)?;
        self.put_in_place(fresh, manifest)
    }

    /// Takes the frames of commits that were made meanwhile, until few are left.
    fn catch_up(&self, fresh: &mut Fresh) -> Result<(), Error> {
        while self.view().commit.0 > fresh.view.commit.0 + LAST_FRAMES_MAX {
            for frame in self.frames(fresh.end())? {
                fresh.take(frame?)?;
                self.relieve(fresh)?;
            }
        }
        self.write_runs(fresh)
    }

    /// The last step, with commits held up: stores the manifest and publishes the view.
    fn put_in_place(&self, fresh: &mut Fresh, manifest: &mut Manifest) -> Result<Vec<Arc<RunSource>>, Error> {
        let mut next = Manifest::empty(manifest.store_id.clone());
        self.record(&mut next, &fresh.view);
        next.runs = fresh.written.iter().map(|run| run.meta().clone()).collect();
        self.write_commits(&mut next, &fresh.view.commits)?;
        let writer = locked(&self.writer);
        let log = &writer.as_ref().ok_or_else(|| self.read_only())?.log;
        for frame in log.read_from(fresh.end())? {
            fresh.take(frame?)?;
        }
        fresh.may_be_named = true;
        next.store(&*self.components.disk, &self.dir)?;
        self.commits_stored(&next, &manifest.commits);
        *manifest = next;
        let old = self.view().tables.values().flat_map(|t| t.runs.clone()).collect();
        self.publish(fresh.view.clone());
        Ok(old)
    }

    /// Writes what is in memory to runs if it is much.
    fn relieve(&self, fresh: &mut Fresh) -> Result<(), Error> {
        gather(&mut fresh.view)?;
        let full = self.is_full(&fresh.view, 100);
        if full { self.write_runs(fresh) } else { Ok(()) }
    }

    fn write_runs(&self, fresh: &mut Fresh) -> Result<(), Error> {
        let tables = fresh.view.tables.clone();
        for (id, table) in tables.iter().filter(|(_, t)| !t.memory.is_empty()) {
            let Some(meta) = fresh.view.catalog.tables.get(id) else { continue };
            let form = (fresh.level, self.options.encoded_rows_min);
            let run = self.write_memory(&fresh.view, meta, &table.memory, form)?;
            fresh.written.push(run.clone());
            let mut table = (**table).clone();
            table.memory.clear();
            table.runs.push(run);
            fresh.view.tables.insert(*id, Arc::new(table));
        }
        Ok(())
    }

    /// Frames up to the end that the log has now.
    fn frames(&self, start: Start) -> Result<LogReader, Error> {
        let writer = locked(&self.writer);
        let writer = writer.as_ref().ok_or_else(|| self.read_only())?;
        Ok(writer.log.read_from(start)?)
    }
}

impl Fresh {
    fn new(manifest: &Manifest, level: u8) -> Fresh {
        let view = empty_view(&Manifest::empty(manifest.store_id.clone()), Vec::new());
        Fresh { view, last: None, written: Vec::new(), may_be_named: false, level }
    }

    fn end(&self) -> Start {
        self.last.map_or(Start::Oldest, Start::After)
    }

    fn take(&mut self, (place, frame): (FramePlace, Frame)) -> Result<(), Error> {
        debug_assert_eq!(frame.sequence, CommitSeq(self.view.commit.0 + 1), "frames come in order");
        take_frame(&mut self.view, place, &frame)?;
        self.last = Some(place);
        Ok(())
    }
}
