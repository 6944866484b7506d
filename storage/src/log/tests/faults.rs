//! Power cuts after every operation (D1, D2, D20) and calls that fail (D13, D14).

use super::*;
use crate::disk::DiskOp;
use crate::disk::sim::Fault;
use std::io::ErrorKind;

const COMMITS: u64 = 14;
const VARIANTS: u64 = 24;

/// Opens, appends, closes and opens again in the middle. Gives the number of acknowledged commits
/// and whether all went well.
fn workload(disk: &SimDisk) -> (u64, Result<(), LogError>) {
    let mut acked = 0;
    let mut run = || {
        for half in [1..=COMMITS / 2, COMMITS / 2 + 1..=COMMITS] {
            let (mut log, _) = open(disk, small_segments())?;
            for n in half {
                append(&mut log, n)?;
                acked = n;
            }
            log.read_from(Start::Oldest)?.try_for_each(|frame| frame.map(drop))?;
        }
        Ok(())
    };
    let result = run();
    (acked, result)
}

/// Opens what a fault left, which holds the acknowledged commits or one more, and goes on.
fn recovers(disk: &SimDisk, acked: u64, context: &str) -> u64 {
    let settings = LogSettings { floor: CommitSeq(acked), ..small_segments() };
    let (mut log, _) = open(disk, settings).unwrap_or_else(|e| panic!("{context}: {e}"));
    let found = log.last_sequence().0;
    assert!(found == acked || found == acked + 1, "{context}: {found} commits, {acked} acknowledged");
    assert_holds(&log, found, context);
    append(&mut log, found + 1).unwrap_or_else(|e| panic!("{context}: {e}"));
    drop(log);
    let (log, _) = open(&disk.crash_image(0), small_segments()).unwrap_or_else(|e| panic!("{context}: {e}"));
    assert_holds(&log, found + 1, &format!("{context}, then a commit and another cut"));
    found
}

#[test]
fn fault_d1_d2_after_a_power_cut_the_log_holds_what_was_acknowledged_or_one_more() {
    let (mut more, mut cut) = (0, 0);
    loop {
        let disk = new_disk();
        disk.cut_power_after(disk.operations() + cut);
        let (acked, result) = workload(&disk);
        for seed in 0..VARIANTS {
            let context = format!("cut after operation {cut}, variant {seed}");
            more +=
                recovers(&disk.crash_image(if seed < 2 { seed } else { cut * 1000 + seed }), acked, &context)
                    - acked;
        }
        cut += 1;
        if result.is_ok() {
            break;
        }
    }
    println!("D1, D2: {cut} power cuts, {} images of the log, seeds by cut and variant", cut * VARIANTS);
    assert!(cut > 2 * COMMITS && more > 0, "{cut} cuts, {more} commits in doubt survived");
}

#[test]
fn fault_d1_a_power_cut_during_recovery_loses_nothing() {
    let mut images = 0;
    for stop in [3, 7, 12, 20, 27, 33, 40] {
        let disk = new_disk();
        disk.cut_power_after(disk.operations() + stop);
        let (acked, _) = workload(&disk);
        for seed in 0..VARIANTS {
            let left = disk.crash_image(seed);
            for cut in 0.. {
                let again = left.settled_copy();
                again.cut_power_after(cut);
                let done = open(&again, small_segments()).is_ok();
                let context = format!("cuts after {stop}, variant {seed}, and {cut} of recovery");
                recovers(&again.crash_image(seed + cut), acked, &context);
                images += 1;
                if done {
                    break;
                }
            }
        }
    }
    println!("D1: {images} images of power cuts during recovery, seeds by variant and cut");
}

#[test]
fn fault_d14_d15_any_call_that_fails_gives_an_error_and_loses_nothing() {
    let mut faults = Vec::new();
    for kind in [ErrorKind::Other, ErrorKind::StorageFull] {
        for forever in [false, true] {
            for takes_effect in [false, true] {
                faults.push(Fault { operation: 0, kind, forever, takes_effect });
            }
        }
    }
    for fault in faults {
        let mut fired = 0;
        for n in 1.. {
            let disk = new_disk();
            disk.set_fault(Fault { operation: disk.operations() + n, ..fault });
            let (acked, result) = workload(&disk);
            if disk.faults_fired() == 0 {
                assert_eq!(acked, COMMITS);
                break;
            }
            fired += 1;
            let context = format!("call {n} fails: {fault:?}");
            let error = result.expect_err(&context);
            assert!(matches!(error, LogError::Disk(_)), "{context}: {error}");
            disk.clear_fault();
            recovers(&disk, acked, &context);
        }
        println!("D14, D15: {fired} calls failed one by one: {fault:?}");
        assert!(fired > 40, "only {fired} faults");
    }
}

#[test]
fn fault_d13_after_a_failed_sync_nothing_is_acknowledged_until_reopening() {
    let healthy = new_disk();
    assert_eq!(workload(&healthy).0, COMMITS);
    let syncs: Vec<u64> = (1..)
        .zip(healthy.trace())
        .filter(|(_, (op, path))| *op == DiskOp::Sync && path.starts_with(dir()))
        .map(|(n, _)| n)
        .collect();
    println!("D13: {} syncs failed one by one", syncs.len());
    for operation in syncs {
        let disk = new_disk();
        disk.set_fault(Fault { operation, kind: ErrorKind::Other, forever: false, takes_effect: false });
        let Ok((mut log, _)) = open(&disk, small_segments()) else { continue };
        let failed = (1..=COMMITS).find(|n| append(&mut log, *n).is_err());
        let Some(failed) = failed else { continue };
        let before = disk.operations();
        for _ in 0..3 {
            assert!(matches!(append(&mut log, failed), Err(LogError::InDoubt)), "the log is poisoned");
        }
        assert!(log.is_in_doubt());
        assert_eq!(disk.operations(), before, "no call, so no second sync");
        assert_eq!(log.last_sequence().0, failed - 1);
        drop(log);
        // What the system still shows of the failed commit must be durable once it is built upon.
        recovers(&disk, failed - 1, &format!("sync {operation} failed"));
    }
}

#[test]
fn fault_d20_a_new_segment_is_durable_by_name_before_a_frame_is_acknowledged() {
    let disk = new_disk();
    let (log, places) = log_with(&disk, small_segments(), 20);
    let trace = disk.trace();
    for id in 1..=log.end.0 {
        let path = segment_file(id);
        let created = trace.iter().position(|(op, p)| *op == DiskOp::Create && *p == path).expect("created");
        let after: Vec<DiskOp> = trace[created..]
            .iter()
            .filter(|(_, p)| *p == path || *p == dir())
            .map(|(op, _)| *op)
            .take(6)
            .collect();
        use DiskOp::*;
        assert_eq!(after[..4], [Create, Write, Sync, SyncDir], "segment {id}");
        assert_eq!(after[4..], [Write, Sync], "segment {id}: {} frames in all", places.len());
    }
}
