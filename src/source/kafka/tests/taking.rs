//! Everything goes well.

use super::cluster::{Cluster, ask, rows, store, take};
use crate::intake::KafkaMessages;
use crate::options::IntakeOptions;
use crate::source::{Start, Until};
use std::ops::ControlFlow;

#[test]
fn all_partitions_are_taken_once_and_a_second_run_goes_on() {
    let cluster = Cluster::with(&[("rows", 3)]);
    for p in 0..3_u32 {
        cluster.put_rows("rows", p as i32, p * 1_000..p * 1_000 + 700);
    }
    let (_dir, store) = store();
    let first = take(&store, cluster.options(&["rows"]), &rows()).unwrap();
    assert_eq!((first.delivered, first.accepted), (2_100, 2_100));
    assert!(first.notices.iter().any(|n| n == "rows: read as json"), "{:?}", first.notices);
    assert_eq!(ask(&store, "SELECT count(*), min(id), max(id) FROM t"), ["2100 0 2699"]);
    let places =
        "SELECT _stream, min(_position), max(_position), count(*) FROM history('t') GROUP BY 1 ORDER BY 1";
    assert_eq!(ask(&store, places), ["rows/0 0 699 700", "rows/1 0 699 700", "rows/2 0 699 700"]);

    let again = take(&store, cluster.options(&["rows"]), &rows()).unwrap();
    assert_eq!((again.delivered, again.commits), (0, 0));
    cluster.put_rows("rows", 1, 5_000..5_010);
    let more = take(&store, cluster.options(&["rows"]), &rows()).unwrap();
    assert_eq!((more.delivered, more.accepted, more.repeated()), (10, 10, 0));
    assert_eq!(ask(&store, "SELECT count(*) FROM t"), ["2110"]);
}

#[test]
fn several_topics_and_a_star_are_taken_into_the_tables_their_messages_name() {
    let cluster = Cluster::with(&[("shop.orders", 2), ("shop.users", 1), ("other", 1)]);
    let envelope = |table: &str, id: u32| {
        format!(
            r#"{{"before":null,"after":{{"id":{id}}},"source":{{"connector":"postgresql","db":"d","schema":"shop","table":"{table}","ts_ms":1}},"op":"c","ts_ms":2}}"#
        )
    };
    let key = |id: u32| format!(r#"{{"id":{id}}}"#);
    for id in 0..20 {
        let topic = if id % 4 == 0 { "shop.users" } else { "shop.orders" };
        let partition = if topic == "shop.users" { 0 } else { (id % 2) as i32 };
        cluster.put(topic, partition, &[(Some(&key(id)), Some(&envelope(&topic[5..], id)))]);
    }
    cluster.put_rows("other", 0, 0..5);
    let (_dir, store) = store();
    let report = take(&store, cluster.options(&["shop.*"]), &IntakeOptions::default()).unwrap();
    assert_eq!((report.delivered, report.accepted), (20, 20));
    assert_eq!(ask(&store, "SELECT count(*) FROM \"shop.orders\""), ["15"]);
    assert_eq!(ask(&store, "SELECT count(*) FROM \"shop.users\""), ["5"]);
}

#[test]
fn a_tombstone_deletes_by_its_key_even_before_the_format_is_known() {
    let cluster = Cluster::with(&[("t", 1)]);
    let row = |id: u32| format!(r#"{{"id":{id},"v":"x"}}"#);
    cluster.put("t", 0, &[(Some(r#"{"id":7}"#), None), (Some(r#"{"id":1}"#), Some(&row(1)))]);
    cluster.put("t", 0, &[(Some(r#"{"id":2}"#), Some(&row(2))), (Some(r#"{"id":1}"#), None)]);
    let (_dir, store) = store();
    let report = take(&store, cluster.options(&["t"]), &rows()).unwrap();
    assert_eq!((report.delivered, report.quarantined, report.repeated()), (4, 0, 0), "{report}");
    assert_eq!(ask(&store, "SELECT id FROM t"), ["2"]);
}

#[test]
fn only_tombstones_ask_for_a_format() {
    let cluster = Cluster::with(&[("t", 1)]);
    cluster.put("t", 0, &[(Some(r#"{"id":7}"#), None)]);
    let (_dir, store) = store();
    let e = take(&store, cluster.options(&["t"]), &rows()).unwrap_err();
    assert!(e.message().contains("t/0: the format of its messages is not known"), "{e}");
    let declared = IntakeOptions { format: Some("json".into()), ..rows() };
    let report = take(&store, cluster.options(&["t"]), &declared).unwrap();
    assert_eq!(report.delivered, 1);
}

#[test]
fn reading_begins_where_it_is_said_and_later_where_the_store_is() {
    for (start, expected) in
        [(Start::Beginning, 10), (Start::Last(3), 3), (Start::End, 0), (Start::Last(99), 10)]
    {
        let cluster = Cluster::with(&[("rows", 1)]);
        cluster.put_rows("rows", 0, 0..10);
        let (_dir, store) = store();
        let mut options = cluster.options(&["rows"]);
        options.start = start;
        let report = take(&store, options.clone(), &rows()).unwrap();
        assert_eq!(report.delivered, expected, "{start:?}");
        // What comes between two runs is taken although the first took nothing.
        cluster.put_rows("rows", 0, 10..15);
        let report = take(&store, options, &rows()).unwrap();
        assert_eq!(report.delivered, 5, "{start:?}");
    }
}

#[test]
fn a_reader_that_goes_on_keeps_its_connection_and_takes_what_comes() {
    let cluster = Cluster::with(&[("rows", 2)]);
    cluster.put_rows("rows", 0, 0..10);
    let (_dir, store) = store();
    let mut options = cluster.options(&["rows"]);
    options.until = Until::Stopped;
    let mut messages = KafkaMessages::open(options, &rows(), &store.catalog()).unwrap();
    let mut trigger = || {
        store.ingest_messages(&mut messages, &rows(), &mut |_| ControlFlow::Continue(())).unwrap().delivered
    };
    let mut taken = 0;
    for _ in 0..50 {
        taken += trigger();
        if taken == 10 {
            break;
        }
    }
    assert_eq!(taken, 10);
    cluster.put_rows("rows", 1, 100..105);
    for _ in 0..50 {
        taken += trigger();
        if taken == 15 {
            break;
        }
    }
    assert_eq!((taken, trigger()), (15, 0));
    assert_eq!(ask(&store, "SELECT count(*) FROM t"), ["15"]);
}

#[test]
fn a_message_that_is_put_aside_keeps_its_record_and_can_be_taken_later() {
    let cluster = Cluster::with(&[("rows", 1)]);
    let bad = r#"{"v":"no id"}"#;
    cluster.put("rows", 0, &[(None, Some(r#"{"id":1,"v":"a"}"#)), (None, Some(bad))]);
    cluster.put("rows", 0, &[(None, Some("no json")), (None, Some(r#"{"id":3,"v":"c"}"#))]);
    let (_dir, store) = store();
    let report = take(&store, cluster.options(&["rows"]), &rows()).unwrap();
    assert_eq!((report.delivered, report.accepted, report.quarantined), (4, 2, 2));
    let aside = store.quarantine().unwrap();
    let raw = |n: usize| String::from_utf8(aside[n].message.raw.clone()).unwrap();
    assert_eq!((aside[0].message.position, aside[1].message.position), (1, 2));
    assert!(raw(0).contains(r#""topic":"rows""#) && raw(0).contains(r#""key":null"#), "{}", raw(0));
    let by_v = IntakeOptions { keys: vec!["v".parse().unwrap()], table: Some("u".into()), ..rows() };
    let replayed = store.replay_quarantine(&[], &by_v).unwrap();
    assert_eq!((replayed.accepted, replayed.quarantined), (1, 1), "{replayed}");
    assert_eq!(ask(&store, "SELECT v FROM u"), ["no id"]);
}
