//! A mock cluster in this process, its producer, and a store that takes from it.

use crate::IntakeOptions;
use crate::intake::{IntakeReport, KafkaMessages};
use crate::source::kafka::{KafkaOptions, Until};
use crate::{Error, Store};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};
use std::ops::ControlFlow;
use std::time::Duration;

/// A cluster with one producer.
pub struct Cluster {
    pub mock: MockCluster<'static, DefaultProducerContext>,
    producer: BaseProducer,
}

impl Cluster {
    /// One broker, and topics with so many partitions.
    pub fn with(topics: &[(&str, i32)]) -> Cluster {
        Cluster::of(1, topics)
    }

    /// So many brokers.
    pub fn of(brokers: i32, topics: &[(&str, i32)]) -> Cluster {
        let mock = MockCluster::new(brokers).unwrap();
        for (topic, partitions) in topics {
            mock.create_topic(topic, *partitions, 1).unwrap();
        }
        let producer = ClientConfig::new()
            .set("bootstrap.servers", mock.bootstrap_servers())
            .set("linger.ms", "0")
            .create()
            .unwrap();
        Cluster { mock, producer }
    }

    /// Writes messages to a partition and waits until they are there.
    pub fn put(&self, topic: &str, partition: i32, messages: &[(Option<&str>, Option<&str>)]) {
        for (key, value) in messages {
            let mut record: BaseRecord<'_, str, str> = BaseRecord::to(topic).partition(partition);
            if let Some(key) = key {
                record = record.key(key);
            }
            if let Some(value) = value {
                record = record.payload(value);
            }
            self.producer.send(record).map_err(|(e, _)| e).unwrap();
        }
        self.producer.flush(Duration::from_secs(20)).unwrap();
    }

    /// Rows `{"id":n,"v":"vN"}` for the numbers of a range.
    pub fn put_rows(&self, topic: &str, partition: i32, numbers: std::ops::Range<u32>) {
        let values: Vec<String> = numbers.map(|n| format!(r#"{{"id":{n},"v":"v{n}"}}"#)).collect();
        let messages: Vec<_> = values.iter().map(|v| (None, Some(v.as_str()))).collect();
        self.put(topic, partition, &messages);
    }

    /// How to read topics of it to the end.
    pub fn options(&self, topics: &[&str]) -> KafkaOptions {
        let mut options = KafkaOptions {
            topics: topics.iter().map(|t| (*t).to_owned()).collect(),
            until: Until::CaughtUp,
            patience: Some(Duration::from_secs(10)),
            ..KafkaOptions::default()
        };
        options.set("bootstrap.servers", &self.mock.bootstrap_servers(), &|_| None).unwrap();
        options.set("reconnect.backoff.max.ms", "200", &|_| None).unwrap();
        options
    }
}

/// Options for rows into table `t` by `id`.
pub fn rows() -> IntakeOptions {
    IntakeOptions { table: Some("t".into()), keys: vec!["id".parse().unwrap()], ..IntakeOptions::default() }
}

/// A store in a directory of its own.
pub fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s.asof")).unwrap();
    (dir, store)
}

/// Takes topics as far as `kafka` says.
pub fn take(store: &Store, kafka: KafkaOptions, options: &IntakeOptions) -> Result<IntakeReport, Error> {
    let mut messages = KafkaMessages::open(kafka, options, &store.catalog())?;
    store.ingest_messages(&mut messages, options, &mut |_| ControlFlow::Continue(()))
}

/// What a question answers: the cells of its rows as text, a row each.
pub fn ask(store: &Store, question: &str) -> Vec<String> {
    let rows = store.sql(question).unwrap();
    let mut out = Vec::new();
    for batch in &rows.batches {
        let options = FormatOptions::default();
        let columns: Vec<_> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns.iter().map(|c| c.value(row).to_string()).collect();
            out.push(cells.join(" "));
        }
    }
    out
}
