//! Every place where a temporal clause may stand, and every place where it may not (rule D4): it is
//! applied or refused, never ignored.

use super::fixture::Fixture;
use asofdb::sql::SqlErrorKind;

const AT: &str = "FOR VALID_TIME AS OF '2024-05-01 12:10:00'";

const APPLIED: &[&str] = &[
    "SELECT name FROM person {AT}",
    "SELECT name FROM person {AT} WHERE id = 1",
    "SELECT name FROM person {AT} AS p",
    "SELECT name FROM person {AT} p",
    "SELECT name FROM person AS p {AT}",
    "SELECT name FROM person p {AT}",
    "SELECT p.name FROM main.person {AT} p",
    "SELECT asof.main.person.name FROM asof.main.person {AT}",
    "SELECT name FROM (person {AT})",
    "SELECT p.name FROM (person {AT} p CROSS JOIN (SELECT 1) x)",
    "SELECT name FROM (SELECT * FROM person {AT})",
    "SELECT name FROM (SELECT * FROM person {AT}) AS q",
    "SELECT p.name FROM orders o JOIN person {AT} p ON true LIMIT 1",
    "SELECT p.name FROM person {AT} p JOIN orders o ON true LIMIT 1",
    "SELECT p.name FROM orders o, person {AT} p LIMIT 1",
    "SELECT p.name FROM person {AT} p, orders o LIMIT 1",
    "SELECT p.name FROM person {AT} p NATURAL JOIN person {AT} q",
    "SELECT p.name FROM person {AT} p JOIN person {AT} q USING (id)",
    "SELECT p.name FROM person {AT} p LEFT JOIN person q ON p.id = q.id WHERE q.id IS NULL",
    "SELECT (SELECT name FROM person {AT})",
    "SELECT 'v3' WHERE EXISTS (SELECT 1 FROM person {AT})",
    "SELECT 'v3' WHERE 1 IN (SELECT id FROM person {AT})",
    "SELECT max(name) FROM person {AT} GROUP BY id HAVING count(*) = 1",
    "WITH p AS (SELECT * FROM person {AT}) SELECT name FROM p",
    "WITH p AS (SELECT * FROM person {AT}), q AS (SELECT * FROM p) SELECT name FROM q",
    "WITH p(a, b) AS (SELECT * FROM person {AT}) SELECT b FROM p",
    "SELECT name FROM person {AT} UNION SELECT name FROM person",
    "SELECT name FROM person UNION ALL SELECT name FROM person {AT}",
    "SELECT name FROM person {AT} EXCEPT SELECT name FROM person",
    "SELECT name FROM person {AT} INTERSECT SELECT name FROM person {AT}",
    "SELECT x.name FROM orders o CROSS JOIN LATERAL (SELECT name FROM person {AT}) x LIMIT 1",
    "SELECT name FROM person {AT} ORDER BY name LIMIT 1 OFFSET 0",
    "SELECT first_value(name) OVER (ORDER BY id) FROM person {AT}",
    "SELECT name FROM person {AT}, (VALUES (1)) v (x)",
    "SELECT substring(name FROM 1 FOR 2) FROM person {AT}",
    "SELECT overlay(name PLACING 'v' FROM 1 FOR 1) FROM person {AT}",
    "(SELECT name FROM person {AT})",
    "FROM person {AT} SELECT name",
    "SELECT name FROM person {AT};",
];

/// Statements that answer v3, the row that held at 12:10 in the latest belief; without their clause
/// there is no row.
#[test]
fn d4_a_clause_is_applied_wherever_a_table_may_stand() {
    let f = Fixture::new();
    for template in APPLIED {
        let sql = template.replace("{AT}", AT);
        assert_eq!(f.rows(&sql), ["v3"], "{sql}");
    }
}

const REFUSED: &[(&str, &str)] = &[
    ("WITH p AS (SELECT * FROM person) SELECT * FROM p {AT}", "no table of the store"),
    // The CTE hides the table of the same name.
    ("WITH person AS (SELECT 1 AS id) SELECT * FROM person {AT}", "no table of the store"),
    (
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r {AT} WHERE n < 3) SELECT * FROM r",
        "no table of the store",
    ),
    ("SELECT * FROM (SELECT * FROM person) {AT}", "at a subquery"),
    ("SELECT * FROM (SELECT * FROM person) AS p {AT}", "at a subquery"),
    ("SELECT * FROM (VALUES (1)) {AT}", "at a subquery"),
    ("SELECT * FROM (VALUES (1)) AS v (x) {AT}", "at a subquery"),
    ("SELECT * FROM (person p JOIN orders o ON true) {AT}", "at a subquery"),
    ("SELECT * FROM information_schema.tables {AT}", "no table of the store"),
    ("SELECT * FROM history('person') {AT}", "table function"),
    ("SELECT * FROM history('person') AS h {AT}", "table function"),
    ("SELECT * FROM commits() {AT}", "table function"),
    ("SELECT * FROM generate_series(1, 3) {AT}", "table function"),
    ("SELECT * FROM unnest([1, 2]) {AT}", ""),
    ("SELECT * FROM person {AT} {AT}", "twice"),
    ("SELECT * FROM person {AT} FOR BUSINESS_TIME AS OF now", "twice"),
    ("SELECT * FROM person FOR APPLICATION_TIME ALL AS p {AT}", "twice"),
    ("SELECT * FROM person FOR SYSTEM_TIME ALL FOR ALL SYSTEM_TIME", "twice"),
    ("SELECT * FROM person FOR COMMIT AS OF 1 FOR COMMIT AS OF 2", "twice"),
    ("SELECT * FROM person WHERE id = 1 {AT}", "cannot stand here"),
    ("SELECT * {AT} FROM person", "cannot stand here"),
    ("SELECT id {AT} FROM person", "cannot stand here"),
    ("SELECT * FROM person GROUP BY id {AT}", "cannot stand here"),
    ("SELECT * FROM person ORDER BY id {AT}", "cannot stand here"),
    ("SELECT * FROM person LIMIT 1 {AT}", "cannot stand here"),
    ("SELECT 1 {AT}", "cannot stand here"),
    ("{AT}", "cannot stand here"),
    ("SELECT * FROM person p JOIN orders o ON p.id = o.id {AT}", "cannot stand here"),
    ("SELECT id IN (1, 2) {AT} FROM person", ""),
    ("DELETE FROM person {AT}", ""),
    ("DELETE FROM person {AT} WHERE id = 1", ""),
    ("UPDATE person {AT} SET name = 'x'", ""),
    ("INSERT INTO person {AT} VALUES (1, 'x')", ""),
    ("INSERT INTO person SELECT * FROM person {AT}", "cannot be written"),
    ("MERGE INTO person {AT} USING orders ON true WHEN MATCHED THEN DELETE", ""),
    ("CREATE VIEW v AS SELECT * FROM person {AT}", "CREATE VIEW"),
    ("CREATE TABLE t AS SELECT * FROM person {AT}", "CREATE TABLE"),
    ("CREATE TABLE t (a INT) {AT}", ""),
    ("COPY (SELECT * FROM person {AT}) TO 'x.csv'", ""),
    ("PREPARE p AS SELECT * FROM person {AT}", "PREPARE"),
    ("DESCRIBE person {AT}", ""),
    ("SHOW COLUMNS FROM person {AT}", ""),
    ("TABLE person {AT}", ""),
    ("SELECT * FROM person FOR SNAPSHOT 'x'", "snapshots are not supported yet"),
    ("SELECT * FROM person TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE"),
    ("SELECT * FROM person PARTITION (p0)", "PARTITION"),
    ("SELECT * FROM person PARTITION (p0) {AT}", ""),
    ("SELECT * FROM person WITH (NOLOCK)", "table hints"),
    ("SELECT * FROM person FOR SYSTEM_TIME", "expected AS OF"),
    ("SELECT * FROM person FOR VALID_TIME OF '2024-05-01'", "expected AS OF"),
    ("SELECT * FROM person FOR VALID_TIME AS '2024-05-01'", "expected OF"),
    ("SELECT * FROM person FOR VALID_TIME FROM '2024-05-01'", "expected TO"),
    ("SELECT * FROM person FOR VALID_TIME BETWEEN '2024-05-01'", "expected AND"),
    ("SELECT * FROM person FOR VALID_TIME CONTAINED IN '2024-05-01'", "expected ("),
    ("SELECT * FROM person FOR COMMIT FROM 1 TO 2", "expected AS OF"),
    ("SELECT * FROM person FOR VERSION AS OF 2", "no clock called VERSION"),
    ("SELECT * FROM person FOR TIMESTAMP AS OF '2024-05-01'", "no clock called TIMESTAMP"),
    ("SELECT * FROM person FOR VALIDTIME AS OF '2024-05-01'", "no clock called VALIDTIME"),
    ("SELECT * FROM person VERSION AS OF 2", ""),
    ("SELECT * FROM person AT (TIMESTAMP => '2024-05-01')", ""),
    ("SELECT * FROM person FOR VALID_TIME AS OF (SELECT max(at) FROM labels)", "cannot be a subquery"),
    (
        "SELECT * FROM orders o JOIN LATERAL (SELECT * FROM releases FOR VALID_TIME AS OF o.id) r ON true",
        "refers to columns",
    ),
];

/// Each of these would lose its clause somewhere, so it is refused, with the place of the clause.
#[test]
fn d4_a_clause_is_refused_wherever_it_cannot_be_honoured() {
    let f = Fixture::new();
    for (template, wanted) in REFUSED {
        let sql = template.replace("{AT}", AT);
        let e = f.error(&sql);
        assert!(e.message.contains(wanted), "{sql}: {e:?}");
        assert!(
            matches!(e.kind, SqlErrorKind::Syntax | SqlErrorKind::Invalid | SqlErrorKind::Unsupported),
            "{sql}: {e:?}"
        );
        assert!(!format!("{e:?}").contains("u{1}"), "the marker shows: {e:?}");
        assert!(
            !e.message.contains("PARTITION") || template.contains("PARTITION"),
            "the marker shows: {e:?}"
        );
    }
}

/// Words and texts that look like clauses are what they are.
#[test]
fn d4_nothing_else_is_taken_for_a_clause() {
    let f = Fixture::new();
    let statements = [
        ("SELECT 'FROM person FOR VALID_TIME AS OF now'", "FROM person FOR VALID_TIME AS OF now"),
        ("SELECT $$ FOR SYSTEM_TIME ALL $$", " FOR SYSTEM_TIME ALL "),
        ("SELECT 1 -- FROM person FOR VALID_TIME AS OF now\n", "1"),
        ("SELECT 1 /* FOR VALID_TIME ALL /* nested */ */ AS \"for\"", "1"),
        ("SELECT \"for\" FROM (SELECT 2 AS \"for\")", "2"),
        (
            "SELECT substring('abcdef' FROM valid_time FOR commit) FROM (SELECT 2 AS valid_time, 3 AS commit)",
            "bcd",
        ),
        ("SELECT substring('abc' FROM 2 FOR system_time) FROM (SELECT 1 AS system_time)", "b"),
        ("SELECT snapshot FROM (SELECT 5 AS snapshot)", "5"),
        ("SELECT commit FROM (SELECT 5 AS commit) AS for_valid_time", "5"),
    ];
    for (sql, wanted) in statements {
        assert_eq!(f.rows(sql), [wanted], "{sql}");
    }
}

/// EXPLAIN shows the bounds and what was pushed; EXPLAIN ANALYZE the rows.
#[test]
fn explain_shows_table_bounds_and_keys() {
    let f = Fixture::new();
    let plan = f.rows(&format!("EXPLAIN SELECT name FROM person {AT} WHERE id IN (1, 5)")).join("\n");
    assert!(
        plan.contains(
            "AsofScan: person, valid=[as of 2024-05-01T12:10:00Z], system=[latest], commit=5, keys=2"
        ),
        "{plan}"
    );
    let plan = f.rows("EXPLAIN SELECT count(*) FROM orders WHERE region = 'eu'").join("\n");
    assert!(plan.contains("keys=all"), "a part of the key is no key: {plan}");
    let plan =
        f.rows("EXPLAIN SELECT orderNote FROM orders WHERE region IN ('eu', 'us') AND id = 1").join("\n");
    assert!(plan.contains("keys=2") && plan.contains("columns=[region, id, orderNote]"), "{plan}");
    let plan = f.rows(&format!("EXPLAIN ANALYZE SELECT name FROM person {AT}")).join("\n");
    assert!(plan.contains("AsofScan") && plan.contains("output_rows=1"), "{plan}");
    let join = "EXPLAIN SELECT * FROM labels l JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id";
    let plan = f.rows(join).join("\n");
    assert!(plan.contains("AsofPerRowJoin: inner, person: valid as of l.at"), "{plan}");
}
