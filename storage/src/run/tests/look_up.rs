//! Single keys: what is read by pages is what a scan reads.

use super::*;

/// Every type that a column can have; the last two columns never have a value and nearly never.
const TYPES: [ColumnType; 14] = [
    ColumnType::Text,
    ColumnType::Int64,
    ColumnType::Text,
    ColumnType::Bool,
    ColumnType::Decimal { integer: 36, scale: 2 },
    ColumnType::Float64,
    ColumnType::Date,
    ColumnType::Timestamp,
    ColumnType::TimestampNs,
    ColumnType::Instant,
    ColumnType::Json,
    ColumnType::Bytes,
    ColumnType::Text,
    ColumnType::Int64,
];

/// Keys of 1 to 9 rows, one of more rows than two pages have.
fn key_of(i: u64) -> String {
    match i {
        2000..3200 => "key 0500 again and again".into(),
        _ => format!("key {:04}", i / (i % 9 + 1)),
    }
}

fn many(n: u64) -> (TableSchema, RecordBatch) {
    let (schema, mut numbers) = (schema(1, &TYPES), Numbers(11));
    let mut rows = Vec::new();
    for i in 0..n {
        let (key, text, words) = (key_of(i), format!("{i:x} {:x}", numbers.below(1 << 31)), i % 5);
        let (word, bytes) = (format!("word {words}"), [i as u8; 3]);
        let wide = numbers.below(1 << 30) as i64 - (1 << 29);
        let cells = [
            Cell::Int(wide * wide * 7),
            Cell::Text(if words < 2 { &word } else { &text }),
            Cell::Bool(i % 3 == 0),
            Cell::Decimal { unscaled: i128::from(wide) << (i % 60), scale: 2 },
            Cell::Float(wide as f64 / 3.0),
            Cell::Date(wide as i32),
            Cell::Timestamp(wide),
            Cell::TimestampNs(-wide),
            Cell::Instant(i as i64 * 1000),
            Cell::Json(if words < 4 { "{}" } else { "[1]" }),
            Cell::Bytes(&bytes[..(i % 4) as usize]),
        ];
        let shown = cells.iter().enumerate().filter(|_| numbers.below(4) > 0 || i % 700 < 40);
        let mut cells: Vec<_> = shown.map(|(c, cell)| (ColumnId(c as u32 + 1), *cell)).collect();
        cells.insert(0, (ColumnId(0), Cell::Text(&key)));
        if i == 77 {
            cells.push((ColumnId(13), Cell::Int(1)));
        }
        let mut head = EventHead::new(Op::Upsert, OriginId(0), i);
        head.full = i % 4 != 0;
        head.valid_from = Some(numbers.below(1 << 40) as i64);
        head.ties = if i % 11 == 0 { b"tie" } else { b"" };
        let mut row = Vec::new();
        encode_row(&mut row, &head, &cells);
        rows.push(row);
    }
    let sorted = naive_sort(&decode(&rows, &schema, 1), order(false));
    (schema, sorted)
}

fn names(sorted: &RecordBatch) -> Vec<String> {
    sorted.schema().fields().iter().map(|f| f.name().clone()).collect()
}

/// The rows of a key as they should be.
fn rows_of(sorted: &RecordBatch, key: &[u8]) -> RecordBatch {
    let keys = sorted.column(0).as_binary::<i32>();
    picked(sorted, (0..keys.len() as u32).filter(|i| keys.value(*i as usize) == key).collect())
}

/// Asserts that what was found of a key is `expected`; a column that is not there stands for NULLs.
fn assert_found(found: Option<&RecordBatch>, expected: &RecordBatch, case: &str) {
    let Some(found) = found else { return assert_eq!(expected.num_rows(), 0, "{case}") };
    assert_eq!(found.num_rows(), expected.num_rows(), "{case}");
    for field in expected.schema().fields() {
        let right = expected.column_by_name(field.name()).expect("a column");
        match found.column_by_name(field.name()) {
            Some(column) => assert_eq!(column, right, "{} of {case}", field.name()),
            None => assert_eq!(right.null_count(), right.len(), "{} of {case}", field.name()),
        }
    }
}

/// Keys that are there, and ones below, between and above.
fn asked(sorted: &RecordBatch) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> =
        sorted.column(0).as_binary::<i32>().iter().flatten().map(<[u8]>::to_vec).collect();
    keys.dedup();
    let between: Vec<Vec<u8>> = keys.iter().step_by(7).map(|k| [k, &b"\0"[..]].concat()).collect();
    let short = keys.iter().step_by(5).map(|k| k[..k.len() - 1].to_vec()).collect::<Vec<_>>();
    keys.into_iter().chain(between).chain(short).chain([Vec::new(), b"\xff".to_vec()]).collect()
}

#[test]
fn a_key_comes_with_all_its_rows_and_no_others() {
    let (schema, sorted) = many(6000);
    let names = names(&sorted);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for format in FORMATS {
        let (disk, dir) = sim();
        let meta = write(&disk, &dir, spec(1, format), &schema, &sorted);
        let reader = open(&disk, &dir, &meta).expect("open");
        for key in asked(&sorted).into_iter().step_by(5) {
            let found = reader.rows_of_key(&key, &names).expect("a look-up");
            assert_found(found.as_ref(), &rows_of(&sorted, &key), &format!("{key:?} in {format:?}"));
        }
    }
}

#[test]
fn pages_of_every_type_give_what_a_scan_gives() {
    let (schema, sorted) = many(6000);
    let (disk, dir) = sim();
    let meta = write(&disk, &dir, spec(1, RunFormat::Parquet), &schema, &sorted);
    let reader = open(&disk, &dir, &meta).expect("open");
    let names = names(&sorted);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut numbers = Numbers(5);
    for _ in 0..150 {
        let start = numbers.below(meta.rows);
        let end = (start + 1 + numbers.below(900)).min(meta.rows);
        let prepared = reader.prepared(&names).expect("columns");
        let arrays = reader.few(&prepared, start..end, None).expect("pages").expect("codings that are known");
        let batches = reader.scan(&names, start..end).expect("a scan").collect::<Result<Vec<_>, _>>();
        let batches = batches.expect("batches");
        let scanned = concat_batches(&batches[0].schema(), &batches).expect("one schema");
        assert!(arrays.len() > TYPES.len(), "{} columns", arrays.len());
        for (field, array) in prepared.schema.fields().iter().zip(arrays) {
            let name = field.name();
            assert_eq!(Some(&array), scanned.column_by_name(name), "{name} of {start}..{end}");
        }
    }
}

#[test]
fn a_flipped_bit_never_makes_a_wrong_answer() {
    // Several blocks: what opening reads must not be all that is checked.
    let (schema, sorted) = many(20_000);
    // Neither column has a dictionary, reading which would check other blocks than those of the pages.
    let names = ["valid_from"];
    let shown = sorted.project(&[0, 1]).expect("two columns");
    let keys = asked(&sorted);
    let keys: Vec<_> = keys.iter().step_by(keys.len() / 40).collect();
    for format in FORMATS {
        let (disk, dir) = sim();
        let meta = write(&disk, &dir, spec(1, format), &schema, &sorted);
        let path = dir.join(meta.file_name());
        let bytes = disk.peek(&path).expect("the run");
        assert!(bytes.len() > 3 * DIGEST_BLOCK_BYTES, "{} bytes", bytes.len());
        let mut refused = 0;
        for at in (0..DIGEST_BLOCK_BYTES / 2).step_by(2600) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            disk.overwrite(&path, flipped);
            for key in &keys {
                let reader = open(&disk, &dir, &meta);
                match reader.and_then(|r| r.rows_of_key(key, &names)) {
                    Ok(found) => assert_found(found.as_ref(), &rows_of(&shown, key), "a flipped bit"),
                    Err(RunError::Damaged { file, .. }) => {
                        assert_eq!(file, path);
                        refused += 1;
                    }
                    Err(e) => panic!("byte {at}: {e}"),
                }
            }
        }
        assert!(refused > 60, "{refused} look-ups met the damage");
    }
}
