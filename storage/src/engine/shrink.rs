//! Shrinking the log: sealed segments give up the rows that stand in compacted runs.
//!
//! A segment is written anew, aside and without its rows, while each block is reduced to a sum over
//! them. Then the runs are read and give the sums of the rows that would be made of them. Where all are
//! the same, the new segment takes the place of the old one; where some differ, what differs is looked
//! for and kept first. Nothing is given up that cannot be made again to the byte, whatever is wrong with
//! runs or with this code.

use super::error::{Error, ErrorKind};
use super::history::{for_each_batch, other_types};
use super::merging::Merging;
use super::runs::RunSource;
use super::shared::{Shared, locked};
use super::view::View;
use crate::event::{FrameContext, Habit, Recipe, Recoder, RowView, Shape, guess_rows, order_of};
use crate::id::TableId;
use crate::log::{BlockForm, Frame, RowBlock, Segment};
use crate::run::RunFormat;
use crate::schema::{TableMeta, TableSchema};
use crate::time::CommitSeq;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// Rows of a block that are looked at for the habits of who wrote it.
const SAMPLE_ROWS: usize = 200;

/// Blocks of fewer bytes than this give up their rows even if what makes them again takes more.
const SMALL_BLOCK_BYTES: usize = 512;

/// What shrinking the log did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrunk {
    /// Segments that were written anew.
    pub segments: u64,
    /// Bytes that they had.
    pub bytes_before: u64,
    /// Bytes that they have.
    pub bytes_after: u64,
    /// Blocks of rows that had to stay in them.
    pub blocks_kept: u64,
}

/// Number of rows and the sum of what they are reduced to.
type Sum = (u64, u128);

/// The rows of one commit and table.
#[derive(Debug)]
struct Group {
    logged: Sum,
    found: Sum,
    habit: Habit,
    /// `None`: they have to stay.
    order: Option<Shape>,
    schema_version: u32,
    commit_at: i64,
}

/// The groups of a segment by table and commit.
type Groups = BTreeMap<(TableId, u64), Group>;

/// Segments of which the shrunk form was written, with what it rests on.
pub(crate) struct Prepared(Vec<(Segment, Groups)>);

fn add(sum: &mut Sum, row: &[u8]) {
    *sum = (sum.0 + 1, sum.1.wrapping_add(xxh3_128(row)));
}

impl Shared {
    /// Shrinks every sealed segment whose rows all stand in compacted runs. A segment that is written to
    /// is sealed first if that is true of all its rows.
    pub fn shrink_log(&self) -> Result<Shrunk, Error> {
        let _alone = locked(&self.shrinking);
        let safe = self.compacted_up_to(&self.view());
        self.finish_shrinking(self.prepare_shrinking(safe)?)
    }

    /// Flushes, merges everything, and shrinks the log. The number of merges.
    pub fn compact(&self) -> Result<usize, Error> {
        let _alone = locked(&self.shrinking);
        self.flush()?;
        let flushed = CommitSeq(locked(&self.manifest).flushed);
        let (merged, prepared) = match self.options.background {
            // What merging leaves of the processors is enough to read the log.
            true => std::thread::scope(|scope| {
                let prepared = scope.spawn(|| self.prepare_shrinking(flushed));
                let merged = self.merge(Merging::Everything);
                let panicked = |_| Err(Error::new(ErrorKind::Invalid, "shrinking the log panicked"));
                (merged, prepared.join().unwrap_or_else(panicked))
            }),
            false => (self.merge(Merging::Everything), self.prepare_shrinking(flushed)),
        };
        let prepared = prepared?;
        let merged = merged?;
        self.bring_up_index(&|| false);
        self.finish_shrinking(prepared)?;
        Ok(merged)
    }

    /// Writes the shrunk form of segments whose commits are all at or before `safe`.
    fn prepare_shrinking(&self, safe: CommitSeq) -> Result<Prepared, Error> {
        let mut prepared = Vec::new();
        if !self.options.keep_log {
            self.seal(safe)?;
            let view = self.view();
            for segment in self.due(safe)? {
                let mut groups = Groups::new();
                self.segments().write_shrunk(segment.id, |frame| {
                    Ok::<_, Error>(
                        frame.blocks.iter().map(|b| first_recipe(frame, b, &view, &mut groups)).collect(),
                    )
                })?;
                prepared.push((segment, groups));
            }
        }
        Ok(Prepared(prepared))
    }

    /// Compares what was prepared with the runs, and puts it in place.
    fn finish_shrinking(&self, Prepared(mut prepared): Prepared) -> Result<Shrunk, Error> {
        // No run is merged away meanwhile.
        let _alone = locked(&self.merging);
        let (view, segments) = (self.view(), self.segments());
        let safe = self.compacted_up_to(&view);
        let last = |groups: &Groups| groups.keys().map(|(_, commit)| *commit).max().unwrap_or(0);
        let (due, others): (Vec<_>, Vec<_>) =
            prepared.drain(..).partition(|(_, groups)| last(groups) <= safe.0);
        others.iter().try_for_each(|(segment, _)| segments.discard(segment.id))?;
        prepared = due;
        for (table, parts) in &view.tables {
            let Some(meta) = view.catalog.tables.get(table) else { continue };
            let groups = prepared.iter_mut().flat_map(|(_, groups)| groups);
            let groups = groups.filter(|((of, _), _)| of == table).map(|((_, commit), g)| (*commit, g));
            find_in_runs(groups.collect(), meta, &parts.runs)?;
        }
        let mut shrunk = Shrunk::default();
        for (segment, groups) in prepared {
            if !self.put_shrunk(segment, &view, &groups, &mut shrunk)? {
                break;
            }
        }
        Ok(shrunk)
    }

    /// The last commit up to which all events stand in compacted runs.
    fn compacted_up_to(&self, view: &View) -> CommitSeq {
        let flushed = locked(&self.manifest).flushed;
        let runs = view.tables.values().flat_map(|t| &t.runs);
        let young = runs.filter(|r| r.meta().format != RunFormat::Parquet || r.meta().level == 0);
        let first = young.filter_map(|r| r.meta().spans).map(|s| s.commit.min).min();
        CommitSeq(first.map_or(flushed, |first| flushed.min(first.saturating_sub(1))))
    }

    /// Seals the segment that is written to if all its commits are at or before `safe`.
    fn seal(&self, safe: CommitSeq) -> Result<(), Error> {
        let mut writer = locked(&self.writer);
        let writer = writer.as_mut().ok_or_else(|| self.read_only())?;
        if writer.log.last_sequence() <= safe && writer.log.end().1 >= self.options.shrink_bytes_min {
            let rolled = writer.log.roll();
            writer.in_doubt |= writer.log.is_in_doubt();
            rolled?;
        }
        Ok(())
    }

    /// Whole segments whose commits are all at or before `safe`.
    fn due(&self, safe: CommitSeq) -> Result<Vec<Segment>, Error> {
        let segments = self.segments().list()?;
        let due = segments.windows(2).filter(|w| {
            let [this, next] = w else { return false };
            !this.shrunk && next.id == this.id + 1 && this.first < next.first && next.first.0 - 1 <= safe.0
        });
        Ok(due.map(|w| w[0]).collect())
    }

    /// Puts the shrunk form of a segment in its place, after what the runs do not give was added to it.
    /// False if the runs were replaced meanwhile.
    fn put_shrunk(
        &self,
        segment: Segment,
        view: &View,
        groups: &Groups,
        shrunk: &mut Shrunk,
    ) -> Result<bool, Error> {
        let (segments, id) = (self.segments(), segment.id);
        let kept = groups.values().filter(|g| g.order.is_none()).count() as u64;
        let mut refused = 0;
        if groups.values().any(|g| g.order.is_some() && g.logged != g.found) {
            segments.write_shrunk(id, |frame: &Frame| {
                let recipes: Vec<Option<Bytes>> =
                    frame.blocks.iter().map(|block| recipe(frame, block, view, groups)).collect();
                let rows = frame.blocks.iter().zip(&recipes).filter(|(b, r)| !b.is_empty() && r.is_none());
                refused += rows.count() as u64;
                Ok::<_, Error>(recipes)
            })?;
        }
        let manifest = locked(&self.manifest);
        let named = |run: &Arc<RunSource>| manifest.runs.iter().any(|r| r == run.meta());
        if self.commits_files.is_in_doubt() || !view.tables.values().flat_map(|t| &t.runs).all(named) {
            segments.discard(id)?;
            return Ok(false);
        }
        segments.replace(id)?;
        drop(manifest);
        let bytes = segments.list()?.iter().find(|s| s.id == id).map_or(0, |s| s.bytes);
        shrunk.segments += 1;
        shrunk.bytes_before += segment.bytes;
        shrunk.bytes_after += bytes;
        shrunk.blocks_kept += kept.max(refused);
        Ok(true)
    }
}

impl Group {
    fn of(frame: &Frame, block: &RowBlock, then: &TableSchema) -> Group {
        let several = frame.blocks.iter().filter(|b| b.table == block.table).count() > 1;
        let mut logged = (0, 0);
        block.rows().for_each(|row| add(&mut logged, row));
        let mut readable = true;
        let places = block.rows().map_while(|row| match RowView::parse(row) {
            Ok(RowView { head, .. }) => Some((head.origin.0, head.position, head.ordinal)),
            Err(_) => {
                readable = false;
                None
            }
        });
        let order = order_of(places);
        Group {
            logged,
            found: (0, 0),
            habit: Habit::of(block.rows().take(SAMPLE_ROWS), then),
            order: order.filter(|_| readable && !several),
            schema_version: block.schema_version,
            commit_at: frame.instant_us,
        }
    }
}

fn schema_of(meta: &TableMeta, version: u32) -> Option<&TableSchema> {
    meta.schemas.iter().map(|(_, s)| s).find(|s| s.version == version)
}

/// Adds up what the runs of a table give of its groups, which are by commit.
fn find_in_runs(
    groups: Vec<(u64, &mut Group)>,
    meta: &TableMeta,
    runs: &[Arc<RunSource>],
) -> Result<(), Error> {
    let commits = || groups.iter().map(|(commit, _)| *commit);
    let (Some(first), Some(last)) = (commits().min(), commits().max()) else { return Ok(()) };
    let mut by_commit: Vec<Option<(&mut Group, &TableSchema)>> =
        std::iter::repeat_with(|| None).take((last - first + 1) as usize).collect();
    for (commit, group) in groups {
        let then = schema_of(meta, group.schema_version);
        by_commit[(commit - first) as usize] = then.map(|then| (group, then));
    }
    let mut row = Vec::new();
    for run in runs {
        if run.meta().spans.is_none_or(|s| s.commit.max < first || s.commit.min > last) {
            continue;
        }
        for_each_batch(run, |events| {
            let recoder = Recoder::new(events, &run.schema, meta.system_declared);
            let mut recoder = recoder.ok_or_else(|| other_types(run))?;
            for (i, commit) in events.commit().values().iter().enumerate() {
                let at = commit.checked_sub(first).and_then(|at| by_commit.get_mut(at as usize));
                let Some(Some((group, then))) = at else { continue };
                if recoder.is_logged(i) {
                    row.clear();
                    recoder.row(i, then, group.commit_at, group.habit, &mut row);
                    add(&mut group.found, &row);
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// How the rows of a block are made again from runs if nothing but habit and order is needed; `None` if
/// they have to stay.
fn first_recipe(frame: &Frame, block: &RowBlock, view: &View, groups: &mut Groups) -> Option<Bytes> {
    if block.form != BlockForm::Rows {
        return None;
    }
    let then = schema_of(view.catalog.tables.get(&block.table)?, block.schema_version)?;
    let group = Group::of(frame, block, then);
    let order = group.order.clone();
    let habit = group.habit;
    groups.insert((block.table, frame.sequence.0), group);
    Some(Recipe::new(habit, order?).encode().into())
}

/// How the rows of a block are made again from runs; `None` if they have to stay.
fn recipe(frame: &Frame, block: &RowBlock, view: &View, groups: &Groups) -> Option<Bytes> {
    if block.form != BlockForm::Rows {
        return None;
    }
    let group = groups.get(&(block.table, frame.sequence.0))?;
    let mut recipe = Recipe::new(group.habit, group.order.clone()?);
    if group.logged != group.found {
        let meta = view.catalog.tables.get(&block.table)?;
        let then = schema_of(meta, block.schema_version)?;
        let context = FrameContext { commit: frame.sequence, commit_at: frame.instant_us };
        let (ends, bytes) =
            guess_rows(block.rows(), then, meta.system_declared, context, group.habit).ok()?;
        if ends.len() != block.len() {
            return None;
        }
        let (mut sum, mut start) = ((0, 0), 0);
        for (number, (end, row)) in ends.iter().zip(block.rows()).enumerate() {
            let guess = &bytes[start..*end as usize];
            add(&mut sum, guess);
            recipe.note(number as u32, guess, row);
            start = *end as usize;
        }
        // Else the runs do not hold what the log does; `verify --full` says so.
        if sum != group.found {
            return None;
        }
    }
    let recipe = recipe.encode();
    (recipe.len() < block.bytes.len().max(SMALL_BLOCK_BYTES)).then(|| Bytes::from(recipe))
}
