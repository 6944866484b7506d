//! Torn tails are cut (D4, D5); other damage is refused and named (D6).

use super::*;
use crate::log::layout::{frame, segment};

#[test]
fn fault_d4_a_tail_torn_at_any_byte_is_cut_and_reported() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, LogSettings::new(STORE), 9);
    let (first_cut, whole) = (places[6].offset, bytes_of(&disk, 1));
    drop(log);
    println!("D4: cut at each of {} bytes", whole.len() as u64 - first_cut);
    for len in first_cut..whole.len() as u64 {
        let torn = disk.settled_copy();
        torn.overwrite(&segment_file(1), whole[..len as usize].to_vec());
        let kept = places.iter().take_while(|p| p.end() <= len).count();
        let end = places[kept - 1].end();
        let (mut log, recovered) = open(&torn, LogSettings::new(STORE)).expect("open");
        let dropped = recovered.dropped.map(|d| (d.place.segment, d.place.offset, d.bytes));
        assert_eq!(dropped, (end < len).then_some((1, end, len - end)), "cut at byte {len}");
        assert_eq!(bytes_of(&torn, 1), whole[..end as usize], "cut at byte {len}");
        append(&mut log, kept as u64 + 1).expect("append");
        let (log, recovered) = open(&torn.crash_image(0), LogSettings::new(STORE)).expect("open");
        assert_eq!(recovered.dropped, None);
        assert_holds(&log, kept as u64 + 1, &format!("cut at byte {len}"));
    }
}

#[test]
fn fault_d5_zeros_garbage_and_old_frames_after_the_end_are_cut() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, LogSettings::new(STORE), 8);
    let whole = bytes_of(&disk, 1);
    drop(log);
    let frames =
        |from: usize, to: usize| whole[places[from].offset as usize..places[to].end() as usize].to_vec();
    let garbage: Vec<u8> = (0..70_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let foreign = |store, settings: LogSettings, skip: usize| {
        let other = new_disk();
        let settings = LogSettings { store_id: store, ..settings };
        let (log, places) = log_with(&other, settings, 12);
        let last = log.end.0;
        let start = places.iter().filter(|p| p.segment == last).nth(skip).expect("frame").offset;
        bytes_of(&other, last)[start as usize..].to_vec()
    };
    let tails = [
        ("4 KiB of zeros", vec![0; 4096]),
        ("1 MiB of zeros", vec![0; 1 << 20]),
        ("garbage", garbage.clone()),
        ("magic numbers", frame_magic_only()),
        ("an old frame", frames(3, 3)),
        ("all old frames", frames(0, 7)),
        ("a torn frame and old ones", [&frames(7, 7)[..100], &frames(0, 6)].concat()),
        ("garbage and old frames", [garbage, frames(1, 5)].concat()),
        ("frames of another segment", foreign(STORE, small_segments(), 0)),
        ("newer frames of another store", foreign(OTHER_STORE, LogSettings::new(OTHER_STORE), 8)),
    ];
    println!("D5: {} kinds of tails", tails.len());
    for (name, tail) in tails {
        let with_tail = disk.settled_copy();
        with_tail.overwrite(&segment_file(1), [&whole[..], &tail].concat());
        let (log, recovered) =
            open(&with_tail, LogSettings::new(STORE)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let dropped = recovered.dropped.expect(name);
        assert_eq!((dropped.place.offset, dropped.bytes), (whole.len() as u64, tail.len() as u64), "{name}");
        assert_holds(&log, 8, name);
        assert_eq!(bytes_of(&with_tail, 1), whole, "{name}");
    }
}

fn frame_magic_only() -> Vec<u8> {
    crate::log::layout::FRAME_MAGIC.repeat(300_000)
}

#[test]
fn fault_d6_any_flipped_bit_before_the_last_frame_is_a_named_error() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, small_segments(), 24);
    let segments: Vec<Vec<u8>> = (1..=log.end.0).map(|id| bytes_of(&disk, id)).collect();
    drop(log);
    let last = places[places.len() - 1];
    let mut flips = 0;
    for (id, whole) in (1..).zip(&segments) {
        let end = if id == last.segment { last.offset as usize } else { whole.len() };
        for at in (0..end).step_by(37).chain(0..segment::END.min(end)).chain(100..300) {
            let flipped = disk.settled_copy();
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            flipped.overwrite(&segment_file(id), bytes.clone());
            let want = places.iter().find(|p| p.segment == id && (p.offset..p.end()).contains(&(at as u64)));
            let want = (segment_file(id), id, want.map_or(0, |p| p.offset));
            let error = open(&flipped, small_segments()).expect_err("damage");
            let damage = error.damage().unwrap_or_else(|| panic!("byte {at} of segment {id}: {error}"));
            assert_eq!((damage.path.clone(), damage.segment, damage.offset), want, "byte {at}: {error}");
            assert!(error.to_string().contains(&format!("segment {id}")), "{error}");
            assert_eq!(bytes_of(&flipped, id), bytes, "the file is left alone");
            let report = Log::verify_unopened(&flipped, &dir(), STORE, None).expect("verify");
            assert!(report.damage.iter().any(|d| (d.segment, d.offset) == (want.1, want.2)), "{report:?}");
            flips += 1;
        }
    }
    println!("D6: {flips} flipped bits");
    assert!(flips > 1000, "only {flips} flips");
}

#[test]
fn fault_d6_damage_at_the_end_is_refused_where_the_commit_was_acknowledged() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, LogSettings::new(STORE), 6);
    drop(log);
    let last = places[5];
    for at in last.offset..last.end() {
        let flipped = disk.settled_copy();
        let mut bytes = bytes_of(&disk, 1);
        bytes[at as usize] ^= 0x10;
        flipped.overwrite(&segment_file(1), bytes.clone());
        let settings = LogSettings { floor: CommitSeq(6), ..LogSettings::new(STORE) };
        let error = open(&flipped, settings).expect_err("below the floor");
        assert!(matches!(error, LogError::EndsTooEarly { last: 5, floor: 6, .. }), "{error}");
        let settings = LogSettings { start: Start::After(last), ..LogSettings::new(STORE) };
        let error = open(&flipped, settings).expect_err("below the start");
        assert_eq!(error.damage().map(|d| d.offset), Some(last.offset), "{error}");
        assert_eq!(bytes_of(&flipped, 1), bytes, "the file is left alone");
    }
}

#[test]
fn fault_d6_verify_lists_every_damage() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, small_segments(), 30);
    let head = log.head();
    drop(log);
    let hit = [places[2], places[3], places[11], places[20]];
    for place in hit {
        let mut bytes = bytes_of(&disk, place.segment);
        bytes[place.offset as usize + frame::BODY + 20] ^= 4;
        disk.overwrite(&segment_file(place.segment), bytes);
    }
    let report = Log::verify_unopened(&disk, &dir(), STORE, Some(head)).expect("verify");
    let found: Vec<_> = report.damage.iter().map(|d| (d.segment, d.offset)).collect();
    // Two damaged frames in a row are one stretch of bytes that are no frame.
    let want: Vec<_> = [hit[0], hit[2], hit[3]].iter().map(|p| (p.segment, p.offset)).collect();
    assert_eq!(found, want, "{report:?}");
    assert!(!report.is_clean());
    assert_eq!((report.frames, report.last, report.torn_tail), (26, CommitSeq(30), None));
}

#[test]
fn a_missing_segment_is_named() {
    for id in [1, 3] {
        let disk = new_disk();
        let (log, _) = log_with(&disk, small_segments(), 30);
        assert!(log.end.0 > 3);
        drop(log);
        disk.remove(&segment_file(id)).expect("remove");
        let error = open(&disk, small_segments()).expect_err("a gap");
        assert!(matches!(error, LogError::Missing { segment, .. } if segment == id), "{error}");
        let report = Log::verify_unopened(&disk, &dir(), STORE, None).expect("verify");
        assert_eq!(report.damage.iter().map(|d| d.segment).collect::<Vec<_>>(), [id]);
    }
}

#[test]
fn a_segment_whose_creation_was_cut_short_is_made_again() {
    let disk = new_disk();
    let (log, _) = log_with(&disk, small_segments(), 10);
    let next = log.end.0 + 1;
    let header = bytes_of(&disk, log.end.0)[..segment::END].to_vec();
    drop(log);
    for start in [vec![], vec![0; 96], vec![0; 5000], header[..50].to_vec()] {
        let unborn = disk.settled_copy();
        unborn.overwrite(&segment_file(next), start.clone());
        let (mut log, recovered) = open(&unborn, small_segments()).expect("open");
        assert_eq!(recovered.dropped.expect("report").place.segment, next);
        assert_eq!(append(&mut log, 11).expect("append").segment, next);
        let (log, _) = open(&unborn.crash_image(0), small_segments()).expect("open");
        assert_holds(&log, 11, "made again");
    }
}
