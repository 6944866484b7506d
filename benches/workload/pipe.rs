//! Growth: more and more messages through a pipe, with no file of them anywhere.

use crate::Outcome;
use crate::ask::check_store;
use crate::children::{Said, Teller, run_with};
use crate::data;
use crate::figures::{digits, ratio};
use crate::intake::take;
use crate::measure;
use crate::plan::Plan;
use asofdb::{IntakeOptions, Store};
use std::path::Path;

/// Figures that are compared between sizes: name, what it is.
const COMPARED: [(&str, &str); 5] = [
    ("rate", "messages/s"),
    ("cpu", "processor seconds a million messages"),
    ("own", "peak of own memory, MB"),
    ("peak", "peak of memory, mapped files included, MB"),
    ("bytes", "bytes an event, as taken in"),
];

/// Each size in turn, then the ratios of each to the first; how many answers were wrong.
pub fn bench(plan: &Plan) -> Outcome<usize> {
    println!("messages through a pipe: {:?}, their generator beside\n", plan.sizes);
    measure::print_head()?;
    let mut wrong = 0;
    let mut all: Vec<(u64, Said)> = Vec::new();
    for n in &plan.sizes {
        let mut generator = data::stream(&plan.dir(), &plan.dir().join("stream"), *n)?;
        let out = generator.stdout.take().ok_or("a generator without an output")?;
        let said = run_with(plan, &["pipe", &n.to_string()], out.into())?;
        wrong += said.print()?;
        all.push((*n, said));
    }
    println!("\n| figure | messages | is | times the first |\n|---|---|---|---|");
    for (name, what) in COMPARED {
        let first = all.first().map_or(Ok(0.0), |(_, said)| said.value(name))?;
        for (n, said) in &all {
            let is = said.value(name)?;
            println!("| {what} | {n} | {} | {} |", digits(is), ratio(is, first).map_or("-".into(), digits));
        }
    }
    data::clear(&plan.dir().join("stream"))?;
    Ok(wrong)
}

/// Takes standard input in.
pub fn intake(plan: &Plan, n: &str, teller: &Teller) -> Outcome<()> {
    let (store, n): (_, u64) = (plan.store(), n.parse()?);
    data::clear(&store)?;
    let options = IntakeOptions { source_name: Some("pipe".into()), ..plan.options()? };
    let (rate, line) = measure::step("intake, NDJSON", &format!("pipe, {n} messages"), || {
        let mut input = std::io::stdin();
        // The generator makes all messages before it writes the first.
        let mut first = [0; 1];
        std::io::Read::read_exact(&mut input, &mut first)?;
        let input = Box::new(std::io::Read::chain(std::io::Cursor::new(first), input));
        let rate = take(&store, &[Path::new("-")], Some(input), &options)?.rate(n)?;
        Ok((rate, format!("{rate:.0} messages/s, closed")))
    })?;
    teller.line(&line)?;
    teller.value("rate", rate)?;
    if let Some(cost) = line.cost {
        teller.value("cpu", cost.cpu_s / n as f64 * 1e6)?;
        teller.value("own", cost.own_mb)?;
        teller.value("peak", cost.peak_mb)?;
    }
    teller.value("bytes", data::bytes(&store)? as f64 / n as f64)?;
    let probes = plan.dir().join("stream").join("probes.ndjson");
    wait_for(&plan.dir().join("stream").join("meta.json"))?;
    let commit = Store::open_read(&store)?.commit();
    check_store(&store, &probes, &format!("pipe, {n} messages, {} commits", commit.0), teller)?;
    data::clear(&store)
}

/// The generator writes the answers behind the messages, and this file last.
fn wait_for(file: &Path) -> Outcome<()> {
    for _ in 0..6_000 {
        if std::fs::metadata(file).is_ok_and(|m| m.len() > 0) {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Err(format!("{} does not come", file.display()).into())
}
