//! `docs/on-disk-format.md` speaks of runs as they are.

use super::*;
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../../../docs/on-disk-format.md");

fn section() -> &'static str {
    let start = DOCUMENT.find("\n## Runs\n").expect("a section on runs") + 1;
    let end = DOCUMENT[start + 3..].find("\n## ").expect("a section behind it");
    &DOCUMENT[start..start + 3 + end]
}

fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields.iter().filter(|(name, _)| *name != "constants") {
                found.push(name.clone());
                names(inner, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

#[test]
fn the_document_names_every_field_and_size_of_runs() {
    let schema = small_schema();
    let sorted = naive_sort(&events(&mut Numbers(9), 20), order(false));
    let (disk, dir) = sim();
    let meta = write(&disk, &dir, spec(7, RunFormat::Ipc), &schema, &sorted);
    let sidecar = disk.peek(&dir.join(meta.sidecar_name())).expect("the sidecar");
    let mut found = Vec::new();
    names(&serde_json::to_value(&meta).expect("JSON"), &mut found);
    names(&serde_json::from_slice(&sidecar).expect("JSON"), &mut found);
    assert!(found.len() > 40, "{found:?}");
    for name in &found {
        assert!(section().contains(&format!("`{name}`")), "the section on runs does not name `{name}`");
    }
    for name in [
        "derived",
        "copy",
        "of",
        "plus",
        "per",
        "rows",
        "all",
        "authored",
        "written",
        "else",
        "line",
        "by",
        "valid",
        "system",
        "later",
        "at",
        "steps",
        "narrow",
        "operation",
    ] {
        assert!(section().contains(&format!("`{name}`")), "the section on runs does not name `{name}`");
    }
    assert!(section().contains(&format!("now {RUN_FORM}; 1 if it is missing")));
    for (number, what) in [
        (DIGEST_BLOCK_BYTES, "bytes of the run file"),
        (SPARSE_ROWS, "rows of a chunk"),
        (IPC_CHUNK_ROWS, "rows in Arrow IPC"),
        (PARQUET_CHUNK_ROWS, "rows in Parquet"),
    ] {
        assert!(section().contains(&format!("{number} {what}")), "{number} {what}");
    }
    assert_eq!(
        (meta.file_name(), meta.sidecar_name()),
        ("run-000000000007.arrow".into(), "run-000000000007.sum".into())
    );
    assert!(section().contains("run-000000000007.arrow") && section().contains("run-000000000007.sum"));
}
