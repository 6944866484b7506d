//! A store to export, and a reader of exports that knows Parquet and nothing of ours.

use arrow::array::{Array, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use asofdb::export::{ExportReport, Manifest};
use asofdb::{ExportOptions, IntakeOptions, Store};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The first instant of the fixture, microseconds: 2026-03-01.
pub const FIRST: i64 = 1_772_323_200_000_000;
/// Between two instants: seven hours, so that days change.
pub const STEP: i64 = 7 * 3_600_000_000;
/// Instants on each axis.
pub const STEPS: i64 = 24;

/// The n-th instant.
pub fn instant(n: i64) -> i64 {
    FIRST + n * STEP
}

/// Small and always the same.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Events that come late on both axes: full and partial upserts and deletes of a few keys. Times are
/// numbers of steps.
pub fn events(seed: u64, count: usize) -> Vec<String> {
    let mut dice = Dice(seed);
    let regions = ["north", "south", "a/b=c d", ""];
    (0..count)
        .map(|_| {
            let (id, valid, known) = (dice.below(12), dice.below(STEPS as u64), dice.below(STEPS as u64));
            let (region, amount) = (regions[dice.below(4) as usize], dice.below(1_000));
            let times = format!("\"at\":{valid},\"known\":{known}");
            match dice.below(10) {
                0..=1 => format!("{{\"op\":\"d\",\"id\":{id},{times}}}"),
                2..=4 => format!("{{\"op\":\"u\",\"id\":{id},\"amount\":{amount}.5,{times}}}"),
                5 => format!("{{\"op\":\"u\",\"id\":{id},\"region\":null,{times}}}"),
                _ => format!(
                    "{{\"op\":\"i\",\"id\":{id},\"region\":\"{region}\",\"amount\":{amount}.25,\"note\":\"n{amount}\",{times}}}"
                ),
            }
        })
        .collect()
}

/// How the events are taken; with `instants`, steps become instants.
pub fn options() -> IntakeOptions {
    IntakeOptions {
        format: Some("json".into()),
        table: Some("t".into()),
        keys: vec!["id".parse().unwrap()],
        op: Some("op".into()),
        valid: Some("at".parse().unwrap()),
        system: Some("known".parse().unwrap()),
        absent: Some(asofdb::format::options::Absent::Unchanged),
        columns: Some("* except (at, known, op)".parse().unwrap()),
        batch: Some(50),
        ..IntakeOptions::default()
    }
}

/// How events without an operation are taken: all are upserts.
pub fn upserts() -> IntakeOptions {
    IntakeOptions { op: None, columns: Some("* except (at, known)".parse().unwrap()), ..options() }
}

/// A directory with a store in `store` and its input.
pub struct Fixture {
    pub dir: tempfile::TempDir,
    pub store: Store,
}

impl Fixture {
    pub fn empty() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path().join("store")).unwrap();
        Fixture { dir, store }
    }

    /// A store of events whose axes are plain numbers of steps.
    pub fn of_steps(seed: u64, count: usize) -> Fixture {
        let fixture = Fixture::empty();
        fixture.take(&events(seed, count), &options());
        fixture
    }

    /// A store of the same events whose axes are instants.
    pub fn of_instants(seed: u64, count: usize) -> Fixture {
        let fixture = Fixture::empty();
        let timed = |line: &String| {
            let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
            for field in ["at", "known"] {
                event[field] = instant(event[field].as_i64().unwrap()).into();
            }
            event.to_string()
        };
        let lines: Vec<String> = events(seed, count).iter().map(timed).collect();
        let options = IntakeOptions {
            valid: Some("at:us".parse().unwrap()),
            system: Some("known:us".parse().unwrap()),
            ..options()
        };
        fixture.take(&lines, &options);
        fixture
    }

    pub fn take(&self, lines: &[String], options: &IntakeOptions) {
        let file = tempfile::Builder::new().suffix(".ndjson").tempfile_in(self.dir.path()).unwrap();
        std::fs::write(file.path(), lines.join("\n") + "\n").unwrap();
        let report = self.store.ingest_files(&[file.path().to_str().unwrap()], options).unwrap();
        assert_eq!(report.accepted as usize, lines.len(), "{report}: {:?}", report.quarantined_first);
    }

    pub fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// Exports table `t`, checks what was written against its manifest and hands the manifest back.
    pub fn export(&self, options: &ExportOptions) -> Manifest {
        let report =
            self.store.export("t", self.out(), options).unwrap_or_else(|e| panic!("{e} {:?}", e.hints()));
        checked(&report, "t")
    }
}

/// The manifest of a table of a report, after a look at every byte.
pub fn checked(report: &ExportReport, table: &str) -> Manifest {
    let exported = report.tables.iter().find(|t| t.table == table).unwrap();
    let manifest = Manifest::read(&exported.path).unwrap();
    manifest.verify(&exported.path).unwrap();
    assert_eq!((manifest.rows, manifest.files.len()), (exported.rows, exported.files));
    assert_eq!((manifest.commit, manifest.bytes), (report.commit, exported.bytes));
    manifest
}

/// A row as text by column.
pub type Shown = BTreeMap<String, String>;

/// What stands for NULL.
pub const NULL: &str = "NULL";

pub fn shown(batch: &RecordBatch) -> Vec<Shown> {
    let format = FormatOptions::default().with_null(NULL);
    let columns: Vec<_> = batch
        .schema()
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(f, c)| (f.name().clone(), ArrayFormatter::try_new(c, &format).unwrap()))
        .collect();
    let row = |i| columns.iter().map(|(name, c)| (name.clone(), c.value(i).to_string())).collect();
    (0..batch.num_rows()).map(row).collect()
}

pub fn sorted(mut rows: Vec<Shown>) -> Vec<Shown> {
    rows.sort();
    rows
}

/// Parquet files below a directory, by path from it.
pub fn parquet_files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = walkdir::WalkDir::new(dir.join(""))
        .into_iter()
        .map(|e| e.unwrap().into_path())
        .filter(|p| p.extension().is_some_and(|e| e == "parquet"))
        .map(|p| p.strip_prefix(dir).unwrap().to_owned())
        .collect();
    found.sort();
    found
}

pub fn read_file(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.build().unwrap().map(|b| b.unwrap()).collect()
}

/// The value of a Hive partition, as its readers read it.
fn hive_value(text: &str) -> String {
    if text == "__HIVE_DEFAULT_PARTITION__" {
        return NULL.to_owned();
    }
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = (*first == b'%')
            .then(|| u8::from_str_radix(std::str::from_utf8(&tail[..2]).unwrap(), 16).unwrap());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).unwrap()
}

/// All rows of an exported table, with the columns that its directories stand for.
pub fn read(dir: &Path) -> Vec<Shown> {
    let mut rows = Vec::new();
    for file in parquet_files(dir) {
        let mut parts = Shown::new();
        for segment in file.parent().unwrap().iter() {
            let (name, value) = segment.to_str().unwrap().split_once('=').unwrap();
            parts.insert(hive_value(name), hive_value(value));
        }
        for batch in read_file(&dir.join(&file)) {
            assert!(batch.columns().iter().all(|c| c.len() == batch.num_rows()));
            rows.extend(shown(&batch).into_iter().map(|mut row| {
                row.extend(parts.clone());
                row
            }));
        }
    }
    rows
}

/// The same rows without some columns.
pub fn without(rows: Vec<Shown>, columns: &[&str]) -> Vec<Shown> {
    let kept = |row: Shown| row.into_iter().filter(|(name, _)| !columns.contains(&name.as_str())).collect();
    rows.into_iter().map(kept).collect()
}
