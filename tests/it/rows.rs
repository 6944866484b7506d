//! Rows that a program hands over: events, and versions of whole tables (rule B12).

use crate::memory::Memory;
use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use asofdb::intake::{RowMessages, Sink, run};
use asofdb::time::{FOREVER, ValidTime};
use asofdb::{Error, IntakeOptions, IntakeReport};
use asofdb_storage::value::Value;
use std::ops::ControlFlow;
use std::sync::Arc;

fn batch(rows: &[(i64, &str)]) -> RecordBatch {
    let schema =
        Schema::new(vec![Field::new("id", DataType::Int64, false), Field::new("name", DataType::Utf8, true)]);
    let ids = Int64Array::from_iter_values(rows.iter().map(|r| r.0));
    let names = StringArray::from_iter_values(rows.iter().map(|r| r.1));
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(ids), Arc::new(names)]).unwrap()
}

fn version(store: &Memory, at: i64, rows: &[(i64, &str)]) -> Result<IntakeReport, Error> {
    let (mut messages, options) =
        RowMessages::version("t", &["id"], ValidTime(at), &[batch(rows)], &store.catalog())?;
    run(store, &mut messages, &options, &mut |_| ControlFlow::Continue(()))
}

fn rows_at(store: &Memory, at: i64) -> Vec<(i64, String)> {
    let mut out: Vec<_> = store
        .rows_at("t", at, FOREVER)
        .into_iter()
        .map(|r| match (&r["id"], &r["name"]) {
            (Some(Value::Int(id)), Some(Value::Text(name))) => (*id, name.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    out.sort();
    out
}

fn named(rows: &[(i64, &str)]) -> Vec<(i64, String)> {
    rows.iter().map(|(id, name)| (*id, (*name).to_owned())).collect()
}

#[test]
fn b12_versions_replace_all_rows_in_any_order_of_arrival() {
    let versions: [(i64, &[(i64, &str)]); 3] =
        [(100, &[(1, "a"), (2, "b")]), (200, &[(2, "b"), (3, "c")]), (300, &[(3, "d")])];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
        let store = Memory::default();
        for i in order {
            version(&store, versions[i].0, versions[i].1).unwrap();
        }
        assert_eq!(rows_at(&store, 99), []);
        for (at, rows) in versions {
            assert_eq!(rows_at(&store, at), named(rows), "order {order:?}, at {at}");
        }
    }
}

#[test]
fn b12_a_version_that_comes_again_replaces_the_one_before() {
    let store = Memory::default();
    version(&store, 100, &[(1, "a"), (2, "b")]).unwrap();
    version(&store, 100, &[(2, "x")]).unwrap();
    assert_eq!(rows_at(&store, 100), named(&[(2, "x")]));
}

#[test]
fn b12_a_key_that_comes_twice_is_named_and_nothing_is_stored() {
    let store = Memory::default();
    let e = version(&store, 100, &[(1, "a"), (2, "b"), (1, "c")]).unwrap_err();
    assert!(e.message().contains("id = 1") && e.message().contains("rows 0 and 2"), "{e}");
    assert!(store.0.lock().unwrap().commits.is_empty());
}

#[test]
fn batches_are_events_and_each_call_is_a_stream() {
    let store = Memory::default();
    let options = IntakeOptions {
        table: Some("t".into()),
        keys: vec!["id".parse().unwrap()],
        valid: Some("id".parse().unwrap()),
        ..Default::default()
    };
    for name in ["a", "b"] {
        let mut messages = RowMessages::events(&[batch(&[(1, name)])], &options, &store.catalog()).unwrap();
        let report = run(&store, &mut messages, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(report.accepted, 1);
    }
    assert_eq!(store.0.lock().unwrap().catalog.streams.len(), 2);
    assert_eq!(rows_at(&store, FOREVER), named(&[(1, "b")]), "the later stream wins a tie");
    let nameless = IntakeOptions::default();
    assert!(RowMessages::events(&[batch(&[])], &nameless, &store.catalog()).is_err());
}
