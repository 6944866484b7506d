use super::*;
use crate::disk::RealDisk;

#[test]
fn what_was_appended_is_read_again_over_segments_and_reopening() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, small_segments(), 40);
    assert!(log.end.0 > 3, "the test needs several segments, not {}", log.end.0);
    assert_holds(&log, 40, "before reopening");
    let head = log.head();
    drop(log);
    let (mut log, recovered) = open(&disk, small_segments()).expect("open");
    assert_eq!((recovered.frames, recovered.last, recovered.dropped), (40, places.last().copied(), None));
    assert_eq!((log.head(), log.last_sequence(), log.last_instant_us()), (head, CommitSeq(40), instant(40)));
    append(&mut log, 41).expect("append");
    assert_holds(&log, 41, "after reopening");
    let report = log.verify(Some(head)).expect("verify");
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.frames, report.expected_at, report.head), (41, Some(CommitSeq(40)), log.head()));
}

#[test]
fn reading_and_opening_start_after_any_frame() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, small_segments(), 20);
    for place in &places {
        let rest: Vec<u64> = log
            .read_from(Start::After(*place))
            .expect("reader")
            .map(|r| r.expect("frame").1.sequence.0)
            .collect();
        assert_eq!(rest, (place.sequence.0 + 1..=20).collect::<Vec<_>>());
        assert_eq!(log.read_frame(*place).expect("frame").sequence, place.sequence);
        let settings = LogSettings { start: Start::After(*place), ..small_segments() };
        let (again, recovered) = open(&disk, settings).expect("open");
        assert_eq!(recovered.frames, 20 - place.sequence.0);
        assert_eq!((again.head(), again.last()), (log.head(), log.last()));
    }
    let wrong = FramePlace { offset: places[3].offset + 1, ..places[3] };
    assert!(log.read_from(Start::After(wrong)).is_err());
    assert!(log.read_frame(wrong).is_err());
}

#[test]
fn a_reader_does_not_see_later_appends() {
    let disk = new_disk();
    let (mut log, _) = log_with(&disk, small_segments(), 5);
    let reader = log.read_from(Start::Oldest).expect("reader");
    (6..30).for_each(|n| assert_eq!(append(&mut log, n).expect("append").sequence.0, n));
    assert_eq!(reader.count(), 5);
}

#[test]
fn a_frame_is_one_write_and_one_sync() {
    let disk = new_disk();
    let (mut log, _) = log_with(&disk, LogSettings::new(STORE), 1);
    let before = disk.operations() as usize;
    append(&mut log, 2).expect("append");
    let ops: Vec<_> = disk.trace()[before..].iter().map(|(op, _)| *op).collect();
    assert_eq!(ops, [crate::disk::DiskOp::Write, crate::disk::DiskOp::Sync]);
}

#[test]
fn one_frame_may_be_larger_than_a_segment() {
    let disk = new_disk();
    let settings = LogSettings { segment_bytes_max: 10, ..LogSettings::new(STORE) };
    let (log, places) = log_with(&disk, settings, 4);
    assert_eq!(places.iter().map(|p| p.segment).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_holds(&log, 4, "one frame a segment");
}

#[test]
fn wrong_numbers_instants_and_rows_are_refused_and_nothing_is_written() {
    let disk = new_disk();
    let (mut log, _) = log_with(&disk, LogSettings::new(STORE), 2);
    let before = disk.operations();
    for (sequence, at) in [(2, instant(9)), (4, instant(9)), (3, instant(2)), (3, i64::MIN)] {
        let refused = log.append(sealed(3, "row"), CommitSeq(sequence), at).expect_err("refused");
        assert!(matches!(refused, LogError::Refused(_)), "{refused}");
    }
    assert_eq!(disk.operations(), before);
    append(&mut log, 3).expect("a refusal leaves no doubt");
    let mut builder = FrameBuilder::new(secret(9));
    for ends in [&[][..], &[1], &[0, 2], &[2, 1], &[3]] {
        assert!(builder.rows(TableId(1), 1, ends, b"ab").is_err(), "{ends:?}");
    }
    assert!(builder.is_empty());
    builder.rows(TableId(1), 1, &[], b"").expect("no rows are no rows");
    assert!(builder.section(1, b"late").is_err());
}

#[test]
fn readers_change_nothing_and_cannot_append() {
    let disk = new_disk();
    let read_only = LogSettings { writable: false, ..small_segments() };
    let (nothing, _) = open(&disk, read_only).expect("open");
    assert_eq!(nothing.read_from(Start::Oldest).expect("reader").count(), 0);
    let (log, places) = log_with(&disk, small_segments(), 12);
    let last = places[11];
    let path = segment_file(last.segment);
    let whole = disk.peek(&path).expect("file");
    disk.overwrite(&path, whole[..whole.len() - 1].to_vec());
    let (mut reader, recovered) = open(&disk, read_only).expect("open");
    assert_eq!(recovered.dropped.expect("tail").bytes, last.bytes - 1);
    assert_holds(&reader, 11, "reader");
    assert!(matches!(append(&mut reader, 12), Err(LogError::ReadOnly)));
    assert_eq!(disk.peek(&path).expect("file").len(), whole.len() - 1);
    drop(log);
}

#[test]
fn the_store_id_is_found_and_checked() {
    let disk = new_disk();
    assert_eq!(Log::store_id_of(&disk, Path::new("/store")).expect("list"), None);
    let (log, _) = log_with(&disk, small_segments(), 3);
    assert_eq!(Log::store_id_of(&disk, log.dir()).expect("list"), Some(STORE));
    let error = open(&disk, LogSettings::new(OTHER_STORE)).expect_err("other store");
    assert!(matches!(error, LogError::OtherStore { .. }), "{error}");
}

#[test]
fn hashes_may_come_from_other_threads() {
    let (ends, bytes) = join(&rows_of(4, "row"));
    let mut here = FrameBuilder::new(secret(1));
    let mut there = FrameBuilder::new(secret(1));
    for block in 0..3 {
        here.rows(TableId(7), 2, &ends, &bytes).expect("rows");
        let key = *there.secret();
        let root = std::thread::scope(|s| {
            s.spawn(|| hash_rows(&key, block, TableId(7), 2, &ends, &bytes)).join().expect("thread")
        });
        there.rows_hashed(TableId(7), 2, &ends, &bytes, root).expect("rows");
    }
    let place = |b: FrameBuilder| b.seal().place(STORE, 1, 1, 5, genesis(STORE));
    assert_eq!(place(here), place(there));
}

#[test]
fn the_real_disk_holds_a_log_too() {
    let home = tempfile::tempdir().expect("directory");
    let dir = home.path().join("log");
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let (mut log, _) = Log::open(disk.clone(), &dir, small_segments()).expect("open");
    (1..=20).for_each(|n| assert_eq!(append(&mut log, n).expect("append").sequence.0, n));
    drop(log);
    let (log, recovered) = Log::open(disk, &dir, small_segments()).expect("open");
    assert_eq!(recovered.frames, 20);
    assert_holds(&log, 20, "real disk");
}

#[test]
fn rows_never_go_into_a_segment_of_an_older_version() {
    for empty in [false, true] {
        let disk = new_disk();
        let (log, places) = log_with(&disk, LogSettings::new(STORE), 3);
        drop(log);
        let mut bytes = bytes_of(&disk, 1);
        if empty {
            bytes.truncate(layout::segment::END);
        }
        header::put(&mut bytes, layout::segment::VERSION, layout::SEGMENT_WHOLE_BEFORE.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..layout::segment::CRC]);
        header::put(&mut bytes, layout::segment::CRC, crc.to_le_bytes());
        disk.overwrite(&segment_file(1), bytes);
        let start = if empty { Start::Oldest } else { Start::After(places[2]) };
        for settings in [LogSettings { start, ..LogSettings::new(STORE) }, LogSettings::new(STORE)] {
            let (mut log, _) = open(&disk.settled_copy(), settings).expect("open");
            let next = log.last_sequence().0 + 1;
            for n in next..next + 2 {
                let place = append(&mut log, n).expect("append");
                assert_eq!(place.segment, if empty { 1 } else { 2 }, "commit {n}");
            }
            assert_eq!(read_all(&log).len() as u64, next + 1);
        }
    }
}
