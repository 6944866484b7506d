//! What a scan read as metrics of its operator: `EXPLAIN ANALYZE` shows them.

use asofdb_storage::engine::ScanCounts;
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, Metric, MetricCategory, MetricValue, MetricsSet,
};
use std::sync::Arc;

/// The metrics of an operator, with what the engine counted for it.
pub(crate) fn with_counts(metrics: &ExecutionPlanMetricsSet, counts: &ScanCounts) -> MetricsSet {
    let mut set = metrics.clone_inner();
    let Some(f) = counts.figures() else { return set };
    let figures = [
        ("runs_read", f.runs_read),
        ("runs_pruned", f.runs_pruned),
        ("row_groups_read", f.row_groups_read),
        ("row_groups_pruned", f.row_groups_pruned),
        ("events_read", f.events_read),
        ("events_in_memory", f.memory_events),
        ("events_pruned", f.events_pruned),
    ];
    let bytes =
        [("bytes_read", f.bytes_read), ("bytes_kept", f.bytes_kept), ("bytes_pruned", f.bytes_pruned)];
    let mut push = |(name, n): (&'static str, u64), category| {
        let count = Count::new();
        count.add(usize::try_from(n).unwrap_or(usize::MAX));
        let value = MetricValue::Count { name: name.into(), count };
        set.push(Arc::new(Metric::new(value, None).with_category(category)));
    };
    figures.into_iter().for_each(|f| push(f, MetricCategory::Rows));
    bytes.into_iter().for_each(|f| push(f, MetricCategory::Bytes));
    if f.index_rows > 0 {
        push(("rows_of_index", f.index_rows), MetricCategory::Rows);
    }
    set
}
