//! Cutting a damaged log on request (D6).

use crate::power::model;
use crate::table::*;
use asofdb_storage::disk::{Disk, SimDisk, sim::Fault};
use asofdb_storage::engine::{Engine, EngineOptions, Error, ErrorKind, OpenMode, Salvaged};
use asofdb_storage::time::FOREVER;
use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};

const COMMITS: u64 = 6;

/// All of it in the log alone, or with runs up to some commit.
fn stored(flushed: u64) -> (SimDisk, Vec<u64>) {
    let disk = SimDisk::new();
    let engine = Engine::open_with(Path::new("/store"), OpenMode::Create, kept_in_log(), components(&disk));
    let engine = engine.expect("a new store");
    let mut ends = Vec::new();
    for seq in 1..=COMMITS {
        engine.commit(commit_of(&model(), seq)).expect("a commit");
        if seq == flushed {
            engine.flush().expect("runs");
        }
        ends.push(disk.len(&segment()).expect("a length").expect("a segment"));
    }
    (disk, ends)
}

fn kept_in_log() -> EngineOptions {
    EngineOptions { index: false, ..options(1_000_000) }
}

fn segment() -> PathBuf {
    "/store/log/0000000001.seg".into()
}

fn salvage(disk: &SimDisk) -> Result<(Engine, Salvaged), Error> {
    Engine::salvage(Path::new("/store"), kept_in_log(), components(disk))
}

fn damaged(disk: &SimDisk, at: u64) -> SimDisk {
    let damaged = disk.settled_copy();
    let mut bytes = damaged.peek(&segment()).expect("a segment");
    bytes[at as usize] ^= 0x10;
    damaged.overwrite(&segment(), bytes);
    damaged
}

fn assert_kept(engine: &Engine, kept: u64, place: &str) {
    assert_eq!(engine.pin().commit().0, kept + 1, "{place}");
    let commits = engine.pin().commits().expect("commits");
    let note = &commits[kept as usize].note;
    assert_eq!((note["kind"].as_str(), note["last_commit_kept"].as_u64()), (Some("salvage"), Some(kept)));
    if kept > 0 {
        let expected = expected_rows(&model(), FOREVER, FOREVER, kept);
        assert_eq!(rows(&engine.pin(), 2, FOREVER, FOREVER, kept), expected, "{place}");
    }
    assert_eq!(engine.verify_full().expect("verification").damage, Vec::<String>::new(), "{place}");
}

#[test]
fn fault_d6_a_damaged_log_is_cut_on_request_and_what_is_cut_is_kept() {
    for flushed in [0, 2] {
        let (disk, ends) = stored(flushed);
        let whole = disk.peek(&segment()).expect("a segment");
        // A byte in each frame but the last, whose damage is a torn tail.
        for lost in flushed + 1..COMMITS {
            let start = (lost > 1).then(|| ends[lost as usize - 2]);
            let end = ends[lost as usize - 1];
            let place = format!("commit {lost} is damaged, runs have {flushed}");
            let disk = damaged(&disk, end - 9);
            let before = disk.peek(&segment()).expect("a segment");
            assert_eq!(open(&disk).expect_err(&place).kind, ErrorKind::Damaged, "{place}");
            assert_eq!(disk.peek(&segment()).as_ref(), Some(&before), "{place}: opening changed it");
            let (engine, salvaged) = salvage(&disk).unwrap_or_else(|e| panic!("{place}: {e}"));
            assert_kept(&engine, lost - 1, &place);
            let cut = &salvaged.cut;
            let seen: Vec<u64> = cut.readable.iter().map(|c| c.0).collect();
            assert_eq!((cut.last.0, seen), (lost - 1, (lost + 1..=COMMITS).collect()), "{place}");
            let from = cut.damage.offset;
            assert!(start.is_none_or(|s| s == from), "{place}: {from}");
            assert_eq!(cut.bytes, whole.len() as u64 - from, "{place}");
            let [copy] = &salvaged.copies[..] else { panic!("{place}: {salvaged:?}") };
            assert!(copy.starts_with("/store/salvaged-1"), "{place}: {copy:?}");
            assert_eq!(disk.peek(copy).expect("a copy"), before[from as usize..], "{place}");
            drop(engine);
            assert_eq!(
                salvage(&disk).expect_err(&place).kind,
                ErrorKind::Invalid,
                "{place}: nothing is left to cut"
            );
            open(&disk.crash_image(0)).unwrap_or_else(|e| panic!("{place}, then a power cut: {e}"));
        }
    }
}

#[test]
fn fault_d6_nothing_is_cut_that_is_whole_or_that_runs_have() {
    let (disk, ends) = stored(4);
    let refused = |disk: &SimDisk, kind: ErrorKind, place: &str| {
        let before = disk.peek(&segment());
        let error = salvage(disk).expect_err(place);
        assert_eq!(error.kind, kind, "{place}: {error}");
        assert!(error.hint.is_some(), "{place}: {error}");
        assert_eq!(disk.peek(&segment()), before, "{place}: it was changed");
        assert!(!disk.exists(Path::new("/store/salvaged-1")).expect("a look"), "{place}");
    };
    refused(&disk.settled_copy(), ErrorKind::Invalid, "a whole store");
    refused(&damaged(&disk, ends[1] - 9), ErrorKind::Invalid, "damage in what runs have");
    refused(&damaged(&disk, ends[3] - 9), ErrorKind::Damaged, "damage of the last commit that runs have");
    let torn = disk.settled_copy();
    let bytes = torn.peek(&segment()).expect("a segment");
    torn.overwrite(&segment(), bytes[..bytes.len() - 5].to_vec());
    refused(&torn, ErrorKind::Invalid, "a torn tail, which opening cuts off");
}

#[test]
fn fault_d6_a_salvage_that_fails_anywhere_can_be_made_again() {
    let (whole, ends) = stored(0);
    let (mut fired, lost) = (0, 4);
    for takes_effect in [false, true] {
        for n in 1.. {
            let disk = damaged(&whole, ends[lost as usize - 1] - 9);
            let base = disk.operations();
            disk.set_fault(Fault { operation: base + n, kind: Io::Other, forever: true, takes_effect });
            let done = salvage(&disk);
            if disk.faults_fired() == 0 {
                disk.clear_fault();
                assert_kept(&done.expect("nothing failed").0, lost - 1, "no fault");
                break;
            }
            fired += 1;
            drop(done);
            disk.clear_fault();
            for (disk, what) in [(disk.crash_image(n), "a power cut"), (disk.settled_copy(), "no power cut")]
            {
                let place = format!("call {n} fails, with effect: {takes_effect}, then {what}");
                match salvage(&disk) {
                    Ok((engine, salvaged)) => {
                        assert_kept(&engine, lost - 1, &place);
                        assert!(
                            salvaged.copies.iter().all(|c| disk.peek(c).is_some_and(|b| !b.is_empty())),
                            "{place}"
                        );
                    }
                    // The cut was made, and kept; perhaps its commit was not.
                    Err(e) => {
                        assert_eq!(e.kind, ErrorKind::Invalid, "{place}: {e}");
                        let kept = open(&disk).unwrap_or_else(|e| panic!("{place}: {e}")).pin().commit().0;
                        assert!(kept == lost - 1 || kept == lost, "{place}: {kept}");
                        let copies = disk.list(Path::new("/store/salvaged-1")).expect("copies");
                        assert!(!copies.is_empty(), "{place}");
                    }
                }
            }
        }
    }
    println!("D6: {fired} calls failed in a salvage");
    assert!(fired > 40, "{fired}");
}

#[test]
fn fault_d6_a_damaged_header_of_the_only_segment_is_never_taken_for_an_empty_store() {
    let (disk, _) = stored(0);
    for byte in 0..96 {
        let disk = damaged(&disk, byte);
        let before = disk.peek(&segment());
        for mode in [OpenMode::Read, OpenMode::Write, OpenMode::Create] {
            let opened = Engine::open_with(Path::new("/store"), mode, kept_in_log(), components(&disk));
            let error = opened.expect_err(&format!("byte {byte}, {mode:?}"));
            assert_eq!(error.kind, ErrorKind::Damaged, "byte {byte}, {mode:?}: {error}");
            assert_eq!(disk.peek(&segment()), before, "byte {byte}, {mode:?}: it was changed");
        }
    }
}
