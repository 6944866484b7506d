//! Errors point at the user's text and say what to do.

use super::fixture::Fixture;
use asofdb::sql::{Params, SqlErrorKind};

/// The text under the caret.
fn pointed(sql: &str, place: asofdb::sql::Place) -> &str {
    let line = sql.lines().nth(place.line as usize - 1).unwrap();
    let start = line.char_indices().nth(place.column as usize - 1).map_or(line.len(), |(i, _)| i);
    let end =
        line.char_indices().nth((place.column + place.length) as usize - 1).map_or(line.len(), |(i, _)| i);
    &line[start..end]
}

#[test]
fn errors_after_a_lifted_clause_point_at_the_users_text() {
    let f = Fixture::new();
    let cases = [
        ("SELECT *\nFROM person FOR VALID_TIME AS OF '2024-05-01'\nWHER id = 1", "id"),
        ("SELECT * FROM persn FOR VALID_TIME AS OF now", "persn"),
        ("SELECT é, regoin FROM person FOR VALID_TIME AS OF now", "é"),
        ("SELECT name, regoin FROM person FOR VALID_TIME AS OF now p", "regoin"),
        ("SELECT * FROM person FOR VALID_TIME AS OF 5", "FOR"),
        ("SELECT *\n  FROM person\n  FOR VALID_TIME AS OF now FOR SYSTEM_TIME AS OFF now", "OFF"),
        ("SELECT 'abc", "'"),
    ];
    for (sql, wanted) in cases {
        let e = f.error(sql);
        let place = e.place.unwrap_or_else(|| panic!("{sql}: no place in {e:?}"));
        let found = pointed(sql, place);
        assert!(wanted.starts_with(found) && !found.is_empty(), "{sql}: points at {found:?} in {e:?}");
    }
}

#[test]
fn a2_a_bound_of_the_wrong_type_is_an_error_with_a_hint() {
    let f = Fixture::new();
    let cases = [
        ("person FOR VALID_TIME AS OF 5", "5 is an integer, but VALID_TIME of person is an instant"),
        ("person FOR SYSTEM_TIME AS OF 5", "5 is an integer, but SYSTEM_TIME of person is an instant"),
        (
            "releases FOR VALID_TIME AS OF '2024-05-01'",
            "is an instant, but VALID_TIME of releases is an integer",
        ),
        (
            "releases FOR SYSTEM_TIME AS OF now",
            "now is an instant, but SYSTEM_TIME of releases is an integer",
        ),
        ("releases FOR VALID_TIME AS OF 1.5", "a bound cannot be of type"),
        ("person FOR VALID_TIME AS OF true", "a bound cannot be of type Boolean"),
        ("person FOR VALID_TIME AS OF 'tomorrow'", "'tomorrow' is no time"),
        ("person FOR VALID_TIME AS OF ''", "'' is no time"),
        ("person FOR VALID_TIME AS OF TIMESTAMP '2024-13-01'", "'2024-13-01' is no time"),
        ("person FOR VALID_TIME AS OF NULL", "is NULL"),
        ("orders FOR COMMIT AS OF 6", "there is no commit 6"),
        ("orders FOR COMMIT AS OF -1", "there is no commit -1"),
        ("person FOR VALID_TIME BETWEEN '2024-05-02' AND '2024-05-01'", "lies after"),
        ("person FOR VALID_TIME CONTAINED IN ('2024-05-02', '2024-05-01')", "lies after"),
    ];
    for (from, wanted) in cases {
        let e = f.error(&format!("SELECT * FROM {from}"));
        assert!(e.message.contains(wanted), "{from}: {e:?}");
        assert!(e.hint.is_some(), "{from}: {e:?}");
        assert_eq!(e.kind, SqlErrorKind::Invalid, "{from}: {e:?}");
    }
}

#[test]
fn fault_h11_nothing_is_read_or_written_but_the_store() {
    let f = Fixture::new();
    let dir = tempfile::tempdir().unwrap();
    let canary = dir.path().join("canary.csv");
    std::fs::write(&canary, "a\ncanary\n").unwrap();
    let path = canary.display().to_string();
    let out = dir.path().join("out.csv").display().to_string();
    for sql in [
        format!("SELECT * FROM '{path}'"),
        format!("SELECT * FROM \"{path}\""),
        format!("SELECT * FROM read_csv('{path}')"),
        format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{path}'"),
        format!("EXPLAIN CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{path}'"),
        format!("COPY orders TO '{out}'"),
        format!("COPY (SELECT 1) TO '{out}' STORED AS CSV"),
        format!("EXPLAIN ANALYZE COPY orders TO '{out}'"),
        format!("COPY orders FROM '{path}'"),
        format!("EXPLAIN SELECT * FROM '{path}'"),
        format!("WITH x AS (SELECT * FROM '{path}') SELECT * FROM x"),
        format!("SELECT * FROM (SELECT * FROM (SELECT * FROM '{path}') a) b"),
        format!("SELECT (SELECT a FROM '{path}' LIMIT 1)"),
        format!("SELECT * FROM 'file://{path}'"),
        "SELECT * FROM 'http://127.0.0.1:1/x.csv'".into(),
        format!("CREATE VIEW v AS SELECT * FROM '{path}'"),
        format!("CREATE TABLE v AS SELECT * FROM '{path}'"),
        format!("WITH x AS (SELECT 1) SELECT * FROM x, '{path}'"),
        format!("PREPARE p AS COPY orders TO '{out}'"),
        "SET datafusion.runtime.temp_directory = '/'".into(),
        "INSERT INTO orders VALUES ('x', 1, 1, 'x')".into(),
        "EXPLAIN ANALYZE INSERT INTO orders SELECT * FROM orders".into(),
        "WITH x AS (SELECT 1) INSERT INTO orders SELECT * FROM x".into(),
        "DELETE FROM orders".into(),
        "UPDATE orders SET id = 1".into(),
        "DROP TABLE orders".into(),
        "TRUNCATE TABLE orders".into(),
        "ALTER TABLE orders ADD COLUMN x INT".into(),
        "CREATE SCHEMA s".into(),
        "SET datafusion.execution.batch_size = 5".into(),
        "RESET datafusion.execution.batch_size".into(),
        "BEGIN".into(),
        "SELECT 1; SELECT 2".into(),
    ] {
        let e = f.error(&sql);
        assert!(!format!("{e:?}").contains("canary\\n"), "{sql}: {e:?}");
        assert!(e.kind != SqlErrorKind::Internal, "{sql}: {e:?}");
    }
    assert!(!dir.path().join("out.csv").exists());
    assert_eq!(f.rows("SELECT count(*) FROM orders"), ["2"]);
}

#[test]
fn names_of_any_kind_cannot_break_out() {
    let f = Fixture::new();
    for name in ["x\" FOR VALID_TIME ALL --", "'; DROP TABLE orders; --", "a.b", "\u{1}0", "for", "🦀", ""]
    {
        let quoted = name.replace('"', "\"\"");
        let rows = f.rows(&format!("SELECT \"{quoted}\".n FROM (SELECT 1 AS n) AS \"{quoted}\""));
        assert_eq!(rows, ["1"], "{name}");
        let e = f.error(&format!("SELECT * FROM \"{quoted}\" FOR VALID_TIME AS OF now"));
        assert!(e.message.contains("there is no table"), "{name}: {e:?}");
        let e = f.error(&format!("SELECT * FROM orders PARTITION (\"{quoted}\")"));
        assert!(e.message.contains("PARTITION"), "{name}: {e:?}");
    }
}

#[test]
fn parameters_stand_for_values_and_bounds() {
    let f = Fixture::new();
    let params = Params::none().with_text("at", "2024-05-01 12:10:00").with_text("id", "1");
    let sql = "SELECT name FROM person FOR VALID_TIME AS OF $at WHERE id = $id";
    assert_eq!(f.rows_with(sql, &params), ["v3"]);
    let params = Params { positional: vec!["2024-05-01 12:10:00".into(), 1i64.into()], ..Params::none() };
    let sql = "SELECT name FROM person FOR VALID_TIME AS OF ? WHERE id = ?";
    assert_eq!(f.rows_with(sql, &params), ["v3"]);
    let sql = "SELECT name FROM person FOR VALID_TIME AS OF $1 WHERE id = $2";
    assert_eq!(f.rows_with(sql, &params), ["v3"]);
    let e = f.error("SELECT name FROM person WHERE id = $id");
    assert!(e.message.contains("$id has no value"), "{e:?}");
    let e = f.error("SELECT name FROM person FOR VALID_TIME AS OF $at");
    assert!(e.kind == SqlErrorKind::Invalid, "{e:?}");
    let rows = f.rows_with("SELECT count(*) FROM history($t)", &Params::none().with_text("t", "person"));
    assert_eq!(rows, ["4"]);
}
