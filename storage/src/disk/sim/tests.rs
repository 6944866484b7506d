//! The simulated disk forgets what it should: a crash test that cannot fail proves nothing.

use super::*;
use std::collections::BTreeSet;

fn file(path: &str) -> PathBuf {
    PathBuf::from(path)
}

fn disk_with(path: &Path, bytes: &[u8]) -> (SimDisk, Box<dyn DiskFile>) {
    let disk = SimDisk::new();
    let mut file = disk.create(path).expect("create");
    file.write_at(0, bytes).expect("write");
    file.sync().expect("sync");
    disk.sync_dir(Path::new("/")).expect("sync");
    (disk, file)
}

#[test]
fn only_what_was_synced_is_sure_to_survive() {
    let path = file("/a");
    let (disk, mut handle) = disk_with(&path, b"old");
    handle.write_at(0, b"new!").expect("write");
    let images: BTreeSet<_> =
        (0..300).map(|seed| disk.crash_image(seed).peek(&path).expect("file")).collect();
    let want = [&b"old"[..], b"nld", b"ned", b"new", b"new!"].map(<[u8]>::to_vec);
    assert_eq!(images, BTreeSet::from(want), "every tear is met");
    assert_eq!(disk.crash_image(0).peek(&path).expect("file"), b"old");
    assert_eq!(disk.crash_image(1).peek(&path).expect("file"), b"new!");
    handle.sync().expect("sync");
    assert!((0..50).all(|seed| disk.crash_image(seed).peek(&path).expect("file") == b"new!"));
}

#[test]
fn pages_of_a_write_survive_in_any_order_with_holes_of_zeros() {
    let path = file("/a");
    let (disk, mut handle) = disk_with(&path, b"");
    handle.write_at(0, &[1; 3 * 4096]).expect("write");
    let hole = (0..300).any(|seed| {
        let left = disk.crash_image(seed).peek(&path).expect("file");
        left.len() > 4096 && left[0] == 0 && left.contains(&1)
    });
    assert!(hole);
}

#[test]
fn names_are_kept_or_lost_each_on_its_own() {
    let disk = SimDisk::new();
    for name in ["/a", "/b"] {
        let mut file = disk.create(Path::new(name)).expect("create");
        file.write_at(0, b"x").expect("write");
        file.sync().expect("sync");
    }
    let left = |seed| {
        let image = disk.crash_image(seed);
        ["/a", "/b"].map(|name| image.peek(Path::new(name)).is_some())
    };
    let seen: BTreeSet<_> = (0..100).map(left).collect();
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert_eq!((left(0), left(1)), ([false; 2], [true; 2]));
    disk.sync_dir(Path::new("/")).expect("sync");
    assert!((0..50).all(|seed| left(seed) == [true; 2]));
    disk.rename(Path::new("/a"), Path::new("/b")).expect("rename");
    disk.remove(Path::new("/b")).expect("remove");
    let seen: BTreeSet<_> = (0..100).map(left).collect();
    assert!(seen.contains(&[true, true]) && seen.contains(&[false, false]), "{seen:?}");
}

#[test]
fn a_directory_without_a_durable_name_takes_its_files_along() {
    let disk = SimDisk::new();
    disk.create_dir(Path::new("/d")).expect("create");
    disk.create(Path::new("/d/f")).expect("create");
    disk.sync_dir(Path::new("/d")).expect("sync");
    assert_eq!(disk.crash_image(0).peek(Path::new("/d/f")), None);
    disk.sync_dir(Path::new("/")).expect("sync");
    assert!(disk.crash_image(0).peek(Path::new("/d/f")).is_some());
}

#[test]
fn a_failed_sync_loses_the_bytes_shows_them_and_poisons_the_handle() {
    let path = file("/a");
    let (disk, mut handle) = disk_with(&path, b"old");
    handle.write_at(0, b"new").expect("write");
    let operation = disk.operations() + 1;
    disk.set_fault(Fault { operation, kind: ErrorKind::Other, forever: false, takes_effect: false });
    assert_eq!(handle.sync().expect_err("fault").op, DiskOp::Sync);
    for error in [handle.sync(), handle.write_at(0, b"x"), handle.set_len(0)] {
        assert!(error.expect_err("poisoned").to_string().contains("in doubt"));
    }
    assert_eq!(disk.operations(), operation, "a poisoned handle does not reach the disk");
    let mut again = disk.open_write(&path).expect("open");
    again.sync().expect("sync");
    assert_eq!(disk.peek(&path).expect("file"), b"new");
    assert_eq!(disk.crash_image(1).peek(&path).expect("file"), b"old", "a second sync brings nothing back");
}

#[test]
fn faults_hit_their_call_once_or_for_ever_with_or_without_effect() {
    let path = file("/a");
    for (forever, takes_effect) in [(false, false), (false, true), (true, false), (true, true)] {
        let (disk, mut handle) = disk_with(&path, b"old");
        let operation = disk.operations() + 2;
        disk.set_fault(Fault { operation, kind: ErrorKind::StorageFull, forever, takes_effect });
        handle.write_at(0, b"1").expect("before the fault");
        assert!(handle.write_at(1, b"2").expect_err("fault").is_full());
        let done = if takes_effect { b"12d" } else { b"1ld" };
        assert_eq!(disk.peek(&path).expect("file"), done);
        assert_eq!(handle.write_at(2, b"3").is_err(), forever);
        assert_eq!(disk.faults_fired(), 1 + forever as u64);
    }
}

#[test]
fn after_the_power_is_cut_every_call_fails() {
    let path = file("/a");
    let (disk, mut handle) = disk_with(&path, b"old");
    disk.cut_power_after(disk.operations() + 1);
    handle.write_at(0, b"new").expect("before the cut");
    assert!(
        handle.write_at(0, b"x").is_err() && disk.open(&path).is_err() && disk.list(Path::new("/")).is_err()
    );
    let image = disk.crash_image(1);
    assert_eq!(image.peek(&path).expect("file"), b"new");
    assert_eq!((image.operations(), image.open(&path).is_ok()), (0, true), "an image starts afresh");
}

#[test]
fn equal_seeds_give_equal_images() {
    let path = file("/a");
    let (disk, mut handle) = disk_with(&path, b"");
    (0..20).for_each(|i| handle.write_at(i * 3000, &[i as u8 + 1; 3000]).expect("write"));
    let image = |seed| disk.crash_image(seed).peek(&path);
    assert!((0..30).all(|seed| image(seed) == image(seed)));
    assert!((2..30).map(image).collect::<BTreeSet<_>>().len() > 15);
}

#[test]
fn a_lost_write_a_lying_sync_and_a_full_disk_are_what_they_say() {
    let path = file("/a");
    let (disk, mut handle) = disk_with(&path, b"old");
    disk.lose_write(disk.operations() + 1);
    handle.write_at(0, b"new").expect("lost");
    assert_eq!(disk.peek(&path).expect("file"), b"old");
    handle.write_at(0, b"new").expect("written");
    disk.lie_about_syncs(true);
    handle.sync().expect("a lie");
    assert_eq!(disk.crash_image(0).peek(&path).expect("file"), b"old");
    disk.lie_about_syncs(false);
    handle.sync().expect("sync");
    assert_eq!(disk.crash_image(0).peek(&path).expect("file"), b"new");
    disk.set_capacity(Some(5));
    handle.write_at(1, b"ot").expect("no byte more");
    assert!(handle.write_at(2, b"1234").expect_err("full").is_full());
    assert_eq!(
        (disk.peek(&path).expect("file"), disk.bytes()),
        (b"no123".to_vec(), 5),
        "what fits is written"
    );
    disk.set_capacity(None);
    handle.write_at(2, b"1234").expect("there is room again");
}
