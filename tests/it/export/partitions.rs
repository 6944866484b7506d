//! Partition directories with odd values, as Hive and its readers name them.

use super::fixture::{Fixture, NULL, Shown, read, shown, sorted, upserts};
use asofdb::export::{ExportLayout, ExportOptions};
use std::collections::BTreeSet;

/// Values that paths, patterns and readers trip over.
const ODD: [&str; 14] = [
    "plain",
    "a/b",
    "a=b",
    "a b",
    " ",
    "..",
    "100%",
    "%2F",
    "it's \"quoted\"",
    "tab\tand\nline",
    "K\u{f6}ln \u{2192} \u{6771}\u{4eac}",
    "__HIVE_DEFAULT_PARTITION__",
    "*?[x]{y}^:#\\",
    "NULL",
];

fn odd() -> Fixture {
    let fixture = Fixture::empty();
    let mut lines = vec!["{\"id\":100,\"v\":null,\"n\":100,\"at\":1,\"known\":1}".to_owned()];
    for (id, value) in ODD.iter().enumerate() {
        let v = serde_json::Value::from(*value);
        lines.push(format!("{{\"id\":{id},\"v\":{v},\"n\":{id},\"at\":1,\"known\":1}}"));
    }
    fixture.take(&lines, &upserts());
    fixture
}

#[test]
fn odd_values_come_back_from_the_names_of_directories() {
    let fixture = odd();
    let ours: Vec<Shown> =
        fixture.store.table("t").unwrap().as_of(None, None).unwrap().iter().flat_map(shown).collect();
    assert_eq!(ours.len(), ODD.len() + 1);
    for partition_by in ["v", "v, n", "upper(v) AS \"big one\""] {
        let options = ExportOptions {
            layout: ExportLayout::Current,
            partition_by: Some(partition_by.into()),
            ..ExportOptions::default()
        };
        let manifest = fixture.export(&options);
        assert_eq!(manifest.files.len(), ODD.len() + 1, "one directory a value");
        let rows = super::fixture::without(read(&fixture.out().join("t")), &["big one"]);
        assert_eq!(sorted(rows), sorted(ours.clone()), "by {partition_by}");
        let values: BTreeSet<_> =
            manifest.files.iter().map(|f| f.partition.values().next().cloned()).collect();
        assert_eq!(values.len(), ODD.len() + 1);
    }
    assert!(ours.iter().any(|r| r["v"] == NULL));
}

#[test]
fn a_column_of_a_directory_is_not_in_the_files() {
    let fixture = odd();
    let options = ExportOptions {
        layout: ExportLayout::Current,
        partition_by: Some("v".into()),
        ..ExportOptions::default()
    };
    let manifest = fixture.export(&options);
    assert_eq!(manifest.columns.iter().map(|c| c.0.as_str()).collect::<Vec<_>>(), ["id", "n"]);
    assert_eq!(manifest.partition_by, ["v"]);
}

#[test]
fn days_and_months_of_valid_time_are_words() {
    let fixture = Fixture::of_instants(3, 100);
    for (word, length) in [("valid_date", 10), ("year_month", 7)] {
        let options = ExportOptions { partition_by: Some(word.into()), ..ExportOptions::default() };
        fixture.export(&options);
        for row in read(&fixture.out().join("t")) {
            assert_eq!(row[word], row["__START_AT"][..length]);
        }
    }
}

#[test]
fn more_partitions_than_open_files_lose_nothing() {
    let fixture = Fixture::empty();
    let lines: Vec<String> =
        (0..400).map(|i| format!("{{\"id\":{i},\"n\":{},\"at\":1,\"known\":1}}", i % 200)).collect();
    fixture.take(&lines, &upserts());
    let options = ExportOptions {
        layout: ExportLayout::Current,
        partition_by: Some("n".into()),
        ..ExportOptions::default()
    };
    let manifest = fixture.export(&options);
    assert_eq!(
        (manifest.rows, manifest.files.iter().map(|f| &f.partition).collect::<BTreeSet<_>>().len()),
        (400, 200)
    );
    let ours = fixture.store.table("t").unwrap().as_of(None, None).unwrap();
    assert_eq!(sorted(read(&fixture.out().join("t"))), sorted(ours.iter().flat_map(shown).collect()));
}
