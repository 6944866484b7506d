use super::*;
use crate::source::registry::tests::{Does, serve};
use crate::{IntakeOptions, Store};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const PATIENCE: Patience =
    Patience { answer: Duration::from_millis(300), requests: 2, pause: Duration::from_millis(1) };

fn kept(url: &str, catalog: &Catalog) -> KeptSchemas {
    KeptSchemas::of_registry(&url.parse().unwrap(), PATIENCE, catalog).unwrap()
}

/// A catalog with what `schemas` has got.
fn catalog(schemas: &KeptSchemas) -> Catalog {
    Catalog { positions: schemas.take_new().into_iter().collect(), ..Catalog::default() }
}

const INT: &str = r#"{"schema":"\"int\""}"#;
const SPACED: &str = r#"{"schema":" \"int\" "}"#;
const LONG: &str = r#"{"schema":"\"long\""}"#;
const NONE: &str = r#"{"error_code":40403,"message":"not found"}"#;

/// A registry that gives these answers in turn, then is down; and how often it was asked.
fn registry(answers: &'static [(u16, &'static str)]) -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let url = serve(move |n, _| {
        count.fetch_add(1, Ordering::SeqCst);
        answers.get(n).map_or(Does::Raw(""), |(status, body)| Does::Answer(*status, body))
    });
    (url, asked)
}

#[test]
fn what_was_got_is_to_be_stored_once_and_known_when_the_registry_is_away() {
    let (url, asked) = registry(&[(200, INT)]);
    let first = kept(&url, &Catalog::default());
    assert_eq!(first.schema(7).unwrap().schema, "\"int\"");
    assert_eq!(first.schema(7).unwrap().schema, "\"int\"");
    let catalog = catalog(&first);
    let keys: Vec<_> = catalog.positions.keys().collect();
    assert_eq!(keys, [&format!("schema/{url}#7")]);
    assert!(first.take_new().is_empty() && asked.load(Ordering::SeqCst) == 1);
    // Another run, with nobody there: what is known is known, what is not stops the intake.
    let later = kept(&url, &catalog);
    assert_eq!(later.schema(7).unwrap().schema, "\"int\"");
    let before = asked.load(Ordering::SeqCst);
    assert!(later.schema(7).is_ok() && asked.load(Ordering::SeqCst) == before, "it is away");
    assert!(matches!(later.schema(8), Err(NoSchema::Unreachable(_))));
    assert!(later.take_new().is_empty());
    // Those of another registry are others.
    let (other, _) = registry(&[(200, LONG)]);
    assert_eq!(kept(&other, &catalog).schema(7).unwrap().schema, "\"long\"");
    let offline = KeptSchemas::stored(&url, &catalog).unwrap();
    assert!(offline.schema(7).is_ok());
    assert!(matches!(offline.schema(8), Err(NoSchema::Unknown(r)) if r.contains("no schema with the id 8")));
}

#[test]
fn a_schema_that_changed_under_its_id_is_an_error_with_both_fingerprints() {
    let (url, _) = registry(&[(200, INT), (200, SPACED), (200, LONG), (404, NONE)]);
    let catalog = catalog(&{
        let first = kept(&url, &Catalog::default());
        first.schema(7).unwrap();
        first
    });
    assert!(kept(&url, &catalog).schema(7).is_ok(), "spaces are no change");
    let was = catalog.positions.values().next().unwrap()["fingerprint"].as_str().unwrap().to_owned();
    let Err(NoSchema::Changed(reason)) = kept(&url, &catalog).schema(7) else { panic!("it changed") };
    let now = fingerprint(&SchemaText { schema: "\"long\"".into(), references: Vec::new() });
    assert!(was != now && reason.contains(&was) && reason.contains(&now), "{reason}");
    assert!(reason.contains("schema 7") && reason.contains(&url), "{reason}");
    // What was deleted there is what it was here.
    assert_eq!(kept(&url, &catalog).schema(7).unwrap().schema, "\"int\"");
}

#[test]
fn references_belong_to_a_schema_and_its_fingerprint() {
    let text = |references: &[&str]| SchemaText {
        schema: "\"a\"".into(),
        references: references.iter().map(|r| (*r).to_owned()).collect(),
    };
    let all = [text(&[]), text(&["\"b\""]), text(&["\"c\""]), text(&["\"b\"", "\"c\""])];
    for (i, a) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|b| fingerprint(a) != fingerprint(b)));
        let stored = Stored::new("http://r", 1, a);
        let positions = [(stored.key(), serde_json::json!(stored))].into_iter().collect();
        let catalog = Catalog { positions, ..Catalog::default() };
        assert_eq!(*KeptSchemas::stored("http://r", &catalog).unwrap().schema(1).unwrap(), *a);
    }
    let positions = [("schema/x#1".to_owned(), serde_json::json!(3))].into_iter().collect();
    let error = KeptSchemas::stored("x", &Catalog { positions, ..Catalog::default() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
}

fn dump(dir: &Path, ids: &[u8]) -> String {
    let record = |(offset, id): (usize, &u8)| {
        use base64::Engine;
        let value = base64::engine::general_purpose::STANDARD.encode([0, 0, 0, 0, *id, offset as u8 * 2]);
        format!("{{\"topic\":\"t\",\"partition\":0,\"offset\":{offset},\"value_b64\":\"{value}\"}}\n")
    };
    let path = dir.join("t.kdump.jsonl");
    std::fs::write(&path, ids.iter().enumerate().map(record).collect::<String>()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn options(url: &str) -> IntakeOptions {
    IntakeOptions {
        table: Some("t".into()),
        format: Some("avro".into()),
        registry: Some(url.parse().unwrap()),
        batch: Some(1),
        ..IntakeOptions::default()
    }
}

const RECORD: &str =
    r#"{"schema":"{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"}]}"}"#;
const OTHER: &str =
    r#"{"schema":"{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"b\",\"type\":\"int\"}]}"}"#;

#[test]
fn a_schema_stands_in_the_commit_of_the_message_that_first_named_it() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("s");
    let (url, asked) = registry(&[(200, RECORD), (200, OTHER)]);
    let store = Store::create(&home).unwrap();
    store.ingest_files(&[dump(dir.path(), &[1, 1, 2])], &options(&url)).unwrap();
    let noted = |store: &Store| -> Vec<_> {
        store.commits().unwrap().iter().map(|c| c.note["schemas"][0].as_str().map(str::to_owned)).collect()
    };
    let notes = noted(&store);
    let begins = |i: usize, id: u8| notes[i].as_ref().unwrap().starts_with(&format!("{url}#{id} sha256:"));
    assert!(notes.len() == 3 && begins(0, 1) && notes[1].is_none() && begins(2, 2), "{notes:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    drop(store);
    for state in ["reopened", "compacted", "rebuilt"] {
        let store = Store::open(&home).unwrap();
        match state {
            "compacted" => drop(store.engine().compact().unwrap()),
            "rebuilt" => store.engine().rebuild().unwrap(),
            _ => {}
        }
        assert_eq!(noted(&store)[..3], notes, "{state}");
        // The registry is down from here on; known ids go on.
        let messages = store.commits().unwrap().len();
        let ids: Vec<u8> = (0..=messages as u8).map(|n| if n < 2 { 1 } else { 2 }).collect();
        let report = store.ingest_files(&[dump(dir.path(), &ids)], &options(&url)).unwrap();
        assert_eq!((report.accepted, report.quarantined), (1, 0), "{state}");
    }
    // An id that the store does not have stops the intake, and nothing is put aside.
    let store = Store::open(&home).unwrap();
    let quick = IntakeOptions { batch: None, ..options(&url) };
    let error = store.ingest_files(&[dump(dir.path(), &[1, 1, 2, 2, 2, 2, 3])], &quick).unwrap_err();
    assert!(error.kind() == ErrorKind::Source && error.message().contains(&url), "{error}");
    assert!(store.quarantine().unwrap().is_empty());
}

#[test]
fn an_id_that_was_unknown_is_asked_for_again_in_the_next_batch() {
    let dir = tempfile::tempdir().unwrap();
    let (url, asked) = registry(&[(404, NONE), (404, NONE), (200, RECORD)]);
    let store = Store::create(dir.path().join("s")).unwrap();
    let report = store.ingest_files(&[dump(dir.path(), &[1, 1, 1, 1])], &options(&url)).unwrap();
    assert_eq!((report.accepted, report.quarantined), (2, 2), "{report:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    // Within one batch once is enough.
    let (url, asked) = registry(&[(404, NONE), (404, NONE)]);
    let store = Store::create(dir.path().join("w")).unwrap();
    let whole = IntakeOptions { batch: None, ..options(&url) };
    let report = store.ingest_files(&[dump(dir.path(), &[1, 1, 1, 1])], &whole).unwrap();
    assert_eq!((report.quarantined, asked.load(Ordering::SeqCst)), (4, 1));
}

#[test]
fn messages_put_aside_for_their_schema_are_replayed_once_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let (url, _) = registry(&[(404, NONE), (200, RECORD)]);
    let store = Store::create(dir.path().join("s")).unwrap();
    let whole = IntakeOptions { batch: None, ..options(&url) };
    store.ingest_files(&[dump(dir.path(), &[1, 1])], &whole).unwrap();
    let report = store.replay_quarantine(&[], &IntakeOptions::default()).unwrap();
    assert_eq!((report.accepted, report.quarantined), (2, 0));
    assert!(store.catalog().positions.contains_key(&format!("schema/{url}#1")), "and kept");
}

#[test]
fn a_changed_schema_stops_the_intake() {
    let dir = tempfile::tempdir().unwrap();
    let (url, _) = registry(&[(200, RECORD), (200, OTHER)]);
    let store = Store::create(dir.path().join("s")).unwrap();
    store.ingest_files(&[dump(dir.path(), &[1])], &options(&url)).unwrap();
    let error = store.ingest_files(&[dump(dir.path(), &[1, 1])], &options(&url)).unwrap_err();
    assert!(error.message().matches("sha256:").count() == 2, "{error}");
    assert!(error.hints()[0].contains("--schemas"), "{:?}", error.hints());
    assert!(store.quarantine().unwrap().is_empty() && store.commit().0 == 1);
}
