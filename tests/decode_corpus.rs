//! Decoding of the shared corpus: kinds, counts and values of every file, against its expected
//! answer. Skipped where the corpus is absent.

use asofdb::change::{Change, Column, Decoded, Op};
use asofdb::format::FormatOptions;
use asofdb::format::avro::{NoSchema, SchemaSource, SchemaText};
use asofdb::format::options::{ColumnChoice, parse_op_map};
use asofdb::source::{FileOptions, FileSource, Place};
use asofdb_storage::value::{Cell, Value, write_text};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn corpus() -> Option<PathBuf> {
    let shared = std::env::var_os("ASOF_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let corpus = shared.join("corpus");
    if corpus.is_dir() {
        return Some(corpus);
    }
    println!("skipped: there is no corpus; ASOF_SHARED names the directory that has it");
    None
}

type Row = BTreeMap<String, Option<Value>>;

/// What the naive store of this test holds.
#[derive(Default)]
struct Outcome {
    counts: BTreeMap<String, u64>,
    ignored: BTreeMap<String, u64>,
    quarantined: Vec<(u64, String)>,
    /// By table, then by key as text; a row's cell is `None` if it is unknown.
    tables: BTreeMap<String, BTreeMap<String, Row>>,
    ended: BTreeMap<(String, String), bool>,
    seen: BTreeSet<String>,
    keys: BTreeMap<String, Vec<String>>,
}

impl Outcome {
    fn count(map: &mut BTreeMap<String, u64>, kind: &str) {
        *map.entry(kind.to_owned()).or_default() += 1;
    }

    fn take(&mut self, place: &Place<'_>, decoded: Decoded<'_>) {
        match decoded {
            Decoded::Ignored(kind) | Decoded::Repeat(kind) => Self::count(&mut self.ignored, kind),
            Decoded::Quarantine(fault) => self.quarantined.push((place.line, fault.reason.to_owned())),
            Decoded::Changes(changes) => changes.iter().for_each(|c| self.change(place, c)),
        }
    }

    fn change(&mut self, place: &Place<'_>, c: &Change<'_>) {
        let table =
            c.table.map_or_else(|| self.keys.keys().next().cloned().unwrap_or_default(), str::to_owned);
        if c.op == Op::Truncate {
            self.tables.entry(table).or_default().clear();
            return Self::count(&mut self.counts, "truncate");
        }
        let names =
            self.keys.iter().find(|(t, _)| same_table(t, &table)).map(|(_, k)| k.clone()).unwrap_or_default();
        let cell = |name: &String| {
            let find = |cs: &[Column<'_>]| cs.iter().find(|c| c.name == *name).map(|c| text(&c.cell));
            find(c.key).or_else(|| find(c.fields)).unwrap_or_default()
        };
        let key = names.iter().map(cell).collect::<Vec<_>>().join("|");
        if names.iter().any(|n| cell(n).is_empty()) {
            return self.quarantined.push((place.line, "the key is null".to_owned()));
        }
        if let Some(token) = c.token
            && !self.seen.insert(format!("{token:?} {key} {:?} {:?}", c.op, c.image))
        {
            return Self::count(&mut self.ignored, "replayed");
        }
        let at = (table.clone(), key.clone());
        if c.tombstone
            && let Some(after_tombstone) = self.ended.get(&at)
        {
            let kind = if *after_tombstone { "tombstone_repeated" } else { "tombstone" };
            return Self::count(&mut self.ignored, kind);
        }
        Self::count(&mut self.counts, kind_of(c.op));
        let rows = self.tables.entry(table).or_default();
        if c.op == Op::Delete {
            self.ended.insert(at, c.tombstone);
            rows.remove(&key);
            return;
        }
        self.ended.remove(&at);
        let mut former =
            c.previous.map(|p| p.key.iter().map(|c| text(&c.cell)).collect::<Vec<_>>().join("|"));
        let of = |columns: &[Column<'_>]| {
            let value = |n: &String| columns.iter().find(|c| c.name == *n).map(|c| text(&c.cell));
            names.iter().map(value).collect::<Option<Vec<_>>>().map(|k| k.join("|"))
        };
        // An update whose old row has another key is a key change.
        if let (Some(old_key), Some(new_key)) = (of(c.before), of(c.fields))
            && c.op == Op::Update
            && former.is_none()
            && old_key != new_key
            && rows.remove(&old_key).is_some()
        {
            former = Some(old_key);
        }
        let old = rows.get(&key).cloned().or_else(|| self.last_of(&former)).unwrap_or_default();
        let rows = self.tables.entry(at.0.clone()).or_default();
        let mut row = if c.full { Row::new() } else { old.clone() };
        for column in c.image {
            let value = column.cell.to_value().or_else(|| old.get(column.name).cloned().flatten());
            row.insert(column.name.to_owned(), value);
        }
        rows.insert(key.clone(), row.clone());
        self.tables.entry("#last".into()).or_default().insert(key, row);
    }

    /// The last image of a key, also after its delete: what a key change inherits from.
    fn last_of(&self, key: &Option<String>) -> Option<Row> {
        self.tables.get("#last")?.get(key.as_ref()?).cloned()
    }
}

fn kind_of(op: Op) -> &'static str {
    match op {
        Op::Insert => "insert",
        Op::Update | Op::Upsert => "update",
        Op::Read => "snapshot",
        Op::Delete | Op::MovedAway => "delete",
        Op::Truncate => "truncate",
    }
}

fn text(cell: &Cell<'_>) -> String {
    let mut out = String::new();
    write_text(&mut out, cell);
    out
}

/// Tables go by schema and name; one real file's answer has the database before it.
fn same_table(expected: &str, got: &str) -> bool {
    expected == got || expected.ends_with(&format!(".{got}"))
}

fn run(path: &Path, options: FormatOptions, expected: &Json) -> Outcome {
    let mut outcome = Outcome::default();
    for (name, table) in expected["tables"].as_object().into_iter().flatten() {
        let key = table["key"].as_array().into_iter().flatten().filter_map(Json::as_str);
        outcome.keys.insert(name.clone(), key.map(str::to_owned).collect());
    }
    let inputs = [path.to_string_lossy().into_owned()];
    let options = FileOptions { options, ..FileOptions::default() };
    let mut source = FileSource::open(&inputs, options, Vec::new()).expect("opened");
    while source.read(3, &mut |place, decoded| outcome.take(place, decoded)).expect("read") {}
    outcome
}

fn counts(json: &Json) -> BTreeMap<String, u64> {
    json.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.as_u64().unwrap_or(0))).collect()
}

fn expected_of(path: &Path) -> Json {
    let path = format!("{}.expected.json", path.display());
    serde_json::from_str(&std::fs::read_to_string(&path).expect("expected answer")).expect("JSON")
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("directory").map(|e| e.expect("entry").path());
    let mut files: Vec<_> = entries.filter(|p| !p.to_string_lossy().ends_with(".expected.json")).collect();
    files.sort();
    files
}

fn same(expected: &Json, got: Option<&Option<Value>>) -> bool {
    let Some(got) = got else { return expected.is_null() };
    let Some(value) = got else { return expected.get("$unavailable").is_some() };
    let cell = value.as_cell();
    let shown = text(&cell);
    match (expected, value) {
        (Json::Null, v) => *v == Value::Null,
        (Json::Bool(b), v) => *v == Value::Bool(*b),
        (Json::Number(n), Value::Int(_) | Value::Decimal { .. } | Value::Float(_)) => {
            n.to_string() == shown || n.as_f64() == shown.parse().ok()
        }
        (Json::String(s), Value::Instant(us)) => instant(s) == Some(*us),
        (Json::String(s), Value::Timestamp(_) | Value::TimestampNs(_)) => {
            trimmed(s) == trimmed(&shown) && !s.ends_with('Z')
        }
        (Json::String(s), _) => *s == shown,
        (Json::Object(o), Value::Bytes(_) | Value::Text(_)) => {
            o.get("$b64").and_then(Json::as_str) == Some(&base64(value))
        }
        (Json::Object(_) | Json::Array(_), Value::Json(s)) => {
            serde_json::from_str::<Json>(s).ok().as_ref() == Some(expected)
        }
        _ => false,
    }
}

fn instant(text: &str) -> Option<i64> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(|t| t.timestamp_micros())
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Bytes of a typed column; without a schema they are still the text they were sent as.
fn base64(value: &Value) -> String {
    use base64::Engine;
    match value {
        Value::Bytes(b) => base64::engine::general_purpose::STANDARD.encode(b),
        Value::Text(t) => t.clone(),
        _ => String::new(),
    }
}

fn check_rows(name: &str, outcome: &Outcome, expected: &Json) {
    for (table, answer) in expected["tables"].as_object().into_iter().flatten() {
        let empty = BTreeMap::new();
        let got = outcome.tables.iter().find(|(t, _)| same_table(table, t)).map_or(&empty, |(_, rows)| rows);
        let rows = answer["rows"].as_array().expect("rows");
        assert_eq!(got.len(), rows.len(), "{name}: rows of {table}");
        for row in rows {
            let key = outcome.keys[table].iter().map(|k| match &row[k] {
                Json::String(s) => s.clone(),
                other => other.to_string(),
            });
            let key = key.collect::<Vec<_>>().join("|");
            let got = got.get(&key).unwrap_or_else(|| panic!("{name}: {table} has no row {key}"));
            for (column, value) in row.as_object().expect("row") {
                assert!(
                    same(value, got.get(column)),
                    "{name}: {table} {key} {column}: {value} but {:?}",
                    got.get(column)
                );
            }
            for (column, value) in got {
                assert!(
                    row.get(column).is_some() || *value == Some(Value::Null),
                    "{name}: {column} is too much"
                );
            }
        }
    }
}

#[test]
fn debezium_json_is_decoded_as_expected() {
    let Some(corpus) = corpus() else { return };
    let files = files(&corpus.join("debezium-json"));
    assert!(files.len() > 20, "the corpus has files");
    for path in files {
        let name = path.file_name().expect("name").to_string_lossy().into_owned();
        let expected = expected_of(&path);
        let outcome = run(&path, FormatOptions::default(), &expected);
        assert_eq!(outcome.quarantined, [], "{name}");
        assert_eq!(outcome.counts, counts(&expected["counts"]), "{name}");
        assert_eq!(outcome.ignored, counts(&expected["ignored"]), "{name}");
        check_rows(&name, &outcome, &expected);
    }
}

/// Folders of formats whose messages say everything that decoding takes.
const ENVELOPES: &[&str] = &["maxwell", "canal"];
/// Left to `tests/it/corpus_mysql.rs`: the answer of one leaves labels and geometries as they are sent, a key
/// of the other is a JSON document, which is no text to compare.
const LEFT_OUT: [&str; 2] = ["mysql_all_types.jsonl", "type_encodings.jsonl"];

#[test]
fn envelopes_are_decoded_as_expected() {
    let Some(corpus) = corpus() else { return };
    for folder in ENVELOPES {
        let left_out = |f: &PathBuf| LEFT_OUT.iter().any(|name| f.ends_with(name));
        for path in files(&corpus.join(folder)).iter().filter(|f| !left_out(f)) {
            let name = path.file_name().expect("name").to_string_lossy().into_owned();
            let expected = expected_of(path);
            let outcome = run(path, FormatOptions::default(), &expected);
            assert_eq!(outcome.quarantined, [], "{name}");
            assert_eq!(outcome.counts, counts(&expected["counts"]), "{name}");
            assert_eq!(outcome.ignored, counts(&expected["ignored"]), "{name}");
            check_rows(&name, &outcome, &expected);
        }
    }
}

/// The registry of a set, as the file beside it has it.
#[derive(Debug)]
struct Registry(Json);

impl Registry {
    fn beside(path: &Path) -> Registry {
        let path = path.display().to_string().replace(".kdump.jsonl", ".schemas.json");
        Registry(serde_json::from_str(&std::fs::read_to_string(path).expect("schemas")).expect("JSON"))
    }
}

impl SchemaSource for Registry {
    fn schema(&self, id: u64) -> Result<Arc<SchemaText>, NoSchema> {
        let subjects = self.0["subjects"].as_object().expect("subjects");
        let found = subjects.values().find(|s| s["id"].as_u64() == Some(id));
        let text = |s: &Json| SchemaText { schema: s["schema"].to_string(), references: Vec::new() };
        found.map(|s| Arc::new(text(s))).ok_or_else(|| NoSchema::Unknown(id.to_string()))
    }
}

#[test]
fn avro_is_decoded_as_expected() {
    let Some(corpus) = corpus() else { return };
    for name in ["paper-avro/ops_2000.kdump.jsonl", "debezium-avro/orders_compacted.kdump.jsonl"] {
        let path = corpus.join(name);
        let expected = expected_of(&path);
        let mut options =
            FormatOptions { schemas: Some(Arc::new(Registry::beside(&path))), ..FormatOptions::default() };
        if let Some(op) = expected["config"]["op"].as_str() {
            options.op = Some(op.to_owned());
            options.columns = ColumnChoice::Except(vec![op.to_owned()]);
            options.ignore_null = Some(ColumnChoice::All);
        }
        let outcome = run(&path, options, &expected);
        assert_eq!(outcome.quarantined, [], "{name}");
        assert_eq!(outcome.counts, counts(&expected["counts"]), "{name}");
        assert_eq!(outcome.ignored, counts(&expected["ignored"]), "{name}");
        check_rows(name, &outcome, &expected);
    }
}

#[test]
fn plain_files_are_decoded_as_expected() {
    let Some(corpus) = corpus() else { return };
    for path in files(&corpus.join("plain")) {
        let name = path.file_name().expect("name").to_string_lossy().into_owned();
        let expected = expected_of(&path);
        let config = &expected["config"];
        let op = config["op"].as_str().map(str::to_owned);
        let mut options = FormatOptions { op, ..FormatOptions::default() };
        if name == "ignore_null_updates.jsonl" {
            options.op = Some("op".to_owned());
        }
        if let Some(map) = config["op_map"].as_object() {
            let pairs = map.iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or("")));
            options.op_map = parse_op_map(&pairs.collect::<Vec<_>>().join(",")).expect("map");
        }
        options.valid = config["valid_time"].as_str().map(|c| c.parse().expect("column"));
        let outcome = run(&path, options, &expected);
        assert_eq!(outcome.quarantined, [], "{name}");
        assert_eq!(outcome.counts, counts(&expected["counts"]), "{name}");
        assert_eq!(outcome.ignored, counts(&expected["ignored"]), "{name}");
        if name == "kafka_upsert_students.kdump.jsonl" {
            check_rows(&name, &outcome, &expected);
        }
    }
}

#[test]
fn bitemporal_files_have_both_times() {
    let Some(corpus) = corpus() else { return };
    for (name, events) in [("late_updates_and_deletes.jsonl", 10), ("reportable_correction.jsonl", 2)] {
        let options = FormatOptions {
            op: Some("op".into()),
            valid: Some("business_ts".parse().expect("column")),
            system: Some("system_ts".parse().expect("column")),
            tie_break: vec!["seq".into()],
            ..FormatOptions::default()
        };
        let inputs = [corpus.join("bitemporal").join(name).to_string_lossy().into_owned()];
        let options = FileOptions { options, ..FileOptions::default() };
        let mut source = FileSource::open(&inputs, options, Vec::new()).expect("opened");
        let mut seen = 0;
        let mut sink = |_: &Place<'_>, decoded: Decoded<'_>| {
            let Decoded::Changes([c]) = decoded else { panic!("{decoded:?}") };
            assert!(c.declared.valid_from.is_some() && c.declared.system.is_some());
            assert!(matches!(c.declared.ties, [Cell::Int(_)]));
            assert!(c.image.iter().any(|c| c.name == "business_ts"), "control columns stay in the image");
            seen += 1;
        };
        while source.read(4, &mut sink).expect("read") {}
        assert_eq!(seen, events, "{name}");
    }
}

#[test]
fn dirty_lines_get_their_verdicts() {
    let Some(corpus) = corpus() else { return };
    let path = corpus.join("dirty/debezium_mixed_garbage.jsonl");
    let expected = expected_of(&path);
    let outcome = run(&path, FormatOptions::default(), &expected);
    assert_eq!(outcome.counts, counts(&expected["counts"]));
    let lines: Vec<u64> = outcome.quarantined.iter().map(|(line, _)| *line).collect();
    let verdicts = expected["lines"].as_object().expect("verdicts");
    let mut wanted: Vec<u64> = verdicts
        .iter()
        .filter(|(_, v)| v.as_str().is_some_and(|v| v.contains("quarantine")))
        .filter_map(|(line, _)| line.parse().ok())
        .collect();
    wanted.sort_unstable();
    assert_eq!(lines, wanted, "{:?}", outcome.quarantined);
    assert_eq!(outcome.ignored, BTreeMap::from([("null_or_empty_key_tombstone".to_owned(), 1)]));
    check_rows("dirty", &outcome, &expected);
}

#[test]
fn envelopes_without_keys_are_decoded_as_expected() {
    let Some(corpus) = corpus() else { return };
    let sets: Vec<_> = ["wal2json", "aws-dms", "ogg", "debezium-flat", "cloudevents"]
        .iter()
        .flat_map(|dir| files(&corpus.join(dir)))
        .collect();
    assert!(sets.len() > 15, "the corpus has files");
    for path in sets.into_iter().filter(|path| path.is_file()) {
        let name = path.file_name().expect("name").to_string_lossy().into_owned();
        let mut expected = expected_of(&path);
        // A log position tells the repeat before its identity is asked.
        let ignored = expected["ignored"].as_object_mut().expect("ignored");
        if let Some(repeats) = ignored.remove("duplicate_id") {
            ignored.insert("replayed".into(), repeats);
        }
        let outcome = run(&path, FormatOptions::default(), &expected);
        assert_eq!(outcome.quarantined, [], "{name}");
        assert_eq!(outcome.counts, counts(&expected["counts"]), "{name}");
        assert_eq!(outcome.ignored, counts(&expected["ignored"]), "{name}");
        // Tables without a key are too much for the store of this test.
        if expected["tables"].as_object().into_iter().flatten().all(|(_, t)| t["key"] != Json::Array(vec![]))
        {
            check_rows(&name, &outcome, &expected);
        }
    }
}
