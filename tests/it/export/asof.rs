//! Exported interval rows answer AS OF by plain comparisons on their four time columns.

use super::fixture::{Fixture, STEPS, Shown, instant, parquet_files, read_file, shown, sorted};
use arrow::array::{Array, AsArray, BooleanArray, PrimitiveArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{ArrowPrimitiveType, Int64Type, TimestampMicrosecondType};
use asofdb::export::{ExportLayout, ExportOptions, ExportOrder};
use asofdb::time::{SystemTime, ValidTime};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::statistics::Statistics;
use std::fs::File;
use std::path::Path;

/// `(start IS NULL OR start <= t) AND (end IS NULL OR end > t)`; for the latest, `end IS NULL`.
fn holds<T: ArrowPrimitiveType<Native = i64>>(batch: &RecordBatch, axis: &str, t: Option<i64>) -> Vec<bool> {
    let column = |name: &str| -> PrimitiveArray<T> {
        batch.column_by_name(&format!("__{axis}{name}")).unwrap().as_primitive::<T>().clone()
    };
    let (start, end) = (column("START_AT"), column("END_AT"));
    let holds = |i| match t {
        None => end.is_null(i),
        Some(t) => (start.is_null(i) || start.value(i) <= t) && (end.is_null(i) || end.value(i) > t),
    };
    (0..batch.num_rows()).map(holds).collect()
}

/// What the files answer for a point.
fn answer<T: ArrowPrimitiveType<Native = i64>>(
    batches: &[RecordBatch],
    valid: Option<i64>,
    system: Option<i64>,
) -> Vec<Shown> {
    let mut rows = Vec::new();
    for batch in batches {
        let (v, s) = (holds::<T>(batch, "", valid), holds::<T>(batch, "SYSTEM_", system));
        let mask: BooleanArray = v.iter().zip(s).map(|(v, s)| Some(*v && s)).collect();
        rows.extend(shown(&filter_record_batch(batch, &mask).unwrap()));
    }
    let times = ["__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT"];
    sorted(super::fixture::without(rows, &times))
}

fn batches(dir: &Path) -> Vec<RecordBatch> {
    parquet_files(dir).iter().flat_map(|f| read_file(&dir.join(f))).collect()
}

/// Compares the files with our own clauses at every point of the grid, half steps and both ends
/// included. Returns the points that have rows.
fn compare<T: ArrowPrimitiveType<Native = i64>>(fixture: &Fixture, at: impl Fn(i64) -> i64) -> usize {
    let table = fixture.store.table("t").unwrap();
    let files = batches(&fixture.out().join("t"));
    let points = || (-1..=STEPS).map(|n| Some(at(n))).chain([None]);
    let mut answered = 0;
    for valid in points() {
        for system in points() {
            let ours = table.as_of(valid.map(ValidTime), system.map(SystemTime)).unwrap();
            let ours = sorted(ours.iter().flat_map(shown).collect());
            assert_eq!(answer::<T>(&files, valid, system), ours, "at {valid:?}, {system:?}");
            answered += usize::from(!ours.is_empty());
        }
    }
    answered
}

#[test]
fn exported_intervals_answer_as_of_by_plain_filters() {
    for seed in 1..=4 {
        let fixture = Fixture::of_instants(seed, 150);
        for order in [ExportOrder::Key, ExportOrder::Time] {
            let manifest = fixture.export(&ExportOptions { order, ..ExportOptions::default() });
            assert!(manifest.rows > 100, "{}", manifest.rows);
            let answered = compare::<TimestampMicrosecondType>(&fixture, instant);
            assert!(answered > 500, "only {answered} points have rows");
        }
    }
}

#[test]
fn axes_of_plain_integers_are_exported_as_integers() {
    let fixture = Fixture::of_steps(9, 150);
    fixture.export(&ExportOptions::default());
    assert!(compare::<Int64Type>(&fixture, |n| n) > 500);
}

#[test]
fn partitioned_intervals_answer_as_of_all_the_same() {
    let fixture = Fixture::of_instants(5, 150);
    let partition_by = Some("valid_date, id % 3 AS third".to_owned());
    let manifest = fixture.export(&ExportOptions { partition_by, ..ExportOptions::default() });
    assert_eq!(manifest.partition_by, ["valid_date", "third"]);
    assert!(manifest.files.len() > 20);
    compare::<TimestampMicrosecondType>(&fixture, instant);
}

#[test]
fn an_export_of_a_commit_answers_as_that_commit_did() {
    let fixture = Fixture::of_instants(6, 150);
    let commit = Some(asofdb::sql::Point::Integer(2));
    let manifest = fixture.export(&ExportOptions { commit, ..ExportOptions::default() });
    assert_eq!(manifest.commit, 2);
    let before = super::fixture::read(&fixture.out().join("t"));
    let earlier = Fixture::of_instants(6, 100);
    earlier.export(&ExportOptions::default());
    assert_eq!(sorted(before), sorted(super::fixture::read(&earlier.out().join("t"))));
}

#[test]
fn rows_that_hold_now_stand_in_files_of_their_own() {
    let fixture = Fixture::of_instants(7, 200);
    let manifest = fixture.export(&ExportOptions::default());
    let dir = fixture.out().join("t");
    let of = |kind: &str| -> Vec<RecordBatch> {
        let files = manifest.files.iter().filter(|f| f.path.starts_with(kind));
        files.flat_map(|f| read_file(&dir.join(&f.path))).collect()
    };
    let rows = |kind| of(kind).iter().map(RecordBatch::num_rows).sum::<usize>();
    assert!(rows("open") > 0 && rows("ended") > 0 && rows("superseded") > 0);
    assert_eq!(rows("open") + rows("ended") + rows("superseded"), manifest.rows as usize);
    let latest = fixture.store.table("t").unwrap().as_of(None, None).unwrap();
    let latest = sorted(latest.iter().flat_map(shown).collect());
    assert_eq!(answer::<TimestampMicrosecondType>(&of("open"), None, None), latest);
    fixture.export(&ExportOptions { layout: ExportLayout::Intervals, ..ExportOptions::default() });
}

/// Whether the statistics of a row group let rows through that hold at `t` on an axis.
fn may_hold(group: &parquet::file::metadata::RowGroupMetaData, axis: &str, t: i64) -> bool {
    let stats = |name: &str| {
        let name = format!("__{axis}{name}");
        let column = group.columns().iter().find(|c| c.column_path().string() == name).unwrap();
        let stats = column.statistics().unwrap();
        let Statistics::Int64(int) = stats else { panic!("{stats:?}") };
        (int.min_opt().copied(), int.max_opt().copied(), stats.null_count_opt().unwrap())
    };
    let ((start, _, no_start), (_, end, no_end)) = (stats("START_AT"), stats("END_AT"));
    (no_start > 0 || start.is_some_and(|s| s <= t)) && (no_end > 0 || end.is_some_and(|e| e > t))
}

#[test]
fn statistics_rule_row_groups_out() {
    let fixture = Fixture::of_instants(8, 600);
    let mut groups_read = Vec::new();
    for order in [ExportOrder::Key, ExportOrder::Time] {
        let options = ExportOptions { order, row_group_rows_max: 40, ..ExportOptions::default() };
        let manifest = fixture.export(&options);
        let (mut all, mut late) = (0, 0);
        for file in &manifest.files {
            let path = fixture.out().join("t").join(&file.path);
            let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
            let (v, s) = (instant(STEPS), instant(STEPS - 3));
            for group in reader.metadata().row_groups() {
                all += 1;
                late += usize::from(may_hold(group, "", v) && may_hold(group, "SYSTEM_", s));
            }
        }
        assert!(all > 10, "{all}");
        groups_read.push(late * 100 / all);
        compare::<TimestampMicrosecondType>(&fixture, instant);
    }
    let [by_key, by_time] = groups_read[..] else { panic!() };
    assert!(by_time < 60 && by_time < by_key, "percent of row groups: {groups_read:?}");
}
