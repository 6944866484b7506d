//! Files of exports: codecs, layouts, schemas, names, and what is refused.

use super::fixture::{
    Dice, Fixture, NULL, Shown, checked, options, parquet_files, read, read_file, shown, sorted, upserts,
    without,
};
use arrow::datatypes::{DataType, TimeUnit};
use asofdb::export::{ExportCompression, ExportLayout, ExportOptions, ExportOrder, ExportProgress, Manifest};
use asofdb::sql::Point;
use asofdb::{ErrorKind, IntakeOptions, Store};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::ops::ControlFlow;

fn layout(layout: ExportLayout) -> ExportOptions {
    ExportOptions { layout, ..ExportOptions::default() }
}

fn latest(store: &Store) -> Vec<Shown> {
    sorted(store.table("t").unwrap().as_of(None, None).unwrap().iter().flat_map(shown).collect())
}

#[test]
fn every_codec_holds_the_same_rows() {
    let fixture = Fixture::of_instants(1, 200);
    let mut sizes = Vec::new();
    for (name, codec) in [("zstd", "ZSTD"), ("snappy", "SNAPPY"), ("gzip", "GZIP"), ("none", "UNCOMPRESSED")]
    {
        let compression: ExportCompression = name.parse().unwrap();
        let manifest = fixture.export(&ExportOptions { compression, ..layout(ExportLayout::Current) });
        let path = fixture.out().join("t").join(&manifest.files[0].path);
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        let used = format!("{:?}", reader.metadata().row_group(0).column(0).compression());
        assert!(used.starts_with(codec), "{name}: {used}");
        assert_eq!(sorted(read(&fixture.out().join("t"))), latest(&fixture.store), "{name}");
        sizes.push(manifest.bytes);
    }
    assert!(sizes.iter().all(|n| *n > 0));
    assert!("lz77".parse::<ExportCompression>().unwrap_err().hints()[0].contains("zstd"));
}

#[test]
fn times_are_real_timestamps_and_open_ends_are_null() {
    let fixture = Fixture::of_instants(2, 100);
    let manifest = fixture.export(&ExportOptions::default());
    let file = manifest.files.iter().find(|f| f.path.starts_with("open")).unwrap();
    let path = fixture.out().join("t").join(&file.path);
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    for name in ["__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT"] {
        assert_eq!(reader.schema().field_with_name(name).unwrap().data_type(), &instant);
        let columns = reader.parquet_schema().columns();
        let logical = columns.iter().find(|c| c.name() == name).unwrap().logical_type_ref().cloned();
        let text = format!("{logical:?}");
        assert!(text.contains("MICROS") && text.contains("is_adjusted_to_u_t_c: true"), "{text}");
    }
    let notes = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let note = |key: &str| notes.iter().find(|n| n.key == key).and_then(|n| n.value.clone()).unwrap();
    assert_eq!(
        (note("asof.table"), note("asof.layout"), note("asof.commit")),
        ("t".into(), "intervals".into(), "2".into())
    );
    let rows: Vec<Shown> = read_file(&path).iter().flat_map(shown).collect();
    assert!(
        rows.iter().all(|r| r["__END_AT"] == NULL && r["__SYSTEM_END_AT"] == NULL && r["__START_AT"] != NULL)
    );
}

#[test]
fn the_history_has_every_event_by_day_and_by_operation() {
    let fixture = Fixture::of_instants(3, 200);
    let manifest = fixture.export(&layout(ExportLayout::History));
    assert_eq!((manifest.rows, &manifest.partition_by[..]), (200, &["_processed_date".to_owned()][..]));
    let rows = read(&fixture.out().join("t"));
    let whole = fixture.dir.path().join("whole");
    let plain = ExportOptions { partition_by: Some("none".into()), ..layout(ExportLayout::History) };
    let report = fixture.store.export("t", &whole, &plain).unwrap();
    assert_eq!(checked(&report, "t").files.len(), 1);
    assert_eq!(sorted(rows.clone()), sorted(read(&whole.join("t"))));
    for column in
        ["_operation", "_cdc_timestamp", "_processed_at", "_source_db", "_source_table", "__START_AT"]
    {
        assert!(rows[0].contains_key(column), "{column}");
    }
    let split = ExportOptions { by_operation: true, ..plain };
    let manifest = fixture.export(&split);
    let dirs: Vec<&str> = manifest.files.iter().map(|f| f.path.split('/').next().unwrap()).collect();
    assert_eq!(dirs, ["_operation=delete", "_operation=insert", "_operation=update"]);
    assert_eq!(sorted(read(&fixture.out().join("t"))), sorted(rows));
}

#[test]
fn conditions_and_clocks_narrow_the_rows() {
    let fixture = Fixture::of_instants(4, 200);
    let all = read_of(&fixture, &layout(ExportLayout::Current));
    let filter = Some("id > 3 AND region = 'north'".to_owned());
    let some = read_of(&fixture, &ExportOptions { filter, ..layout(ExportLayout::Current) });
    let wanted: Vec<Shown> =
        all.into_iter().filter(|r| r["id"].parse::<i64>().unwrap() > 3 && r["region"] == "north").collect();
    assert!(!wanted.is_empty());
    assert_eq!(some, wanted);
    let at = super::fixture::instant(12);
    let (valid, system) = (Some(Point::Instant(at)), Some(Point::Instant(at)));
    let rows = read_of(&fixture, &ExportOptions { valid, system, ..layout(ExportLayout::Current) });
    let (v, s) = (asofdb::time::ValidTime(at), asofdb::time::SystemTime(at));
    let ours = fixture.store.table("t").unwrap().as_of(Some(v), Some(s)).unwrap();
    let ours = sorted(ours.iter().flat_map(shown).collect());
    assert!(!ours.is_empty());
    assert_eq!(rows, ours);
    std::fs::remove_file(fixture.out().join("t")).unwrap();
    std::fs::remove_file(fixture.out().join("t.manifest.json")).unwrap();
    let whole = read_of(&fixture, &ExportOptions { valid, system, ..ExportOptions::default() });
    assert!(whole.iter().all(|r| r.contains_key("__SYSTEM_END_AT")), "interval rows come whole");
    let times = ["__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT"];
    assert_eq!(sorted(without(whole, &times)), ours);
}

fn read_of(fixture: &Fixture, options: &ExportOptions) -> Vec<Shown> {
    fixture.export(options);
    sorted(read(&fixture.out().join("t")))
}

#[test]
fn a_table_without_rows_still_has_its_columns() {
    let fixture = Fixture::of_instants(5, 50);
    let none = |options: ExportOptions| ExportOptions { filter: Some("false".into()), ..options };
    for options in [
        none(ExportOptions::default()),
        none(ExportOptions { partition_by: Some("region".into()), ..ExportOptions::default() }),
    ] {
        let manifest = fixture.export(&options);
        assert_eq!((manifest.rows, manifest.files.len()), (0, 1));
        let path = fixture.out().join("t").join(&manifest.files[0].path);
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        assert_eq!(reader.schema().fields().len(), manifest.columns.len());
        assert!(reader.schema().field_with_name("__END_AT").is_ok());
    }
    let deleted = Fixture::empty();
    deleted.take(&["{\"op\":\"d\",\"id\":1,\"at\":1,\"known\":1}".to_owned()], &options());
    assert_eq!(deleted.export(&layout(ExportLayout::Current)).rows, 0);
}

#[test]
fn widened_columns_have_one_type_in_all_files() {
    let fixture = Fixture::empty();
    let line = |id: i64, v: &str| format!("{{\"id\":{id},\"v\":{v},\"at\":{id},\"known\":{id}}}");
    let values = ["1", "2.5", "\"text\"", "true", "{\"a\":[1]}"];
    for (i, value) in values.iter().enumerate() {
        fixture.take(&[line(i as i64, value)], &upserts());
        let manifest = fixture.export(&layout(ExportLayout::Current));
        assert_eq!(manifest.rows as usize, i + 1);
        assert_eq!(sorted(read(&fixture.out().join("t"))), latest(&fixture.store));
    }
    let first = ExportOptions { commit: Some(Point::Integer(1)), ..layout(ExportLayout::Current) };
    let v = |m: &Manifest| m.columns.iter().find(|c| c.0 == "v").unwrap().1.clone();
    assert_eq!(
        (v(&fixture.export(&first)), v(&fixture.export(&layout(ExportLayout::Current)))),
        ("Int64".into(), "Utf8".into())
    );
}

#[test]
fn keys_of_every_type_come_back() {
    let keys = [
        ("bigint", "-7"),
        ("text", "\"a/b\""),
        ("boolean", "true"),
        ("double", "1.5"),
        ("date", "\"2026-02-03\""),
        ("timestamp", "\"2026-02-03T04:05:06.789\""),
        ("timestamptz", "\"2026-02-03T04:05:06Z\""),
        ("decimal(10,2)", "12.34"),
        ("bytes", "\"AQID\""),
        ("json", "{\"a\":1}"),
    ];
    for (ty, value) in keys {
        let fixture = Fixture::empty();
        let line = format!("{{\"id\":{value},\"n\":1,\"at\":1,\"known\":1}}");
        let columns = Some(format!("id {ty}, n bigint").parse().unwrap());
        fixture.take(&[line], &IntakeOptions { columns, ..upserts() });
        for partition_by in [None, Some("CAST(id AS VARCHAR) AS part".to_owned())] {
            if partition_by.is_some() && ty == "bytes" {
                continue;
            }
            let manifest = fixture.export(&ExportOptions { partition_by, ..layout(ExportLayout::Current) });
            assert_eq!((manifest.rows, &manifest.key[..]), (1, &["id".to_owned()][..]), "{ty}");
            assert_eq!(without(read(&fixture.out().join("t")), &["part"]), latest(&fixture.store), "{ty}");
        }
    }
}

#[test]
fn the_same_rows_make_the_same_bytes() {
    let fixture = Fixture::of_instants(10, 300);
    for order in [ExportOrder::Key, ExportOrder::Time] {
        let options = ExportOptions { order, row_group_rows_max: 50, ..ExportOptions::default() };
        let digests = |m: Manifest| m.files.into_iter().map(|f| (f.rows, f.sha256)).collect::<Vec<_>>();
        let fresh = digests(fixture.export(&options));
        assert_eq!(digests(fixture.export(&options)), fresh);
        fixture.store.engine().compact().unwrap();
        assert_eq!(digests(fixture.export(&options)), fresh, "after merging");
    }
}

#[test]
fn large_exports_stay_within_their_memory() {
    let fixture = Fixture::empty();
    let mut dice = Dice(3);
    let line = |i: usize, dice: &mut Dice| {
        let v = format!("{}-{}", dice.below(u32::MAX as u64), "x".repeat(1_000));
        format!("{{\"id\":{i},\"v\":\"{v}\",\"at\":{i},\"known\":{i}}}")
    };
    let lines: Vec<String> = (0..30_000).map(|i| line(i, &mut dice)).collect();
    fixture.take(&lines, &IntakeOptions { batch: None, ..upserts() });
    let small =
        ExportOptions { memory_bytes_max: 1 << 20, file_bytes_max: 20_000, ..ExportOptions::default() };
    let manifest = fixture.export(&small);
    assert_eq!(manifest.rows, 30_000);
    assert!(manifest.files.len() >= 3, "files are closed when they are long: {}", manifest.files.len());
    let rows = sorted(read(&fixture.out().join("t")));
    // One long file: a row group ends after every batch that is more than the bound.
    let long = fixture.export(&ExportOptions { memory_bytes_max: 1 << 20, ..ExportOptions::default() });
    let groups = |file: &asofdb::export::ExportedFile| {
        let file = File::open(fixture.out().join("t").join(&file.path)).unwrap();
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().metadata().num_row_groups()
    };
    let groups: usize = long.files.iter().map(groups).sum();
    assert!(groups >= 3, "30 MB of rows in {groups} row groups");
    let sorting = fixture.out().join(".asof-export/table-t/000003.partial/t/sorting");
    let mut spilled = false;
    let mut watch = |_: &ExportProgress| {
        spilled |= walkdir::WalkDir::new(&sorting).into_iter().flatten().any(|e| e.file_type().is_file());
        ControlFlow::Continue(())
    };
    let options = ExportOptions { order: ExportOrder::Time, ..small };
    let report = fixture.store.export_watched("t", fixture.out(), &options, &mut watch).unwrap();
    assert!(spilled, "sorting went to disk");
    assert_eq!(checked(&report, "t").rows, 30_000);
    assert_eq!(sorted(read(&fixture.out().join("t"))), rows);
    let left = std::fs::read_dir(fixture.out().join("t/..")).unwrap();
    let left: Vec<_> = left.map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing is left of the sorting: {left:?}");
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let fixture = Fixture::of_steps(1, 20);
    let refused = |options: ExportOptions| fixture.store.export("t", fixture.out(), &options).unwrap_err();
    let by = |text: &str, layout| ExportOptions {
        partition_by: Some(text.into()),
        layout,
        ..ExportOptions::default()
    };
    let current = layout(ExportLayout::Current);
    let history = layout(ExportLayout::History);
    for (options, word) in [
        (ExportOptions { by_operation: true, ..current.clone() }, "no operation"),
        (ExportOptions { valid: Some(Point::Now), ..history }, "all times"),
        (ExportOptions { order: ExportOrder::Time, ..current.clone() }, "order of keys"),
        (ExportOptions { commit: Some(Point::Integer(99)), ..current.clone() }, "no commit 99"),
        (ExportOptions { filter: Some("id >".into()), ..current.clone() }, "cannot be read"),
        (ExportOptions { filter: Some("true) FROM t --".into()), ..current.clone() }, "cannot be read"),
        (ExportOptions { filter: Some("nope = 1".into()), ..current }, "no column nope"),
        (by("processed_date", ExportLayout::Intervals), "only events"),
        (by("valid_date", ExportLayout::Intervals), "plain integer"),
        (by("valid_date", ExportLayout::Current), "own columns"),
        (by("nope", ExportLayout::Current), "no column nope"),
        (by("region, region", ExportLayout::Current), "twice"),
        (by("id % 2 AS note", ExportLayout::Current), "has a column note"),
        (by("id; DROP", ExportLayout::Current), "cannot be read"),
        (by("id, region, amount, note", ExportLayout::Current), "every column"),
        (ExportOptions { partitions_max: 3, ..by("id", ExportLayout::Current) }, "more than 3"),
    ] {
        let e = refused(options);
        assert_eq!(e.kind(), ErrorKind::Usage, "{e}");
        assert!(e.message().contains(word), "{word}: {e} {:?}", e.hints());
    }
    assert!(!fixture.out().join("t").exists());
    let e = fixture.store.export("u", fixture.out(), &ExportOptions::default()).unwrap_err();
    assert_eq!((e.message(), &e.hints()[0][..]), ("there is no table u", "there are: t"));
    let e = fixture
        .store
        .export("t", fixture.dir.path().join("store/out"), &ExportOptions::default())
        .unwrap_err();
    assert!(e.message().contains("own directory"), "{e}");
}

#[test]
fn what_is_not_ours_is_not_replaced() {
    let fixture = Fixture::of_steps(1, 20);
    std::fs::create_dir_all(fixture.out().join("t")).unwrap();
    let e = fixture.store.export("t", fixture.out(), &ExportOptions::default()).unwrap_err();
    assert!(e.message().contains("no export of asof"), "{e}");
    std::fs::remove_dir(fixture.out().join("t")).unwrap();
    fixture.export(&ExportOptions::default());
    let e = fixture.store.export("t", fixture.out(), &layout(ExportLayout::Current)).unwrap_err();
    assert!(e.message().contains("layout intervals") && e.message().contains("current"), "{e}");
    assert!(fixture.out().join("t.manifest.json").exists());
}

#[test]
fn a_changed_file_is_found() {
    let fixture = Fixture::of_steps(1, 50);
    let manifest = fixture.export(&ExportOptions::default());
    let dir = fixture.out().join("t");
    let path = dir.join(&parquet_files(&dir)[0]);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let e = manifest.verify(&dir).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Damaged);
    assert!(e.message().contains(path.file_name().unwrap().to_str().unwrap()), "{e}");
    fixture.export(&ExportOptions::default());
    let stray = dir.join("stray.parquet");
    std::fs::write(&stray, "").unwrap();
    let manifest = Manifest::read(&dir).unwrap();
    assert!(manifest.verify(&dir).unwrap_err().message().contains("files are there"));
}
