//! `asof ingest`: options, progress, totals.

use super::Manner;
use super::rounds::Rounds;
use crate::args::{IngestArgs, KafkaArgs, SchemaArgs, StoreAnd};
use crate::outcome::{Exit, Failure, Outcome};
use crate::progress::Progress;
use crate::render::escape::visible;
use crate::store::Input;
use crate::{interrupt, store};
use asofdb::count;
use asofdb::format::options::Absent;
use asofdb::options::Registry;
use asofdb::source::KafkaOptions;
use asofdb::{IntakeOptions, IntakeReport};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;
use std::time::Instant;

/// Takes in.
pub fn run(args: &IngestArgs, manner: Manner) -> Outcome {
    let topics = !args.kafka.topics.is_empty();
    let places = StoreAnd::here(&args.places, usize::from(!topics))?;
    let input = match super::pull::options(&args.pull, &places, topics)? {
        Some(pull) => Input::Pull(pull),
        None => input(&args.kafka, places.rest)?,
    };
    let options = options(args)?;
    interrupt::install();
    let started = Instant::now();
    let mut rounds = Rounds::new(&args.rounds, manner)?;
    let mut open = None;
    let taken = take(&places.store, &input, &options, manner, &mut |store| {
        open = Some(store.clone());
        rounds.start(store)
    });
    let stopped = interrupt::count() > 0;
    // What was stored before a failure is exported too.
    let exported = rounds.finish();
    let report = taken?;
    let closed = open.map_or(Ok(()), store::close);
    if manner.json {
        super::print_json(&serde_json::to_value(&report).unwrap_or_default())?;
    } else if !manner.quiet {
        let mut text = totals(&report, &places.store);
        let _ = writeln!(
            text,
            "{:.1} s{}",
            started.elapsed().as_secs_f64(),
            if stopped { ", stopped on request" } else { "" }
        );
        super::print(&text)?;
    }
    exported.and(closed)
}

/// What is to be taken in: topics, or files.
fn input(kafka: &KafkaArgs, files: Vec<String>) -> Outcome<Input> {
    match (kafka.topics.is_empty(), files.first()) {
        (true, None) => Err(Failure::usage("no source is named").hint(
            "name files, globs or directories behind the store, - for standard input, or topics with -t",
        )),
        (true, Some(_)) => Ok(Input::Files(files)),
        (false, None) => Ok(Input::Topics(kafka_options(kafka)?)),
        (false, Some(file)) => Err(Failure::usage(format!("{file} and a topic cannot be taken in at once"))
            .hint("run asof ingest for each of them")),
    }
}

/// How topics are read. Values of properties stay out of every message: they may be secrets.
pub fn kafka_options(args: &KafkaArgs) -> Outcome<KafkaOptions> {
    let variable = |name: &str| std::env::var(name).ok();
    let mut options = KafkaOptions::default();
    options.topics.clone_from(&args.topics);
    options.read_uncommitted = args.read_uncommitted;
    options.start = maybe("--from", &args.from)?.unwrap_or_default();
    if let Some(file) = &args.properties {
        let name = file.display().to_string();
        let text =
            std::fs::read_to_string(file).map_err(|e| Failure::usage(format!("--properties {name}: {e}")))?;
        options.set_all(&name, &text, &variable).map_err(|e| e.failure())?;
    }
    for property in &args.property {
        let (name, value) = property
            .split_once('=')
            .ok_or_else(|| Failure::usage("--property is NAME=VALUE, such as fetch.wait.max.ms=100"))?;
        options.set(name, value, &variable).map_err(|e| e.failure())?;
    }
    if let Some(brokers) = &args.brokers {
        options.set("bootstrap.servers", brokers, &variable).map_err(|e| e.failure())?;
    }
    options.validate().map_err(|e| e.failure())?;
    Ok(options)
}

/// Takes in with progress on stderr; the first signal finishes the batch, the second ends at once.
/// `opened` is called with the store before anything is taken.
pub fn take(
    path: &Path,
    input: &Input,
    options: &IntakeOptions,
    manner: Manner,
    opened: &mut dyn FnMut(&asofdb::Store) -> Outcome,
) -> Outcome<IntakeReport> {
    let mut bar = Progress::new(!manner.quiet);
    let watch = interrupt::leave_at_second_signal();
    let report = store::ingest(path, input, options, opened, &mut |progress| {
        bar.show(progress);
        if interrupt::count() > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    drop(watch);
    bar.clear();
    report
}

/// What the library says of an option that it cannot read.
trait Wrong {
    fn failure(self) -> Failure;
}

impl Wrong for asofdb::Error {
    fn failure(self) -> Failure {
        store::failure(&self)
    }
}

impl Wrong for String {
    fn failure(self) -> Failure {
        Failure::usage(self)
    }
}

fn read<T: FromStr<Err: Wrong>>(option: &str, text: &str) -> Outcome<T> {
    text.parse().map_err(|e: T::Err| {
        let mut failure = e.failure();
        failure.message = format!("{option} {text}: {}", failure.message);
        failure.exit = Exit::Usage;
        failure
    })
}

fn maybe<T: FromStr<Err: Wrong>>(option: &str, text: &Option<String>) -> Outcome<Option<T>> {
    text.as_ref().map(|t| read(option, t)).transpose()
}

fn each<T: FromStr<Err: Wrong>>(option: &str, texts: &[String]) -> Outcome<Vec<T>> {
    texts.iter().map(|t| read(option, t)).collect()
}

fn absent(text: &str) -> Outcome<Absent> {
    match text {
        "null" => Ok(Absent::Null),
        "unchanged" => Ok(Absent::Unchanged),
        _ => Err(Failure::usage(format!("--absent {text}: write null or unchanged"))),
    }
}

/// The registry, with the name and password of its address, of a file, or of the environment.
fn registry(args: &SchemaArgs) -> Outcome<Option<Registry>> {
    let Some(mut registry) = maybe::<Registry>("--registry", &args.registry)? else { return Ok(None) };
    if let Some(file) = &args.registry_auth {
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::usage(format!("--registry-auth {}: {e}", file.display())))?;
        registry.auth = Some(text.trim_end().to_owned());
    }
    registry.auth = registry.auth.or_else(|| std::env::var("ASOF_REGISTRY_AUTH").ok());
    Ok(Some(registry))
}

/// The options of the library.
pub fn options(args: &IngestArgs) -> Outcome<IntakeOptions> {
    let IngestArgs {
        places: _,
        format,
        table,
        key,
        operation,
        time,
        content,
        schemas,
        kafka: _,
        flow,
        rounds: _,
        pull: _,
    } = args;
    let options = IntakeOptions {
        format: (format != "auto").then(|| format.clone()),
        table: table.clone(),
        tables: Vec::new(),
        keys: each("--key", key)?,
        op: operation.op.clone(),
        op_map: each("--op-map", &operation.op_map)?,
        default_op: maybe("--default-op", &operation.default_op)?,
        valid: maybe("--valid", &time.valid)?,
        valid_end: maybe("--valid-end", &time.valid_end)?,
        tie_break: time.tie_break.clone(),
        system: maybe("--system", &time.system)?,
        operation_id: operation.operation_id.clone(),
        absent: content.absent.as_deref().map(absent).transpose()?,
        ignore_null_updates: maybe("--ignore-null-updates", &content.ignore_null_updates)?,
        columns_to_update: content.columns_to_update.clone(),
        delete_when: operation.delete_when.clone(),
        truncate_when: operation.truncate_when.clone(),
        columns: maybe("--columns", &content.columns)?,
        track_history: None,
        zone: time.zone.clone(),
        null_text: content.null_text.clone(),
        header: content.header.as_ref().map(|h| h.iter().map(|n| n.trim().to_owned()).collect()),
        schemas: schemas.schemas.clone(),
        registry: registry(schemas)?,
        framing: maybe("--framing", &schemas.framing)?,
        source_name: flow.source_name.clone(),
        keep_raw: flow.keep_raw,
        strict: flow.strict,
        batch: flow.batch,
    };
    options.validate().map_err(|e| store::failure(&e))?;
    Ok(options)
}

/// The totals: messages by kind that add up, rows by table, and where the quarantine is.
pub fn totals(report: &IntakeReport, path: &Path) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} delivered = {} accepted + {} + {} ignored + {} quarantined",
        report.delivered,
        report.accepted,
        count::of(report.repeated(), "repeat"),
        report.ignored_messages(),
        report.quarantined
    );
    for (what, kinds) in [("repeats", &report.repeats), ("ignored", &report.ignored), ("rows", &report.rows)]
    {
        let parts: Vec<String> =
            kinds.iter().map(|(kind, n)| format!("{n} {}", kind.replace('_', " "))).collect();
        if !parts.is_empty() {
            let _ = writeln!(out, "{what}: {}", parts.join(", "));
        }
    }
    let width = report.tables.keys().map(|t| t.len()).max().unwrap_or(0);
    for (table, rows) in &report.tables {
        let _ = writeln!(out, "  {:<width$}  {}", visible(table), count::of(*rows, "row"));
    }
    let times = [(report.late, "late"), (report.raised, "raised"), (report.lowered, "lowered")];
    let parts: Vec<String> =
        times.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if !parts.is_empty() {
        let _ = writeln!(out, "valid times: {}", parts.join(", "));
    }
    match (report.commits, report.last_commit) {
        (0, _) => out.push_str("nothing new, no commit\n"),
        (n, last) => {
            let last = last.map(|c| format!(", the last is {c}")).unwrap_or_default();
            let _ = writeln!(out, "{}{last}", count::of(n, "commit"));
        }
    }
    out.push_str(&quarantine(report, path));
    for notice in &report.notices {
        let _ = writeln!(out, "note: {}", visible(notice));
    }
    out
}

fn quarantine(report: &IntakeReport, path: &Path) -> String {
    let mut out = String::new();
    if report.quarantined == 0 {
        return out;
    }
    let _ = writeln!(out, "quarantined, the first of {}:", report.quarantined);
    for message in &report.quarantined_first {
        let _ = writeln!(out, "  {}: {}", visible(&store::place_of(message)), visible(&message.reason));
    }
    let _ = writeln!(out, "look at them with: asof quarantine list {}", path.display());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn options_of(line: &str) -> Outcome<IntakeOptions> {
        let cli = Cli::try_parse_from(std::iter::once("asof").chain(line.split_whitespace())).unwrap();
        match cli.command {
            Some(Command::Ingest(args)) => options(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_reach_the_library() {
        let options = options_of("ingest s f --key id --key u:x,y --op o --op-map i=insert --valid v:ms --system s --strict --batch 7").unwrap();
        assert_eq!(options.key_of("u").unwrap(), ["x", "y"]);
        assert_eq!(options.key_of("other").unwrap(), ["id"]);
        assert_eq!(options.valid.unwrap().column, "v");
        assert_eq!((options.strict, options.batch, options.format), (true, Some(7), None));
    }

    #[test]
    fn a_wrong_option_is_wrong_usage_and_is_named() {
        for (line, option) in [
            ("--valid v:parsec", "--valid"),
            ("--op-map i=inzert", "--op-map"),
            ("--absent maybe", "--absent"),
            ("--valid-end e", "--valid-end"),
        ] {
            let failure = options_of(&format!("ingest s f {line}")).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains(option), "{}", failure.message);
        }
    }

    #[test]
    fn totals_add_up_and_name_the_quarantine() {
        let mut report = IntakeReport {
            delivered: 7,
            accepted: 4,
            quarantined: 1,
            commits: 1,
            last_commit: Some(3),
            late: 2,
            ..IntakeReport::default()
        };
        report.repeats.insert("already_taken".into(), 1);
        report.ignored.insert("heartbeat".into(), 1);
        report.tables.insert("orders".into(), 4);
        let text = totals(&report, Path::new("shop.asof"));
        assert_eq!(
            text,
            "7 delivered = 4 accepted + 1 repeat + 1 ignored + 1 quarantined\nrepeats: 1 already taken\n\
             ignored: 1 heartbeat\n  orders  4 rows\nvalid times: 2 late\n1 commit, the last is 3\n\
             quarantined, the first of 1:\nlook at them with: asof quarantine list shop.asof\n"
        );
    }
}
