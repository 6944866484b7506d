//! Whether everything that is derived from the log is what the log says. The log is read once more,
//! and each event is reduced to a number that depends on all it holds; sums of these numbers, by table
//! and commit, are compared with those of runs and memory, whose order plays no part.

use super::catalog::Catalog;
use super::commits::CommitRecord;
use super::error::{Error, ErrorKind};
use super::history::History;
use super::manifest::Manifest;
use super::memory::MemoryBatch;
use super::open::empty_view;
use super::replay::take_head;
use super::runs::RunSource;
use super::scan::{extend_batch, internal};
use super::shared::Shared;
use super::view::{TableView, View};
use crate::event::{EventColumns, event_schema};
use crate::id::TableId;
use crate::log::Start;
use crate::run::{EventOrder, sort_batch};
use crate::schema::{TableMeta, TableSchema};
use arrow::array::{RecordBatch, new_null_array};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, SchemaRef};
use arrow::row::{RowConverter, SortField};
use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// Differences that are told one by one.
const TOLD_MAX: usize = 100;

/// What [`super::Engine::verify_full`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FullReport {
    /// Commits that were derived again.
    pub commits: u64,
    /// Events that were compared.
    pub events: u64,
    /// Everything that is not what the log says, as text for people; empty = all of it is.
    pub damage: Vec<String>,
}

/// Number of events and the sum of what they are reduced to.
type Sum = (u64, u128);

/// Sums by commit.
type Sums = BTreeMap<u64, Sum>;

impl Shared {
    /// See [`super::Engine::verify_full`].
    pub fn verify_full(&self) -> Result<FullReport, Error> {
        let view = self.view();
        let mut derived = empty_view(&Manifest::empty(self.store_id.clone()), Vec::new());
        let mut expected: BTreeMap<TableId, Sums> = BTreeMap::new();
        let mut report = FullReport::default();
        // Rows that the log has given up and the runs do not give.
        let mut lost: Vec<(TableId, u64)> = Vec::new();
        for frame in History::of(&view).fill(self.open_log()?.read_from(Start::Oldest)?, None) {
            let (place, frame, rows) = frame?;
            if frame.sequence > view.commit {
                break;
            }
            take_head(&mut derived, place, &frame)?;
            for (rows, block) in rows.into_iter().zip(&frame.blocks) {
                let rows = match rows {
                    Ok(rows) => rows,
                    Err(e) if e.kind == ErrorKind::Damaged => {
                        lost.push((block.table, frame.sequence.0));
                        if report.damage.last() != Some(&e.message) {
                            report.damage.push(e.message);
                        }
                        continue;
                    }
                    Err(e) => return Err(e),
                };
                let table = rows.table;
                let Some(meta) = view.catalog.tables.get(&table) else {
                    report.damage.push(format!("table {} is in the log and not in the catalog", table.0));
                    continue;
                };
                let ranks = view.ranks.for_table(meta).clone();
                let schema = Arc::new(meta.schema().clone());
                let batch = MemoryBatch::new(schema, rows, ranks, meta.system_declared).sorted()?;
                report.events += add(expected.entry(table).or_default(), &batch.plain, meta.schema())?;
            }
        }
        report.commits = derived.commit.0;
        let shrunk: Vec<u64> = self.segments().list()?.iter().filter(|s| s.shrunk).map(|s| s.id).collect();
        compare_state(&view, &derived, &shrunk, &mut report.damage);
        match self.stored_commits()? {
            Ok(stored) => {
                compare_commits("the list on disk", &stored, &derived, &shrunk, &mut report.damage);
            }
            Err(what) => report.damage.push(what),
        }
        for (id, meta) in &view.catalog.tables {
            let parts = view.tables.get(id).cloned().unwrap_or_default();
            let mut found = found_in(&parts, &view, meta, &mut report.damage)?;
            found.retain(|commit, _| !lost.contains(&(*id, *commit)));
            compare_sums(&meta.name, &expected.remove(id).unwrap_or_default(), &found, &mut report.damage);
        }
        // Its entries are compared with the runs, which were compared with the log.
        report.damage.extend(self.check_index()?);
        Ok(report)
    }
}

/// The sums of all events that runs and memory hold; notes what stands out of order.
fn found_in(
    parts: &TableView,
    view: &View,
    meta: &TableMeta,
    damage: &mut Vec<String>,
) -> Result<Sums, Error> {
    let schema = meta.schema();
    let order = EventOrder { ranks: view.ranks.for_table(meta), system_declared: meta.system_declared };
    let mut found = Sums::new();
    for run in &parts.runs {
        if let Err(e) = read_run(run, schema, order, &mut found, damage) {
            if e.kind != ErrorKind::Damaged {
                return Err(e);
            }
            damage.push(e.message);
        }
    }
    for batch in &parts.memory {
        let plain = extend_batch(&batch.sorted()?.plain, &batch.schema, schema)?;
        add(&mut found, &plain, schema)?;
    }
    Ok(found)
}

fn read_run(
    run: &RunSource,
    schema: &TableSchema,
    order: EventOrder<'_>,
    found: &mut Sums,
    damage: &mut Vec<String>,
) -> Result<(), Error> {
    let own = event_schema(&run.schema);
    let names: Vec<&str> = own.fields().iter().map(|f| f.name().as_str()).collect();
    let mut last: Option<RecordBatch> = None;
    let mut in_order = true;
    for batch in run.reader.scan(&names, 0..run.meta().rows)? {
        let batch = extend_batch(&in_order_of(&own, &batch?)?, &run.schema, schema)?;
        add(found, &batch, schema)?;
        if in_order && batch.num_rows() > 0 {
            in_order = continues(last.as_ref(), &batch, order)?;
            last = Some(batch.slice(batch.num_rows() - 1, 1));
        }
    }
    if !in_order {
        damage.push(format!("run {}: its events are out of order", run.meta().file_name()));
    }
    Ok(())
}

/// Whether a batch is in order and goes on from the one before.
fn continues(last: Option<&RecordBatch>, batch: &RecordBatch, order: EventOrder<'_>) -> Result<bool, Error> {
    let joined = match last {
        Some(last) => concat_batches(&batch.schema(), [last, batch]).map_err(internal)?,
        None => batch.clone(),
    };
    Ok(sort_batch(&joined, order)? == joined)
}

/// A run gives its columns in the order of its file, and none that it does not have.
pub(crate) fn in_order_of(own: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch, Error> {
    let column = |f: &Arc<Field>| {
        let found = batch.column_by_name(f.name()).filter(|c| c.data_type() == f.data_type());
        found.cloned().unwrap_or_else(|| new_null_array(f.data_type(), batch.num_rows()))
    };
    RecordBatch::try_new(own.clone(), own.fields().iter().map(column).collect()).map_err(internal)
}

/// Adds the events of a batch; returns how many.
fn add(sums: &mut Sums, batch: &RecordBatch, schema: &TableSchema) -> Result<u64, Error> {
    let events = EventColumns::new(batch.clone()).map_err(internal)?;
    // Masks may be as wide as the schema was when they were written, so their bits are taken one by
    // one; every other column counts as it is.
    let plain: Vec<usize> = (0..batch.num_columns()).filter(|i| !(9..12).contains(i)).collect();
    let batch = batch.project(&plain).map_err(internal)?;
    let fields = batch.schema().fields().iter().map(|f| SortField::new(f.data_type().clone())).collect();
    let converter = RowConverter::new(fields).map_err(internal)?;
    let rows = converter.convert_columns(batch.columns()).map_err(internal)?;
    let mut bytes = Vec::new();
    for i in 0..batch.num_rows() {
        bytes.clear();
        bytes.extend_from_slice(rows.row(i).as_ref());
        bytes.extend(
            schema
                .columns
                .iter()
                .map(|c| u8::from(events.authors(i, c.id)) | u8::from(events.is_marked(i, c.id)) << 1),
        );
        let sum = sums.entry(events.commit().value(i)).or_default();
        *sum = (sum.0 + 1, sum.1.wrapping_add(xxh3_128(&bytes)));
    }
    Ok(batch.num_rows() as u64)
}

fn compare_sums(table: &str, expected: &Sums, found: &Sums, damage: &mut Vec<String>) {
    let none = (0, 0);
    let mut commits: Vec<u64> = expected.keys().chain(found.keys()).copied().collect();
    commits.sort_unstable();
    commits.dedup();
    let different = commits.iter().filter(|c| expected.get(c) != found.get(c));
    for (told, commit) in different.clone().enumerate() {
        if told == TOLD_MAX {
            damage.push(format!("table {table}: and {} more commits", different.count() - told));
            break;
        }
        let ((wanted, _), (there, _)) =
            (expected.get(commit).unwrap_or(&none), found.get(commit).unwrap_or(&none));
        damage.push(if wanted == there {
            format!("table {table}, commit {commit}: {there} events are there, with other contents")
        } else {
            format!("table {table}, commit {commit}: {there} events are there, the log has {wanted}")
        });
    }
}

/// Compares all that is no event.
fn compare_state(view: &View, derived: &View, shrunk: &[u64], damage: &mut Vec<String>) {
    if derived.commit != view.commit {
        let what = format!("the log has {} commits, the store {}", derived.commit, view.commit);
        damage.push(what);
    }
    let ours = view.commits.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
    let ours = &ours[..(view.commit.0 as usize).min(ours.len())];
    compare_commits("the store", ours, derived, shrunk, damage);
    let (a, b): (&Catalog, &Catalog) = (&view.catalog, &derived.catalog);
    for (same, what) in [
        (a.tables == b.tables, "tables"),
        (a.streams == b.streams, "streams"),
        (a.origins == b.origins, "origins"),
        (a.sources == b.sources, "sources"),
        (a.positions == b.positions, "positions of sources"),
    ] {
        if !same {
            damage.push(format!("the {what} of the catalog are not those of the log"));
        }
    }
}

fn compare_commits(
    whose: &str,
    ours: &[CommitRecord],
    derived: &View,
    shrunk: &[u64],
    damage: &mut Vec<String>,
) {
    let theirs = derived.commits.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    // Shrinking a segment moves its frames; the list of commits says where they were written to.
    let same = |a: &CommitRecord, b: &CommitRecord| {
        let frame = |c: &CommitRecord| (c.place.segment, c.place.sequence);
        a.info == b.info && (a.place == b.place || shrunk.contains(&a.place.segment) && frame(a) == frame(b))
    };
    for (a, b) in ours.iter().zip(theirs.iter()).filter(|(a, b)| !same(a, b)).take(TOLD_MAX) {
        damage.push(format!("commit {}: what {whose} says of it is not what its frame says", a.info.seq));
        debug_assert_eq!(a.info.seq, b.info.seq, "commits are numbered from 1");
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
