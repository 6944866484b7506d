//! What a per-row join has to do: which columns it keeps of its sides, and how the left one is sorted.

use super::per_row::PerRowSpec;
use super::per_row_keys::{KeyBytes, Spelling, may_differ};
use super::per_row_piece::{Asked, View};
use asofdb_storage::id::ColumnId;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue, SplitPoint, internal_err};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr, RangePartitioning};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use std::collections::BTreeSet;
use std::sync::Arc;

const KEY: &str = "__KEY";
const OTHER_KEYS: &str = "__OTHER_KEYS";

/// A running join, beside its input.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub spec: Arc<PerRowSpec>,
    /// The parts of the key, over the input.
    pub keys: Vec<Arc<dyn PhysicalExpr>>,
    /// Valid time, system time and commit, over the input; `None` where they are the same for all rows.
    pub clocks: [Option<Arc<dyn PhysicalExpr>>; 3],
    /// Over the input and the columns that are asked for.
    pub condition: Option<Arc<dyn PhysicalExpr>>,
    /// Over the input and all columns of the right side, see [`PerRowSpec::doubted`].
    pub doubted: Option<Arc<dyn PhysicalExpr>>,
    /// Names of the columns of the right side that are asked for.
    pub asked: Vec<String>,
    /// The input and the columns that are asked for.
    pub schema: SchemaRef,
    /// Which of these the result has, ascending.
    pub output: Vec<usize>,
    /// Keys that divide the table among streams.
    pub splits: Vec<Vec<u8>>,
}

/// An expression over only the columns `kept` of what it was over.
pub(crate) fn moved(expr: &Arc<dyn PhysicalExpr>, kept: &[usize]) -> Result<Arc<dyn PhysicalExpr>> {
    let column = |e: Arc<dyn PhysicalExpr>| {
        let Some(column) = e.downcast_ref::<Column>() else { return Ok(Transformed::no(e)) };
        let Ok(place) = kept.binary_search(&column.index()) else {
            return internal_err!("column {} of a per-row join was left out", column.name());
        };
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), place)) as Arc<dyn PhysicalExpr>))
    };
    expr.clone().transform(column).data()
}

fn used(expr: &Option<Arc<dyn PhysicalExpr>>) -> impl Iterator<Item = usize> {
    expr.iter().flat_map(collect_columns).map(|c| c.index()).collect::<Vec<_>>().into_iter()
}

impl Plan {
    /// What is asked of each piece of the left side, which has the schema `input`.
    pub fn asked(&self, input: &SchemaRef) -> Result<Asked> {
        let lefts = input.fields().len();
        let clocks = self.clocks.iter().flat_map(used);
        let conditions = used(&self.condition).chain(used(&self.doubted));
        let kept = self.output.iter().copied().chain(clocks).chain(conditions).filter(|c| *c < lefts);
        let kept: Vec<usize> = kept.collect::<BTreeSet<_>>().into_iter().collect();
        let clock = |e: &Option<Arc<dyn PhysicalExpr>>| e.as_ref().map(|e| moved(e, &kept)).transpose();
        let [valid, system, commit] = &self.clocks;
        let place = |c: &usize| match c.checked_sub(lefts) {
            None => kept.partition_point(|k| k < c),
            Some(right) => kept.len() + right,
        };
        let whole = |i: &usize| self.schema.field(lefts + i).clone();
        let plain: Vec<Field> = (0..self.asked.len()).collect::<Vec<_>>().iter().map(whole).collect();
        let doubted = match &self.doubted {
            None => None,
            Some(doubted) => Some(self.doubting(doubted, lefts, &kept, input, &plain)?),
        };
        let behind: Vec<usize> = kept.iter().copied().chain(lefts..lefts + self.asked.len()).collect();
        let condition = self.condition.as_ref().map(|e| moved(e, &behind)).transpose()?;
        let plain = View::new(self.ids(&self.asked)?, condition, fields_of(input, &kept, &plain));
        Ok(Asked {
            clocks: [clock(valid)?, clock(system)?, clock(commit)?],
            plain,
            doubted,
            output: self.output.iter().map(place).collect(),
            output_schema: Arc::new(self.schema.project(&self.output)?),
            spec: self.spec.clone(),
            kept,
        })
    }

    /// What is asked where texts stand for numbers: also the columns that tell whether they are the same.
    fn doubting(
        &self,
        doubted: &Arc<dyn PhysicalExpr>,
        lefts: usize,
        kept: &[usize],
        input: &SchemaRef,
        plain: &[Field],
    ) -> Result<View> {
        let right = self.spec.right.as_arrow();
        let mut names = self.asked.clone();
        let mut fields = plain.to_vec();
        for at in used(&Some(doubted.clone())).filter_map(|c| c.checked_sub(lefts)) {
            if !names.contains(right.field(at).name()) {
                names.push(right.field(at).name().clone());
                fields.push(right.field(at).clone().with_nullable(true));
            }
        }
        let column = |e: Arc<dyn PhysicalExpr>| {
            let Some(column) = e.downcast_ref::<Column>() else { return Ok(Transformed::no(e)) };
            let place = match column.index().checked_sub(lefts) {
                None => kept.binary_search(&column.index()).ok(),
                Some(at) => names.iter().position(|n| n == right.field(at).name()).map(|p| kept.len() + p),
            };
            let Some(place) = place else {
                return internal_err!("column {} of a per-row join was left out", column.name());
            };
            Ok(Transformed::yes(Arc::new(Column::new(column.name(), place)) as Arc<dyn PhysicalExpr>))
        };
        let condition = doubted.clone().transform(column).data()?;
        Ok(View::new(self.ids(&names)?, Some(condition), fields_of(input, kept, &fields)))
    }

    /// The numbers of columns of the table, by name.
    fn ids(&self, names: &[String]) -> Result<Vec<ColumnId>> {
        let id = |name: &String| match self.spec.shown.columns.iter().find(|c| c.name == *name) {
            Some(column) => Ok(column.id),
            None => internal_err!("a per-row join asks for {name}, which its table does not have"),
        };
        names.iter().map(id).collect()
    }

    /// The columns `kept` of the input with the bytes of the keys behind, in the order of these; each stream has its
    /// own range of keys. What does not fit into memory is sorted on disk.
    pub fn sorted(&self, kept: &[usize], input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = input.schema();
        let column = |i: &usize| {
            let name = schema.field(*i).name();
            (Arc::new(Column::new(name, *i)) as Arc<dyn PhysicalExpr>, name.clone())
        };
        let mut exprs: Vec<_> = kept.iter().map(column).collect();
        let table = &self.spec.table_schema;
        let types: Vec<_> = table.key.iter().map(|id| table.columns[id.0 as usize].ty).collect();
        let key = |spelling| -> Arc<dyn PhysicalExpr> {
            Arc::new(KeyBytes::new(self.keys.clone(), types.clone(), spelling))
        };
        exprs.push((key(Spelling::AsItIs), KEY.into()));
        if types.iter().any(|ty| may_differ(*ty)) {
            exprs.push((key(Spelling::Others), OTHER_KEYS.into()));
        }
        let inputs = input.output_partitioning().partition_count();
        let keyed = Arc::new(ProjectionExec::try_new(exprs, input)?);
        let ordering = || {
            let key = Arc::new(Column::new(KEY, kept.len()));
            let options = SortOptions { descending: false, nulls_first: true };
            LexOrdering::from([PhysicalSortExpr::new(key, options)])
        };
        let divided: Arc<dyn ExecutionPlan> = if inputs > 1 || !self.splits.is_empty() {
            let split = |key: &Vec<u8>| SplitPoint::new(vec![ScalarValue::Binary(Some(key.clone()))]);
            let splits = self.splits.iter().map(split).collect();
            let ranges = RangePartitioning::try_new(ordering(), splits)?;
            Arc::new(RepartitionExec::try_new(keyed, Partitioning::Range(ranges))?)
        } else {
            keyed
        };
        Ok(Arc::new(SortExec::new(ordering(), divided).with_preserve_partitioning(true)))
    }
}

fn fields_of(input: &SchemaRef, kept: &[usize], right: &[Field]) -> SchemaRef {
    let left = kept.iter().map(|i| input.field(*i).clone());
    Arc::new(Schema::new(left.chain(right.iter().cloned()).collect::<Vec<_>>()))
}
