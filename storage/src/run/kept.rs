//! Decoded arrays as the cache keeps them: whole numbers in as few bytes as they need, and no place for
//! NULLs where most are.

use super::derive::{numbers, of_numbers};
use super::error::RunError;
use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;

/// Of so many values at most one may be there for NULLs to have no place.
const SPARSE_SHARE: usize = 4;

/// An array of a batch. Equal to what it was made of but for what stands under NULLs.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    Plain(ArrayRef),
    /// Each value less the least one; also what stands under NULLs.
    Narrow {
        ty: DataType,
        least: i64,
        values: Narrow,
        nulls: Option<NullBuffer>,
    },
    /// The values that are there.
    Sparse {
        ty: DataType,
        values: Vec<i64>,
        nulls: NullBuffer,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Narrow {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
}

impl Kept {
    /// The same in fewer bytes, where that can be.
    pub fn squeezed(&self) -> Kept {
        match self {
            Kept::Plain(array) => Kept::new(array.clone()),
            other => other.clone(),
        }
    }

    fn new(array: ArrayRef) -> Kept {
        let wide =
            matches!(array.data_type(), DataType::Int64 | DataType::UInt64 | DataType::Timestamp(_, _));
        let Some(all) = wide.then(|| numbers(&array).ok()).flatten() else { return Kept::Plain(array) };
        let ty = array.data_type().clone();
        if let Some(nulls) = array.nulls()
            && (nulls.len() - nulls.null_count()) * SPARSE_SHARE <= nulls.len()
        {
            let values = nulls.valid_indices().map(|i| all[i]).collect();
            return Kept::Sparse { ty, values, nulls: nulls.clone() };
        }
        let (least, most) = all.iter().fold((i64::MAX, i64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
        // The difference of two numbers of 64 bits fits into 64 bits without a sign.
        let width = most.wrapping_sub(least) as u64;
        let off = |v: &i64| v.wrapping_sub(least);
        let values = match width {
            _ if all.is_empty() => return Kept::Plain(array),
            0..=0xff => Narrow::One(all.iter().map(|v| off(v) as u8).collect()),
            0x100..=0xffff => Narrow::Two(all.iter().map(|v| off(v) as u16).collect()),
            0x1_0000..=0xffff_ffff => Narrow::Four(all.iter().map(|v| off(v) as u32).collect()),
            _ => return Kept::Plain(array),
        };
        Kept::Narrow { ty, least, values, nulls: array.nulls().cloned() }
    }

    /// The array.
    pub fn array(&self) -> Result<ArrayRef, RunError> {
        let (ty, values, nulls) = match self {
            Kept::Plain(array) => return Ok(array.clone()),
            Kept::Narrow { ty, least, values, nulls } => {
                let values: Vec<i64> = match values {
                    Narrow::One(v) => v.iter().map(|v| least.wrapping_add(i64::from(*v))).collect(),
                    Narrow::Two(v) => v.iter().map(|v| least.wrapping_add(i64::from(*v))).collect(),
                    Narrow::Four(v) => v.iter().map(|v| least.wrapping_add(i64::from(*v))).collect(),
                };
                (ty, values, nulls.clone())
            }
            Kept::Sparse { ty, values, nulls } => {
                let mut all = vec![0; nulls.len()];
                nulls.valid_indices().zip(values).for_each(|(i, v)| all[i] = *v);
                (ty, all, Some(nulls.clone()))
            }
        };
        of_numbers(values.into(), nulls, ty)
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let nulls = |nulls: &NullBuffer| nulls.buffer().capacity();
        match self {
            Kept::Plain(array) => array.get_array_memory_size(),
            Kept::Narrow { values, nulls: n, .. } => {
                let values = match values {
                    Narrow::One(v) => v.capacity(),
                    Narrow::Two(v) => 2 * v.capacity(),
                    Narrow::Four(v) => 4 * v.capacity(),
                };
                size_of::<Kept>() + values + n.as_ref().map_or(0, nulls)
            }
            Kept::Sparse { values, nulls: n, .. } => size_of::<Kept>() + 8 * values.capacity() + nulls(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Decimal128Array, Int64Array, StringArray, TimestampMicrosecondArray, UInt64Array};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn value() -> impl Strategy<Value = i64> {
        let near = |around: i64, width: i64| (0..width).prop_map(move |v| around.wrapping_add(v));
        prop_oneof![
            near(0, 3),
            near(-100, 256),
            near(1 << 40, 300),
            near(7, 65_537),
            near(i64::MAX - 2, 5),
            near(0, 1 << 33),
            any::<i64>(),
            Just(i64::MIN),
            Just(i64::MAX)
        ]
    }

    fn values() -> impl Strategy<Value = Vec<Option<i64>>> {
        let of = |s: BoxedStrategy<i64>, share: f64| {
            prop::collection::vec(prop::option::weighted(share, s), 0..40).boxed()
        };
        let narrow = (any::<i64>(), prop_oneof![Just(4i64), Just(300), Just(70_000), Just(1 << 33)])
            .prop_flat_map(move |(least, n)| {
                of((0..n).prop_map(move |v| least.wrapping_add(v)).boxed(), 0.9)
            });
        prop_oneof![narrow, of(value().boxed(), 0.9), of(value().boxed(), 0.1)]
    }

    proptest! {
        #[test]
        fn an_array_comes_back_as_it_was(values in values()) {
            let unsigned: UInt64Array = values.iter().map(|v| v.map(|v| v as u64)).collect();
            let times = TimestampMicrosecondArray::from(values.clone()).with_timezone("UTC");
            let arrays: [ArrayRef; 3] = [Arc::new(Int64Array::from(values)), Arc::new(unsigned), Arc::new(times)];
            for array in arrays {
                for part in [array.clone(), array.slice(array.len() / 3, array.len() / 2)] {
                    prop_assert_eq!(&Kept::new(part.clone()).array().unwrap(), &part);
                }
            }
        }
    }

    #[test]
    fn few_bytes_are_taken_where_few_will_do() {
        let each = |values: &mut dyn Iterator<Item = Option<i64>>| {
            let array: ArrayRef = Arc::new(values.take(8192).collect::<Int64Array>());
            Kept::new(array).bytes() / 1024
        };
        assert_eq!(each(&mut (0i64..).map(|v| Some(1_000_000 + v % 200))), 8);
        assert_eq!(each(&mut (0i64..).map(|v| Some(-5 - v % 300))), 16);
        assert_eq!(each(&mut (0i64..).map(|v| Some(v << 16))), 32);
        assert_eq!(each(&mut (0i64..).map(|v| Some(v << 33))), 64);
        let rare = each(&mut (0i64..).map(|v| (v % 20 == 0).then_some(v << 40)));
        assert!(rare < 8, "{rare} KiB");
    }

    #[test]
    fn other_types_stay_as_they_are() {
        let arrays: [ArrayRef; 2] =
            [Arc::new(StringArray::from(vec!["a"])), Arc::new(Decimal128Array::from(vec![7]))];
        for array in arrays {
            let kept = Kept::new(array.clone());
            assert!(matches!(&kept, Kept::Plain(plain) if Arc::ptr_eq(plain, &array)));
        }
    }
}
