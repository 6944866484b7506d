//! Exports at an interval while events come in.

use super::fixture::{Fixture, checked, events, options, read};
use asofdb::export::Manifest;
use asofdb::{ErrorKind, ExportOptions, IntakeOptions};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(15);

/// The commits of all tables in the generation that readers see, by one look.
fn generation(out: &Path) -> Option<BTreeSet<u64>> {
    let dir = out.join("t").canonicalize().ok()?;
    let generation = dir.parent()?.parent()?;
    let mut commits = BTreeSet::new();
    for table in ["t", "u"] {
        let data = generation.join(table).join("data");
        // Two rounds later a generation is gone; until then it is whole.
        let Ok(manifest) = Manifest::read(&data) else { return None };
        match manifest.verify(&data) {
            Ok(()) => commits.insert(manifest.commit),
            Err(e) => {
                assert!(!generation.exists(), "{e}");
                return None;
            }
        };
    }
    Some(commits)
}

#[test]
fn readers_see_one_commit_whole_while_events_come_in() {
    let fixture = Fixture::empty();
    let (t, u) = (options(), IntakeOptions { table: Some("u".into()), ..options() });
    fixture.take(&events(1, 20), &t);
    fixture.take(&events(2, 20), &u);
    let reports = Arc::new(Mutex::new(Vec::new()));
    let heard = reports.clone();
    let hear = move |r: &asofdb::Result<asofdb::ExportReport>| heard.lock().unwrap().push(r.clone());
    let rounds = fixture.store.export_every(fixture.out(), ExportOptions::default(), EVERY, hear).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (out, stopped) = (fixture.out(), stop.clone());
    let reader = std::thread::spawn(move || {
        let mut seen = BTreeSet::new();
        while !stopped.load(Ordering::SeqCst) {
            if let Some(commits) = generation(&out) {
                assert_eq!(commits.len(), 1, "tables of different commits: {commits:?}");
                seen.extend(commits);
            }
        }
        seen
    });
    for seed in 3..25 {
        fixture.take(&events(seed, 30), if seed % 2 == 0 { &t } else { &u });
        std::thread::sleep(Duration::from_millis(10));
    }
    let last = rounds.finish().unwrap();
    stop.store(true, Ordering::SeqCst);
    let seen = reader.join().unwrap();
    assert!(seen.len() > 2, "the reader saw the commits {seen:?}");
    let reports = reports.lock().unwrap();
    let commits: Vec<u64> = reports.iter().map(|r| r.as_ref().unwrap().commit).collect();
    assert!(commits.windows(2).all(|w| w[0] < w[1]), "{commits:?}");
    assert_eq!(commits.last(), Some(&fixture.store.commit().0), "the last export is of the last commit");
    if let Some(last) = last {
        checked(&last, "t");
        checked(&last, "u");
    }
    let intervals = read(&fixture.out().join("u")).len();
    let alone =
        fixture.store.export("u", fixture.dir.path().join("alone"), &ExportOptions::default()).unwrap();
    assert_eq!(alone.tables[0].rows as usize, intervals);
}

#[test]
fn a_failed_round_is_reported_and_loses_no_event() {
    let fixture = Fixture::of_steps(1, 30);
    let reports = Arc::new(Mutex::new(Vec::new()));
    let heard = reports.clone();
    let hear = move |r: &asofdb::Result<asofdb::ExportReport>| {
        heard.lock().unwrap().push(r.as_ref().map(|r| r.commit).map_err(|e| e.message().to_owned()));
    };
    let rounds = fixture.store.export_every(fixture.out(), ExportOptions::default(), EVERY, hear).unwrap();
    wait(|| fixture.out().join("t").exists());
    // Something that is no export takes the place of the table.
    std::fs::remove_file(fixture.out().join("t")).unwrap();
    std::fs::create_dir(fixture.out().join("t")).unwrap();
    fixture.take(&events(2, 40), &options());
    wait(|| reports.lock().unwrap().iter().any(Result::is_err));
    fixture.take(&events(3, 40), &options());
    let e = rounds.finish().unwrap_err();
    assert!(e.message().contains("no export of asof"), "{e}");
    let history: usize =
        fixture.store.table("t").unwrap().history(None).unwrap().iter().map(|b| b.num_rows()).sum();
    assert_eq!(history, 110);
    std::fs::remove_dir(fixture.out().join("t")).unwrap();
    let rounds = fixture.store.export_every(fixture.out(), ExportOptions::default(), EVERY, |_| {}).unwrap();
    let report = rounds.finish().unwrap();
    assert_eq!(Manifest::read(fixture.out().join("t")).unwrap().commit, fixture.store.commit().0);
    assert!(report.is_none_or(|r| r.commit == fixture.store.commit().0));
}

#[test]
fn a_round_without_a_new_commit_is_left_out() {
    let fixture = Fixture::of_steps(1, 30);
    let reports = Arc::new(Mutex::new(Vec::new()));
    let heard = reports.clone();
    let hear = move |r: &asofdb::Result<asofdb::ExportReport>| {
        heard.lock().unwrap().push(r.as_ref().unwrap().commit);
    };
    let rounds = fixture.store.export_every(fixture.out(), ExportOptions::default(), EVERY, hear).unwrap();
    wait(|| !reports.lock().unwrap().is_empty());
    std::thread::sleep(20 * EVERY);
    assert_eq!(rounds.finish().unwrap(), None, "the last round has nothing new either");
    assert_eq!(*reports.lock().unwrap(), [fixture.store.commit().0]);
}

#[test]
fn one_export_at_a_time_writes_to_a_place() {
    let fixture = Fixture::of_steps(1, 30);
    let slow = Duration::from_secs(3600);
    let first = fixture.store.export_every(fixture.out(), ExportOptions::default(), slow, |_| {}).unwrap();
    let second = fixture.store.export_every(fixture.out(), ExportOptions::default(), slow, |_| {});
    assert_eq!(second.map(|_| ()).unwrap_err().kind(), ErrorKind::Busy);
    drop(first);
    assert!(!fixture.out().join("t").exists(), "dropped, it leaves at once");
    let none = Fixture::empty();
    let rounds = none.store.export_every(none.out(), ExportOptions::default(), slow, |_| {}).unwrap();
    assert_eq!(rounds.finish().unwrap(), None, "an empty store has nothing to export");
}

#[test]
fn an_export_of_one_table_and_exports_of_all_take_turns() {
    let fixture = Fixture::of_steps(1, 30);
    fixture.export(&ExportOptions::default());
    let hidden = fixture.out().join(".asof-export");
    assert!(hidden.join("table-t").exists());
    let slow = Duration::from_secs(3600);
    let rounds = fixture.store.export_every(fixture.out(), ExportOptions::default(), slow, |_| {}).unwrap();
    let report = rounds.finish().unwrap().unwrap();
    checked(&report, "t");
    assert!(!hidden.join("table-t").exists(), "what nothing leads to is removed");
    fixture.export(&ExportOptions::default());
    assert!(!hidden.join("all-tables").exists());
}

fn wait(done: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing came within ten seconds");
}
