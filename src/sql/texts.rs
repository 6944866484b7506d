//! Functions that make texts as long as an argument says: what one batch of rows would get is bounded
//! before it is made, since no memory pool counts it.

use super::error::{SqlError, SqlErrorKind};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::sync::Arc;

/// Characters that such a function may make in one batch.
const TEXT_MAX: i64 = 64 << 20;

/// Their names, and whether the number says how often a text is repeated, not how long it becomes.
const FUNCTIONS: [(&str, bool); 3] = [("lpad", false), ("rpad", false), ("repeat", true)];

/// One of these functions.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    repeats: bool,
}

/// Puts the bounded functions in the place of the others.
pub(crate) fn bound_texts(state: &mut SessionState) -> Result<()> {
    for (name, repeats) in FUNCTIONS {
        let Some(inner) = state.scalar_functions().get(name).cloned() else { continue };
        state.register_udf(Arc::new(ScalarUDF::new_from_impl(Bounded { inner, repeats })))?;
    }
    Ok(())
}

impl Bounded {
    fn check(&self, args: &ScalarFunctionArgs) -> Result<()> {
        let [text, number, ..] = &args.args[..] else { return Ok(()) };
        let numbers = integers(number, args.number_rows)?;
        let texts = match self.repeats {
            true => Some(integers(&lengths(text)?, args.number_rows)?),
            false => None,
        };
        let of_row = |row: usize| {
            let number =
                if numbers.is_valid(row) { numbers.as_primitive::<Int64Type>().value(row) } else { 0 };
            let length = texts.as_ref().map_or(1, |t| match t.is_valid(row) {
                true => t.as_primitive::<Int64Type>().value(row),
                false => 0,
            });
            number.max(0).saturating_mul(length)
        };
        let all = (0..args.number_rows).map(of_row).fold(0i64, i64::saturating_add);
        if all <= TEXT_MAX {
            return Ok(());
        }
        let name = self.inner.name();
        let what = format!("{name} would make {all} characters at once, more than {TEXT_MAX}");
        Err(SqlError::new(SqlErrorKind::Limit, what).hint("make shorter texts").into())
    }
}

/// A column of integers, one a row.
fn integers(value: &ColumnarValue, rows: usize) -> Result<ArrayRef> {
    Ok(cast(&value.clone().into_array(rows)?, &DataType::Int64)?)
}

/// Lengths of texts in bytes.
fn lengths(texts: &ColumnarValue) -> Result<ColumnarValue> {
    let lengths = |array: &ArrayRef| {
        Ok::<_, datafusion::error::DataFusionError>(length(&cast(array, &DataType::Utf8)?)?)
    };
    Ok(match texts {
        ColumnarValue::Array(array) => ColumnarValue::Array(lengths(array)?),
        ColumnarValue::Scalar(text) => {
            let one = lengths(&text.to_array()?)?;
            ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&one, 0)?)
        }
    })
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.check(&args)?;
        self.inner.invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}
