//! Statements that ask for the row of one key are answered without a plan, and as with one.

use super::fixture::{STATES, State, at, rows, runtime, session, store};
use asofdb::sql::{Answer, Params, Point, Session, SessionClocks};
use datafusion::common::ScalarValue;

/// Relations: instants and integers, the store's own system time, commits, late events, latest of everything.
/// Words that SQL knows are left to the planner unless they are quoted.
const TABLES: &[(&str, &str, &[&str])] = &[
    ("\"person\"", "\"id\" = {}", &["1", "2", "-1"]),
    ("\"orders\"", "\"region\" = '{}' AND \"id\" = 1", &["eu", "us", "5", "5.0", "it''s"]),
    ("\"releases\"", "\"id\" = '{}'", &["app", "App", "\\x00"]),
    ("person", "id = {}", &["1", "2", "-1"]),
    ("orders", "region = '{}' AND id = 1", &["eu", "us", "5", "5.0", "it''s"]),
    ("orders", "id = 2 AND \"region\" = '{}'", &["eu"]),
    ("releases", "id = '{}'", &["app", "App", "\\x00"]),
    ("labels", "label = '{}'", &["a", "f", "z"]),
    ("\"Mixed Case\"", "\"Id\" = {}", &["1", "2"]),
    ("\"Mixed Case\"", "Id = {}", &["1"]),
];

/// What stands between a table and WHERE.
const CLAUSES: &[&str] = &[
    "",
    "FOR VALID_TIME AS OF '2024-05-01 12:10:00'",
    "FOR VALID_TIME AS OF TIMESTAMP '2024-05-01T09:20:00Z'",
    "FOR VALID_TIME AS OF to_timestamp_micros(1714555800000000)",
    "FOR VALID_TIME AS OF to_timestamp_micros(1714555800000000) + INTERVAL '1 hour'",
    "FOR VALID_TIME AS OF TIMESTAMP '2024-05-01' + INTERVAL '10 hours'",
    "FOR VALID_TIME AS OF '2024-05-01 12:10:00' FOR SYSTEM_TIME AS OF '2024-05-01 12:22:00'",
    "FOR SYSTEM_TIME AS OF DATE '2024-05-02'",
    "FOR SYSTEM_TIME AS OF '2030-01-01'",
    "FOR VALID_TIME AS OF now",
    "FOR VALID_TIME AS OF 15",
    "FOR VALID_TIME AS OF 20 FOR SYSTEM_TIME AS OF 250",
    "FOR COMMIT AS OF 1",
    "FOR COMMIT AS OF 99",
    "FOR COMMIT AS OF '2024-05-01 13:01:30'",
    "FOR VALID_TIME ALL",
    "FOR VALID_TIME FROM '2024-05-01' TO '2024-05-02'",
    "FOR VALID_TIME AS OF NULL",
    "FOR VALID_TIME AS OF 'yesterday'",
];

/// Everything that an answer says, or its error without the place.
fn said(session: &Session, runtime: &tokio::runtime::Runtime, sql: &str, params: &Params) -> String {
    let said = runtime.block_on(async {
        let answer = session.run(sql, params).await?;
        let Answer { schema, stream: _, applied, notices, commit, commit_at, one_key: _ } = &answer;
        let heading = format!("{schema:?} {applied:?} {notices:?} {commit:?} {commit_at:?}");
        let batches = answer.collect().await?;
        Ok::<_, asofdb::sql::SqlError>(format!("{heading} {:?}", rows(&batches)))
    });
    said.unwrap_or_else(|e| format!("{:?} {} {:?}", e.kind, e.message, e.hint))
}

/// Asserts that a condition that changes nothing but how the statement is run changes nothing.
fn assert_as_planned(
    session: &Session,
    runtime: &tokio::runtime::Runtime,
    sql: &str,
    params: &Params,
) -> bool {
    let planned = said(session, runtime, &format!("{sql} AND 1 = 1"), params);
    assert_eq!(said(session, runtime, sql, params), planned, "{sql}");
    planned.contains("[[")
}

fn ask_all(session: &Session, runtime: &tokio::runtime::Runtime) -> usize {
    let mut found = 0;
    for (table, condition, values) in TABLES {
        for clauses in CLAUSES {
            for value in *values {
                let condition = condition.replace("{}", value);
                let sql = format!("SELECT * FROM {table} {clauses} WHERE {condition}");
                found += usize::from(assert_as_planned(session, runtime, &sql, &Params::none()));
            }
        }
    }
    found
}

#[test]
fn a_row_by_its_key_is_what_a_plan_finds() {
    let runtime = runtime();
    for state in STATES {
        let dir = tempfile::tempdir().unwrap();
        let session = session(&store(dir.path(), state));
        let found = ask_all(&session, &runtime);
        assert!(found > 60, "{found} rows in {state:?}");
        if state != State::Compacted {
            continue;
        }
        let commit = Some(Point::Integer(2));
        session.set_clocks(SessionClocks { commit, ..SessionClocks::default() });
        ask_all(&session, &runtime);
        let valid = Some(Point::Instant(at(12, 10)));
        session.set_clocks(SessionClocks { valid, system: valid, commit: None });
        ask_all(&session, &runtime);
    }
}

#[test]
fn columns_and_parameters_of_a_row_are_what_a_plan_gives() {
    let (dir, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let session = session(&store(dir.path(), State::Compacted));
    let mut params =
        Params { positional: vec![ScalarValue::from("eu"), ScalarValue::from(1i64)], ..Params::none() };
    params.named.insert("t".into(), ScalarValue::from("2024-05-01 12:10:00"));
    params.named.insert("n".into(), ScalarValue::from(2i64));
    params.named.insert("small".into(), ScalarValue::Int32(Some(1)));
    params.named.insert("null".into(), ScalarValue::Null);
    for (sql, rows) in [
        ("SELECT amount, region FROM orders WHERE region = $1 AND id = $2", true),
        ("SELECT amount FROM orders FOR VALID_TIME AS OF $t WHERE region = $1 AND id = $2", true),
        ("SELECT amount FROM orders FOR COMMIT AS OF $n WHERE region = $1 AND id = $2", true),
        ("SELECT amount FROM orders WHERE region = $1 AND id = $small", true),
        ("SELECT amount FROM orders WHERE region = $1 AND id = $null", false),
        ("SELECT amount FROM orders FOR VALID_TIME AS OF $null WHERE region = $1 AND id = $2", false),
        ("SELECT amount FROM orders WHERE region = $1 AND id = $missing", false),
        ("SELECT amount FROM orders WHERE region = $2 AND id = $2", false),
        ("SELECT amount FROM orders WHERE region = 'eu' AND id = 1 AND id = 2", false),
        ("SELECT amount FROM orders WHERE region = 'eu' AND id = 1 AND amount = 11", true),
        ("SELECT amount, amount FROM orders WHERE region = 'eu' AND id = 1", false),
        ("SELECT nothing FROM orders WHERE region = 'eu' AND id = 1", false),
        ("SELECT AMOUNT, \"orderNote\" FROM Orders WHERE REGION = 'eu' AND Id = 1", true),
        ("SELECT ordernote FROM orders WHERE region = 'eu' AND id = 1", true),
        ("SELECT amount FROM orders WHERE region = 'eu' AND id = '1'", true),
        ("SELECT amount FROM orders WHERE region = 'eu'", true),
        ("SELECT id, name FROM person, orders WHERE id = 1", false),
        ("SELECT DISTINCT amount FROM orders WHERE region = 'eu' AND id = 1", true),
    ] {
        assert_eq!(assert_as_planned(&session, &runtime, sql, &params), rows, "{sql}");
    }
}
