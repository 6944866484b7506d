//! The log on the simulated disk. What they share is here; one file for each group of promises.

mod damage;
mod document;
mod faults;
mod hostile;
mod round_trip;
mod sparse;
mod tamper;

use super::*;
use crate::disk::{Disk, SimDisk};
use crate::id::TableId;
use crate::time::CommitSeq;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const STORE: [u8; 16] = *b"the test store 1";
const OTHER_STORE: [u8; 16] = *b"the other store!";

fn dir() -> PathBuf {
    PathBuf::from("/store/log")
}

fn segment_file(id: u64) -> PathBuf {
    header::segment_path(&dir(), id)
}

/// A disk with a durable directory for the store.
fn new_disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.create_dir(Path::new("/store")).expect("create");
    disk.sync_dir(Path::new("/")).expect("sync");
    disk
}

fn small_segments() -> LogSettings {
    LogSettings { segment_bytes_max: 12_000, ..LogSettings::new(STORE) }
}

/// The rows of commit `n`, different for every commit and salted by `flavour`.
fn rows_of(n: u64, flavour: &str) -> Vec<Vec<u8>> {
    (0..n % 5 + 1)
        .map(|i| {
            // Some frames span several pages of a disk.
            let long = if n.is_multiple_of(4) && i == 1 { 700 } else { 1 };
            let repeat = (n as usize * 7 + i as usize * 3) % 40 + long;
            format!("{flavour}-{n}-{i} ").repeat(repeat).into_bytes()
        })
        .collect()
}

fn join(rows: &[Vec<u8>]) -> (Vec<u32>, Vec<u8>) {
    let ends = rows.iter().scan(0, |end, row| {
        *end += row.len() as u32;
        Some(*end)
    });
    (ends.collect(), rows.concat())
}

fn secret(n: u64) -> FrameSecret {
    let mut bytes = [0x5a; 32];
    bytes[..8].copy_from_slice(&n.to_le_bytes());
    FrameSecret(bytes)
}

fn sealed(n: u64, flavour: &str) -> SealedFrame {
    let mut builder = FrameBuilder::new(secret(n));
    builder.section(1, format!("positions {n}").as_bytes()).expect("section");
    if n.is_multiple_of(3) {
        builder.section(2, b"").expect("section");
    }
    let (ends, bytes) = join(&rows_of(n, flavour));
    builder.rows(TableId(n as u32 % 3), 1, &ends, &bytes).expect("rows");
    builder.seal()
}

fn instant(n: u64) -> i64 {
    1_000_000 + 10 * n as i64
}

fn append(log: &mut Log, n: u64) -> Result<FramePlace, LogError> {
    log.append(sealed(n, "row"), CommitSeq(n), instant(n))
}

fn open(disk: &SimDisk, settings: LogSettings) -> Result<(Log, Recovered), LogError> {
    Log::open(Arc::new(disk.clone()), &dir(), settings)
}

/// A log with commits 1 to `n`.
fn log_with(disk: &SimDisk, settings: LogSettings, n: u64) -> (Log, Vec<FramePlace>) {
    let (mut log, _) = open(disk, settings).expect("open");
    let places = (1..=n).map(|i| append(&mut log, i).expect("append")).collect();
    (log, places)
}

fn read_all(log: &Log) -> Vec<(FramePlace, Frame)> {
    log.read_from(Start::Oldest).expect("reader").collect::<Result<_, _>>().expect("frames")
}

/// All bytes of a segment.
fn bytes_of(disk: &SimDisk, segment: u64) -> Vec<u8> {
    disk.peek(&segment_file(segment)).expect("segment")
}

/// Checks that the log holds exactly commits 1 to `n` as [`append`] writes them.
fn assert_holds(log: &Log, n: u64, context: &str) {
    let frames = read_all(log);
    assert_eq!(frames.len() as u64, n, "{context}: number of commits");
    for (i, (place, frame)) in (1..).zip(&frames) {
        assert_eq!((place.sequence, frame.sequence), (CommitSeq(i), CommitSeq(i)), "{context}");
        assert_eq!(frame.instant_us, instant(i), "{context}");
        assert_eq!(frame.section(1).map(|b| b.to_vec()), Some(format!("positions {i}").into_bytes()));
        assert!(
            frame.blocks[0].rows().eq(rows_of(i, "row").iter().map(Vec::as_slice)),
            "{context}: rows of {i}"
        );
        assert_eq!(frame.computed_head(), Some(frame.head), "{context}: hash of {i}");
    }
}
