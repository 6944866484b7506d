//! Columns in which most events have no value.

use arrow::array::{ArrayRef, BinaryBuilder, StringBuilder, UInt64Builder, new_null_array};
use arrow::buffer::{MutableBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType};
use std::sync::Arc;

/// A builder of Arrow's that takes many NULLs at once.
pub(crate) trait NullableBuilder: Default {
    /// One value.
    type Value<'v>;
    /// Type of the column.
    const TYPE: DataType;
    fn value(&mut self, value: Self::Value<'_>);
    fn nulls(&mut self, n: usize);
    fn column(self) -> ArrayRef;
}

macro_rules! nullable {
    ($builder:ty, $value:ty, $type:expr) => {
        impl NullableBuilder for $builder {
            type Value<'v> = $value;
            const TYPE: DataType = $type;
            fn value(&mut self, value: Self::Value<'_>) {
                self.append_value(value);
            }
            fn nulls(&mut self, n: usize) {
                self.append_nulls(n);
            }
            fn column(mut self) -> ArrayRef {
                Arc::new(self.finish())
            }
        }
    };
}

nullable!(BinaryBuilder, &'v [u8], DataType::Binary);
nullable!(StringBuilder, &'v str, DataType::Utf8);
nullable!(UInt64Builder, u64, DataType::UInt64);

/// Counts NULLs until a value comes.
#[derive(Default)]
pub(crate) struct Sparse<B> {
    builder: Option<B>,
    nulls: usize,
}

impl<B: NullableBuilder> Sparse<B> {
    pub(crate) fn append(&mut self, value: Option<B::Value<'_>>) {
        let Some(value) = value else {
            self.nulls += 1;
            return;
        };
        let builder = self.builder.get_or_insert_default();
        if self.nulls > 0 {
            builder.nulls(std::mem::take(&mut self.nulls));
        }
        builder.value(value);
    }

    pub(crate) fn finish(self) -> ArrayRef {
        match self.builder {
            None => new_null_array(&B::TYPE, self.nulls),
            Some(mut builder) => {
                builder.nulls(self.nulls);
                builder.column()
            }
        }
    }
}

/// A column of numbers that mostly has one value: counted until another one comes.
#[derive(Default)]
pub(crate) struct Uniform<T> {
    first: T,
    count: usize,
    /// All values, once there are several.
    values: Vec<T>,
}

impl<T: Copy + Default + PartialEq + ArrowNativeType> Uniform<T> {
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        if self.values.is_empty() {
            if self.count == 0 {
                self.first = value;
            }
            if self.first == value {
                self.count += 1;
                return;
            }
            self.values = vec![self.first; self.count];
        }
        self.values.push(value);
    }

    /// The values. Zeros alone take no memory before somebody reads them.
    pub(crate) fn finish(self) -> ScalarBuffer<T> {
        if !self.values.is_empty() {
            return self.values.into();
        }
        let bytes = self.count * size_of::<T>();
        match self.first == T::default() {
            true => ScalarBuffer::new(MutableBuffer::from_len_zeroed(bytes).into(), 0, self.count),
            false => vec![self.first; self.count].into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;

    fn column(values: &[Option<&str>]) -> ArrayRef {
        let mut sparse = Sparse::<StringBuilder>::default();
        values.iter().for_each(|v| sparse.append(*v));
        sparse.finish()
    }

    #[test]
    fn values_stand_where_they_were_appended() {
        let none: [Option<&str>; 3] = [None; 3];
        let all =
            [&none[..], &[], &[Some("a")], &[None, None, Some("a"), None, Some("b"), Some(""), None, None]];
        for values in all {
            let column = column(values);
            assert_eq!(column.as_string::<i32>().iter().collect::<Vec<_>>(), values);
            assert_eq!(column.null_count(), values.iter().filter(|v| v.is_none()).count());
        }
    }

    #[test]
    fn uniform_values_are_those_that_were_pushed() {
        for values in [&[][..], &[0, 0, 0], &[7, 7], &[0, 0, 3, 0], &[3, 0], &[1, 2, 3]] {
            let mut uniform = Uniform::<u32>::default();
            values.iter().for_each(|v| uniform.push(*v));
            assert_eq!(uniform.finish()[..], *values);
        }
    }
}
