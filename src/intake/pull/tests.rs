use super::*;
use crate::intake::IntakeReport;
use crate::options::KeySpec;
use crate::source::pull::tests::sqlite;
use crate::store::Store;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// A database and a store.
struct Pair {
    dir: tempfile::TempDir,
    store: Store,
}

const TABLE: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, at TEXT);";

impl Pair {
    fn new(sql: &str) -> Pair {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path().join("s.asof")).unwrap();
        let pair = Pair { dir, store };
        pair.source(sql);
        pair
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("a.db")
    }

    fn source(&self, sql: &str) {
        sqlite(&self.path(), sql);
    }

    fn options(&self) -> PullOptions {
        PullOptions {
            url: format!("sqlite:{}", self.path().display()),
            table: "t".into(),
            watermark: Some("at".into()),
            ..PullOptions::default()
        }
    }

    fn pull(&self) -> IntakeReport {
        self.store.pull(&self.options(), &IntakeOptions::default()).unwrap()
    }

    fn snapshot(&self) -> IntakeReport {
        let pull = PullOptions { snapshot: true, watermark: None, ..self.options() };
        self.store.pull(&pull, &IntakeOptions::default()).unwrap()
    }

    fn fault(&self, pull: &PullOptions, intake: &IntakeOptions) -> String {
        let e = self.store.pull(pull, intake).unwrap_err();
        format!("{:?}: {} / {}", e.kind(), e.message(), e.hints().join(" / "))
    }

    /// The answer of a statement, rows by lines.
    fn ask(&self, sql: &str) -> String {
        let rows = self.store.sql(sql).unwrap();
        let mut out = Vec::new();
        for batch in rows.batches {
            for row in 0..batch.num_rows() {
                let cells = batch.columns().iter().map(|c| {
                    let options = arrow::util::display::FormatOptions::default();
                    let shown = arrow::util::display::ArrayFormatter::try_new(c, &options).unwrap();
                    shown.value(row).to_string()
                });
                out.push(cells.collect::<Vec<_>>().join("|"));
            }
        }
        out.join("\n")
    }

    fn rows(&self) -> String {
        self.ask("SELECT id, v FROM t ORDER BY id")
    }

    fn events(&self) -> String {
        self.ask("SELECT count(*) FROM history('t')")
    }
}

fn ops(report: &IntakeReport) -> String {
    let list = |m: &std::collections::BTreeMap<String, u64>| {
        m.iter().map(|(k, n)| format!("{n} {k}")).collect::<Vec<_>>().join(" ")
    };
    format!("{} + {}", list(&report.rows), list(&report.repeats))
}

#[test]
fn a_second_pull_takes_nothing_and_commits_nothing() {
    let p = Pair::new(&format!(
        "{TABLE} INSERT INTO t VALUES (1, 'a', '2026-01-01 10:00:00'), (2, 'b', '2026-01-01 10:01:00');"
    ));
    assert_eq!(ops(&p.pull()), "2 insert + ");
    let again = p.pull();
    assert_eq!((ops(&again).as_str(), again.commits), (" + 2 unchanged", 0));
    assert_eq!((p.rows().as_str(), p.events().as_str()), ("1|a\n2|b", "2"));
}

#[test]
fn rows_at_the_boundary_are_neither_lost_nor_doubled() {
    let p = Pair::new(&format!("{TABLE} INSERT INTO t VALUES (1, 'a', '2026-01-01 10:00:00');"));
    let none = PullOptions { overlap: Some("0s".into()), ..p.options() };
    let pull = || ops(&p.store.pull(&none, &IntakeOptions::default()).unwrap());
    assert_eq!(pull(), "1 insert + ");
    p.source("INSERT INTO t VALUES (2, 'b', '2026-01-01 10:00:00'), (3, 'c', '2026-01-01 09:59:59');");
    // Without an overlap what lies below is not looked at.
    assert_eq!(pull(), "1 insert + 1 unchanged");
    assert_eq!(p.rows(), "1|a\n2|b");
}

#[test]
fn what_commits_late_is_found_within_the_overlap() {
    let p = Pair::new(&format!("{TABLE} INSERT INTO t VALUES (1, 'a', '2026-01-01 10:00:00');"));
    p.pull();
    p.source(
        "INSERT INTO t VALUES (2, 'late', '2026-01-01 09:56:00'), (3, 'too late', '2026-01-01 09:00:00');",
    );
    assert_eq!(ops(&p.pull()), "1 insert + 1 unchanged");
    let hour = PullOptions { overlap: Some("2 hours".into()), ..p.options() };
    assert_eq!(ops(&p.store.pull(&hour, &IntakeOptions::default()).unwrap()), "1 insert + 2 unchanged");
    // A late row does not move the watermark back.
    assert_eq!(ops(&p.pull()), " + 2 unchanged");
}

#[test]
fn a_row_that_changes_twice_has_its_history() {
    let p = Pair::new(&format!("{TABLE} INSERT INTO t VALUES (1, 'a', '2026-01-01 10:00:00');"));
    p.pull();
    p.source("UPDATE t SET v = 'b', at = '2026-01-01 11:00:00';");
    assert_eq!(ops(&p.pull()), "1 update + ");
    p.source("UPDATE t SET v = 'a', at = '2026-01-01 12:00:00';");
    assert_eq!(ops(&p.pull()), "1 update + ");
    let at =
        |time: &str| p.ask(&format!("SELECT v FROM t FOR VALID_TIME AS OF TIMESTAMP '2026-01-01 {time}'"));
    assert_eq!([at("10:30:00"), at("11:30:00"), at("12:30:00")], ["a", "b", "a"]);
    assert_eq!(at("09:59:00"), "");
}

#[test]
fn a_row_changed_without_its_watermark_is_found_within_the_overlap() {
    let p = Pair::new(&format!("{TABLE} INSERT INTO t VALUES (1, 'a', '2026-01-01 10:00:00');"));
    p.pull();
    p.source("UPDATE t SET v = 'b';");
    assert_eq!(ops(&p.pull()), "1 update + ");
    assert_eq!(p.rows(), "1|b");
}

#[test]
fn rows_without_a_watermark_are_always_read_and_told() {
    let p =
        Pair::new(&format!("{TABLE} INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', '2026-01-01 10:00:00');"));
    let first = p.pull();
    assert_eq!(ops(&first), "2 insert + ");
    assert!(first.notices[0].contains("1 row without at"), "{:?}", first.notices);
    p.source("UPDATE t SET v = 'c' WHERE id = 1;");
    assert_eq!(ops(&p.pull()), "1 update + 1 unchanged");
    assert_eq!(p.rows(), "1|c\n2|b");
}

#[test]
fn numbers_are_watermarks_with_and_without_a_unit() {
    let p = Pair::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, at INTEGER);
        INSERT INTO t VALUES (1, 'a', 100), (2, 'b', 200);",
    );
    p.pull();
    p.source("INSERT INTO t VALUES (3, 'c', 200), (4, 'd', 150);");
    assert_eq!(ops(&p.pull()), "1 insert + 1 unchanged");
    let pull = PullOptions { overlap: Some("60".into()), ..p.options() };
    assert_eq!(ops(&p.store.pull(&pull, &IntakeOptions::default()).unwrap()), "1 insert + 2 unchanged");
    let pull = PullOptions { overlap: Some("5m".into()), ..p.options() };
    assert!(p.fault(&pull, &IntakeOptions::default()).contains("at:ms"));
    let intake = IntakeOptions { table: Some("u".into()), ..IntakeOptions::default() };
    let pull = PullOptions { watermark: Some("at:s".into()), ..p.options() };
    p.store.pull(&pull, &IntakeOptions { source_name: Some("u".into()), ..intake }).unwrap();
    let start = p.ask("SELECT id FROM u FOR VALID_TIME AS OF TIMESTAMP '1970-01-01 00:02:30' ORDER BY id");
    assert_eq!(start, "1\n4");
}

#[test]
fn a_snapshot_finds_deletes_and_a_row_that_comes_back() {
    let p =
        Pair::new(&format!("{TABLE} INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', NULL), (3, 'c', NULL);"));
    assert_eq!(ops(&p.snapshot()), "3 insert + ");
    assert_eq!(p.snapshot().commits, 0);
    p.source("DELETE FROM t WHERE id = 2; UPDATE t SET v = 'x' WHERE id = 3;");
    assert_eq!(ops(&p.snapshot()), "1 delete 1 update + 1 unchanged");
    assert_eq!(p.rows(), "1|a\n3|x");
    assert_eq!(ops(&p.snapshot()), " + 2 unchanged");
    p.source("INSERT INTO t VALUES (2, 'b', NULL);");
    assert_eq!(ops(&p.snapshot()), "1 insert + 2 unchanged");
    assert_eq!(p.rows(), "1|a\n2|b\n3|x");
    p.source("DELETE FROM t;");
    assert_eq!(ops(&p.snapshot()), "3 delete + ");
    assert_eq!((p.rows().as_str(), p.snapshot().delivered), ("", 0));
}

#[test]
fn snapshots_and_pulls_of_a_table_are_one_stream() {
    let p = Pair::new(&format!(
        "{TABLE} INSERT INTO t VALUES (1, 'a', '2026-01-01 10:00:00'), (2, 'b', '2026-01-01 10:00:01');"
    ));
    p.pull();
    let both = PullOptions { snapshot: true, ..p.options() };
    p.source("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (3, 'c', '2026-01-01 11:00:00');");
    let report = p.store.pull(&both, &IntakeOptions::default()).unwrap();
    assert_eq!(ops(&report), "1 delete 1 insert + 1 unchanged");
    // The snapshot moved the watermark.
    assert_eq!(ops(&p.pull()), " + 1 unchanged");
    assert_eq!(p.rows(), "2|b\n3|c");
}

#[test]
fn a_delete_ends_a_row_whose_watermark_lies_ahead_of_the_clock() {
    let p = Pair::new(&format!("{TABLE} INSERT INTO t VALUES (1, 'a', '2999-01-01 00:00:00');"));
    p.pull();
    p.source("DELETE FROM t;");
    assert_eq!(ops(&p.snapshot()), "1 delete + ");
    assert_eq!((p.rows().as_str(), p.snapshot().delivered), ("", 0));
}

#[test]
fn declared_times_are_those_of_the_column_and_deletes_have_the_instant_of_the_snapshot() {
    let p = Pair::new(&format!(
        "{TABLE} INSERT INTO t VALUES (1, 'a', '2026-01-01 10:00:00'), (2, 'b', '2999-01-01 00:00:00');"
    ));
    let pull = PullOptions { snapshot: true, watermark: None, ..p.options() };
    let intake = IntakeOptions { valid: Some("at".parse().unwrap()), ..IntakeOptions::default() };
    let take = || ops(&p.store.pull(&pull, &intake).unwrap());
    assert_eq!(take(), "2 insert + ");
    p.source("DELETE FROM t;");
    // Also of a row that had not begun.
    assert_eq!((take().as_str(), take().as_str()), ("2 delete + ", " + "));
    assert_eq!(p.rows(), "");
    assert_eq!(p.ask("SELECT id FROM t FOR VALID_TIME AS OF '2026-01-01 10:00:00'"), "1");
    let numbers =
        Pair::new("CREATE TABLE t (id INTEGER PRIMARY KEY, at INTEGER); INSERT INTO t VALUES (1, 5);");
    let pull = PullOptions { url: numbers.options().url, ..pull };
    numbers.store.pull(&pull, &intake).unwrap();
    assert!(numbers.fault(&pull, &intake).contains("plain numbers"));
}

#[test]
fn a_snapshot_that_breaks_off_ends_no_row() {
    let p = Pair::new("CREATE TABLE b (id INTEGER PRIMARY KEY, n INTEGER);
        CREATE VIEW t AS SELECT id, abs(n) AS v FROM b;
        INSERT INTO b WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 9000) SELECT i, i FROM c;");
    let pull = PullOptions { snapshot: true, watermark: None, ..p.options() };
    let intake = IntakeOptions {
        keys: vec![KeySpec { table: None, columns: vec!["id".into()] }],
        batch: Some(1000),
        ..IntakeOptions::default()
    };
    p.store.pull(&pull, &intake).unwrap();
    // The smallest integer has no absolute value: reading fails in the middle.
    p.source(
        "DELETE FROM b WHERE id IN (1, 9000); UPDATE b SET n = -9223372036854775807 - 1 WHERE id = 8000;",
    );
    assert!(p.fault(&pull, &intake).contains("integer overflow"));
    assert_eq!(p.ask("SELECT count(*) FROM t"), "9000");
    p.source("UPDATE b SET n = 0 WHERE id = 8000;");
    assert_eq!(ops(&p.store.pull(&pull, &intake).unwrap()), "2 delete 1 update + 8997 unchanged");
}

#[test]
fn a_stop_between_any_two_commits_neither_loses_nor_doubles() {
    for stop in 0..9 {
        let mut sql = TABLE.to_owned();
        for i in 1..=8 {
            sql.push_str(&format!(
                "INSERT INTO t VALUES ({i}, 'v{i}', '2026-01-01 10:0{}:00');",
                (8 - i) / 3
            ));
        }
        let p = Pair::new(&sql);
        let intake = IntakeOptions { batch: Some(1), ..IntakeOptions::default() };
        let pull = PullOptions { overlap: Some("0s".into()), ..p.options() };
        let mut messages = PullMessages::open(&pull, &intake, Some(p.store.engine().pin())).unwrap();
        let mut calls = 0;
        p.store
            .ingest_messages(&mut messages, &intake, &mut |_| {
                calls += 1;
                if calls > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
        drop(messages);
        p.store.pull(&pull, &intake).unwrap();
        assert_eq!(p.events(), "8", "stopped after {stop}");
        assert_eq!(p.ask("SELECT count(*), count(DISTINCT v) FROM t"), "8|8");
    }
}

#[test]
fn every_value_keeps_its_type_and_digits() {
    let p = Pair::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, at TIMESTAMP, b BOOLEAN, i BIGINT, r REAL, d DATE, j JSON, x BLOB, s TEXT, z);
        INSERT INTO t VALUES (1, '2026-01-01 10:00:00.123456', 1, 9223372036854775807, 0.1, '2026-02-28', '{\"a\": 1}', x'00ff', '007', NULL);",
    );
    p.pull();
    let row = p.ask("SELECT at, b, i, r, d, j, x, s, z FROM t");
    assert_eq!(
        row,
        "2026-01-01T10:00:00.123456|true|9223372036854775807|0.1|2026-02-28|{\"a\": 1}|00ff|007|"
    );
    let types =
        "SELECT arrow_typeof(b), arrow_typeof(i), arrow_typeof(d), arrow_typeof(x), arrow_typeof(s) FROM t";
    assert_eq!(p.ask(types), "Boolean|Int64|Date32|Binary|Utf8");
    assert_eq!(ops(&p.pull()), " + 1 unchanged");
}

#[test]
fn a_column_that_came_later_and_a_type_that_widened_are_no_change() {
    let p = Pair::new(&format!("{TABLE} INSERT INTO t VALUES (1, 'a', '2026-01-01 10:00:00');"));
    p.pull();
    p.source("ALTER TABLE t ADD COLUMN n INTEGER; INSERT INTO t VALUES (2, 'b', '2026-01-01 10:00:01', 5);");
    assert_eq!(ops(&p.pull()), "1 insert + 1 unchanged");
    p.source("INSERT INTO t VALUES (3, 'c', '2026-01-01 10:00:02', 'five');");
    assert_eq!(ops(&p.pull()), "1 insert + 2 unchanged");
    assert_eq!(ops(&p.pull()), " + 3 unchanged");
    // Texts that are one number are two texts.
    p.source("UPDATE t SET v = '5' WHERE id = 3;");
    assert_eq!(ops(&p.pull()), "1 update + 2 unchanged");
    p.source("UPDATE t SET v = '5.0' WHERE id = 3;");
    assert_eq!(ops(&p.pull()), "1 update + 2 unchanged");
    // A column that goes is NULL from then on: that is a change where it was not.
    p.source("ALTER TABLE t DROP COLUMN n;");
    assert_eq!(ops(&p.pull()), "2 update + 1 unchanged");
    assert_eq!(ops(&p.pull()), " + 3 unchanged");
}

#[test]
fn documents_beside_other_values_are_no_change() {
    let p = Pair::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v JSON, at TEXT);
        INSERT INTO t VALUES (1, '{\"a\": [1]}', '2026-01-01 10:00:00'), (2, 5, '2026-01-01 10:00:00'), (3, NULL, '2026-01-01 10:00:00');");
    p.pull();
    assert_eq!(p.rows(), "1|{\"a\": [1]}\n2|5\n3|");
    assert_eq!(ops(&p.pull()), " + 3 unchanged");
}

#[test]
fn a_condition_makes_a_row_a_delete_once() {
    let p = Pair::new(&format!("{TABLE} INSERT INTO t VALUES (1, 'a', '2026-01-01 10:00:00');"));
    let intake = IntakeOptions { delete_when: Some("v = 'gone'".into()), ..IntakeOptions::default() };
    let pull = || ops(&p.store.pull(&p.options(), &intake).unwrap());
    pull();
    p.source("UPDATE t SET v = 'gone', at = '2026-01-01 10:00:01';");
    assert_eq!(pull(), "1 delete + ");
    assert_eq!((pull().as_str(), p.rows().as_str()), (" + 1 unchanged", ""));
}

#[test]
fn what_is_not_there_is_told_with_names_that_are() {
    let p = Pair::new(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, updated_at TEXT, r REAL);
        CREATE TABLE loose (a TEXT, at TEXT); INSERT INTO orders VALUES (1, '2026-01-01', 1.5);
        CREATE TABLE t (id INTEGER, at TEXT); INSERT INTO t VALUES (1, '2026-01-01'), (1, '2026-01-02');",
    );
    let none = IntakeOptions::default();
    let of = |table: &str, watermark: &str| PullOptions {
        table: table.into(),
        watermark: Some(watermark.into()),
        ..p.options()
    };
    let fault = p.fault(&of("order", "at"), &none);
    assert!(fault.starts_with("Source") && fault.contains("did you mean orders?"), "{fault}");
    let fault = p.fault(&of("orders", "update_at"), &none);
    assert!(fault.starts_with("Source") && fault.contains("did you mean updated_at?"), "{fault}");
    assert!(p.fault(&of("orders", "r"), &none).contains("cannot be a watermark"));
    assert!(p.fault(&of("loose", "at"), &none).contains("has no primary key / --key"));
    let key =
        IntakeOptions { keys: vec![KeySpec { table: None, columns: vec!["id".into()] }], ..none.clone() };
    assert!(p.fault(&of("t", "at"), &key).contains("key (id = 1) comes twice"));
    let missing = p.dir.path().join("no.db");
    let pull = PullOptions { url: format!("sqlite:{}", missing.display()), ..p.options() };
    assert!(p.fault(&pull, &none).starts_with("Source"));
    assert!(!missing.exists());
    std::fs::write(&missing, "not a database, but long enough to be looked at as if it were one").unwrap();
    assert!(p.fault(&pull, &none).contains("not a database"), "{}", p.fault(&pull, &none));
}

#[test]
fn a_server_that_is_not_there_is_told_without_the_password() {
    let p = Pair::new(TABLE);
    for scheme in ["postgres", "mysql"] {
        let pull = PullOptions {
            url: format!("{scheme}://u:canary@127.0.0.1:1/d"),
            password: Some("second canary".into()),
            ..p.options()
        };
        let fault = p.fault(&pull, &IntakeOptions::default());
        assert!(fault.starts_with("Source") && fault.contains("refused"), "{fault}");
        assert!(!fault.contains("canary"), "{fault}");
    }
}

#[test]
fn flows_pull_and_read_whole_tables() {
    use crate::flow::{Runner, Variable};
    use crate::source::Until;
    let pair = Pair::new(TABLE);
    pair.source("INSERT INTO t VALUES (1, 'a', '2026-01-01'), (2, 'b', '2026-01-02')");
    let url = format!("sqlite:{}", pair.path().display());
    pair.ask(&format!("CREATE FLOW p AS AUTO CDC INTO t FROM pull('{url}', t, watermark => 'at') KEYS (id)"));
    pair.ask(&format!("CREATE FLOW s AS AUTO CDC INTO whole FROM snapshot('{url}', t) KEYS (id)"));
    let variable: Variable = std::sync::Arc::new(|_| None);
    let mut runner = Runner::new(&pair.store, &[], &variable, Until::Stopped).unwrap();
    let mut turn = |most: u64| -> Vec<u64> {
        let all = runner.flows().iter_mut();
        let taken =
            all.map(|f| f.trigger(&pair.store, most, &mut |_| ControlFlow::Continue(())).unwrap().unwrap());
        taken.map(|t| t.report.delivered - t.report.repeated()).collect()
    };
    // Neither is ever cut, and what one took is new to the other.
    assert_eq!(turn(1), [2, 2]);
    assert_eq!(turn(u64::MAX), [0, 0]);
    pair.source("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (3, 'c', '2026-01-03')");
    assert_eq!(turn(u64::MAX), [1, 2]);
    assert_eq!(pair.ask("SELECT id FROM t ORDER BY id"), "1\n2\n3");
    assert_eq!(pair.ask("SELECT id FROM whole ORDER BY id"), "2\n3");
}
