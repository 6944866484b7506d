//! Rule C3: a stream with a gap stops until the gap is accepted.

use asofdb::change::{Change, Column, Decoded};
use asofdb::intake::{Messages, Step, StreamStart, Take};
use asofdb::source::Place;
use asofdb::{Error, ErrorKind, IntakeOptions, IntakeReport, Progress, Store};
use asofdb_storage::event::Op;
use asofdb_storage::value::Cell;
use std::ops::{ControlFlow, Range};

/// A topic that has the messages `held`, one row each.
struct Topic {
    held: Range<u64>,
    identity: Option<&'static str>,
}

impl Messages for Topic {
    fn read(&mut self, _: usize, take: &mut Take<'_>) -> Result<Step, Error> {
        for position in self.held.clone() {
            let cells = [Column { name: "id", cell: Cell::Int(position as i64) }];
            let change = Change { table: Some("t"), key: &cells, image: &cells, ..Change::new(Op::Insert) };
            let place = Place {
                number: 0,
                stream: "topic/0",
                stream_generation: 0,
                origin: "",
                origin_generation: 0,
                position,
                file: "",
                line: 0,
                byte: 0,
                raw: b"x",
                record: None,
            };
            take(&place, Decoded::Changes(&[change]))?;
        }
        Ok(Step::End)
    }

    fn starts(&mut self) -> Result<Vec<StreamStart>, Error> {
        let identity = self.identity.map(str::to_owned);
        let first = self.held.start;
        Ok(vec![StreamStart { stream: "topic/0".into(), first, identity, replaced: None, begin: None }])
    }

    fn positions(&mut self) -> Vec<(String, serde_json::Value)> {
        Vec::new()
    }

    fn progress(&self, _: &mut Progress) {}

    fn notices(&mut self) -> Vec<String> {
        Vec::new()
    }
}

fn take(store: &Store, held: Range<u64>, identity: Option<&'static str>) -> Result<IntakeReport, Error> {
    let options = IntakeOptions::default();
    store.ingest_messages(&mut Topic { held, identity }, &options, &mut |_| ControlFlow::Continue(()))
}

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s")).unwrap();
    (dir, store)
}

#[test]
fn c3_a_stream_that_starts_above_its_position_stops_until_the_gap_is_accepted() {
    let (_dir, store) = store();
    assert_eq!(take(&store, 5..8, None).unwrap().accepted, 3, "a new stream may begin anywhere");
    assert_eq!(take(&store, 6..9, None).unwrap().accepted, 1, "what is held still may overlap");
    assert_eq!(take(&store, 9..10, None).unwrap().accepted, 1, "or follow at once");
    let error = take(&store, 12..14, None).unwrap_err();
    assert_eq!((error.kind(), store.commit().0), (ErrorKind::Source, 3), "nothing is taken");
    assert!(
        error.message().contains("begins at position 12") && error.message().contains("is at 10"),
        "{error}"
    );
    let near = store.accept_gap("topic/1").unwrap_err();
    assert_eq!(near.hints(), ["did you mean topic/0?"]);
    let info = store.accept_gap("topic/0").unwrap().expect("a commit");
    assert_eq!((info.note["kind"].as_str(), info.note["next"].as_u64()), (Some("accept-gap"), Some(10)));
    assert_eq!(store.accept_gap("topic/0").unwrap(), None, "once is enough");
    assert_eq!(take(&store, 12..14, None).unwrap().accepted, 2);
    // The next gap is another one.
    assert_eq!(take(&store, 20..21, None).unwrap_err().kind(), ErrorKind::Source);
}

#[test]
fn c3_a_stream_that_became_another_one_stops_and_then_begins_anew() {
    let (_dir, store) = store();
    take(&store, 0..3, Some("a")).unwrap();
    take(&store, 2..4, Some("a")).unwrap();
    let error = take(&store, 0..3, Some("b")).unwrap_err();
    assert!(error.message().contains("it was a, and is b"), "{error}");
    store.accept_gap("topic/0").unwrap().expect("a commit");
    for accepted in [3, 0] {
        assert_eq!(take(&store, 0..3, Some("b")).unwrap().accepted, accepted, "under positions of its own");
    }
    assert_eq!(take(&store, 3..4, Some("b")).unwrap().accepted, 1);
    assert_eq!(
        take(&store, 0..4, Some("a")).unwrap_err().kind(),
        ErrorKind::Source,
        "back is another change"
    );
    assert_eq!(store.catalog().streams.len(), 2);
}
