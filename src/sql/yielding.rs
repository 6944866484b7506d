//! Joins that let go.
//!
//! A join may make batches without end from one batch of its input. DataFusion lets its sources yield
//! to the runtime, but not its joins, so such a join could neither be timed out nor cancelled.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::SchedulingType;
use std::sync::Arc;

/// Has every join count its batches against the budget of its task.
#[derive(Debug)]
pub(crate) struct YieldingJoins;

impl PhysicalOptimizerRule for YieldingJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let yielding = plan.transform_up(|node| {
            let cooperative = node.properties().scheduling_type == SchedulingType::Cooperative;
            if node.children().len() < 2 || cooperative {
                return Ok(Transformed::no(node));
            }
            Ok(Transformed::yes(Arc::new(CooperativeExec::new(node)) as Arc<dyn ExecutionPlan>))
        })?;
        Ok(yielding.data)
    }

    fn name(&self) -> &str {
        "yielding_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
