//! Changes made with full knowledge of the format (A7, A8).

use super::*;
use crate::log::header::{FrameHead, body_crc};

/// Changes a row of commit `place` in the file and puts every checksum right.
fn forge(disk: &SimDisk, place: FramePlace) {
    let mut bytes = bytes_of(disk, place.segment);
    let frame = &mut bytes[place.offset as usize..place.end() as usize];
    *frame.last_mut().expect("a row") ^= 1;
    let fields = FrameHead::decode(frame).expect("header");
    let body = body_crc(&frame[layout::frame::BODY..]);
    build::finish(frame, STORE, place.segment, place.sequence.0, &fields, &body);
    disk.overwrite(&segment_file(place.segment), bytes);
}

#[test]
fn a_changed_row_with_right_checksums_is_found() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, small_segments(), 20);
    let head = log.head();
    forge(&disk, places[7]);
    let (log, _) = open(&disk, small_segments()).expect("the checksums are right");
    for asked in [None, Some(head)] {
        let report = log.verify(asked).expect("verify");
        let found: Vec<_> = report.damage.iter().map(|d| (d.segment, d.offset)).collect();
        assert_eq!(found, [(places[7].segment, places[7].offset)], "{report:?}");
        assert!(report.damage[0].what.contains("commit 8"), "{report:?}");
        assert!(!report.is_clean());
    }
}

#[test]
fn a_rewritten_history_is_found_with_a_head_kept_elsewhere() {
    let disk = new_disk();
    let (log, _) = log_with(&disk, small_segments(), 20);
    let (kept, early) = (log.head(), read_all(&log)[9].1.head);
    drop(log);
    let forged = new_disk();
    let (mut log, _) = open(&forged, small_segments()).expect("open");
    for n in 1..=20 {
        let flavour = if n == 15 { "lie" } else { "row" };
        log.append(sealed(n, flavour), CommitSeq(n), instant(n)).expect("append");
    }
    let claim = log.verify(None).expect("verify");
    assert!(claim.is_clean(), "nothing is claimed without a head: {claim:?}");
    let report = log.verify(Some(kept)).expect("verify");
    assert!(report.damage.is_empty() && !report.is_clean(), "{report:?}");
    assert_eq!(report.expected_at, None);
    let report = log.verify(Some(early)).expect("verify");
    assert_eq!((report.is_clean(), report.expected_at), (true, Some(CommitSeq(10))));
}

#[test]
fn commits_that_were_cut_off_are_missed_by_head_and_by_floor() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, small_segments(), 20);
    let (head, last) = (log.head(), places[19]);
    let newest = log.end.0;
    drop(log);
    let shorter = disk.settled_copy();
    let bytes = bytes_of(&disk, last.segment);
    shorter.overwrite(&segment_file(last.segment), bytes[..last.offset as usize].to_vec());
    let fewer = disk.settled_copy();
    fewer.remove(&segment_file(newest)).expect("remove");
    for cut in [shorter, fewer] {
        let (log, recovered) = open(&cut, small_segments()).expect("it looks whole");
        assert_eq!(recovered.dropped, None);
        let report = log.verify(Some(head)).expect("verify");
        assert!(report.damage.is_empty() && !report.is_clean(), "{report:?}");
        let settings = LogSettings { floor: CommitSeq(20), ..small_segments() };
        let error = open(&cut, settings).expect_err("below the floor");
        assert!(matches!(error, LogError::EndsTooEarly { floor: 20, .. }), "{error}");
    }
}

#[test]
fn a_frame_of_another_history_does_not_join() {
    let disk = new_disk();
    let (log, _) = log_with(&disk, LogSettings::new(STORE), 5);
    drop(log);
    let other = new_disk();
    let (mut log, _) = open(&other, LogSettings::new(STORE)).expect("open");
    let places: Vec<_> =
        (1..=6).map(|n| log.append(sealed(n, "lie"), CommitSeq(n), instant(n)).expect("append")).collect();
    let stolen = bytes_of(&other, 1)[places[5].offset as usize..].to_vec();
    let end = bytes_of(&disk, 1).len() as u64;
    disk.overwrite(&segment_file(1), [bytes_of(&disk, 1), stolen].concat());
    let error = open(&disk, LogSettings::new(STORE)).expect_err("another history");
    assert_eq!(error.damage().map(|d| d.offset), Some(end), "{error}");
    assert!(error.to_string().contains("another history"), "{error}");
}

#[test]
fn heads_are_written_and_read_as_hexadecimal() {
    let head = genesis(STORE);
    assert_eq!(head.to_string().parse(), Ok(head));
    assert_ne!(genesis(STORE), genesis(OTHER_STORE));
    for wrong in ["", "12", &"g".repeat(64), &"\u{e9}".repeat(32), &"+1".repeat(32)] {
        assert!(wrong.parse::<Head>().is_err(), "{wrong:?}");
    }
}

#[test]
fn a_segment_of_another_history_does_not_join() {
    let disk = new_disk();
    let (log, _) = log_with(&disk, small_segments(), 20);
    let other = new_disk();
    let (mut lies, _) = open(&other, small_segments()).expect("open");
    for n in 1..=20 {
        lies.append(sealed(n, "lie"), CommitSeq(n), instant(n)).expect("append");
    }
    disk.overwrite(&segment_file(2), bytes_of(&other, 2));
    let read = log.read_from(Start::Oldest).expect("reader").find_map(Result::err).expect("damage");
    let opened = open(&disk, small_segments()).expect_err("damage");
    for error in [read, opened] {
        assert_eq!(error.damage().map(|d| (d.segment, d.offset)), Some((2, 0)), "{error}");
    }
    let report = log.verify(None).expect("verify");
    assert_eq!(report.damage.iter().map(|d| (d.segment, d.offset)).collect::<Vec<_>>(), [(2, 0), (3, 0)]);
}

#[test]
fn a_commit_that_goes_back_in_time_does_not_join() {
    let disk = new_disk();
    let (log, _) = log_with(&disk, LogSettings::new(STORE), 5);
    let (late, _) = sealed(6, "row").place(STORE, 1, 6, instant(5), log.head());
    let end = bytes_of(&disk, 1).len() as u64;
    disk.overwrite(&segment_file(1), [bytes_of(&disk, 1), late].concat());
    let error = open(&disk, LogSettings::new(STORE)).expect_err("not after");
    assert_eq!(error.damage().map(|d| d.offset), Some(end), "{error}");
    assert!(error.to_string().contains("instant of commit 6"), "{error}");
}

#[test]
fn a_place_that_another_frame_has_taken_is_refused() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, LogSettings::new(STORE), 5);
    let place = places[2];
    for wrong in [
        FramePlace { sequence: CommitSeq(4), ..place },
        FramePlace { bytes: place.bytes + 1, ..place },
        FramePlace { offset: u64::MAX, ..place },
        FramePlace { segment: 2, ..place },
    ] {
        assert!(log.read_from(Start::After(wrong)).is_err() && log.read_frame(wrong).is_err(), "{wrong:?}");
        let settings = LogSettings { start: Start::After(wrong), ..LogSettings::new(STORE) };
        let error = open(&disk, settings).expect_err("refused");
        assert!(matches!(error, LogError::Damaged(_) | LogError::Missing { .. }), "{error}");
    }
    assert!(log.read_frame(place).is_ok());
}
