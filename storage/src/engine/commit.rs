//! The commit protocol: check, write the frame, sync, publish.

use super::catalog::{Catalog, CatalogChange, CommitInfo};
use super::commits::CommitRecord;
use super::error::{Error, ErrorKind};
use super::memory::{CommittedRows, MemoryBatch, truncates_of};
use super::quarantine::{Resolved, check_resolved};
use super::request::{CommitRequest, Quarantined, RowBlock};
use super::shared::{Shared, Writer, locked};
use super::view::{Ranks, View};
use crate::clock::next_instant;
use crate::event::FrameContext;
use crate::id::TableId;
use crate::log::{FrameBuilder, FramePlace, FrameSecret};
use crate::time::CommitSeq;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Kinds of sections of a log frame. On disk.
pub(crate) mod section {
    pub const CATALOG: u8 = 1;
    pub const POSITIONS: u8 = 2;
    pub const QUARANTINE: u8 = 3;
    pub const INFO: u8 = 4;
}

/// The section that says what a commit is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InfoSection {
    pub events: u64,
    pub quarantined: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolved: Vec<Resolved>,
    pub note: serde_json::Value,
}

impl InfoSection {
    /// The commit as readers see it.
    pub fn commit(self, context: FrameContext) -> CommitInfo {
        CommitInfo {
            seq: context.commit.0,
            at: context.commit_at,
            events: self.events,
            quarantined: self.quarantined,
            resolved: self.resolved,
            note: self.note,
        }
    }
}

/// The catalog after some changes, which carry the number of their commit ([`stamped`]).
pub(crate) fn apply_changes(catalog: &Catalog, changes: Vec<CatalogChange>) -> Result<Catalog, Error> {
    let mut next = catalog.clone();
    for change in changes {
        match change {
            CatalogChange::Table(meta) => {
                check_table(&next, &meta)?;
                next.tables.insert(meta.id, Arc::new(meta));
            }
            CatalogChange::Stream(s) => push(&mut next.streams, s.id.0, s, "stream")?,
            CatalogChange::Origin(o) => push(&mut next.origins, o.id.0, o, "origin")?,
            CatalogChange::Source(s) => push(&mut next.sources, s.id.0, s, "source")?,
        }
    }
    Ok(next)
}

fn push<T>(list: &mut Vec<T>, id: u32, item: T, what: &str) -> Result<(), Error> {
    if id as usize != list.len() {
        let wanted = list.len();
        return Err(Error::new(ErrorKind::Invalid, format!("the next {what} has number {wanted}, not {id}")));
    }
    list.push(item);
    Ok(())
}

fn check_table(catalog: &Catalog, meta: &crate::schema::TableMeta) -> Result<(), Error> {
    let invalid = |m: String| Err(Error::new(ErrorKind::Invalid, m));
    if meta.schemas.is_empty() {
        return invalid(format!("table {} has no schema", meta.name));
    }
    if let Some(other) = catalog.table(&meta.name)
        && other.id != meta.id
    {
        return invalid(format!("there is a table {} already", meta.name));
    }
    for (_, schema) in &meta.schemas {
        if schema.columns.iter().enumerate().any(|(i, c)| c.id.0 as usize != i) {
            return invalid(format!("columns of table {} are not numbered in order", meta.name));
        }
    }
    Ok(())
}

impl Shared {
    /// See [`super::Engine::commit`].
    pub fn commit(&self, request: CommitRequest) -> Result<CommitInfo, Error> {
        // A new schema may make stored columns stale: nobody may write or merge runs meanwhile.
        let widens = request.catalog.iter().any(|c| matches!(c, CatalogChange::Table(_)));
        let manifest = widens.then(|| locked(&self.manifest));
        let mut guard = locked(&self.writer);
        let writer = guard.as_mut().ok_or_else(|| self.read_only())?;
        if writer.in_doubt {
            return Err(Error::new(ErrorKind::Io, "an earlier commit failed and is in doubt").hint(
                "close the store and open it again; intake goes on from the position that was stored",
            ));
        }
        let view = self.view();
        let commit = CommitSeq(view.commit.0 + 1);
        let at = next_instant(writer.last_at, self.components.clock.now_us())
            .ok_or_else(|| Error::new(ErrorKind::Limit, "the clock has reached the end of the time axis"))?;
        let prepared = Prepared::new(&view, request, FrameContext { commit, commit_at: at })?;
        let place = self.write(writer, &prepared)?;
        writer.last_at = at;
        let info = prepared.info.clone();
        // The frame stands: if it cannot be shown, only reopening tells.
        let shown = prepared.publish(&view, place).and_then(|next| self.show(next, widens));
        let stale = shown.inspect_err(|_| writer.in_doubt = true)?;
        drop(guard);
        match manifest {
            Some(manifest) if !stale.is_empty() => {
                self.replace_runs(manifest, &stale, &view.runs_of(&stale))?;
            }
            manifest => drop(manifest),
        }
        self.after_commit()?;
        Ok(info)
    }

    /// Publishes the view of a commit; returns the tables whose rows it had to take anew.
    fn show(&self, next: View, widens: bool) -> Result<Vec<TableId>, Error> {
        let stale = if widens { next.stale_tables() } else { Vec::new() };
        self.publish(if stale.is_empty() { next } else { self.anew(next, &stale)? });
        Ok(stale)
    }

    fn write(&self, writer: &mut Writer, prepared: &Prepared) -> Result<FramePlace, Error> {
        let mut secret = [0u8; 32];
        self.components
            .entropy
            .fill(&mut secret)
            .map_err(|e| Error::new(ErrorKind::Io, format!("no random bytes for a commit: {e}")))?;
        let context = prepared.context;
        let mut frame = FrameBuilder::new(FrameSecret(secret));
        for (kind, bytes) in &prepared.sections {
            frame.section(*kind, bytes)?;
        }
        for rows in &prepared.rows {
            let version = prepared.catalog.tables.get(&rows.table).map_or(0, |t| t.schema().version);
            frame.rows(rows.table, version, &rows.ends, &rows.bytes)?;
        }
        let appended = writer.log.append(frame.seal(), context.commit, context.commit_at);
        writer.in_doubt = writer.log.is_in_doubt();
        Ok(appended?)
    }
}

/// A commit that was checked and can be written.
struct Prepared {
    context: FrameContext,
    catalog: Arc<Catalog>,
    ranks_changed: bool,
    rows: Vec<CommittedRows>,
    sections: Vec<(u8, Vec<u8>)>,
    info: CommitInfo,
}

impl Prepared {
    fn new(view: &View, request: CommitRequest, context: FrameContext) -> Result<Prepared, Error> {
        let mut sections = Vec::new();
        let ranks_changed = request.catalog.iter().any(|c| !matches!(c, CatalogChange::Table(_)));
        let mut catalog = view.catalog.clone();
        if !request.catalog.is_empty() {
            let changes: Vec<CatalogChange> =
                request.catalog.into_iter().map(|c| stamped(c, context.commit)).collect();
            sections.push((section::CATALOG, json(&changes)?));
            catalog = Arc::new(apply_changes(&view.catalog, changes)?);
        }
        if !request.positions.is_empty() {
            sections.push((section::POSITIONS, json(&request.positions)?));
            Arc::make_mut(&mut catalog).positions.extend(request.positions);
        }
        if !request.quarantine.is_empty() {
            sections.push((section::QUARANTINE, json::<Vec<Quarantined>>(&request.quarantine)?));
        }
        let rows = committed(&catalog, request.blocks, context)?;
        check_resolved(view, &request.resolved)?;
        let section = InfoSection {
            events: rows.iter().map(|r| r.ends.len() as u64).sum(),
            quarantined: request.quarantine.len() as u64,
            resolved: request.resolved,
            note: request.note,
        };
        sections.push((section::INFO, json(&section)?));
        let info = section.commit(context);
        Ok(Prepared { context, catalog, ranks_changed, rows, sections, info })
    }

    fn publish(self, view: &View, place: FramePlace) -> Result<View, Error> {
        let mut next = view.clone();
        next.commit = self.context.commit;
        next.commit_at = Some(self.context.commit_at);
        next.catalog = self.catalog;
        if self.ranks_changed {
            next.ranks = Arc::new(Ranks::of(&next.catalog));
        }
        for rows in self.rows {
            add_rows(&mut next, rows)?;
        }
        let record = CommitRecord { info: self.info, place };
        next.commits.write().unwrap_or_else(|poisoned| poisoned.into_inner()).push(record);
        Ok(next)
    }
}

/// Adds the rows of a commit to a view that has the commit's catalog and ranks.
pub(crate) fn add_rows(view: &mut View, rows: CommittedRows) -> Result<(), Error> {
    let Some(meta) = view.catalog.tables.get(&rows.table).cloned() else {
        return Err(Error::new(
            ErrorKind::Damaged,
            format!("a commit has rows of unknown table {}", rows.table.0),
        ));
    };
    let entry = view.tables.entry(rows.table).or_default();
    let truncates = truncates_of(&rows)?;
    let table = Arc::make_mut(entry);
    if !truncates.is_empty() {
        Arc::make_mut(&mut table.truncates).extend(truncates);
    }
    let schema = Arc::new(meta.schema().clone());
    let ranks = view.ranks.for_table(&meta).clone();
    table.memory.push(Arc::new(MemoryBatch::new(schema, rows, ranks, meta.system_declared)));
    Ok(())
}

fn committed(
    catalog: &Catalog,
    blocks: Vec<RowBlock>,
    context: FrameContext,
) -> Result<Vec<CommittedRows>, Error> {
    let mut rows: Vec<CommittedRows> = Vec::with_capacity(blocks.len());
    for block in blocks.into_iter().filter(|b| !b.ends.is_empty()) {
        if !catalog.tables.contains_key(&block.table) {
            return Err(Error::new(ErrorKind::Invalid, format!("there is no table {}", block.table.0)));
        }
        let ascending = block.ends.windows(2).all(|w| w[0] <= w[1]);
        if !ascending || block.ends.last().is_some_and(|e| *e as usize != block.bytes.len()) {
            return Err(Error::new(ErrorKind::Invalid, "the ends of a row block do not fit its bytes"));
        }
        rows.push(CommittedRows {
            context,
            table: block.table,
            ends: block.ends,
            bytes: Bytes::from(block.bytes),
        });
    }
    Ok(rows)
}

fn stamped(change: CatalogChange, commit: CommitSeq) -> CatalogChange {
    match change {
        CatalogChange::Table(mut meta) => {
            meta.schemas.iter_mut().filter(|(seq, _)| *seq == 0).for_each(|(seq, _)| *seq = commit.0);
            CatalogChange::Table(meta)
        }
        other => other,
    }
}

fn json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value)
        .map_err(|e| Error::new(ErrorKind::Invalid, format!("a commit cannot be written: {e}")))
}
