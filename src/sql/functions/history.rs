//! `history('t')`, `ties('t')`, `late('t')`: every event, or those of a kind.

use super::arguments::Arguments;
use super::computed::{Asked, Batches, ComputedTable, Describe, Make};
use super::spans::EventSpans;
use crate::sql::context::QueryContext;
use crate::sql::error::{SqlError, storage_error};
use crate::sql::keys::{describe_keys, key_filter};
use crate::sql::table::{axis_type, column_fields, time_column};
use asofdb_storage::engine::{KeyFilter, ScanCounts, ScanKind, ScanRequest, ScanStream, Touching};
use asofdb_storage::event::columns::META_COLUMNS;
use asofdb_storage::event::{EventColumns, TimeSource};
use asofdb_storage::id::ColumnId;
use asofdb_storage::schema::{TableMeta, TableSchema};
use asofdb_storage::time::CommitSeq;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Int64Array, ListBuilder, RecordBatch,
    RecordBatchOptions, StringArray, StringBuilder, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::{concat_batches, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// The columns after the table's own, in order.
pub(crate) const HISTORY_COLUMNS: [&str; 15] = [
    "_authored",
    "__START_AT",
    "_operation",
    "_cdc_timestamp",
    "_processed_at",
    "_processed_date",
    "_source_db",
    "_source_table",
    "_transaction_id",
    "_stream",
    "_position",
    "_valid_from_source",
    "_ingest_file_name",
    "__COMMIT_SEQ",
    "__COMMIT_AT",
];

/// Which events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    All,
    /// Rule B3: equal in everything before the stream, from different streams, different payloads.
    Ties,
    /// Stored after an event of the same key that precedes them no longer in rule B3 order.
    Late,
}

/// More keys than this are read by a scan of all events.
const TOUCHED_KEYS_MAX: usize = 100_000;

/// What turning events into rows needs.
pub(super) struct Rows {
    context: Arc<QueryContext>,
    meta: Arc<TableMeta>,
    table_schema: Arc<TableSchema>,
    /// The asked columns: those of the table, then those of [`HISTORY_COLUMNS`], by number.
    columns: Vec<usize>,
    /// The columns of the table that come with the events.
    images: Vec<ColumnId>,
    schema: SchemaRef,
    commit_at: HashMap<u64, i64>,
}

/// The table of events that a function shows.
pub(crate) fn table(
    context: &Arc<QueryContext>,
    arguments: &Arguments,
    pick: Pick,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    arguments.expect(1, 1, "'table'")?;
    let meta = arguments.table(0, context)?;
    arguments.note_session_clocks(context);
    let commit = context.default_commit()?;
    let own = meta.schema_at(commit);
    let table_schema = Arc::new(context.set_apart(&meta.name, own, &HISTORY_COLUMNS));
    let schema = Arc::new(Schema::new(fields(&table_schema, &meta)));
    let label = format!("{}({}), commit={commit}", arguments.function, meta.name);
    let (shown, axis) = (table_schema.clone(), meta.valid_axis);
    let describe: Describe = Arc::new(move |filters| {
        let keys = describe_keys(&key_filter(&shown, filters), &shown, filters);
        keys + &EventSpans::of(filters, commit).describe(axis)
    });
    let context = context.clone();
    let make: Make = Arc::new(move |asked| {
        let rows = Rows::new(&context, &meta, &table_schema, asked, pick == Pick::Ties)?;
        let keys = wanted_keys(&context, &meta, &table_schema, asked, commit)?;
        let (images, counts) = (rows.images.clone(), &asked.counts);
        let events = events(&context, &meta, &table_schema, images, keys, commit, counts)?;
        Ok(match pick {
            Pick::All => {
                Box::new(events.map(move |batch| rows.convert(&batch.map_err(storage_error)?))) as Batches
            }
            _ => Box::new(WholeKeys::new(events).map(move |batch| {
                let batch = batch?;
                let mask = rows.mask(&batch, pick)?;
                Ok(filter_record_batch(&rows.convert(&batch)?, &mask)?)
            })),
        })
    });
    Ok(Arc::new(ComputedTable { label, schema, make, describe: Some(describe) }))
}

/// The keys that may have rows which the filters let through.
fn wanted_keys(
    context: &QueryContext,
    meta: &TableMeta,
    schema: &TableSchema,
    asked: &Asked,
    commit: CommitSeq,
) -> Result<KeyFilter> {
    let keys = key_filter(schema, &asked.filters);
    let spans = EventSpans::of(&asked.filters, commit);
    if !matches!(keys, KeyFilter::All) || spans.hold_all() {
        return Ok(keys);
    }
    let touching = Touching { commits: spans.commits, valid: spans.valid, alone: false };
    let touched = context.reader.touched(meta.id, &touching, &asked.counts).map_err(storage_error)?;
    let Some(touched) = touched.filter(|t| t.len() <= TOUCHED_KEYS_MAX) else { return Ok(keys) };
    let mut found: Vec<Vec<u8>> = touched.into_iter().map(|(key, _)| key).collect();
    found.dedup();
    Ok(KeyFilter::Keys(found))
}

/// The events of some keys of a table in key order, as one stream.
pub(crate) fn events(
    context: &QueryContext,
    meta: &TableMeta,
    schema: &Arc<TableSchema>,
    projection: Vec<ColumnId>,
    keys: KeyFilter,
    commit: CommitSeq,
    counts: &Arc<ScanCounts>,
) -> Result<ScanStream> {
    let request = ScanRequest {
        table: meta.id,
        kind: ScanKind::History,
        commit,
        schema: schema.clone(),
        projection,
        keys,
        partitions: 1,
        rows_per_key_max: context.scan.rows_per_key_max,
    };
    let streams = context.reader.scan(&request, counts).map_err(storage_error)?;
    Ok(Box::new(streams.into_iter().flatten()))
}

fn fields(schema: &TableSchema, meta: &TableMeta) -> Vec<Field> {
    let valid = axis_type(meta.valid_axis);
    let mut fields = column_fields(schema);
    fields.extend(HISTORY_COLUMNS.iter().map(|name| Field::new(*name, added_type(name, &valid), true)));
    fields
}

/// The type of a column that is not one of the table.
fn added_type(name: &str, valid: &DataType) -> DataType {
    match name {
        "_authored" => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
        "__START_AT" | "_cdc_timestamp" => valid.clone(),
        "_processed_at" | "__COMMIT_AT" => axis_type(asofdb_storage::time::AxisType::Instant),
        "_processed_date" => DataType::Date32,
        "_position" | "__COMMIT_SEQ" => DataType::Int64,
        _ => DataType::Utf8,
    }
}

/// The typed view of a batch of events.
pub(crate) fn event_columns(batch: &RecordBatch) -> Result<EventColumns> {
    EventColumns::new(batch.clone())
        .map_err(|e| DataFusionError::Internal(format!("events of the store: {e}")))
}

impl Rows {
    /// For the asked columns; `all` brings all columns of the table.
    fn new(
        context: &Arc<QueryContext>,
        meta: &Arc<TableMeta>,
        table_schema: &Arc<TableSchema>,
        asked: &Asked,
        all: bool,
    ) -> Result<Rows> {
        let commits = context.reader.commits().map_err(storage_error)?;
        let schema = Schema::new(fields(table_schema, meta)).project(&asked.columns)?;
        let wanted = |id: &ColumnId| all || asked.columns.contains(&(id.0 as usize));
        Ok(Rows {
            context: context.clone(),
            meta: meta.clone(),
            table_schema: table_schema.clone(),
            columns: asked.columns.clone(),
            images: table_schema.columns.iter().map(|c| c.id).filter(wanted).collect(),
            schema: Arc::new(schema),
            commit_at: commits.iter().map(|c| (c.seq, c.at)).collect(),
        })
    }

    /// For any of the added columns.
    pub(super) fn of_all(
        context: &Arc<QueryContext>,
        meta: &Arc<TableMeta>,
        table_schema: &Arc<TableSchema>,
    ) -> Result<Rows> {
        let asked = Asked { columns: Vec::new(), filters: Vec::new(), counts: Arc::default() };
        Rows::new(context, meta, table_schema, &asked, false)
    }

    /// The type of an added column.
    pub(super) fn type_of(&self, name: &str) -> DataType {
        added_type(name, &axis_type(self.meta.valid_axis))
    }

    fn convert(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let e = event_columns(batch)?;
        let width = self.table_schema.columns.len();
        // What is asked for of the table is part of the images, which ascend.
        let image = |i: usize| self.images.partition_point(|c| (c.0 as usize) < i);
        let column = |i: &usize| match i.checked_sub(width) {
            Some(added) => self.added(HISTORY_COLUMNS[added], &e),
            None => batch.column(META_COLUMNS + image(*i)).clone(),
        };
        let columns = self.columns.iter().map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(e.len()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }

    /// A column that is not one of the table.
    pub(super) fn added(&self, name: &str, e: &EventColumns) -> ArrayRef {
        let n = e.len();
        let catalog = self.context.reader.catalog();
        let origin = |i: usize| catalog.origins.get(e.origin().value(i) as usize);
        let source = |i: usize| catalog.sources.get(e.source().value(i) as usize);
        let at = |i: usize| self.commit_at.get(&e.commit().value(i)).copied();
        let text = |f: &dyn Fn(usize) -> Option<String>| {
            Arc::new((0..n).map(f).collect::<StringArray>()) as ArrayRef
        };
        let instants = |times: TimestampMicrosecondArray| Arc::new(times.with_timezone("UTC")) as ArrayRef;
        let time = |times: &Int64Array| {
            let times: ArrayRef = Arc::new(times.clone());
            time_column(&times, &axis_type(self.meta.valid_axis))
        };
        let day = |i: usize| at(i).map(|t| t.div_euclid(86_400_000_000) as i32);
        let stream = |i: usize| catalog.streams.get(origin(i)?.stream.0 as usize).map(|s| s.name.clone());
        let transaction = |i: usize| {
            let ids = e.transaction_id();
            ids.is_valid(i).then(|| ids.value(i).to_owned())
        };
        match name {
            "_authored" => self.authored(e),
            "__START_AT" => time(e.valid_from()),
            "_operation" => text(&|i| Some(e.operation(i).word().to_owned())),
            "_cdc_timestamp" => time(e.event_time()),
            "_processed_at" | "__COMMIT_AT" => instants((0..n).map(at).collect()),
            "_processed_date" => Arc::new((0..n).map(day).collect::<Date32Array>()),
            "_source_db" => text(&|i| source(i)?.database.clone()),
            "_source_table" => text(&|i| source(i)?.table.clone()),
            "_transaction_id" => text(&transaction),
            "_stream" => text(&stream),
            "_position" => {
                Arc::new((0..n).map(|i| Some(e.position().value(i) as i64)).collect::<Int64Array>())
            }
            "_valid_from_source" => {
                text(&|i| TimeSource::from_u8(e.time_source().value(i)).map(|t| t.word().to_owned()))
            }
            "_ingest_file_name" => text(&|i| origin(i)?.path.clone()),
            _ => Arc::new((0..n).map(|i| Some(e.commit().value(i) as i64)).collect::<Int64Array>()),
        }
    }

    /// The names of the columns each event writes.
    fn authored(&self, e: &EventColumns) -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for i in 0..e.len() {
            for column in self.table_schema.columns.iter().filter(|c| e.authors(i, c.id)) {
                lists.values().append_value(&column.name);
            }
            lists.append(true);
        }
        Arc::new(lists.finish())
    }

    /// Which events of whole keys are wanted.
    fn mask(&self, batch: &RecordBatch, pick: Pick) -> Result<BooleanArray> {
        let e = event_columns(batch)?;
        let mut wanted = vec![false; e.len()];
        let mut start = 0;
        while start < e.len() {
            let key = e.key().value(start);
            let end = (start..e.len()).find(|i| e.key().value(*i) != key).unwrap_or(e.len());
            match pick {
                Pick::Ties => self.ties(batch, &e, start..end, &mut wanted)?,
                _ => late(&e, start..end, &mut wanted),
            }
            start = end;
        }
        Ok(wanted.into())
    }

    fn ties(
        &self,
        batch: &RecordBatch,
        e: &EventColumns,
        group: std::ops::Range<usize>,
        wanted: &mut [bool],
    ) -> Result<()> {
        let stream = |i: usize| {
            self.context.reader.catalog().origins.get(e.origin().value(i) as usize).map(|o| o.stream)
        };
        let tie = |i: usize| e.ties().is_valid(i).then(|| e.ties().value(i));
        let place = |i: usize| {
            (e.valid_from().value(i), tie(i), self.meta.system_declared.then(|| e.system().value(i)))
        };
        let same_payload = |a: usize, b: usize| {
            e.op().value(a) == e.op().value(b)
                && e.mask().value(a) == e.mask().value(b)
                && batch.columns()[META_COLUMNS..]
                    .iter()
                    .all(|c| c.slice(a, 1).as_ref() == c.slice(b, 1).as_ref())
        };
        for i in group.clone().skip(1) {
            for j in (group.start..i).rev().take_while(|j| place(*j) == place(i)) {
                if stream(i) != stream(j) && !same_payload(i, j) {
                    wanted[i] = true;
                    wanted[j] = true;
                }
            }
        }
        Ok(())
    }
}

/// Events that came after one that follows them in rule B3 order: by commit, or by position within
/// one origin.
fn late(e: &EventColumns, group: std::ops::Range<usize>, wanted: &mut [bool]) {
    let mut first_commit = u64::MAX;
    let mut first_position: HashMap<u32, u64> = HashMap::new();
    for i in group.rev() {
        let (commit, origin, position) = (e.commit().value(i), e.origin().value(i), e.position().value(i));
        let by_position = first_position.get(&origin).is_some_and(|p| *p < position);
        wanted[i] = first_commit < commit || by_position;
        first_commit = first_commit.min(commit);
        first_position.entry(origin).and_modify(|p| *p = (*p).min(position)).or_insert(position);
    }
}

/// Batches of events whose keys never straddle two batches.
pub(crate) struct WholeKeys {
    events: ScanStream,
    pending: Option<RecordBatch>,
}

impl WholeKeys {
    pub fn new(events: ScanStream) -> WholeKeys {
        WholeKeys { events, pending: None }
    }
}

impl Iterator for WholeKeys {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(batch) = self.events.next() else { return self.pending.take().map(Ok) };
            let joined = batch.map_err(storage_error).and_then(|batch| match self.pending.take() {
                Some(pending) => Ok(concat_batches(&batch.schema(), [&pending, &batch])?),
                None => Ok(batch),
            });
            let batch = match joined {
                Ok(batch) => batch,
                Err(e) => return Some(Err(e)),
            };
            let keys = batch.column(0).as_binary::<i32>();
            let last = keys.len().checked_sub(1).map(|i| keys.value(i));
            let split =
                (0..keys.len()).rev().take_while(|i| Some(keys.value(*i)) == last).last().unwrap_or(0);
            self.pending = Some(batch.slice(split, batch.num_rows() - split));
            if split > 0 {
                return Some(Ok(batch.slice(0, split)));
            }
        }
    }
}
