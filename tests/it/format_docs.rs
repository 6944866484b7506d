//! The examples of `docs/formats`: what they show is taken as it stands there.

use crate::memory::Memory;
use asofdb::IntakeOptions;
use asofdb::intake::{FileMessages, IntakeReport, Sink, run};
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
