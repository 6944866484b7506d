//! The sets of the corpus in Avro, with their registries as files.

use crate::corpus::{assert_none, check, corpus, expected};
use asofdb::IntakeOptions;
use std::path::{Path, PathBuf};

fn schemas(file: &Path) -> Vec<String> {
    let text = file.to_str().unwrap().replace(".kdump.jsonl", ".schemas.json");
    vec![text]
}

/// The sets with the options that `config` of their answers asks for.
pub fn avro_sets(dir: &Path) -> Vec<(PathBuf, IntakeOptions)> {
    let ops = dir.join("paper-avro/ops_2000.kdump.jsonl");
    let paper = IntakeOptions {
        format: Some("avro".into()),
        table: Some("ops".into()),
        keys: vec!["key1,key2,key3".parse().unwrap()],
        op: Some("o".into()),
        ignore_null_updates: Some("value1,value2,value3".parse().unwrap()),
        columns: Some("* except (o)".parse().unwrap()),
        schemas: schemas(&ops),
        ..IntakeOptions::default()
    };
    let orders = dir.join("debezium-avro/orders_compacted.kdump.jsonl");
    let debezium = IntakeOptions {
        format: Some("debezium-avro".into()),
        // The answer names the table with its database before the schema.
        table: Some("mydb.public.orders".into()),
        schemas: schemas(&orders),
        ..IntakeOptions::default()
    };
    vec![(ops, paper), (orders, debezium)]
}

#[test]
fn avro_sets_are_taken_as_expected() {
    let Some(dir) = corpus() else { return };
    let mut all = Vec::new();
    for (file, options) in avro_sets(&dir) {
        let mut answer = expected(&file);
        let timeline = answer["timeline"].as_array_mut().into_iter().flatten();
        // The answer gives a tombstone the time of its record, which lies before the update that it follows
        // in the stream; rule A5 raises it to that.
        for version in timeline.filter(|v| v["token"] == "tombstone") {
            assert_eq!(version["commit_time"], "2023-06-05T14:30:24.1Z");
            version["commit_time"] = "2023-06-06T05:26:43.809Z".into();
        }
        all.extend(check(&file, &options, &answer));
        let found = IntakeOptions { format: None, ..options };
        all.extend(check(&file, &found, &answer));
    }
    assert_none(all);
}
