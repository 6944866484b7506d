//! Predicates of periods: `period_overlaps(start, end, start, end)` and its kin, of SQL:2011.
//!
//! Periods are half-open; NULL as a start is the beginning, NULL as an end is open, as everywhere
//! (rule A1), so that an answer is true or false and never NULL. Calls become plain comparisons
//! when a statement is optimized, so that filters and joins see what they compare.

use crate::sql::clock::{Point, parse_point};
use crate::sql::error::SqlError;
use asofdb_storage::time::format_instant;
use datafusion::arrow::array::{Array, AsArray, BooleanArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use std::ops::{BitAnd, BitOr};

/// Their names.
const NAMES: [(&str, Relation); 7] = [
    ("period_contains", Relation::Contains),
    ("period_overlaps", Relation::Overlaps),
    ("period_equals", Relation::Equals),
    ("period_precedes", Relation::Precedes),
    ("period_succeeds", Relation::Succeeds),
    ("period_immediately_precedes", Relation::ImmediatelyPrecedes),
    ("period_immediately_succeeds", Relation::ImmediatelySucceeds),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Relation {
    Contains,
    Overlaps,
    Equals,
    Precedes,
    Succeeds,
    ImmediatelyPrecedes,
    ImmediatelySucceeds,
}

/// All of them.
pub(crate) fn predicates() -> impl Iterator<Item = ScalarUDF> {
    NAMES.into_iter().map(|(name, relation)| {
        let signature = Signature::variadic_any(Volatility::Immutable);
        ScalarUDF::new_from_impl(Predicate { name, relation, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Predicate {
    name: &'static str,
    relation: Relation,
    signature: Signature,
}

/// What can be compared: expressions of a plan, or numbers of a row.
trait Side: Clone {
    type Truth: BitAnd<Output = Self::Truth> + BitOr<Output = Self::Truth>;
    fn open(&self) -> Self::Truth;
    fn given(&self) -> Self::Truth;
    fn before(&self, other: &Self) -> Self::Truth;
    fn at_or_before(&self, other: &Self) -> Self::Truth;
    fn at(&self, other: &Self) -> Self::Truth;
}

impl Relation {
    /// Whether periods `[a.0, a.1)` and `[b.0, b.1)` stand so.
    fn holds<S: Side>(self, a: [S; 2], b: [S; 2]) -> S::Truth {
        let [start, end] = [0, 1];
        match self {
            Relation::Contains => {
                (a[start].open() | b[start].given() & a[start].at_or_before(&b[start]))
                    & (a[end].open() | b[end].given() & b[end].at_or_before(&a[end]))
            }
            Relation::Overlaps => {
                (a[start].open() | b[end].open() | a[start].before(&b[end]))
                    & (b[start].open() | a[end].open() | b[start].before(&a[end]))
            }
            Relation::Equals => a[start].at(&b[start]) & a[end].at(&b[end]),
            Relation::Precedes => a[end].given() & b[start].given() & a[end].at_or_before(&b[start]),
            Relation::ImmediatelyPrecedes => a[end].given() & b[start].given() & a[end].at(&b[start]),
            Relation::Succeeds => Relation::Precedes.holds(b, a),
            Relation::ImmediatelySucceeds => Relation::ImmediatelyPrecedes.holds(b, a),
        }
    }
}

/// Whether `[a.0, a.1)` holds the point `t`; no point is in no period.
fn holds_point<S: Side>(a: [S; 2], t: S) -> S::Truth {
    let [start, end] = a;
    t.given() & (start.open() | start.at_or_before(&t)) & (end.open() | t.before(&end))
}

/// Comparisons in a plan.
impl Side for Expr {
    type Truth = Condition;

    fn open(&self) -> Condition {
        Condition(self.clone().is_null())
    }

    fn given(&self) -> Condition {
        Condition(self.clone().is_not_null())
    }

    fn before(&self, other: &Expr) -> Condition {
        Condition(self.clone().lt(other.clone()))
    }

    fn at_or_before(&self, other: &Expr) -> Condition {
        Condition(self.clone().lt_eq(other.clone()))
    }

    fn at(&self, other: &Expr) -> Condition {
        use datafusion::logical_expr::{Operator, binary_expr};
        Condition(binary_expr(self.clone(), Operator::IsNotDistinctFrom, other.clone()))
    }
}

/// A condition of a plan.
struct Condition(Expr);

impl BitAnd for Condition {
    type Output = Condition;

    fn bitand(self, other: Condition) -> Condition {
        Condition(self.0.and(other.0))
    }
}

impl BitOr for Condition {
    type Output = Condition;

    fn bitor(self, other: Condition) -> Condition {
        Condition(self.0.or(other.0))
    }
}

/// Comparisons of one row.
impl Side for Option<i64> {
    type Truth = bool;

    fn open(&self) -> bool {
        self.is_none()
    }

    fn given(&self) -> bool {
        self.is_some()
    }

    fn before(&self, other: &Self) -> bool {
        matches!((self, other), (Some(a), Some(b)) if a < b)
    }

    fn at_or_before(&self, other: &Self) -> bool {
        matches!((self, other), (Some(a), Some(b)) if a <= b)
    }

    fn at(&self, other: &Self) -> bool {
        self == other
    }
}

/// The type in which instants are compared.
fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn is_text(ty: &DataType) -> bool {
    matches!(ty, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8)
}

impl Predicate {
    fn usage(&self) -> String {
        let name = self.name;
        match self.relation {
            Relation::Contains => {
                format!("write {name}(start, end, start, end), or {name}(start, end, instant)")
            }
            _ => format!("write {name}(start, end, start, end)"),
        }
    }

    /// The type in which the arguments are compared: instants or integers.
    fn common(&self, types: &[DataType]) -> Result<DataType, SqlError> {
        let name = self.name;
        let right = types.len() == 4 || self.relation == Relation::Contains && types.len() == 3;
        if !right {
            let message = format!("{name}() was given {}", crate::count::of(types.len(), "argument"));
            return Err(SqlError::invalid(message).hint(self.usage()));
        }
        let mut common: Option<DataType> = None;
        for (i, ty) in types.iter().enumerate() {
            let wanted = match ty {
                DataType::Null => continue,
                t if t.is_integer() => DataType::Int64,
                DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => instant(),
                t if is_text(t) => instant(),
                other => {
                    let message = format!("{name}(): argument {} is of type {other}", i + 1);
                    return Err(SqlError::invalid(message).hint("periods are of instants or of integers"));
                }
            };
            if common.as_ref().is_some_and(|c| *c != wanted) {
                let message = format!("{name}() compares instants with integers");
                return Err(SqlError::invalid(message)
                    .hint("cast one of them, for instance with to_timestamp_micros(x)"));
            }
            common = Some(wanted);
        }
        Ok(common.unwrap_or(DataType::Int64))
    }

    /// A period that is written out must begin before it ends.
    fn check(&self, start: Option<i64>, end: Option<i64>, ty: &DataType) -> Result<(), SqlError> {
        let (Some(start), Some(end)) = (start, end) else { return Ok(()) };
        if start < end {
            return Ok(());
        }
        let text = |n: i64| if *ty == DataType::Int64 { n.to_string() } else { format_instant(n) };
        let message = format!("{}(): a period from {} to {} is empty", self.name, text(start), text(end));
        Err(SqlError::invalid(message)
            .hint("a period holds its start and not its end: it must begin before it ends"))
    }

    /// A text as the instant it says; other expressions are cast.
    fn fitted(&self, arg: Expr, from: &DataType, to: &DataType) -> Result<Expr> {
        if let Expr::Literal(value, _) = &arg
            && let Some(Some(text)) = value.try_as_str()
        {
            let Some(Point::Instant(us)) = parse_point(text) else {
                let message = format!("{}(): '{text}' is no time", self.name);
                return Err(SqlError::invalid(message)
                    .hint("write it like 2024-05-01, 2024-05-01 12:30:00 or 2024-05-01T12:30:00Z")
                    .into());
            };
            return Ok(lit(ScalarValue::TimestampMicrosecond(Some(us), Some("UTC".into()))));
        }
        match arg {
            arg if from == to => Ok(arg),
            Expr::Literal(value, _) => Ok(lit(value.cast_to(to)?)),
            arg => Ok(Expr::Cast(Cast::new(Box::new(arg), to.clone()))),
        }
    }
}

/// The number of a literal that was fitted; `None` for an open end.
fn literal(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int64(n) | ScalarValue::TimestampMicrosecond(n, _), _) => *n,
        _ => None,
    }
}

impl ScalarUDFImpl for Predicate {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.common(types)?;
        Ok(DataType::Boolean)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        // What may differ each time it is asked for is asked once only.
        if args.iter().any(Expr::is_volatile) {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let types = args.iter().map(|a| info.get_data_type(a)).collect::<Result<Vec<_>>>()?;
        let common = self.common(&types)?;
        let fit = |(arg, ty): (Expr, &DataType)| self.fitted(arg, ty, &common);
        let sides = args.into_iter().zip(&types).map(fit).collect::<Result<Vec<Expr>>>()?;
        for period in sides.chunks_exact(2) {
            self.check(literal(&period[0]), literal(&period[1]), &common)?;
        }
        let condition = match <[Expr; 4]>::try_from(sides) {
            Ok([a, b, c, d]) => self.relation.holds([a, b], [c, d]),
            Err(sides) => match <[Expr; 3]>::try_from(sides) {
                Ok([a, b, t]) => holds_point([a, b], t),
                Err(_) => return Err(SqlError::invalid(self.usage()).into()),
            },
        };
        Ok(ExprSimplifyResult::Simplified(condition.0))
    }

    /// For arguments that are constant or volatile.
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let common = self.common(&types)?;
        let constant = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let mut sides = Vec::with_capacity(arrays.len());
        for array in &arrays {
            let array = cast(array, &common)?;
            sides.push(match &common {
                DataType::Int64 => array.as_primitive::<Int64Type>().clone(),
                _ => array.as_primitive::<TimestampMicrosecondType>().reinterpret_cast::<Int64Type>(),
            });
        }
        let at = |side: usize, row: usize| sides[side].is_valid(row).then(|| sides[side].value(row));
        let rows = sides.first().map_or(0, |s| s.len());
        let holds = |row: usize| match sides.len() {
            4 => self.relation.holds([at(0, row), at(1, row)], [at(2, row), at(3, row)]),
            _ => holds_point([at(0, row), at(1, row)], at(2, row)),
        };
        if constant && rows > 0 {
            for side in (0..sides.len() - 1).step_by(2) {
                self.check(at(side, 0), at(side + 1, 0), &common)?;
            }
        }
        let truths: BooleanArray = (0..rows).map(|row| Some(holds(row))).collect();
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&truths, 0)?),
            false => ColumnarValue::Array(std::sync::Arc::new(truths)),
        })
    }
}
