//! An export that fails or dies at any of its steps leaves the export before it in place, whole.

use super::manifest::Manifest;
use super::options::{ExportLayout, ExportOptions};
use super::place::{Place, Step};
use super::run::export_at;
use crate::error::Result;
use crate::{IntakeOptions, Store};
use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn take(store: &Store, ids: std::ops::Range<i64>) {
    let schema = Schema::new(vec![Field::new("id", DataType::Int64, false)]);
    let batch =
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int64Array::from_iter_values(ids))]).unwrap();
    let options = IntakeOptions {
        table: Some("t".into()),
        keys: vec!["id".parse().unwrap()],
        ..IntakeOptions::default()
    };
    store.ingest(&[batch], &options).unwrap();
}

/// Partitions, so that there are several files and directories.
fn options() -> ExportOptions {
    ExportOptions {
        layout: ExportLayout::Current,
        partition_by: Some("id % 3 AS third".into()),
        ..ExportOptions::default()
    }
}

/// A file system whose step number `fatal` fails; `dead`: and so do all after it, as if the process had
/// been killed there.
fn failing(fatal: usize, dead: bool) -> (Place, Arc<AtomicUsize>) {
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = steps.clone();
    let gate = move |step: Step, _: &Path| {
        let n = counted.fetch_add(1, Ordering::SeqCst);
        if n == fatal || (dead && n > fatal) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, format!("no {step:?}")));
        }
        Ok(())
    };
    (Place::gated(Arc::new(gate)), steps)
}

fn export(store: &Store, place: Place, dest: &Path) -> Result<()> {
    let snapshot = store.engine().pin();
    export_at(place, &snapshot, "t", dest, &options(), &mut |_| ControlFlow::Continue(())).map(|_| ())
}

/// The rows that readers find, if there is an export; it is whole.
fn rows(dest: &Path) -> Option<u64> {
    let table = dest.join("t");
    if !table.exists() {
        return None;
    }
    let manifest = Manifest::read(&table).unwrap();
    manifest.verify(&table).unwrap();
    Some(manifest.rows)
}

/// Fails at one step after the other; `old`: the rows of an export that is there before.
fn everywhere(old: Option<i64>, dead: bool) -> usize {
    let (mut fatal, mut kept) = (0, 0);
    loop {
        let dir = tempfile::tempdir().unwrap();
        let (store, dest) = (Store::create(dir.path().join("store")).unwrap(), dir.path().join("out"));
        if let Some(n) = old {
            take(&store, 0..n);
            export(&store, Place::default(), &dest).unwrap();
        }
        take(&store, 100..120);
        let all = 20 + old.unwrap_or(0) as u64;
        let (place, steps) = failing(fatal, dead);
        let done = export(&store, place, &dest);
        let found = rows(&dest);
        let before = old.map(|n| n as u64);
        assert!(found == before || found == Some(all), "step {fatal}: {found:?}");
        kept += usize::from(found == before);
        if steps.load(Ordering::SeqCst) <= fatal {
            done.unwrap();
            assert_eq!(found, Some(all));
            break;
        }
        // Only what follows the swap may fail without harm.
        if let Err(e) = &done {
            assert!(e.message().contains("no "), "step {fatal}: {e}");
        }
        export(&store, Place::default(), &dest).unwrap_or_else(|e| panic!("step {fatal}: {e}"));
        assert_eq!(rows(&dest), Some(all), "after step {fatal} the next export is whole");
        let left = std::fs::read_dir(dest.join(".asof-export/table-t")).unwrap();
        let names: Vec<_> = left.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(names.len(), 3, "one generation, the link and the lock are left: {names:?}");
        fatal += 1;
    }
    assert!(fatal > 25 && kept > 20, "{fatal} steps, {kept} before the swap");
    fatal
}

#[test]
fn an_export_that_dies_leaves_the_one_before_it_whole() {
    everywhere(Some(30), true);
}

#[test]
fn an_export_that_fails_leaves_the_one_before_it_whole() {
    everywhere(Some(30), false);
}

#[test]
fn a_first_export_that_dies_leaves_none() {
    everywhere(None, true);
}

#[test]
fn a_stopped_export_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (store, dest) = (Store::create(dir.path().join("store")).unwrap(), dir.path().join("out"));
    take(&store, 0..10);
    let e = store.export_watched("t", &dest, &options(), &mut |_| ControlFlow::Break(())).unwrap_err();
    assert_eq!(e.kind(), crate::ErrorKind::Cancelled);
    assert_eq!(rows(&dest), None);
    let left = std::fs::read_dir(dest.join(".asof-export/table-t")).unwrap();
    let left: Vec<_> = left.map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
    store.export("t", &dest, &options()).unwrap();
    assert_eq!(rows(&dest), Some(10));
}
