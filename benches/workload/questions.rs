//! The questions, through SQL and through the library, and the comparison with the right answers.

use crate::Outcome;
use crate::probes::{KeyProbe, Point, Probes, TableProbe};
use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use asofdb::sql::{Params, Session, Settings};
use asofdb::time::{SystemTime, ValidTime};
use asofdb::{Store, Table};
use asofdb_storage::engine::{Bounds, Engine, PointRequest};
use asofdb_storage::key::key_bytes;
use asofdb_storage::time::FOREVER;
use asofdb_storage::value::Value;
use futures::StreamExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Wrong answers that are shown, of each kind.
const SHOWN_MAX: usize = 5;

/// Time for looking keys up one by one.
const LOOK_UPS_MAX: Duration = Duration::from_secs(20);

fn key_of(probe: &KeyProbe) -> [Value; 3] {
    let (key1, key2, key3) = &probe.key;
    [Value::Int(*key1), Value::Text(key2.clone()), Value::Int(*key3)]
}

/// The timed questions by name.
pub fn timed(at: &Point) -> [(&'static str, String); 4] {
    let from = format!("FROM w{}", at.clauses());
    [
        ("count", format!("SELECT count(*) {from}")),
        ("sum", format!("SELECT sum(value1) {from}")),
        ("count+sum", format!("SELECT count(*), sum(value1) {from}")),
        ("group by", format!("SELECT key3, count(*), sum(value1) {from} GROUP BY key3")),
    ]
}

/// Asks an open store.
pub struct Asker {
    engine: Engine,
    session: Session,
    table: Table,
    runtime: Runtime,
}

impl Asker {
    pub fn new(store: &Store) -> Outcome<Asker> {
        let settings = Settings { spill_directory: Some(std::env::temp_dir()), ..Settings::default() };
        let now = || chrono::Utc::now().timestamp_micros();
        let session =
            Session::new(Arc::new(store.engine().clone()), settings, Arc::new(now)).map_err(|e| e.message)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        Ok(Asker { engine: store.engine().clone(), session, table: store.table("w")?, runtime })
    }

    /// Hands every batch of an answer on.
    fn each_batch(&self, sql: &str, mut f: impl FnMut(&RecordBatch) -> Outcome<()>) -> Outcome<()> {
        self.runtime.block_on(async {
            let answer =
                self.session.run(sql, &Params::none()).await.map_err(|e| format!("{sql}: {}", e.message))?;
            let mut stream = answer.stream;
            while let Some(batch) = stream.next().await {
                f(&batch.map_err(|e| format!("{sql}: {}", e.message))?)?;
            }
            Ok(())
        })
    }

    /// How long a question takes, from its text to its last row.
    pub fn time(&self, sql: &str) -> Outcome<Duration> {
        let from = Instant::now();
        let mut rows = 0;
        self.each_batch(sql, |batch| {
            rows += batch.num_rows();
            Ok(())
        })?;
        if rows == 0 { Err(format!("no row: {sql}").into()) } else { Ok(from.elapsed()) }
    }

    /// All rows of an answer as texts.
    pub fn rows(&self, sql: &str) -> Outcome<Vec<Vec<String>>> {
        let mut rows = Vec::new();
        self.each_batch(sql, |batch| for_each_row(batch, |row| rows.push(row.to_vec())))?;
        Ok(rows)
    }

    /// Looks every key up at once and checks what comes.
    pub fn check_keys(&self, probes: &Probes) -> Outcome<Vec<String>> {
        let snapshot = self.engine.pin();
        let commit = snapshot.commit();
        let request = |probe: &KeyProbe| {
            let (valid, system) = (probe.at.valid.unwrap_or(FOREVER), probe.at.system.unwrap_or(FOREVER));
            let [a, b, c] = &key_of(probe);
            let key = key_bytes(&[a.as_cell(), b.as_cell(), c.as_cell()]);
            PointRequest { key, bounds: Bounds { valid, system, commit } }
        };
        let requests: Vec<_> = probes.keys.iter().map(request).collect();
        let columns =
            ["value1", "value2", "value3"].map(|name| self.table.schema().column(name).map(|c| c.id));
        let columns: Vec<_> = columns.into_iter().flatten().collect();
        let (answered, rows) = snapshot.points(self.table.meta().id, &requests, &columns)?;
        let mut found: Vec<Option<Vec<String>>> = vec![None; requests.len()];
        let mut answered = answered.into_iter();
        for_each_row(&rows, |row| {
            if let Some(number) = answered.next() {
                found[number as usize] = Some(row.to_vec());
            }
        })?;
        let pairs = probes.keys.iter().zip(&found);
        let wrong = pairs.filter(|(probe, row)| probe.row.as_ref().map(|r| &r[..]) != row.as_deref());
        let fault =
            |(p, row): (&KeyProbe, _)| format!("{:?} of {:?} is {row:?}, not {:?}", p.at, p.key, p.row);
        Ok(wrong.map(fault).collect())
    }

    /// Looks the values of keys up one by one, all of them or as many as the time allows, and checks what comes.
    pub fn look_up(&self, probes: &Probes) -> Outcome<Vec<Duration>> {
        let prepared = self.table.look_up(&["value1", "value2", "value3"])?;
        look_up(probes, |key, valid, system| prepared.get(key, valid, system))
    }

    /// The same with all columns of each row.
    pub fn look_up_rows(&self, probes: &Probes) -> Outcome<Vec<Duration>> {
        look_up(probes, |key, valid, system| self.table.get(key, valid, system))
    }

    /// Looks the first keys up by SQL.
    pub fn look_up_by_sql(&self, probes: &Probes, count: usize) -> Outcome<Vec<Duration>> {
        let ask = |probe: &KeyProbe| {
            let (key1, key2, key3) = &probe.key;
            let from = Instant::now();
            let sql = format!(
                "SELECT value1, value2, value3 FROM w{} WHERE key1 = {key1} AND key2 = '{key2}' AND key3 = {key3}",
                probe.at.clauses()
            );
            let rows = self.rows(&sql)?;
            let took = from.elapsed();
            let expected: Vec<_> = probe.row.iter().map(|r| r.to_vec()).collect();
            match rows == expected {
                true => Ok(took),
                false => Err(format!("{sql} answers {rows:?}, not {expected:?}").into()),
            }
        };
        let begun = Instant::now();
        let some = probes.keys.iter().take(count).take_while(|_| begun.elapsed() < LOOK_UPS_MAX);
        some.map(ask).collect()
    }

    /// Compares all answers, of keys and of the whole table.
    pub fn check(&self, probes: &Probes) -> Outcome<Vec<String>> {
        let mut faults = self.check_keys(probes)?;
        for probe in &probes.tables {
            let found = self.table_faults(probe)?;
            faults.extend(found.into_iter().map(|f| format!("{:?}: {f}", probe.at)));
        }
        Ok(faults)
    }

    fn table_faults(&self, probe: &TableProbe) -> Outcome<Vec<String>> {
        let from = format!("FROM w{}", probe.at.clauses());
        let mut faults = Vec::new();
        let totals = "count(*), count(value1), sum(value1), count(value2), sum(value2), count(value3)";
        let mut found = self.rows(&format!("SELECT {totals} {from}"))?.pop().unwrap_or_default();
        if let Some(money) = found.get_mut(4) {
            *money = cents(money);
        }
        found.iter_mut().filter(|t| t.is_empty()).for_each(|t| *t = "0".into());
        if found != probe.totals {
            faults.push(format!("totals are {found:?}, not {:?}", probe.totals));
        }
        let groups =
            format!("SELECT key3, count(*), coalesce(sum(value1), 0) {from} GROUP BY key3 ORDER BY key3");
        let found = self.rows(&groups)?;
        let differ = found.iter().zip(&probe.groups).filter(|(a, b)| a != b).take(SHOWN_MAX);
        faults.extend(differ.map(|(a, b)| format!("a group is {a:?}, not {b:?}")));
        if found.len() != probe.groups.len() {
            faults.push(format!("{} groups, not {}", found.len(), probe.groups.len()));
        }
        let mut sum = 0u64;
        self.each_batch(&format!("SELECT key1, key2, key3, value1, value2, value3 {from}"), |batch| {
            for_each_row(batch, |row| sum = sum.wrapping_add(fnv(row.join(",").as_bytes())))
        })?;
        if sum != probe.checksum {
            faults.push(format!("the checksum of all rows is {sum:016x}, not {:016x}", probe.checksum));
        }
        Ok(faults)
    }
}

/// Times look-ups of keys, twice each.
fn look_up(
    probes: &Probes,
    get: impl Fn(&[Value], Option<ValidTime>, Option<SystemTime>) -> asofdb::Result<Option<RecordBatch>>,
) -> Outcome<Vec<Duration>> {
    let begun = Instant::now();
    let mut times = Vec::new();
    for probe in probes.keys.iter().cycle().take(2 * probes.keys.len()) {
        let (valid, system) = (probe.at.valid.map(ValidTime), probe.at.system.map(SystemTime));
        let key = key_of(probe);
        let from = Instant::now();
        let found = get(&key, valid, system)?;
        times.push(from.elapsed());
        let row = found.as_ref().map(values).transpose()?;
        if row != probe.row {
            let Point { valid, system } = probe.at;
            return Err(format!("{key:?} at {valid:?}, {system:?} is {row:?}, not {:?}", probe.row).into());
        }
        if begun.elapsed() > LOOK_UPS_MAX {
            break;
        }
    }
    Ok(times)
}

/// The three values of a row that was looked up.
fn values(batch: &RecordBatch) -> Outcome<[String; 3]> {
    let format = FormatOptions::default().with_null("");
    let text = |name: &str| -> Outcome<String> {
        let column = batch.column_by_name(name).ok_or_else(|| format!("no column {name}"))?;
        Ok(ArrayFormatter::try_new(column, &format)?.value(0).try_to_string()?)
    };
    Ok([text("value1")?, text("value2")?, text("value3")?])
}

/// Every row as texts; NULL is empty.
fn for_each_row(batch: &RecordBatch, mut f: impl FnMut(&[String])) -> Outcome<()> {
    let format = FormatOptions::default().with_null("");
    let columns = batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &format));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let mut row = vec![String::new(); columns.len()];
    for i in 0..batch.num_rows() {
        for (cell, column) in row.iter_mut().zip(&columns) {
            *cell = column.value(i).try_to_string()?;
        }
        f(&row);
    }
    Ok(())
}

/// An amount with at most two places, in cents.
fn cents(amount: &str) -> String {
    let (whole, part) = amount.split_once('.').unwrap_or((amount, ""));
    let text = format!("{whole}{part:0<2}");
    let digits = text.trim_start_matches('0');
    if digits.is_empty() { "0".into() } else { digits.into() }
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}
