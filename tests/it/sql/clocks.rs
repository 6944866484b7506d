//! One table at several clocks in one statement. DataFusion compares scans by name, schema and
//! filters, and would answer two of them by one (rule D4).

use super::fixture::Fixture;

/// Relations whose rows differ by nothing but their clocks.
const RELATIONS: &[(&str, &str)] = &[
    ("{V3}", "person FOR VALID_TIME AS OF '2024-05-01 12:10:00'"),
    ("{V1}", "person FOR VALID_TIME AS OF '2024-05-01 12:10:00' FOR SYSTEM_TIME AS OF '2024-05-01 12:22:00'"),
    ("{V2}", "person FOR VALID_TIME AS OF '2024-05-01 12:20:00'"),
    ("{NONE}", "person"),
    ("{THREE}", "orders FOR COMMIT AS OF 1"),
    ("{TWO}", "orders FOR COMMIT AS OF 3"),
    ("{AT}", "labels l JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id AND l.label = 'b'"),
    (
        "{KNOWN}",
        "labels l JOIN person FOR VALID_TIME AS OF l.known_at p ON p.id = l.person_id AND l.label = 'b'",
    ),
];

/// Statements and their rows.
const CASES: &[(&str, &[&str])] = &[
    // Set operations.
    ("SELECT name FROM {V3} UNION SELECT name FROM {V1} ORDER BY 1", &["v1", "v3"]),
    (
        "SELECT name FROM {V3} UNION ALL SELECT name FROM {V1} UNION ALL SELECT name FROM {V2} ORDER BY 1",
        &["v1", "v2", "v3"],
    ),
    ("SELECT name FROM {V3} WHERE id = 1 UNION SELECT name FROM {V1} WHERE id < 5 ORDER BY 1", &["v1", "v3"]),
    (
        "SELECT name FROM {V3} WHERE id = 1 UNION SELECT name FROM {V1} WHERE id = 1 UNION SELECT name FROM {NONE} WHERE id = 1 ORDER BY 1",
        &["v1", "v3"],
    ),
    ("SELECT * FROM {V3} UNION SELECT * FROM {V1} ORDER BY 2", &["1|v1", "1|v3"]),
    ("SELECT name FROM {V3} EXCEPT SELECT name FROM {V1}", &["v3"]),
    ("SELECT name FROM {V1} EXCEPT ALL SELECT name FROM {V3}", &["v1"]),
    ("SELECT region, id FROM {THREE} EXCEPT SELECT region, id FROM {TWO}", &["eu|2"]),
    ("SELECT name FROM {V3} INTERSECT SELECT name FROM {V1}", &[]),
    ("SELECT name FROM {V3} INTERSECT ALL SELECT name FROM {V2}", &[]),
    ("SELECT count(*) FROM (SELECT 1 FROM {THREE} UNION ALL SELECT 1 FROM {TWO})", &["5"]),
    // Ranges of one shape.
    (
        "SELECT count(*) FROM person FOR VALID_TIME ALL UNION ALL \
         SELECT count(*) FROM person FOR VALID_TIME FROM '2024-05-01 12:00:00' TO '2024-05-01 12:05:00' UNION ALL \
         SELECT count(*) FROM person FOR VALID_TIME BETWEEN '2024-05-01 12:00:00' AND '2024-05-01 12:05:00' UNION ALL \
         SELECT count(*) FROM person FOR VALID_TIME ALL FOR SYSTEM_TIME ALL ORDER BY 1",
        &["1", "2", "3", "6"],
    ),
    // Joins.
    (
        "SELECT a.name, b.name, c.name FROM {V3} a JOIN {V1} b ON a.id = b.id JOIN {V2} c ON b.id = c.id",
        &["v3|v1|v2"],
    ),
    ("SELECT a.name, b.name FROM {V3} a, {V1} b WHERE a.id = b.id", &["v3|v1"]),
    ("SELECT a.name, b.name FROM {V3} a LEFT JOIN {NONE} b ON a.id = b.id", &["v3|NULL"]),
    ("SELECT a.name, b.name FROM {NONE} a RIGHT JOIN {V3} b ON a.id = b.id", &["NULL|v3"]),
    ("SELECT a.name, b.name FROM {V2} a FULL JOIN {V3} b ON a.id = b.id", &["v2|v3"]),
    ("SELECT a.name, b.name FROM {V2} a JOIN {V1} b USING (id)", &["v2|v1"]),
    ("SELECT count(*) FROM {V2} a NATURAL JOIN {V1} b", &["0"]),
    (
        "SELECT a.region, a.id FROM {THREE} a LEFT SEMI JOIN {TWO} b ON a.region = b.region AND a.id = b.id ORDER BY 1",
        &["eu|1", "us|1"],
    ),
    (
        "SELECT a.region, a.id FROM {THREE} a LEFT ANTI JOIN {TWO} b ON a.region = b.region AND a.id = b.id",
        &["eu|2"],
    ),
    // Scalar subqueries, also as common subexpressions.
    (
        "SELECT (SELECT name FROM {V3}) AS a, (SELECT name FROM {V1}) AS b, (SELECT name FROM {V2}) AS c",
        &["v3|v1|v2"],
    ),
    (
        "SELECT (SELECT count(*) FROM {THREE}) * 100 + (SELECT count(*) FROM {TWO}) * 10 + (SELECT count(*) FROM {THREE})",
        &["323"],
    ),
    ("SELECT (SELECT name FROM {V3}) || (SELECT name FROM {V1}) || (SELECT name FROM {V3})", &["v3v1v3"]),
    ("SELECT 1 WHERE (SELECT name FROM {V3}) = (SELECT name FROM {V1})", &[]),
    ("SELECT 1 WHERE (SELECT name FROM {V3}) <> (SELECT name FROM {V1})", &["1"]),
    (
        "SELECT CASE WHEN (SELECT count(*) FROM {TWO}) = 3 THEN 'three' WHEN (SELECT count(*) FROM {THREE}) = 3 THEN 'right' END",
        &["right"],
    ),
    (
        "SELECT o.region, (SELECT count(*) FROM {THREE} x WHERE x.region = o.region) AS a, \
         (SELECT count(*) FROM {TWO} y WHERE y.region = o.region) AS b FROM {TWO} o ORDER BY 1",
        &["eu|2|1", "us|1|1"],
    ),
    (
        "SELECT region FROM {TWO} GROUP BY region HAVING count(*) < (SELECT count(*) FROM {THREE}) AND count(*) < (SELECT count(*) FROM {TWO}) ORDER BY region",
        &["eu", "us"],
    ),
    (
        "SELECT id FROM {TWO} WHERE region = 'eu' ORDER BY (SELECT name FROM {V1}), (SELECT name FROM {V3})",
        &["1"],
    ),
    // IN and EXISTS.
    ("SELECT 1 WHERE 'v3' IN (SELECT name FROM {V3}) AND 'v1' IN (SELECT name FROM {V1})", &["1"]),
    ("SELECT 1 WHERE 'v3' IN (SELECT name FROM {V3}) AND 'v3' IN (SELECT name FROM {V1})", &[]),
    ("SELECT 1 WHERE 'v3' IN (SELECT name FROM {V3}) AND 'v3' NOT IN (SELECT name FROM {V1})", &["1"]),
    ("SELECT 1 WHERE 'v1' IN (SELECT name FROM {V3}) OR 'v1' IN (SELECT name FROM {V1})", &["1"]),
    (
        "SELECT region, id FROM {THREE} WHERE id IN (SELECT id FROM {THREE}) AND id NOT IN (SELECT id FROM {TWO})",
        &["eu|2"],
    ),
    ("SELECT 1 WHERE EXISTS (SELECT 1 FROM {V3}) AND NOT EXISTS (SELECT 1 FROM {NONE})", &["1"]),
    ("SELECT 1 WHERE EXISTS (SELECT 1 FROM {V3}) AND EXISTS (SELECT 1 FROM {NONE})", &[]),
    (
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM {V3} WHERE name = 'v3') AND EXISTS (SELECT 1 FROM {V1} WHERE name = 'v3')",
        &[],
    ),
    (
        "SELECT t.region, t.id FROM {THREE} t WHERE EXISTS (SELECT 1 FROM {THREE} x WHERE x.region = t.region AND x.id = t.id) \
         AND NOT EXISTS (SELECT 1 FROM {TWO} x WHERE x.region = t.region AND x.id = t.id)",
        &["eu|2"],
    ),
    // Common table expressions.
    ("WITH a AS (SELECT * FROM {V3}), b AS (SELECT * FROM {V1}) SELECT a.name, b.name FROM a, b", &["v3|v1"]),
    (
        "WITH a AS (SELECT * FROM {V3}), b AS (SELECT * FROM {V1}) SELECT x.name, b.name, y.name FROM a x, b, a y",
        &["v3|v1|v3"],
    ),
    (
        "SELECT (WITH x AS (SELECT name FROM {V3}) SELECT name FROM x) AS a, \
         (WITH x AS (SELECT name FROM {V1}) SELECT name FROM x) AS b",
        &["v3|v1"],
    ),
    (
        "WITH RECURSIVE r AS (SELECT 1 AS n, name FROM {V3} UNION ALL SELECT n + 1, p.name FROM r, {V1} p WHERE n < 3) \
         SELECT name FROM r ORDER BY n",
        &["v3", "v1", "v1"],
    ),
    // Groups: schemas of several clocks meet above the scans.
    (
        "SELECT name, count(*) FROM (SELECT name FROM {V3} UNION ALL SELECT name FROM {V1} UNION ALL SELECT name FROM {V1}) \
         GROUP BY name ORDER BY name",
        &["v1|2", "v3|1"],
    ),
    (
        "SELECT a.name, max(b.name), count(*) FROM {V3} a JOIN {V1} b ON a.id = b.id GROUP BY a.name",
        &["v3|v1|1"],
    ),
    (
        "SELECT id, sum(amount), avg(id) FROM (SELECT * FROM {THREE} UNION ALL SELECT * FROM {TWO}) GROUP BY id ORDER BY id",
        &["1|27.50|1.0", "2|20.00|2.0"],
    ),
    (
        "SELECT count(DISTINCT name), min(name), max(name) FROM (SELECT * FROM {V3} UNION ALL SELECT * FROM {V2})",
        &["2|v2|v3"],
    ),
    (
        "SELECT DISTINCT name, row_number() OVER (ORDER BY name) FROM (SELECT name FROM {V3} UNION ALL SELECT name FROM {V1}) ORDER BY 1",
        &["v1|1", "v3|2"],
    ),
    ("SELECT (SELECT name FROM {V1}) AS b FROM orders GROUP BY (SELECT name FROM {V1})", &["v1"]),
    // Row by row.
    ("SELECT p.name FROM {AT} UNION SELECT p.name FROM {KNOWN} ORDER BY 1", &["v2", "v3"]),
    ("SELECT (SELECT p.name FROM {AT}) AS a, (SELECT p.name FROM {KNOWN}) AS b", &["v3|v2"]),
    ("SELECT 1 WHERE 'v3' IN (SELECT p.name FROM {AT}) AND 'v3' IN (SELECT p.name FROM {KNOWN})", &[]),
    ("SELECT a.name, b.name FROM (SELECT p.name FROM {AT}) a, (SELECT p.name FROM {KNOWN}) b", &["v3|v2"]),
    ("SELECT count(*), max(b.value) FROM generate_series(1, 2) a, LATERAL generate_series(1, 3) b", &["6|3"]),
    // Table functions.
    (
        "SELECT (SELECT count(*) FROM changes('orders', 1, 1)) AS a, (SELECT count(*) FROM changes('orders', 2, 2)) AS b, \
         (SELECT count(*) FROM changes('orders', 3, 3)) AS c",
        &["3|2|1"],
    ),
    (
        "SELECT _commit_version FROM changes('orders', 2, 2) UNION SELECT _commit_version FROM changes('orders', 3, 3) ORDER BY 1",
        &["2", "3"],
    ),
    (
        "SELECT (SELECT max(amount) FROM timeline('orders', 'eu', 1)) AS a, (SELECT max(amount) FROM timeline('orders', 'eu', 2)) AS b",
        &["11.00|20.00"],
    ),
    (
        "SELECT (SELECT count(*) FROM belief_diff('person', '2024-05-01 12:22:00', '2024-05-01 12:27:00')) AS a, \
         (SELECT count(*) FROM belief_diff('person', '2024-05-01 12:27:00', '2024-05-01 12:28:00')) AS b",
        &["3|0"],
    ),
    (
        "SELECT (SELECT count(*) FROM history('orders')) AS a, (SELECT count(*) FROM history('person')) AS b, (SELECT count(*) FROM intervals('person')) AS c, (SELECT count(*) FROM scd2('person')) AS d",
        &["6|4|6|3"],
    ),
    (
        "SELECT (SELECT count(*) FROM files('orders')) AS a, (SELECT count(*) FROM files('releases')) AS b",
        &["1|2"],
    ),
    (
        "SELECT (SELECT max(value) FROM generate_series(1, 3)) AS a, (SELECT max(value) FROM generate_series(1, 5)) AS b",
        &["3|5"],
    ),
    ("SELECT (SELECT max(value) FROM range(1, 3)) AS a, (SELECT max(value) FROM range(1, 5)) AS b", &["2|4"]),
];

fn filled(template: &str) -> String {
    RELATIONS.iter().fold(template.to_owned(), |sql, (name, relation)| sql.replace(name, relation))
}

#[test]
fn d4_scans_with_other_clocks_are_never_taken_for_one() {
    let f = Fixture::new();
    let mut faults = Vec::new();
    for (template, wanted) in CASES {
        let sql = filled(template);
        match f.batches(&sql, &Default::default()) {
            Ok(batches) => {
                let rows: Vec<String> =
                    super::fixture::rows(&batches).into_iter().map(|r| r.join("|")).collect();
                if rows != *wanted {
                    faults.push(format!("{template}: {rows:?}, not {wanted:?}"));
                }
            }
            Err(e) => faults.push(format!("{template}: {}", e.message)),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What tells scans apart is no part of an answer.
#[test]
fn answers_carry_nothing_of_the_planner() {
    let f = Fixture::new();
    for relation in ["{V3}", "{THREE}", "{AT}", "commits()", "changes('orders', 1)", "timeline('person', 1)"]
    {
        let answer = f.answer(&filled(&format!("SELECT * FROM {relation}"))).unwrap();
        assert!(answer.schema.metadata().is_empty(), "{relation}: {:?}", answer.schema);
        assert!(answer.schema.fields().iter().all(|f| f.metadata().is_empty()), "{:?}", answer.schema);
    }
}

/// Before the joins are rewritten, too: this subquery is not the one that is grouped by.
#[test]
fn d5_subqueries_with_other_bounds_by_row_are_never_taken_for_one() {
    let f = Fixture::new();
    let sql =
        filled("SELECT (SELECT p.name FROM {KNOWN}) AS b FROM orders GROUP BY (SELECT p.name FROM {AT})");
    match f.batches(&sql, &Default::default()) {
        Ok(batches) => assert_eq!(super::fixture::rows(&batches), [["v2"]]),
        Err(e) => assert!(e.message.contains("GROUP BY"), "{e:?}"),
    }
}
