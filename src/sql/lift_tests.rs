use super::*;
use crate::sql::clause::Spec;
use crate::sql::token::tokenize;

/// The statement with `#n` for each marker, and the clauses as `n:axis`.
fn lifted(sql: &str) -> (String, Vec<String>) {
    let Lifted { tokens, clauses } = lift(&tokenize(sql).unwrap()).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let mut words: Vec<String> = tokens.iter().map(|t| t.token.to_string()).collect();
    words.retain(|w| w != "EOF" && !w.is_empty());
    let text = words.join(" ").replace(&format!("PARTITION ( {MARKER}"), "#").replace(" )", ")");
    let mut found = Vec::new();
    for (n, c) in clauses.iter().enumerate() {
        for clause in [&c.valid, &c.system, &c.commit].into_iter().flatten() {
            found.push(format!("{n}:{}", clause.axis.word()));
        }
    }
    (text, found)
}

#[test]
fn a_marker_stands_right_after_the_name_of_the_table() {
    let cases = [
        ("FROM t FOR VALID_TIME AS OF 1", "FROM t #0)"),
        ("FROM t FOR VALID_TIME AS OF 1 AS x", "FROM t #0) AS x"),
        ("FROM t AS x FOR VALID_TIME AS OF 1", "FROM t #0) AS x"),
        ("FROM t x FOR VALID_TIME AS OF 1", "FROM t #0) x"),
        ("FROM t x (a, b) FOR VALID_TIME AS OF 1", "FROM t #0) x ( a , b)"),
        ("FROM a.b.\"c d\" FOR VALID_TIME AS OF 1 x", "FROM a . b . \"c d\" #0) x"),
        ("FROM f(1, (2)) FOR VALID_TIME AS OF 1", "FROM f #0) ( 1 , ( 2))"),
        ("FROM f(1) AS x FOR VALID_TIME AS OF 1", "FROM f #0) ( 1) AS x"),
        ("FROM \"for\" FOR VALID_TIME AS OF 1", "FROM \"for\" #0)"),
        ("FROM t FOR VALID_TIME AS OF now FOR SYSTEM_TIME ALL FOR COMMIT AS OF 2 x", "FROM t #0) x"),
        ("FROM t FOR VALID_TIME ALL x FOR SYSTEM_TIME ALL", "FROM t #0) x"),
        ("FROM t FOR VALID_TIME ALL, u FOR SYSTEM_TIME ALL", "FROM t #0) , u #1)"),
    ];
    for (sql, wanted) in cases {
        assert_eq!(lifted(sql).0, wanted, "{sql}");
    }
    assert_eq!(lifted(cases[9].0).1, ["0:VALID_TIME", "0:SYSTEM_TIME", "0:COMMIT"]);
    assert_eq!(lifted(cases[11].0).1, ["0:VALID_TIME", "1:SYSTEM_TIME"]);
}

#[test]
fn expressions_end_where_the_clause_does() {
    let clause = |sql: &str| lift(&tokenize(sql).unwrap()).unwrap().clauses.remove(0).valid.unwrap().spec;
    let shown = |spec: Spec| match spec {
        Spec::AsOf(e) => format!("{e}"),
        Spec::FromTo(a, b) => format!("{a} TO {b}"),
        Spec::Between(a, b) => format!("{a} AND {b}"),
        Spec::ContainedIn(a, b) => format!("{a}, {b}"),
        Spec::All => "ALL".into(),
    };
    let cases = [
        ("FROM t FOR VALID_TIME AS OF now() - INTERVAL '1 day' x JOIN u ON true", "now() - INTERVAL '1 day'"),
        ("FROM t FOR VALID_TIME AS OF $at LIMIT 1", "$at"),
        ("FROM t FOR VALID_TIME FROM 1 + 1 TO 2 * 3 WHERE a = 1", "1 + 1 TO 2 * 3"),
        ("FROM t FOR VALID_TIME BETWEEN 1 + 1 AND 2 + 2 AND x", "1 + 1 AND 2 + 2"),
        ("FROM t FOR VALID_TIME CONTAINED IN (f(1, 2), (3)) x", "f(1, 2), (3)"),
        ("FROM t FOR ALL VALID_TIME", "ALL"),
        ("FROM t FOR VALID_TIME AS OF TIMESTAMP '2024-01-01' FOR SYSTEM_TIME ALL", "TIMESTAMP '2024-01-01'"),
    ];
    for (sql, wanted) in cases {
        match lift(&tokenize(sql).unwrap()) {
            Ok(_) => assert_eq!(shown(clause(sql)), wanted, "{sql}"),
            Err(e) => panic!("{sql}: {e:?}"),
        }
    }
}

#[test]
fn places_are_those_of_the_user() {
    let lifted = lift(&tokenize("SELECT *\n FROM t\n  FOR VALID_TIME ALL\nWHERE x").unwrap()).unwrap();
    assert_eq!(lifted.clauses[0].place(), Some(Place { line: 3, column: 3, length: 3 }));
    let after = lifted.tokens.iter().find(|t| is_word(Some(&t.token), "WHERE")).unwrap();
    assert_eq!(Place::of(after.span), Some(Place { line: 4, column: 1, length: 5 }));
}

#[test]
fn no_one_can_type_a_marker() {
    for name in ["0", "\u{1}", "\u{1}x", "x\u{1}0", "#0"] {
        assert_eq!(marker_number(name), None, "{name:?}");
    }
    let typed = tokenize("FROM t PARTITION (\u{1}0)").unwrap();
    let marker = typed.iter().filter_map(|t| bare_word(&t.token)).find(|w| marker_number(&w.value).is_some());
    assert_eq!(marker, None);
}
