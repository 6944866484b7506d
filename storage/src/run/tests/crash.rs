//! Failing calls and power cuts while a run is written.

use super::*;
use crate::disk::sim::Fault;
use std::io::ErrorKind;

fn sorted() -> (TableSchema, RecordBatch) {
    (small_schema(), naive_sort(&events(&mut Numbers(8), 400), order(false)))
}

fn try_write(
    disk: &SimDisk,
    dir: &Path,
    format: RunFormat,
    schema: &TableSchema,
    rows: &RecordBatch,
) -> Result<RunMeta, RunError> {
    let inputs = vec![MergeInput::batch(rows.clone())];
    merge_runs(disk, dir, spec(1, format), schema, order(false), inputs)
}

#[test]
fn fault_d15_any_call_that_fails_in_a_run_is_an_error_and_leaves_nothing() {
    let (schema, rows) = sorted();
    for format in FORMATS {
        for (forever, takes_effect) in [(false, false), (false, true), (true, false)] {
            let mut n = 0;
            loop {
                n += 1;
                let (disk, dir) = sim();
                let operation = disk.operations() + n;
                disk.set_fault(Fault { operation, kind: ErrorKind::StorageFull, forever, takes_effect });
                let result = try_write(&disk, &dir, format, &schema, &rows);
                if disk.faults_fired() == 0 {
                    assert!(result.is_ok());
                    break;
                }
                assert!(matches!(result, Err(RunError::Disk(_))), "operation {n}: {result:?}");
                disk.clear_fault();
                if !forever {
                    assert_eq!(disk.list(&dir).expect("list"), Vec::<PathBuf>::new(), "operation {n}");
                }
                let meta = try_write(&disk, &dir, format, &schema, &rows).expect("a second try");
                let reader = open(&disk, &dir, &meta).expect("open");
                assert_eq!(read_all(&reader, &schema).expect("rows"), rows);
            }
            println!("D15: {} calls failed one by one while a run was written, {format:?}", n - 1);
            assert!(n > 8, "{n} operations");
        }
    }
}

#[test]
fn fault_d20_a_run_that_was_reported_survives_a_power_cut_and_another_does_no_harm() {
    let (schema, rows) = sorted();
    for format in FORMATS {
        let mut n = 0;
        loop {
            n += 1;
            let (disk, dir) = sim();
            disk.cut_power_after(disk.operations() + n);
            let result = try_write(&disk, &dir, format, &schema, &rows);
            for seed in 0..6 {
                let image = disk.crash_image(seed);
                if let Ok(meta) = &result {
                    let reader = open(&image, &dir, meta).expect("a reported run");
                    assert_eq!(read_all(&reader, &schema).expect("rows"), rows);
                }
                for path in image.list(&dir).expect("list") {
                    let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
                    assert_eq!(run_of_file(name), Some(1), "{name}");
                }
                let meta = try_write(&image, &dir, format, &schema, &rows).expect("written again");
                let reader = open(&image, &dir, &meta).expect("open");
                assert_eq!(read_all(&reader, &schema).expect("rows"), rows);
            }
            if result.is_ok() {
                break;
            }
        }
        assert!(n > 8, "{n} operations");
    }
}
