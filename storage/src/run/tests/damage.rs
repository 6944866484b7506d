//! Damaged files are refused by their digests, before anything of them is parsed.

use super::*;

/// A run of a few digest blocks, its directory, and what it holds.
fn run(format: RunFormat, events: u64) -> (SimDisk, PathBuf, RunMeta, TableSchema, RecordBatch) {
    let schema = small_schema();
    let mut rows = Vec::new();
    let mut numbers = Numbers(6);
    for i in 0..events {
        let (key, text) = (format!("key {:05}", i / 2), format!("{:x}{:x}", numbers.below(1 << 31), i));
        let cells = [
            (ColumnId(0), Cell::Text(&key)),
            (ColumnId(1), Cell::Int(-(i as i64))),
            (ColumnId(2), Cell::Text(&text)),
        ];
        let mut head = EventHead::new(Op::Insert, OriginId(0), i);
        head.valid_from = Some(numbers.below(1 << 31) as i64);
        let mut row = Vec::new();
        encode_row(&mut row, &head, &cells);
        rows.push(row);
    }
    let sorted = naive_sort(&decode(&rows, &schema, 1), order(false));
    let (disk, dir) = sim();
    let meta = write(&disk, &dir, spec(1, format), &schema, &sorted);
    (disk, dir, meta, schema, sorted)
}

fn assert_damaged<T: std::fmt::Debug>(result: Result<T, RunError>, file: &Path, case: &str) {
    match result {
        Err(RunError::Damaged { file: named, what }) => {
            assert_eq!(named, file, "{case}: {what}");
            assert!(!what.is_empty());
        }
        other => panic!("{case}: {:?}", other.map(|_| ())),
    }
}

#[test]
fn fault_d9_a_flipped_byte_of_a_run_is_never_read_and_is_named() {
    let mut refused = 0;
    for format in FORMATS {
        let (disk, dir, meta, schema, rows) = run(format, 24_000);
        let path = dir.join(meta.file_name());
        let bytes = disk.peek(&path).expect("the run");
        assert!(bytes.len() > DIGEST_BLOCK_BYTES);
        let mut numbers = Numbers(7);
        let ends = (0..40).map(|i| bytes.len() - 1 - 7 * i);
        let places: Vec<usize> =
            ends.chain((0..110).map(|_| numbers.below(bytes.len() as u64) as usize)).collect();
        for at in places {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << numbers.below(8);
            disk.overwrite(&path, flipped);
            let case = format!("{format:?}, byte {at} of {}", bytes.len());
            let reader = open(&disk, &dir, &meta).expect("the sidecar is whole");
            assert_damaged(read_all(&reader, &schema), &path, &case);
            assert_damaged(reader.verify(), &path, &case);
            // One column reads other blocks only, or is refused.
            let reader = open(&disk, &dir, &meta).expect("the sidecar is whole");
            match read(&reader, &schema, &["c1"], 0..meta.rows) {
                Ok(columns) => assert_eq!(&columns[0], rows.column_by_name("c1").expect("c1"), "{case}"),
                damaged => {
                    refused += 1;
                    assert_damaged(damaged, &path, &case);
                }
            }
        }
    }
    println!("D9: 300 flipped bits of runs, seed 7; {refused} of 300 reads of one column met them");
    assert!(refused > 50 && refused < 290, "{refused}");
}

#[test]
fn a_column_that_is_read_alone_is_checked_from_end_to_end() {
    let (disk, dir, meta, schema, rows) = run(RunFormat::Ipc, 60_000);
    let path = dir.join(meta.file_name());
    let bytes = disk.peek(&path).expect("the run");
    for (name, column) in [("c1", rows.column(24)), ("valid_from", rows.column(1))] {
        let values = column.to_data().buffers()[0].to_vec();
        let start = bytes.windows(64).position(|w| w == &values[..64]).expect("values stand in the file");
        assert_eq!(bytes[start..start + values.len()], values);
        for at in [start, start + values.len() / 2, start + values.len() - 1] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            disk.overwrite(&path, flipped);
            let reader = open(&disk, &dir, &meta).expect("the sidecar is whole");
            assert_damaged(
                read(&reader, &schema, &[name], 0..meta.rows),
                &path,
                &format!("{name}, byte {at}"),
            );
        }
    }
}

#[test]
fn fault_d9_a_flipped_byte_of_the_sidecar_is_refused() {
    let (disk, dir, meta, _, _) = run(RunFormat::Parquet, 300);
    let path = dir.join(meta.sidecar_name());
    let bytes = disk.peek(&path).expect("the sidecar");
    println!("D9: a bit of each of {} bytes of a sidecar", bytes.len());
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        disk.overwrite(&path, flipped);
        assert_damaged(open(&disk, &dir, &meta), &path, &format!("byte {at}"));
    }
}

#[test]
fn fault_d9_short_long_missing_and_exchanged_runs_are_refused() {
    for format in FORMATS {
        let (disk, dir, meta, schema, rows) = run(format, 24_000);
        let data = dir.join(meta.file_name());
        let side = dir.join(meta.sidecar_name());
        let other = write(&disk, &dir, spec(2, format), &schema, &rows.slice(0, 9000));
        let same_length = disk.peek(&data).expect("data").iter().map(|b| !b).collect();
        for path in [&data, &side] {
            let bytes = disk.peek(path).expect("bytes");
            let exchanged = if *path == data { other.file_name() } else { other.sidecar_name() };
            let mut cases: Vec<(String, Vec<u8>)> = [0, 1, 10, bytes.len() / 2, bytes.len() - 1]
                .map(|n| (format!("first {n} bytes"), bytes[..n].to_vec()))
                .into();
            cases.push(("one byte more".into(), [bytes.as_slice(), b"x"].concat()));
            cases.push(("of another run".into(), disk.peek(&dir.join(exchanged)).expect("other")));
            for (case, content) in cases {
                disk.overwrite(path, content);
                assert_damaged(open(&disk, &dir, &meta), path, &format!("{format:?}: {case}"));
            }
            disk.overwrite(path, bytes);
        }
        disk.overwrite(&data, same_length);
        let reader = open(&disk, &dir, &meta).expect("the sidecar is whole");
        assert_damaged(reader.scan(&["key"], 0..1).map(|_| ()), &data, "other bytes");
        for path in [&data, &side] {
            let bytes = disk.peek(path).expect("bytes");
            disk.remove(path).expect("remove");
            assert_damaged(open(&disk, &dir, &meta), path, "missing");
            disk.overwrite(path, bytes);
        }
    }
}
