//! Names that would lead out of their directory.

use super::{Place, files_below, keyed};
use asofdb::ExportOptions;
use asofdb::export::Manifest;
use std::collections::BTreeSet;

#[test]
fn fault_h17_names_of_tables_and_partitions_stay_in_their_directory() {
    let long = "n".repeat(300);
    let names = [
        "../x",
        "/abs",
        "a\0b",
        &long,
        "CON",
        "twin",
        "TWIN",
        "..",
        ".",
        "a/b",
        ".hidden",
        "a\nb",
        "\u{202e}x",
    ];
    let place = Place::new();
    let canary = place.path("canary");
    std::fs::write(&canary, "untouched").unwrap();
    let out = place.path("deep/out");
    let (mut directories, mut refused) = (BTreeSet::new(), Vec::new());
    for (i, name) in names.iter().enumerate() {
        let row = serde_json::json!({"id": i, "part": name});
        let options = keyed(name, "json");
        let taken = place.take(&format!("{i}.ndjson"), format!("{row}\n").as_bytes(), &options);
        if name.contains('\0') {
            assert!(taken.expect_err("no name").message().contains("NUL"));
            refused.push(*name);
            continue;
        }
        let report = taken.unwrap_or_else(|e| panic!("{name:?}: {e}"));
        if report.quarantined == 1 {
            refused.push(*name);
            continue;
        }
        for partition_by in [None, Some("part".to_owned())] {
            let options = ExportOptions { partition_by, ..ExportOptions::default() };
            let report = place.store.export(name, &out, &options).unwrap_or_else(|e| panic!("{name:?}: {e}"));
            assert_eq!(report.tables.len(), 1, "{name:?}");
        }
    }
    for entry in std::fs::read_dir(&out).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.join(".").is_dir() && !name.starts_with(".asof") {
            let manifest = Manifest::read(&path).unwrap();
            manifest.verify(&path).unwrap();
            directories.insert(name.to_lowercase());
        }
    }
    assert_eq!(
        directories.len(),
        names.len() - 1 - refused.len(),
        "one each, the twins differ in case only: {directories:?}"
    );
    assert_eq!(std::fs::read_to_string(&canary).unwrap(), "untouched");
    let outside: Vec<_> = files_below(place.dir.path())
        .into_iter()
        .filter(|p| !p.starts_with(&out) && !p.starts_with(place.path("s.asof")) && *p != canary)
        .filter(|p| p.extension().is_none_or(|e| e != "ndjson"))
        .collect();
    assert!(outside.is_empty(), "{outside:?}");
    assert_eq!(std::fs::read_dir(place.path("deep")).unwrap().count(), 1);
    assert!(refused.contains(&&*long) && refused.len() < 5, "{refused:?}");
    println!("H17: {} names of tables and partitions, {} refused", names.len(), refused.len());
}
