//! What every disk promises, on the real and on the simulated one.

use super::*;
use std::io::ErrorKind;

fn on_both(test: impl Fn(&dyn Disk, &Path)) {
    let home = tempfile::tempdir().expect("directory");
    test(&RealDisk, home.path());
    let sim = SimDisk::new();
    sim.create_dir(Path::new("/home")).expect("create");
    test(&sim, Path::new("/home"));
}

#[test]
fn files_are_written_read_renamed_and_removed() {
    on_both(|disk, home| {
        let (a, b) = (home.join("a"), home.join("b"));
        let mut file = disk.create(&a).expect("create");
        file.write_at(0, b"hello world").expect("write");
        file.write_at(6, b"there").expect("write");
        file.write_at(13, b"!").expect("write");
        file.sync().expect("sync");
        assert_eq!(disk.read(&a).expect("read"), b"hello there\0\0!");
        file.set_len(5).expect("set_len");
        assert_eq!((file.len().expect("len"), disk.len(&a).expect("len")), (5, Some(5)));
        assert_eq!(disk.create(&a).expect_err("it exists").kind(), ErrorKind::AlreadyExists);
        disk.create(&b).expect("create");
        assert_eq!(disk.list(home).expect("list"), [a.clone(), b.clone()]);
        disk.rename(&a, &b).expect("rename");
        assert_eq!(disk.map(&b).expect("map").as_ref(), b"hello");
        let mut part = [0; 3];
        disk.open(&b).expect("open").read_at(2, &mut part).expect("read");
        assert_eq!(&part, b"llo");
        let error = disk.open(&b).expect("open").read_at(3, &mut part).expect_err("beyond the end");
        assert_eq!((error.op, error.kind()), (DiskOp::Read, ErrorKind::UnexpectedEof));
        disk.remove(&b).expect("remove");
        assert!(!disk.exists(&b).expect("exists") && disk.list(home).expect("list").is_empty());
        let error = disk.open(&a).expect_err("it is gone");
        assert!(error.is_not_found() && error.to_string().contains(a.to_str().expect("text")), "{error}");
    });
}

#[test]
fn files_for_reading_cannot_be_written_and_empty_ones_can_be_mapped() {
    on_both(|disk, home| {
        let path = home.join("a");
        disk.create(&path).expect("create");
        assert!(disk.open(&path).expect("open").write_at(0, b"x").is_err());
        assert!(disk.map(&path).expect("map").is_empty());
        disk.open_write(&path).expect("open").write_at(0, b"x").expect("write");
        assert_eq!(disk.read(&path).expect("read"), b"x");
    });
}

#[test]
fn directories_are_made_once_and_only_where_there_is_a_parent() {
    on_both(|disk, home| {
        let dir = home.join("d");
        disk.create_dir(&dir).expect("create");
        disk.create_dir(&dir).expect("again");
        disk.sync_dir(home).expect("sync");
        assert!(disk.create_dir(&home.join("x/y")).is_err());
        assert!(disk.create(&home.join("x/y")).is_err() && disk.list(&home.join("x")).is_err());
    });
}

#[test]
fn a_lock_has_one_holder_who_is_named_and_ends_with_it() {
    on_both(|disk, home| {
        let path = home.join("lock");
        assert_eq!(disk.lock_holder(&path), None);
        let me = LockHolder { pid: 4711, host: "box".into(), command: "asof shell \"x\"".into() };
        let lock = disk.lock(&path, &me).expect("lock");
        assert_eq!((lock.path(), disk.lock_holder(&path).as_ref()), (path.as_path(), Some(&me)));
        let other = LockHolder::this_process("other");
        let error = disk.lock(&path, &other).expect_err("it is held");
        assert!(error.is_locked(), "{error}");
        assert!(error.to_string().contains("process 4711 on box (asof shell \"x\")"), "{error}");
        assert_eq!(disk.lock_state(&path), LockState::Held(Some(me)));
        drop(lock);
        assert_eq!(disk.lock_state(&path), LockState::Free, "given back in order");
        let lock = disk.lock(&path, &other).expect("it is free");
        assert_eq!(disk.lock_holder(&path), Some(other.clone()));
        drop(lock);
        // What a process leaves behind that was killed.
        let mut file = disk.open_write(&path).expect("lock file");
        file.write_at(0, &other.to_bytes()).expect("written");
        assert_eq!(disk.lock_state(&path), LockState::Abandoned(other));
    });
}

#[test]
fn fault_d18_a_lock_stands_without_its_file_and_through_links() {
    let home = tempfile::tempdir().expect("directory");
    let (dir, link) = (home.path().join("store"), home.path().join("link"));
    RealDisk.create_dir(&dir).expect("create");
    std::os::unix::fs::symlink(&dir, &link).expect("link");
    let me = LockHolder::this_process("me");
    let lock = RealDisk.lock(&dir.join("LOCK"), &me).expect("lock");
    for path in [dir.join("LOCK"), link.join("LOCK"), dir.join("../store/LOCK")] {
        let error = RealDisk.lock(&path, &me).expect_err("it is held");
        assert!(error.is_locked() && error.to_string().contains("(me)"), "{error}");
    }
    std::fs::remove_file(dir.join("LOCK")).expect("removed by somebody");
    assert!(RealDisk.lock(&dir.join("LOCK"), &me).expect_err("it is held").is_locked());
    drop(lock);
    drop(RealDisk.lock(&dir.join("LOCK"), &me).expect("it is free"));
}

#[test]
fn private_modes_and_no_links_on_the_real_disk() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let home = tempfile::tempdir().expect("directory");
    let (file, dir, link) = (home.path().join("f"), home.path().join("d"), home.path().join("l"));
    RealDisk.create(&file).expect("create");
    RealDisk.create_dir(&dir).expect("create");
    let mode = |path: &Path| std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&dir)), (0o600, 0o700));
    symlink(&file, &link).expect("link");
    for error in [
        RealDisk.open(&link).expect_err("link"),
        RealDisk.open_write(&link).expect_err("link"),
        RealDisk.map(&link).expect_err("link"),
        RealDisk.create(&link).expect_err("link"),
        RealDisk.lock(&link, &LockHolder::this_process("x")).expect_err("link"),
        RealDisk.open(&dir).expect_err("directory"),
    ] {
        assert!(matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::AlreadyExists), "{error}");
    }
}

#[test]
fn a_map_outlives_the_name_of_its_file() {
    on_both(|disk, home| {
        let path = home.join("run");
        disk.create(&path).expect("create").write_at(0, &[7; 10_000]).expect("write");
        let map = disk.map(&path).expect("map");
        disk.remove(&path).expect("remove");
        assert_eq!(map.as_ref(), [7; 10_000]);
    });
}
