//! Names of scans. DataFusion takes scans of one name, one schema and the same filters for one scan
//! and answers all of them by the first: whatever makes two scans differ must be in their names.

use datafusion::catalog::TableProvider;
use datafusion::common::{Result, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, TableSource};
use std::sync::Arc;

/// A scan that is called `shown` in the statement and is compared by `name`.
pub(crate) fn named_scan(
    shown: TableReference,
    name: String,
    provider: Arc<dyn TableProvider>,
) -> Result<LogicalPlan> {
    scan(shown, name, provider_as_source(provider))
}

/// The plan of a call of a table function, compared by `call`. What is no scan is a view over scans
/// that have their names.
pub(crate) fn named_call(plan: LogicalPlan, call: String) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::TableScan(found) => scan(found.table_name, call, found.source),
        view => Ok(view),
    }
}

fn scan(shown: TableReference, name: String, source: Arc<dyn TableSource>) -> Result<LogicalPlan> {
    LogicalPlanBuilder::scan(TableReference::bare(name), source, None)?.alias(shown)?.build()
}
