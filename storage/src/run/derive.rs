//! Columns of a chunk that are not in the run file because they follow from others, and how.
//!
//! A writer proposes ([`super::reduce`]) and leaves a column out only where what is derived here equals
//! it in every row of the chunk; the chunk says so in the sidecar.

use super::error::RunError;
use super::meta::{Constant, Constants};
use super::read::constant_array;
use crate::event::Op;
use crate::event::columns::{OP_MASK, meta_fields};
use arrow::array::*;
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How the values of a column of a chunk are had. "Own" is what the file has under its name, which is
/// NULL throughout where the column is derived altogether.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Derivation {
    /// `(of + plus) / per` in some rows, NULL in the others. `of` never is NULL.
    Copy {
        /// A column of whole numbers.
        of: String,
        /// What is added.
        plus: i64,
        /// What the sum is divided by; more than 0.
        per: i64,
        /// Which rows have the value.
        rows: Rows,
    },
    /// Own plus another column; NULL where own is.
    Plus {
        /// A column of whole numbers.
        of: String,
    },
    /// Where own is NULL, the value of another column.
    Else {
        /// A column of the same type.
        of: String,
    },
    /// Own, 0 where it is NULL, plus the place on a line that a time says.
    Line {
        /// Which time.
        by: Clock,
        /// Times and places on the line, ascending in both; straight in between.
        at: Vec<(i64, u64)>,
    },
    /// The value of the last step at or before the position.
    Steps {
        /// Positions and the values from there on, ascending in position.
        at: Vec<(u64, u64)>,
    },
    /// A decimal whose digits are in the column of [`narrow_name`], as 64 bits.
    Narrow,
    /// One text or NULL for each [`Op`] by its number.
    Operation {
        /// The texts.
        texts: Vec<Option<String>>,
    },
}

/// Rows of a chunk, as an image column sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// Every row.
    All,
    /// Those that author the column.
    Authored,
    /// Of those, the ones that write a row and do not end one.
    Written,
}

/// A time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Its valid time.
    Valid,
    /// Its system time.
    System,
    /// The later of both.
    Later,
}

/// Derivations of a chunk by physical name.
pub type Derivations = BTreeMap<String, Derivation>;

/// Name of the column that has the digits of a decimal column.
pub(crate) fn narrow_name(name: &str) -> String {
    format!("{name}_narrow")
}

/// Whether a name is one of [`narrow_name`].
pub(crate) fn is_narrow(name: &str) -> bool {
    name.ends_with("_narrow")
}

impl Derivation {
    /// Columns that are needed for it.
    pub(crate) fn sources(&self, name: &str) -> Vec<String> {
        let all = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        match self {
            Derivation::Copy { of, rows, .. } => match rows {
                Rows::All => vec![of.clone()],
                Rows::Authored => vec![of.clone(), "mask".into()],
                Rows::Written => vec![of.clone(), "mask".into(), "op".into()],
            },
            Derivation::Plus { of } | Derivation::Else { of } => vec![of.clone()],
            Derivation::Line { by: Clock::Valid, .. } => all(&["valid_from"]),
            Derivation::Line { by: Clock::System, .. } => all(&["system"]),
            Derivation::Line { by: Clock::Later, .. } => all(&["valid_from", "system"]),
            Derivation::Steps { .. } => all(&["position"]),
            Derivation::Narrow => vec![narrow_name(name)],
            Derivation::Operation { .. } => all(&["op"]),
        }
    }

    /// Whether the file's column of that name is needed too.
    pub(crate) fn has_own(&self) -> bool {
        matches!(self, Derivation::Plus { .. } | Derivation::Else { .. } | Derivation::Line { .. })
    }

    /// The column, of type `ty`. `get` gives own and the columns it follows from; those have `rows` rows.
    pub(crate) fn column(
        &self,
        name: &str,
        ty: &DataType,
        rows: usize,
        get: &mut dyn FnMut(&str) -> Result<ArrayRef, RunError>,
    ) -> Result<ArrayRef, RunError> {
        Ok(match self {
            Derivation::Copy { of, plus, per, rows: which } => {
                let values = copied(&numbers(&get(of)?)?, *plus, (*per).max(1));
                let present = match which {
                    Rows::All => None,
                    which => Some(presence(name, *which, rows, get)?),
                };
                of_numbers(values, present, ty)?
            }
            Derivation::Plus { of } => {
                let (own, of) = (get(name)?, numbers(&get(of)?)?);
                let sums = numbers(&own)?.iter().zip(of.iter()).map(|(a, b)| a.wrapping_add(*b)).collect();
                of_numbers(sums, own.nulls().cloned(), ty)?
            }
            Derivation::Else { of } => or_else(&get(name)?, &numbers(&get(of)?)?, ty)?,
            Derivation::Line { by, at } => on_line(&get(name)?, *by, at, ty, get)?,
            Derivation::Steps { at } => {
                let step = |position: &i64| {
                    let after = at.partition_point(|(from, _)| *from <= *position as u64);
                    after.checked_sub(1).map_or(0, |i| at[i].1 as i64)
                };
                of_numbers(numbers(&get("position")?)?.iter().map(step).collect(), None, ty)?
            }
            Derivation::Narrow if !matches!(ty, DataType::Decimal128(_, _)) => return Err(unfit()),
            Derivation::Narrow => {
                let digits = get(&narrow_name(name))?;
                let wide: Decimal128Array =
                    digits.as_primitive_opt::<Int64Type>().ok_or_else(unfit)?.unary(i128::from);
                Arc::new(wide.with_data_type(ty.clone()))
            }
            Derivation::Operation { texts } => {
                let op = get("op")?;
                let op = op.as_primitive_opt::<UInt8Type>().ok_or_else(unfit)?;
                let text = |op: &u8| texts.get((op & OP_MASK) as usize).and_then(|t| t.as_deref());
                Arc::new(op.values().iter().map(text).collect::<StringArray>())
            }
        })
    }
}

fn unfit() -> RunError {
    RunError::NotEvents("a column follows from one of another type".into())
}

/// The values of a column of whole numbers or times as 64 bits, without regard to NULLs.
pub(crate) fn numbers(array: &ArrayRef) -> Result<ScalarBuffer<i64>, RunError> {
    use DataType as T;
    let data = array.to_data();
    match array.data_type() {
        T::Int64 | T::UInt64 | T::Timestamp(_, _) => {
            Ok(ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len()))
        }
        _ => Err(unfit()),
    }
}

/// A column of 64-bit numbers or times.
pub(crate) fn of_numbers(
    values: ScalarBuffer<i64>,
    nulls: Option<NullBuffer>,
    ty: &DataType,
) -> Result<ArrayRef, RunError> {
    let data = ArrayData::builder(ty.clone()).len(values.len()).add_buffer(values.into_inner()).nulls(nulls);
    match ty {
        DataType::Int64 | DataType::UInt64 | DataType::Timestamp(_, _) => Ok(make_array(data.build()?)),
        _ => Err(unfit()),
    }
}

fn copied(of: &ScalarBuffer<i64>, plus: i64, per: i64) -> ScalarBuffer<i64> {
    match (plus, per) {
        (0, 1) => of.clone(),
        (plus, 1) => of.iter().map(|v| v.wrapping_add(plus)).collect(),
        (plus, per) => of.iter().map(|v| v.wrapping_add(plus).wrapping_div(per)).collect(),
    }
}

/// The rows of a chunk in which an image column has a value.
fn presence(
    name: &str,
    which: Rows,
    rows: usize,
    get: &mut dyn FnMut(&str) -> Result<ArrayRef, RunError>,
) -> Result<NullBuffer, RunError> {
    let column = name.strip_prefix('c').and_then(|n| n.parse::<u32>().ok()).filter(|n| *n < 64);
    let column = column.ok_or_else(unfit)?;
    let mask = get("mask")?;
    let mask = mask.as_primitive_opt::<UInt64Type>().ok_or_else(unfit)?.values();
    let authored = |i: usize| mask[i] >> column & 1 == 1;
    Ok(NullBuffer::new(match which {
        Rows::Written => {
            let op = get("op")?;
            let op = op.as_primitive_opt::<UInt8Type>().ok_or_else(unfit)?.values();
            BooleanBuffer::collect_bool(rows, |i| authored(i) && op[i] & OP_MASK < Op::Delete as u8)
        }
        _ => BooleanBuffer::collect_bool(rows, authored),
    }))
}

fn or_else(own: &ArrayRef, other: &ScalarBuffer<i64>, ty: &DataType) -> Result<ArrayRef, RunError> {
    let Some(nulls) = own.nulls().filter(|n| n.null_count() > 0) else { return Ok(own.clone()) };
    if nulls.null_count() == own.len() {
        return of_numbers(other.clone(), None, ty);
    }
    let mut values = other.to_vec();
    let own = numbers(own)?;
    nulls.valid_indices().for_each(|i| values[i] = own[i]);
    of_numbers(values.into(), None, ty)
}

/// The times that a line is read at.
pub(crate) fn clock(
    by: Clock,
    get: &mut dyn FnMut(&str) -> Result<ArrayRef, RunError>,
) -> Result<ScalarBuffer<i64>, RunError> {
    Ok(match by {
        Clock::Valid => numbers(&get("valid_from")?)?,
        Clock::System => numbers(&get("system")?)?,
        Clock::Later => {
            let (valid, system) = (numbers(&get("valid_from")?)?, numbers(&get("system")?)?);
            valid.iter().zip(system.iter()).map(|(v, s)| *v.max(s)).collect()
        }
    })
}

fn on_line(
    own: &ArrayRef,
    by: Clock,
    at: &[(i64, u64)],
    ty: &DataType,
    get: &mut dyn FnMut(&str) -> Result<ArrayRef, RunError>,
) -> Result<ArrayRef, RunError> {
    let times = clock(by, get)?;
    let mut places: Vec<i64> = times.iter().map(|t| place(at, *t) as i64).collect();
    let off = numbers(own)?;
    match own.nulls() {
        Some(nulls) => nulls.valid_indices().for_each(|i| places[i] = places[i].wrapping_add(off[i])),
        None => places.iter_mut().zip(off.iter()).for_each(|(place, off)| *place = place.wrapping_add(*off)),
    }
    of_numbers(places.into(), None, ty)
}

/// The place on a line at a time; the first or last one before and behind it.
pub(crate) fn place(at: &[(i64, u64)], time: i64) -> u64 {
    let after = at.partition_point(|(t, _)| *t <= time);
    let (Some(&(t, p)), next) = (at.get(after.saturating_sub(1)), at.get(after)) else { return 0 };
    match next {
        Some(&(u, q)) if after > 0 => {
            let (gone, all) = (time.wrapping_sub(t) as u64, u.wrapping_sub(t) as u64);
            match gone.checked_mul(q.wrapping_sub(p)) {
                Some(product) => p.wrapping_add(product / all.max(1)),
                None => p,
            }
        }
        _ => p,
    }
}

/// A column before the image columns that has one value.
pub(crate) fn constant_column(
    constants: &Constants,
    name: &str,
    rows: usize,
) -> Option<Result<ArrayRef, RunError>> {
    let value: Constant = *constants.get(name)?;
    let field = meta_fields().into_iter().find(|f| f.name() == name)?;
    Some(constant_array(field.data_type(), value, rows))
}
