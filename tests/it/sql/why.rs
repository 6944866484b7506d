//! `why()` against the naive model: what the named event wrote is what the row shows, since changing it there
//! changes the row.

use super::fixture::{Fixture, rows, runtime};
use super::model_store::{row_at, store_of};
use asofdb::sql::{Params, Session, Settings};
use asofdb_storage::time::FOREVER;
use asofdb_testkit::generate::model;
use asofdb_testkit::{Act, Cell, Change, Model, Shape};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(runtime);

/// A value that no change of a model has.
const MARK: i64 = 999;

/// The rows of an answer, and what is said beside it.
fn ask(session: &Session, sql: &str) -> (Vec<Vec<String>>, Vec<String>) {
    let asked = async {
        let answer = session.run(sql, &Params::none()).await?;
        let notices = answer.notices.clone();
        Ok::<_, asofdb::sql::SqlError>((rows(&answer.collect().await?), notices))
    };
    RUNTIME.block_on(asked).unwrap_or_else(|e| panic!("{sql}: {e:?}"))
}

fn instant(us: i64) -> String {
    if us == FOREVER { "NULL".into() } else { format!("'1970-01-01T00:00:00.{us:06}Z'") }
}

/// What the row of `key` has in a column when change `n` has the mark there.
fn with_mark(m: &Model, n: usize, column: u32, key: u32, at: (i64, i64, u64)) -> Option<Option<i64>> {
    let mut marked = m.clone();
    let change = &mut marked.changes[n];
    if change.act == Act::Delete {
        (change.act, change.full) = (Act::Upsert, true);
    }
    change.cells.insert(column, Cell::Int(MARK));
    row_at(&marked, key, at.0, at.1, at.2).map(|row| row[1 + column as usize])
}

fn check(m: &Model, session: &Session, key: u32, column: u32, at: (i64, i64, u64)) {
    let (valid, system, commit) = at;
    RUNTIME.block_on(session.run(&format!("SET asof.commit = {commit}"), &Params::none())).unwrap();
    let sql = format!(
        "SELECT c{column}, _why, _stream, _position FROM why('t', {key}, 'c{column}', {}, {})",
        instant(valid),
        instant(system)
    );
    let (found, said) = ask(session, &sql);
    let row = row_at(m, key, valid, system, commit);
    let context = format!("{sql} at commit {commit}: {found:?} {said:?} for {row:?}\n{m:?}");
    let Some([value, word, stream, position]) = found.first().map(|r| [&r[0], &r[1], &r[2], &r[3]]) else {
        assert!(!said.is_empty(), "no reason: {context}");
        assert!(row.is_none_or(|r| r[1 + column as usize].is_none()), "{context}");
        return;
    };
    assert_eq!((found.len(), said.len()), (1, 0), "{context}");
    let is_it = |c: &Change| format!("s{}", c.stream) == *stream && c.position.to_string() == *position;
    let n = m.changes.iter().position(is_it).unwrap_or_else(|| panic!("no such event: {context}"));
    let change = &m.changes[n];
    assert!(change.valid <= valid && change.system <= system && change.commit <= commit, "{context}");
    match (word.as_str(), row) {
        ("set", Some(row)) => {
            let shown = row[1 + column as usize].map_or("NULL".into(), |v| v.to_string());
            assert_eq!(*value, shown, "{context}");
            assert_eq!(
                with_mark(m, n, column, key, at),
                Some(Some(MARK)),
                "not what the row shows: {context}"
            );
        }
        ("deleted", None) if change.act == Act::Delete => {
            assert_eq!(with_mark(m, n, column, key, at), Some(Some(MARK)), "not what ended it: {context}");
        }
        ("deleted", None) => assert_eq!(change.previous, Some(key), "{context}"),
        ("truncated", None) => assert_eq!(change.act, Act::Truncate, "{context}"),
        _ => panic!("{context}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn b2_b5_the_named_event_is_the_one_the_row_shows(
        m in model(Shape { changes_max: 16, ..Shape::everything() }),
        points in prop::collection::vec((0i64..8, 0i64..8, 1u64..4), 6),
    ) {
        let session = Session::new(Arc::new(store_of(&m)), Settings::default(), Arc::new(|| 3)).unwrap();
        for (valid, system, commit) in points {
            let at = (if valid == 7 { FOREVER } else { valid }, if system == 7 { FOREVER } else { system }, commit);
            for key in m.keys() {
                (0..m.columns).for_each(|column| check(&m, &session, key, column, at));
            }
        }
    }
}

/// An empty answer says why, in words.
#[test]
fn an_empty_answer_has_its_reason() {
    let f = Fixture::new();
    for (asked, reason) in [
        ("'person', 7, 'name'", "there are no events of key 7 of person"),
        ("'orders', 'eu', 1.5, 'amount'", "there are no events of key eu, 1.5 of orders"),
        ("'person', NULL, 'name'", "there are no events of key NULL of person"),
        (
            "'person', 1, 'name', '2024-05-01 09:00:00'",
            "key 1 of person first holds at 2024-05-01T10:01:00Z: there was no row at 2024-05-01T09:00:00Z",
        ),
        (
            "'person', 1, 'name', '2024-05-01 12:10:00', '2024-05-01 10:00:00'",
            "key 1 of person was first known at 2024-05-01T10:05:00Z, not yet at 2024-05-01T10:00:00Z",
        ),
        ("'releases', 'app', 'state', 9", "key app of releases first holds at 10: there was no row at 9"),
    ] {
        let (found, said) = ask(&f.session, &format!("SELECT * FROM why({asked})"));
        assert_eq!((found.len(), said), (0, vec![reason.to_owned()]), "{asked}");
    }
}

/// The clocks of the session stand where the arguments say nothing.
#[test]
fn the_session_says_when() {
    let f = Fixture::new();
    let name =
        |arguments: &str| ask(&f.session, &format!("SELECT name FROM why('person', 1, 'name'{arguments})")).0;
    assert_eq!(name(""), [["NULL"]], "deleted at last");
    ask(&f.session, "SET asof.valid_time = '2024-05-01 12:10:00'");
    assert_eq!(name(""), [["v3"]]);
    assert_eq!(name(", '2024-05-01 12:20:00'"), [["v2"]]);
    ask(&f.session, "SET asof.system_time = '2024-05-01 12:22:00'");
    assert_eq!(name(""), [["v1"]]);
    assert_eq!(name(", '2024-05-01 12:10:00', NULL"), [["v3"]]);
}

/// What is stored by now is all there is: the word is no instant after the last commit.
#[test]
fn d3_a_difference_with_now_needs_no_notice() {
    let f = Fixture::new();
    let diff = |to: &str| {
        let diff = format!("SELECT * FROM belief_diff('orders', '2024-05-01 13:00:30', {to})");
        let (mut rows, said) = ask(&f.session, &diff);
        rows.sort();
        (rows, said)
    };
    let (rows, said) = diff("'now'");
    assert!(!rows.is_empty() && said.is_empty(), "{said:?}");
    let (same, said) = diff("'2024-05-01 23:00:00'");
    assert_eq!((same, said.len()), (rows, 1), "an instant after the last commit is told");
}
