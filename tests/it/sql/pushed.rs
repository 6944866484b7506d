//! Filters that are pushed down change no answer: `(p) IS TRUE` lets the same rows through as `p`, and is not
//! pushed.

use super::fixture::{STATES, rows, runtime, session, store};
use super::model_store::store_of;
use asofdb::sql::{Params, Session};
use asofdb_testkit::Shape;
use asofdb_testkit::generate::model;
use proptest::prelude::*;
use std::sync::LazyLock;

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(runtime);

/// The rows of a question, sorted.
fn ask(session: &Session, sql: &str) -> Vec<Vec<String>> {
    let answer = RUNTIME.block_on(async { session.run(sql, &Params::none()).await?.collect().await });
    let mut found = rows(&answer.unwrap_or_else(|e| panic!("{sql}: {e:?}")));
    found.sort_unstable();
    found
}

fn compare(session: &Session, from: &str, condition: &str, at: &str) {
    let pushed = ask(session, &format!("SELECT * FROM {from} WHERE {condition}"));
    let kept = ask(session, &format!("SELECT * FROM {from} WHERE ({condition}) IS TRUE"));
    assert_eq!(pushed, kept, "{at}: {from} WHERE {condition}");
}

/// Every way to read `orders`, whose key is (region, id).
const ORDERS: [&str; 9] = [
    "orders",
    "orders FOR COMMIT AS OF 2",
    "orders FOR VALID_TIME AS OF '2024-05-01 09:20:00'",
    "orders FOR VALID_TIME ALL FOR SYSTEM_TIME ALL",
    "orders FOR VALID_TIME FROM '2024-05-01 09:00:00' TO '2024-05-01 10:00:00'",
    "scd2('orders')",
    "history('orders')",
    "late('orders')",
    "changes('orders', 2)",
];

const CONDITIONS: [&str; 16] = [
    "region = 'eu'",
    "region >= 'f'",
    "region > 'eu' AND region <= 'us'",
    "region < 'eu\u{0}'",
    "region = 'eu' AND id > 1",
    "region = 'eu' AND id BETWEEN 2 AND 5",
    "region IN ('eu', 'us') AND id <= 1",
    "region IN ('eu', 'xx') AND (id = 2 OR id < 0)",
    "(region = 'eu' OR region > 'u') AND id = 1",
    "region = 'eu' AND id > 5 AND id < 3",
    "id = 1",
    "region = 'us' OR id = 2",
    "region = 'eu' AND amount > 10",
    "NOT region = 'eu'",
    "region = 'eu' AND id <> 1",
    "region IS NOT NULL AND id IN (1, 2)",
];

#[test]
fn conditions_on_a_key_of_two_columns_let_the_same_rows_through() {
    for state in STATES {
        let dir = tempfile::tempdir().unwrap();
        let engine = store(dir.path(), state);
        let session = session(&engine);
        for from in ORDERS {
            for condition in CONDITIONS {
                compare(&session, from, condition, &format!("{state:?}"));
            }
        }
        for condition in
            ["__COMMIT_SEQ = 2", "__COMMIT_SEQ > 3", "__COMMIT_SEQ BETWEEN 2 AND 3 AND region = 'eu'"]
        {
            compare(&session, "history('orders')", condition, &format!("{state:?}"));
        }
        for condition in [
            "__START_AT >= '2024-05-01T12:05:00Z'",
            "__START_AT < '2024-05-01T10:30:00Z' AND __COMMIT_SEQ < 4",
            "__START_AT = '2024-05-01T12:30:00Z'",
            "__START_AT > '2025-01-01T00:00:00Z'",
        ] {
            compare(&session, "history('person')", condition, &format!("{state:?}"));
        }
    }
}

/// A comparison of a column with a constant, or several.
fn condition() -> impl Strategy<Value = String> {
    let column = prop_oneof![3 => Just("key"), 1 => Just("c0")];
    let operator = prop::sample::select(vec!["=", "<", "<=", ">", ">=", "<>"]);
    let one = (column, operator, -1..5i64).prop_map(|(c, o, n)| format!("{c} {o} {n}"));
    let between = (-1..5i64, -1..5i64).prop_map(|(a, b)| format!("key BETWEEN {a} AND {b}"));
    let listed = prop::collection::vec(-1..5i64, 1..3)
        .prop_map(|l| format!("key IN ({})", l.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")));
    let leaf = prop_oneof![one, between, listed];
    leaf.prop_recursive(2, 4, 2, |inner| {
        (inner.clone(), prop::sample::select(vec!["AND", "OR"]), inner)
            .prop_map(|(a, o, b)| format!("({a} {o} {b})"))
    })
}

/// Ways to read the model's table, at times that its events have.
fn relation() -> impl Strategy<Value = String> {
    let instant = |us: i64| format!("'1970-01-01T00:00:00.{us:06}Z'");
    prop_oneof![
        (0..9i64, 0..9i64).prop_map(move |(v, s)| format!(
            "t FOR VALID_TIME AS OF {} FOR SYSTEM_TIME AS OF {}",
            instant(v),
            instant(s)
        )),
        (1..=3).prop_map(|n| format!("t FOR COMMIT AS OF {n}")),
        (0..9i64).prop_map(move |v| format!(
            "t FOR VALID_TIME BETWEEN {} AND {}",
            instant(v),
            instant(v + 2)
        )),
        Just("t FOR VALID_TIME ALL FOR SYSTEM_TIME ALL".to_owned()),
        Just("scd2('t')".to_owned()),
        Just("history('t')".to_owned()),
        (1..=3).prop_map(|n| format!("changes('t', {n})")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_conditions_let_the_same_rows_through(
        model in model(Shape { changes_max: 16, ..Shape::everything() }),
        questions in prop::collection::vec((relation(), condition()), 12),
    ) {
        let engine = store_of(&model);
        for state in ["as taken in", "compacted"] {
            let session = session(&engine);
            for (from, condition) in &questions {
                compare(&session, from, condition, state);
            }
            engine.compact().unwrap();
        }
    }
}
