//! The shared corpus end to end: each set is taken as a user would configure it and compared with its
//! expected rows, counts and versions. Skipped where the corpus is not at hand.

use crate::expect::{compare_rows, differences, matches, text_of};
use crate::memory::{Memory, Row, Stored};
use asofdb::intake::{FileMessages, Sink, run};
use asofdb::{IntakeOptions, IntakeReport};
use asofdb_storage::event::Op;
use asofdb_storage::time::FOREVER;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The corpus: under `ASOF_SHARED`, or beside the repository.
pub fn corpus() -> Option<PathBuf> {
    let shared = std::env::var_os("ASOF_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let dir = shared.unwrap_or(beside).join("corpus");
    let there = dir.is_dir();
    if !there {
        println!("skipped: no corpus at {}; set ASOF_SHARED", dir.display());
    }
    there.then_some(dir)
}

pub fn expected(file: &Path) -> Json {
    let path = format!("{}.expected.json", file.display());
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}

pub fn take(store: &Memory, file: &Path, options: &IntakeOptions) -> IntakeReport {
    let inputs = [file.to_str().unwrap().to_owned()];
    let mut messages = FileMessages::open(&inputs, options, None, &store.catalog()).unwrap();
    run(store, &mut messages, options, &mut |_| ControlFlow::Continue(()))
        .unwrap_or_else(|e| panic!("{}: {e} {:?}", file.display(), e.hints()))
}

/// Keys of value-only files, from the expected answer.
pub fn with_keys(mut options: IntakeOptions, expected: &Json) -> IntakeOptions {
    for (table, t) in expected["tables"].as_object().unwrap() {
        let columns: Vec<&str> = t["key"].as_array().unwrap().iter().filter_map(Json::as_str).collect();
        if !columns.is_empty() {
            options.keys.push(format!("{table}:{}", columns.join(",")).parse().unwrap());
        }
    }
    options
}

fn word(op: Op) -> &'static str {
    match op {
        Op::Insert => "insert",
        Op::Update | Op::Upsert => "update",
        Op::Read => "snapshot",
        Op::Delete => "delete",
        Op::Truncate => "truncate",
        Op::MovedAway => "moved",
    }
}

/// Everything that differs from the expected answer.
pub fn faults(store: &Memory, report: &IntakeReport, expected: &Json) -> Vec<String> {
    let mut out = Vec::new();
    for (table, t) in expected["tables"].as_object().unwrap() {
        let rows = t["rows"].as_array().unwrap();
        let ours =
            if store.tables().contains(table) { store.rows_at(table, FOREVER, FOREVER) } else { vec![] };
        out.extend(compare_rows(&ours, rows).into_iter().map(|d| format!("{table}: {d}")));
        out.extend(timeline_faults(store, table, expected));
    }
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for table in store.tables() {
        store.events(&table).iter().for_each(|e| *counts.entry(word(e.op)).or_default() += 1);
    }
    let wanted: BTreeMap<&str, u64> = expected["counts"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(k, n)| (k.as_str(), n.as_u64().unwrap()))
        .collect();
    if counts != wanted {
        out.push(format!("counts are {counts:?}, not {wanted:?}"));
    }
    let mut ignored: BTreeMap<&str, u64> = report.ignored.iter().map(|(k, n)| (k.as_str(), *n)).collect();
    ignored.extend(report.repeats.iter().map(|(k, n)| (k.as_str(), *n)));
    let wanted: BTreeMap<&str, u64> = expected["ignored"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(k, n)| (k.as_str(), n.as_u64().unwrap()))
        .collect();
    if ignored != wanted {
        out.push(format!("ignored are {ignored:?}, not {wanted:?}"));
    }
    if report.row_events() != counts.values().sum::<u64>() {
        out.push(format!("{} rows reported, {} stored", report.row_events(), counts.values().sum::<u64>()));
    }
    out
}

/// Versions of each key in rule B3 order against the expected ones.
fn timeline_faults(store: &Memory, table: &str, expected: &Json) -> Vec<String> {
    let Some(timeline) = expected["timeline"].as_array() else { return vec![] };
    // Versions of a table without a key have nothing to be told apart by.
    let keyless = |v: &Json| v["key"].as_object().is_some_and(|k| k.is_empty());
    let of_table = |v: &&Json| v["table"] == *table && v["op"] != "t" && !keyless(v);
    let wanted: Vec<&Json> = timeline.iter().filter(of_table).collect();
    if wanted.is_empty() || !store.tables().iter().any(|t| t == table) {
        return wanted.iter().map(|v| format!("{table}: no version {v}")).collect();
    }
    let schema = store.schema(table);
    let history: Vec<_> = store.history(table).into_iter().filter(|(e, _)| e.op != Op::Truncate).collect();
    let has_key = |e: &Stored, key: &Json| {
        key.as_object().is_some_and(|key| {
            key.iter().all(|(name, value)| {
                let id = schema.column(name).map(|c| c.id.0);
                let stored = id.and_then(|id| e.cells.get(&id)).and_then(Option::as_ref);
                matches(stored, value)
            })
        })
    };
    let mut out = Vec::new();
    let mut keys: Vec<&Json> = Vec::new();
    wanted.iter().map(|v| &v["key"]).for_each(|k| {
        if !keys.contains(&k) {
            keys.push(k);
        }
    });
    for key in keys {
        let bytes = history.iter().find(|(e, _)| has_key(e, key)).map(|(e, _)| &e.key);
        let version = |(e, row): &(Stored, Option<Row>)| {
            let left = bytes.is_some() && e.previous.as_ref() == bytes && !e.previous_deleted;
            if has_key(e, key) {
                Some((word(e.op), e.valid, row.clone()))
            } else {
                // The key changed: for the old one that is a delete.
                left.then_some(("delete", e.valid, None))
            }
        };
        let ours: Vec<_> = history.iter().filter_map(version).collect();
        let theirs: Vec<_> = wanted.iter().filter(|v| v["key"] == *key).collect();
        if ours.len() != theirs.len() {
            let have: Vec<_> = ours.iter().map(|(op, valid, _)| (op, valid)).collect();
            out.push(format!("{table} {key}: {have:?} instead of {} versions", theirs.len()));
            continue;
        }
        for ((op, valid, row), v) in ours.iter().zip(theirs) {
            if op[..1] != *v["op"].as_str().unwrap().replace('c', "i").replace('r', "s") {
                out.push(format!("{table} {key}: {op} instead of {}", v["op"]));
            }
            match (row, &v["row"]) {
                (None, Json::Null) => {}
                (Some(row), r) => out.extend(differences(row, r)),
                (None, r) => out.push(format!("{table} {key}: no row instead of {r}")),
            }
            let at = text_of(&asofdb_storage::value::Value::Instant(*valid));
            if let Some(t) = v["commit_time"].as_str().filter(|t| *t != at) {
                out.push(format!("{table} {key}: begins at {at}, not {t}"));
            }
        }
    }
    out
}

pub fn options(build: impl FnOnce(&mut IntakeOptions)) -> IntakeOptions {
    let mut options = IntakeOptions::default();
    build(&mut options);
    options
}

pub fn check(file: &Path, options: &IntakeOptions, expected: &Json) -> Vec<String> {
    let mut out = Vec::new();
    for batch in [400_000, 1, 3] {
        let store = Memory::default();
        let options = IntakeOptions { batch: Some(batch), ..options.clone() };
        let report = take(&store, file, &options);
        out.extend(faults(&store, &report, expected).into_iter().map(|f| format!("batch {batch}: {f}")));
        let again = take(&store, file, &options);
        if again.accepted + again.quarantined + again.row_events() > 0 {
            out.push(format!("a second run took {again}"));
        }
        if !out.is_empty() {
            break;
        }
    }
    out.into_iter().map(|f| format!("{}: {f}", file.display())).collect()
}

pub fn assert_none(faults: Vec<String>) {
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The plain sets with the options that `config` of their answers asks for.
pub fn plain_options() -> [(&'static str, IntakeOptions); 4] {
    [
        (
            "csv_sequence_numbers.csv",
            options(|o| {
                (o.table, o.keys) = (Some("stock".into()), vec!["sku,wh".parse().unwrap()]);
                o.op = Some("action".into());
                o.op_map =
                    ["INSERT=insert", "MODIFY=update", "REMOVE=delete"].map(|w| w.parse().unwrap()).into();
                (o.valid, o.tie_break) = (Some("at".parse().unwrap()), vec!["seq".into()]);
                o.columns = Some("* except (seq, action, at)".parse().unwrap());
            }),
        ),
        (
            "ignore_null_updates.jsonl",
            options(|o| {
                (o.table, o.keys) = (Some("n".into()), vec!["id".parse().unwrap()]);
                (o.op, o.valid) = (Some("op".into()), Some("seq".parse().unwrap()));
                o.ignore_null_updates = Some("name,qty".parse().unwrap());
                o.columns = Some("* except (op, seq)".parse().unwrap());
            }),
        ),
        (
            "json_partial_updates.jsonl",
            options(|o| {
                (o.table, o.keys) = (Some("p".into()), vec!["k".parse().unwrap()]);
                (o.op, o.absent) = (Some("o".into()), Some(asofdb::options::Absent::Unchanged));
                o.columns = Some("* except (o)".parse().unwrap());
            }),
        ),
        ("kafka_upsert_students.kdump.jsonl", options(|o| o.table = Some("students".into()))),
    ]
}

/// The sets of a folder: what has an expected answer beside it.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| Path::new(&format!("{}.expected.json", f.display())).exists());
    files.sort();
    assert!(!files.is_empty(), "no sets in {}", dir.display());
    files
}

pub fn debezium_sets(dir: &Path) -> Vec<(PathBuf, IntakeOptions)> {
    let files = files(dir);
    assert!(files.len() > 20);
    let with_options = |file: PathBuf| {
        let expected = expected(&file);
        let base = options(|o| o.format = Some("debezium-json".into()));
        let kdump = file.to_str().unwrap().contains(".kdump.");
        let mut options = if kdump { base } else { with_keys(base, &expected) };
        // This set alone names its table with the database before the schema.
        let tables = expected["tables"].as_object().unwrap();
        options.table = tables.keys().find(|t| t.matches('.').count() == 2).cloned();
        (file, options)
    };
    files.into_iter().map(with_options).collect()
}

pub fn bitemporal_options() -> IntakeOptions {
    options(|o| {
        (o.table, o.keys) = (Some("t".into()), vec!["symbol".parse().unwrap()]);
        (o.op, o.tie_break) = (Some("op".into()), vec!["seq".into()]);
        o.valid = Some("business_ts".parse().unwrap());
        o.system = Some("system_ts".parse().unwrap());
        o.columns = Some("* except (op, seq)".parse().unwrap());
    })
}

#[test]
fn plain_sets() {
    let Some(dir) = corpus() else { return };
    let mut all = Vec::new();
    for (name, options) in plain_options() {
        let file = dir.join("plain").join(name);
        all.extend(check(&file, &options, &expected(&file)));
    }
    assert_none(all);
}

#[test]
fn bitemporal_sets_answer_their_questions_in_any_order_of_arrival() {
    let Some(dir) = corpus() else { return };
    for name in ["late_updates_and_deletes.jsonl", "reportable_correction.jsonl"] {
        let file = dir.join("bitemporal").join(name);
        let expected = expected(&file);
        let options = bitemporal_options();
        let lines: Vec<String> = std::fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect();
        let temp = tempfile::tempdir().unwrap();
        for turn in 0..lines.len() {
            let mut turned = lines.clone();
            turned.rotate_left(turn);
            if turn % 2 == 1 {
                turned.reverse();
            }
            let path = temp.path().join(format!("{turn}.jsonl"));
            std::fs::write(&path, turned.join("\n")).unwrap();
            let store = Memory::default();
            take(&store, &path, &IntakeOptions { batch: Some(1 + turn), ..options.clone() });
            assert_none(query_faults(&store, &expected));
        }
    }
}

fn query_faults(store: &Memory, expected: &Json) -> Vec<String> {
    let instant =
        |t: &Json| chrono::DateTime::parse_from_rfc3339(t.as_str().unwrap()).unwrap().timestamp_micros();
    let queries = expected["queries"].as_array().unwrap();
    assert!(!queries.is_empty());
    let mut out = Vec::new();
    for q in queries {
        let rows = store.rows_at("t", instant(&q["as_of_business"]), instant(&q["as_of_system"]));
        let symbol = &q["key"]["symbol"];
        let row: Vec<_> =
            rows.into_iter().filter(|r| matches(r.get("symbol").and_then(Option::as_ref), symbol)).collect();
        let wanted: Vec<Json> = Some(q["row"].clone()).into_iter().filter(|r| !r.is_null()).collect();
        out.extend(compare_rows(&row, &wanted).into_iter().map(|f| format!("{q}: {f}")));
    }
    out
}

#[test]
fn dirty_sets_quarantine_line_by_line() {
    let Some(dir) = corpus() else { return };
    let file = dir.join("dirty/debezium_mixed_garbage.jsonl");
    let expected = expected(&file);
    let options = with_keys(options(|o| o.format = Some("debezium-json".into())), &expected);
    let store = Memory::default();
    let report = take(&store, &file, &options);
    let rows = expected["tables"]["shop.items"]["rows"].as_array().unwrap();
    assert_none(compare_rows(&store.rows_at("shop.items", FOREVER, FOREVER), rows));
    let lines: Vec<u64> = store.0.lock().unwrap().quarantine.iter().filter_map(|q| q.line).collect();
    let wanted: Vec<u64> = expected["lines"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, v)| v.as_str().unwrap().contains("quarantine"))
        .map(|(n, _)| n.parse().unwrap())
        .collect();
    let sorted = |mut l: Vec<u64>| {
        l.sort_unstable();
        l
    };
    assert_eq!(sorted(lines), sorted(wanted));
    assert_eq!((report.accepted, report.ignored_messages()), (3, 1), "{report:?}");
}

#[test]
fn debezium_json_sets() {
    let Some(dir) = corpus() else { return };
    let mut all = Vec::new();
    for (file, options) in debezium_sets(&dir.join("debezium-json")) {
        all.extend(check(&file, &options, &expected(&file)));
    }
    assert_none(all);
}
