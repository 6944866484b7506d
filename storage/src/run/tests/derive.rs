//! Columns that follow from others: left out where they do in every row, read as they were.

use super::*;
use arrow::array::Decimal128Array;
use arrow::datatypes::{Int64Type, UInt64Type};
use std::collections::BTreeMap;

/// Valid time, system time and position of an event, and whether it is an insert, an update that leaves
/// columns out, or a delete.
#[derive(Clone, Copy)]
struct Fact {
    valid: i64,
    system: i64,
    position: u64,
    kind: u64,
}

/// Key, word of the operation, valid time in its unit and in milliseconds, system time, number, money.
fn table() -> TableSchema {
    use ColumnType as T;
    let types = [T::Text, T::Text, T::Int64, T::Int64, T::Instant, T::Int64, T::decimal(9, 2), T::Int64];
    schema(1, &types)
}

/// Facts of a stream whose clock goes on by `tick`: some valid times are late, and some system times.
fn facts(numbers: &mut Numbers, rows: u64, tick: i64) -> Vec<Fact> {
    let fact = |position: u64| {
        let now = 1_767_225_600_000_000 + position as i64 * tick;
        let late = |n: u64| if n == 0 { 7_000 * tick } else { 0 };
        let (valid, system) = (now - late(numbers.below(20)), now - late(numbers.below(20)));
        Fact { valid, system, position, kind: numbers.below(3) }
    };
    (0..rows).map(fact).collect()
}

/// Facts as events of commits of 150; `change` may do something else about row `i`.
fn stored(
    facts: &[Fact],
    change: impl Fn(usize, &mut Vec<(ColumnId, Cell<'static>)>, &mut EventHead<'_>),
) -> RecordBatch {
    let schema = table();
    let row = |(i, f): (usize, &Fact)| {
        let op = [Op::Insert, Op::Update, Op::Delete][f.kind as usize];
        let mut head = EventHead::new(op, OriginId(0), f.position);
        (head.valid_from, head.system, head.event_time) = (Some(f.valid), Some(f.system), Some(f.valid));
        head.full = op != Op::Update;
        let key = Cell::Text(KEYS[f.position as usize % KEYS.len()]);
        let all = [
            key,
            Cell::Text(["i", "u", ""][f.kind as usize]),
            Cell::Int(f.valid),
            Cell::Int(f.valid / 1000),
            Cell::Instant(f.system),
            Cell::Int(f.position as i64 + 1),
            Cell::Decimal { unscaled: f.position as i128 * 977, scale: 2 },
            Cell::Int(f.position as i64 % 7),
        ];
        let shown = |c: &usize| match op {
            Op::Delete => *c == 0,
            Op::Update => *c != 2 + f.position as usize % 6 || *c == 1,
            _ => true,
        };
        let columns = (0..all.len()).filter(shown).map(|c| (ColumnId(c as u32), all[c]));
        let mut cells: Vec<_> = columns.collect();
        change(i, &mut cells, &mut head);
        let mut row = Vec::new();
        encode_row(&mut row, &head, &cells);
        row
    };
    let rows: Vec<Vec<u8>> = facts.iter().enumerate().map(row).collect();
    let commits = rows.chunks(150).enumerate().map(|(i, rows)| decode(rows, &schema, i as u64 + 1));
    let batches: Vec<RecordBatch> = commits.collect();
    let all = concat_batches(&crate::event::event_schema(&schema), &batches).expect("one schema");
    sort_batch(&all, order(true)).expect("sorted")
}

/// Writes a batch as a Parquet run and reads it back, whole and column by column; what is derived in it.
fn through(batch: &RecordBatch) -> BTreeMap<String, Derivation> {
    let (disk, dir) = sim();
    let schema = table();
    let meta = {
        let inputs = vec![MergeInput::batch(batch.clone())];
        merge_runs(&disk, &dir, spec(1, RunFormat::Parquet), &schema, order(true), inputs).expect("a run")
    };
    let reader = open(&disk, &dir, &meta).expect("open");
    assert_eq!(read_all(&reader, &schema).expect("rows"), *batch);
    let rows = batch.num_rows() as u64;
    for field in batch.schema().fields() {
        for part in [0..rows, rows / 3..rows / 3 + 5, rows - 1..rows] {
            let column = read(&reader, &schema, &[field.name()], part.clone()).expect("a column");
            let expected = batch.column_by_name(field.name()).expect("a column");
            assert_eq!(&column[0], &expected.slice(part.start as usize, (part.end - part.start) as usize));
        }
    }
    let fields = batch.schema();
    let names: Vec<&str> = fields.fields().iter().map(|f| f.name().as_str()).collect();
    for row in [0, batch.num_rows() / 2, batch.num_rows() - 1] {
        let keys = batch.column(0).as_binary::<i32>();
        let key = keys.value(row);
        let found = reader.rows_of_key(key, &names).expect("a look-up").expect("rows");
        let start = (0..keys.len()).find(|i| keys.value(*i) == key).expect("the key");
        for field in found.schema().fields().iter().filter(|f| f.name() != "key_no") {
            let expected = batch.column_by_name(field.name()).expect("a column");
            let expected = expected.slice(start, found.num_rows());
            assert_eq!(found.column_by_name(field.name()), Some(&expected), "{} of a key", field.name());
        }
    }
    assert_eq!(reader.chunks().len(), 1);
    reader.chunks()[0].derived.clone()
}

fn word(derivation: Option<&Derivation>) -> &'static str {
    match derivation {
        None => "stored",
        Some(Derivation::Copy { of, plus: 0, per: 1, .. }) if of == "valid_from" => "valid",
        Some(Derivation::Copy { of, plus: 0, per: 1, .. }) if of == "system" => "system",
        Some(Derivation::Copy { of, plus: 0, per: 1000, .. }) if of == "valid_from" => "milliseconds",
        Some(Derivation::Copy { of, plus: 1, per: 1, .. }) if of == "position" => "next",
        Some(Derivation::Copy { .. }) => "copy",
        Some(Derivation::Plus { .. }) => "plus",
        Some(Derivation::Else { .. }) => "else",
        Some(Derivation::Line { .. }) => "line",
        Some(Derivation::Steps { .. }) => "steps",
        Some(Derivation::Narrow) => "narrow",
        Some(Derivation::Operation { .. }) => "operation",
    }
}

#[test]
fn what_follows_from_others_is_not_stored_and_is_read_as_it_was() {
    let facts = facts(&mut Numbers(11), 9000, 8640);
    let derived = through(&stored(&facts, |_, _, _| {}));
    let expected = [
        ("key", "stored"),
        ("valid_from", "stored"),
        ("system", "else"),
        ("event_time", "valid"),
        ("position", "line"),
        ("commit", "steps"),
        ("c1", "operation"),
        ("c2", "valid"),
        ("c3", "milliseconds"),
        ("c4", "system"),
        ("c5", "next"),
        ("c6", "narrow"),
        ("c7", "stored"),
    ];
    for (name, how) in expected {
        assert_eq!(word(derived.get(name)), how, "{name}");
    }
}

#[test]
fn one_row_that_is_otherwise_is_enough_to_store_a_column() {
    let facts = facts(&mut Numbers(12), 9000, 8640);
    let full = facts.iter().rposition(|f| f.kind == 0).expect("an insert");
    let delete = facts.iter().rposition(|f| f.kind == 2).expect("a delete");
    let not = |name: &str, how: &str, derived: &BTreeMap<String, Derivation>| {
        assert_ne!(word(derived.get(name)), how, "{name}");
    };
    for column in [1, 2, 3, 4, 5] {
        let name = format!("c{column}");
        let how = ["operation", "valid", "milliseconds", "system", "next"][column - 1];
        let other = [Cell::Text("x"), Cell::Int(1), Cell::Int(2), Cell::Instant(3), Cell::Int(4)][column - 1];
        // Another value, NULL where there should be one, and a value in a delete.
        not(
            &name,
            how,
            &through(&stored(&facts, |i, cells, _| {
                if i == full {
                    cells[column].1 = other;
                }
            })),
        );
        not(
            &name,
            how,
            &through(&stored(&facts, |i, cells, _| {
                if i == full {
                    cells[column].1 = Cell::Null;
                }
            })),
        );
        not(
            &name,
            how,
            &through(&stored(&facts, |i, cells, _| {
                if i == delete {
                    cells.push((ColumnId(column as u32), other));
                }
            })),
        );
    }
    let wide = Cell::Decimal { unscaled: i64::MAX as i128 + 1, scale: 2 };
    not(
        "c6",
        "narrow",
        &through(&stored(&facts, |i, cells, _| {
            if i == full {
                cells[6].1 = wide;
            }
        })),
    );
    let late =
        through(&stored(&facts, |i, _, head| head.event_time = Some(facts[i].valid - (i == full) as i64)));
    assert_eq!(word(late.get("event_time")), "plus");
    let none = through(&stored(&facts, |i, _, head| {
        if i == full {
            head.event_time = None;
        }
    }));
    assert_eq!(word(none.get("event_time")), "plus", "NULL stays NULL");
    let mixed =
        through(&stored(&facts, |i, _, head| head.position = if i == full { 3 } else { facts[i].position }));
    assert_eq!(word(mixed.get("commit")), "stored");
}

#[test]
fn any_mixture_of_relations_is_read_as_it_was() {
    let mut numbers = Numbers(13);
    let mut seen = BTreeMap::new();
    for round in 0..60 {
        let tick = [0, 1, 1000, 1_000_000, i64::MAX / 1_000_000_000][numbers.below(5) as usize];
        let rows = 1 + numbers.below(400);
        let mut facts = facts(&mut numbers, rows, tick);
        let extreme = [i64::MIN, i64::MAX, FOREVER, -1, 0];
        for fact in &mut facts {
            if numbers.below(50) == 0 && round % 2 == 0 {
                fact.valid = extreme[numbers.below(5) as usize];
            }
            if numbers.below(50) == 0 && round % 3 == 0 {
                fact.system = extreme[numbers.below(5) as usize];
            }
            if numbers.below(50) == 0 && round % 5 == 0 {
                fact.position = u64::MAX - numbers.below(9);
            }
        }
        let odd = numbers.below(4);
        let derived = through(&stored(&facts, |i, cells, head| {
            if odd == 0 && i % 17 == 0 {
                head.event_time = None;
            }
            if odd == 1 && i % 3 == 0 {
                head.event_time = head.event_time.map(|t| t.wrapping_sub(i as i64));
            }
            if odd == 2 && i % 19 == 0 && cells.len() > 2 {
                cells[2].1 = Cell::Unknown;
            }
        }));
        derived.values().for_each(|d| *seen.entry(word(Some(d))).or_insert(0) += 1);
    }
    for how in ["valid", "milliseconds", "next", "plus", "else", "line", "steps", "narrow", "operation"] {
        assert!(seen.get(how).is_some_and(|n| *n > 3), "{how}: {seen:?}");
    }
}

#[test]
fn chunks_of_one_run_may_derive_different_columns() {
    let facts = facts(&mut Numbers(14), PARQUET_CHUNK_ROWS as u64 + 50_000, 10);
    let batch = stored(&facts, |i, _, head| {
        if facts[i].position % KEYS.len() as u64 == 7 {
            head.event_time = None;
        }
    });
    let (disk, dir) = sim();
    let meta = {
        let inputs = vec![MergeInput::batch(batch.clone())];
        merge_runs(&disk, &dir, spec(1, RunFormat::Parquet), &table(), order(true), inputs).expect("a run")
    };
    let reader = open(&disk, &dir, &meta).expect("open");
    let words: Vec<_> = reader.chunks().iter().map(|c| word(c.derived.get("event_time"))).collect();
    assert_eq!(words, ["plus", "valid"]);
    assert_eq!(read_all(&reader, &table()).expect("rows"), batch);
}

#[test]
fn runs_of_a_newer_form_are_refused_and_those_of_the_first_are_read_and_merged() {
    let (disk, dir) = sim();
    let meta: RunMeta = serde_json::from_str(include_str!("fixtures/form-1/run.json")).expect("a run");
    assert_eq!(meta.form, 1);
    disk.overwrite(
        &dir.join(meta.file_name()),
        include_bytes!("fixtures/form-1/run-000000000002.parquet").to_vec(),
    );
    disk.overwrite(
        &dir.join(meta.sidecar_name()),
        include_bytes!("fixtures/form-1/run-000000000002.sum").to_vec(),
    );
    let newer = RunMeta { form: RUN_FORM + 1, ..meta.clone() };
    assert!(matches!(open(&disk, &dir, &newer), Err(RunError::Newer { form, .. }) if form == RUN_FORM + 1));
    use ColumnType as T;
    let types = [
        T::Text,
        T::Int64,
        T::Text,
        T::Int64,
        T::Int64,
        T::decimal(6, 2),
        T::Text,
        T::Int64,
        T::Int64,
        T::Int64,
    ];
    let schema =
        Arc::new(TableSchema { key: vec![ColumnId(1), ColumnId(2), ColumnId(3)], ..schema(1, &types) });
    let old = open(&disk, &dir, &meta).expect("open");
    assert_totals(&read_all(&old, &schema).expect("rows"));
    let inputs = vec![MergeInput::run(&old, schema.clone()).expect("input")];
    let meta =
        merge_runs(&disk, &dir, spec(3, RunFormat::Parquet), &schema, order(true), inputs).expect("merged");
    assert_eq!(meta.form, RUN_FORM);
    let new = open(&disk, &dir, &meta).expect("open");
    assert!(!new.chunks()[0].derived.is_empty() && old.chunks()[0].derived.is_empty());
    assert_eq!(read_all(&new, &schema).expect("rows"), read_all(&old, &schema).expect("rows"));
}

/// Sums that the 400 messages have from which the run of the first form was made.
fn assert_totals(batch: &RecordBatch) {
    let column = |name: &str| batch.column_by_name(name).expect("a column").clone();
    let sum = |name: &str| column(name).as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
    let money: Decimal128Array = column("c5").as_primitive().clone();
    let money = money.iter().flatten().sum::<i128>();
    assert_eq!((sum("c4"), money, sum("c7")), (116384291, 1152941807, 62811));
    assert_eq!(column("position").as_primitive::<UInt64Type>().iter().flatten().sum::<u64>(), 400 * 399 / 2);
}
