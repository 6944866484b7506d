//! Frames that lost content still prove the rest, and keep nothing of what is gone.

use super::*;
use crate::log::build::put_block_header;
use crate::log::header::{FrameHead, body_crc, put};
use crate::log::layout::{BLOCK_DIGESTED, FLAG_SPARSE, KIND_CHECKPOINT, LOG_FORMAT_VERSION};

/// Puts `frame` in the place of the frame at `place`, as an erase that writes the segment anew.
fn replace(disk: &SimDisk, place: FramePlace, frame: &[u8]) {
    let bytes = bytes_of(disk, place.segment);
    let (before, after) = (&bytes[..place.offset as usize], &bytes[place.end() as usize..]);
    disk.overwrite(&segment_file(place.segment), [before, frame, after].concat());
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|w| w == part)
}

#[test]
fn erased_rows_leave_the_chain_whole_and_nothing_else() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, LogSettings::new(STORE), 12);
    let (head, place) = (log.head(), places[8]);
    let frame = log.read_frame(place).expect("frame");
    let rows = rows_of(9, "row");
    assert_eq!(rows.len(), 5);
    let erased = sparse_frame(&frame, STORE, 1, |_, i| i == 1 || i == 3, |s| s.kind == 2).expect("sparse");
    replace(&disk, place, &erased);
    let (log, recovered) = open(&disk, LogSettings::new(STORE)).expect("open");
    assert_eq!(recovered.frames, 12);
    let report = log.verify(Some(head)).expect("verify");
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.rows_gone, 2);
    let (_, left) = read_all(&log).swap_remove(8);
    let block = &left.blocks[0];
    assert_eq!((block.form, block.committed_rows), (BlockForm::Sparse, 5));
    assert!(block.rows().eq([0, 2, 4].map(|i| rows[i].as_slice())));
    assert_eq!((0..3).map(|i| block.committed_number(i)).collect::<Vec<_>>(), [0, 2, 4]);
    assert_eq!(left.sections.iter().map(|s| s.bytes.is_some()).collect::<Vec<_>>(), [true, false]);
    let bytes = bytes_of(&disk, 1);
    assert!(!contains(&bytes, &rows[1][..8]) && !contains(&bytes, &rows[3][..8]), "the rows are gone");
    assert!(contains(&bytes, &rows[2]) && !contains(&bytes, &secret(9).0), "so is the secret");
}

#[test]
fn a_second_erase_keeps_the_chain_too() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, LogSettings::new(STORE), 9);
    let (head, mut place) = (log.head(), places[8]);
    let mut left = 5;
    for erase in [3, 0, 1, 1, 0] {
        let (log, _) = open(&disk, LogSettings::new(STORE)).expect("open");
        let frame = log.read_frame(place).expect("frame");
        assert_eq!(frame.row_count(), left);
        let bytes = sparse_frame(&frame, STORE, 1, |_, i| i == erase, |_| left == 1).expect("sparse");
        replace(&disk, place, &bytes);
        place.bytes = bytes.len() as u64;
        left -= 1;
        let report = Log::verify_unopened(&disk, &dir(), STORE, Some(head)).expect("verify");
        assert!(report.is_clean(), "{left} rows left: {report:?}");
    }
    let (log, _) = open(&disk, LogSettings::new(STORE)).expect("open");
    let frame = log.read_frame(place).expect("frame");
    assert!(frame.blocks[0].is_empty() && frame.sections.iter().all(|s| s.bytes.is_none()));
}

#[test]
fn what_an_erase_left_cannot_be_changed() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, LogSettings::new(STORE), 9);
    let frame = log.read_frame(places[8]).expect("frame");
    let erased = sparse_frame(&frame, STORE, 1, |_, i| i == 1, |_| true).expect("sparse");
    let fields = FrameHead::decode(&erased).expect("header");
    let mut found = 0;
    for at in layout::frame::BODY..erased.len() {
        let mut forged = erased.clone();
        forged[at] ^= 1;
        let body = body_crc(&forged[layout::frame::BODY..]);
        build::finish(&mut forged, STORE, 1, 9, &fields, &body);
        replace(
            &disk,
            FramePlace { bytes: bytes_of(&disk, 1).len() as u64 - places[8].offset, ..places[8] },
            &forged,
        );
        let report = Log::verify_unopened(&disk, &dir(), STORE, None).expect("verify");
        assert_eq!(report.damage.len(), 1, "byte {at}: {report:?}");
        found += 1;
    }
    assert!(found > 300, "{found} bytes were changed");
}

#[test]
fn a_digested_block_stands_for_its_rows() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, LogSettings::new(STORE), 2);
    let (head, place) = (log.head(), places[1]);
    let frame = log.read_frame(place).expect("frame");
    let block = &frame.blocks[0];
    let root = hash_rows(&secret(2), 0, block.table, 1, &block.ends, &block.bytes);
    let bytes = bytes_of(&disk, 1)[place.offset as usize..place.end() as usize].to_vec();
    let fields = FrameHead::decode(&bytes).expect("header");
    let section = 8 + frame.sections[0].bytes.as_ref().expect("bytes").len();
    let mut small = bytes[..layout::frame::BODY + section].to_vec();
    put_block_header(&mut small, BLOCK_DIGESTED, [block.table.0, 1, block.committed_rows, 0, 0, 0]);
    small.extend_from_slice(&root);
    let body = body_crc(&small[layout::frame::BODY..]);
    build::finish(&mut small, STORE, 1, 2, &fields, &body);
    replace(&disk, place, &small);
    let (log, _) = open(&disk, LogSettings::new(STORE)).expect("open");
    let report = log.verify(Some(head)).expect("verify");
    assert!(report.is_clean() && report.rows_gone == block.len() as u64, "{report:?}");
    let (_, frame) = read_all(&log).swap_remove(1);
    assert_eq!((frame.blocks[0].form, frame.blocks[0].len()), (BlockForm::Digested, 0));
}

#[test]
fn what_a_newer_version_writes_is_refused_untouched() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, LogSettings::new(STORE), 3);
    drop(log);
    let original = bytes_of(&disk, 1);
    let start = places[2].offset as usize;
    let changes: [(usize, u8); 4] = [
        (layout::frame::KIND, KIND_CHECKPOINT),
        (layout::frame::KIND, 77),
        (layout::frame::FLAGS, FLAG_SPARSE << 1),
        (layout::frame::RESERVED, 1),
    ];
    for (at, value) in changes {
        let mut bytes = original.clone();
        let frame = &mut bytes[start..];
        frame[at] = value;
        let crc = header::frame_crc(frame, STORE, &body_crc(&frame[layout::frame::BODY..]));
        put(frame, layout::frame::CRC, crc.to_le_bytes());
        newer(&disk, bytes);
    }
    let mut bytes = original;
    put(&mut bytes, layout::segment::VERSION, (LOG_FORMAT_VERSION + 1).to_le_bytes());
    let crc = crc32fast::hash(&bytes[..layout::segment::CRC]);
    put(&mut bytes, layout::segment::CRC, crc.to_le_bytes());
    newer(&disk, bytes);
}

fn newer(disk: &SimDisk, bytes: Vec<u8>) {
    disk.overwrite(&segment_file(1), bytes.clone());
    let error = open(disk, LogSettings::new(STORE)).expect_err("newer");
    assert!(matches!(error, LogError::NewerVersion { .. }), "{error}");
    assert!(error.to_string().contains("needs a newer version"), "{error}");
    assert_eq!(bytes_of(disk, 1), bytes);
    let report = Log::verify_unopened(disk, &dir(), STORE, None).expect("verify");
    assert!(report.damage[0].what.contains("newer version"), "{report:?}");
}
