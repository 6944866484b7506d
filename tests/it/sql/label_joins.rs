//! Joins by point in time against the naive model, with more labels than one piece (rules B2, D5).

use super::fixture::{rows, runtime};
use super::model::answer;
use super::model_store::{Row, row_at, store_of};
use asofdb::sql::{Params, Session, Settings};
use asofdb::{IntakeOptions, Store};
use asofdb_storage::engine::Engine;
use asofdb_storage::time::FOREVER;
use asofdb_testkit::generate::model;
use asofdb_testkit::{Model, Shape};
use proptest::prelude::*;
use std::sync::Arc;

/// A row of the left side: key, valid time, system time, commit.
type Label = [Option<i64>; 4];

fn labels() -> impl Strategy<Value = Vec<Label>> {
    let part = |last: i64| prop_oneof![6 => (0..=last).prop_map(Some), 1 => Just(None)];
    let label = (part(4), part(7), part(7), part(4)).prop_map(|(k, v, s, c)| [k, v, s, c.map(|c| c.min(3))]);
    prop::collection::vec(label, 1..24)
}

/// Which clocks go by row, and whether rows without a partner stay.
#[derive(Clone, Copy, Debug)]
struct Join {
    valid: bool,
    system: bool,
    commit: bool,
    left: bool,
}

impl Join {
    fn sql(self, labels: &[Label]) -> String {
        let cell = |c: &Option<i64>| c.map_or("NULL".to_owned(), |c| c.to_string());
        let row = |(n, label): (usize, &Label)| {
            format!("({n}, {})", label.iter().map(cell).collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = labels.iter().enumerate().map(row).collect();
        let instant = |axis: &str, column: &str| {
            format!(" FOR {axis} AS OF to_timestamp_micros(CAST(l.{column} AS BIGINT))")
        };
        let clocks = [
            if self.valid { instant("VALID_TIME", "v") } else { String::new() },
            if self.system { instant("SYSTEM_TIME", "s") } else { String::new() },
            if self.commit { " FOR COMMIT AS OF CAST(l.c AS BIGINT)".to_owned() } else { String::new() },
        ];
        format!(
            "SELECT l.n, f.* FROM (VALUES {}) AS l (n, k, v, s, c) {}JOIN t{} f ON f.key = CAST(l.k AS BIGINT)",
            rows.join(", "),
            if self.left { "LEFT " } else { "" },
            clocks.concat(),
        )
    }

    fn expected(self, m: &Model, labels: &[Label]) -> Vec<(String, Row)> {
        let mut rows: Vec<Row> = Vec::new();
        for (n, [key, valid, system, commit]) in labels.iter().enumerate() {
            let bound = |goes: bool, time: &Option<i64>| if goes { *time } else { Some(FOREVER) };
            let commit = if self.commit { commit.map(|c| c as u64) } else { Some(u64::MAX) };
            let asked = (*key, bound(self.valid, valid), bound(self.system, system), commit);
            let found = match asked {
                (Some(k), Some(v), Some(s), Some(c)) => row_at(m, k as u32, v, s, c),
                _ => None,
            };
            let none = vec![None; m.columns as usize + 1];
            if let Some(found) = found.or(self.left.then_some(none)) {
                rows.push(std::iter::once(Some(n as i64)).chain(found).collect());
            }
        }
        rows.sort();
        rows.into_iter().map(|row| (String::new(), row)).collect()
    }
}

/// Pieces of `rows` labels, with all keys looked up or none.
fn session(engine: &Engine, rows: usize, singles: usize) -> Session {
    let settings = Settings { label_rows_max: rows, label_single_keys: singles, ..Settings::default() };
    Session::new(Arc::new(engine.clone()), settings, Arc::new(|| 3)).unwrap()
}

fn check(m: &Model, engine: &Engine, labels: &[Label], state: &str) {
    for (rows, singles) in [(3, 0), (1, 0), (5, 64)] {
        let session = session(engine, rows, singles);
        for number in 1..16 {
            let [valid, system, commit, left] = [1, 2, 4, 8].map(|bit| number & bit != 0);
            if !(valid || system || commit) {
                continue;
            }
            let join = Join { valid, system, commit, left };
            let sql = join.sql(labels);
            assert_eq!(answer(&session, &sql), join.expected(m, labels), "{state}, {rows}: {sql}\n{m:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn d5_joins_of_many_labels_answer_as_the_model(
        m in model(Shape { changes_max: 24, ..Shape::everything() }),
        labels in labels(),
    ) {
        let engine = store_of(&m);
        check(&m, &engine, &labels, "as taken in");
        engine.compact().unwrap();
        check(&m, &engine, &labels, "compacted");
        engine.rebuild().unwrap();
        check(&m, &engine, &labels, "rebuilt");
    }
}

/// A key column that was a number once: texts that stand for one number are one key, and only the text that the row
/// shows is equal to it.
#[test]
fn b14_keys_that_were_numbers_once_are_found_as_the_texts_they_are_now() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store")).unwrap();
    let file = dir.path().join("lines");
    let keys = ["5.00", "7", "\"abc\"", "\"8.50\"", "\"9\"", "\"x\"", "\"9.10\""];
    let line = |key: &&str| format!("{{\"id\":{key},\"v\":1}}");
    std::fs::write(&file, keys.iter().map(line).collect::<Vec<_>>().join("\n")).unwrap();
    let options = IntakeOptions {
        format: Some("json".into()),
        table: Some("t".into()),
        keys: vec!["id".parse().unwrap()],
        valid: Some("v".parse().unwrap()),
        ..IntakeOptions::default()
    };
    store.ingest_files(&[file.to_str().unwrap()], &options).unwrap();
    let runtime = runtime();
    let labels = ["5", "5.0", "5.00", "7", "7.00", "abc", "8.5", "8.50", "9", "9.0", "x", "y", "9.1", "9.10"];
    let values: Vec<String> = labels.iter().map(|l| format!("('{l}')")).collect();
    let ask = |session: &Session, sql: &str| {
        let batches = runtime.block_on(async { session.run(sql, &Params::none()).await?.collect().await });
        let mut rows: Vec<String> = rows(&batches.unwrap()).into_iter().map(|r| r.join("|")).collect();
        rows.sort();
        rows
    };
    for (rows, singles) in [(2, 0), (4, 64), (100, 0)] {
        let session = session(store.engine(), rows, singles);
        let sides = |clause: &str, kind: &str| {
            let values = values.join(", ");
            let left = format!("(SELECT id, 9 AS at FROM (VALUES {values}) AS x (id)) l");
            format!("SELECT l.id, f.id FROM {left} {kind} JOIN t {clause} f ON f.id = l.id")
        };
        for kind in ["", "LEFT"] {
            let found = ask(&session, &sides("FOR VALID_TIME AS OF l.at", kind));
            assert_eq!(found, ask(&session, &sides("", kind)), "{kind}, {rows}, as a join of all rows");
            assert!(found.contains(&"abc|abc".to_owned()), "{found:?}");
        }
    }
}
