//! What an answer tells beside its rows.

use super::fixture::{Fixture, MAY_1, MINUTE, at};
use asofdb::sql::{Applied, AppliedCommit, AppliedTime, is_incomplete, split_script};
use asofdb_storage::engine::RangeSpec;

fn applied(f: &Fixture, sql: &str) -> Vec<Applied> {
    f.answer(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}")).applied
}

#[test]
fn the_answer_says_which_clocks_were_applied() {
    let f = Fixture::new();
    let all = applied(
        &f,
        "SELECT * FROM person FOR VALID_TIME AS OF '2024-05-01 12:10:00' p, orders FOR COMMIT AS OF 2",
    );
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[0].table, "person");
    assert_eq!(all[0].valid, AppliedTime::Fixed(RangeSpec::AsOf(at(12, 10))));
    assert_eq!(all[0].system, AppliedTime::Fixed(RangeSpec::Latest));
    assert_eq!(all[0].commit, AppliedCommit::Fixed { seq: 5, at: Some(at(13, 4)) });
    assert_eq!(all[1].commit, AppliedCommit::Fixed { seq: 2, at: Some(at(13, 1)) });
    assert_eq!(
        all[0].to_string(),
        "person: valid as of 2024-05-01T12:10:00Z, system latest, commit 5 (2024-05-01T13:04:00Z)"
    );
    let twice = applied(&f, "SELECT (SELECT count(*) FROM person) + count(*) FROM person");
    assert_eq!(twice.len(), 1, "{twice:?}");
    let in_subquery = applied(&f, "SELECT 1 WHERE EXISTS (SELECT 1 FROM person FOR VALID_TIME ALL)");
    assert_eq!(in_subquery[0].valid, AppliedTime::Fixed(RangeSpec::All));
    let per_row =
        applied(&f, "SELECT * FROM labels l JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id");
    assert!(per_row.iter().any(|a| a.valid == AppliedTime::PerRow("l.at".into())), "{per_row:?}");
}

#[test]
fn d3_an_instant_past_the_last_commit_is_answered_with_a_notice() {
    let f = Fixture::new();
    let answer = f.answer("SELECT * FROM orders FOR SYSTEM_TIME AS OF '2030-01-01'").unwrap();
    assert_eq!(answer.applied[0].system, AppliedTime::Fixed(RangeSpec::AsOf(at(13, 4))));
    assert!(answer.notices[0].contains("lies after the last commit"), "{:?}", answer.notices);
    let answer = f.answer("SELECT * FROM orders FOR COMMIT AS OF '2030-01-01'").unwrap();
    assert!(answer.notices[0].contains("answered as of commit 5"), "{:?}", answer.notices);
    // Where the source declares system time, the future is its business.
    let answer = f.answer("SELECT * FROM person FOR SYSTEM_TIME AS OF '2030-01-01'").unwrap();
    assert!(answer.notices.is_empty(), "{:?}", answer.notices);
    let answer = f.answer("SELECT * FROM orders FOR SYSTEM_TIME AS OF '2024-05-01 13:04:00'").unwrap();
    assert!(answer.notices.is_empty(), "{:?}", answer.notices);
}

#[test]
fn set_tells_what_was_understood() {
    let f = Fixture::new();
    let answer = f.answer("SET asof.valid_time = '2024-05-01T14:10:00+02:00'").unwrap();
    assert_eq!(answer.notices, ["asof.valid_time = 2024-05-01T12:10:00Z"]);
    assert_eq!(answer.schema.fields().len(), 0);
    let answer = f.answer("SELECT * FROM history('person')").unwrap();
    assert!(answer.notices[0].contains("history() shows all times"), "{:?}", answer.notices);
    let answer = f.answer("SELECT * FROM belief_diff('person', '2024-05-01', now())").unwrap();
    assert!(answer.notices[0].contains("belief_diff() shows all times"), "{:?}", answer.notices);
    assert_eq!(f.rows("SELECT name FROM person"), ["v3"]);
    f.answer("RESET ALL").unwrap();
    assert!(f.rows("SELECT name FROM person").is_empty());
}

#[test]
fn a_script_is_split_by_tokens() {
    let script =
        "-- only; a comment\nSELECT ';' AS \"a;b\"; /* ; */\n\n  SELECT 1 -- ;\n;;SELECT $$;$$ \n -- end";
    let statements = split_script(script, 1 << 20).unwrap();
    let texts: Vec<_> = statements.iter().map(|s| (s.text.as_str(), s.line, s.column)).collect();
    assert_eq!(texts[0], ("SELECT ';' AS \"a;b\"", 2, 1));
    assert_eq!((texts[1].1, texts[1].2), (4, 3));
    assert!(texts[1].0.starts_with("SELECT 1"), "{texts:?}");
    assert_eq!(texts[2].0, "SELECT $$;$$");
    assert_eq!(texts.len(), 3);
    assert!(split_script(" -- nothing\n /* at all */ ;", 1 << 20).unwrap().is_empty());
    assert!(split_script("SELECT 'open", 1 << 20).is_err());
    assert!(is_incomplete("SELECT 1") && is_incomplete("SELECT ';") && is_incomplete("SELECT 1; SELECT"));
    assert!(!is_incomplete("SELECT 1;") && !is_incomplete("SELECT 1; -- done") && !is_incomplete("-- x"));
}

#[test]
fn comments_alone_are_nothing() {
    let f = Fixture::new();
    let answer = f.answer(" -- nothing\n;").unwrap();
    assert!(answer.schema.fields().is_empty());
    assert!(f.rows(" /* nothing */ ").is_empty());
}

#[test]
fn a_projection_of_nothing_counts_rows() {
    let f = Fixture::new();
    assert_eq!(f.rows("SELECT count(*), count(1) FROM orders FOR COMMIT AS OF 1"), ["3|3"]);
    assert_eq!(f.rows("SELECT 1 FROM orders LIMIT 1"), ["1"]);
    assert_eq!(f.rows("SELECT count(*) FROM orders FOR VALID_TIME ALL"), ["5"]);
    assert_eq!(at(0, 1) - MAY_1, MINUTE);
}
