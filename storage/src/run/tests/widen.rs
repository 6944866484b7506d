//! Columns of an older schema against decoding the events again.

use super::*;

/// Values of every type, NULL among them.
fn cells() -> Vec<(ColumnType, Vec<Cell<'static>>)> {
    use ColumnType as T;
    let decimal = |unscaled, scale| Cell::Decimal { unscaled, scale };
    vec![
        (T::Null, vec![Cell::Null]),
        (T::Bool, vec![Cell::Bool(true), Cell::Null, Cell::Bool(false)]),
        (T::Int64, vec![Cell::Int(i64::MIN), Cell::Int(0), Cell::Null, Cell::Int(i64::MAX)]),
        (T::decimal(6, 2), vec![decimal(-125, 2), decimal(5, 1), Cell::Null]),
        (T::decimal(12, 4), vec![decimal(10_000_000_001, 4), Cell::Null]),
        (T::Float64, vec![Cell::Float(-0.0), Cell::Float(f64::NAN), Cell::Float(1e300), Cell::Float(2.5)]),
        (T::Date, vec![Cell::Date(-1), Cell::Date(20_000), Cell::Null]),
        (T::Timestamp, vec![Cell::Timestamp(-1), Cell::Date(3), Cell::Null]),
        (T::TimestampNs, vec![Cell::TimestampNs(1_000_000_001), Cell::Null]),
        (T::Instant, vec![Cell::Instant(1), Cell::Date(3), Cell::Null]),
        (T::Text, vec![Cell::Text("x"), Cell::Text(""), Cell::Int(5), Cell::Null]),
        (T::Bytes, vec![Cell::Bytes(b"\x00\xff"), Cell::Bytes(b""), Cell::Null]),
        (T::Json, vec![Cell::Json("{\"a\":[1]}"), Cell::Text("t"), Cell::Null]),
    ]
}

fn rows_of(cells: &[Cell<'_>]) -> Vec<Vec<u8>> {
    let rows = cells.iter().enumerate().map(|(i, cell)| {
        let (mut row, key) = (Vec::new(), format!("k{i}"));
        let head = EventHead::new(Op::Insert, OriginId(0), i as u64);
        encode_row(&mut row, &head, &[(ColumnId(0), Cell::Text(&key)), (ColumnId(1), *cell)]);
        row
    });
    rows.collect()
}

#[test]
fn a_widened_column_is_what_the_events_decode_to_or_is_refused() {
    let (mut exact, mut refused) = (0, 0);
    for (from, values) in cells() {
        for (other, _) in cells() {
            let to = from.join(other);
            let rows = rows_of(&values);
            let old = schema(1, &[ColumnType::Text, from]);
            let new = schema(2, &[ColumnType::Text, to]);
            let expected = sort_batch(&decode(&rows, &new, 1), order(false)).expect("sorted");
            let (disk, dir) = sim();
            let sorted = sort_batch(&decode(&rows, &old, 1), order(false)).expect("sorted");
            let meta = write(&disk, &dir, spec(1, RunFormat::Ipc), &old, &sorted);
            let input = MergeInput::run(&open(&disk, &dir, &meta).expect("open"), Arc::new(old));
            let inputs = vec![input.expect("input")];
            match merge_runs(&disk, &dir, spec(2, RunFormat::Parquet), &new, order(false), inputs) {
                Ok(meta) => {
                    assert!(widens_exactly(from, to), "{from:?} to {to:?}");
                    let reader = open(&disk, &dir, &meta).expect("open");
                    assert_same(&read_all(&reader, &new).expect("rows"), &expected, from, to);
                    exact += 1;
                }
                Err(RunError::NeedsReplay { column, from: a, to: b }) => {
                    assert!(!widens_exactly(from, to), "{from:?} to {to:?}");
                    assert_eq!((column.as_str(), a, b), ("c1", from, to));
                    refused += 1;
                }
                Err(e) => panic!("{from:?} to {to:?}: {e}"),
            }
        }
    }
    assert!(exact > 80 && refused > 20, "{exact} exact, {refused} refused");
}

/// Batches are equal, NaN in place of NaN included.
fn assert_same(a: &RecordBatch, b: &RecordBatch, from: ColumnType, to: ColumnType) {
    assert_eq!(a.schema(), b.schema(), "{from:?} to {to:?}");
    for (x, y) in a.columns().iter().zip(b.columns()) {
        assert_eq!(x.to_data(), y.to_data(), "{from:?} to {to:?}");
    }
}

#[test]
fn a_run_older_than_a_column_merges_with_nulls_there() {
    let old = Arc::new(schema(1, &[ColumnType::Text]));
    let new = schema(2, &[ColumnType::Text, ColumnType::Int64]);
    let (disk, dir) = sim();
    let mut row = Vec::new();
    encode_row(&mut row, &EventHead::new(Op::Insert, OriginId(0), 9), &[(ColumnId(0), Cell::Text("k0"))]);
    let meta = write(&disk, &dir, spec(1, RunFormat::Ipc), &old, &decode(&[row], &old, 2));
    let reader = open(&disk, &dir, &meta).expect("open");
    let young =
        sort_batch(&decode(&rows_of(&[Cell::Int(7), Cell::Null]), &new, 3), order(false)).expect("sorted");
    let input = || MergeInput::run(&reader, old.clone()).expect("input");
    let empty = sort_batch(&decode(&rows_of(&[Cell::Null]), &new, 3), order(false)).expect("sorted");
    let inputs = vec![input(), MergeInput::batch(empty)];
    let meta = merge_runs(&disk, &dir, spec(3, RunFormat::Ipc), &new, order(false), inputs).expect("merged");
    assert_eq!(meta.constants.get("c1"), Some(&Constant::Null));
    let inputs = vec![input(), MergeInput::batch(young)];
    let meta = merge_runs(&disk, &dir, spec(2, RunFormat::Ipc), &new, order(false), inputs).expect("merged");
    let rows = read_all(&open(&disk, &dir, &meta).expect("open"), &new).expect("rows");
    let column = rows.column(rows.num_columns() - 1).as_primitive::<arrow::datatypes::Int64Type>();
    let commits = EventColumns::new(rows.clone()).expect("events").commit().values().to_vec();
    assert_eq!(commits, [3, 2, 3]);
    assert_eq!(column.iter().collect::<Vec<_>>(), [Some(7), None, None]);
}
