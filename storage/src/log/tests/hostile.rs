//! Any bytes as a segment (H6): an answer or an error, never a panic, never memory beyond the file.

use super::*;
use crate::log::header::{FrameHead, FramePrefix, body_crc};
use crate::log::layout::{frame, segment};
use proptest::prelude::*;

/// Opens, reads and verifies whatever stands in segment 1.
fn survive(bytes: Vec<u8>) {
    let disk = new_disk();
    disk.create_dir(&dir()).expect("create");
    disk.overwrite(&segment_file(1), bytes);
    let report = Log::verify_unopened(&disk, &dir(), STORE, None).expect("verify");
    let read_only = LogSettings { writable: false, ..LogSettings::new(STORE) };
    for settings in [read_only, LogSettings::new(STORE)] {
        let Ok((log, _)) = open(&disk, settings) else {
            assert!(!report.is_clean(), "refused, but verify found nothing");
            continue;
        };
        let frames = log.read_from(Start::Oldest).map(|reader| reader.count()).unwrap_or(0);
        assert!(frames as u64 <= report.frames + 1);
    }
}

fn whole_log() -> Vec<u8> {
    let disk = new_disk();
    let (log, _) = log_with(&disk, LogSettings::new(STORE), 6);
    drop(log);
    bytes_of(&disk, 1)
}

/// A first frame with right checksums around any body.
fn framed(body: &[u8], sections: u32, blocks: u32, sparse: bool) -> Vec<u8> {
    let mut bytes = whole_log()[..segment::END].to_vec();
    let mut one = vec![0; frame::BODY];
    one.extend_from_slice(body);
    let fields = FrameHead {
        sparse,
        instant_us: 5,
        secret: [1; 32],
        previous: genesis(STORE),
        head: genesis(OTHER_STORE),
        sections,
        blocks,
    };
    build::finish(&mut one, STORE, 1, 1, &fields, &body_crc(body));
    bytes.extend_from_slice(&one);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn fault_h6_any_bytes_as_a_segment(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        survive(bytes.clone());
        let mut headed = whole_log()[..segment::END].to_vec();
        headed.extend_from_slice(&bytes);
        survive(headed);
    }

    #[test]
    fn fault_h6_a_log_with_changed_bytes(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = whole_log();
        for (at, value) in &edits {
            let at = at.index(bytes.len());
            bytes[at] = *value;
        }
        survive(bytes.clone());
        bytes.truncate(cut.index(bytes.len()));
        survive(bytes);
    }

    #[test]
    fn fault_h6_any_body_behind_right_checksums(
        body in prop::collection::vec(prop_oneof![3 => 0u8..4, 1 => any::<u8>()], 0..200),
        sections in 0u32..3,
        blocks in prop_oneof![4 => 0u32..3, 1 => any::<u32>()],
        sparse: bool,
    ) {
        survive(framed(&body, sections, blocks, sparse));
    }
}

#[test]
fn fault_h6_absurd_lengths_and_counts_are_refused() {
    for length in [0, 1, 119, layout::FRAME_BYTES_MAX, layout::FRAME_BYTES_MAX + 1, u64::MAX - 31, u64::MAX] {
        let mut bytes = framed(b"", 0, 0, false);
        FramePrefix { segment: 1, length, sequence: 1 }.encode(&mut bytes[segment::END..], STORE);
        survive(bytes.clone());
        let disk = new_disk();
        disk.create_dir(&dir()).expect("create");
        disk.overwrite(&segment_file(1), bytes);
        let (log, recovered) = open(&disk, LogSettings::new(STORE)).expect("a torn tail");
        assert!(recovered.dropped.is_some() && log.last().is_none(), "length {length}");
    }
    let block = |rows: u32, kept: u32, list: u32, bytes: u32, form: u8| {
        let mut body = vec![form, 0, 0, 0];
        [1, 1, rows, kept, list, bytes].iter().for_each(|n: &u32| body.extend_from_slice(&n.to_le_bytes()));
        body
    };
    let max = u32::MAX;
    for (body, sparse) in [
        (block(max, max, max, max, 0), false),
        (block(max, max, 0, 0, 0), false),
        (block(max, 0, 0, 0, 1), true),
        (block(max, max, 0, 0, 1), true),
        (block(1, 1, max, 1, 0), false),
    ] {
        let bytes = framed(&body, 0, 1, sparse);
        let disk = new_disk();
        disk.create_dir(&dir()).expect("create");
        disk.overwrite(&segment_file(1), bytes);
        let (log, _) = open(&disk, LogSettings::new(STORE)).expect("the checksums are right");
        let error = log.read_from(Start::Oldest).expect("reader").next().expect("one").expect_err("refused");
        assert_eq!(error.damage().map(|d| d.offset), Some(segment::END as u64), "{error}");
    }
    survive(framed(b"", u32::MAX, u32::MAX, false));
}
