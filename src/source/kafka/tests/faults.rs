//! Rows K1, K4 to K6, K9, K10 and S3 of the fault matrix, as far as a mock cluster has them.

use super::cluster::{Cluster, ask, rows, store, take};
use crate::intake::KafkaMessages;
use crate::source::Until;
use crate::{ErrorKind, Store};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Takes until the table has so many rows, or for half a minute.
fn take_until(store: &Store, messages: &mut KafkaMessages, rows_wanted: u64) -> u64 {
    let (from, mut taken) = (Instant::now(), 0);
    while taken < rows_wanted && from.elapsed() < Duration::from_secs(30) {
        taken +=
            store.ingest_messages(messages, &rows(), &mut |_| ControlFlow::Continue(())).unwrap().accepted;
    }
    taken
}

#[test]
fn s3_brokers_that_go_away_and_come_back_cost_no_message() {
    let cluster = Cluster::with(&[("rows", 2)]);
    cluster.put_rows("rows", 0, 0..100);
    let (_dir, store) = store();
    let mut options = cluster.options(&["rows"]);
    options.until = Until::Stopped;
    let mut messages = KafkaMessages::open(options, &rows(), &store.catalog()).unwrap();
    assert_eq!(take_until(&store, &mut messages, 100), 100);
    cluster.mock.broker_down(1).unwrap();
    let mut away = false;
    let from = Instant::now();
    while !away && from.elapsed() < Duration::from_secs(30) {
        store
            .ingest_messages(&mut messages, &rows(), &mut |p| {
                away |= p.away.is_some();
                ControlFlow::Continue(())
            })
            .unwrap();
    }
    assert!(away, "a look at the progress says that the brokers are away");
    cluster.mock.broker_up(1).unwrap();
    cluster.put_rows("rows", 1, 100..150);
    assert_eq!(take_until(&store, &mut messages, 50), 50);
    assert_eq!(ask(&store, "SELECT count(*) FROM t"), ["150"]);
    assert_eq!(ask(&store, "SELECT count(*) FROM history('t')"), ["150"]);
}

#[test]
fn s3_brokers_that_are_not_there_at_the_start_are_an_error_that_names_them() {
    let cluster = Cluster::with(&[("rows", 1)]);
    cluster.mock.broker_down(1).unwrap();
    let (_dir, store) = store();
    let mut options = cluster.options(&["rows"]);
    options.patience = Some(Duration::from_secs(1));
    let e = take(&store, options, &rows()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Source);
    assert!(e.message().contains("topic rows: no answer in 1 s"), "{e}");
    assert!(e.hints().iter().any(|h| h.contains("bootstrap.servers")), "{:?}", e.hints());
}

#[test]
fn k9_errors_that_pass_are_waited_for() {
    let cluster = Cluster::with(&[("rows", 1)]);
    cluster.put_rows("rows", 0, 0..20);
    use RDKafkaRespErr as Err;
    cluster.mock.request_errors(
        RDKafkaApiKey::Fetch,
        &[
            Err::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
            Err::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
            Err::RD_KAFKA_RESP_ERR__TRANSPORT,
        ],
    );
    let (_dir, store) = store();
    let report = take(&store, cluster.options(&["rows"]), &rows()).unwrap();
    assert_eq!((report.delivered, report.accepted), (20, 20));
}

#[test]
fn k9_a_refusal_ends_with_its_name() {
    let cluster = Cluster::with(&[("rows", 1)]);
    cluster.put_rows("rows", 0, 0..20);
    cluster.mock.topic_error("rows", RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED).unwrap();
    let (_dir, store) = store();
    let e = take(&store, cluster.options(&["rows"]), &rows()).unwrap_err();
    assert!(e.message().contains(&RDKafkaErrorCode::TopicAuthorizationFailed.to_string()), "{e}");
    assert!(!e.message().contains("no answer"), "it is not waited for: {e}");
    assert_eq!(store.commit().0, 0);
}

#[test]
fn k9_a_refusal_while_reading_ends_with_its_name() {
    let cluster = Cluster::with(&[("rows", 1)]);
    cluster.put_rows("rows", 0, 0..20);
    let (_dir, store) = store();
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    cluster.mock.request_errors(RDKafkaApiKey::Fetch, &[refused; 3]);
    let e = take(&store, cluster.options(&["rows"]), &rows()).unwrap_err();
    assert!(e.message().contains(&RDKafkaErrorCode::TopicAuthorizationFailed.to_string()), "{e}");
}

#[test]
fn k4_an_offset_that_is_gone_while_reading_stops_the_intake() {
    let cluster = Cluster::with(&[("rows", 1)]);
    cluster.put_rows("rows", 0, 0..20);
    let (_dir, store) = store();
    let gone = RDKafkaRespErr::RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
    cluster.mock.request_errors(RDKafkaApiKey::Fetch, &[gone; 3]);
    let e = take(&store, cluster.options(&["rows"]), &rows()).unwrap_err();
    assert!(e.message().contains("messages from offset 0 on are gone"), "{e}");
    assert!(e.hints()[0].contains("accept-gap STORE 'rows/0'"), "{:?}", e.hints());
}

#[test]
fn k6_a_topic_that_was_made_anew_stops_until_that_is_accepted() {
    let (_dir, store) = store();
    // A cluster that has more messages than the one before, and one that has fewer.
    for (round, (old, new)) in [(20, 30), (20, 7)].into_iter().enumerate() {
        let topic = format!("rows{round}");
        let before = Cluster::with(&[(&topic, 1)]);
        before.put_rows(&topic, 0, 0..old);
        take(&store, before.options(&[&topic]), &rows()).unwrap();
        drop(before);
        let after = Cluster::with(&[(&topic, 1)]);
        after.put_rows(&topic, 0, 1_000..1_000 + new);
        let e = take(&store, after.options(&[&topic]), &rows()).unwrap_err();
        assert!(e.message().contains("is another one now"), "{e}");
        assert!(e.hints()[0].contains(&format!("accept-gap STORE '{topic}/0'")), "{:?}", e.hints());
        store.accept_gap(&format!("{topic}/0")).unwrap();
        let report = take(&store, after.options(&[&topic]), &rows()).unwrap();
        assert_eq!(report.accepted, u64::from(new), "{report}");
        let position = &store.catalog().positions[&format!("source/{topic}/0#1/#0")];
        assert_eq!(position["stream_generation"], 1, "{position}");
        let again = take(&store, after.options(&[&topic]), &rows()).unwrap();
        assert_eq!(again.delivered, 0);
        after.put_rows(&topic, 0, 2_000..2_003);
        assert_eq!(take(&store, after.options(&[&topic]), &rows()).unwrap().accepted, 3);
    }
}

#[test]
fn k6_another_message_at_the_place_of_the_last_one_is_noticed() {
    // The identity of the cluster tells nothing here: only the message does.
    let cluster = Cluster::with(&[("a", 1), ("b", 1)]);
    cluster.put_rows("a", 0, 0..20);
    cluster.put_rows("b", 0, 500..530);
    let (_dir, store) = store();
    take(&store, cluster.options(&["a"]), &rows()).unwrap();
    let stored = store.catalog().positions.clone();
    let (_key, value) = stored.iter().find(|(k, _)| k.contains("source/a/0")).unwrap();
    let mut changed = value.clone();
    changed["digest"] = "00000000deadbeef".into();
    let key = "source/a/0#0/#0".to_owned();
    let request =
        asofdb_storage::engine::CommitRequest { positions: vec![(key, changed)], ..Default::default() };
    store.engine().commit(request).unwrap();
    let e = take(&store, cluster.options(&["a"]), &rows()).unwrap_err();
    assert!(e.message().contains("its message at offset 19 is not the one taken"), "{e}");
}

#[test]
fn k1_a_stream_read_from_an_older_offset_counts_repeats() {
    let cluster = Cluster::with(&[("rows", 1)]);
    cluster.put_rows("rows", 0, 0..10);
    let (_dir, store) = store();
    let mut first = KafkaMessages::open(cluster.options(&["rows"]), &rows(), &store.catalog()).unwrap();
    // Opened before anything was taken: it does not know of the other run.
    take(&store, cluster.options(&["rows"]), &rows()).unwrap();
    let report = store.ingest_messages(&mut first, &rows(), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((report.delivered, report.accepted, report.repeated()), (10, 0, 10));
    assert_eq!(ask(&store, "SELECT count(*) FROM history('t')"), ["10"]);
}

#[test]
fn an_unknown_topic_names_those_there_are() {
    let cluster = Cluster::with(&[("orders", 1)]);
    cluster.mock.topic_error("ordres", RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART).unwrap();
    let (_dir, store) = store();
    let e = take(&store, cluster.options(&["ordres"]), &rows()).unwrap_err();
    assert!(e.message().starts_with("topic ordres"), "{e}");
    assert!(e.hints().iter().any(|h| h.contains("did you mean orders?")), "{:?}", e.hints());
}

#[test]
fn an_unknown_property_is_named_and_its_value_is_not() {
    let cluster = Cluster::with(&[("rows", 1)]);
    let (_dir, store) = store();
    let mut options = cluster.options(&["rows"]);
    options.set("sasl.pasword", "canary", &|_| None).unwrap();
    let e = take(&store, options, &rows()).unwrap_err();
    let text = format!("{e} {:?}", e.hints());
    assert_eq!(e.kind(), ErrorKind::Usage);
    assert!(text.contains("sasl.pasword") && !text.contains("canary"), "{text}");
}

#[test]
fn k10_partitions_that_are_added_are_found() {
    let cluster = Cluster::with(&[("shop.a", 1)]);
    cluster.put_rows("shop.a", 0, 0..10);
    let (_dir, store) = store();
    let mut options = cluster.options(&["shop.*"]);
    options.until = Until::Stopped;
    let mut messages = KafkaMessages::open(options, &rows(), &store.catalog()).unwrap();
    assert_eq!(take_until(&store, &mut messages, 10), 10);
    // A mock cluster cannot add partitions to a topic; a new topic that the star covers is the same to us.
    cluster.mock.create_topic("shop.b", 2, 1).unwrap();
    cluster.put_rows("shop.b", 1, 100..120);
    cluster.put_rows("shop.a", 0, 10..15);
    messages.look_now();
    assert_eq!(take_until(&store, &mut messages, 25), 25);
    assert_eq!(ask(&store, "SELECT count(*) FROM history('t')"), ["35"]);
}
