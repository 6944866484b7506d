//! The shared corpus of wal2json, AWS DMS and Oracle GoldenGate: every set with the keys a user would name.

use crate::corpus::{assert_none, check, corpus, expected, options, take, with_keys};
use crate::memory::Memory;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

/// Files of messages in a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path());
    files.filter(|f| f.extension().is_some_and(|e| e == "jsonl")).collect()
}

#[test]
fn wal2json_sets() {
    let Some(dir) = corpus() else { return };
    let files = files(&dir.join("wal2json"));
    assert!(files.len() > 10);
    let mut all = Vec::new();
    for file in files {
        let expected = expected(&file);
        all.extend(check(&file, &with_keys(options(|_| ()), &expected), &expected));
    }
    assert_none(all);
}

#[test]
fn dms_messages() {
    let Some(dir) = corpus() else { return };
    let files = files(&dir.join("aws-dms"));
    assert_eq!(files.len(), 3);
    let mut all = Vec::new();
    for file in files {
        let expected = expected(&file);
        all.extend(check(&file, &with_keys(options(|_| ()), &expected), &expected));
    }
    assert_none(all);
}

/// Directories of S3 with the table that `--table` names, where the folders do not say what it is.
const DIRECTORIES: &[(&str, Option<&str>)] = &[
    ("s3_csv_fullload_cdc/retail/customers", None),
    ("s3_csv_retail/customers", Some("customers")),
    ("s3_csv_retail/stores", Some("stores")),
    ("s3_parquet/sales/items", None),
];

#[test]
fn dms_directories() {
    let Some(dir) = corpus() else { return };
    let mut all = Vec::new();
    for (set, table) in DIRECTORIES {
        let directory = dir.join("aws-dms").join(set);
        let expected = expected(&directory);
        let dms = options(|o| (o.format, o.table) = (Some("dms".into()), table.map(str::to_owned)));
        all.extend(check(&directory, &with_keys(dms, &expected), &expected));
    }
    assert_none(all);
}

#[test]
fn ogg_sets() {
    let Some(dir) = corpus() else { return };
    let files = files(&dir.join("ogg"));
    assert_eq!(files.len(), 4);
    let mut all = Vec::new();
    for file in files {
        let mut expected = expected(&file);
        // The answers have the times as they were sent, without a zone; without a declared one they are UTC.
        for version in expected["timeline"].as_array_mut().into_iter().flatten() {
            if let Some(time) = version["commit_time"].as_str().map(|t| format!("{t}Z")) {
                version["commit_time"] = Json::String(time);
            }
        }
        // The envelope names the key.
        all.extend(check(&file, &options(|_| ()), &expected));
    }
    assert_none(all);
}

#[test]
fn an_intake_that_stopped_within_a_transaction_goes_on_in_it() {
    let begin = r#"{"action":"B","xid":7,"timestamp":"2026-01-01 00:00:02+00","nextlsn":"0/20"}"#;
    let row = |id: u32| {
        format!(r#"{{"action":"I","table":"t","columns":[{{"name":"id","type":"integer","value":{id}}}]}}"#)
    };
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("t.jsonl");
    let (store, options) = (Memory::default(), options(|o| o.keys = vec!["id".parse().unwrap()]));
    let mut text = format!("{begin}\n{}\n", row(1));
    for line in [row(2), r#"{"action":"C"}"#.to_owned(), row(3)] {
        std::fs::write(&file, &text).unwrap();
        take(&store, &file, &options);
        text += &format!("{line}\n");
    }
    std::fs::write(&file, &text).unwrap();
    take(&store, &file, &options);
    let events = store.events("t");
    let time = |at: usize| (events[at].valid, events[at].time_source);
    assert_eq!(events.len(), 3);
    assert_eq!(time(0), time(1), "the second row belongs to the transaction of the first");
    assert!(events[0].token < events[1].token && events[2].token.is_empty());
    assert_ne!(time(2).1, time(0).1);
}
