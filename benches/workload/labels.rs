//! A join by point in time on both axes: every label asks for the row of its key as it was at the instants
//! of the label. The right answer comes from a loop over the messages that knows nothing of the store.

use crate::Outcome;
use crate::children::Teller;
use crate::data;
use crate::intake::take;
use crate::plan::Plan;
use crate::questions::Asker;
use asofdb::{IntakeOptions, Store};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;

/// One message, as far as the answer depends on it.
struct Event {
    key1: u16,
    key2: u64,
    key3: u8,
    op: u8,
    id: u64,
    valid: i64,
    system: i64,
    value1: Option<i64>,
}

fn labels_file(plan: &Plan) -> PathBuf {
    plan.dir().join("labels.ndjson")
}

fn answer_file(plan: &Plan) -> PathBuf {
    plan.dir().join("labels.json")
}

/// What stands behind a name in a flat line of JSON without escapes.
fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
    Some(rest.split([',', '}']).next().unwrap_or(rest).trim_matches('"'))
}

fn event(line: &str) -> Option<Event> {
    Some(Event {
        key1: field(line, "key1")?.parse().ok()?,
        key2: field(line, "key2")?.strip_prefix('C')?.parse().ok()?,
        key3: field(line, "key3")?.parse().ok()?,
        op: *field(line, "o")?.as_bytes().first()?,
        id: field(line, "operation_id")?.parse().ok()?,
        valid: field(line, "valid_time")?.parse().ok()?,
        system: field(line, "system_time")?.parse().ok()?,
        value1: field(line, "value1").and_then(|v| v.parse().ok()),
    })
}

/// The row of a key, whose events come in order, as far as it is asked for: `None` = no row.
fn resolve(events: &[Event], valid: i64, system: i64) -> Option<Option<i64>> {
    let mut row = None;
    for e in events.iter().filter(|e| e.valid <= valid && e.system <= system) {
        row = match e.op {
            b'd' => None,
            b'i' => Some(e.value1),
            _ => Some(e.value1.or(row.flatten())),
        };
    }
    row
}

/// Writes labels and their answer, if they are not there.
pub fn make(plan: &Plan) -> Outcome<()> {
    let count = plan.labels();
    let known = std::fs::read_to_string(answer_file(plan)).ok();
    let known: Option<Json> = known.and_then(|text| serde_json::from_str(&text).ok());
    if known.is_some_and(|k| k["labels"].as_u64() == Some(count)) {
        return Ok(());
    }
    let mut events = Vec::new();
    for line in BufReader::new(std::fs::File::open(plan.dir().join("messages.ndjson"))?).lines() {
        let line = line?;
        events.push(event(&line).ok_or_else(|| format!("not understood: {line}"))?);
    }
    // Which message gives the key, which the valid and which the system time.
    let pick = |i: u64, salt: u64| ((i * 2_654_435_761 + salt) % events.len() as u64) as usize;
    let picks = (0..count).map(|i| {
        let (key, valid, system) =
            (&events[pick(i, 0)], &events[pick(i, 77_777)], &events[pick(i, 1_234_567)]);
        (key.key1, key.key2, key.key3, valid.valid, system.system)
    });
    let asked: Vec<_> = picks.collect();
    events.sort_unstable_by_key(|e| (e.key2, e.valid, e.system, e.id));
    let (mut rows, mut values, mut sum) = (0u64, 0u64, 0i64);
    let mut out = BufWriter::new(std::fs::File::create(labels_file(plan))?);
    for (label, (key1, key2, key3, at, known_at)) in asked.iter().enumerate() {
        let from = events.partition_point(|e| e.key2 < *key2);
        let to = from + events[from..].partition_point(|e| e.key2 == *key2);
        let row = resolve(&events[from..to], *at, *known_at);
        rows += u64::from(row.is_some());
        values += u64::from(row.flatten().is_some());
        sum += row.flatten().unwrap_or(0);
        writeln!(
            out,
            "{{\"label\":{label},\"key1\":{key1},\"key2\":\"C{key2:010}\",\"key3\":{key3},\"valid_at\":{at},\"known_at\":{known_at}}}"
        )?;
    }
    out.flush()?;
    let answer = json!({"labels": count, "answer": [rows, values, sum]});
    Ok(std::fs::write(answer_file(plan), answer.to_string())?)
}

/// The right answer: rows, values, their sum.
pub fn answer(plan: &Plan) -> Outcome<Vec<i64>> {
    let known: Json = serde_json::from_str(&std::fs::read_to_string(answer_file(plan))?)?;
    Ok(known["answer"].as_array().into_iter().flatten().filter_map(Json::as_i64).collect())
}

/// Takes the labels in and joins them.
pub fn join(plan: &Plan, teller: &Teller) -> Outcome<()> {
    let options = IntakeOptions {
        format: Some("json".into()),
        table: Some("labels".into()),
        keys: vec!["label".parse()?],
        strict: true,
        ..IntakeOptions::default()
    };
    take(&plan.store(), &[&labels_file(plan)], None, &options)?.rate(plan.labels())?;
    let asker = Asker::new(&Store::open_read(plan.store())?)?;
    let sql = "SELECT count(*), count(f.value1), coalesce(sum(f.value1), 0) FROM labels l \
               JOIN w FOR VALID_TIME AS OF to_timestamp_micros(l.valid_at) \
               FOR SYSTEM_TIME AS OF to_timestamp_micros(l.known_at) f \
               ON f.key1 = l.key1 AND f.key2 = l.key2 AND f.key3 = l.key3";
    let state = format!("{} labels, both axes", plan.labels());
    let (times, found) = teller.step("point-in-time join", &state, || {
        let times = [asker.time(sql)?, asker.time(sql)?];
        let [first, second] = times.map(|t| t.as_secs_f64());
        Ok(((times, asker.rows(sql)?), format!("{second:.2} s, the first {first:.2} s")))
    })?;
    teller.value("labels", times[1].as_secs_f64())?;
    let right: Vec<String> = answer(plan)?.iter().map(i64::to_string).collect();
    if found != [right.clone()] {
        eprintln!("wrong, labels: {found:?}, not {right:?}");
        teller.wrong(1)?;
    }
    Ok(())
}

/// The file of labels, for the peer.
pub fn file(plan: &Plan) -> PathBuf {
    labels_file(plan)
}

/// Takes labels of an earlier run away.
pub fn clear(plan: &Plan) -> Outcome<()> {
    [labels_file(plan), answer_file(plan)].iter().try_for_each(|p| data::clear(p))
}
