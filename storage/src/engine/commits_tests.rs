use super::*;
use crate::disk::SimDisk;
use crate::time::CommitSeq;

const STORE: &str = "00112233445566778899aabbccddeeff";

fn record(seq: u64) -> CommitRecord {
    let note = serde_json::json!({ "what": "ingest", "text": "a\nline\u{2028} \"quoted\"" });
    let info =
        CommitInfo { seq, at: seq as i64 * 10, events: seq, quarantined: 0, resolved: Vec::new(), note };
    CommitRecord {
        info,
        place: FramePlace { segment: 1, offset: seq * 100, bytes: 90, sequence: CommitSeq(seq) },
    }
}

fn records(n: u64) -> Vec<CommitRecord> {
    (1..=n).map(record).collect()
}

/// A list of the first commits in blocks of some sizes, in a file with number 7.
fn written(disk: &SimDisk, blocks: &[u64]) -> CommitsPart {
    let (mut part, mut from) = (CommitsPart::default(), 0);
    for block in blocks {
        let all = records(from + block);
        part = part.append(disk, Path::new("/"), STORE, 7, &all[from as usize..]).expect("appended");
        from += block;
    }
    part
}

fn read(disk: &SimDisk, part: &CommitsPart) -> Result<Vec<CommitRecord>, Error> {
    part.read(disk, Path::new("/"), STORE)
}

#[test]
fn what_was_appended_is_read() {
    let disk = SimDisk::new();
    assert_eq!(read(&disk, &CommitsPart::default()).expect("nothing"), []);
    let part = written(&disk, &[3, 1, 5]);
    assert_eq!((part.file, part.commits), (7, 9));
    assert_eq!(read(&disk, &part).expect("the list"), records(9));
    assert_eq!(read(&disk.crash_image(0), &part).expect("after a power cut"), records(9));
    assert_eq!(file_number(Path::new("/s/commits-000000000007")), Some(7));
    assert_eq!(disk.peek(Path::new("/commits-000000000007")).map(|b| b.len() as u64), Some(part.bytes));
}

#[test]
fn bytes_behind_the_part_do_not_count_and_are_written_over() {
    let disk = SimDisk::new();
    let part = written(&disk, &[3]);
    let long = part.append(&disk, Path::new("/"), STORE, 8, &records(9)[3..]).expect("appended");
    assert_eq!(read(&disk, &part).expect("the shorter list"), records(3));
    let again = part.append(&disk, Path::new("/"), STORE, 8, &records(4)[3..]).expect("appended");
    assert_eq!(read(&disk, &again).expect("the list"), records(4));
    assert_eq!(read(&disk, &part).expect("the shorter list"), records(3));
    let error = read(&disk, &long).expect_err("it was written over");
    assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
}

#[test]
fn damage_at_any_byte_is_found() {
    let disk = SimDisk::new();
    let part = written(&disk, &[2, 2]);
    let path = Path::new("/commits-000000000007");
    let whole = disk.peek(path).expect("a file");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        disk.overwrite(path, bytes);
        let error = read(&disk, &part).expect_err("a byte is another");
        assert!(error.kind == ErrorKind::Damaged && error.hint.is_some(), "byte {at}: {error}");
        disk.overwrite(path, whole[..at].to_vec());
        let error = read(&disk, &part).expect_err("the file is cut short");
        assert!(error.message.contains("the manifest counts on"), "{at} bytes: {error}");
    }
    disk.remove(path).expect("removed");
    assert!(read(&disk, &part).expect_err("no file").message.ends_with("commits-000000000007: is missing"));
}

#[test]
fn a_sound_list_that_the_manifest_does_not_count_on_is_refused() {
    let disk = SimDisk::new();
    let part = written(&disk, &[2, 2]);
    let error = part.read(&disk, Path::new("/"), &STORE.replace('0', "1")).expect_err("another store");
    assert!(error.message.contains("no list of commits of this store"), "{error}");
    // The same commits in other blocks are another file.
    let other = SimDisk::new();
    let others = written(&other, &[1, 3]);
    assert_ne!(part.digest, others.digest);
    let mixed = CommitsPart { bytes: others.bytes, ..part.clone() };
    let error = read(&other, &mixed).expect_err("another end");
    assert!(error.message.contains("ends with another block"), "{error}");
    // Blocks of another place: the second one alone, and the first one twice.
    let bytes = disk.peek(Path::new("/commits-000000000007")).expect("a file");
    let line = first_line(STORE).len();
    let second = bytes.windows(9).rposition(|w| w == b"\nblock 3 ").expect("a block") + 1;
    for (bytes, at) in [
        ([&bytes[..line], &bytes[second..]].concat(), line),
        ([&bytes[..second], &bytes[line..]].concat(), second),
    ] {
        let told = part.parse(&bytes, STORE).expect_err("blocks out of place");
        assert_eq!(told, (at, "its digest is wrong".to_owned()));
    }
}
