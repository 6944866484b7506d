//! Tables whose rows are worked out when they are asked for, batch by batch, on a blocking thread.

use crate::sql::scan_metrics::with_counts;
use asofdb_storage::engine::ScanCounts;
use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use std::fmt;
use std::sync::Arc;

/// Batches, made as they are asked for.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;
/// Begins to make them; what is read of tables is counted.
pub(crate) type Make = Arc<dyn Fn(&Arc<ScanCounts>) -> Result<Batches> + Send + Sync>;

/// A table made by a function.
pub(crate) struct ComputedTable {
    pub label: String,
    pub schema: SchemaRef,
    pub make: Make,
}

impl ComputedTable {
    pub fn provider(label: String, schema: SchemaRef, make: Make) -> Arc<dyn TableProvider> {
        Arc::new(ComputedTable { label, schema, make })
    }

    /// A table of one batch.
    pub fn of(label: &str, schema: SchemaRef, batch: RecordBatch) -> Arc<dyn TableProvider> {
        let make: Make = Arc::new(move |_| Ok(Box::new(std::iter::once(Ok(batch.clone()))) as Batches));
        Self::provider(label.to_owned(), schema, make)
    }
}

impl fmt::Debug for ComputedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ComputedTable({})", self.label)
    }
}

#[async_trait]
impl TableProvider for ComputedTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(p) => Arc::new(self.schema.project(p)?),
            None => self.schema.clone(),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Arc::new(ComputedExec {
            label: self.label.clone(),
            make: self.make.clone(),
            projection: projection.cloned(),
            limit,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            counts: Arc::default(),
        }))
    }
}

struct ComputedExec {
    label: String,
    make: Make,
    projection: Option<Vec<usize>>,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    counts: Arc<ScanCounts>,
}

impl fmt::Debug for ComputedExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ComputedExec({})", self.label)
    }
}

impl DisplayAs for ComputedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsofFunction: {}", self.label)?;
        let schema = self.schema();
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        write!(f, ", columns=[{}]", names.join(", "))?;
        match self.limit {
            Some(n) => write!(f, ", fetch={n}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for ComputedExec {
    fn name(&self) -> &str {
        "AsofFunction"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(with_counts(&self.metrics, &self.counts))
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut builder = RecordBatchReceiverStream::builder(self.schema(), 2);
        let sender = builder.tx();
        let (make, projection, schema) = (self.make.clone(), self.projection.clone(), self.schema());
        let (metrics, counts) = (BaselineMetrics::new(&self.metrics, partition), self.counts.clone());
        let mut left = self.limit.unwrap_or(usize::MAX);
        builder.spawn_blocking(move || {
            let begun = metrics.elapsed_compute().timer();
            let mut batches = make(&counts)?;
            begun.done();
            loop {
                let timer = metrics.elapsed_compute().timer();
                let Some(batch) = batches.next().transpose()? else { break };
                timer.done();
                let batch = match &projection {
                    Some(p) => batch.project(p)?,
                    None => batch,
                };
                let batch = if batch.num_rows() > left { batch.slice(0, left) } else { batch };
                left -= batch.num_rows();
                let batch = batch.with_schema(schema.clone())?;
                let batch = batch.record_output(&metrics);
                if sender.blocking_send(Ok(batch)).is_err() || left == 0 {
                    break;
                }
            }
            metrics.done();
            Ok(())
        });
        Ok(builder.build())
    }
}
