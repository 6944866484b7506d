//! The list of commits beside the manifest: flushes append to it, and without it everything is derived
//! from the log.

use crate::hook::HookDisk;
use crate::power::{manifest_counts, model};
use crate::table::*;
use asofdb_storage::disk::sim::Fault;
use asofdb_storage::disk::{Disk, SimDisk};
use asofdb_storage::engine::{Engine, OpenMode};
use asofdb_storage::time::FOREVER;
use sha2::{Digest, Sha256};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "/store/manifest";

fn open_as(disk: &SimDisk, mode: OpenMode) -> Engine {
    Engine::open_with(Path::new("/store"), mode, options(1000), components(disk)).expect("a store")
}

/// The files of the list, in order.
fn lists(disk: &SimDisk) -> Vec<PathBuf> {
    let paths = disk.list(Path::new("/store")).expect("a list").into_iter();
    paths.filter(|p| p.display().to_string().starts_with("/store/commits-")).collect()
}

fn list(disk: &SimDisk) -> Vec<u8> {
    let files = lists(disk);
    assert_eq!(files.len(), 1, "{files:?}");
    disk.peek(&files[0]).expect("a file")
}

/// A store with each of the first commits in a run of its own.
fn filled(commits: u64) -> (SimDisk, Engine) {
    let disk = SimDisk::new();
    let engine = open_as(&disk, OpenMode::Create);
    for seq in 1..=commits {
        engine.commit(commit_of(&model(), seq)).expect("a commit");
        engine.flush().expect("a flush");
    }
    (disk, engine)
}

fn check(engine: &Engine, commits: u64, place: &str) {
    let snapshot = engine.pin();
    assert_eq!(snapshot.commit().0, commits, "{place}");
    let infos = snapshot.commits().expect("commits");
    assert_eq!(infos.iter().map(|c| c.seq).collect::<Vec<_>>(), (1..=commits).collect::<Vec<_>>(), "{place}");
    assert_eq!(infos.last().map(|c| c.at), snapshot.commit_at(), "{place}");
    let expected = expected_rows(&model(), FOREVER, FOREVER, commits);
    assert_eq!(rows(&snapshot, 2, FOREVER, FOREVER, commits), expected, "{place}");
}

fn runs(engine: &Engine) -> u64 {
    engine.status().expect("status").tables.iter().map(|t| t.runs).sum()
}

fn damage(engine: &Engine) -> Vec<String> {
    engine.verify(None).expect("verification").damage
}

#[test]
fn a_flush_appends_what_is_new_and_a_merge_nothing() {
    let (disk, engine) = filled(2);
    let two = list(&disk);
    for (commit, what) in [(None, "a merge"), (Some(3), "a flush")] {
        let before = disk.peek(Path::new(MANIFEST));
        match commit {
            None => drop(engine.compact().expect("a merge")),
            Some(seq) => {
                engine.commit(commit_of(&model(), seq)).expect("a commit");
                engine.flush().expect("a flush");
            }
        }
        assert_ne!(disk.peek(Path::new(MANIFEST)), before, "{what} replaces the manifest");
        let now = list(&disk);
        assert!(now.starts_with(&two), "{what} leaves what there is");
        assert_eq!(now.len() > two.len(), commit.is_some(), "{what}");
    }
    let text = String::from_utf8(list(&disk)).expect("text");
    assert_eq!(text.matches("\nblock ").count(), 3, "{text}");
    drop(engine);
    let engine = open_as(&disk, OpenMode::Write);
    check(&engine, 3, "opened again");
    assert_eq!((runs(&engine), damage(&engine)), (2, vec![]));
    engine.rebuild().expect("a rebuild");
    let text = String::from_utf8(list(&disk)).expect("text");
    assert_eq!(text.matches("\nblock ").count(), 1, "a rebuild writes another file: {text}");
    assert_eq!(lists(&disk), [PathBuf::from("/store/commits-000000000002")]);
}

#[test]
fn without_its_list_a_store_is_derived_from_the_log() {
    let base = filled(4).0.settled_copy();
    let file = lists(&base).remove(0);
    let whole = base.peek(&file).expect("a file");
    let mut other = whole.clone();
    *other.last_mut().expect("bytes") ^= 1;
    for (bytes, told) in [
        (None, "is missing"),
        (Some(vec![]), "has 0 bytes"),
        (Some(whole[..whole.len() - 1].to_vec()), "the manifest counts on"),
        (Some(other), "its digest is wrong"),
    ] {
        let disk = base.settled_copy();
        match bytes {
            Some(bytes) => disk.overwrite(&file, bytes),
            None => disk.remove(&file).expect("removed"),
        }
        let reader = open_as(&disk, OpenMode::Read);
        check(&reader, 4, told);
        assert_eq!(runs(&reader), 0, "a reader takes everything from the log: {told}");
        let damage_told = damage(&reader);
        assert!(damage_told.len() == 1 && damage_told[0].contains(told), "{told}: {damage_told:?}");
        assert_eq!(reader.verify_full().expect("verification").damage, damage_told, "{told}");
        let engine = open_as(&disk, OpenMode::Write);
        check(&engine, 4, told);
        engine.flush().expect("a flush");
        drop(engine);
        let engine = open_as(&disk, OpenMode::Write);
        check(&engine, 4, &format!("{told}, mended"));
        assert_eq!((runs(&engine), damage(&engine)), (1, vec![]), "{told}, mended");
        assert_eq!(lists(&disk), [PathBuf::from("/store/commits-000000000002")], "{told}: no number twice");
    }
}

/// Replaces the manifest by what `change` makes of its document.
fn change_manifest(disk: &SimDisk, change: impl FnOnce(String) -> String) {
    let bytes = disk.peek(Path::new(MANIFEST)).expect("a manifest");
    let text = String::from_utf8(bytes).expect("text");
    let body = change(text.split_once('\n').expect("two lines").1.to_owned());
    let digest: String = Sha256::digest(&body).iter().map(|b| format!("{b:02x}")).collect();
    disk.overwrite(Path::new(MANIFEST), format!("asofdb manifest sha256 {digest}\n{body}").into_bytes());
}

#[test]
fn an_older_manifest_is_as_good_as_none_and_a_newer_one_is_refused() {
    let (disk, engine) = filled(3);
    drop(engine);
    let newer = disk.settled_copy();
    change_manifest(&newer, |body| {
        assert!(body.contains("\"version\":3,"), "{body}");
        body.replacen("\"version\":3,", "\"version\":4,\"unknown\":1,", 1)
    });
    let opened = Engine::open_with(Path::new("/store"), OpenMode::Write, options(1000), components(&newer));
    assert!(opened.expect_err("a newer version").message.contains("newer version"));
    change_manifest(&disk, |body| {
        let body = body.replacen("\"version\":3,", "\"version\":1,", 1);
        let at = body.find("\"commits\":{").expect("a list");
        let end = at + body[at..].find('}').expect("its end") + 1;
        format!("{}\"commits\":[]{}", &body[..at], &body[end..])
    });
    let reader = open_as(&disk, OpenMode::Read);
    check(&reader, 3, "an older manifest");
    let told = damage(&reader);
    assert!(told.len() == 1 && told[0].contains("older version"), "{told:?}");
    let engine = open_as(&disk, OpenMode::Write);
    check(&engine, 3, "an older manifest");
    engine.flush().expect("a flush");
    assert_eq!((runs(&engine), damage(&engine)), (1, vec![]));
}

#[test]
fn a_flush_that_fails_anywhere_leaves_a_list_that_counts() {
    let base = filled(3).0.settled_copy();
    let mut failed = 0;
    for n in 1..200 {
        let disk = base.settled_copy();
        let engine = open_as(&disk, OpenMode::Write);
        engine.commit(commit_of(&model(), 4)).expect("a commit");
        let operation = disk.operations() + n;
        let takes_effect = n % 2 == 0;
        disk.set_fault(Fault { operation, kind: ErrorKind::Other, forever: false, takes_effect });
        let flushed = engine.flush();
        disk.clear_fault();
        if disk.faults_fired() == 0 {
            break;
        }
        failed += u64::from(flushed.is_err());
        let place = format!("operation {n} of a flush fails");
        for seed in 0..3 {
            sound(&disk.crash_image(seed), 4, &format!("{place}, power cut {seed}"));
        }
        engine.commit(commit_of(&model(), 5)).expect("a commit");
        engine.flush().unwrap_or_else(|e| panic!("{place}: {e}"));
        check(&engine, 5, &place);
        for seed in 0..3 {
            sound(&disk.crash_image(seed), 5, &format!("{place}, flushed again, power cut {seed}"));
        }
        drop(engine);
        let engine = open_as(&disk, OpenMode::Write);
        check(&engine, 5, &format!("{place}, opened again"));
        assert_eq!(lists(&disk).len(), 1, "{place}: what is left over is removed");
    }
    assert!(failed > 15, "only {failed} flushes failed");
}

#[test]
fn what_a_failed_flush_may_have_made_count_is_not_written_over() {
    let base = filled(3).0.settled_copy();
    let before = base.peek(Path::new(MANIFEST));
    let failed = |n: u64| {
        let disk = base.settled_copy();
        let engine = open_as(&disk, OpenMode::Write);
        engine.commit(commit_of(&model(), 4)).expect("a commit");
        let operation = disk.operations() + n;
        disk.set_fault(Fault { operation, kind: ErrorKind::Other, forever: false, takes_effect: true });
        let flushed = engine.flush();
        disk.clear_fault();
        (disk, engine, flushed)
    };
    let mut stood = 0;
    for n in 1..200 {
        let (disk, _engine, flushed) = failed(n);
        if disk.faults_fired() == 0 {
            break;
        }
        if flushed.is_ok() || disk.peek(Path::new(MANIFEST)) == before {
            continue;
        }
        // The flush failed and its manifest is in place.
        stood += 1;
        for m in 1..200 {
            let (disk, engine, _) = failed(n);
            engine.commit(commit_of(&model(), 5)).expect("a commit");
            disk.cut_power_after(disk.operations() + m);
            let again = engine.flush();
            for seed in 0..3 {
                let place = format!("operation {n} fails, cut after operation {m} of the next, seed {seed}");
                sound(&disk.crash_image(seed), 5, &place);
            }
            if again.is_ok() {
                break;
            }
        }
    }
    assert!(stood > 0, "no manifest of a failed flush was in place");
}

/// Asserts that a reader finds all commits and that its runs and its list count.
fn sound(disk: &SimDisk, commits: u64, place: &str) {
    let reader = open_as(disk, OpenMode::Read);
    check(&reader, commits, place);
    assert!(runs(&reader) > 0, "{place}: not everything was read from the log");
    assert_eq!(damage(&reader), Vec::<String>::new(), "{place}");
}

#[test]
fn a_power_cut_at_the_first_flush_leaves_no_manifest_without_its_list() {
    let base = SimDisk::new();
    open_as(&base, OpenMode::Create).commit(commit_of(&model(), 1)).expect("a commit");
    let base = base.settled_copy();
    for n in 1..200 {
        let disk = base.settled_copy();
        let engine = open_as(&disk, OpenMode::Write);
        disk.cut_power_after(disk.operations() + n);
        let flushed = engine.flush();
        for seed in 0..30 {
            manifest_counts(&disk.crash_image(seed), &format!("cut after operation {n}, seed {seed}"));
        }
        if flushed.is_ok() {
            assert!(n > 20, "{n} operations");
            return;
        }
    }
    panic!("no flush came to its end");
}

#[test]
fn a_reader_opens_beside_flushes_that_append() {
    let mut flushed = 0;
    for n in 0..200 {
        let (disk, writer) = filled(4);
        let hooked = HookDisk::new(&disk);
        let (mut calls, (sender, receiver)) = (0, std::sync::mpsc::channel());
        hooked.set(move |_, _| {
            if calls == n {
                writer.commit(commit_of(&model(), 5)).expect("a commit");
                writer.flush().expect("a flush");
                sender.send(()).expect("the test listens");
            }
            calls += 1;
        });
        let reader = open_hooked(&hooked, OpenMode::Read, options(1000)).expect("a reader");
        hooked.clear();
        let acted = receiver.try_recv().is_ok();
        let place = format!("a flush before call {n}");
        check(&reader, reader.pin().commit().0, &place);
        assert!(reader.pin().commit().0 >= 4, "{place}");
        assert!(runs(&reader) >= 4, "{place}: its list counts");
        if !acted {
            break;
        }
        flushed += 1;
    }
    assert!(flushed > 20, "only {flushed} flushes");
}
