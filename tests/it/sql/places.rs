//! Every place where a temporal clause may stand, and every place where it may not (rule D4): it is
//! applied or refused, never ignored.

use super::fixture::{Fixture, rows};
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
    "SELECT p.name FROM orders o RIGHT JOIN person {AT} p ON true LIMIT 1",
    "SELECT p.name FROM person {AT} p FULL JOIN labels l ON p.id = l.person_id WHERE l.label = 'b'",
    "SELECT p.name FROM person {AT} p LEFT SEMI JOIN labels l ON p.id = l.person_id",
    "SELECT p.name FROM person {AT} p LEFT ANTI JOIN person q ON p.id = q.id",
    "SELECT p.name FROM person q RIGHT ANTI JOIN person {AT} p ON p.id = q.id",
    "SELECT p.name FROM orders o CROSS JOIN person {AT} p LIMIT 1",
    "SELECT p.name FROM (orders o CROSS JOIN person {AT} p) LIMIT 1",
    "SELECT p.name FROM (labels l JOIN (person {AT} p CROSS JOIN (SELECT 1) x) ON l.person_id = p.id) LIMIT 1",
    "SELECT p.name FROM labels l JOIN person {AT} p ON p.id = l.person_id AND p.name IN (SELECT name FROM person {AT}) LIMIT 1",
    "SELECT name FROM person {AT} WHERE id = ANY (SELECT id FROM person {AT})",
    "SELECT name FROM person {AT} WHERE id NOT IN (SELECT id FROM person)",
    "SELECT name FROM person {AT} WHERE NOT EXISTS (SELECT 1 FROM person)",
    "SELECT 'v3' FROM labels l WHERE l.label = 'b' AND EXISTS (SELECT 1 FROM person {AT} p WHERE p.id = l.person_id)",
    "SELECT (SELECT max(p.name) FROM person {AT} p WHERE p.id = l.person_id) FROM labels l WHERE l.label = 'b'",
    "SELECT coalesce((SELECT name FROM person), (SELECT name FROM person {AT}))",
    "SELECT 'v3' FROM orders GROUP BY 1 HAVING max(id) = (SELECT max(id) FROM person {AT})",
    "SELECT 'v3' FROM labels ORDER BY (SELECT id FROM person {AT}) LIMIT 1",
    "SELECT DISTINCT name FROM person {AT}",
    "SELECT DISTINCT ON (id) name FROM person {AT}",
    "SELECT name FROM person {AT} GROUP BY ALL",
    "SELECT name FROM person {AT} GROUP BY ROLLUP (name) HAVING name IS NOT NULL",
    "SELECT name FROM person {AT} QUALIFY row_number() OVER (ORDER BY id) = 1",
    "SELECT max(name) OVER w FROM person {AT} WINDOW w AS (PARTITION BY id)",
    "SELECT * EXCLUDE (id) FROM person {AT}",
    "SELECT p.* EXCEPT (id) FROM person {AT} AS p",
    "SELECT b FROM person {AT} AS p (a, b)",
    "SELECT name FROM person {AT} UNION BY NAME SELECT name FROM person",
    "SELECT name FROM person {AT} EXCEPT ALL SELECT name FROM person",
    "SELECT name FROM person {AT} INTERSECT ALL SELECT name FROM person {AT}",
    "(SELECT name FROM person {AT}) UNION (SELECT name FROM person {AT})",
    "SELECT * FROM (SELECT name FROM person UNION ALL (SELECT name FROM person {AT} LIMIT 1))",
    "SELECT name FROM (WITH p AS (SELECT * FROM person {AT}) SELECT * FROM p)",
    "WITH p AS (WITH q AS (SELECT * FROM person {AT}) SELECT * FROM q) SELECT name FROM p",
    "WITH RECURSIVE r AS (SELECT name, 1 AS n FROM person {AT} UNION ALL SELECT name, n + 1 FROM r WHERE n < 2) SELECT name FROM r WHERE n = 2",
    "WITH RECURSIVE r AS (SELECT 'x' AS name, 1 AS n UNION ALL SELECT p.name, n + 1 FROM r, person {AT} p WHERE n < 2) SELECT name FROM r WHERE n = 2",
    "SELECT x.name FROM labels l CROSS JOIN LATERAL (SELECT name FROM person {AT} p WHERE p.id = l.person_id) x WHERE l.label = 'b'",
    "SELECT p.name FROM labels l JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id WHERE l.label = 'c'",
    "SELECT p.name FROM labels l LEFT JOIN person FOR VALID_TIME AS OF l.at FOR SYSTEM_TIME AS OF l.known_at p ON p.id = l.person_id WHERE l.label = 'c'",
    "SELECT (SELECT p.name FROM labels l JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id WHERE l.label = 'c')",
    "WITH x AS (SELECT p.name FROM labels l JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id WHERE l.label = 'c') SELECT name FROM x",
    "SELECT name FROM \"person\" {AT}",
    "SELECT name FROM \"main\".\"person\" AS \"p\" {AT}",
    "SELECT name FROM PERSON {AT} AS \"valid_time\"",
    "SELECT name FROM person/**/{AT}/* AS OF */p -- FOR VALID_TIME AS OF now",
    "SELECT p.name FROM person {AT} p JOIN person {AT} q ON p.id = q.id AND p.name = q.name",
    "SELECT p.name FROM person q RIGHT JOIN person {AT} p ON p.id = q.id",
    "SELECT name FROM (VALUES (1)) v (id) NATURAL JOIN person {AT}",
    "SELECT name FROM (VALUES (1)) v (id) JOIN person {AT} USING (id)",
    "SELECT name FROM ((person {AT} AS p NATURAL JOIN (VALUES (1)) v (id)))",
    "SELECT p.name FROM ((labels l JOIN (person {AT} p JOIN (VALUES (1)) v (x) ON x = p.id) ON l.person_id = p.id)) WHERE label = 'b'",
    "SELECT name FROM person {AT} CROSS JOIN generate_series(1, 1)",
    "SELECT p.name FROM history('person') h JOIN person {AT} p ON h.id = p.id LIMIT 1",
    "SELECT name FROM person {AT} WHERE id BETWEEN (SELECT min(id) FROM person {AT}) AND 9",
    "SELECT name FROM (SELECT name FROM person UNION ALL SELECT name FROM person {AT} EXCEPT SELECT 'x') AS u",
    "WITH person2 AS (SELECT * FROM person {AT}) SELECT a.name FROM person2 a JOIN person2 b USING (id)",
    "WITH q AS (SELECT 1 AS id) SELECT name FROM q JOIN person {AT} USING (id)",
    "SELECT name FROM person {AT} p WHERE EXISTS (WITH person AS (SELECT 1 AS id) SELECT 1 FROM person WHERE id = p.id)",
    "SELECT x.name FROM labels l, LATERAL (SELECT p.name FROM person {AT} p WHERE p.id = l.person_id) x WHERE l.label = 'b'",
    "SELECT p.name FROM (SELECT person_id AS id, at, label FROM labels) l JOIN person FOR VALID_TIME AS OF l.at p USING (id) WHERE label = 'c'",
    "SELECT p.name FROM (SELECT person_id AS id, at, label FROM labels) l NATURAL JOIN person FOR VALID_TIME AS OF l.at p WHERE label = 'c'",
    "SELECT p.name FROM (labels l JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id) WHERE label = 'c'",
    "SELECT p.name FROM labels l JOIN (person FOR VALID_TIME AS OF l.at p) ON p.id = l.person_id WHERE label = 'c'",
    "SELECT p.name FROM labels l CROSS JOIN (VALUES (1)) v (x) JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id WHERE label = 'c'",
    "SELECT 'v3' FROM labels WHERE label = 'c' UNION SELECT p.name FROM labels l JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id WHERE label = 'c'",
];

/// Statements that show what they would do: the plan carries the clause.
#[test]
fn d4_explain_keeps_the_clause() {
    let f = Fixture::new();
    for explain in ["EXPLAIN", "EXPLAIN VERBOSE", "EXPLAIN ANALYZE"] {
        let plan = f.rows(&format!("{explain} SELECT name FROM person {AT}")).join("\n");
        assert!(plan.contains("valid=[as of 2024-05-01T12:10:00Z]"), "{explain}: {plan}");
    }
    let described = f.rows(&format!("DESCRIBE SELECT * FROM person {AT}"));
    assert_eq!(described, ["id|Int64|YES", "name|Utf8|YES"]);
}

/// Statements that answer v3, the row that held at 12:10 in the latest belief; without their clause
/// there is no row.
#[test]
fn d4_a_clause_is_applied_wherever_a_table_may_stand() {
    let f = Fixture::new();
    let mut faults = Vec::new();
    for template in APPLIED {
        let answer = f.batches(&template.replace("{AT}", AT), &Default::default());
        match answer.as_ref().map(|batches| rows(batches)) {
            Ok(rows) if rows == [["v3"]] => {}
            other => faults.push(format!("{template}: {other:?}")),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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
    ("SELECT * FROM intervals('person') {AT}", "table function"),
    ("SELECT * FROM scd2('person') {AT} s", "table function"),
    ("SELECT * FROM changes('orders', 1) {AT}", "table function"),
    ("SELECT * FROM belief_diff('person', '2024-05-01', now()) {AT}", "table function"),
    ("SELECT * FROM timeline('person', 1) {AT}", "table function"),
    ("SELECT * FROM ties('person') {AT}", "table function"),
    ("SELECT * FROM late('person') {AT}", "table function"),
    ("SELECT * FROM files('person') {AT}", "table function"),
    ("SELECT * FROM quarantine() {AT}", "table function"),
    ("SELECT * FROM sources() {AT}", "table function"),
    ("SELECT * FROM LATERAL history('person') {AT}", ""),
    ("SELECT * FROM orders o, history('person') {AT}", "table function"),
    ("SELECT * FROM TABLE(history('person')) {AT}", ""),
    ("SELECT * FROM LATERAL (SELECT * FROM person) {AT}", "at a subquery"),
    ("SELECT * FROM (TABLE person) {AT}", ""),
    ("SELECT * FROM ((person)) {AT}", "at a subquery"),
    ("SELECT * FROM person p (a, b) {AT} q", ""),
    ("WITH p AS (SELECT * FROM person) {AT} SELECT * FROM p", "cannot stand here"),
    (
        "WITH p AS (SELECT * FROM person), q AS (SELECT * FROM p {AT}) SELECT * FROM q",
        "no table of the store",
    ),
    ("SELECT (SELECT 1 FROM p {AT}) FROM person p", "there is no table p"),
    ("(SELECT * FROM person) {AT}", ""),
    ("SELECT * FROM person UNION ALL SELECT * FROM person ORDER BY 1 {AT}", "cannot stand here"),
    ("(SELECT * FROM person UNION SELECT * FROM person) {AT}", ""),
    ("SELECT * FROM person HAVING true {AT}", "cannot stand here"),
    ("SELECT max(id) OVER (ORDER BY id {AT}) FROM person", ""),
    ("SELECT count(*) FILTER (WHERE id = 1 {AT}) FROM person", ""),
    ("SELECT * FROM person p JOIN orders o USING (id) {AT}", "cannot stand here"),
    ("SELECT * FROM person PIVOT (max(name) FOR id IN (1, 2)) {AT}", ""),
    ("SELECT * FROM person {AT} PIVOT (max(name) FOR id IN (1, 2))", "not supported"),
    ("SELECT * FROM person {AT} UNPIVOT (x FOR y IN (id, name))", "not supported"),
    ("SELECT * FROM person {AT} TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE"),
    ("SELECT * FROM person {AT} WITH (NOLOCK)", ""),
    ("SELECT * FROM person {AT} WITH ORDINALITY", ""),
    ("SELECT * FROM information_schema.views {AT}", "no table of the store"),
    ("SELECT * FROM nosuch {AT}", "there is no table nosuch"),
    ("SELECT * FROM generate_series(1, 3) AS g (n) {AT}", "table function"),
    ("CREATE MATERIALIZED VIEW v AS SELECT * FROM person {AT}", ""),
    ("CREATE TABLE t LIKE person {AT}", ""),
    ("CREATE FUNCTION f() RETURNS INT RETURN (SELECT max(id) FROM person {AT})", ""),
    ("WITH x AS (SELECT * FROM person {AT}) INSERT INTO person SELECT * FROM x", ""),
    ("INSERT INTO person SELECT * FROM person {AT} RETURNING *", ""),
    ("DELETE FROM person USING orders {AT}", ""),
    ("DELETE FROM person WHERE id IN (SELECT id FROM person {AT})", "cannot be written"),
    ("UPDATE person SET name = (SELECT name FROM person {AT})", "cannot be written"),
    ("UPDATE person SET name = 'x' FROM person {AT} q", "cannot be written"),
    ("MERGE INTO person USING person {AT} q ON true WHEN MATCHED THEN DELETE", ""),
    ("TRUNCATE TABLE person {AT}", ""),
    ("DROP TABLE person {AT}", ""),
    ("ALTER TABLE person {AT} ADD COLUMN x INT", ""),
    ("ANALYZE TABLE person {AT}", ""),
    ("EXPLAIN INSERT INTO person SELECT * FROM person {AT}", "cannot be written"),
    ("EXPLAIN {AT}", ""),
    ("EXPLAIN SELECT * FROM person WHERE id = 1 {AT}", "cannot stand here"),
    ("EXECUTE p {AT}", ""),
    ("DECLARE c CURSOR FOR SELECT * FROM person {AT}", ""),
    ("SHOW TABLES {AT}", ""),
    ("SET asof.valid_time = (SELECT max(at) FROM labels {AT})", ""),
    ("SELECT * FROM person FOR VALID_TIME AS OF now FOR SNAPSHOT 'x'", "snapshots are not supported yet"),
    ("SELECT * FROM person FOR VALID_TIME AS OF random() * now()", ""),
    ("SELECT * FROM person FOR COMMIT ALL", "expected AS OF"),
    (
        "SELECT * FROM labels l FULL JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id",
        "cannot ask its right side row by row",
    ),
    (
        "SELECT * FROM labels l LEFT SEMI JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id",
        "cannot ask its right side",
    ),
    ("SELECT * FROM labels l, person FOR VALID_TIME AS OF l.at p WHERE p.id = l.person_id", ""),
    (
        "SELECT * FROM labels l JOIN (SELECT * FROM person FOR VALID_TIME AS OF l.at) p ON p.id = l.person_id",
        "refers to columns",
    ),
    (
        "SELECT * FROM labels l WHERE EXISTS (SELECT 1 FROM person FOR VALID_TIME AS OF l.at p WHERE p.id = l.person_id)",
        "refers to columns",
    ),
    (
        "SELECT (SELECT name FROM person FOR VALID_TIME AS OF l.at p WHERE p.id = l.person_id) FROM labels l",
        "refers to columns",
    ),
    (
        "SELECT * FROM orders o JOIN LATERAL (SELECT * FROM releases FOR VALID_TIME AS OF o.id) r ON true",
        "refers to columns",
    ),
    ("SELECT * INTO t FROM person {AT}", ""),
    ("VALUES ((SELECT name FROM person {AT}))", "subquery cannot stand here"),
    ("SELECT CASE WHEN EXISTS (SELECT 1 FROM person {AT}) THEN 'v3' END", "subquery cannot stand here"),
    (
        "SELECT max(name) FILTER (WHERE id IN (SELECT id FROM person {AT})) FROM person {AT}",
        "subquery cannot stand here",
    ),
    ("SELECT * FROM (SELECT * FROM person {AT} FOR UPDATE)", "locks"),
    ("SELECT * FROM person FOR UPDATE {AT}", ""),
    ("SELECT * FROM person {AT} FOR UPDATE", "locks"),
    ("SELECT * FROM person {AT} FOR SHARE", "locks"),
    ("SELECT * FROM person FETCH FIRST 1 ROW ONLY {AT}", ""),
    ("SELECT * FROM person {AT} VERSION AS OF 2", ""),
    ("SELECT * FROM person TIMESTAMP AS OF '2024-05-01'", ""),
    ("EXPLAIN CREATE TABLE t AS SELECT * FROM person {AT}", "CREATE TABLE"),
    ("EXPLAIN COPY (SELECT * FROM person {AT}) TO 'x.csv'", ""),
    ("CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM person {AT}", "CREATE VIEW"),
    ("REPLACE INTO person {AT} VALUES (1, 'x')", ""),
    ("COPY person {AT} TO 'x.csv'", ""),
    ("PREPARE p (INT) AS SELECT * FROM person {AT} WHERE id = $1", "PREPARE"),
    ("SELECT * FROM person JOIN LATERAL history('person') {AT} ON true", ""),
    ("SELECT * FROM labels l JOIN history('person') {AT} h ON h.id = l.person_id", "table function"),
    ("SELECT * FROM person, UNNEST([1]) {AT}", ""),
    ("SELECT * FROM UNNEST([1]) AS u {AT}", ""),
    ("SELECT * FROM person p, (VALUES (1)) AS v (x) {AT}", "at a subquery"),
    ("SELECT * FROM x.y.person {AT}", "there is no table"),
    ("SELECT * FROM 'person.csv' {AT}", ""),
    ("SELECT * FROM \"person.csv\" {AT}", "there is no table"),
    ("SELECT * FROM \"Person\" {AT}", "there is no table"),
    (
        "WITH person AS (SELECT 1 AS id) SELECT * FROM orders o JOIN person {AT} ON true",
        "no table of the store",
    ),
    ("WITH person AS (SELECT 1 AS id) SELECT * FROM (SELECT * FROM person {AT})", "no table of the store"),
    (
        "WITH person AS (SELECT 1 AS id) SELECT 1 WHERE EXISTS (SELECT 1 FROM person {AT})",
        "no table of the store",
    ),
    ("WITH p AS (SELECT * FROM person {AT}) SELECT * FROM p {AT}", "no table of the store"),
    (
        "WITH p AS (SELECT * FROM person) SELECT * FROM orders UNION SELECT * FROM p {AT}",
        "no table of the store",
    ),
    ("SELECT * FROM (person NATURAL JOIN orders) {AT}", "at a subquery"),
    ("SELECT * FROM person NATURAL JOIN (SELECT 1 AS id) {AT}", "at a subquery"),
    ("SELECT * FROM person p {AT} {AT} JOIN orders o ON true", "twice"),
    ("SELECT * FROM person {AT} AS p {AT}", "twice"),
    ("SELECT * FROM person AS p {AT} AS q", ""),
    ("SELECT * FROM person {AT} p, orders {AT} {AT} o", "twice"),
    ("SELECT count(* {AT}) FROM person", ""),
    ("VALUES (1) {AT}", ""),
    ("SELECT * FROM (VALUES (1) {AT})", ""),
    (
        "SELECT * FROM labels l RIGHT JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id",
        "cannot ask its right side",
    ),
    (
        "SELECT * FROM labels l LEFT ANTI JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id",
        "cannot ask its right side",
    ),
    (
        "SELECT * FROM person FOR VALID_TIME AS OF l.at p JOIN labels l ON p.id = l.person_id",
        "refers to columns",
    ),
    (
        "SELECT * FROM labels l JOIN (person FOR VALID_TIME AS OF l.at p CROSS JOIN orders o) ON p.id = l.person_id",
        "refers to columns",
    ),
    ("SELECT * FROM labels l NATURAL JOIN person FOR VALID_TIME AS OF l.at p", "whole key"),
    (
        "WITH p AS (SELECT * FROM person FOR VALID_TIME AS OF l.at) SELECT * FROM labels l JOIN p ON true",
        "refers to columns",
    ),
];

/// Each of these would lose its clause somewhere, so it is refused, with the place of the clause.
#[test]
fn d4_a_clause_is_refused_wherever_it_cannot_be_honoured() {
    let f = Fixture::new();
    let mut faults = Vec::new();
    for (template, wanted) in REFUSED {
        let e = match f.batches(&template.replace("{AT}", AT), &Default::default()) {
            Ok(batches) => {
                faults.push(format!("{template}: answered {:?}", rows(&batches)));
                continue;
            }
            Err(e) => e,
        };
        let refused =
            matches!(e.kind, SqlErrorKind::Syntax | SqlErrorKind::Invalid | SqlErrorKind::Unsupported);
        let marker_shows = format!("{e:?}").contains("u{1}")
            || (e.message.contains("PARTITION") && !template.contains("PARTITION"));
        if !e.message.contains(wanted) || !refused || marker_shows {
            faults.push(format!("{template}: wanted {wanted:?}, was {e:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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
    assert!(plan.contains("keys=in 1 range, filters=[region = Utf8(\"eu\")]"), "{plan}");
    let plan = f.rows("EXPLAIN SELECT count(*) FROM orders WHERE id = 1").join("\n");
    assert!(plan.contains("keys=all"), "the end of a key is no key: {plan}");
    let plan =
        f.rows("EXPLAIN SELECT orderNote FROM orders WHERE region IN ('eu', 'us') AND id = 1").join("\n");
    assert!(plan.contains("keys=2") && plan.contains("columns=[region, id, orderNote]"), "{plan}");
    let plan = f.rows(&format!("EXPLAIN ANALYZE SELECT name FROM person {AT}")).join("\n");
    assert!(plan.contains("AsofScan") && plan.contains("output_rows=1"), "{plan}");
    let join = "EXPLAIN SELECT * FROM labels l JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id";
    let plan = f.rows(join).join("\n");
    assert!(plan.contains("AsofPerRowJoin: inner, person: valid as of l.at"), "{plan}");
}
