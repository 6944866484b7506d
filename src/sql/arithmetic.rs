//! Integer arithmetic that never wraps: `sum` of integers is a decimal, `+`, `-`, `*` and negation
//! of 64-bit integers are errors where the result does not fit.

use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, BinaryExpr, ColumnarValue, Expr, ExprSchemable, GroupsAccumulator,
    LogicalPlan, Operator, ReversedUDAF, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Digits that every 64-bit integer, with a sign or without, fits in.
const INTEGER_DIGITS: u8 = 20;

/// `sum` that widens integers to decimals.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct WideSum {
    inner: Sum,
    signature: Signature,
}

impl WideSum {
    pub fn new() -> WideSum {
        WideSum { inner: Sum::new(), signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for WideSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [ty] = types else {
            return datafusion::common::plan_err!("sum takes one argument, not {}", types.len());
        };
        let wide = match ty {
            t if t.is_integer() => DataType::Decimal128(INTEGER_DIGITS, 0),
            DataType::Null => DataType::Decimal128(INTEGER_DIGITS, 0),
            t if t.is_floating() => DataType::Float64,
            t if t.is_decimal() || matches!(t, DataType::Duration(_)) => t.clone(),
            t => return datafusion::common::plan_err!("sum does not take values of type {t}"),
        };
        Ok(vec![wide])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// One checked operator on 64-bit integers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    op: Operator,
    name: &'static str,
    signature: Signature,
}

impl Checked {
    fn udf(op: Operator) -> Option<Arc<ScalarUDF>> {
        let name = match op {
            Operator::Plus => "checked_add",
            Operator::Minus => "checked_subtract",
            Operator::Multiply => "checked_multiply",
            _ => return None,
        };
        let signature = Signature::exact(vec![DataType::Int64, DataType::Int64], Volatility::Immutable);
        Some(Arc::new(ScalarUDF::new_from_impl(Checked { op, name, signature })))
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [a, b] = arrays.as_slice() else {
            return datafusion::common::internal_err!("{} takes two arguments", self.name);
        };
        let result = match self.op {
            Operator::Plus => numeric::add(a, b)?,
            Operator::Minus => numeric::sub(a, b)?,
            _ => numeric::mul(a, b)?,
        };
        Ok(match scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }
}

/// Puts checked operators in the place of wrapping ones. Runs after types were made to fit.
#[derive(Debug)]
pub(crate) struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            let preserver = NamePreserver::new(&plan);
            let plan = plan.map_expressions(|expr| {
                let saved = preserver.save(&expr);
                Ok(expr.transform_up(|e| checked(e, &schema))?.update_data(|e| saved.restore(e)))
            })?;
            plan.map_data(LogicalPlan::recompute_schema)
        })?;
        Ok(plan.data)
    }
}

fn checked(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_int = |e: &Expr| e.get_type(schema).is_ok_and(|t| t == DataType::Int64);
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_int(&left) && is_int(&right) => {
            match Checked::udf(op) {
                Some(udf) => Ok(Transformed::yes(udf.call(vec![*left, *right]))),
                None => Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
            }
        }
        Expr::Negative(inner) if is_int(&inner) && !matches!(*inner, Expr::Literal(..)) => {
            let zero = Expr::Literal(ScalarValue::Int64(Some(0)), None);
            match Checked::udf(Operator::Minus) {
                Some(udf) => Ok(Transformed::yes(udf.call(vec![zero, *inner]))),
                None => Ok(Transformed::no(Expr::Negative(inner))),
            }
        }
        other => Ok(Transformed::no(other)),
    }
}
