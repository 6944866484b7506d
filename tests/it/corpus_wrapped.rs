//! The corpus sets of rows without envelopes, and of envelopes around others: Debezium's flattened rows, CloudEvents,
//! Delta's change data feed, Airbyte, Fivetran.

use crate::corpus::{assert_none, check, corpus, expected, files, options, take, with_keys};
use crate::expect::compare_rows;
use crate::memory::Memory;
use asofdb_storage::time::FOREVER;
use std::path::Path;

/// The sets of a folder with the keys that a user would name where messages have none.
fn sets(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for file in files(folder) {
        let mut expected = expected(&file);
        let dump = file.to_string_lossy().contains(".kdump.");
        let ignored = expected["ignored"].as_object_mut().unwrap();
        // A log position tells the repeat before its identity is asked.
        if let Some(repeats) = ignored.remove("duplicate_id") {
            ignored.insert("replayed".into(), repeats);
        }
        let base = options(|_| ());
        let options = if dump { base } else { with_keys(base, &expected) };
        all.extend(check(&file, &options, &expected));
    }
    all
}

#[test]
fn debezium_flat_sets() {
    let Some(dir) = corpus() else { return };
    assert_none(sets(&dir.join("debezium-flat")));
}

#[test]
fn cloudevents_sets() {
    let Some(dir) = corpus() else { return };
    assert_none(sets(&dir.join("cloudevents")));
}

/// Files of the change data feed, as JSON and as Parquet.
const FEEDS: [(&str, &str); 4] = [
    ("birthdays", "jsonl"),
    ("birthdays", "parquet"),
    ("in_commit_timestamp", "jsonl"),
    ("in_commit_timestamp", "parquet"),
];

#[test]
fn delta_cdf_sets() {
    let Some(dir) = corpus() else { return };
    let mut all = Vec::new();
    for (name, end) in FEEDS {
        let mut expected = expected(&dir.join(format!("delta-cdf/{name}.jsonl")));
        // Times are compared as text, without zeros at their end.
        for version in expected["timeline"].as_array_mut().unwrap() {
            let time = version["commit_time"].as_str().unwrap().replace("0Z", "Z");
            if time.contains('.') {
                version["commit_time"] = time.into();
            }
        }
        let file = dir.join(format!("delta-cdf/{name}.{end}"));
        let options = options(|o| o.table = Some(name.into()));
        all.extend(check(&file, &with_keys(options, &expected), &expected));
    }
    assert_none(all);
}

/// Its counts are those of `changes`; here they are those of its rows, and a key changes.
#[test]
fn rows_of_a_version_come_in_any_order() {
    let Some(dir) = corpus() else { return };
    let file = dir.join("delta-cdf/no_order_inside_version.jsonl");
    let expected = expected(&file);
    for batch in [100, 1, 3] {
        let options = options(|o| {
            (o.table, o.batch) = (Some("cdf".into()), Some(batch));
            o.op_map = vec!["update_preimage=delete".parse().unwrap()];
        });
        let store = Memory::default();
        let report = take(&store, &file, &with_keys(options, &expected));
        assert_eq!((report.row_events(), report.quarantined), (10, 0));
        let rows = expected["tables"]["cdf"]["rows"].as_array().unwrap();
        assert_none(compare_rows(&store.rows_at("cdf", FOREVER, FOREVER), rows));
    }
}

#[test]
fn airbyte_sets() {
    let Some(dir) = corpus() else { return };
    let file = dir.join("soft-delete/airbyte_raw.jsonl");
    let mut expected = expected(&file);
    // The feed says of no row that it is new.
    expected["counts"] = serde_json::json!({ "update": 5, "delete": 2 });
    for version in expected["timeline"].as_array_mut().unwrap().iter_mut().filter(|v| v["op"] == "c") {
        version["op"] = "u".into();
    }
    let options = options(|o| o.table = Some("users".into()));
    assert_none(check(&file, &with_keys(options, &expected), &expected));
}

#[test]
fn fivetran_sets() {
    let Some(dir) = corpus() else { return };
    let file = dir.join("soft-delete/fivetran_history.csv");
    let expected = expected(&file);
    let options = options(|o| o.table = Some("users".into()));
    assert_none(check(&file, &with_keys(options, &expected), &expected));
}

#[test]
fn striim_sets() {
    let Some(dir) = corpus() else { return };
    let file = dir.join("soft-delete/striim_style.jsonl");
    let expected = expected(&file);
    let options = options(|_| ());
    assert_none(check(&file, &with_keys(options, &expected), &expected));
}
