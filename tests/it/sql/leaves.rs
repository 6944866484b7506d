//! Objects that are written leaf by leaf (rule B5), from JSON lines to SQL: `tests/slt/leaves` over a
//! store in every state.

use super::fixture::{STATES, State};
use super::slt::run_folder;
use asofdb::options::{Absent, ColumnChoice};
use asofdb::{IntakeOptions, Store};
use std::path::Path;

/// Upserts of days of January: valid, known, then the columns.
const FIRST: [&str; 9] = [
    r#"{"id":1,"v":1,"s":1,"doc":{"name":{"first":"Ann","last":"Lee"},"size":1.50,"tags":["a","b"]},"note":"x"}"#,
    r#"{"id":1,"v":10,"s":10,"doc":{"name": {"last": "Ray"}, "more": null}}"#,
    r#"{"id":1,"v":20,"s":20,"doc":{"tags":["c"]},"note":"y"}"#,
    r#"{"id":2,"v":1,"s":1,"doc":{"a":{"b":1}}}"#,
    r#"{"id":2,"v":2,"s":2,"doc":7}"#,
    r#"{"id":2,"v":3,"s":3,"doc":{"a":{"c":123456789012345678901234567890}}}"#,
    r#"{"id":2,"v":4,"s":4,"doc":null}"#,
    r#"{"id":2,"v":5,"s":5,"doc":{"d":{}}}"#,
    r#"{"id":3,"op":"insert","v":1,"s":1,"doc":{"a":1},"note":"z"}"#,
];

/// What is known later: a late fact, a delete, and a new row after it.
const LATER: [&str; 5] = [
    r#"{"id":1,"v":5,"s":25,"doc":{"name":{"first":"Bea"},"size":2}}"#,
    r#"{"id":3,"v":5,"s":5,"op":"delete"}"#,
    r#"{"id":3,"v":7,"s":7,"doc":{"b":2}}"#,
    r#"{"id":2,"v":6,"s":6,"doc":{"d":{}}}"#,
    r#"{"id":3,"v":9,"s":9,"op":"insert","doc":{"c":3}}"#,
];

/// The same table from a source whose NULLs mean nothing.
const SPARSE: [&str; 4] = [
    r#"{"id":1,"v":1,"s":1,"doc":{"a":1,"b":{"c":2}},"whole":{"a":1,"b":2}}"#,
    r#"{"id":1,"v":2,"s":2,"doc":{"a":null,"b":{"d":3,"c":null}},"whole":{"a":null}}"#,
    r#"{"id":1,"v":3,"s":3,"doc":{"a":null},"whole":{"b":3}}"#,
    r#"{"id":2,"v":1,"s":1,"doc":{"a":null},"whole":null}"#,
];

/// A source that lists the columns it writes: those are whole.
const LISTED: [&str; 2] = [
    r#"{"id":1,"v":1,"s":1,"doc":{"a":1,"b":2},"note":"x","cols":["doc","note"]}"#,
    r#"{"id":1,"v":2,"s":2,"doc":{"b":3},"note":"y","cols":["doc"]}"#,
];

/// Keys that are objects are whole values, their NULLs included.
const KEYED: [&str; 4] = [
    r#"{"id":{"a":null,"b":1},"v":1,"s":1,"doc":{"x":1}}"#,
    r#"{"id":{"b":1},"v":1,"s":1,"doc":{"x":2}}"#,
    r#"{"id":{"a":null},"v":1,"s":1,"doc":{"x":3}}"#,
    r#"{"id":{"a":null,"b":1},"v":2,"s":2,"doc":{"y":4,"x":null}}"#,
];

/// A column that is declared as text holds whole values.
const TEXTS: [&str; 2] =
    [r#"{"id":1,"v":1,"s":1,"doc":{"a":1},"n":1}"#, r#"{"id":1,"v":2,"s":2,"doc":{"b":2}}"#];

/// Options for a table; `but` are columns that are none of it.
fn options(table: &str, but: &str) -> IntakeOptions {
    IntakeOptions {
        format: Some("json".into()),
        table: Some(table.into()),
        keys: vec!["id".parse().unwrap()],
        valid: Some("v".parse().unwrap()),
        system: Some("s".parse().unwrap()),
        columns: Some(format!("* except (v, s{but})").parse().unwrap()),
        ..IntakeOptions::default()
    }
}

fn take(store: &Store, dir: &Path, name: &str, lines: &[&str], options: &IntakeOptions) {
    let file = dir.join(name);
    std::fs::write(&file, lines.join("\n")).unwrap();
    let report = store.ingest_files(&[file.to_str().unwrap()], options).unwrap();
    assert_eq!((report.accepted, report.quarantined), (lines.len() as u64, 0), "{name}");
}

fn run(state: State) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path).unwrap();
    let unchanged =
        IntakeOptions { absent: Some(Absent::Unchanged), op: Some("op".into()), ..options("docs", ", op") };
    take(&store, dir.path(), "first.ndjson", &FIRST, &unchanged);
    take(&store, dir.path(), "later.ndjson", &LATER, &unchanged);
    let ignored = ColumnChoice::Only(vec!["doc".into()]);
    let ignoring = IntakeOptions { ignore_null_updates: Some(ignored), ..options("sparse", "") };
    take(&store, dir.path(), "sparse.ndjson", &SPARSE, &ignoring);
    let listing = IntakeOptions { columns_to_update: Some("cols".into()), ..options("listed", ", cols") };
    take(&store, dir.path(), "listed.ndjson", &LISTED, &listing);
    let all = Some(ColumnChoice::All);
    let keyed = IntakeOptions { ignore_null_updates: all, ..options("keyed", "") };
    take(&store, dir.path(), "keyed.ndjson", &KEYED, &keyed);
    let columns = Some("id bigint, doc text, n bigint".parse().unwrap());
    let texts = IntakeOptions { columns, absent: Some(Absent::Unchanged), ..options("texts", "") };
    take(&store, dir.path(), "texts.ndjson", &TEXTS, &texts);
    let store = match state {
        State::Fresh => store,
        State::Reopened => {
            drop(store);
            Store::open(&path).unwrap()
        }
        State::Compacted => {
            store.engine().flush().unwrap();
            store.engine().compact().unwrap();
            store
        }
        State::Rebuilt => {
            store.engine().flush().unwrap();
            store.engine().rebuild().unwrap();
            store
        }
    };
    run_folder("tests/slt/leaves", 1, store.engine(), state);
    assert_eq!(store.engine().verify(None).unwrap().damage, Vec::<String>::new());
}

#[test]
fn b5_structs_are_written_leaf_by_leaf_in_every_state() {
    STATES.into_iter().for_each(run);
}
