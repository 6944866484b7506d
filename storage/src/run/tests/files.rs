//! Files of runs: what is written is read, by rows, by columns and by key.

use super::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// More columns than one mask word holds, every type among them.
fn wide_schema() -> TableSchema {
    use ColumnType as T;
    let kinds = [
        T::Bool,
        T::Int64,
        T::decimal(12, 3),
        T::Float64,
        T::Date,
        T::Timestamp,
        T::TimestampNs,
        T::Instant,
        T::Text,
        T::Bytes,
        T::Json,
        T::Null,
    ];
    let types: Vec<T> = std::iter::once(T::Text).chain(kinds.into_iter().cycle().take(90)).collect();
    schema(1, &types)
}

fn wide_cell(ty: ColumnType, n: u64, text: &str) -> Cell<'_> {
    match (n % 7, ty) {
        (0, _) | (_, ColumnType::Null) => Cell::Null,
        (_, ColumnType::Bool) => Cell::Bool(n.is_multiple_of(2)),
        (_, ColumnType::Int64) => Cell::Int(n as i64 - 50),
        (_, ColumnType::Decimal { scale, .. }) => Cell::Decimal { unscaled: n as i128 * 31, scale },
        (_, ColumnType::Float64) => Cell::Float(n as f64 / 3.0),
        (_, ColumnType::Date) => Cell::Date(n as i32),
        (_, ColumnType::Timestamp) => Cell::Timestamp(n as i64),
        (_, ColumnType::TimestampNs) => Cell::TimestampNs(n as i64),
        (_, ColumnType::Instant) => Cell::Instant(-(n as i64)),
        (_, ColumnType::Text) => Cell::Text(text),
        (_, ColumnType::Bytes) => Cell::Bytes(text.as_bytes()),
        (_, ColumnType::Json) => Cell::Json("[1, 2]"),
    }
}

fn wide_events(rows: u64) -> (TableSchema, RecordBatch) {
    let schema = wide_schema();
    let huge = "k".repeat(1 << 20);
    let encoded = (0..rows).map(|i| {
        let key = match i % 50 {
            0 => String::new(),
            1 => format!("{huge}{}", i % 3),
            k => format!("key {k}"),
        };
        let text = format!("text {}", i % 11);
        let mut cells = vec![(ColumnId(0), Cell::Text(&key))];
        for column in &schema.columns[1..] {
            let n = i * 31 + column.id.0 as u64;
            match n % 5 {
                0 => {}
                1 if i % 2 == 0 => cells.push((column.id, Cell::Unknown)),
                _ => cells.push((column.id, wide_cell(column.ty, n, &text))),
            }
        }
        let mut head = EventHead::new(if i % 3 == 0 { Op::Insert } else { Op::Update }, OriginId(0), i);
        head.full = i % 3 != 1;
        (head.token, head.operation_id) = (b"token", Some(b"operation".as_slice()));
        (head.transaction_id, head.raw) = (Some("transaction"), Some(b"raw".as_slice()));
        let mut row = Vec::new();
        encode_row(&mut row, &head, &cells);
        row
    });
    let encoded: Vec<Vec<u8>> = encoded.collect();
    let batch = naive_sort(&decode(&encoded, &schema, 3), order(false));
    (schema, batch)
}

#[test]
fn more_than_64_columns_of_all_types_with_empty_and_huge_keys_come_back() {
    let (schema, batch) = wide_events(300);
    for format in FORMATS {
        let (disk, dir) = sim();
        let meta = write(&disk, &dir, spec(1, format), &schema, &batch);
        assert!(meta.flags.mask_rest && meta.flags.placeholders && meta.flags.partial);
        let reader = open(&disk, &dir, &meta).expect("open");
        assert_eq!(read_all(&reader, &schema).expect("rows"), batch, "{format:?}");
        let column = read(&reader, &schema, &["c80", "valid_from", "c9"], 7..9).expect("columns");
        let expected = |name: &str| batch.column_by_name(name).expect("a column").slice(7, 2);
        assert_eq!(column, ["c80", "valid_from", "c9"].map(expected));
    }
}

#[test]
fn an_empty_run_has_no_rows_and_finds_nothing() {
    let schema = small_schema();
    let empty = RecordBatch::new_empty(crate::event::event_schema(&schema));
    for format in FORMATS {
        let (disk, dir) = sim();
        let meta = write(&disk, &dir, spec(1, format), &schema, &empty);
        assert_eq!((meta.rows, meta.keys, meta.spans), (0, 0, None));
        let reader = open(&disk, &dir, &meta).expect("open");
        assert!(reader.find_key(b"").expect("find").is_empty());
        assert!(reader.find_key(b"k").expect("find").is_empty());
        assert_eq!(reader.scan(&["key"], 0..0).expect("scan").count(), 0);
        assert!(reader.split_keys(4).is_empty());
        reader.verify().expect("intact");
    }
}

/// `keys[i]` events of key `i`, as events with nothing but a key.
fn keyed(keys: &[u64]) -> (TableSchema, RecordBatch) {
    let schema = schema(1, &[ColumnType::Text]);
    let mut rows = Vec::new();
    for (key, count) in keys.iter().enumerate() {
        let key = format!("key {key:06}");
        for i in (0..*count).rev() {
            let mut head = EventHead::new(Op::Insert, OriginId(0), i);
            head.valid_from = Some(i as i64);
            let mut row = Vec::new();
            encode_row(&mut row, &head, &[(ColumnId(0), Cell::Text(&key))]);
            rows.push(row);
        }
    }
    let batch = decode(&rows, &schema, 1);
    (schema, batch)
}

fn ranges_of(batch: &RecordBatch) -> BTreeMap<Vec<u8>, Range<u64>> {
    let mut ranges = BTreeMap::new();
    for (i, key) in batch.column(0).as_binary::<i32>().iter().enumerate() {
        let range = ranges.entry(key.expect("a key").to_vec()).or_insert(i as u64..i as u64);
        range.end = i as u64 + 1;
    }
    ranges
}

#[test]
fn keys_are_found_and_chunks_begin_with_a_key_unless_it_is_larger_than_a_chunk() {
    let mut counts = vec![3; 30_000];
    (counts[9], counts[5000], counts[5001], counts[20_000]) = (200_000, 40_000, 300_000, 60_000);
    let (schema, batch) = keyed(&counts);
    let ranges = ranges_of(&batch);
    for format in FORMATS {
        let (disk, dir) = sim();
        let meta = write(&disk, &dir, spec(1, format), &schema, &batch);
        assert_eq!((meta.keys, meta.rows), (30_000, batch.num_rows() as u64));
        let reader = open(&disk, &dir, &meta).expect("open");
        assert_eq!(read_all(&reader, &schema).expect("rows"), batch);
        let wanted = ranges.iter().enumerate().filter(|(i, _)| i % 977 == 0 || [9, 5000, 5001].contains(i));
        for (_, (key, range)) in wanted {
            assert_eq!(reader.find_key(key).expect("find"), *range);
            let after = [key.as_slice(), b"\0"].concat();
            assert!(reader.find_key(&after).expect("find").is_empty());
            assert_eq!(reader.lower_bound(&after).expect("bound"), range.end);
            assert_eq!(reader.lower_bound(key).expect("bound"), range.start);
        }
        assert!(reader.find_key(b"").expect("find").is_empty());
        assert!(reader.find_key(b"\xff").expect("find").is_empty());
        assert_chunks(reader.chunks(), &batch, &meta);
        let splits = reader.split_keys(4);
        // Two of the quarters end in the largest key.
        assert_eq!(splits.len(), 2);
        assert!(splits[0] < splits[1] && splits.iter().all(|k| ranges.contains_key(k)));
    }
}

#[test]
fn a_key_that_begins_a_batch_begins_a_chunk() {
    let (schema, batch) = keyed(&[10, 66_000, 1]);
    let (disk, dir) = sim();
    let spec = spec(1, RunFormat::Ipc);
    let mut writer = RunWriter::new(&disk, &dir, spec, &schema, Constants::new()).expect("a writer");
    for (first, rows) in [(0, 4), (4, 6), (10, 0), (10, 66_000), (66_010, 1)] {
        writer.write(batch.slice(first, rows)).expect("written");
    }
    let meta = writer.finish().expect("finished");
    let reader = open(&disk, &dir, &meta).expect("open");
    let rows: Vec<u64> = reader.chunks().iter().map(|c| c.rows).collect();
    assert_eq!(rows, [10, 65_536, 465]);
    assert_eq!(read_all(&reader, &schema).expect("rows"), batch);
}

fn assert_chunks(chunks: &[ChunkMeta], batch: &RecordBatch, meta: &RunMeta) {
    let keys = batch.column(0).as_binary::<i32>();
    let mut next = 0;
    for (i, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk.first_row, next);
        next += chunk.rows;
        let first = chunk.first_row as usize;
        assert_eq!(chunk.first_key, keys.value(first));
        let continues = i > 0 && keys.value(first - 1) == keys.value(first);
        assert_eq!(chunk.continues, continues, "chunk {i}");
        let alone = i > 0 && chunks[i - 1].first_key == chunk.first_key;
        assert!(!continues || alone, "chunk {i} cuts a key that is no larger than a chunk");
        let times = batch.column(1).as_primitive::<arrow::datatypes::Int64Type>();
        let times = &times.values()[first..first + chunk.rows as usize];
        assert_eq!(Some(&chunk.spans.valid_from.min), times.iter().min());
        assert_eq!(Some(&chunk.spans.valid_from.max), times.iter().max());
    }
    assert_eq!(next, meta.rows);
    assert!(chunks.iter().any(|c| c.continues) && chunks.iter().any(|c| !c.continues));
}

#[test]
fn any_rows_can_be_read_and_held_columns_are_the_same() {
    let (schema, batch) = keyed(&vec![2; 300_000]);
    let mut numbers = Numbers(5);
    let names = ["key", "valid_from", "position"];
    for format in FORMATS {
        let (disk, dir) = sim();
        let meta = write(&disk, &dir, spec(1, format), &schema, &batch);
        for cache_bytes in [0, 40 << 20, 1 << 30] {
            let cache = Arc::new(ColumnCache::new(cache_bytes));
            let reader = RunReader::open(Arc::new(disk.clone()), &dir, &meta, cache.clone()).expect("open");
            for _ in 0..40 {
                let start = numbers.below(meta.rows);
                let end = (start + 1 + numbers.below(meta.rows)).min(meta.rows);
                // Other columns each time, so that some are held and some are not.
                let asked = &names[numbers.below(3) as usize..];
                let columns = read(&reader, &schema, asked, start..end).expect("rows");
                for (name, column) in asked.iter().zip(columns) {
                    let expected = batch.column_by_name(name).expect("a column");
                    let expected = expected.slice(start as usize, (end - start) as usize);
                    assert_eq!(&column, &expected, "{format:?} {cache_bytes} {name} {start}..{end}");
                }
                assert!(cache.bytes() <= cache_bytes);
            }
            let holds = format == RunFormat::Parquet && cache_bytes > 0;
            assert_eq!(cache.bytes() > 0, holds, "{format:?} {cache_bytes}");
            drop(reader);
            assert_eq!(cache.bytes(), 0, "nothing of a run is held when it is closed");
        }
    }
}

#[test]
fn a_large_file_is_synced_on_the_way() {
    let mut numbers = Numbers(3);
    let text: String = (0..1000).map(|_| char::from(b'a' + numbers.below(26) as u8)).collect();
    let schema = small_schema();
    let rows: Vec<Vec<u8>> = (0..20_000u64)
        .map(|i| {
            let mut row = Vec::new();
            let (head, key) = (EventHead::new(Op::Insert, OriginId(0), i), format!("{i:08}"));
            let cells = [(ColumnId(0), Cell::Text(&key)), (ColumnId(2), Cell::Text(&text))];
            encode_row(&mut row, &head, &cells);
            row
        })
        .collect();
    let batch = sort_batch(&decode(&rows, &schema, 1), order(false)).expect("sorted");
    let (disk, dir) = sim();
    let inputs = vec![MergeInput::batch(batch)];
    let meta =
        merge_runs(&disk, &dir, spec(1, RunFormat::Ipc), &schema, order(false), inputs).expect("a run");
    let of_data = |path: &Path| {
        path.extension().is_some_and(|e| e == "tmp") && path.file_stem() == Some("run-000000000001".as_ref())
    };
    let trace = disk.trace();
    let syncs = trace.iter().filter(|(op, path)| *op == crate::disk::DiskOp::Sync && of_data(path));
    assert!(meta.bytes > 16 << 20 && syncs.count() > 1);
}
