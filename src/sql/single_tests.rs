//! What is recognised, and what is not.

use super::*;
use crate::sql::lift::lift;
use crate::sql::token::tokenize;

/// The parts of a statement in words; `None` if it is left to the planner.
fn parts(sql: &str) -> Option<String> {
    let lifted = lift(&tokenize(sql).unwrap()).unwrap();
    let evaluation = Evaluation { options: Arc::default(), now: None, params: None };
    let Parts { columns, table, marker, equal } =
        Reading { tokens: &lifted.tokens, at: 0 }.parts(&evaluation)?;
    let columns = columns.map_or("*".into(), |c| c.join(" "));
    let marker = marker.map_or("none".into(), |n| n.to_string());
    let equal: Vec<String> = equal.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Some(format!("{columns} of {table}, clauses {marker}, {}", equal.join(" ")))
}

#[test]
fn a_row_by_its_key_is_recognised() {
    for (sql, expected) in [
        ("SELECT * FROM t WHERE a = 1", "* of t, clauses none, a=1"),
        ("select a, b from t where a = 'x' and \"b\" = 2;", "a b of t, clauses none, a=x b=2"),
        ("SELECT \"a b\" FROM \"T u\" WHERE a = 1 -- all\n", "a b of T u, clauses none, a=1"),
        ("SELECT a FROM t FOR VALID_TIME AS OF 1 WHERE a = 1", "a of t, clauses 0, a=1"),
        (
            "SELECT a FROM t FOR COMMIT AS OF 1 FOR VALID_TIME AS OF '2024-01-01' WHERE a = 1",
            "a of t, clauses 0, a=1",
        ),
    ] {
        assert_eq!(parts(sql).as_deref(), Some(expected), "{sql}");
    }
}

#[test]
fn every_other_statement_is_left_to_the_planner() {
    for sql in [
        "SELECT a FROM t",
        "SELECT a b FROM t WHERE a = 1",
        "SELECT a AS b FROM t WHERE a = 1",
        "SELECT t.a FROM t WHERE a = 1",
        "SELECT a, * FROM t WHERE a = 1",
        "SELECT DISTINCT a FROM t WHERE a = 1",
        "SELECT ALL a FROM t WHERE a = 1",
        "SELECT TOP 1 a FROM t WHERE a = 1",
        "SELECT current_date FROM t WHERE a = 1",
        "SELECT null FROM t WHERE a = 1",
        "SELECT count(*) FROM t WHERE a = 1",
        "SELECT a FROM t u WHERE a = 1",
        "SELECT a FROM t AS u WHERE a = 1",
        "SELECT a FROM t, u WHERE a = 1",
        "SELECT a FROM t PARTITION (p) WHERE a = 1",
        "SELECT a FROM t u FOR VALID_TIME AS OF 1 WHERE a = 1",
        "SELECT a FROM t FOR VALID_TIME AS OF 1 u WHERE a = 1",
        "SELECT a FROM s.t WHERE a = 1",
        "SELECT a FROM t() WHERE a = 1",
        "SELECT a FROM t TABLESAMPLE (1) WHERE a = 1",
        "SELECT a FROM (SELECT a FROM t) WHERE a = 1",
        "SELECT a FROM t WHERE NOT a = 1",
        "SELECT a FROM t WHERE (a = 1)",
        "SELECT a FROM t WHERE 1 = a",
        "SELECT a FROM t WHERE a = b",
        "SELECT a FROM t WHERE a = -1",
        "SELECT a FROM t WHERE a = 1.0",
        "SELECT a FROM t WHERE a = 9223372036854775808",
        "SELECT a FROM t WHERE a = 1 + 1",
        "SELECT a FROM t WHERE a = 1 OR b = 2",
        "SELECT a FROM t WHERE a = E'x'",
        "SELECT a FROM t WHERE a = $1",
        "SELECT a FROM t WHERE a >= 1",
        "SELECT a FROM t WHERE a = 1 IS NULL",
        "SELECT a FROM t WHERE a = 'x' COLLATE y",
        "SELECT a FROM t WHERE a = 1 LIMIT 0",
        "SELECT a FROM t WHERE a = 1 ORDER BY b",
        "SELECT a FROM t WHERE a = 1 GROUP BY a",
        "SELECT a FROM t WHERE a = 1 FOR UPDATE",
        "SELECT a FROM t WHERE a = 1 UNION SELECT a FROM t",
        "SELECT a FROM t WHERE a = 1; SELECT 2",
        "SELECT a INTO b FROM t WHERE a = 1",
        "WITH t AS (SELECT 1 AS a) SELECT a FROM t WHERE a = 1",
        "EXPLAIN SELECT a FROM t WHERE a = 1",
    ] {
        assert_eq!(parts(sql), None, "{sql}");
    }
}
