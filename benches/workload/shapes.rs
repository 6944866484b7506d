//! Growth by shape: a hot key, late events, many files. Message i says the number i at instant i, so that
//! every answer is known.

use crate::Outcome;
use crate::children::{Said, Teller, run};
use crate::data;
use crate::figures::{digits, millis, percentile, ratio};
use crate::intake::take;
use crate::measure;
use crate::plan::Plan;
use crate::questions::Asker;
use asofdb::{IntakeOptions, Store};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The instant of the first message, microseconds, and the distance of two.
const BEGIN_US: i64 = 1_767_225_600_000_000;
const STEP_US: i64 = 1_000;
/// Files of the directory.
const FILES: u64 = 5_000;
/// Steps over the instants so that each comes once and most come late; a prime.
const SHUFFLE: u64 = 7_368_787;

/// Name, whether there is one key only, whether the instants are shuffled, files.
const SHAPES: [(&str, bool, bool, u64); 5] = [
    ("cold keys", false, false, 1),
    ("one hot key", true, false, 1),
    ("cold keys, late", false, true, 1),
    ("one hot key, late", true, true, 1),
    ("cold keys, many files", false, false, FILES),
];

/// Every shape, compared with the first; how many answers were wrong.
pub fn bench(plan: &Plan) -> Outcome<usize> {
    println!("{} upserts of each shape\n", plan.messages());
    measure::print_head()?;
    let mut wrong = 0;
    let mut all: Vec<(&str, Said)> = Vec::new();
    for (name, ..) in SHAPES {
        let said = run(plan, &["shape", name])?;
        wrong += said.print()?;
        all.push((name, said));
    }
    println!("\n| figure | shape | is | times the first |\n|---|---|---|---|");
    for figure in
        ["messages/s", "intake, CPU s", "own MB", "AS OF count, ms", "key look-up, ms", "compaction, s"]
    {
        let first = all.first().map_or(Ok(0.0), |(_, said)| said.value(figure))?;
        for (name, said) in &all {
            let is = said.value(figure)?;
            println!(
                "| {figure} | {name} | {} | {} |",
                digits(is),
                ratio(is, first).map_or("-".into(), digits)
            );
        }
    }
    Ok(wrong)
}

fn instant(i: u64) -> i64 {
    BEGIN_US + i as i64 * STEP_US
}

/// Writes the messages; where they are.
fn write(dir: &Path, n: u64, hot: bool, late: bool, files: u64) -> Outcome<PathBuf> {
    data::clear(dir)?;
    std::fs::create_dir_all(dir)?;
    let each = n.div_ceil(files);
    for file in 0..files {
        let out = std::fs::File::create(dir.join(format!("{file:05}.ndjson")))?;
        let mut out = BufWriter::with_capacity(1 << 16, out);
        for j in (file * each)..((file + 1) * each).min(n) {
            let i = if late { j * SHUFFLE % n } else { j };
            // Spread over all keys, so that they do not come in their order.
            let key = if hot { 0 } else { i.wrapping_mul(2_654_435_761) & 0xFFFF_FFFF };
            let t = instant(i);
            writeln!(out, "{{\"id\":{key},\"v\":{i},\"valid_time\":{t},\"system_time\":{t}}}")?;
        }
        out.flush()?;
    }
    Ok(dir.to_owned())
}

/// Takes one shape in and asks.
pub fn shape(plan: &Plan, name: &str, teller: &Teller) -> Outcome<()> {
    let n = plan.messages();
    let shape = SHAPES.iter().find(|(known, ..)| *known == name).ok_or("no such shape")?;
    let (_, hot, late, files) = *shape;
    if late && n.is_multiple_of(SHUFFLE) {
        return Err(format!("{n} messages cannot be shuffled by {SHUFFLE}").into());
    }
    let (input, store) = (write(&plan.dir().join("shape"), n, hot, late, files)?, plan.store());
    data::clear(&store)?;
    let options = IntakeOptions {
        format: Some("json".into()),
        table: Some("w".into()),
        keys: vec!["id".parse()?],
        op: None,
        ..plan.options()?
    };
    let (rate, line) = measure::step(name, "intake", || {
        let rate = take(&store, &[&input], None, &options)?.rate(n)?;
        Ok((rate, format!("{rate:.0} messages/s, closed")))
    })?;
    teller.line(&line)?;
    teller.value("messages/s", rate)?;
    teller.value("intake, CPU s", line.cost.map_or(0.0, |c| c.cpu_s))?;
    teller.value("own MB", line.cost.map_or(0.0, |c| c.own_mb))?;
    questions(plan, name, hot, teller)?;
    let engine = Store::open(&store)?;
    let ((), line) =
        measure::step(name, "compact", || Ok(((), format!("{} merges", engine.engine().compact()?))))?;
    teller.line(&line)?;
    teller.value("compaction, s", line.cost.map_or(0.0, |c| c.wall_s))?;
    drop(engine);
    questions(plan, name, hot, teller)?;
    data::clear(&input)?;
    data::clear(&store)
}

/// Asks for the table and for one key at some instants, and compares.
fn questions(plan: &Plan, name: &str, hot: bool, teller: &Teller) -> Outcome<()> {
    let asker = Asker::new(&Store::open_read(plan.store())?)?;
    let (mut wrong, mut tables, mut keys) = (0, Vec::new(), Vec::new());
    let ((), line) = measure::step(name, "questions", || {
        for part in [2, 4, 8, 3, 5] {
            let k = plan.messages() / part;
            let at = instant(k);
            let clauses = format!(
                "FOR VALID_TIME AS OF to_timestamp_micros({at}) FOR SYSTEM_TIME AS OF to_timestamp_micros({at})"
            );
            let sql = format!("SELECT count(*), sum(v) FROM w {clauses}");
            tables.push(asker.time(&sql)?);
            let right = if hot { [1, k] } else { [k + 1, k * (k + 1) / 2] };
            wrong += differs(&asker, &sql, &right)?;
            let key = if hot { 0 } else { k.wrapping_mul(2_654_435_761) & 0xFFFF_FFFF };
            let sql = format!("SELECT id, v FROM w {clauses} WHERE id = {key}");
            keys.push(asker.time(&sql)?);
            wrong += differs(&asker, &sql, &[key, k])?;
        }
        let (table, key) = (millis(percentile(&tables, 50)), millis(percentile(&keys, 50)));
        Ok(((), format!("count and sum {table} ms, a key {key} ms")))
    })?;
    teller.line(&line)?;
    teller.value("AS OF count, ms", percentile(&tables, 50).as_secs_f64() * 1e3)?;
    teller.value("key look-up, ms", percentile(&keys, 50).as_secs_f64() * 1e3)?;
    teller.wrong(wrong)
}

/// 1 if the answer is another one.
fn differs(asker: &Asker, sql: &str, right: &[u64]) -> Outcome<usize> {
    let found = asker.rows(sql)?;
    let right: Vec<String> = right.iter().map(u64::to_string).collect();
    if found == [right.clone()] {
        return Ok(0);
    }
    eprintln!("wrong: {sql} answers {found:?}, not {right:?}");
    Ok(1)
}
