//! Threads of an intake that panic.

use super::Place;
use asofdb::change::{Change, Column, Decoded};
use asofdb::intake::{Messages, Sink, Step, Take, run};
use asofdb::{Error, ErrorKind, IntakeOptions, Progress};
use asofdb_storage::engine::{self, Catalog, CommitInfo, CommitRequest, Engine, StoredEvent};
use asofdb_storage::event::Op;
use asofdb_storage::id::{OriginId, StreamId, TableId};
use asofdb_storage::value::Cell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of a stream; reading panics before the row with the number `panics_at`.
struct Feed {
    next: u64,
    end: u64,
    panics_at: u64,
}

impl Messages for Feed {
    fn read(&mut self, _: usize, take: &mut Take<'_>) -> Result<Step, Error> {
        let position = self.next;
        assert!(position != self.panics_at, "no rows of this kind");
        let cells = [Column { name: "id", cell: Cell::Int(position as i64) }];
        let change = Change { table: Some("t"), key: &cells, image: &cells, ..Change::new(Op::Insert) };
        let place = asofdb::source::Place {
            number: 0,
            stream: "feed",
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
        self.next += 1;
        Ok(if self.next == self.end { Step::End } else { Step::More })
    }

    fn positions(&mut self) -> Vec<(String, serde_json::Value)> {
        Vec::new()
    }

    fn progress(&self, _: &mut Progress) {}

    fn notices(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// A store whose commit number `panics_at` panics.
struct Panicking<'e> {
    engine: &'e Engine,
    panics_at: u64,
    commits: AtomicU64,
}

impl Sink for Panicking<'_> {
    fn catalog(&self) -> Arc<Catalog> {
        Sink::catalog(self.engine)
    }

    fn commit_at(&self) -> Option<i64> {
        Sink::commit_at(self.engine)
    }

    fn commit(&self, request: CommitRequest) -> Result<CommitInfo, engine::Error> {
        let n = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(n != self.panics_at, "no room for this");
        self.engine.commit(request)
    }

    fn key_events(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Vec<StoredEvent>>, engine::Error> {
        Sink::key_events(self.engine, table, keys)
    }

    fn each_event(
        &self,
        table: TableId,
        stream: StreamId,
        take: &mut dyn FnMut((OriginId, u64, u32), i64),
    ) -> Result<(), engine::Error> {
        Sink::each_event(self.engine, table, stream, take)
    }

    fn operation_ids(&self, table: TableId) -> Result<HashMap<Vec<u8>, u64>, engine::Error> {
        Sink::operation_ids(self.engine, table)
    }
}

#[test]
fn fault_s2_a_panic_of_the_decoder_or_of_a_commit_is_an_error_and_nothing_is_lost() {
    for (in_decoder, word) in [(true, "no rows of this kind"), (false, "no room for this")] {
        let place = Place::new();
        let options = IntakeOptions { batch: Some(1), ..IntakeOptions::default() };
        let mut feed = Feed { next: 0, end: 9, panics_at: if in_decoder { 4 } else { u64::MAX } };
        let panics_at = if in_decoder { 0 } else { 5 };
        let sink = Panicking { engine: place.store.engine(), panics_at, commits: AtomicU64::new(0) };
        let failed = run(&sink, &mut feed, &options, &mut |_| ControlFlow::Continue(()));
        let e = failed.expect_err("a panic");
        assert!(e.message().contains(word) && !e.hints().is_empty(), "{e:?}");
        assert_eq!(e.kind(), ErrorKind::Failed);
        let stored = place.store.commit().0;
        assert!((3..=4).contains(&stored), "{stored} commits");
        // The next run goes on behind them, and takes nothing twice.
        let mut feed = Feed { next: 0, end: 9, panics_at: u64::MAX };
        let report =
            run(place.store.engine(), &mut feed, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((report.repeated(), report.accepted), (stored, 9 - stored));
        place.assert_sound();
        println!("S2: a panic in row 4, {stored} commits stood");
    }
}
