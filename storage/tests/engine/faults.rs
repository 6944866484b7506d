//! Disks that fail, fill up, lie, or lose a write, under commits, flushes, merges and a compaction.
//! Every test prints what it tried and with which seeds.

use crate::hook::HookDisk;
use crate::power::model;
use crate::table::*;
use asofdb_storage::disk::{Disk, DiskOp, SimDisk, sim::Fault};
use asofdb_storage::engine::{Engine, EngineOptions, Error, ErrorKind, OpenMode, Status};
use asofdb_storage::time::FOREVER;
use std::io::ErrorKind as Io;
use std::path::Path;

const COMMITS: u64 = 6;

fn open_as(disk: &SimDisk, mode: OpenMode) -> Result<Engine, Error> {
    Engine::open_with(Path::new("/store"), mode, options(3), components(disk))
}

/// Commits what it can and compacts: the commits that were acknowledged, and the first error.
fn run(engine: &Engine, from: u64) -> (u64, Option<Error>) {
    for seq in from..=COMMITS {
        match engine.commit(commit_of(&model(), seq)) {
            Ok(info) => assert_eq!(info.seq, seq),
            Err(e) => return (seq - 1, Some(e)),
        }
    }
    let told = |status: Status| status.background_error.map(|e| Error::new(ErrorKind::Io, e));
    (COMMITS, engine.compact().err().or_else(|| engine.status().map_or_else(Some, told)))
}

/// A whole run on a healthy disk.
fn whole_run() -> SimDisk {
    let disk = SimDisk::new();
    assert!(run(&open(&disk).expect("a store"), 1).1.is_none());
    disk
}

fn expected(commits: u64) -> Vec<Vec<Option<i64>>> {
    if commits == 0 { Vec::new() } else { expected_rows(&model(), FOREVER, FOREVER, commits) }
}

fn assert_rows(engine: &Engine, commits: u64, place: &str) {
    if commits > 0 {
        assert_eq!(rows(&engine.pin(), 2, FOREVER, FOREVER, commits), expected(commits), "{place}");
    }
}

/// Opens what a failure left, which holds the acknowledged commits or one more, and takes the rest.
fn resumes(disk: &SimDisk, acknowledged: u64, place: &str) {
    let engine = open(disk).unwrap_or_else(|e| panic!("{place}: {e}"));
    let found = engine.pin().commit().0;
    assert!(
        found == acknowledged || found == acknowledged + 1,
        "{place}: {acknowledged} acknowledged, {found} found"
    );
    assert_rows(&engine, found, place);
    let (last, failed) = run(&engine, found + 1);
    assert!(last == COMMITS && failed.is_none(), "{place}: {failed:?}");
    assert_rows(&engine, COMMITS, place);
    assert_eq!(engine.verify_full().expect("verification").damage, Vec::<String>::new(), "{place}");
    let temporary =
        |dir: &str| disk.list(Path::new(dir)).expect("a list").into_iter().filter(|p| is_temporary(p));
    let left: Vec<_> = ["/store", "/store/runs", "/store/log"].into_iter().flat_map(temporary).collect();
    assert!(left.is_empty(), "{place}: {left:?}");
}

fn is_temporary(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "tmp")
}

/// Any call of the disk fails, with and without effect, once and for ever: an error, no acknowledgement
/// after it that does not hold, and a store that goes on after reopening, also after a power cut.
#[test]
fn fault_d14_any_call_that_fails_is_an_error_and_loses_nothing() {
    let operations = whole_run().operations();
    let (mut fired, mut images, mut silent) = (0, 0, 0);
    for (forever, takes_effect) in [(false, false), (false, true), (true, false)] {
        for n in 1.. {
            let disk = SimDisk::new();
            disk.set_fault(Fault { operation: n, kind: Io::Other, forever, takes_effect });
            let (acknowledged, error) = match open(&disk) {
                Ok(engine) => run(&engine, 1),
                Err(e) => (0, Some(e)),
            };
            if disk.faults_fired() == 0 {
                assert!(n > operations.min(50) && error.is_none());
                break;
            }
            fired += 1;
            let place = format!("call {n} fails, for ever: {forever}, with effect: {takes_effect}");
            assert!(error.as_ref().is_none_or(|e| !e.message.is_empty()), "{place}");
            silent += u64::from(forever && error.is_none());
            disk.clear_fault();
            images += 1;
            let cut = format!("{place}, then a power cut, seed {n}");
            resumes(&disk.crash_image(n), acknowledged, &cut);
            resumes(&disk.settled_copy(), acknowledged, &place);
        }
    }
    println!("D14: {fired} calls failed, {images} power cuts after them (seed: number of the call)");
    assert!(fired > 400, "{fired}");
    // Nothing that counts is left to do after the compaction.
    assert!(silent < 20, "{silent} failures were not told although no call worked any more");
}

/// Any call of closing fails, with and without effect, once and for ever: it is told, and every commit is there.
#[test]
fn fault_d14_any_call_that_fails_at_closing_is_told_and_loses_nothing() {
    // All that closing flushes, at once and encoded or not.
    let options =
        EngineOptions { background: true, index: false, closing_events_max: 0, ..options(1_000_000) };
    let mut fired = 0;
    for (forever, takes_effect) in [(false, false), (false, true), (true, false)] {
        for n in 1.. {
            let disk = SimDisk::new();
            let opened =
                Engine::open_with(Path::new("/store"), OpenMode::Create, options.clone(), components(&disk));
            let engine = opened.expect("a new store");
            for seq in 1..=COMMITS {
                engine.commit(commit_of(&model(), seq)).expect("a commit");
            }
            let operation = disk.operations() + n;
            disk.set_fault(Fault { operation, kind: Io::StorageFull, forever, takes_effect });
            let other = engine.clone();
            assert!(other.close().is_ok(), "the store is still open");
            let closed = engine.close();
            if disk.faults_fired() == 0 {
                assert!(n > 8 && closed.is_ok(), "{n}: {closed:?}");
                break;
            }
            fired += 1;
            let place =
                format!("call {n} of closing fails, for ever: {forever}, with effect: {takes_effect}");
            // Lists of commits that count no more are removed at the next opening too.
            let spared = disk.trace()[operation as usize - 1] == (DiskOp::List, "/store".into());
            let told = closed.as_ref().is_err_and(|e| e.kind == ErrorKind::Io && !e.message.is_empty());
            assert!(told || spared && closed.is_ok(), "{place}: {closed:?}");
            disk.clear_fault();
            resumes(&disk.crash_image(n), COMMITS, &format!("{place}, then a power cut, seed {n}"));
            resumes(&disk, COMMITS, &place);
        }
    }
    println!("D14: {fired} calls failed at closing, each was told");
    assert!(fired > 30, "{fired}");
}

/// The disk is full at any size: no acknowledgement, no file left, reads go on, and all of it goes on when
/// there is room again.
#[test]
fn fault_d15_a_full_disk_stops_writing_and_nothing_else() {
    let most = whole_run().bytes() * 3;
    let (mut full, mut read_beside) = (0, 0);
    for capacity in (0..most).step_by(most as usize / 400) {
        let disk = SimDisk::new();
        disk.set_capacity(Some(capacity));
        let place = format!("room for {capacity} bytes");
        let (acknowledged, error) = match open(&disk) {
            Err(e) => (0, Some(e)),
            Ok(engine) => {
                let (acknowledged, error) = run(&engine, 1);
                if error.is_none() {
                    (acknowledged, None)
                } else {
                    let now = engine.pin().commit().0;
                    assert!(now == acknowledged || now == acknowledged + 1, "{place}");
                    assert_rows(&engine, now, &format!("{place}, while it is full"));
                    let next = engine.commit(commit_of(&model(), now + 1));
                    // A small frame may fit where a run did not.
                    (next.map_or(now, |info| info.seq), error)
                }
            }
        };
        let Some(error) = error else { continue };
        full += 1;
        assert_eq!(error.kind, ErrorKind::Io, "{place}: {error}");
        if let Ok(reader) = open_as(&disk, OpenMode::Read) {
            read_beside += 1;
            let found = reader.pin().commit().0;
            assert!(found >= acknowledged, "{place}: {found} of {acknowledged} commits");
            assert_rows(&reader, found, &format!("{place}, read while it is full"));
        }
        disk.set_capacity(None);
        resumes(&disk, acknowledged, &place);
    }
    println!("D15: full at {full} sizes, read while full at {read_beside}");
    assert!(full > 50 && read_beside > 40, "{full} {read_beside}");
}

/// A write that reports success and is not done: an error or the right answer, never a wrong one.
#[test]
fn fault_d10_a_lost_write_is_found_or_does_no_harm() {
    let operations = whole_run().operations();
    let (mut lost, mut told, mut tail) = (0, 0, 0);
    for n in 1..=operations {
        let disk = SimDisk::new();
        disk.lose_write(n);
        let Ok(engine) = open(&disk) else { continue };
        // What runs into it is an error; what does not is acknowledged.
        let (acknowledged, error) = run(&engine, 1);
        drop(engine);
        let place = format!("operation {n} is lost");
        lost += 1;
        let opened = open_as(&disk.settled_copy(), OpenMode::Write);
        let answer = opened.and_then(|engine| {
            let found = engine.pin().commit().0;
            // The last frame of all may be missing without a trace.
            assert!(found + 1 >= acknowledged, "{place}: {found} of {acknowledged} commits");
            tail += u64::from(found < acknowledged);
            let rows = try_latest(&engine.pin(), 2)?;
            assert_eq!(rows, expected(found), "{place}");
            Ok(engine.verify_full()?.damage)
        });
        match answer {
            Ok(damage) => told += u64::from(!damage.is_empty() || error.is_some()),
            Err(e) => {
                told += 1;
                let kinds = [ErrorKind::Damaged, ErrorKind::Io, ErrorKind::NotFound];
                assert!(kinds.contains(&e.kind) && !e.message.is_empty(), "{place}: {e:?}");
            }
        }
    }
    println!(
        "D10: {lost} operations lost in turn; {told} told, {tail} were the last commit, the others did no harm"
    );
    assert!(told > 10 && lost > 100, "{lost} {told}");
}

/// The negative control: on a disk that lies about syncs a power cut loses what was acknowledged, and the
/// tests above would see it. What is left is a prefix of the commits, or an error.
#[test]
fn fault_d12_a_lying_disk_loses_acknowledged_commits_and_it_is_seen() {
    let operations = whole_run().operations();
    let (mut images, mut lost, mut refused) = (0, 0, 0);
    for n in (1..=operations).step_by(3) {
        let disk = SimDisk::new();
        disk.lie_about_syncs(true);
        disk.cut_power_after(n);
        let Ok(engine) = open(&disk) else { continue };
        let (acknowledged, _) = run(&engine, 1);
        for seed in 0..10 {
            images += 1;
            let place = format!("cut after {n}, seed {seed}");
            let image = disk.crash_image(seed);
            let found = open(&image).and_then(|engine| {
                let found = engine.pin().commit().0;
                if found > 0 {
                    assert_eq!(try_latest(&engine.pin(), 2)?, expected(found), "{place}");
                }
                Ok(found)
            });
            match found {
                Ok(found) => lost += u64::from(found < acknowledged),
                Err(e) => {
                    assert!(!e.message.is_empty(), "{place}");
                    refused += 1;
                }
            }
        }
    }
    println!(
        "D12: of {images} images of a lying disk {lost} had lost commits and {refused} were refused (seeds 0 to 9)"
    );
    assert!(lost > images / 20, "the harness sees the loss: {lost} of {images}");
}

/// A panic in the work behind commits is told to whoever waits for it; what was committed stays.
#[test]
fn fault_s2_a_worker_that_panics_is_told_and_commits_do_not_wait_for_it() {
    let disk = SimDisk::new();
    let hooked = HookDisk::new(&disk);
    let options = EngineOptions { background: true, ..options(1) };
    let engine = open_hooked(&hooked, OpenMode::Create, options).expect("a store");
    engine.commit(commit_of(&model(), 1)).expect("a commit");
    hooked.set(|_, _| assert_ne!(std::thread::current().name(), Some("asofdb-worker"), "on purpose"));
    let (done, ended) = std::sync::mpsc::channel();
    let writer = engine.clone();
    let commits = std::thread::spawn(move || {
        let failed = (2..200).find_map(|seq| {
            let request = if seq <= COMMITS { commit_of(&model(), seq) } else { extra_commit(&model(), seq) };
            writer.commit(request).err().map(|e| (seq, e))
        });
        done.send(failed).expect("the test listens");
    });
    let told = ended.recv_timeout(std::time::Duration::from_secs(60)).expect("no commit waits for ever");
    commits.join().expect("commits");
    let (last, error) = told.expect("commits that need memory are refused");
    assert!(error.message.contains("panicked"), "{error:?}");
    assert!(engine.status().expect("status").background_error.is_some_and(|e| e.contains("panicked")));
    hooked.clear();
    drop(engine);
    let engine = open(&disk.crash_image(0)).expect("the store");
    assert_eq!(engine.pin().commit().0, last, "the commit stands whose caller was told");
    println!("S2: the worker panicked, commit {last} was told, all are there");
}

/// Numbers of a manifest and of a list of commits become absurd, or any byte of them changes: an answer or
/// an error, without a panic and without memory beyond what the files say.
#[test]
fn fault_h6_any_manifest_is_read_or_refused() {
    let base = whole_run();
    let paths = base.list(Path::new("/store")).expect("a list").into_iter();
    let paths: Vec<_> =
        paths.filter(|p| p.ends_with("manifest") || p.to_string_lossy().contains("commits-")).collect();
    assert_eq!(paths.len(), 2, "{paths:?}");
    let (mut tried, mut refused) = (0, 0);
    for path in &paths {
        for (what, bytes) in variants(&base.peek(path).expect("a file")) {
            tried += 1;
            for mode in [OpenMode::Read, OpenMode::Write] {
                let disk = base.settled_copy();
                disk.overwrite(path, bytes.clone());
                let place = format!("{}, {what}, {mode:?}", path.display());
                match open_as(&disk, mode).and_then(|e| Ok((e.verify_full()?, try_latest(&e.pin(), 2)?))) {
                    Ok((report, rows)) => {
                        let same = rows == expected(COMMITS);
                        assert!(same || !report.damage.is_empty(), "{place}: {rows:?}");
                    }
                    Err(e) => {
                        refused += 1;
                        assert!(!e.message.is_empty(), "{place}");
                    }
                }
            }
        }
    }
    println!("H6: {tried} files in place of the manifest and the list of commits, refused {refused} times");
    assert!(tried > 300 && refused > 100, "{tried} {refused}");
}

/// A file with absurd numbers behind a right digest, with other bytes, and cut short.
fn variants(whole: &[u8]) -> Vec<(String, Vec<u8>)> {
    use sha2::{Digest, Sha256};
    let mut found = Vec::new();
    let cuts = (0..whole.len()).step_by(whole.len() / 40 + 1);
    found.extend(cuts.clone().map(|at| (format!("cut at {at}"), whole[..at].to_vec())));
    for at in cuts {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 0x55;
        found.push((format!("byte {at}"), bytes));
    }
    let text = std::str::from_utf8(whole).unwrap_or_default();
    let Some((line, body)) = text.split_once('\n').filter(|(l, _)| l.starts_with("asofdb manifest")) else {
        return found;
    };
    assert!(line.contains("sha256"));
    let digits = |at: usize| body[at..].bytes().take_while(u8::is_ascii_digit).count();
    let starts = (1..body.len()).filter(|at| digits(*at) > 0 && body.as_bytes()[at - 1] == b':');
    for at in starts {
        for number in ["0", "1", "4294967295", "18446744073709551615", "1e99", "-1"] {
            let body = format!("{}{number}{}", &body[..at], &body[at + digits(at)..]);
            let digest: String = Sha256::digest(&body).iter().map(|b| format!("{b:02x}")).collect();
            let bytes = format!("asofdb manifest sha256 {digest}\n{body}").into_bytes();
            found.push((format!("{number} at byte {at} of the document"), bytes));
        }
    }
    found
}
