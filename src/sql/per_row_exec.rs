//! Runs a per-row join: left batches become point questions, answered in one pass each.

use super::clause::Axis;
use super::clock::{parse_point, point_on_axis};
use super::error::{SqlError, storage_error};
use super::keys::{candidates, is_null, put_part, value_of};
use super::left_rows::{grown, sliced};
use super::per_row::{Clock, PerRowJoin, PerRowSpec, describe};
use super::scan_metrics::with_counts;
use asofdb_storage::engine::{Bounds, PointRequest, ScanCounts};
use asofdb_storage::id::ColumnId;
use asofdb_storage::time::{AxisType, CommitSeq};
use async_trait::async_trait;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array,
};
use datafusion::arrow::compute::{cast, filter_record_batch, take};
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef, TimeUnit, TimestampMicrosecondType};
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;

/// Plans queries with the nodes of this module.
#[derive(Debug, Default)]
pub(crate) struct AsofQueryPlanner;

#[async_trait]
impl QueryPlanner for AsofQueryPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(PerRowPlanner)])
            .create_physical_plan(plan, session)
            .await
    }
}

struct PerRowPlanner;

#[async_trait]
impl ExtensionPlanner for PerRowPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        planning: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(join) = node.as_any().downcast_ref::<PerRowJoin>() else { return Ok(None) };
        let [input] = inputs else { return internal_err!("a per-row join has one input") };
        let spec = &join.spec;
        let left = |e: &Expr| planner.create_physical_expr(e, &spec.left_schema, session, planning);
        let clock = |c: &Clock| match c {
            Clock::Fixed(_) => Ok(None),
            Clock::PerRow { expr, .. } => left(expr).map(Some),
        };
        let exprs = Exprs {
            keys: spec.keys.iter().map(left).collect::<Result<_>>()?,
            valid: clock(&spec.valid)?,
            system: clock(&spec.system)?,
            commit: clock(&spec.commit)?,
            condition: spec
                .condition
                .as_ref()
                .map(|e| planner.create_physical_expr(e, &join.schema, session, planning))
                .transpose()?,
        };
        let schema: SchemaRef = Arc::new(join.schema.as_arrow().clone());
        Ok(Some(Arc::new(PerRowExec::new(input.clone(), schema, spec.clone(), Arc::new(exprs)))))
    }
}

#[derive(Debug)]
struct Exprs {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    valid: Option<Arc<dyn PhysicalExpr>>,
    system: Option<Arc<dyn PhysicalExpr>>,
    commit: Option<Arc<dyn PhysicalExpr>>,
    condition: Option<Arc<dyn PhysicalExpr>>,
}

/// The running join.
#[derive(Debug)]
struct PerRowExec {
    input: Arc<dyn ExecutionPlan>,
    spec: Arc<PerRowSpec>,
    exprs: Arc<Exprs>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    counts: Arc<ScanCounts>,
}

impl PerRowExec {
    fn new(
        input: Arc<dyn ExecutionPlan>,
        schema: SchemaRef,
        spec: Arc<PerRowSpec>,
        exprs: Arc<Exprs>,
    ) -> Self {
        let partitions = input.output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            input.boundedness(),
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        let metrics = ExecutionPlanMetricsSet::new();
        let counts = Arc::default();
        PerRowExec { input, spec, exprs, properties: Arc::new(properties), metrics, counts }
    }
}

impl DisplayAs for PerRowExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsofPerRowJoin: {}", describe(&self.spec))
    }
}

impl ExecutionPlan for PerRowExec {
    fn name(&self) -> &str {
        "AsofPerRowJoin"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => {
                Ok(Arc::new(PerRowExec::new(input, self.schema(), self.spec.clone(), self.exprs.clone())))
            }
            None => internal_err!("a per-row join has one input"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let (schema, spec, exprs) = (self.schema(), self.spec.clone(), self.exprs.clone());
        let (out, rows_max) = (schema.clone(), context.session_config().batch_size());
        let input = self.input.execute(partition, context)?;
        let counts = self.counts.clone();
        let time = metrics.elapsed_compute().clone();
        let stream = grown(input).and_then(move |batch| {
            let (schema, spec, exprs) = (out.clone(), spec.clone(), exprs.clone());
            let (counts, time) = (counts.clone(), time.clone());
            async move {
                let work = move || {
                    let _timer = time.timer();
                    join_batch(&batch, &schema, &spec, &exprs, &counts)
                };
                tokio::task::spawn_blocking(work)
                    .await
                    .map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?
            }
        });
        let stream = stream.map_ok(move |batch| sliced(batch, rows_max)).try_flatten();
        let stream = stream.map(move |batch| batch.record_output(&metrics));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            datafusion::physical_plan::coop::make_cooperative(Box::pin(RecordBatchStreamAdapter::new(
                self.schema(),
                stream,
            ))),
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(with_counts(&self.metrics, &self.counts))
    }
}

/// Joins one left batch. Left rows keep their order.
fn join_batch(
    left: &RecordBatch,
    schema: &SchemaRef,
    spec: &PerRowSpec,
    exprs: &Exprs,
    counts: &Arc<ScanCounts>,
) -> Result<RecordBatch> {
    let (requests, rows_of) = point_requests(left, spec, exprs)?;
    let projection: Vec<ColumnId> = spec.shown.columns.iter().map(|c| c.id).collect();
    let (found, right) =
        spec.context.reader.points(spec.meta.id, &requests, &projection, counts).map_err(storage_error)?;
    // Several questions of one left row differ only in how the key was once spelled.
    let mut left_rows = Vec::with_capacity(found.len());
    let mut right_rows = Vec::with_capacity(found.len());
    for (i, request) in found.iter().enumerate() {
        let row = rows_of[*request as usize];
        if left_rows.last() != Some(&row) {
            left_rows.push(row);
            right_rows.push(i as u32);
        }
    }
    let matched =
        gather(left, &left_rows, &right, &right_rows.iter().copied().map(Some).collect::<Vec<_>>(), schema)?;
    let keep = match &exprs.condition {
        None => None,
        Some(condition) => Some(condition.evaluate(&matched)?.into_array(matched.num_rows())?),
    };
    let keep = keep.as_ref().map(|k| k.as_boolean());
    if !spec.outer {
        return match keep {
            None => Ok(matched),
            Some(keep) => Ok(filter_record_batch(&matched, keep)?),
        };
    }
    let mut partner: Vec<Option<u32>> = vec![None; left.num_rows()];
    for (i, (row, right_row)) in left_rows.iter().zip(&right_rows).enumerate() {
        if keep.is_none_or(|k| k.is_valid(i) && k.value(i)) {
            partner[*row as usize] = Some(*right_row);
        }
    }
    let all: Vec<u32> = (0..left.num_rows() as u32).collect();
    gather(left, &all, &right, &partner, schema)
}

fn gather(
    left: &RecordBatch,
    left_rows: &[u32],
    right: &RecordBatch,
    right_rows: &[Option<u32>],
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let left_rows = UInt32Array::from(left_rows.to_vec());
    let right_rows = UInt32Array::from(right_rows.to_vec());
    let right_fields = schema.fields().iter().skip(left.num_columns());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
    for column in left.columns() {
        columns.push(take(column, &left_rows, None)?);
    }
    for (column, field) in right.columns().iter().zip(right_fields) {
        // Columns come as wide as they are now, and what an older commit holds fits as it did then.
        columns.push(cast(&take(column, &right_rows, None)?, field.data_type())?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(left_rows.len()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// The questions of a left batch, and the left row of each. Rows with NULL in the key or in a
/// bound ask nothing.
fn point_requests(
    left: &RecordBatch,
    spec: &PerRowSpec,
    exprs: &Exprs,
) -> Result<(Vec<PointRequest>, Vec<u32>)> {
    let rows = left.num_rows();
    let keys: Vec<ArrayRef> =
        exprs.keys.iter().map(|e| e.evaluate(left)?.into_array(rows)).collect::<Result<_>>()?;
    let valid = clock_values(left, &spec.valid, &exprs.valid, spec.meta.valid_axis, Axis::Valid, spec)?;
    let system = clock_values(left, &spec.system, &exprs.system, spec.meta.system_axis, Axis::System, spec)?;
    let commit = commit_values(left, &spec.commit, &exprs.commit, spec)?;
    let (mut requests, mut rows_of) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    for row in 0..rows {
        let (Some(valid), Some(system), Some(commit)) = (valid.at(row), system.at(row), commit.at(row))
        else {
            continue;
        };
        let bounds = Bounds { valid, system, commit: CommitSeq(commit as u64) };
        for key in row_keys(&keys, row, spec)? {
            requests.push(PointRequest { key, bounds });
            rows_of.push(row as u32);
        }
    }
    Ok((requests, rows_of))
}

/// The bytes a row's key may have; none where a part is NULL.
fn row_keys(keys: &[ArrayRef], row: usize, spec: &PerRowSpec) -> Result<Vec<Vec<u8>>> {
    let mut all: Vec<Vec<u8>> = vec![Vec::with_capacity(16)];
    for (array, id) in keys.iter().zip(&spec.table_schema.key) {
        let Some(value) = value_of(&ScalarValue::try_from_array(array, row)?).filter(|v| !is_null(v)) else {
            return Ok(Vec::new());
        };
        let ty = spec.table_schema.columns[id.0 as usize].ty;
        let parts = candidates(ty, &value).unwrap_or_else(|| vec![value]);
        if let [part] = parts.as_slice() {
            all.iter_mut().for_each(|k| put_part(k, part));
            continue;
        }
        let longer = |k: &Vec<u8>| parts.iter().map(|p| with_part(k, p)).collect::<Vec<_>>();
        all = all.iter().flat_map(longer).collect();
    }
    Ok(all)
}

fn with_part(key: &[u8], part: &asofdb_storage::value::Value) -> Vec<u8> {
    let mut key = key.to_vec();
    put_part(&mut key, part);
    key
}

enum Values {
    Same(i64),
    PerRow(Int64Array),
}

impl Values {
    fn at(&self, row: usize) -> Option<i64> {
        match self {
            Values::Same(v) => Some(*v),
            Values::PerRow(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}

fn clock_values(
    left: &RecordBatch,
    clock: &Clock,
    expr: &Option<Arc<dyn PhysicalExpr>>,
    axis: AxisType,
    what: Axis,
    spec: &PerRowSpec,
) -> Result<Values> {
    let (Clock::PerRow { ty, .. }, Some(expr)) = (clock, expr) else {
        return Ok(Values::Same(if let Clock::Fixed(t) = clock {
            *t
        } else {
            asofdb_storage::time::FOREVER
        }));
    };
    let array = expr.evaluate(left)?.into_array(left.num_rows())?;
    let numbers = match (axis, ty) {
        (AxisType::Integer, _) => cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
        (AxisType::Instant, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8) => {
            text_instants(&array, what, spec)?
        }
        (AxisType::Instant, _) => instants(&array)?,
    };
    Ok(Values::PerRow(numbers))
}

fn instants(array: &ArrayRef) -> Result<Int64Array> {
    let array = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    Ok(array.as_primitive::<TimestampMicrosecondType>().reinterpret_cast::<Int64Type>())
}

fn text_instants(array: &ArrayRef, what: Axis, spec: &PerRowSpec) -> Result<Int64Array> {
    let texts = cast(array, &DataType::Utf8)?;
    let now = spec.context.now;
    let instant = |text: Option<&str>| -> Result<Option<i64>, SqlError> {
        let Some(text) = text else { return Ok(None) };
        let point = parse_point(text).ok_or_else(|| SqlError::invalid(format!("'{text}' is no time")))?;
        point_on_axis(point, what, AxisType::Instant, &spec.meta.name, now).map(Some)
    };
    Ok(texts.as_string::<i32>().iter().map(instant).collect::<Result<Int64Array, SqlError>>()?)
}

fn commit_values(
    left: &RecordBatch,
    clock: &Clock,
    expr: &Option<Arc<dyn PhysicalExpr>>,
    spec: &PerRowSpec,
) -> Result<Values> {
    let Some(expr) = expr else {
        return Ok(Values::Same(if let Clock::Fixed(n) = clock { *n } else { 0 }));
    };
    let array = expr.evaluate(left)?.into_array(left.num_rows())?;
    let commit = |row| -> Result<Option<i64>> {
        let value = ScalarValue::try_from_array(&array, row)?;
        Ok(spec.context.commit_of_scalar(&value)?.map(|c| c.0 as i64))
    };
    Ok(Values::PerRow((0..left.num_rows()).map(commit).collect::<Result<Int64Array>>()?))
}
