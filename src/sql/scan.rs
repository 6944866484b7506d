//! The physical scan: streams of the engine on blocking threads.

use super::error::storage_error;
use super::reader::Reader;
use super::scan_metrics::with_counts;
use asofdb_storage::engine::{ScanCounts, ScanRequest, ScanStream};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
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
use std::sync::{Arc, Mutex, PoisonError};

/// Batches that wait between the engine's thread and the query.
const BATCHES_AHEAD: usize = 2;

/// Turns a batch of the engine into one of the table's schema.
pub(crate) type Convert = Arc<dyn Fn(RecordBatch) -> Result<RecordBatch> + Send + Sync>;

/// A scan of one table.
pub(crate) struct ScanExec {
    reader: Arc<dyn Reader>,
    request: Arc<ScanRequest>,
    convert: Convert,
    label: String,
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    counts: Arc<ScanCounts>,
    streams: Arc<Mutex<Vec<Option<ScanStream>>>>,
}

impl fmt::Debug for ScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScanExec({})", self.label)
    }
}

impl ScanExec {
    pub fn new(
        reader: Arc<dyn Reader>,
        request: ScanRequest,
        schema: SchemaRef,
        convert: Convert,
        label: String,
        fetch: Option<usize>,
    ) -> ScanExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(request.partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        ScanExec {
            reader,
            request: Arc::new(request),
            convert,
            label,
            fetch,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            counts: Arc::default(),
            streams: Arc::default(),
        }
    }
}

/// One stream of the scan. The first to ask makes them all; a partition that is asked for again
/// (a plan may be run twice) scans again.
fn take_stream(
    reader: &dyn Reader,
    request: &ScanRequest,
    counts: &Arc<ScanCounts>,
    streams: &Mutex<Vec<Option<ScanStream>>>,
    partition: usize,
) -> Result<Option<ScanStream>> {
    let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stream) = streams.get_mut(partition).and_then(Option::take) {
        return Ok(Some(stream));
    }
    let fresh = streams.is_empty();
    let mut made: Vec<_> =
        reader.scan(request, counts).map_err(storage_error)?.into_iter().map(Some).collect();
    let stream = made.get_mut(partition).and_then(Option::take);
    if fresh {
        made.resize_with(request.partitions.max(made.len()).max(1), || Some(Box::new(std::iter::empty())));
        made[partition] = None;
        *streams = made;
    }
    Ok(stream)
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsofScan: {}", self.label)?;
        match self.fetch {
            Some(n) => write!(f, ", fetch={n}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &str {
        "AsofScan"
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

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut builder = RecordBatchReceiverStream::builder(self.schema(), BATCHES_AHEAD);
        let sender = builder.tx();
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let (reader, request, streams) = (self.reader.clone(), self.request.clone(), self.streams.clone());
        let counts = self.counts.clone();
        let (convert, mut left) = (self.convert.clone(), self.fetch.unwrap_or(usize::MAX));
        builder.spawn_blocking(move || {
            let Some(mut stream) = take_stream(reader.as_ref(), &request, &counts, &streams, partition)?
            else {
                return Ok(());
            };
            while left > 0 {
                let timer = metrics.elapsed_compute().timer();
                let Some(batch) = stream.next() else { break };
                let batch = convert(batch.map_err(storage_error)?)?;
                timer.done();
                let batch = if batch.num_rows() > left { batch.slice(0, left) } else { batch };
                left -= batch.num_rows();
                let batch = batch.record_output(&metrics);
                // The query has gone: it was cancelled, or has enough rows.
                if sender.blocking_send(Ok(batch)).is_err() {
                    break;
                }
            }
            metrics.done();
            Ok::<(), DataFusionError>(())
        });
        Ok(builder.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(with_counts(&self.metrics, &self.counts))
    }
}
