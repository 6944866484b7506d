//! The workload through a broker: produced as Avro with the id of a registry, by key into four partitions, read by a
//! consumer that does nothing with it (the broker's own rate), taken into a store, and checked.

use crate::Outcome;
use crate::ask::check_store;
use crate::children::{Teller, run};
use crate::data;
use crate::figures::digits;
use crate::measure;
use crate::plan::{BATCH, Plan};
use asofdb::intake::KafkaMessages;
use asofdb::source::KafkaOptions;
use asofdb::{IntakeOptions, Store};
use asofdb_storage::engine::OpenMode;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PARTITIONS: i32 = 4;
const COLUMNS: &str =
    "o, key1, key2, key3, value1, value2 decimal(9,2), value3, operation_id, valid_time, system_time";
const WAIT: Duration = Duration::from_secs(60);

/// Produces, reads, takes in and checks; how many answers were wrong.
pub fn bench(plan: &Plan) -> Outcome<usize> {
    let dir = plan.dir();
    std::fs::create_dir_all(&dir)?;
    data::prepare(&dir, plan.messages(), "avro")?;
    if !frames(plan).is_file() {
        return Err(format!("{} holds no messages in Avro: name another directory", dir.display()).into());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let topic = plan.topic.clone().unwrap_or_else(|| format!("workload-{}-{now}", plan.messages()));
    println!("{} messages of Avro through the topic {topic} of {}\n", plan.messages(), brokers(plan)?);
    measure::print_head()?;
    let mut wrong = 0;
    if plan.topic.is_none() {
        wrong += run(plan, &["kafka produce", &topic])?.print()?;
    }
    let broker = run(plan, &["kafka broker", &topic])?;
    wrong += broker.print()?;
    let taken = run(plan, &["kafka intake", &topic])?;
    wrong += taken.print()?;
    wrong += run(plan, &["kafka check", &topic])?.print()?;
    let (own, rate) = (broker.value("rate")?, taken.value("rate")?);
    println!("\nthe broker gave {own:.0} messages/s, the store took {rate:.0}: {} times", digits(rate / own));
    Ok(wrong)
}

fn brokers(plan: &Plan) -> Outcome<&str> {
    plan.brokers.as_deref().ok_or_else(|| "name the brokers with --brokers HOST:PORT".into())
}

fn frames(plan: &Plan) -> PathBuf {
    plan.dir().join("messages.avro.frames")
}

fn store_path(plan: &Plan) -> PathBuf {
    plan.dir().join("kafka.asof")
}

/// A number of Avro, and what follows it.
fn long(bytes: &[u8]) -> Outcome<(i64, &[u8])> {
    let (mut n, mut shift) = (0_u64, 0);
    for (i, b) in bytes.iter().take(10).enumerate() {
        n |= u64::from(b & 0x7f) << shift;
        if b & 0x80 == 0 {
            return Ok(((n >> 1) as i64 ^ -((n & 1) as i64), &bytes[i + 1..]));
        }
        shift += 7;
    }
    Err("a message that is none of the workload".into())
}

/// The text `key2` of a message: behind the frame of the registry, `o` and `key1`.
fn key(message: &[u8]) -> Outcome<&[u8]> {
    let (length, rest) = long(message.get(5..).ok_or("a message without a frame")?)?;
    let (_, rest) = long(rest.get(length as usize..).ok_or("a message without o")?)?;
    let (length, rest) = long(rest)?;
    Ok(rest.get(..length as usize).ok_or("a message without key2")?)
}

/// Writes the messages to a new topic.
pub fn produce(plan: &Plan, topic: &str, teller: &Teller) -> Outcome<()> {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", brokers(plan)?).create()?;
    let new = NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(1));
    let made = futures::executor::block_on(admin.create_topics([&new], &AdminOptions::new()))?;
    made.into_iter().try_for_each(|r| r.map(|_| ()).map_err(|(name, code)| format!("{name}: {code}")))?;
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers(plan)?)
        .set("linger.ms", "20")
        .set("batch.size", "1000000")
        .set("compression.type", "lz4")
        .set("enable.idempotence", "true")
        .create()?;
    teller.step("produce", "", || {
        let from = Instant::now();
        let mut file = BufReader::with_capacity(1 << 20, File::open(frames(plan))?);
        let (mut length, mut message, mut n) = ([0; 4], Vec::new(), 0_u64);
        while file.read_exact(&mut length).is_ok() {
            message.resize(u32::from_be_bytes(length) as usize, 0);
            file.read_exact(&mut message)?;
            let mut record = BaseRecord::to(topic).key(key(&message)?).payload(&message[..]);
            while let Err((e, back)) = producer.send(record) {
                if e.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                    return Err(e.into());
                }
                producer.poll(Duration::from_millis(10));
                record = back;
            }
            n += 1;
            if n % 1_000 == 0 {
                producer.poll(Duration::ZERO);
            }
        }
        producer.flush(WAIT)?;
        Ok(((), format!("{n} messages, {:.0}/s", n as f64 / from.elapsed().as_secs_f64())))
    })
}

/// Reads the topic and does nothing with it.
pub fn broker(plan: &Plan, topic: &str, teller: &Teller) -> Outcome<()> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers(plan)?)
        .set("group.id", "asofdb-bench")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("check.crcs", "true")
        .create()?;
    teller.step("read by a bare consumer", "", || {
        let from = Instant::now();
        let mut list = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            list.add_partition_offset(topic, partition, Offset::Beginning)?;
        }
        consumer.assign(&list)?;
        let (mut n, mut ended) = (0_u64, 0);
        while ended < PARTITIONS {
            match consumer.poll(WAIT) {
                Some(Ok(_)) => n += 1,
                Some(Err(KafkaError::PartitionEOF(_))) => ended += 1,
                Some(Err(e)) => return Err(e.into()),
                None => {}
            }
        }
        let rate = n as f64 / from.elapsed().as_secs_f64();
        teller.value("rate", rate)?;
        consumer.unassign()?;
        consumer.poll(Duration::from_millis(100));
        Ok(((), format!("{n} messages, {rate:.0}/s")))
    })
}

fn options(plan: &Plan) -> Outcome<IntakeOptions> {
    let schemas = plan.dir().join("schemas.json");
    let schema: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(plan.dir().join("schema.avsc"))?)?;
    std::fs::write(&schemas, serde_json::json!({ "1": schema }).to_string())?;
    Ok(IntakeOptions {
        format: Some("avro".into()),
        ignore_null_updates: Some("all".parse()?),
        // The answers are in cents, and the messages have binary fractions.
        columns: Some(COLUMNS.parse()?),
        absent: None,
        schemas: vec![schemas.display().to_string()],
        batch: Some(BATCH / 2),
        ..plan.options()?
    })
}

/// Takes the topic in.
pub fn intake(plan: &Plan, topic: &str, teller: &Teller) -> Outcome<()> {
    data::clear(&store_path(plan))?;
    let options = options(plan)?;
    teller.step("intake from the broker", "", || {
        let from = Instant::now();
        let store = Store::create(store_path(plan))?;
        let mut kafka = KafkaOptions::default();
        kafka.topics.push(topic.to_owned());
        kafka.set("bootstrap.servers", brokers(plan)?, &|_| None)?;
        let mut messages = KafkaMessages::open(kafka, &options, &store.catalog())?;
        let report = store.ingest_messages(&mut messages, &options, &mut |_| ControlFlow::Continue(()))?;
        drop((messages, store));
        let rate = report.delivered as f64 / from.elapsed().as_secs_f64();
        teller.value("rate", rate)?;
        if report.accepted != plan.messages() {
            return Err(format!("{} messages went in, and the store took {report}", plan.messages()).into());
        }
        Ok(((), format!("{rate:.0} messages/s, closed; {} commits", report.commits)))
    })
}

/// Compares answers, and counts by partition and offset, and by operation id.
pub fn check(plan: &Plan, _topic: &str, teller: &Teller) -> Outcome<()> {
    check_store(&store_path(plan), &plan.dir().join("probes.ndjson"), "from the broker", teller)?;
    // Counting different numbers takes memory for all of them.
    let store = Store::open_within(store_path(plan), OpenMode::Read, "4GiB".parse()?)?;
    let ask = |sql: &str| -> Outcome<Vec<i64>> {
        let rows = store.sql(sql)?;
        let mut cells = Vec::new();
        for batch in &rows.batches {
            for column in batch.columns() {
                let cast = asofdb::arrow::compute::cast(column, &asofdb::arrow::datatypes::DataType::Int64)?;
                let column =
                    asofdb::arrow::array::AsArray::as_primitive::<asofdb::arrow::datatypes::Int64Type>(&cast);
                cells.extend(column.values().iter().copied());
            }
        }
        Ok(cells)
    };
    // A delete has no row after it, and so no operation id there; 20 % are deletes.
    let (n, rows) = (plan.messages() as i64, plan.messages() as i64 / 10 * 8);
    let ids = ask("SELECT count(*), count(operation_id), count(DISTINCT operation_id) FROM history('w')")?;
    // Offsets of a partition that no transaction wrote have no gaps.
    let gaps = ask(
        "SELECT count(*) FROM (SELECT _stream, count(*) AS n, count(DISTINCT _position) AS d, max(_position) - min(_position) + 1 AS span \
         FROM history('w') GROUP BY _stream) WHERE n <> d OR n <> span",
    )?;
    let wrong = usize::from(ids != [n, rows, rows]) + gaps[0] as usize;
    if wrong > 0 {
        eprintln!(
            "wrong: events, operation ids, different ones: {ids:?}; partitions with gaps or repeats: {gaps:?}"
        );
    }
    teller.wrong(wrong)
}
