use super::*;
use crate::Store;
use asofdb_storage::engine::{EngineOptions, OpenMode};
use std::ops::ControlFlow;
use std::path::Path;

fn options(table: &str, key: &str) -> IntakeOptions {
    let keys = if key.is_empty() { Vec::new() } else { vec![key.parse().unwrap()] };
    IntakeOptions {
        table: Some(table.into()),
        keys,
        keep_raw: true,
        batch: Some(2),
        ..IntakeOptions::default()
    }
}

fn write(dir: &Path, name: &str, content: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

fn redecode(store: &Store, table: &str, options: &IntakeOptions) -> Result<crate::IntakeReport> {
    store.redecode(table, options, &mut |_| ControlFlow::Continue(()))
}

/// What a statement answers, as text.
fn rows(store: &Store, sql: &str) -> String {
    let rows = store.sql(sql).unwrap();
    let mut out = arrow::json::LineDelimitedWriter::new(Vec::new());
    rows.batches.iter().for_each(|batch| out.write(batch).unwrap());
    out.finish().unwrap();
    String::from_utf8(out.into_inner()).unwrap()
}

/// Positions with the messages kept there, in the order of the table's keys.
fn kept(store: &Store, table: &str) -> Vec<(u64, Option<String>)> {
    let mut out = Vec::new();
    for batch in store.table(table).unwrap().history(None).unwrap() {
        let events = EventColumns::new(batch).unwrap();
        out.extend((0..events.len()).map(|i| {
            use arrow::array::Array;
            let raw =
                events.raw().is_valid(i).then(|| String::from_utf8_lossy(events.raw().value(i)).into_owned());
            (events.position().value(i), raw)
        }));
    }
    out.sort();
    out
}

const LINES: &str = "{\"id\":3,\"k\":\"a\",\"n\":\"1.5\"}\n{\"id\":1,\"k\":\"b\",\"n\":\"2\"}\n{\"id\":2,\"k\":\"a\",\"n\":\"3\"}\n{\"id\":1,\"k\":\"c\",\"n\":\"4\"}\n{\"id\":3,\"k\":\"b\",\"n\":\"5.25\"}\n";

/// A store whose log segments hold little, so that they are sealed and can give up their rows.
fn open(home: &Path) -> Store {
    let options = EngineOptions { segment_bytes_max: 1, ..EngineOptions::default() };
    Store::open_with(home, OpenMode::Create, options).unwrap()
}

#[test]
fn kept_messages_make_the_table_that_their_source_would_have_made() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "a.jsonl", LINES);
    let typed = |table: &str| IntakeOptions {
        columns: Some("id, k text, n decimal(10,2)".parse().unwrap()),
        ..options(table, "k")
    };
    let direct = open(&dir.path().join("direct"));
    direct.ingest_files(&[&file], &typed("u")).unwrap();
    for state in ["fresh", "compacted", "rebuilt", "reopened"] {
        let home = dir.path().join(state);
        let mut store = open(&home);
        store.ingest_files(&[&file], &options("t", "id")).unwrap();
        match state {
            "compacted" => {
                store.engine().compact().unwrap();
                let status = store.engine().status().unwrap();
                assert!(status.log_events_shrunk > 0, "the log gave up rows: {status:?}");
            }
            "rebuilt" => {
                store.engine().compact().unwrap();
                store.engine().rebuild().unwrap();
            }
            "reopened" => {
                drop(store);
                store = open(&home);
            }
            _ => {}
        }
        std::fs::remove_file(&file).unwrap();
        let report = redecode(&store, "t", &typed("u")).unwrap();
        assert_eq!((report.accepted, report.commits), (5, 3), "{state}: {report}");
        for sql in [
            "SELECT * FROM u ORDER BY k",
            "SELECT k, n, id, _operation, _position, _ingest_file_name FROM history('u') ORDER BY _position",
        ] {
            assert_eq!(rows(&store, sql), rows(&direct, sql), "{state}");
        }
        assert_eq!(kept(&store, "u"), kept(&store, "t"), "they can be decoded once more");
        // What came since, and nothing twice.
        assert_eq!(redecode(&store, "t", &typed("u")).unwrap().commits, 0, "{state}");
        let file = write(dir.path(), "a.jsonl", &(LINES.to_owned() + "{\"id\":9,\"k\":\"z\",\"n\":\"9\"}\n"));
        store.ingest_files(&[&file], &options("t", "id")).unwrap();
        let report = redecode(&store, "t", &typed("u")).unwrap();
        assert_eq!((report.accepted, report.delivered, report.notices.len()), (1, 1, 0), "{state}");
        write(dir.path(), "a.jsonl", LINES);
    }
}

#[test]
fn what_left_the_quarantine_behind_an_earlier_call_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "a.jsonl", "{\"id\":1,\"op\":\"zap\"}\n{\"id\":2,\"op\":\"c\"}\n");
    let store = Store::create(dir.path().join("s")).unwrap();
    let with_op = |table: &str| IntakeOptions { op: Some("op".into()), ..options(table, "id") };
    store.ingest_files(&[&file], &with_op("t")).unwrap();
    assert_eq!(redecode(&store, "t", &with_op("u")).unwrap().accepted, 1);
    let words = IntakeOptions { op_map: vec!["zap=insert".parse().unwrap()], ..IntakeOptions::default() };
    assert_eq!(store.replay_quarantine(&[], &words).unwrap().accepted, 1);
    let report = redecode(&store, "t", &with_op("u")).unwrap();
    assert!(report.delivered == 0 && report.notices[0].starts_with("1 messages of t before"), "{report:?}");
    let all = IntakeOptions { op_map: words.op_map, ..with_op("v") };
    assert_eq!(redecode(&store, "t", &all).unwrap().accepted, 2);
}

#[test]
fn messages_are_held_a_part_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let files = ["b.jsonl", "a.jsonl"].map(|name| write(dir.path(), name, LINES));
    let store = Store::create(dir.path().join("s")).unwrap();
    store.ingest_files(&files, &options("t", "id")).unwrap();
    for bytes in [1, 70, PART_BYTES] {
        let mut messages = RawMessages::open(store.engine().pin(), "t", &options("u", "k")).unwrap();
        messages.part_bytes = bytes;
        let mut seen = Vec::new();
        while messages
            .read(3, &mut |place, _| {
                seen.push((place.stream.rsplit('/').next().unwrap().to_owned(), place.position));
                Ok(())
            })
            .unwrap()
            == Step::More
        {
            assert!(messages.part.values().map(Vec::len).sum::<usize>() as u64 <= bytes.max(40));
        }
        let expected = |name: &str| (0..5).map(|n| (format!("{name} as u"), n)).collect::<Vec<_>>();
        assert_eq!(seen, [expected("b.jsonl"), expected("a.jsonl")].concat(), "streams keep their order");
    }
}

#[test]
fn a_message_of_many_rows_is_kept_once_a_table_and_read_for_it_alone() {
    let row = |table: &str, id: u8| {
        format!(
            r#"{{"kind":"insert","schema":"s","table":"{table}","columnnames":["id"],"columntypes":["integer"],"columnvalues":[{id}]}}"#
        )
    };
    let text = format!(r#"{{"change":[{},{},{},{}]}}"#, row("a", 1), row("a", 2), row("b", 3), row("b", 4));
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "t.jsonl", &text);
    let store = Store::create(dir.path().join("s")).unwrap();
    let own = IntakeOptions { table: None, ..options("", "id") };
    store.ingest_files(&[&file], &own).unwrap();
    let names: Vec<String> = store.catalog().tables.values().map(|t| t.name.clone()).collect();
    for name in &names {
        let raws: Vec<_> = kept(&store, name).into_iter().map(|(_, raw)| raw).collect();
        assert_eq!(raws, [None, Some(text.clone())], "{name}");
    }
    let report = redecode(&store, &names[1], &options("c", "id")).unwrap();
    assert_eq!((report.accepted, report.rows.get("insert")), (1, Some(&2)), "{report}");
    assert!(rows(&store, "SELECT sum(id) AS s FROM c").contains("\"s\":7"));
}

#[test]
fn records_keep_their_keys_and_times() {
    let record = |n: u8| {
        format!(
            "{{\"topic\":\"t\",\"partition\":0,\"offset\":{n},\"timestamp\":{n}000000,\"key\":\"{{\\\"id\\\":{n}}}\",\"value\":\"{{\\\"a\\\":{n}}}\"}}\n"
        )
    };
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "t.kdump.jsonl", &(record(4) + &record(7)));
    let store = Store::create(dir.path().join("s")).unwrap();
    store.ingest_files(&[&file], &options("t", "")).unwrap();
    redecode(&store, "t", &options("u", "")).unwrap();
    let sql =
        |table: &str| format!("SELECT id, a, __START_AT, _position FROM history('{table}') ORDER BY id");
    assert_eq!(rows(&store, &sql("u")), rows(&store, &sql("t")));
    assert!(rows(&store, &sql("u")).contains("1970-01-01T01:06:40"), "{}", rows(&store, &sql("u")));
}

#[test]
fn schemas_are_those_that_the_store_keeps() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(
        dir.path(),
        "t.kdump.jsonl",
        r#"{"topic":"t","partition":0,"offset":0,"value_b64":"AAAAAAEC"}"#,
    );
    let schema = r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}"#;
    let schemas = vec![write(dir.path(), "s.json", &format!("{{\"1\":{schema}}}"))];
    let store = Store::create(dir.path().join("s")).unwrap();
    store.ingest_files(&[&file], &IntakeOptions { schemas: schemas.clone(), ..options("t", "") }).unwrap();
    // Nothing is known of the schema but by the file, which has to be named.
    let report = redecode(&store, "t", &options("u", "")).unwrap();
    assert_eq!((report.accepted, report.quarantined), (0, 1));
    let report = redecode(&store, "t", &IntakeOptions { schemas, ..options("v", "") }).unwrap();
    assert_eq!((report.accepted, report.quarantined), (1, 0));
    // Kept ones of a registry that nobody could ask.
    let keep = |url: &str| {
        let value = serde_json::json!({"registry": url, "id": 1, "fingerprint": "f", "schema": schema});
        let positions = vec![(format!("schema/{url}#1"), value)];
        let request = asofdb_storage::engine::CommitRequest { positions, ..Default::default() };
        store.engine().commit(request).unwrap();
    };
    keep("http://127.0.0.1:9");
    assert_eq!(redecode(&store, "t", &options("w", "")).unwrap().accepted, 1);
    keep("http://127.0.0.1:10");
    let error = redecode(&store, "t", &options("x", "")).unwrap_err();
    assert!(error.kind() == ErrorKind::Usage && error.hints()[0].contains("--registry"), "{error}");
    let named = IntakeOptions { registry: Some("http://127.0.0.1:10".parse().unwrap()), ..options("x", "") };
    assert_eq!(redecode(&store, "t", &named).unwrap().accepted, 1);
}

#[test]
fn what_was_not_kept_or_makes_no_sense_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file =
        write(dir.path(), "a.jsonl", &LINES.lines().take(2).map(|l| format!("{l}\n")).collect::<String>());
    let store = Store::create(dir.path().join("s")).unwrap();
    store.ingest_files(&[&file], &options("t", "id")).unwrap();
    write(dir.path(), "a.jsonl", LINES);
    let unkept = IntakeOptions { keep_raw: false, ..options("t", "id") };
    store.ingest_files(&[&file], &unkept).unwrap();
    let error = redecode(&store, "t", &options("u", "k")).unwrap_err();
    let expected = format!("3 of 5 messages of t were not kept as they came, the first at {file} position 2");
    assert_eq!(error.message(), expected);
    assert!(error.hints()[0].contains("--keep-raw"));
    let other = write(dir.path(), "b.jsonl", LINES);
    store.ingest_files(&[&other], &options("b", "id")).unwrap();
    for (table, into, kind) in
        [("b", "b", ErrorKind::Usage), ("b", "t", ErrorKind::Usage), ("nobody", "u", ErrorKind::Failed)]
    {
        assert_eq!(redecode(&store, table, &options(into, "k")).unwrap_err().kind(), kind, "{table} {into}");
    }
    let none = IntakeOptions { table: None, ..options("u", "k") };
    assert_eq!(redecode(&store, "b", &none).unwrap_err().kind(), ErrorKind::Usage);
    let strict = IntakeOptions { strict: true, ..options("u", "gone") };
    let error = redecode(&store, "b", &strict).unwrap_err();
    assert!(error.kind() != ErrorKind::Damaged && store.catalog().table("u").is_none(), "{error}");
}
