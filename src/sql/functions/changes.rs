//! `changes('t', from [, to])`: what each commit changed in the latest state, as a change data feed.
//!
//! For every key that a commit of `from..=to` touched, the row that was the latest state of the
//! latest belief before the commit is compared with the one after it. A commit that changes nothing
//! there (a late event that does not overrule) has no rows.

use super::arguments::Arguments;
use super::computed::{Batches, ComputedTable, Describe, Make};
use super::history::{WholeKeys, event_columns, events};
use crate::sql::clock::Point;
use crate::sql::context::QueryContext;
use crate::sql::error::{SqlError, storage_error};
use crate::sql::keys::{describe_keys, key_filter};
use crate::sql::table::{axis_type, column_fields};
use asofdb_storage::engine::{Bounds, KeyFilter, PointRequest, ScanCounts, Touching};
use asofdb_storage::event::Op;
use asofdb_storage::id::ColumnId;
use asofdb_storage::schema::{TableMeta, TableSchema};
use asofdb_storage::time::{AxisType, CommitSeq};
use datafusion::arrow::array::{
    Array, ArrayRef, DynComparator, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt32Array, make_comparator,
};
use datafusion::arrow::compute::{SortOptions, cast, take};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Keys and commits that are compared in one pass.
const TOUCHES_MAX: usize = 4_096;

/// The columns after the table's own.
const CHANGE_COLUMNS: [&str; 3] = ["_change_type", "_commit_version", "_commit_timestamp"];

/// The change feed of a table.
pub(crate) fn table(
    context: &Arc<QueryContext>,
    arguments: &Arguments,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    arguments.expect(2, 3, "'table', from_commit, to_commit")?;
    let meta = arguments.table(0, context)?;
    arguments.note_session_clocks(context);
    if meta.schema().key.is_empty() {
        return Err(SqlError::unsupported(format!("changes(): {} has no key", meta.name))
            .hint(format!("history('{}') shows its events", meta.name)));
    }
    let Range { from, to } = Range::of(arguments, context)?;
    let shown = context.set_apart(&meta.name, meta.schema_at(to), &CHANGE_COLUMNS);
    let schema = schema_of(&shown);
    let label = format!("changes({}), commits {from} to {to}", meta.name);
    let (context, out) = (context.clone(), schema.clone());
    let keyed = shown.clone();
    let describe: Describe =
        Arc::new(move |filters| describe_keys(&key_filter(&keyed, filters), &keyed, filters));
    let make: Make = Arc::new(move |asked| {
        let counts = asked.counts.clone();
        let mut feed = Feed::new(context.clone(), meta.clone(), out.clone(), from.0..=to.0, counts)?;
        feed.keep_keys(&key_filter(&shown, &asked.filters));
        let columns = asked.columns.clone();
        Ok(Box::new(feed.map(move |batch| Ok(batch?.project(&columns)?))) as Batches)
    });
    Ok(Arc::new(ComputedTable { label, schema, make, describe: Some(describe) }))
}

/// Commits, both included; empty if `from` is the one after `to`.
struct Range {
    from: CommitSeq,
    to: CommitSeq,
}

impl Range {
    /// An instant stands for the first commit at or after it, or for the last at or before it.
    fn of(arguments: &Arguments, context: &QueryContext) -> Result<Range, SqlError> {
        let null =
            || SqlError::invalid("changes(): a commit is NULL").hint("leave the second one out for all");
        let begin = arguments.point(1)?.ok_or_else(null)?;
        let end = arguments.values.get(2).map(|_| arguments.point(2)?.ok_or_else(null)).transpose()?;
        let to = end.map_or_else(|| context.default_commit(), |p| context.commit(p))?;
        let next = CommitSeq(to.0.saturating_add(1));
        let first_from = |us: i64| CommitSeq(context.reader.commit_at_or_before(us.saturating_sub(1)).0 + 1);
        let from = match begin {
            Point::Instant(us) => first_from(us),
            Point::Now => first_from(context.now),
            // Where the last look ended there may be nothing new.
            Point::Integer(n) if end.is_none() && u64::try_from(n) == Ok(next.0) => next,
            Point::Integer(_) => context.commit(begin)?,
        };
        let turned = match (begin, end) {
            (Point::Integer(a), Some(Point::Integer(b))) | (Point::Instant(a), Some(Point::Instant(b))) => {
                a > b
            }
            _ => from > next,
        };
        if turned {
            return Err(SqlError::invalid(format!("changes(): commit {from} lies after commit {to}"))
                .hint("both are included, the earlier comes first"));
        }
        Ok(Range { from, to })
    }
}

fn schema_of(schema: &TableSchema) -> SchemaRef {
    let mut fields = column_fields(schema);
    let types = [DataType::Utf8, DataType::Int64, axis_type(AxisType::Instant)];
    fields.extend(CHANGE_COLUMNS.iter().zip(types).map(|(name, ty)| Field::new(*name, ty, true)));
    Arc::new(Schema::new(fields))
}

/// A key and a commit that touched it.
type Touch = (Vec<u8>, u64);

struct Feed {
    context: Arc<QueryContext>,
    meta: Arc<TableMeta>,
    schema: SchemaRef,
    commits: RangeInclusive<u64>,
    commit_at: HashMap<u64, i64>,
    keys: Option<WholeKeys>,
    /// Commits that truncated the table touch every key.
    truncates: BTreeSet<u64>,
    /// Commits that touched a key through a key change: its old key, which the history shows at the
    /// new key only, and the keys it became, which late events on it reach (rule B8).
    moved: BTreeMap<Vec<u8>, BTreeSet<u64>>,
    touches: VecDeque<Touch>,
    counts: Arc<ScanCounts>,
}

/// The keys that each old key became.
#[derive(Default)]
struct Moves(BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>);

impl Moves {
    /// What touches a key touches the keys it became.
    fn spread(&self, touched: &mut BTreeMap<Vec<u8>, BTreeSet<u64>>) {
        let mut open: Vec<(Vec<u8>, u64)> =
            touched.iter().flat_map(|(k, cs)| cs.iter().map(|c| (k.clone(), *c))).collect();
        while let Some((key, commit)) = open.pop() {
            for new in self.0.get(&key).into_iter().flatten() {
                if touched.entry(new.clone()).or_default().insert(commit) {
                    open.push((new.clone(), commit));
                }
            }
        }
    }
}

impl Feed {
    fn new(
        context: Arc<QueryContext>,
        meta: Arc<TableMeta>,
        schema: SchemaRef,
        commits: RangeInclusive<u64>,
        counts: Arc<ScanCounts>,
    ) -> Result<Feed> {
        let infos = context.reader.commits().map_err(storage_error)?;
        // Events are read without their columns: only who was touched matters.
        let (table_schema, none) = (Arc::new(meta.schema().clone()), Vec::new());
        let to = CommitSeq(*commits.end());
        let mut feed = Feed {
            commit_at: infos.iter().map(|c| (c.seq, c.at)).collect(),
            keys: None,
            truncates: BTreeSet::new(),
            moved: BTreeMap::new(),
            touches: VecDeque::new(),
            context,
            meta,
            schema,
            commits,
            counts: counts.clone(),
        };
        if feed.commits.is_empty() {
            return Ok(feed);
        }
        let asked = Touching { commits: feed.commits.clone(), valid: i64::MIN..=i64::MAX, alone: true };
        let touched = feed.context.reader.touched(feed.meta.id, &asked, &counts).map_err(storage_error)?;
        if let Some(touched) = touched {
            feed.touches = touched.into_iter().map(|(key, commit)| (key, commit.0)).collect();
            return Ok(feed);
        }
        let mut moves = Moves::default();
        for batch in
            events(&feed.context, &feed.meta, &table_schema, none.clone(), KeyFilter::All, to, &counts)?
        {
            feed.note_wide_touches(&batch.map_err(storage_error)?, &mut moves)?;
        }
        if !moves.0.is_empty() {
            let old_keys = KeyFilter::Keys(moves.0.keys().cloned().collect());
            for batch in
                events(&feed.context, &feed.meta, &table_schema, none.clone(), old_keys, to, &counts)?
            {
                feed.note_old_key(&batch.map_err(storage_error)?)?;
            }
            moves.spread(&mut feed.moved);
        }
        let all = events(&feed.context, &feed.meta, &table_schema, none, KeyFilter::All, to, &counts)?;
        feed.keys = Some(WholeKeys::new(all));
        Ok(feed)
    }

    /// Leaves out keys that the filters do not ask for, of those that are known by now.
    fn keep_keys(&mut self, keys: &KeyFilter) {
        match keys {
            KeyFilter::All => {}
            // They ascend.
            KeyFilter::Keys(keys) => self.touches.retain(|(key, _)| keys.binary_search(key).is_ok()),
            KeyFilter::Ranges(ranges) => {
                self.touches.retain(|(key, _)| ranges.iter().any(|r| r.from <= *key && *key < r.before));
            }
        }
    }

    fn note_wide_touches(&mut self, batch: &RecordBatch, moves: &mut Moves) -> Result<()> {
        let e = event_columns(batch)?;
        for i in 0..e.len() {
            let (commit, moved) = (e.commit().value(i), e.previous().is_valid(i));
            let asked = self.commits.contains(&commit);
            if asked && e.operation(i) == Op::Truncate {
                self.truncates.insert(commit);
            }
            if moved {
                let old = e.previous().value(i).to_vec();
                moves.0.entry(old.clone()).or_default().insert(e.key().value(i).to_vec());
                if asked {
                    self.moved.entry(old).or_default().insert(commit);
                }
            }
        }
        Ok(())
    }

    fn note_old_key(&mut self, batch: &RecordBatch) -> Result<()> {
        let e = event_columns(batch)?;
        for i in (0..e.len()).filter(|i| self.commits.contains(&e.commit().value(*i))) {
            let key = e.key().value(i);
            if !key.is_empty() {
                self.moved.entry(key.to_vec()).or_default().insert(e.commit().value(i));
            }
        }
        Ok(())
    }

    /// Reads on until there is enough to compare; false at the end.
    fn read_touches(&mut self) -> Result<bool> {
        while self.touches.len() < TOUCHES_MAX {
            let Some(batch) = self.keys.as_mut().and_then(Iterator::next) else {
                self.keys = None;
                let moved = std::mem::take(&mut self.moved);
                self.touches.extend(
                    moved.into_iter().flat_map(|(k, cs)| cs.into_iter().map(move |c| (k.clone(), c))),
                );
                return Ok(!self.touches.is_empty());
            };
            self.add_keys(&batch?)?;
        }
        Ok(true)
    }

    fn add_keys(&mut self, batch: &RecordBatch) -> Result<()> {
        let e = event_columns(batch)?;
        let mut i = 0;
        while i < e.len() {
            let key = e.key().value(i);
            let mut commits = self.truncates.clone();
            commits.extend(self.moved.remove(key).unwrap_or_default());
            while i < e.len() && e.key().value(i) == key {
                let commit = e.commit().value(i);
                if self.commits.contains(&commit) {
                    commits.insert(commit);
                }
                i += 1;
            }
            if !key.is_empty() {
                self.touches.extend(commits.into_iter().map(|c| (key.to_vec(), c)));
            }
        }
        Ok(())
    }

    fn compare(&self, touches: &[Touch]) -> Result<RecordBatch> {
        let request = |key: &Vec<u8>, commit: u64| PointRequest {
            key: key.clone(),
            bounds: Bounds::latest(CommitSeq(commit)),
        };
        let requests: Vec<_> =
            touches.iter().flat_map(|(k, c)| [request(k, c.saturating_sub(1)), request(k, *c)]).collect();
        let own = self.schema.fields().len() - CHANGE_COLUMNS.len();
        let columns: Vec<ColumnId> = (0..own as u32).map(ColumnId).collect();
        let (found, rows) = self
            .context
            .reader
            .points(self.meta.id, &requests, &columns, &self.counts)
            .map_err(storage_error)?;
        let mut row_of: Vec<Option<u32>> = vec![None; requests.len()];
        for (row, request) in found.iter().enumerate() {
            row_of[*request as usize] = Some(row as u32);
        }
        let same = Same::new(&rows)?;
        let mut out = Out::default();
        for ((_, commit), pair) in touches.iter().zip(row_of.chunks_exact(2)) {
            match (pair[0], pair[1]) {
                (None, Some(after)) => out.push(after, "insert", *commit),
                (Some(before), None) => out.push(before, "delete", *commit),
                (Some(before), Some(after)) if !same.rows(before as usize, after as usize) => {
                    out.push(before, "update_preimage", *commit);
                    out.push(after, "update_postimage", *commit);
                }
                _ => {}
            }
        }
        out.batch(&rows, self)
    }
}

impl Iterator for Feed {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.read_touches() {
            Ok(false) => None,
            Ok(true) => {
                let n = self.touches.len().min(TOUCHES_MAX);
                let touches: Vec<Touch> = self.touches.drain(..n).collect();
                Some(self.compare(&touches))
            }
            Err(e) => Some(Err(e)),
        }
    }
}

/// Whether two rows of a batch are equal in every column.
struct Same(Vec<DynComparator>);

impl Same {
    fn new(rows: &RecordBatch) -> Result<Same> {
        let comparator = |c: &ArrayRef| make_comparator(c, c, SortOptions::default());
        Ok(Same(rows.columns().iter().map(comparator).collect::<Result<_, _>>()?))
    }

    fn rows(&self, a: usize, b: usize) -> bool {
        self.0.iter().all(|compare| compare(a, b).is_eq())
    }
}

#[derive(Default)]
struct Out {
    rows: Vec<u32>,
    kinds: Vec<&'static str>,
    commits: Vec<i64>,
}

impl Out {
    fn push(&mut self, row: u32, kind: &'static str, commit: u64) {
        self.rows.push(row);
        self.kinds.push(kind);
        self.commits.push(commit as i64);
    }

    fn batch(self, rows: &RecordBatch, feed: &Feed) -> Result<RecordBatch> {
        let picked = UInt32Array::from(self.rows);
        // Rows come in the newest types, and are shown in those of the last commit asked for.
        let shown = rows.columns().iter().zip(feed.schema.fields());
        let mut columns: Vec<ArrayRef> = shown
            .map(|(c, field)| cast(&take(c, &picked, None)?, field.data_type()))
            .collect::<Result<_, _>>()?;
        let at: TimestampMicrosecondArray =
            self.commits.iter().map(|c| feed.commit_at.get(&(*c as u64)).copied()).collect();
        columns.push(Arc::new(StringArray::from(self.kinds)));
        columns.push(Arc::new(Int64Array::from(self.commits)));
        columns.push(Arc::new(at.with_timezone("UTC")));
        Ok(RecordBatch::try_new(feed.schema.clone(), columns)?)
    }
}
