//! One client of librdkafka: connecting, what topics there are, and its end.

use super::super::position::SourceError;
use super::options::{KafkaOptions, Start};
use super::trouble::{Judgement, Watch, code_of, judge};
use crate::error::{Error, ErrorKind, Result};
use crate::near::near_names_hint;
use globset::GlobBuilder;
use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(5);
/// How long a client is served after its partitions were taken away, before it is dropped: librdkafka
/// aborts the process if it is dropped while partitions begin.
const FAREWELL: Duration = Duration::from_millis(100);

/// A client and the partitions it reads.
pub(super) struct Client {
    consumer: Arc<BaseConsumer<Watch>>,
    assigned: bool,
}

/// The oldest offset of a partition and the one after its newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    pub first: u64,
    pub end: u64,
}

impl Client {
    /// A client that knows the brokers; nobody was asked yet.
    ///
    /// # Errors
    /// `Usage` for a property that librdkafka does not know or take.
    pub fn new(options: &KafkaOptions) -> Result<Client> {
        let mut config = ClientConfig::new();
        for (name, value) in options.all_properties() {
            config.set(name, value);
        }
        config.set_log_level(RDKafkaLogLevel::Critical);
        let consumer = config.create_with_context(Watch::default()).map_err(|e| match e {
            KafkaError::ClientConfig(_, what, name, _value) => KafkaOptions::property_error(&name, &what),
            KafkaError::ClientCreation(what) => {
                Error::usage(format!("the properties cannot be used: {what}"))
            }
            e => Error::usage(format!("the properties cannot be used: {e}")),
        })?;
        Ok(Client { consumer: Arc::new(consumer), assigned: false })
    }

    /// What its threads say.
    pub fn watch(&self) -> &Watch {
        self.consumer.context()
    }

    /// An identity of the cluster, if the brokers have one.
    pub fn cluster(&self) -> Option<String> {
        self.consumer.client().fetch_cluster_id(REQUEST)
    }

    /// The partitions of the topics that are asked for, by topic.
    ///
    /// # Errors
    /// `Source` if the brokers are not there in time, refuse us, or know no such topic.
    pub fn topics(&self, options: &KafkaOptions) -> Result<BTreeMap<String, Vec<i32>>> {
        let mut found = BTreeMap::new();
        for wanted in &options.topics {
            let what = format!("topic {wanted}");
            let some = self.patiently(options, &what, &|client| client.ask_topics(wanted))?;
            found.extend(some);
        }
        Ok(found)
    }

    fn ask_topics(&self, wanted: &str) -> Result<BTreeMap<String, Vec<i32>>, Refusal> {
        let pattern = wanted.contains('*');
        let asked = self.consumer.fetch_metadata((!pattern).then_some(wanted), REQUEST);
        let metadata = asked.map_err(|e| Refusal::of(&e))?;
        let glob = GlobBuilder::new(wanted).build().ok().filter(|_| pattern).map(|g| g.compile_matcher());
        let is_wanted = |name: &str| match &glob {
            Some(glob) => glob.is_match(name) && !name.starts_with("__"),
            None => name == wanted,
        };
        let mut found = BTreeMap::new();
        for topic in metadata.topics().iter().filter(|t| is_wanted(t.name())) {
            if let Some(code) = topic.error().map(RDKafkaErrorCode::from) {
                return Err(Refusal::of_code(code, format!("{code}")));
            }
            let numbers = topic.partitions().iter().map(|p| p.id()).collect();
            found.insert(topic.name().to_owned(), numbers);
        }
        if found.values().all(Vec::is_empty) {
            let code = RDKafkaErrorCode::UnknownTopicOrPartition;
            return Err(Refusal::of_code(code, "the brokers know no such topic".to_owned()));
        }
        Ok(found)
    }

    /// A hint with topics that there are instead.
    fn other_topics(&self, wanted: &str) -> String {
        let Ok(metadata) = self.consumer.fetch_metadata(None, REQUEST) else { return String::new() };
        let names = metadata.topics().iter().map(|t| t.name());
        let names = names.filter(|name| !name.starts_with("__") && *name != wanted);
        near_names_hint(wanted, names)
    }

    /// Where a partition begins and ends now.
    ///
    /// # Errors
    /// As [`Client::topics`].
    pub fn marks(&self, options: &KafkaOptions, topic: &str, partition: i32) -> Result<Marks> {
        self.patiently(options, &format!("topic {topic}, partition {partition}"), &|client| {
            client.ask_marks(topic, partition, REQUEST)
        })
    }

    /// As [`Client::marks`], asked once.
    pub fn ask_marks(&self, topic: &str, partition: i32, timeout: Duration) -> Result<Marks, Refusal> {
        let (first, end) =
            self.consumer.fetch_watermarks(topic, partition, timeout).map_err(|e| Refusal::of(&e))?;
        let offset = |n: i64| u64::try_from(n).unwrap_or(0);
        Ok(Marks { first: offset(first), end: offset(end) })
    }

    /// The offset at which to begin with a partition that nothing was taken from.
    ///
    /// # Errors
    /// As [`Client::topics`].
    pub fn begin(&self, options: &KafkaOptions, topic: &str, partition: i32, marks: Marks) -> Result<u64> {
        let Start::At(at) = options.start else {
            return Ok(match options.start {
                Start::End => marks.end,
                Start::Last(n) => marks.end.saturating_sub(n).max(marks.first),
                Start::Beginning | Start::At(_) => marks.first,
            });
        };
        self.patiently(options, &format!("topic {topic}, partition {partition}"), &|client| {
            let mut times = TopicPartitionList::new();
            // The broker counts milliseconds: the first at or after the instant is not before the next one.
            let at = Offset::Offset(at.div_euclid(1_000) + i64::from(at.rem_euclid(1_000) != 0));
            times.add_partition_offset(topic, partition, at).map_err(|e| Refusal::of(&e))?;
            let found = client.consumer.offsets_for_times(times, REQUEST).map_err(|e| Refusal::of(&e))?;
            Ok(match found.elements().first().map(|e| e.offset()) {
                Some(Offset::Offset(n)) => u64::try_from(n).unwrap_or(marks.end),
                _ => marks.end,
            })
        })
    }

    /// The queue of a partition. To be asked for before [`Client::assign`]: later its first messages could
    /// come elsewhere.
    pub fn queue(&self, topic: &str, partition: i32) -> Result<PartitionQueue<Watch>> {
        let mut queue = self
            .consumer
            .split_partition_queue(topic, partition)
            .ok_or_else(|| Error::failed(format!("topic {topic}, partition {partition} has no queue")))?;
        let watch = self.consumer.context().clone();
        queue.set_nonempty_callback(move || watch.notify());
        Ok(queue)
    }

    /// Begins to read partitions at offsets; once only.
    ///
    /// # Errors
    /// `Failed` if librdkafka does not take them.
    pub fn assign<'p>(&mut self, partitions: impl Iterator<Item = (&'p str, i32, u64)>) -> Result<()> {
        let mut list = TopicPartitionList::new();
        for (topic, partition, offset) in partitions {
            let offset = Offset::Offset(i64::try_from(offset).unwrap_or(i64::MAX));
            list.add_partition_offset(topic, partition, offset).map_err(|e| Error::failed(e.to_string()))?;
        }
        assert!(!self.assigned, "a client is assigned partitions once");
        self.assigned = true;
        self.consumer.assign(&list).map_err(|e| Error::failed(format!("partitions cannot be read: {e}")))
    }

    /// Goes to another offset of a partition.
    ///
    /// # Errors
    /// `Source` if that takes too long.
    pub fn seek(&self, topic: &str, partition: i32, offset: u64) -> Result<()> {
        let to = Offset::Offset(i64::try_from(offset).unwrap_or(i64::MAX));
        self.consumer.seek(topic, partition, to, REQUEST).map_err(|e| {
            Error::new(
                ErrorKind::Source,
                format!("topic {topic}, partition {partition}: offset {offset}: {e}"),
            )
        })
    }

    /// Serves what is not of a partition: errors, for [`Client::watch`].
    pub fn serve(&self) {
        while let Some(event) = self.consumer.poll(Duration::ZERO) {
            // A message here would be one that its partition lacks.
            if event.is_ok() {
                self.watch().note("a message came beside the queue of its partition".to_owned(), true);
            }
        }
    }

    /// Asks until there is an answer that stays.
    fn patiently<T>(
        &self,
        options: &KafkaOptions,
        what: &str,
        ask: &dyn Fn(&Client) -> Result<T, Refusal>,
    ) -> Result<T> {
        let patience = options.waits();
        let from = Instant::now();
        loop {
            let refusal = match ask(self) {
                Ok(answer) => return Ok(answer),
                Err(refusal) => refusal,
            };
            self.serve();
            let trouble = self.watch().trouble();
            let failed = |reason: &str| Error::new(ErrorKind::Source, format!("{what}: {reason}"));
            if let Some(trouble) = trouble.as_ref().filter(|t| t.fatal) {
                return Err(failed(&trouble.reason));
            }
            match refusal.judgement {
                Judgement::Gone => {
                    let wanted = what.trim_start_matches("topic ");
                    return Err(failed(&refusal.reason).hint(self.other_topics(wanted)));
                }
                Judgement::Fatal | Judgement::Gap => return Err(failed(&refusal.reason)),
                Judgement::Wait if from.elapsed() >= patience => {
                    let reason = trouble.map_or(refusal.reason, |t| t.reason);
                    return Err(failed(&format!("no answer in {} s: {reason}", patience.as_secs()))
                        .hint("bootstrap.servers (-b) names the brokers; is one of them there?"));
                }
                Judgement::Wait => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.assigned || self.consumer.unassign().is_err() {
            return;
        }
        let from = Instant::now();
        while from.elapsed() < FAREWELL {
            drop(self.consumer.poll(Duration::from_millis(10)));
        }
    }
}

/// Why the brokers gave no answer.
#[derive(Debug)]
pub(super) struct Refusal {
    pub judgement: Judgement,
    pub reason: String,
}

impl Refusal {
    fn of(e: &KafkaError) -> Refusal {
        match code_of(e) {
            Some(code) => Refusal::of_code(code, format!("{code}")),
            None => Refusal { judgement: Judgement::Fatal, reason: e.to_string() },
        }
    }

    fn of_code(code: RDKafkaErrorCode, reason: String) -> Refusal {
        Refusal { judgement: judge(code), reason }
    }
}

/// The error of a partition whose next offset is gone.
pub(super) fn gap(stream: &str, next: u64, first: Option<u64>) -> SourceError {
    let now = first.map(|n| format!("; the partition begins at {n} now")).unwrap_or_default();
    SourceError::new(stream, format!("messages from offset {next} on are gone{now}")).hint(format!(
        "asof accept-gap STORE '{stream}' records that the gap is accepted; then the intake goes on"
    ))
}
