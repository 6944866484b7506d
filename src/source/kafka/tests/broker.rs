//! What a mock cluster does not have, on the broker that `ASOF_KAFKA` names (`tests/kafka/broker.sh` starts
//! one); elsewhere these tests say that they are skipped.

use super::cluster::{ask, rows, store, take};
use crate::intake::KafkaMessages;
use crate::source::kafka::{KafkaOptions, Start, Until};
use futures::executor::block_on;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const WAIT: Duration = Duration::from_secs(20);

/// A topic of its own on the broker.
struct Topic {
    brokers: String,
    name: String,
    producer: BaseProducer,
}

/// The broker, and a name that nobody else has.
fn there(test: &str) -> Option<(String, String)> {
    let Ok(brokers) = std::env::var("ASOF_KAFKA") else {
        println!("skipped: ASOF_KAFKA names no broker");
        return None;
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    Some((brokers, format!("{test}-{now}")))
}

fn admin(brokers: &str) -> AdminClient<DefaultClientContext> {
    ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap()
}

fn producer(brokers: &str, transactions: Option<&str>) -> BaseProducer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("linger.ms", "0");
    if let Some(id) = transactions {
        config.set("transactional.id", id);
    }
    let producer: BaseProducer = config.create().unwrap();
    if transactions.is_some() {
        producer.init_transactions(WAIT).unwrap();
    }
    producer
}

impl Topic {
    fn new(test: &str, partitions: i32, config: &[(&str, &str)], transactions: bool) -> Option<Topic> {
        let (brokers, name) = there(test)?;
        let topic =
            Topic { producer: producer(&brokers, transactions.then_some(name.as_str())), brokers, name };
        topic.create(partitions, config);
        Some(topic)
    }

    fn create(&self, partitions: i32, config: &[(&str, &str)]) {
        let mut new = NewTopic::new(&self.name, partitions, TopicReplication::Fixed(1));
        for (name, value) in config {
            new = new.set(name, value);
        }
        let made = block_on(admin(&self.brokers).create_topics([&new], &AdminOptions::new())).unwrap();
        made[0].as_ref().unwrap();
        // The broker knows the topic a little later than it says so.
        let consumer: rdkafka::consumer::BaseConsumer =
            ClientConfig::new().set("bootstrap.servers", &self.brokers).create().unwrap();
        use rdkafka::consumer::Consumer;
        let from = Instant::now();
        while from.elapsed() < WAIT {
            let known = consumer.fetch_metadata(Some(&self.name), WAIT).unwrap();
            let topic = &known.topics()[0];
            if topic.error().is_none() && topic.partitions().iter().all(|p| p.leader() >= 0) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn put(&self, partition: i32, key: &str, value: &str) {
        let record = BaseRecord::to(&self.name).partition(partition).key(key).payload(value);
        self.producer.send(record).map_err(|(e, _)| e).unwrap();
    }

    fn put_rows(&self, partition: i32, numbers: Range<u32>) {
        for n in numbers {
            self.put(partition, &format!(r#"{{"id":{n}}}"#), &format!(r#"{{"id":{n},"v":"v{n}"}}"#));
        }
        self.producer.flush(WAIT).unwrap();
    }

    fn transaction(&self, numbers: Range<u32>, commit: bool) {
        self.producer.begin_transaction().unwrap();
        self.put_rows(0, numbers);
        if commit {
            self.producer.commit_transaction(WAIT).unwrap();
        } else {
            self.producer.abort_transaction(WAIT).unwrap();
        }
    }

    fn options(&self) -> KafkaOptions {
        let mut options = KafkaOptions { topics: vec![self.name.clone()], ..KafkaOptions::default() };
        options.set("bootstrap.servers", &self.brokers, &|_| None).unwrap();
        options
    }
}

#[test]
fn k17_only_committed_transactions_are_taken() {
    let Some(topic) = Topic::new("transactions", 1, &[], true) else { return };
    topic.transaction(0..10, true);
    topic.transaction(100..110, false);
    topic.transaction(10..15, true);
    topic.transaction(200..203, false);
    let (_dir, store) = store();
    // The partition ends in messages that are not taken, and in markers: that is its end all the same.
    let report = take(&store, topic.options(), &rows()).unwrap();
    assert_eq!((report.delivered, report.accepted), (15, 15));
    assert_eq!(ask(&store, "SELECT count(*), max(id) FROM t"), ["15 14"]);
    assert_eq!(take(&store, topic.options(), &rows()).unwrap().delivered, 0);

    let (_dir, other) = super::cluster::store();
    let all = KafkaOptions { read_uncommitted: true, ..topic.options() };
    assert_eq!(take(&other, all, &rows()).unwrap().delivered, 28);
}

#[test]
fn k17_an_open_transaction_ends_reading_before_it_and_comes_when_it_is_committed() {
    let Some(topic) = Topic::new("open", 1, &[], true) else { return };
    topic.transaction(0..10, true);
    topic.producer.begin_transaction().unwrap();
    topic.put_rows(0, 10..20);
    let (_dir, store) = store();
    assert_eq!(take(&store, topic.options(), &rows()).unwrap().delivered, 10);
    topic.producer.commit_transaction(WAIT).unwrap();
    assert_eq!(take(&store, topic.options(), &rows()).unwrap().delivered, 10);
    assert_eq!(ask(&store, "SELECT count(*) FROM t"), ["20"]);
}

#[test]
fn k5_offsets_that_compaction_took_away_are_no_gap() {
    let config = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "100"),
        ("min.cleanable.dirty.ratio", "0.001"),
        ("delete.retention.ms", "100"),
        ("max.compaction.lag.ms", "100"),
    ];
    let Some(topic) = Topic::new("compacted", 1, &config, false) else { return };
    for round in 0..20 {
        for key in 0..50 {
            topic.put(0, &format!(r#"{{"id":{key}}}"#), &format!(r#"{{"id":{key},"v":"r{round}"}}"#));
        }
        topic.producer.flush(WAIT).unwrap();
        std::thread::sleep(Duration::from_millis(150));
    }
    // Fewer messages than offsets are left when the cleaner was there.
    let (from, mut taken) = (Instant::now(), u64::MAX);
    while taken >= 1_000 && from.elapsed() < Duration::from_secs(60) {
        let (_dir, store) = store();
        taken = take(&store, topic.options(), &rows()).unwrap().delivered;
        assert_eq!(ask(&store, "SELECT count(*), min(v), max(v) FROM t"), ["50 r19 r19"]);
        topic.put(0, r#"{"id":0}"#, r#"{"id":0,"v":"r19"}"#);
        topic.producer.flush(WAIT).unwrap();
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(taken < 1_000, "the broker compacted nothing in a minute");
}

#[test]
fn reading_begins_at_an_instant() {
    let Some(topic) = Topic::new("instant", 1, &[], false) else { return };
    topic.put_rows(0, 0..10);
    std::thread::sleep(Duration::from_millis(50));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64;
    std::thread::sleep(Duration::from_millis(50));
    topic.put_rows(0, 10..13);
    let (_dir, store) = store();
    let at = KafkaOptions { start: Start::At(now), ..topic.options() };
    assert_eq!(take(&store, at, &rows()).unwrap().delivered, 3);
}

#[test]
fn k4_messages_that_are_gone_stop_the_intake_until_that_is_accepted() {
    let Some(topic) = Topic::new("gone", 1, &[], false) else { return };
    topic.put_rows(0, 0..10);
    let (_dir, store) = store();
    assert_eq!(take(&store, topic.options(), &rows()).unwrap().delivered, 10);
    topic.put_rows(0, 10..30);
    let mut until = TopicPartitionList::new();
    until.add_partition_offset(&topic.name, 0, Offset::Offset(25)).unwrap();
    block_on(admin(&topic.brokers).delete_records(&until, &AdminOptions::new())).unwrap();
    let e = take(&store, topic.options(), &rows()).unwrap_err();
    let stream = format!("{}/0", topic.name);
    assert!(e.message().contains(&format!("stream {stream} begins at position 25 now")), "{e}");
    store.accept_gap(&stream).unwrap();
    assert_eq!(take(&store, topic.options(), &rows()).unwrap().delivered, 5);
}

#[test]
fn k4_messages_that_go_while_they_are_read_stop_too() {
    let Some(topic) = Topic::new("going", 1, &[], false) else { return };
    topic.put_rows(0, 0..10);
    let (_dir, store) = store();
    let stopped = KafkaOptions { until: Until::Stopped, ..topic.options() };
    let mut messages = KafkaMessages::open(stopped, &rows(), &store.catalog()).unwrap();
    topic.put_rows(0, 10..30);
    let mut until = TopicPartitionList::new();
    until.add_partition_offset(&topic.name, 0, Offset::Offset(30)).unwrap();
    block_on(admin(&topic.brokers).delete_records(&until, &AdminOptions::new())).unwrap();
    // What was fetched before is taken; what was not is an error, and never passed over.
    let from = Instant::now();
    let mut taken = 0;
    let error = loop {
        match store.ingest_messages(&mut messages, &rows(), &mut |_| ControlFlow::Continue(())) {
            Ok(report) => taken += report.delivered,
            Err(e) => break Some(e),
        }
        if taken == 30 || from.elapsed() > WAIT {
            break None;
        }
    };
    assert!(taken == 30 || error.is_some_and(|e| e.message().contains("are gone")), "{taken} were taken");
}

#[test]
fn k6_a_topic_made_anew_in_the_same_cluster_is_noticed() {
    let Some(topic) = Topic::new("anew", 1, &[], false) else { return };
    topic.put_rows(0, 0..10);
    let (_dir, store) = store();
    assert_eq!(take(&store, topic.options(), &rows()).unwrap().delivered, 10);
    block_on(admin(&topic.brokers).delete_topics(&[&topic.name], &AdminOptions::new())).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    topic.create(1, &[]);
    topic.put_rows(0, 100..140);
    let e = take(&store, topic.options(), &rows()).unwrap_err();
    assert!(e.message().contains("its message at offset 9 is not the one taken"), "{e}");
    store.accept_gap(&format!("{}/0", topic.name)).unwrap();
    let report = take(&store, topic.options(), &rows()).unwrap();
    assert_eq!((report.delivered, report.accepted), (40, 40), "{report}");
    assert_eq!(take(&store, topic.options(), &rows()).unwrap().delivered, 0);
}

#[test]
fn k10_partitions_that_are_added_are_found_while_reading() {
    let Some(topic) = Topic::new("added", 1, &[], false) else { return };
    topic.put_rows(0, 0..10);
    let (_dir, store) = store();
    let stopped = KafkaOptions { until: Until::Stopped, ..topic.options() };
    let mut messages = KafkaMessages::open(stopped, &rows(), &store.catalog()).unwrap();
    let mut taken = 0;
    let mut go = |messages: &mut KafkaMessages, wanted: u64| {
        let from = Instant::now();
        while taken < wanted && from.elapsed() < WAIT {
            let report = store.ingest_messages(messages, &rows(), &mut |_| ControlFlow::Continue(()));
            taken += report.unwrap().accepted;
        }
        taken
    };
    assert_eq!(go(&mut messages, 10), 10);
    let more = NewPartitions::new(&topic.name, 3);
    block_on(admin(&topic.brokers).create_partitions([&more], &AdminOptions::new())).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let other = Topic { producer: producer(&topic.brokers, None), ..topic };
    other.put_rows(2, 100..120);
    other.put_rows(0, 10..15);
    messages.look_now();
    assert_eq!(go(&mut messages, 35), 35);
    assert_eq!(ask(&store, "SELECT count(*) FROM history('t')"), ["35"]);
}
