//! Any text is answered or refused: no panic, no hang, no fault, nothing changed in the store (H13).

use super::fixture::Fixture;
use asofdb::sql::{Params, SqlErrorKind};
use proptest::prelude::*;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

static STORE: LazyLock<Fixture> = LazyLock::new(Fixture::new);

const WORDS: [&str; 56] = [
    "SELECT",
    "FROM",
    "WHERE",
    "JOIN",
    "LEFT JOIN",
    "ON",
    "AS",
    "FOR",
    "VALID_TIME",
    "SYSTEM_TIME",
    "COMMIT",
    "AS OF",
    "BETWEEN",
    "AND",
    "CONTAINED IN",
    "ALL",
    "TO",
    "SNAPSHOT",
    "PARTITION",
    "person",
    "orders",
    "p",
    "id",
    "name",
    "(",
    ")",
    ",",
    "*",
    "1",
    "'2024-05-01'",
    "now",
    "now()",
    "=",
    "+",
    "-",
    "UNION ALL",
    "WITH",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "LATERAL",
    "history('person')",
    "VALUES",
    "NULL",
    "\"for\"",
    ".",
    ";",
    "--",
    "/*",
    "*/",
    "'",
    "$1",
    "EXPLAIN",
    "TIMESTAMP '2024-05-01'",
    "INTERVAL '1 day'",
    "substring(name FROM 1 FOR 2)",
];

fn statement() -> impl Strategy<Value = String> {
    let words = prop::collection::vec(prop::sample::select(&WORDS[..]), 0..14).prop_map(|w| w.join(" "));
    let spec = prop::sample::select(
        &[
            "AS OF now",
            "AS OF '2024-05-01'",
            "AS OF 1",
            "FROM 1 TO 2",
            "ALL",
            "BETWEEN now AND now",
            "AS OF p.id",
        ][..],
    );
    let axis = prop::sample::select(&["VALID_TIME", "SYSTEM_TIME", "COMMIT", "BUSINESS_TIME", "ALL"][..]);
    let tail = words.clone();
    let shaped = (axis, spec, tail).prop_map(|(a, s, t)| format!("SELECT * FROM person FOR {a} {s} {t}"));
    let prefixed = words.clone().prop_map(|w| format!("SELECT * FROM person p {w}"));
    prop_oneof![
        words,
        shaped,
        prefixed,
        "\\PC{0,40}",
        prop::collection::vec(any::<char>(), 0..30).prop_map(|c| c.into_iter().collect())
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn h13_any_text_is_answered_or_refused(sql in statement()) {
        let begun = Instant::now();
        if let Err(e) = STORE.batches(&sql, &Params::none()) {
            prop_assert!(e.kind != SqlErrorKind::Internal, "{sql}: {e:?}");
            prop_assert!(!e.message.is_empty() && !e.message.contains('\u{1}'), "{sql}: {e:?}");
        }
        STORE.rows("RESET ALL");
        prop_assert!(begun.elapsed() < Duration::from_secs(10), "{sql}: {:?}", begun.elapsed());
        prop_assert_eq!(STORE.rows("SELECT count(*) FROM orders"), ["2"]);
    }
}
