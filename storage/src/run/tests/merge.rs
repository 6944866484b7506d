//! Merging runs and batches against sorting everything at once.

use super::*;

/// Cuts the rows of a batch into `n` inputs at random; some rows go to two of them.
fn deal(numbers: &mut Numbers, batch: &RecordBatch, n: u64) -> Vec<RecordBatch> {
    let mut hands: Vec<Vec<u32>> = vec![Vec::new(); n as usize];
    for row in 0..batch.num_rows() as u32 {
        hands[numbers.below(n) as usize].push(row);
        if numbers.below(5) == 0 {
            hands[numbers.below(n) as usize].push(row);
        }
    }
    hands.into_iter().map(|rows| picked(batch, rows)).collect()
}

#[test]
fn any_division_into_runs_and_batches_merges_to_the_same_rows() {
    let mut numbers = Numbers(3);
    let schema = Arc::new(small_schema());
    for round in 0..40 {
        let (n, parts) = (1 + numbers.below(300), 1 + numbers.below(6));
        let batch = events(&mut numbers, n);
        let order = order(round % 2 == 0);
        let (disk, dir) = sim();
        let mut inputs = Vec::new();
        for (i, part) in deal(&mut numbers, &batch, parts).into_iter().enumerate() {
            let sorted = sort_batch(&part, order).expect("sorted");
            let input = match numbers.below(3) {
                0 => MergeInput::batch(sorted),
                kind => {
                    let spec = spec(i as u64 + 1, FORMATS[kind as usize - 1]);
                    let one = vec![MergeInput::batch(sorted)];
                    let meta = merge_runs(&disk, &dir, spec, &schema, order, one).expect("a run");
                    let reader = open(&disk, &dir, &meta).expect("open");
                    MergeInput::run(&reader, schema.clone()).expect("input")
                }
            };
            inputs.push(input);
        }
        let format = FORMATS[numbers.below(2) as usize];
        let meta = merge_runs(&disk, &dir, spec(100, format), &schema, order, inputs).expect("merged");
        let reader = open(&disk, &dir, &meta).expect("open");
        let expected = naive_sort(&batch, order);
        assert_eq!(read_all(&reader, &schema).expect("rows"), expected, "round {round}");
        assert_meta(&meta, &expected);
        reader.verify().expect("intact");
    }
}

fn assert_meta(meta: &RunMeta, batch: &RecordBatch) {
    let e = EventColumns::new(batch.clone()).expect("events");
    let ops: Vec<Op> = (0..e.len()).map(|i| e.operation(i)).collect();
    let moved = ops.iter().filter(|op| **op == Op::MovedAway).count();
    assert_eq!((meta.rows, meta.events), (ops.len() as u64, (ops.len() - moved) as u64));
    for op in [Op::Insert, Op::Update, Op::Upsert, Op::Delete, Op::Truncate, Op::MovedAway] {
        assert_eq!(meta.flags.has(op), ops.contains(&op), "{op:?}");
    }
    assert_eq!(meta.flags.partial, (0..e.len()).any(|i| !e.is_full(i)));
    assert_eq!(meta.flags.bounded, e.valid_to().values().iter().any(|v| *v != FOREVER));
    assert_eq!(meta.flags.ties, e.ties().null_count() < e.len());
    assert_eq!(meta.flags.previous, e.previous().null_count() < e.len());
    assert!(!meta.flags.mask_rest && !meta.flags.placeholders && !meta.flags.previous_deleted);
    let spans = meta.spans.expect("rows");
    let of = |a: &arrow::array::Int64Array| MinMax {
        min: *a.values().iter().min().expect("rows"),
        max: *a.values().iter().max().expect("rows"),
    };
    assert_eq!(spans.valid_from, of(e.valid_from()));
    assert_eq!((spans.valid_to, spans.system), (of(e.valid_to()), of(e.system())));
    let commits = e.commit().values();
    assert_eq!(Some(&spans.commit.min), commits.iter().min());
    assert_eq!(Some(&spans.commit.max), commits.iter().max());
    let mut keys = e.key().iter().flatten().filter(|k| !k.is_empty());
    assert_eq!(meta.key_min, keys.next().unwrap_or_default());
    assert_eq!(meta.key_max, e.key().value(e.len() - 1));
}

#[test]
fn inputs_that_are_not_sorted_are_refused_and_leave_no_file() {
    let schema = small_schema();
    let sorted = naive_sort(&events(&mut Numbers(4), 60), order(false));
    let last = sorted.num_rows() as u32 - 1;
    let (disk, dir) = sim();
    for (rows, format) in
        [(vec![last, 0], FORMATS[0]), (vec![0, 1, 2, 1], FORMATS[0]), (vec![0, 1, 2, 1], FORMATS[1])]
    {
        let inputs = vec![MergeInput::batch(picked(&sorted, rows))];
        let e = merge_runs(&disk, &dir, spec(1, format), &schema, order(false), inputs);
        assert!(matches!(e, Err(RunError::NotEvents(_))), "{e:?}");
        assert_eq!(disk.list(&dir).expect("list"), Vec::<PathBuf>::new());
    }
}

#[test]
fn columns_with_one_value_are_not_in_the_file_and_are_read_back() {
    let schema = small_schema();
    let mut rows = vec![Vec::new(); 500];
    for (i, row) in rows.iter_mut().enumerate() {
        let key = format!("key {i:04}");
        let cells = [(ColumnId(0), Cell::Text(&key)), (ColumnId(1), Cell::Int(i as i64))];
        encode_row(row, &EventHead::new(Op::Insert, OriginId(1), i as u64), &cells);
    }
    let sorted = naive_sort(&decode(&rows, &schema, 9), order(false));
    for format in FORMATS {
        let (disk, dir) = sim();
        let meta = write(&disk, &dir, spec(1, format), &schema, &sorted);
        let constant = |name: &str| meta.constants.get(name).copied();
        assert_eq!(constant("commit"), Some(Constant::Uint(9)));
        assert_eq!(constant("valid_to"), Some(Constant::Int(FOREVER)));
        assert_eq!((constant("ties"), constant("c2")), (Some(Constant::Null), Some(Constant::Null)));
        assert_eq!((constant("key"), constant("position"), constant("c1")), (None, None, None));
        let reader = open(&disk, &dir, &meta).expect("open");
        assert_eq!(read_all(&reader, &schema).expect("rows"), sorted);
    }
}
