//! The left side of a per-row join, in pieces of bounded size.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use futures::{Stream, StreamExt, TryStreamExt, stream};

/// Bytes of a piece: no batch is added to one that has as many.
const BYTES_MAX: usize = 8 << 20;

/// The rows of `input` in their order, in batches of at most `rows_max` rows, and mostly about as many.
pub(crate) fn pieces(
    input: SendableRecordBatchStream,
    rows_max: usize,
) -> impl Stream<Item = Result<RecordBatch>> {
    let pieces = stream::unfold(input, move |mut input| async move {
        let piece = piece(&mut input, rows_max).await.transpose()?;
        Some((piece, input))
    });
    pieces.map_ok(move |batch| sliced(batch, rows_max)).try_flatten()
}

async fn piece(input: &mut SendableRecordBatchStream, rows_max: usize) -> Result<Option<RecordBatch>> {
    let (mut batches, mut rows, mut bytes) = (Vec::new(), 0, 0);
    while rows < rows_max && bytes < BYTES_MAX {
        let Some(batch) = input.next().await.transpose()? else { break };
        rows += batch.num_rows();
        bytes += batch.get_array_memory_size();
        batches.push(batch);
    }
    match batches.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        [first, ..] => Ok(Some(concat_batches(&first.schema(), &batches)?)),
    }
}

/// A batch in pieces of at most `rows_max` rows, which share its columns.
pub(crate) fn sliced(batch: RecordBatch, rows_max: usize) -> impl Stream<Item = Result<RecordBatch>> {
    let (rows, step) = (batch.num_rows(), rows_max.max(1));
    stream::iter((0..rows).step_by(step).map(move |at| Ok(batch.slice(at, step.min(rows - at)))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{AsArray, Int64Array};
    use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::TryStreamExt;
    use std::sync::Arc;

    fn batches(count: i64, rows: i64) -> SendableRecordBatchStream {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let made = schema.clone();
        let batch = move |i: i64| {
            let column = Int64Array::from_iter_values(i * rows..(i + 1) * rows);
            Ok(RecordBatch::try_new(made.clone(), vec![Arc::new(column)])?)
        };
        Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter((0..count).map(batch))))
    }

    fn numbers(batches: &[RecordBatch]) -> Vec<i64> {
        batches.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
    }

    #[tokio::test]
    async fn pieces_are_bounded_and_hold_every_row_in_order() {
        let found: Vec<_> = pieces(batches(7, 1_000), 3_000).try_collect().await.unwrap();
        let sizes: Vec<_> = found.iter().map(RecordBatch::num_rows).collect();
        assert_eq!(sizes, [3_000, 3_000, 1_000]);
        assert_eq!(numbers(&found), (0..7_000).collect::<Vec<_>>());
        let small: Vec<_> = pieces(batches(2, 5), 2).try_collect().await.unwrap();
        assert_eq!(small.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 2, 1, 2, 2, 1]);
        assert_eq!(numbers(&small), (0..10).collect::<Vec<_>>());
        let none: Vec<_> = pieces(batches(0, 1), 10).try_collect().await.unwrap();
        assert!(none.is_empty());
    }

    #[tokio::test]
    async fn an_error_ends_the_rows() {
        let failing =
            batches(2, 10).chain(stream::once(async { datafusion::common::internal_err!("no more rows") }));
        let schema = batches(0, 1).schema();
        let mut rows = Box::pin(pieces(Box::pin(RecordBatchStreamAdapter::new(schema, failing)), 100));
        assert!(rows.next().await.unwrap().is_err());
    }

    #[tokio::test]
    async fn slices_are_no_larger_than_asked_for() {
        let [batch] = &batches(1, 10).try_collect::<Vec<_>>().await.unwrap()[..] else { panic!("one batch") };
        let found: Vec<_> = sliced(batch.clone(), 4).try_collect().await.unwrap();
        assert_eq!(found.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [4, 4, 2]);
        assert_eq!(numbers(&found), (0..10).collect::<Vec<_>>());
    }
}
