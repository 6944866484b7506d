//! Calls of the disk that fail.

use super::memory::MemoryFile;
use super::*;
use std::path::Path;
use std::sync::atomic::Ordering;

fn open_file(file: &MemoryFile) -> Result<Index, IndexError> {
    Index::open_backend(file.clone(), Path::new("index.redb"), opening(true))
}

/// Every changing call fails once, in turn: the change is whole or absent after reopening, and the
/// handle refuses until then.
#[test]
fn fault_d14_a_failed_change_of_the_index_is_in_doubt_until_reopened() {
    let (mut old, mut absent) = (Model::new(), 0);
    let first = round(200, 1, 1);
    apply(&mut old, &first);
    let mut new = old.clone();
    let second = round(200, 2, 1);
    apply(&mut new, &second);
    for call in 0.. {
        let file = MemoryFile::new(Vec::new());
        let index = open_file(&file).expect("open");
        rewrite(&index, T, 1, &first).expect("rewrite");
        file.calls_left.store(call, Ordering::SeqCst);
        let result = rewrite(&index, T, 2, &second);
        if !file.failed.load(Ordering::SeqCst) {
            result.expect("no call failed");
            assert!(call > 3, "a commit has several calls");
            break;
        }
        result.expect_err("a call failed");
        let again = rewrite(&index, T, 3, &first).expect_err("refused");
        assert!(matches!(again, IndexError::InDoubt), "call {call}: {again}");
        assert!(matches!(index.get(T, &key(1)), Err(IndexError::InDoubt)), "call {call}");
        drop(index);
        file.calls_left.store(-1, Ordering::SeqCst);
        let index = open_file(&file).expect("reopen");
        let model = match index.applied(T).expect("applied").commit {
            1 => &old,
            2 => &new,
            n => panic!("call {call}: applied {n}"),
        };
        absent += u32::from(model == &old);
        assert_is(&index, T, 210, model);
    }
    assert!(absent > 0, "some changes are absent");
}

#[test]
fn a_failed_open_is_an_error_and_no_damage() {
    let file = MemoryFile::new(Vec::new());
    drop(open_file(&file).expect("open"));
    file.calls_left.store(0, Ordering::SeqCst);
    let e = open_file(&file).expect_err("the disk fails");
    assert!(matches!(e, IndexError::Disk(_)), "{e:?}");
}
