//! The logical node of a per-row join. Its right side stands for the columns that are asked for, and is never
//! run by itself.

use super::per_row::{Clock, PerRowSpec, PerRowTable, per_row_table};
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef, JoinType, Result};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, TableType, UserDefinedLogicalNodeCore, build_join_schema};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What is left of a [`PerRowTable`] at its place in a join: the names of its columns.
#[derive(Debug)]
struct Asked(SchemaRef);

#[async_trait]
impl TableProvider for Asked {
    fn schema(&self) -> SchemaRef {
        self.0.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.0.project(columns)?),
            None => self.0.clone(),
        };
        Ok(Arc::new(EmptyExec::new(schema)))
    }
}

/// The right side of a join, with the table replaced by its columns.
pub(crate) fn asked(right: LogicalPlan, table: &PerRowTable) -> Result<LogicalPlan> {
    let asked = provider_as_source(Arc::new(Asked(table.schema())));
    let replaced = right.transform_down(|plan| match plan {
        LogicalPlan::TableScan(mut scan) => {
            scan.source = asked.clone();
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    debug_assert!(per_row_table(&replaced.data).is_none(), "the table was replaced");
    Ok(replaced.data)
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct PerRowJoin {
    pub left: Arc<LogicalPlan>,
    pub right: Arc<LogicalPlan>,
    pub schema: DFSchemaRef,
    pub spec: Arc<PerRowSpec>,
}

impl PartialEq for PerRowJoin {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.spec, &other.spec) && self.left == other.left && self.right == other.right
    }
}

impl Eq for PerRowJoin {}

impl Hash for PerRowJoin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.spec).hash(state);
        self.left.hash(state);
        self.right.hash(state);
    }
}

impl PartialOrd for PerRowJoin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl PerRowJoin {
    /// The expressions that refer to columns of the inputs.
    fn used(&self) -> impl Iterator<Item = &Expr> {
        let PerRowSpec { valid, system, commit, keys, condition, .. } = &*self.spec;
        let clocks = [valid, system, commit].into_iter().filter_map(|clock| match clock {
            Clock::Fixed(_) => None,
            Clock::PerRow { expr, .. } => Some(expr),
        });
        clocks.chain(keys).chain(condition)
    }
}

impl UserDefinedLogicalNodeCore for PerRowJoin {
    fn name(&self) -> &str {
        "AsofPerRowJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// None: they are resolved and folded already, and the condition spans both sides.
    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsofPerRowJoin: {}", describe(&self.spec))
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Ok([left, right]) = <[LogicalPlan; 2]>::try_from(inputs) else {
            return datafusion::common::internal_err!("a per-row join has two inputs");
        };
        let kind = if self.spec.outer { JoinType::Left } else { JoinType::Inner };
        let schema = Arc::new(build_join_schema(left.schema(), right.schema(), &kind)?);
        Ok(PerRowJoin { left: Arc::new(left), right: Arc::new(right), schema, spec: self.spec.clone() })
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let lefts = self.left.schema().fields().len();
        let mut needed = [Vec::new(), Vec::new()];
        for column in output {
            match column.checked_sub(lefts) {
                None => needed[0].push(*column),
                Some(column) => needed[1].push(column),
            }
        }
        let refers = |schema: &DFSchema, needed: &mut Vec<usize>| {
            let columns = self.used().flat_map(|e| e.column_refs());
            needed.extend(columns.filter_map(|c| schema.maybe_index_of_column(c)));
            needed.sort_unstable();
            needed.dedup();
        };
        let [left, right] = &mut needed;
        refers(self.left.schema(), left);
        refers(self.right.schema(), right);
        Some(needed.into())
    }
}

/// The join as words for EXPLAIN.
pub(crate) fn describe(spec: &PerRowSpec) -> String {
    let keys: Vec<String> = spec.keys.iter().map(Expr::to_string).collect();
    let kind = if spec.outer { "left" } else { "inner" };
    format!("{kind}, {}, keys=[{}]", spec.applied(), keys.join(", "))
}
