//! What people see of a real store: columns whose names an answer needs itself, schemas of old
//! commits, sources, functions.

use asofdb::export::{ExportLayout, ExportOptions, ExportOrder, Manifest};
use asofdb::sql::Params;
use asofdb::{IntakeOptions, Store};
use std::path::PathBuf;

struct Shop {
    dir: tempfile::TempDir,
    store: Store,
}

impl Shop {
    fn new() -> Shop {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path().join("s")).unwrap();
        Shop { dir, store }
    }

    fn file(&self, name: &str, lines: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, lines).unwrap();
        path
    }

    fn take(&self, name: &str, lines: &str, key: &str) {
        let options = IntakeOptions {
            table: Some("t".into()),
            format: Some("json".into()),
            keys: vec![key.parse().unwrap()],
            valid: Some("at".parse().unwrap()),
            ..IntakeOptions::default()
        };
        let path = self.file(name, lines);
        let report = self.store.ingest_files(&[path.to_str().unwrap()], &options).unwrap();
        assert_eq!(report.quarantined, 0);
    }

    fn names(&self, sql: &str) -> Vec<String> {
        let rows = self.store.sql(sql).unwrap();
        rows.schema.fields().iter().map(|f| f.name().clone()).collect()
    }

    fn cells(&self, sql: &str) -> Vec<String> {
        super::fixture::rows(&self.store.sql(sql).unwrap().batches).into_iter().map(|r| r.join("|")).collect()
    }
}

const TAKEN: &str = r#"{"__START_AT":1,"_stream":"s1","_change_type":"x","at":"2024-05-01T00:00:00Z"}
{"__START_AT":2,"_stream":"s2","_change_type":"y","at":"2024-05-01T00:00:00Z"}
{"__START_AT":1,"_stream":"s3","_change_type":"z","at":"2024-05-02T00:00:00Z"}
"#;

/// A column of the table that is named as one of the answer's is shown under another name, and every
/// table function answers.
#[test]
fn columns_named_as_the_answers_own_are_set_apart() {
    let shop = Shop::new();
    shop.take("a.ndjson", TAKEN, "__START_AT");
    assert_eq!(shop.names("SELECT * FROM t"), ["__START_AT", "_stream", "_change_type", "at"]);
    let functions = [
        ("intervals('t')", "__START_AT_1"),
        ("scd2('t')", "__START_AT_1"),
        ("t FOR VALID_TIME ALL", "__START_AT_1"),
        ("history('t')", "_stream_1"),
        ("timeline('t', 1)", "__START_AT_1"),
        ("changes('t', 1)", "_change_type_1"),
        ("belief_diff('t', '2024-05-01', now())", "_change_type_1"),
        ("ties('t')", "_stream_1"),
        ("late('t')", "_stream_1"),
    ];
    for (function, apart) in functions {
        let names = shop.names(&format!("SELECT * FROM {function}"));
        assert!(names.iter().any(|n| n == apart), "{function}: {names:?}");
        let mut once = names.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), names.len(), "{function}: {names:?}");
    }
    // The key keeps narrowing the scan, and the interval column of its name does not.
    let one = "SELECT _stream, __START_AT FROM intervals('t') WHERE \"__START_AT_1\" = 1";
    assert_eq!(
        shop.cells(&format!("{one} ORDER BY 1, 2")),
        ["s1|2024-05-01T00:00:00Z", "s3|2024-05-02T00:00:00Z"]
    );
    assert!(shop.cells(&format!("EXPLAIN {one}")).join("").contains("keys=1"));
    let day = "SELECT count(*) FROM scd2('t') WHERE __START_AT = TIMESTAMP '2024-05-01'";
    assert_eq!(shop.cells(day), ["2"]);
    assert_eq!(shop.cells("SELECT count(*) FROM timeline('t', 1)"), ["2"]);
    assert_eq!(shop.cells("SELECT count(*) FROM files('t')"), ["1"]);
    let rows = shop.store.sql("SELECT * FROM scd2('t')").unwrap();
    let notices = &rows.notices;
    assert!(notices.iter().any(|n| n.contains("__START_AT of t is shown as __START_AT_1")), "{notices:?}");
}

/// Exports show such columns as answers do, and their order is one of the table's own key.
#[test]
fn exports_set_columns_apart_too() {
    let shop = Shop::new();
    shop.take("a.ndjson", TAKEN, "__START_AT");
    for (layout, column) in [(ExportLayout::Intervals, "__START_AT_1"), (ExportLayout::History, "_stream_1")]
    {
        let (out, order) = (shop.dir.path().join(layout.to_string()), ExportOrder::Key);
        let order = if layout == ExportLayout::Intervals { ExportOrder::Time } else { order };
        let options = ExportOptions { layout, order, ..ExportOptions::default() };
        let report = shop.store.export("t", &out, &options).unwrap();
        let manifest = Manifest::read(&report.tables[0].path).unwrap();
        assert_eq!(manifest.key, ["__START_AT_1"]);
        assert!(manifest.columns.iter().any(|c| c.0 == column), "{:?}", manifest.columns);
        assert_eq!(manifest.rows, 3);
    }
}

/// Rule B14: with a commit, a row-by-row join shows the columns and types of that commit.
#[test]
fn b14_a_join_row_by_row_shows_the_schema_of_its_commit() {
    let shop = Shop::new();
    shop.take("a.ndjson", "{\"id\":1,\"n\":5,\"at\":\"2024-05-01T00:00:00Z\"}\n", "id");
    shop.take("b.ndjson", "{\"id\":1,\"n\":\"x\",\"more\":true,\"at\":\"2024-05-02T00:00:00Z\"}\n", "id");
    let join = |commit: &str| {
        format!(
            "SELECT t.* FROM (SELECT 1 AS id, TIMESTAMP '2024-05-03' AS day) l
             JOIN t FOR VALID_TIME AS OF l.day {commit} ON t.id = l.id"
        )
    };
    assert_eq!(shop.names(&join("")), ["id", "n", "at", "more"]);
    assert_eq!(shop.names(&join("FOR COMMIT AS OF 1")), ["id", "n", "at"]);
    let rows = shop.store.sql(&join("FOR COMMIT AS OF 1")).unwrap();
    assert_eq!(rows.schema.field(1).data_type(), &arrow::datatypes::DataType::Int64);
    assert_eq!(shop.cells(&join("FOR COMMIT AS OF 1")), ["1|5|2024-05-01T00:00:00Z"]);
    assert_eq!(shop.cells(&join("")), ["1|x|2024-05-02T00:00:00Z|true"]);
    let outer = join("FOR COMMIT AS OF 1").replace("JOIN t", "LEFT JOIN t");
    assert_eq!(shop.cells(&outer), ["1|5|2024-05-01T00:00:00Z"]);
    assert_eq!(shop.names("SELECT * FROM changes('t', 1, 1)").len(), 3 + 3);
    assert_eq!(shop.cells("SELECT id, n, _change_type FROM changes('t', 1, 1)"), ["1|5|insert"]);
}

/// `sources()` speaks of streams and files, not of what intake keeps for itself.
#[test]
fn sources_are_streams_and_files() {
    let shop = Shop::new();
    shop.take("a.ndjson", "{\"id\":1,\"at\":\"2024-05-01T00:00:00Z\"}\n", "id");
    let line = "{\"id\":2,\"at\":\"2024-05-01T00:00:00Z\"}\n";
    shop.file("d/x.ndjson", line);
    shop.take("d/y.ndjson", &line.repeat(2), "id");
    let dir = shop.dir.path().join("d");
    let options = IntakeOptions {
        table: Some("t".into()),
        keys: vec!["id".parse().unwrap()],
        valid: Some("at".parse().unwrap()),
        ..IntakeOptions::default()
    };
    shop.store.ingest_files(&[dir.to_str().unwrap()], &options).unwrap();
    let names = ["stream", "file", "position", "bytes", "lines", "end_position"];
    assert_eq!(shop.names("SELECT * FROM sources()"), names);
    let root = format!("{}/", shop.dir.path().display());
    let all: Vec<String> = shop
        .cells("SELECT stream, file, position, lines, bytes > 0 FROM sources()")
        .into_iter()
        .map(|r| r.replace(&root, ""))
        .collect();
    assert_eq!(
        all,
        [
            "a.ndjson|a.ndjson|1|1|true",
            "d/y.ndjson|d/y.ndjson|2|2|true",
            "d|d/x.ndjson|1|1|true",
            "d|d/y.ndjson|2|2|true",
        ]
    );
}

/// A store opened for reading is asked for what its writer has stored since.
#[test]
fn a_session_beside_a_writer_sees_its_commits() {
    let shop = Shop::new();
    shop.take("a.ndjson", "{\"id\":1,\"at\":\"2024-05-01T00:00:00Z\"}\n", "id");
    let beside = Store::open_read(shop.dir.path().join("s")).unwrap();
    let session = beside.session().unwrap();
    let count = || session.ask("SELECT id FROM t", &Params::none()).unwrap().count();
    assert_eq!((count(), session.pin().unwrap().commit().0), (1, 1));
    shop.take("b.ndjson", "{\"id\":2,\"at\":\"2024-05-01T00:00:00Z\"}\n", "id");
    assert_eq!((count(), session.pin().unwrap().commit().0), (2, 2));
    shop.store.engine().compact().unwrap();
    assert_eq!(count(), 2);
    assert_eq!(beside.commit().0, 1, "the store itself is as it was opened");
}

/// Calls of period predicates are comparisons when a statement runs: filters see columns, and joins
/// find equalities.
#[test]
fn predicates_of_periods_become_comparisons() {
    let f = super::fixture::Fixture::new();
    let filter = "EXPLAIN SELECT name FROM scd2('person')
        WHERE period_overlaps(__START_AT, __END_AT, '2024-05-01', '2024-05-02')";
    let plan = f.rows(filter).join("\n");
    assert!(!plan.contains("period_"), "{plan}");
    assert!(plan.contains("__START_AT") && plan.contains("__END_AT") && plan.contains(" < "), "{plan}");
    let join = "EXPLAIN SELECT a.name FROM scd2('person') a JOIN scd2('person') b
        ON period_immediately_precedes(a.__START_AT, a.__END_AT, b.__START_AT, b.__END_AT)";
    let plan = f.rows(join).join("\n");
    assert!(!plan.contains("period_") && plan.contains("HashJoin"), "{plan}");
}

/// Nothing is offered that does not exist: every function that completion shows can be called.
#[test]
fn every_function_that_is_offered_exists() {
    let shop = Shop::new();
    let session = shop.store.session().unwrap();
    let offered = session.functions();
    for name in ["period_overlaps", "history", "sum", "row_number"] {
        assert!(offered.iter().any(|f| f == name), "{name} is not offered");
    }
    let tables: Vec<&str> = session.table_functions().map(|f| f.name).collect();
    assert!(["why", "flows"].iter().all(|name| tables.contains(name)), "{tables:?}");
    for name in &offered {
        let calls = match tables.contains(&name.as_str()) {
            true => vec![format!("SELECT * FROM {name}()")],
            false => vec![format!("SELECT {name}()"), format!("SELECT {name}() OVER ()")],
        };
        let unknown = |call: &String| match session.ask(call, &Params::none()) {
            Ok(_) => false,
            Err(e) => ["no table function", "nvalid function", "not supported yet"]
                .iter()
                .any(|words| e.message.contains(words)),
        };
        assert!(!calls.iter().all(unknown), "{name} is offered and does not exist");
    }
}
