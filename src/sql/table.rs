//! Tables of the store as DataFusion sees them, each with its bounds.

use super::clock::Applied;
use super::context::{QueryContext, TableBounds, describe_bounds};
use super::keys::{describe_keys, key_filter};
use super::one_key::OneKey;
use super::scan::{Convert, ScanExec};
use super::scan_name::named_scan;
use asofdb_storage::engine::{Bounds, KeyFilter, ScanKind, ScanRequest};
use asofdb_storage::id::ColumnId;
use asofdb_storage::schema::{TableMeta, TableSchema};
use asofdb_storage::time::{AxisType, BEGINNING, FOREVER};
use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// Names of the interval columns, in the order the engine yields them.
pub(crate) const INTERVAL_COLUMNS: [&str; 4] =
    ["__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT"];

/// What a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The table's columns at a point, or with the four interval columns in a range.
    Bounded,
    /// The interval rows of the latest belief with `__START_AT` and `__END_AT`.
    Scd2,
}

/// A table of the store with bounds.
#[derive(Debug)]
pub(crate) struct TemporalTable {
    pub context: Arc<QueryContext>,
    pub meta: Arc<TableMeta>,
    pub bounds: TableBounds,
    shape: Shape,
    /// Its columns by the names they have here.
    pub table_schema: Arc<TableSchema>,
    schema: SchemaRef,
}

/// The Arrow type of an axis.
pub(crate) fn axis_type(ty: AxisType) -> DataType {
    match ty {
        AxisType::Instant => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        AxisType::Integer => DataType::Int64,
    }
}

/// The fields of a table's own columns.
pub(crate) fn column_fields(schema: &TableSchema) -> Vec<Field> {
    schema.columns.iter().map(|c| Field::new(&c.name, c.ty.arrow(), true)).collect()
}

impl TemporalTable {
    pub fn new(
        context: Arc<QueryContext>,
        meta: Arc<TableMeta>,
        bounds: TableBounds,
        shape: Shape,
    ) -> TemporalTable {
        let intervals = match (shape, bounds.point()) {
            (Shape::Scd2, _) => 2,
            (Shape::Bounded, Some(_)) => 0,
            (Shape::Bounded, None) => 4,
        };
        let added = &INTERVAL_COLUMNS[..intervals];
        let table_schema = Arc::new(context.set_apart(&meta.name, meta.schema_at(bounds.commit), added));
        let mut fields = column_fields(&table_schema);
        let axes = [meta.valid_axis, meta.valid_axis, meta.system_axis, meta.system_axis];
        fields.extend(
            INTERVAL_COLUMNS
                .iter()
                .zip(axes)
                .take(intervals)
                .map(|(name, ty)| Field::new(*name, axis_type(ty), true)),
        );
        let schema = Arc::new(Schema::new(fields));
        TemporalTable { context, meta, bounds, shape, table_schema, schema }
    }

    /// The scan of it, called `shown` in the statement.
    pub fn into_scan(self, shown: TableReference) -> Result<LogicalPlan> {
        let shape = match self.shape {
            Shape::Bounded => "",
            Shape::Scd2 => "scd2, ",
        };
        let name = format!("{} ({shape}{})", self.meta.name, describe_bounds(&self.meta, &self.bounds));
        named_scan(shown, name, Arc::new(self))
    }

    /// What the answer says of it.
    pub fn applied(&self) -> Applied {
        self.context.applied(&self.meta, &self.bounds)
    }

    fn kind(&self) -> ScanKind {
        match (self.shape, self.bounds.point()) {
            (Shape::Scd2, _) => ScanKind::Scd2,
            (Shape::Bounded, Some((valid, system))) => ScanKind::Rows { valid, system },
            (Shape::Bounded, None) => {
                ScanKind::Intervals { valid: self.bounds.valid, system: self.bounds.system }
            }
        }
    }

    fn plan(
        &self,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<ScanExec> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let projection = projection.unwrap_or(&all);
        let width = self.table_schema.columns.len();
        let columns: Vec<ColumnId> =
            projection.iter().filter(|i| **i < width).map(|i| ColumnId(*i as u32)).collect();
        let schema = Arc::new(self.schema.project(projection)?);
        let convert = interval_converter(projection, width, columns.len(), schema.clone());
        let keys = key_filter(&self.table_schema, filters);
        if let (KeyFilter::Keys(keys), Some((valid, system))) = (&keys, self.bounds.point())
            && let [key] = &keys[..]
        {
            let bounds = Bounds { valid, system, commit: self.bounds.commit };
            let (reader, meta, key) = (self.context.reader.clone(), self.meta.clone(), key.clone());
            self.context.note_key(OneKey { reader, meta, key, bounds });
        }
        let what = match self.kind() {
            ScanKind::Scd2 => "scd2 rows, ",
            ScanKind::Rows { .. } => "",
            ScanKind::Intervals { .. } => "interval rows, ",
            ScanKind::History => "events, ",
        };
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let label = format!(
            "{}, {what}{}, {}, columns=[{}]",
            self.meta.name,
            describe_bounds(&self.meta, &self.bounds),
            describe_keys(&keys, &self.table_schema, filters),
            names.join(", ")
        );
        let request = ScanRequest {
            table: self.meta.id,
            kind: self.kind(),
            commit: self.bounds.commit,
            schema: self.table_schema.clone(),
            projection: columns,
            keys,
            partitions: self.context.scan.partitions,
            rows_per_key_max: self.context.scan.rows_per_key_max,
        };
        Ok(ScanExec::new(self.context.reader.clone(), request, schema, convert, label, limit))
    }
}

/// Picks the projected columns out of a batch of the engine: `columns` table columns, then the
/// interval columns as numbers.
fn interval_converter(projection: &[usize], width: usize, columns: usize, schema: SchemaRef) -> Convert {
    let mut next = 0;
    let picks: Vec<(usize, bool)> = projection
        .iter()
        .map(|i| match i.checked_sub(width) {
            Some(interval) => (columns + interval, true),
            None => {
                next += 1;
                (next - 1, false)
            }
        })
        .collect();
    Arc::new(move |batch| {
        let arrays = picks.iter().zip(schema.fields()).map(|((from, is_time), field)| {
            let column = batch.column(*from);
            if *is_time { time_column(column, field.data_type()) } else { column.clone() }
        });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(schema.clone(), arrays.collect(), &options)?)
    })
}

/// Numbers of an axis as they are shown: open ends are NULL (rule A1).
pub(crate) fn time_column(numbers: &ArrayRef, ty: &DataType) -> ArrayRef {
    let numbers = numbers.as_primitive::<Int64Type>();
    let open = |n: i64| n == BEGINNING || n == FOREVER;
    let shown: Int64Array = numbers.iter().map(|n| n.filter(|n| !open(*n))).collect();
    match ty {
        DataType::Timestamp(..) => Arc::new(
            shown
                .reinterpret_cast::<datafusion::arrow::datatypes::TimestampMicrosecondType>()
                .with_timezone("UTC"),
        ),
        _ => Arc::new(shown),
    }
}

#[async_trait]
impl TableProvider for TemporalTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.plan(projection, filters, limit)?))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
