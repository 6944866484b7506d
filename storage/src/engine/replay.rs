//! Taking frames of the log into a view, one after the other.

use super::catalog::CatalogChange;
use super::commit::{InfoSection, add_rows, apply_changes, section};
use super::commits::CommitRecord;
use super::error::{Error, ErrorKind};
use super::maintain::small_tail;
use super::memory::{CommittedRows, MemoryBatch};
use super::request::Quarantined;
use super::shared::Shared;
use super::view::{Ranks, View};
use crate::event::FrameContext;
use crate::log::{BlockForm, Frame, FramePlace, LogError, RowBlock};
use std::sync::Arc;

/// Batches of one table in memory before small ones are made one: there is one for every commit.
const BATCHES_MAX: usize = 256;

impl Shared {
    /// Takes frames of the log that no run holds. Nobody else has the store yet.
    pub fn replay_frames(
        &self,
        frames: impl Iterator<Item = Result<(FramePlace, Frame), LogError>>,
        writer: bool,
    ) -> Result<(), Error> {
        let mut view = (*self.view()).clone();
        for frame in frames {
            let (place, frame) = frame?;
            take_frame(&mut view, place, &frame)?;
            // Stale rows are taken anew at the end, and must be known as such until then.
            if crowded(&view) && view.stale_tables().is_empty() {
                gather(&mut view)?;
            }
            if writer && self.is_full(&view, 2) && view.stale_tables().is_empty() {
                self.publish(view);
                self.flush()?;
                view = (*self.view()).clone();
            }
        }
        self.publish(view);
        self.renew_stale(writer)
    }
}

fn crowded(view: &View) -> bool {
    view.tables.values().any(|t| t.memory.len() > BATCHES_MAX)
}

/// Makes one of the small batches in memory of tables that have many.
pub(crate) fn gather(view: &mut View) -> Result<(), Error> {
    for table in view.tables.values_mut().filter(|t| t.memory.len() > BATCHES_MAX) {
        let from = small_tail(&table.memory);
        let merged = Arc::new(MemoryBatch::merged(&table.memory[from..])?);
        let memory = &mut Arc::make_mut(table).memory;
        memory.truncate(from);
        memory.push(merged);
    }
    Ok(())
}

/// The rows of a block of a frame.
///
/// # Errors
/// `Damaged` if they live in runs: whoever may meet such a block reads frames through
/// [`super::history`].
pub(crate) fn block_rows(frame: &Frame, block: &RowBlock) -> Result<CommittedRows, Error> {
    if block.form == BlockForm::Digested {
        let what =
            format!("the log has no rows of commit {}: it was shrunk, they live in runs", frame.sequence);
        return Err(Error::new(ErrorKind::Damaged, what).hint(ONLY_COPY));
    }
    let context = FrameContext { commit: frame.sequence, commit_at: frame.instant_us };
    Ok(CommittedRows { context, table: block.table, ends: block.ends.clone(), bytes: block.bytes.clone() })
}

/// What to do where runs are damaged that are the only ones to have some events.
pub(crate) const ONLY_COPY: &str = "restore the store from a copy; nothing on disk was changed";

/// Brings a view one frame on.
pub(crate) fn take_frame(view: &mut View, place: FramePlace, frame: &Frame) -> Result<(), Error> {
    take_head(view, place, frame)?;
    frame.blocks.iter().try_for_each(|block| add_rows(view, block_rows(frame, block)?))
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
