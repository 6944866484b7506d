//! The shapes of a table (rule B11) and values that nobody knows (rule B6), through a real store.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use asofdb::change::{AxisValue, Change, Column, Decoded};
use asofdb::intake::{Messages, Step, Take};
use asofdb::source::Place;
use asofdb::{Error, IntakeOptions, Progress, Store};
use asofdb_storage::engine::{KeyFilter, RangeSpec, ScanKind, ScanRequest};
use asofdb_storage::event::{EventColumns, Op};
use asofdb_storage::id::ColumnId;
use asofdb_storage::time::{AxisType, FOREVER};
use asofdb_storage::value::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Operation, valid and system time, key, what is authored of column `v`.
type Event = (Op, i64, i64, i64, Option<Cell<'static>>);

struct Feed(Vec<Event>);

impl Messages for Feed {
    fn read(&mut self, _: usize, take: &mut Take<'_>) -> Result<Step, Error> {
        for (position, (op, valid, system, id, v)) in self.0.drain(..).enumerate() {
            let time = |value| Some(AxisValue { value, axis: AxisType::Integer });
            let key = [Column { name: "id", cell: Cell::Int(id) }];
            let mut image = key.to_vec();
            image.extend(v.map(|cell| Column { name: "v", cell }));
            let mut change =
                Change { table: Some("t"), key: &key, full: op == Op::Delete, ..Change::new(op) };
            change.fields = &image;
            change.image = if op == Op::Delete { &[] } else { &image };
            (change.declared.valid_from, change.declared.system) = (time(valid), time(system));
            let place = Place {
                number: 0,
                stream: "s",
                stream_generation: 0,
                origin: "",
                origin_generation: 0,
                position: position as u64,
                file: "",
                line: 0,
                byte: 0,
                raw: b"",
                record: None,
            };
            take(&place, Decoded::Changes(&[change]))?;
        }
        Ok(Step::End)
    }

    fn positions(&mut self) -> Vec<(String, serde_json::Value)> {
        Vec::new()
    }

    fn progress(&self, _: &mut Progress) {}

    fn notices(&mut self) -> Vec<String> {
        Vec::new()
    }
}

fn store(events: Vec<Event>) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s")).unwrap();
    let declared = |name: &str| Some(name.parse().unwrap());
    let options = IntakeOptions { valid: declared("_v"), system: declared("_s"), ..IntakeOptions::default() };
    store.ingest_messages(&mut Feed(events), &options, &mut |_| ControlFlow::Continue(())).unwrap();
    (dir, store)
}

fn scan(store: &Store, kind: ScanKind) -> Vec<RecordBatch> {
    let snapshot = store.engine().pin();
    let meta = snapshot.catalog().table("t").unwrap().clone();
    let request = ScanRequest {
        table: meta.id,
        kind,
        commit: snapshot.commit(),
        schema: Arc::new(meta.schema().clone()),
        projection: vec![ColumnId(0), ColumnId(1)],
        keys: KeyFilter::All,
        partitions: 1,
        rows_per_key_max: 1000,
    };
    snapshot.scan(&request).unwrap().into_iter().flatten().map(|b| b.unwrap()).collect()
}

/// Rows as numbers; NULL is `None`.
fn rows(store: &Store, kind: ScanKind, columns: usize) -> Vec<Vec<Option<i64>>> {
    let mut out = Vec::new();
    for batch in scan(store, kind) {
        for row in 0..batch.num_rows() {
            let cell = |c: usize| {
                let array = batch.column(c).as_primitive::<Int64Type>();
                array.is_valid(row).then(|| array.value(row))
            };
            out.push((0..columns).map(cell).collect());
        }
    }
    out.sort();
    out
}

#[test]
fn b11_scd_types_are_projections_of_the_latest_belief() {
    let int = |n| Some(Cell::Int(n));
    let (_dir, store) = store(vec![
        (Op::Upsert, 10, 1, 1, int(1)),
        (Op::Upsert, 30, 2, 1, int(3)),
        (Op::Upsert, 20, 5, 1, int(2)),
        (Op::Upsert, 10, 3, 2, int(7)),
        (Op::Delete, 40, 4, 2, None),
        (Op::Upsert, 15, 6, 3, int(9)),
    ]);
    let latest = ScanKind::Intervals { valid: RangeSpec::All, system: RangeSpec::Latest };
    let bitemporal = rows(&store, latest, 4);
    let scd2 = rows(&store, ScanKind::Scd2, 4);
    assert_eq!(scd2, bitemporal, "type 2 is the interval rows of the latest belief");
    let row = |id, v, start, end| vec![Some(id), Some(v), Some(start), Some(end)];
    assert_eq!(
        scd2,
        [
            row(1, 1, 10, 20),
            row(1, 2, 20, 30),
            row(1, 3, 30, FOREVER),
            row(2, 7, 10, 40),
            row(3, 9, 15, FOREVER)
        ]
    );
    let open = scd2.iter().filter(|r| r[3] == Some(FOREVER)).map(|r| r[..2].to_vec());
    let scd1 = rows(&store, ScanKind::Rows { valid: FOREVER, system: FOREVER }, 2);
    assert_eq!(scd1, open.collect::<Vec<_>>(), "type 1 is those with an open end");
    let all = ScanKind::Intervals { valid: RangeSpec::All, system: RangeSpec::All };
    assert!(rows(&store, all, 4).len() > scd2.len(), "earlier beliefs are there too");
}

#[test]
fn b6_a_placeholder_inherits_or_is_unknown_which_shows_as_null_and_equals_it() {
    let (_dir, store) = store(vec![
        (Op::Update, 10, 1, 1, Some(Cell::Int(5))),
        (Op::Update, 20, 2, 1, Some(Cell::Unknown)),
        (Op::Update, 30, 3, 1, None),
        (Op::Update, 10, 1, 2, Some(Cell::Unknown)),
        (Op::Update, 20, 2, 2, Some(Cell::Null)),
        (Op::Update, 30, 3, 2, None),
        (Op::Update, 40, 4, 2, Some(Cell::Int(6))),
    ]);
    let row = |id, v, start, end| vec![Some(id), v, Some(start), Some(end)];
    assert_eq!(
        rows(&store, ScanKind::Scd2, 4),
        [row(1, Some(5), 10, FOREVER), row(2, None, 10, 40), row(2, Some(6), 40, FOREVER)],
        "inherited by key 1; of key 2 unknown, NULL and unchanged are one row"
    );
    // Countable: history tells unknown from NULL.
    let unknown = scan(&store, ScanKind::History)
        .into_iter()
        .map(|batch| EventColumns::new(batch).unwrap())
        .map(|events| (0..events.len()).filter(|i| events.is_unknown(*i, ColumnId(1))).count());
    assert_eq!(unknown.sum::<usize>(), 2);
}

#[test]
fn b14_a_declared_type_is_not_declared_anew() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s")).unwrap();
    let declared = |name: &str| Some(name.parse().unwrap());
    // What was taken before comes again, so that positions go on.
    let ingest = |columns: Option<&str>, before: i64, cells: &[Cell<'static>]| {
        let options = IntakeOptions {
            valid: declared("_v"),
            system: declared("_s"),
            columns: columns.map(|c| c.parse().unwrap()),
            ..IntakeOptions::default()
        };
        let all = (0..before).map(|_| Cell::Int(0)).chain(cells.iter().copied());
        let events = all.enumerate().map(|(i, v)| (Op::Upsert, 0, 0, i as i64, Some(v))).collect();
        store.ingest_messages(&mut Feed(events), &options, &mut |_| ControlFlow::Continue(()))
    };
    let rows = || {
        let at = ScanKind::Rows { valid: FOREVER, system: FOREVER };
        scan(&store, at).iter().map(RecordBatch::num_rows).sum::<usize>()
    };
    ingest(Some("id bigint, v bigint"), 0, &[Cell::Int(5)]).unwrap();
    for (columns, said) in [("id bigint, v text", "column v"), ("id text, v bigint", "column id")] {
        let e = ingest(Some(columns), 1, &[Cell::Text("abc")]).unwrap_err();
        assert_eq!(e.kind(), asofdb::ErrorKind::Usage, "{e}");
        assert!(e.to_string().contains(said) && e.to_string().contains("bigint"), "{e}");
        assert_eq!(rows(), 1, "{columns}");
    }
    // The same types, or none: what does not fit goes to the quarantine as before.
    for (n, columns) in [Some("id bigint, v bigint"), Some("id, v"), None].into_iter().enumerate() {
        let report = ingest(columns, 1 + 2 * n as i64, &[Cell::Text("abc"), Cell::Int(6)]).unwrap();
        assert_eq!((report.accepted, report.quarantined), (1, 1), "{columns:?}: {report}");
        assert_eq!(rows(), n + 2, "{columns:?}");
    }
}
