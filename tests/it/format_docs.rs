//! The examples of `docs/formats`: what they show is taken as it stands there.

use crate::memory::Memory;
use asofdb::intake::{FileMessages, IntakeReport, Sink, run};
use asofdb::{IntakeOptions, Store};
use std::ops::ControlFlow;
use std::path::Path;

/// Pages and the rows that their example leaves.
const PAGES: &[(&str, usize)] = &[
    ("debezium-json", 1),
    ("debezium-flat", 1),
    ("cloudevents", 2),
    ("delta-cdf", 2),
    ("airbyte", 1),
    ("fivetran", 1),
    ("maxwell", 1),
    ("canal", 2),
    ("ticdc", 1),
    ("dms", 1),
    ("dms-s3", 2),
    ("ogg", 1),
    ("striim", 1),
    ("wal2json", 1),
];

/// The first console example of a page: files by name with their content, and the arguments of the intake.
fn example(page: &str) -> (Vec<(String, String)>, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/formats/{page}.md"));
    let text = std::fs::read_to_string(&path).unwrap();
    let block = text.split("```console\n").nth(1).unwrap().split("```").next().unwrap();
    let (mut files, mut arguments): (Vec<(String, String)>, _) = (Vec::new(), Vec::new());
    for line in block.replace("\\\n", " ").lines() {
        if let Some(name) = line.strip_prefix("$ cat ") {
            files.push((name.to_owned(), String::new()));
        } else if let Some(ingest) = line.strip_prefix("$ asof ingest STORE ") {
            arguments = ingest.split_whitespace().map(str::to_owned).collect();
        } else if let Some((_, content)) = files.last_mut() {
            content.push_str(line);
            content.push('\n');
        }
    }
    (files, arguments)
}

fn options(arguments: &[String]) -> IntakeOptions {
    let mut options = IntakeOptions::default();
    for pair in arguments.chunks(2) {
        let [option, value] = pair else { panic!("{arguments:?}") };
        match option.as_str() {
            "--key" => options.keys.push(value.parse().unwrap()),
            "--zone" => options.zone = Some(value.clone()),
            "--table" => options.table = Some(value.clone()),
            "--format" => options.format = Some(value.clone()),
            other => panic!("{other} is not read here"),
        }
    }
    options
}

fn take(page: &str) -> (IntakeReport, usize) {
    let (files, arguments) = example(page);
    let temp = tempfile::tempdir().unwrap();
    for (name, content) in &files {
        let path = temp.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let input = temp.path().join(&arguments[0]).to_string_lossy().into_owned();
    let options = options(&arguments[1..]);
    let store = Memory::default();
    let mut messages = FileMessages::open(&[input], &options, None, &store.catalog()).unwrap();
    let report = run(&store, &mut messages, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let forever = asofdb_storage::time::FOREVER;
    let rows = store.tables().iter().map(|t| store.rows_at(t, forever, forever).len()).sum();
    (report, rows)
}

#[test]
fn the_examples_of_formats_are_taken_as_they_are() {
    for (page, rows) in PAGES {
        let (report, found) = take(page);
        assert!(report.row_events() > 0 && report.quarantined == 0, "{page}: {report}");
        assert_eq!(found, *rows, "{page}");
    }
}

/// Pages whose examples are messages, each with one that is broken put in the middle of every file.
const BROKEN: &[&str] = &[
    "debezium-json",
    "debezium-flat",
    "debezium-mongodb",
    "cloudevents",
    "delta-cdf",
    "airbyte",
    "fivetran",
    "maxwell",
    "canal",
    "ticdc",
    "dms",
    "dms-s3",
    "ogg",
    "striim",
    "wal2json",
];

/// The latest rows of all tables.
fn latest(store: &Store) -> Vec<String> {
    let mut out = Vec::new();
    for table in store.catalog().tables.values() {
        for batch in store.table(&table.name).unwrap().as_of(None, None).unwrap() {
            out.push(format!("{} {batch:?}", table.name));
        }
    }
    out
}

#[test]
fn c2_a_broken_message_of_any_format_is_put_aside_with_its_place_and_the_rest_is_taken() {
    for page in BROKEN {
        let (files, arguments) = example(page);
        let options = options(&arguments[1..]);
        let taken = |broken: bool| {
            let temp = tempfile::tempdir().unwrap();
            let mut put_in = Vec::new();
            for (name, content) in &files {
                let path = temp.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                let mut lines: Vec<&str> = content.lines().collect();
                let header = usize::from(name.ends_with(".csv"));
                let at = (lines.len() + header).div_ceil(2);
                // The first half of a message, or a field that never ends.
                let half = if header > 0 { "\"open,1,2" } else { &lines[at - 1][..lines[at - 1].len() / 2] };
                if broken {
                    lines.insert(at, half);
                    put_in.push((
                        path.to_str().unwrap().to_owned(),
                        (at - header) as u64,
                        at as u64 + 1,
                        half,
                    ));
                }
                std::fs::write(&path, lines.join("\n") + "\n").unwrap();
            }
            let store = Store::create(temp.path().join("store.asof")).unwrap();
            let input = temp.path().join(&arguments[0]).to_str().unwrap().to_owned();
            let report = store.ingest_files(&[input], &options).unwrap();
            let found: Vec<_> = store.quarantine().unwrap().into_iter().map(|e| e.message).collect();
            for (file, position, line, raw) in &put_in {
                let entry = found.iter().find(|m| m.file.as_ref() == Some(file)).expect(page);
                assert_eq!((entry.position, entry.line), (*position, Some(*line)), "{page}");
                assert_eq!(String::from_utf8_lossy(&entry.raw), *raw, "{page}");
                assert!(!entry.reason.is_empty() && entry.length == raw.len() as u64, "{page}: {entry:?}");
            }
            assert_eq!(
                (report.quarantined as usize, found.len()),
                (put_in.len(), put_in.len()),
                "{page}: {report}"
            );
            (latest(&store), report.accepted, report.rows)
        };
        assert_eq!(taken(true), taken(false), "{page}");
    }
}
