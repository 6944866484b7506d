//! SQL against the naive model: what each clause and each function of beliefs must answer, found by
//! looping over events (rules B2, D1, D2).

use super::fixture::runtime;
use super::model_store::{Row, interval_row, interval_rows, rows_at, store_of};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use asofdb::sql::{Params, Session, Settings};
use asofdb_storage::time::FOREVER;
use asofdb_testkit::generate::model;
use asofdb_testkit::{Change, Model, Shape};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(runtime);

/// What a clause asks of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    Nothing,
    AsOf(i64),
    FromTo(i64, i64),
    Between(i64, i64),
    ContainedIn(i64, i64),
    All,
}

fn instant(us: i64) -> String {
    format!("'1970-01-01T00:00:00.{us:06}Z'")
}

impl Ask {
    fn clause(self, axis: &str) -> String {
        match self {
            Ask::Nothing => String::new(),
            Ask::AsOf(t) => format!(" FOR {axis} AS OF {}", instant(t)),
            Ask::FromTo(a, b) => format!(" FOR {axis} FROM {} TO {}", instant(a), instant(b)),
            Ask::Between(a, b) => format!(" FOR {axis} BETWEEN {} AND {}", instant(a), instant(b)),
            Ask::ContainedIn(a, b) => format!(" FOR {axis} CONTAINED IN ({}, {})", instant(a), instant(b)),
            Ask::All => format!(" FOR {axis} ALL"),
        }
    }

    fn point(self) -> Option<i64> {
        match self {
            Ask::Nothing => Some(FOREVER),
            Ask::AsOf(t) => Some(t),
            _ => None,
        }
    }

    /// Rule D2, over intervals `[start, end)`.
    fn takes(self, start: i64, end: i64) -> bool {
        match self {
            Ask::Nothing => end == FOREVER,
            Ask::AsOf(t) => start <= t && t < end,
            Ask::FromTo(a, b) => a < b && start < b && a < end,
            Ask::Between(a, b) => start <= b && a < end,
            Ask::ContainedIn(a, b) => a <= start && end <= b,
            Ask::All => true,
        }
    }
}

fn ask() -> impl Strategy<Value = Ask> {
    let two = || (0i64..7, 0i64..7).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop_oneof![
        2 => Just(Ask::Nothing),
        3 => (0i64..7).prop_map(Ask::AsOf),
        2 => two().prop_map(|(a, b)| Ask::FromTo(a, b)),
        2 => two().prop_map(|(a, b)| Ask::Between(a, b)),
        2 => two().prop_map(|(a, b)| Ask::ContainedIn(a, b)),
        1 => Just(Ask::All),
    ]
}

fn ints(batch: &RecordBatch) -> Vec<Row> {
    let number = |c: &ArrayRef| match c.data_type() {
        DataType::Utf8 => None,
        _ => Some(cast(c, &DataType::Int64).unwrap()),
    };
    let columns: Vec<ArrayRef> = batch.columns().iter().filter_map(number).collect();
    let cell = |c: &ArrayRef, row: usize| {
        let c = c.as_primitive::<Int64Type>();
        c.is_valid(row).then(|| c.value(row))
    };
    (0..batch.num_rows()).map(|row| columns.iter().map(|c| cell(c, row)).collect()).collect()
}

/// The numbers of an answer with the text of each row's last text column, sorted.
pub fn answer(session: &Session, sql: &str) -> Vec<(String, Row)> {
    let batches = RUNTIME.block_on(async { session.run(sql, &Params::none()).await?.collect().await });
    let batches = batches.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let mut rows = Vec::new();
    for batch in &batches {
        let word = batch.columns().iter().rfind(|c| *c.data_type() == DataType::Utf8);
        let word = |row| word.map_or(String::new(), |c| c.as_string::<i32>().value(row).to_owned());
        rows.extend(ints(batch).into_iter().enumerate().map(|(i, row)| (word(i), row)));
    }
    rows.sort();
    rows
}

fn plain(mut rows: Vec<Row>) -> Vec<(String, Row)> {
    rows.sort();
    rows.into_iter().map(|r| (String::new(), r)).collect()
}

fn question(m: &Model, session: &Session, valid: Ask, system: Ask, commit: u64) {
    let sql = format!(
        "SELECT * FROM t{}{} FOR COMMIT AS OF {commit}",
        valid.clause("VALID_TIME"),
        system.clause("SYSTEM_TIME")
    );
    let wanted = match (valid.point(), system.point()) {
        (Some(v), Some(s)) => rows_at(m, v, s, commit),
        _ => {
            let all = interval_rows(m, commit).into_iter();
            let taken = all.filter(|([a, b, c, d], _)| valid.takes(*a, *b) && system.takes(*c, *d));
            taken.map(|(_, row)| row).collect()
        }
    };
    assert_eq!(answer(session, &sql), plain(wanted), "{sql}\n{m:?}");
}

/// What each commit of `from..=to` changed in the latest state of the latest belief.
fn changed(m: &Model, from: u64, to: u64) -> Vec<(String, Row)> {
    let mut out = Vec::new();
    for commit in from..=to {
        let state = |commit| rows_at(m, FOREVER, FOREVER, commit);
        let (before, after) = (state(commit - 1), state(commit));
        let of = |rows: &[Row], key: Option<i64>| rows.iter().find(|r| r[0] == key).cloned();
        let mut push = |word: &str, row: Row| {
            out.push((word.to_owned(), row.into_iter().chain([Some(commit as i64)]).collect()))
        };
        for key in m.keys().into_iter().map(|k| Some(k as i64)) {
            match (of(&before, key), of(&after, key)) {
                (None, Some(new)) => push("insert", new),
                (Some(old), None) => push("delete", old),
                (Some(old), Some(new)) if old != new => {
                    push("update_preimage", old);
                    push("update_postimage", new);
                }
                _ => {}
            }
        }
    }
    out.sort();
    out
}

fn changes(m: &Model, session: &Session, from: u64, to: u64) {
    let sql = format!("SELECT * EXCEPT (_commit_timestamp) FROM changes('t', {from}, {to})");
    assert_eq!(answer(session, &sql), changed(m, from, to), "{sql}\n{m:?}");
}

fn belief_diff(m: &Model, session: &Session, a: i64, b: i64) {
    let belief = |system| -> Vec<Row> {
        let rows = |key: u32| {
            let versions = m.versions(key, system, u64::MAX, None).into_iter();
            versions.map(move |(start, end, image)| interval_row(key, image, &[start, end]))
        };
        m.keys().into_iter().flat_map(rows).collect()
    };
    let (old, new) = (belief(a), belief(b));
    let only = |these: &[Row], those: &[Row], word: &str| -> Vec<(String, Row)> {
        let missing = these.iter().filter(|r| !those.contains(r));
        missing.map(|r| (word.to_owned(), r.clone())).collect()
    };
    let mut wanted = only(&old, &new, "removed");
    wanted.extend(only(&new, &old, "added"));
    wanted.sort();
    let sql = format!("SELECT * FROM belief_diff('t', {}, {})", instant(a), instant(b));
    assert_eq!(answer(session, &sql), wanted, "{sql}\n{m:?}");
}

fn timeline(m: &Model, session: &Session, key: u32) {
    let rows = interval_rows(m, u64::MAX).into_iter().map(|(_, row)| row);
    let wanted = plain(rows.filter(|row| row[0] == Some(key as i64)).collect());
    let sql = format!("SELECT * FROM timeline('t', {key})");
    assert_eq!(answer(session, &sql), wanted, "{sql}\n{m:?}");
}

fn session_over(m: &Model) -> Session {
    // The running clock stands in the middle of valid time: no clause is not `now`.
    Session::new(Arc::new(store_of(m)), Settings::default(), Arc::new(|| 3)).unwrap()
}

/// A late event on an old key changes the row that the key became, over two key changes.
#[test]
fn b8_changes_follow_key_changes() {
    let moved = |from: u32, to: u32, valid: i64, c0: i64| Change {
        previous: Some(from),
        ..Change::partial(to, valid, 0, &[(0, c0)])
    };
    let late = Change { commit: 2, ..Change::partial(0, 2, 0, &[(1, 7)]) };
    let gone = Change { commit: 3, ..Change::delete(0, 3, 0) };
    let mut m = Model {
        columns: 2,
        system_declared: true,
        changes: vec![
            Change::upsert(0, 1, 0, &[(0, 1), (1, 1)]),
            moved(0, 1, 4, 2),
            moved(1, 2, 5, 3),
            late,
            gone,
        ],
    };
    (0..).zip(&mut m.changes).for_each(|(position, change)| change.position = position);
    let session = session_over(&m);
    let second = changed(&m, 2, 2);
    assert_eq!(second.len(), 2, "{second:?}");
    assert_eq!(second[0].1, [2, 3, 7, 2].map(Some), "{second:?}");
    changes(&m, &session, 2, 2);
    changes(&m, &session, 3, 3);
    changes(&m, &session, 1, 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn d1_d2_sql_answers_as_the_model(
        m in model(Shape { changes_max: 16, ..Shape::everything() }),
        asked in prop::collection::vec((ask(), ask(), 0u64..4), 8),
        between in (0i64..7, 0i64..7),
    ) {
        let session = session_over(&m);
        for (valid, system, commit) in asked {
            question(&m, &session, valid, system, commit);
        }
        (1..=3).for_each(|c| changes(&m, &session, c, c));
        changes(&m, &session, 1, 3);
        belief_diff(&m, &session, between.0, between.1);
        timeline(&m, &session, (between.0 % 3) as u32);
    }
}
