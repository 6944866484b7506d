//! The corpus sets of feeds of MySQL and its kin: Maxwell.

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
