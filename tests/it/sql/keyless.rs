//! Functions over a table without a key, whose rows are counted and not told apart (rule B15).

use super::fixture::{rows, runtime};
use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use asofdb::sql::{Params, Session, Settings};
use asofdb::time::format_instant;
use asofdb::{IntakeOptions, Store};
use std::sync::Arc;

fn batch(hits: &[(&str, i64)]) -> RecordBatch {
    let fields = [Field::new("page", DataType::Utf8, true), Field::new("hour", DataType::Int64, true)];
    let pages = StringArray::from_iter_values(hits.iter().map(|h| h.0));
    let hours = Int64Array::from_iter_values(hits.iter().map(|h| h.1));
    RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![Arc::new(pages), Arc::new(hours)])
        .unwrap()
}

#[test]
fn b15_beliefs_differ_by_how_many_equal_rows_they_hold() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s")).unwrap();
    let options = IntakeOptions {
        table: Some("hits".into()),
        valid: Some("hour".parse().unwrap()),
        ..IntakeOptions::default()
    };
    store.ingest(&[batch(&[("a", 1), ("a", 1), ("b", 1)])], &options).unwrap();
    store.ingest(&[batch(&[("a", 1), ("b", 2)])], &options).unwrap();
    let at: Vec<String> =
        store.commits().unwrap().iter().map(|c| format!("'{}'", format_instant(c.at))).collect();
    let session =
        Session::new(Arc::new(store.engine().clone()), Settings::default(), Arc::new(|| 0)).unwrap();
    let runtime = runtime();
    let ask = |sql: &str| {
        let answer = runtime.block_on(async { session.run(sql, &Params::none()).await?.collect().await });
        answer.map(|batches| rows(&batches).into_iter().map(|r| r.join("|")).collect::<Vec<_>>())
    };
    let columns = "page, __START_AT, __END_AT, _change_type";
    let diff =
        |a: &str, b: &str| ask(&format!("SELECT {columns} FROM belief_diff('hits', {a}, {b}) ORDER BY page"));
    assert_eq!(diff(&at[0], &at[1]).unwrap(), ["a|1|NULL|added", "b|2|NULL|added"]);
    assert_eq!(diff(&at[1], &at[0]).unwrap(), ["a|1|NULL|removed", "b|2|NULL|removed"]);
    assert_eq!(ask("SELECT page, count(*) FROM hits GROUP BY page ORDER BY page").unwrap(), ["a|3", "b|2"]);
    assert_eq!(ask("SELECT count(*) FROM history('hits')").unwrap(), ["5"]);
    for (call, wanted) in [("changes('hits', 1)", "has no key"), ("timeline('hits', 'a')", "has no key")] {
        let e = ask(&format!("SELECT * FROM {call}")).unwrap_err();
        assert!(e.message.contains(wanted) && e.hint.is_some(), "{call}: {e:?}");
    }
}
