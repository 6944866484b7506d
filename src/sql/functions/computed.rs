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
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
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
/// Begins to make them.
pub(crate) type Make = Arc<dyn Fn(&Asked) -> Result<Batches> + Send + Sync>;

/// What is wanted of a table made by a function.
pub(crate) struct Asked {
    /// The columns, by number; they must come in this order.
    pub columns: Vec<usize>,
    /// Filters that stay; what they leave out may be left out before.
    pub filters: Vec<Expr>,
    /// Counts what is read of tables.
    pub counts: Arc<ScanCounts>,
}

/// Which filters a function makes use of, and as which words EXPLAIN shows them.
pub(crate) type Describe = Arc<dyn Fn(&[Expr]) -> String + Send + Sync>;

/// A table made by a function.
pub(crate) struct ComputedTable {
    pub label: String,
    pub schema: SchemaRef,
    pub make: Make,
    /// Present where filters are made use of.
    pub describe: Option<Describe>,
}

impl ComputedTable {
    pub fn provider(label: String, schema: SchemaRef, make: Make) -> Arc<dyn TableProvider> {
        Arc::new(ComputedTable { label, schema, make, describe: None })
    }

    /// A table of one batch.
    pub fn of(label: &str, schema: SchemaRef, batch: RecordBatch) -> Arc<dyn TableProvider> {
        let make: Make = Arc::new(move |asked| {
            let batch = batch.project(&asked.columns)?;
            Ok(Box::new(std::iter::once(Ok(batch))) as Batches)
        });
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
        filters: &[Expr],
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
            label: match &self.describe {
                Some(describe) => format!("{}, {}", self.label, describe(filters)),
                None => self.label.clone(),
            },
            make: self.make.clone(),
            asked: Arc::new(Asked {
                columns: projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect()),
                filters: filters.to_vec(),
                counts: Arc::default(),
            }),
            limit,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let pushed = match self.describe {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(vec![pushed; filters.len()])
    }
}

struct ComputedExec {
    label: String,
    make: Make,
    asked: Arc<Asked>,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
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
        Some(with_counts(&self.metrics, &self.asked.counts))
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut builder = RecordBatchReceiverStream::builder(self.schema(), 2);
        let sender = builder.tx();
        let (make, asked, schema) = (self.make.clone(), self.asked.clone(), self.schema());
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let mut left = self.limit.unwrap_or(usize::MAX);
        builder.spawn_blocking(move || {
            let begun = metrics.elapsed_compute().timer();
            let mut batches = make(&asked)?;
            begun.done();
            loop {
                let timer = metrics.elapsed_compute().timer();
                let Some(batch) = batches.next().transpose()? else { break };
                timer.done();
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
