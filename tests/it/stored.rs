//! The shared corpus through a real store: what a directory on disk answers after intake, batch by
//! batch, closed and opened again.

use crate::corpus::{bitemporal_options, corpus, debezium_sets, expected, plain_options};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt8Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use asofdb::time::{FOREVER, SystemTime, ValidTime};
use asofdb::{IntakeOptions, Store};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every set with rows in its answer, and how to take it.
fn sets(dir: &Path) -> Vec<(PathBuf, IntakeOptions)> {
    let plain = plain_options().into_iter().map(|(name, options)| (dir.join("plain").join(name), options));
    plain.chain(debezium_sets(&dir.join("debezium-json"))).collect()
}

/// A row as text by column; NULL and unknown values are left out.
type Shown = BTreeMap<String, String>;

/// One spelling for values that are equal: a column has one scale, and may have widened to text.
fn plain(text: &str) -> String {
    if let Ok(t) = chrono::DateTime::parse_from_rfc3339(text) {
        return t.timestamp_micros().to_string() + "us";
    }
    if let Ok(json @ (Json::Array(_) | Json::Object(_))) = serde_json::from_str::<Json>(text) {
        return json.to_string();
    }
    let time = text.len() > 18 && text.as_bytes()[4] == b'-' && text.contains(['T', ' ']);
    let number = text.parse::<f64>().is_ok_and(f64::is_finite);
    if (time || number) && text.contains('.') && !text.contains(['e', 'E']) {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text.to_owned()
}

fn wanted(row: &Json) -> Shown {
    let cells = row.as_object().unwrap().iter();
    let shown = cells.filter(|(_, v)| !v.is_null() && v.get("$unavailable").is_none()).map(|(name, v)| {
        let text = match v {
            Json::String(s) => plain(s),
            Json::Object(o) if o.contains_key("$b64") => o["$b64"].as_str().unwrap().to_owned(),
            other => plain(&other.to_string()),
        };
        (name.clone(), text)
    });
    shown.collect()
}

fn shown(batch: &RecordBatch, row: usize, names: &[(usize, String)]) -> Shown {
    let format = FormatOptions::default().with_null("");
    let mut out = Shown::new();
    for (at, name) in names {
        let column = batch.column(*at);
        if column.is_null(row) {
            continue;
        }
        let text = match column.as_binary_opt::<i32>() {
            Some(bytes) => {
                use base64::Engine;
                base64::engine::general_purpose::STANDARD.encode(bytes.value(row))
            }
            None => ArrayFormatter::try_new(column, &format).unwrap().value(row).to_string(),
        };
        out.insert(name.clone(), plain(&text));
    }
    out
}

fn rows(batches: &[RecordBatch]) -> Vec<Shown> {
    let mut out = Vec::new();
    for batch in batches {
        let names: Vec<_> = batch.schema().fields().iter().map(|f| f.name().clone()).enumerate().collect();
        out.extend((0..batch.num_rows()).map(|row| shown(batch, row, &names)));
    }
    out.sort();
    out
}

fn sorted(rows: &[Json]) -> Vec<Shown> {
    let mut out: Vec<Shown> = rows.iter().map(wanted).collect();
    out.sort();
    out
}

/// Values that only an unchanged spelling could keep apart.
fn agree(ours: &[Shown], theirs: &[Shown]) -> bool {
    let same = |a: &String, b: &String| {
        let scale = |t: &str| serde_json::from_str::<Json>(t).is_ok_and(|j| j.get("scale").is_some());
        let (x, y) = (a.parse::<f64>(), b.parse::<f64>());
        a == b || scale(a) || matches!((x, y), (Ok(x), Ok(y)) if x == y && a.len().max(b.len()) < 30)
    };
    ours.len() == theirs.len()
        && ours
            .iter()
            .zip(theirs)
            .all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(|((n, v), (m, w))| n == m && same(v, w)))
}

/// Versions per key: start of valid time and the row, in the order of the store.
fn history(store: &Store, table: &str) -> Vec<(i64, Option<Shown>)> {
    let table = store.table(table).unwrap();
    let columns = table.schema().columns.clone();
    let mut out = Vec::new();
    for batch in table.history(None).unwrap() {
        let find = |name: &str| batch.schema().index_of(name).unwrap();
        let names: Vec<_> = columns
            .iter()
            .enumerate()
            .map(|(i, c)| (asofdb_storage::event::columns::META_COLUMNS + i, c.name.clone()))
            .collect();
        let valid = batch.column(find("valid_from")).as_primitive::<Int64Type>();
        let op = batch.column(find("op")).as_primitive::<UInt8Type>();
        let exists = batch.column(find("exists")).as_boolean();
        for row in 0..batch.num_rows() {
            if op.value(row) & 0b111 == 5 {
                continue;
            }
            let image = exists.value(row).then(|| shown(&batch, row, &names));
            out.push((valid.value(row), image));
        }
    }
    out
}

fn faults(store: &Store, expected: &Json) -> Vec<String> {
    let mut out = Vec::new();
    for (table, t) in expected["tables"].as_object().unwrap() {
        let theirs = sorted(t["rows"].as_array().unwrap());
        let ours = match store.table(table) {
            Ok(handle) => rows(&handle.as_of(None, None).unwrap()),
            Err(_) => Vec::new(),
        };
        if !agree(&ours, &theirs) {
            out.push(format!("{table}: rows are {ours:?}, not {theirs:?}"));
        }
        let timeline = expected["timeline"].as_array().map_or(&[][..], Vec::as_slice);
        let versions: Vec<&Json> =
            timeline.iter().filter(|v| v["table"] == *table && v["op"] != "t").collect();
        if versions.is_empty() || store.table(table).is_err() {
            continue;
        }
        let mut ours: Vec<Option<Shown>> = history(store, table).into_iter().map(|v| v.1).collect();
        let mut theirs: Vec<Option<Shown>> =
            versions.iter().map(|v| Some(&v["row"]).filter(|r| !r.is_null()).map(wanted)).collect();
        ours.sort();
        theirs.sort();
        let gone = |v: &[Option<Shown>]| v.iter().filter(|v| v.is_none()).count();
        let flat = |v: Vec<Option<Shown>>| v.into_iter().flatten().collect::<Vec<_>>();
        if gone(&ours) != gone(&theirs) || !agree(&flat(ours.clone()), &flat(theirs.clone())) {
            out.push(format!("{table}: history is {ours:?}, not {theirs:?}"));
        }
    }
    out
}

fn take(dir: &Path, file: &Path, options: &IntakeOptions) -> Store {
    let store = Store::create(dir).unwrap();
    store
        .ingest_files(&[file.to_str().unwrap()], options)
        .unwrap_or_else(|e| panic!("{}: {e} {:?}", file.display(), e.hints()));
    store
}

#[test]
fn the_corpus_in_a_real_store() {
    let Some(dir) = corpus() else { return };
    let mut all = Vec::new();
    for (file, options) in sets(&dir) {
        let expected = expected(&file);
        for batch in [400_000, 1] {
            let temp = tempfile::tempdir().unwrap();
            let options = IntakeOptions { batch: Some(batch), ..options.clone() };
            let store = take(temp.path(), &file, &options);
            let mut found = faults(&store, &expected);
            drop(store);
            let store = Store::open(temp.path()).unwrap();
            found.extend(faults(&store, &expected).into_iter().map(|f| format!("reopened: {f}")));
            let again = store.ingest_files(&[file.to_str().unwrap()], &options).unwrap();
            if again.accepted + again.row_events() > 0 {
                found.push(format!("a second run took {again}"));
            }
            all.extend(found.into_iter().map(|f| format!("{} batch {batch}: {f}", file.display())));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn bitemporal_questions_in_a_real_store() {
    let Some(dir) = corpus() else { return };
    let file = dir.join("bitemporal/late_updates_and_deletes.jsonl");
    let expected = expected(&file);
    let options = bitemporal_options();
    let temp = tempfile::tempdir().unwrap();
    let store = take(temp.path(), &file, &IntakeOptions { batch: Some(3), ..options });
    let instant =
        |t: &Json| chrono::DateTime::parse_from_rfc3339(t.as_str().unwrap()).unwrap().timestamp_micros();
    let table = store.table("t").unwrap();
    for q in expected["queries"].as_array().unwrap() {
        let (v, s) = (ValidTime(instant(&q["as_of_business"])), SystemTime(instant(&q["as_of_system"])));
        let symbol = q["key"]["symbol"].as_str().unwrap();
        let mut found = rows(&table.as_of(Some(v), Some(s)).unwrap());
        found.retain(|r| r["symbol"] == symbol);
        let wanted: Vec<Json> = Some(q["row"].clone()).into_iter().filter(|r| !r.is_null()).collect();
        assert!(agree(&found, &sorted(&wanted)), "{q}: {found:?}");
        let key = [asofdb_storage::value::Value::Text(symbol.to_owned())];
        let one = table.get(&key, Some(v), Some(s)).unwrap();
        assert_eq!(rows(one.as_slice()), found, "the same by its key");
    }
    assert!(table.get(&[asofdb_storage::value::Value::Int(FOREVER)], None, None).unwrap().is_none());
}

#[test]
fn a_table_that_begins_with_truncates_gets_the_key_of_its_first_row() {
    let truncate = |es: u64| {
        format!(
            "{{\"data\":null,\"database\":\"d\",\"table\":\"t\",\"isDdl\":true,\"type\":\"TRUNCATE\",\"sql\":\"truncate table t\",\"es\":{es},\"ts\":{es},\"id\":{es}}}"
        )
    };
    let row = |kind: &str, es: u64, v: u64| {
        format!(
            "{{\"data\":[{{\"id\":\"1\",\"v\":\"{v}\"}}],\"old\":null,\"database\":\"d\",\"table\":\"t\",\"isDdl\":false,\"type\":\"{kind}\",\"pkNames\":[\"id\"],\"mysqlType\":{{\"id\":\"int\",\"v\":\"int\"}},\"es\":{es},\"ts\":{es},\"id\":{es}}}"
        )
    };
    let lines = [
        truncate(1_000_000),
        row("INSERT", 2_000_000, 5),
        row("UPDATE", 3_000_000, 6),
        truncate(4_000_000),
        row("INSERT", 5_000_000, 7),
    ];
    for batch in [400_000, 1, 2] {
        let (temp, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = files.path().join("t.jsonl");
        std::fs::write(&file, lines.join("\n")).unwrap();
        let options = IntakeOptions { batch: Some(batch), ..IntakeOptions::default() };
        let mut store = take(temp.path(), &file, &options);
        for state in ["fresh", "reopened", "compacted", "rebuilt"] {
            match state {
                "reopened" => {
                    drop(store);
                    store = Store::open(temp.path()).unwrap();
                }
                "compacted" => drop(store.engine().compact().unwrap()),
                "rebuilt" => store.engine().rebuild().unwrap(),
                _ => {}
            }
            let table = store.table("d.t").unwrap();
            assert_eq!(table.schema().key.len(), 1, "batch {batch}, {state}");
            let now = rows(&table.as_of(None, None).unwrap());
            assert_eq!(now.len(), 1, "batch {batch}, {state}: {now:?}");
            assert_eq!(now[0]["v"], "7");
            let then = table.as_of(Some(ValidTime(3_500_000_000)), None).unwrap();
            assert_eq!(rows(&then)[0]["v"], "6", "batch {batch}, {state}");
            let cut = table.as_of(Some(ValidTime(4_500_000_000)), None).unwrap();
            assert!(rows(&cut).is_empty(), "batch {batch}, {state}");
        }
    }
}
