//! Opening a store whose log has many small commits that no run holds.

use crate::power::model;
use crate::table::*;
use crate::widen::{commit as widening_commit, values};
use asofdb_storage::disk::{Disk, SimDisk};
use asofdb_storage::engine::{Engine, EngineOptions, OpenMode};
use asofdb_storage::time::FOREVER;
use asofdb_storage::value::{Cell, ColumnType};
use std::path::Path;

/// A store whose worker finds nothing to do.
fn quiet(disk: &SimDisk, mode: OpenMode, memory_events_max: usize) -> Engine {
    let options = EngineOptions { background: true, ..options(memory_events_max) };
    Engine::open_with(Path::new("/store"), mode, options, components(disk)).expect("a store")
}

#[test]
fn many_small_commits_are_all_found() {
    let disk = SimDisk::new();
    let engine = quiet(&disk, OpenMode::Create, 100_000);
    for seq in 1..=6 {
        engine.commit(commit_of(&model(), seq)).expect("a commit");
    }
    for seq in 7..=700 {
        engine.commit(extra_commit(&model(), seq)).expect("a commit");
    }
    let expected = rows(&engine.pin(), 2, FOREVER, FOREVER, 700);
    let early = rows(&engine.pin(), 2, FOREVER, FOREVER, 500);
    drop(engine);
    // To ask, and to write with memory that is full now and then.
    for (mode, memory_events_max) in
        [(OpenMode::Read, 1000), (OpenMode::Write, 100_000), (OpenMode::Write, 100)]
    {
        let place = format!("{mode:?}, {memory_events_max} events in memory");
        let engine = quiet(&disk.settled_copy(), mode, memory_events_max);
        let snapshot = engine.pin();
        assert_eq!(snapshot.commits().expect("commits").len(), 700, "{place}");
        assert_eq!(engine.status().expect("status").events, 12 + 694, "{place}");
        assert_eq!(rows(&snapshot, 2, FOREVER, FOREVER, 700), expected, "{place}");
        assert_eq!(rows(&snapshot, 2, FOREVER, FOREVER, 500), early, "{place}");
        assert_eq!(engine.verify_full().expect("verification").damage, Vec::<String>::new(), "{place}");
    }
}

#[test]
fn columns_that_widened_among_many_small_commits_show_what_was_sent() {
    // The text comes early, so that many small commits wait beside columns that cannot follow it.
    let mut types = vec![ColumnType::Decimal { integer: 1, scale: 2 }; 50];
    types.extend([ColumnType::Text; 250]);
    let mut expected: Vec<Option<String>> = Vec::new();
    let disk = SimDisk::new();
    let engine = quiet(&disk, OpenMode::Create, 100_000);
    for i in 0..300 {
        let cell = if i < 50 { Cell::Decimal { unscaled: 100 + i, scale: 2 } } else { Cell::Text("abc") };
        widening_commit(&engine, i as usize, &types, cell);
        expected.push(Some(if i < 50 { format!("1.{i:02}") } else { "abc".into() }));
    }
    assert_eq!(values(&engine), expected);
    drop(engine);
    // Everything comes from the log again.
    disk.remove(Path::new("/store/manifest")).expect("removed");
    for (mode, memory_events_max) in [(OpenMode::Read, 1000), (OpenMode::Write, 100_000)] {
        let engine = quiet(&disk.settled_copy(), mode, memory_events_max);
        assert_eq!(values(&engine), expected, "{mode:?}");
    }
}
