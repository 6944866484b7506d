//! Columns in which most events have no value.

use arrow::array::{ArrayRef, BinaryBuilder, StringBuilder, UInt64Builder, new_null_array};
use arrow::datatypes::DataType;
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
}
