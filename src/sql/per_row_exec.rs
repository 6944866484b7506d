//! Runs a per-row join. The left rows are divided by ranges of keys among streams and sorted by key, as far as need
//! be on disk; the table is sorted by key too, so each stream meets its part of it in one pass.

use super::error::storage_error;
use super::left_rows::{pieces, sliced};
use super::per_row::Clock;
use super::per_row_node::{PerRowJoin, describe};
use super::per_row_piece::{Asked, Joiner};
use super::per_row_plan::{Plan, moved};
use super::scan_metrics::with_counts;
use asofdb_storage::engine::ScanCounts;
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DataFusionError, JoinType, Result, internal_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode, build_join_schema};
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeSet;
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
        let [input, asked] = inputs else { return internal_err!("a per-row join has two inputs") };
        let spec = &join.spec;
        let left = |e: &Expr| planner.create_physical_expr(e, join.left.schema(), session, planning);
        let clock = |c: &Clock| match c {
            Clock::Fixed(_) => Ok(None),
            Clock::PerRow { expr, .. } => left(expr).map(Some),
        };
        let whole = build_join_schema(join.left.schema(), &spec.right, &JoinType::Inner)?;
        let both = |e: &Option<Expr>, schema: &DFSchema| {
            e.as_ref().map(|e| planner.create_physical_expr(e, schema, session, planning)).transpose()
        };
        let context = &spec.context;
        let splits = context.reader.split_keys(spec.meta.id, context.scan.partitions);
        let schema: SchemaRef = Arc::new(join.schema.as_arrow().clone());
        let plan = Plan {
            spec: spec.clone(),
            keys: spec.keys.iter().map(left).collect::<Result<_>>()?,
            clocks: [clock(&spec.valid)?, clock(&spec.system)?, clock(&spec.commit)?],
            condition: both(&spec.condition, &join.schema)?,
            doubted: both(&spec.doubted, &whole)?,
            asked: asked.schema().fields().iter().map(|f| f.name().clone()).collect(),
            output: (0..schema.fields().len()).collect(),
            schema,
            splits: splits.map_err(storage_error)?,
        };
        Ok(Some(Arc::new(PerRowExec::new(input.clone(), Arc::new(plan))?)))
    }
}

/// The running join.
#[derive(Debug)]
struct PerRowExec {
    input: Arc<dyn ExecutionPlan>,
    sorted: Arc<dyn ExecutionPlan>,
    plan: Arc<Plan>,
    asked: Arc<Asked>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    counts: Arc<ScanCounts>,
}

impl PerRowExec {
    fn new(input: Arc<dyn ExecutionPlan>, plan: Arc<Plan>) -> Result<Self> {
        let asked = Arc::new(plan.asked(&input.schema())?);
        let sorted = plan.sorted(&asked.kept, input.clone())?;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(asked.output_schema.clone()),
            Partitioning::UnknownPartitioning(sorted.output_partitioning().partition_count()),
            EmissionType::Final,
            input.boundedness(),
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        let metrics = ExecutionPlanMetricsSet::new();
        let (properties, counts) = (Arc::new(properties), Arc::default());
        Ok(PerRowExec { input, sorted, plan, asked, properties, metrics, counts })
    }
}

impl DisplayAs for PerRowExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsofPerRowJoin: {}", describe(&self.plan.spec))
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
            Some(input) => Ok(Arc::new(PerRowExec::new(input, self.plan.clone())?)),
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
        let rows_max = context.session_config().batch_size();
        let sorted =
            pieces(self.sorted.execute(partition, context)?, self.plan.spec.context.scan.labels.rows_max);
        let state = (
            Box::pin(sorted),
            Joiner::new(self.asked.clone(), self.counts.clone()),
            metrics.elapsed_compute().clone(),
        );
        let stream = stream::try_unfold(state, |(mut sorted, mut joiner, time)| async move {
            let Some(piece) = sorted.next().await.transpose()? else { return Ok::<_, DataFusionError>(None) };
            let timed = time.clone();
            let work = move || {
                let _timer = timed.timer();
                joiner.join(&piece).map(|batch| (batch, joiner))
            };
            let done = tokio::task::spawn_blocking(work).await;
            let (batch, joiner) = done.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??;
            Ok(Some((batch, (sorted, joiner, time))))
        });
        let stream = stream.map_ok(move |batch| sliced(batch, rows_max)).try_flatten();
        let stream = stream.map(move |batch| batch.record_output(&metrics));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            datafusion::physical_plan::coop::make_cooperative(Box::pin(RecordBatchStreamAdapter::new(
                self.schema(),
                stream,
            ))),
        )))
    }

    /// What nobody asks for is neither sorted nor made.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let exprs = projection.expr();
        let needed: BTreeSet<usize> =
            exprs.iter().flat_map(|e| collect_columns(&e.expr)).map(|c| c.index()).collect();
        if needed.len() == self.plan.output.len() {
            return Ok(None);
        }
        let needed: Vec<usize> = needed.into_iter().collect();
        let output = needed.iter().map(|i| self.plan.output[*i]).collect();
        let plan = Arc::new(Plan { output, ..Plan::clone(&self.plan) });
        let narrow = Arc::new(PerRowExec::new(self.input.clone(), plan)?);
        let expr = |e: &ProjectionExpr| Ok((moved(&e.expr, &needed)?, e.alias.clone()));
        let exprs = exprs.iter().map(expr).collect::<Result<Vec<_>>>()?;
        Ok(Some(Arc::new(ProjectionExec::try_new(exprs, narrow)?)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(with_counts(&self.metrics, &self.counts))
    }
}
