//! A small store with every kind of table, in four states.

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use asofdb::sql::{Answer, Params, Session, Settings, SqlError};
use asofdb_storage::clock::ManualClock;
use asofdb_storage::engine::{
    CatalogChange, CommitRequest, Components, Engine, EngineOptions, OpenMode, Origin, Quarantined, RowBlock,
    SourceInfo, Stream,
};
use asofdb_storage::event::{EventHead, Op, TimeSource, encode_row};
use asofdb_storage::id::{ColumnId, OriginId, SourceId, StreamId, TableId};
use asofdb_storage::schema::{Column, TableMeta, TableSchema};
use asofdb_storage::time::AxisType;
use asofdb_storage::value::{Cell, ColumnType};
use std::path::Path;
use std::sync::Arc;

/// 2024-05-01T00:00:00Z.
pub const MAY_1: i64 = 1_714_521_600_000_000;
/// One minute in microseconds.
pub const MINUTE: i64 = 60_000_000;
/// The running clock of sessions in these tests: 2024-05-02T00:00:00Z.
pub const NOW: i64 = MAY_1 + 24 * 60 * MINUTE;

/// What is done to a store before it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Fresh,
    Reopened,
    Compacted,
    Rebuilt,
}

pub const STATES: [State; 4] = [State::Fresh, State::Reopened, State::Compacted, State::Rebuilt];

fn open(dir: &Path, mode: OpenMode, clock: &Arc<ManualClock>) -> Engine {
    let components = Components { clock: clock.clone(), ..Components::real("test") };
    let options = EngineOptions { background: false, ..EngineOptions::default() };
    Engine::open_with(dir, mode, options, components).unwrap()
}

/// The fixture store in a state.
pub fn store(dir: &Path, state: State) -> Engine {
    let clock = Arc::new(ManualClock::new(MAY_1 + 13 * 60 * MINUTE));
    let engine = open(dir, OpenMode::Create, &clock);
    for request in requests() {
        engine.commit(request).unwrap();
        clock.advance(MINUTE);
    }
    match state {
        State::Fresh => engine,
        State::Compacted => {
            engine.flush().unwrap();
            engine.compact().unwrap();
            engine
        }
        State::Reopened => {
            drop(engine);
            open(dir, OpenMode::Write, &clock)
        }
        State::Rebuilt => {
            engine.flush().unwrap();
            engine.rebuild().unwrap();
            engine
        }
    }
}

fn table(
    id: u32,
    name: &str,
    columns: &[(&str, ColumnType)],
    key: &[u32],
    axis: AxisType,
    declared: bool,
) -> TableMeta {
    let column = |(i, (name, ty)): (usize, &(&str, ColumnType))| Column {
        id: ColumnId(i as u32),
        name: (*name).into(),
        ty: *ty,
        declared: false,
    };
    let schema = TableSchema {
        version: 1,
        columns: columns.iter().enumerate().map(column).collect(),
        key: key.iter().map(|k| ColumnId(*k)).collect(),
    };
    TableMeta {
        id: TableId(id),
        name: name.into(),
        schemas: vec![(0, schema)],
        valid_declared: true,
        system_declared: declared,
        valid_axis: axis,
        system_axis: if declared { axis } else { AxisType::Instant },
        tracked: None,
    }
}

fn catalog() -> Vec<CatalogChange> {
    let stream = |id: u32, name: &str| CatalogChange::Stream(Stream { id: StreamId(id), name: name.into() });
    let origin = |id: u32, path: &str| {
        let path = Some(path.into());
        CatalogChange::Origin(Origin { id: OriginId(id), stream: StreamId(id), file: None, path })
    };
    let shop = SourceInfo {
        id: SourceId(1),
        server: None,
        database: Some("shop".into()),
        schema: None,
        table: Some("person".into()),
    };
    let mut changes = vec![
        stream(0, "drop-a"),
        stream(1, "drop-b"),
        origin(0, "drop/a.ndjson"),
        origin(1, "drop/b.ndjson"),
        CatalogChange::Source(shop),
    ];
    changes.extend(tables().map(CatalogChange::Table));
    changes
}

fn tables() -> [TableMeta; 5] {
    use ColumnType::*;
    let instants = AxisType::Instant;
    let orders =
        [("region", Text), ("id", Int64), ("amount", Decimal { integer: 12, scale: 2 }), ("orderNote", Text)];
    let labels =
        [("label", Text), ("person_id", Int64), ("at", Instant), ("known_at", Instant), ("version", Int64)];
    let mixed = [("Id", Int64), ("firstName", Text), ("Total", Int64)];
    [
        table(0, "person", &[("id", Int64), ("name", Text)], &[0], instants, true),
        table(1, "orders", &orders, &[0, 1], instants, false),
        table(2, "releases", &[("id", Text), ("state", Text)], &[0], AxisType::Integer, true),
        table(3, "labels", &labels, &[0], instants, false),
        table(4, "Mixed Case", &mixed, &[0], instants, false),
    ]
}

struct Writer {
    table: u32,
    block: RowBlock,
    position: u64,
}

impl Writer {
    fn new(table: u32, position: u64) -> Writer {
        Writer { table, block: RowBlock { table: TableId(table), ..RowBlock::default() }, position }
    }

    fn put(mut self, op: Op, valid: i64, system: Option<i64>, cells: &[(u32, Cell<'_>)]) -> Self {
        let mut head = EventHead::new(op, OriginId(0), self.position);
        if self.table == 0 {
            head.source = SourceId(1);
            head.transaction_id = Some("tx-1");
        }
        head.full = op != Op::Update;
        head.valid_from = Some(valid);
        head.event_time = Some(valid);
        head.time_source = TimeSource::Declared;
        head.system = system;
        self.position += 1;
        self.row(&head, cells)
    }

    /// The same instants from the other stream, another value: a tie (rule B3).
    fn tie(self, valid: i64, system: Option<i64>, cells: &[(u32, Cell<'_>)]) -> Self {
        let mut head = EventHead::new(Op::Upsert, OriginId(1), 0);
        head.valid_from = Some(valid);
        head.event_time = Some(valid);
        head.time_source = TimeSource::Declared;
        head.system = system;
        self.row(&head, cells)
    }

    fn row(mut self, head: &EventHead<'_>, cells: &[(u32, Cell<'_>)]) -> Self {
        let cells: Vec<_> = cells.iter().map(|(i, c)| (ColumnId(*i), *c)).collect();
        encode_row(&mut self.block.bytes, head, &cells);
        self.block.ends.push(self.block.bytes.len() as u32);
        self
    }
}

/// Hours and minutes of the first of May.
pub fn at(hour: i64, minute: i64) -> i64 {
    MAY_1 + (hour * 60 + minute) * MINUTE
}

fn person(w: Writer, op: Op, valid: (i64, i64), seconds: i64, system: (i64, i64), name: &str) -> Writer {
    let valid = at(valid.0, valid.1) + seconds * 1_000_000;
    let cells = [(0, Cell::Int(1)), (1, Cell::Text(name))];
    let cells = if op == Op::Delete { &cells[..1] } else { &cells };
    w.put(op, valid, Some(at(system.0, system.1)), cells)
}

fn order(w: Writer, op: Op, valid: i64, region: &str, id: i64, cents: Option<i128>, note: &str) -> Writer {
    let mut cells = vec![(0, Cell::Text(region)), (1, Cell::Int(id))];
    cells.extend(cents.map(|c| (2, Cell::Decimal { unscaled: c, scale: 2 })));
    if op != Op::Delete {
        cells.push((3, Cell::Text(note)));
    }
    w.put(op, valid, None, &cells)
}

fn label(w: Writer, name: &str, person: Option<i64>, at: i64, known: i64, version: i64) -> Writer {
    let cells = [
        (0, Cell::Text(name)),
        (1, person.map_or(Cell::Null, Cell::Int)),
        (2, Cell::Instant(at)),
        (3, Cell::Instant(known)),
        (4, Cell::Int(version)),
    ];
    w.put(Op::Insert, MAY_1, None, &cells)
}

/// Five commits, at 13:00 to 13:04.
fn requests() -> Vec<CommitRequest> {
    // The worked example of the semantics: events of one key, late on both axes.
    let p = Writer::new(0, 0);
    let p = person(p, Op::Insert, (10, 1), 0, (10, 5), "v1");
    let p = person(p, Op::Upsert, (12, 15), 43, (12, 20), "v2");
    let p = person(p, Op::Upsert, (12, 5), 0, (12, 25), "v3");
    let p = person(p, Op::Delete, (12, 30), 0, (12, 30), "");
    let o = Writer::new(1, 0);
    let o = order(o, Op::Insert, at(9, 0), "eu", 1, Some(1050), "first");
    let o = order(o, Op::Insert, at(9, 0), "eu", 2, Some(2000), "second");
    let o = order(o, Op::Insert, at(9, 30), "us", 1, Some(300), "it's");
    let r = Writer::new(2, 0)
        .put(Op::Upsert, 10, Some(100), &[(0, Cell::Text("app")), (1, Cell::Text("alpha"))])
        .put(Op::Upsert, 20, Some(200), &[(0, Cell::Text("app")), (1, Cell::Text("beta"))])
        .put(Op::Upsert, 15, Some(300), &[(0, Cell::Text("app")), (1, Cell::Text("late"))]);
    let m = Writer::new(4, 0)
        .put(
            Op::Insert,
            at(1, 0),
            None,
            &[(0, Cell::Int(1)), (1, Cell::Text("Ann")), (2, Cell::Int(i64::MAX))],
        )
        .put(Op::Insert, at(1, 0), None, &[(0, Cell::Int(2)), (1, Cell::Text("Bo")), (2, Cell::Int(1))]);
    let l = Writer::new(3, 0);
    let l = label(l, "a", Some(1), at(11, 0), at(13, 0), 10);
    let l = label(l, "b", Some(1), at(12, 10), at(12, 22), 17);
    let l = label(l, "c", Some(1), at(12, 10), at(13, 0), 17);
    let l = label(l, "d", Some(1), at(12, 40), at(13, 0), 20);
    let l = label(l, "e", Some(9), at(12, 10), at(13, 0), 1);
    let l = label(l, "f", None, at(12, 10), at(13, 0), 10);
    let o2 = order(Writer::new(1, 3), Op::Update, at(10, 0), "eu", 1, Some(1100), "changed");
    let o3 = order(Writer::new(1, 4), Op::Delete, at(11, 0), "eu", 2, None, "");
    let o4 = order(Writer::new(1, 5), Op::Upsert, at(9, 15), "us", 1, Some(250), "late");
    let tie = Writer::new(2, 3).tie(20, Some(200), &[(0, Cell::Text("app")), (1, Cell::Text("other"))]);
    let broken = Quarantined {
        origin: Some(OriginId(0)),
        stream: "drop-a".into(),
        file: Some("drop/a.ndjson".into()),
        position: 7,
        line: Some(8),
        table: Some("orders".into()),
        reason: "the key is NULL".into(),
        hint: None,
        length: 2,
        raw: b"{}".to_vec(),
    };
    let note = |kind: &str| serde_json::json!({ "kind": kind });
    let mut first = CommitRequest { catalog: catalog(), note: note("ingest"), ..CommitRequest::default() };
    first.blocks = [p, o, r, l, m].map(|w| w.block).into();
    first.positions = vec![("intake/origin/0".into(), serde_json::json!({"next": 8}))];
    let block =
        |w: Writer| CommitRequest { blocks: vec![w.block], note: note("ingest"), ..CommitRequest::default() };
    let quarantine = CommitRequest { quarantine: vec![broken], ..block(o4) };
    vec![first, block(o2), block(o3), quarantine, block(tie)]
}

/// A session over a store, with a clock that stands still.
pub fn session(engine: &Engine) -> Session {
    session_with(engine, Settings::default())
}

pub fn session_with(engine: &Engine, settings: Settings) -> Session {
    Session::new(Arc::new(engine.clone()), settings, Arc::new(|| NOW)).unwrap()
}

/// A runtime for one test.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A store, a session over it, and a runtime to ask in.
pub struct Fixture {
    _dir: tempfile::TempDir,
    pub session: Session,
    pub runtime: tokio::runtime::Runtime,
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let engine = store(dir.path(), State::Fresh);
        Fixture { session: session_with(&engine, settings), _dir: dir, runtime: runtime() }
    }

    pub fn answer(&self, sql: &str) -> Result<Answer, SqlError> {
        self.runtime.block_on(self.session.run(sql, &Params::none()))
    }

    pub fn batches(&self, sql: &str, params: &Params) -> Result<Vec<RecordBatch>, SqlError> {
        self.runtime.block_on(async { self.session.run(sql, params).await?.collect().await })
    }

    /// Rows as text, cells joined by a bar.
    pub fn rows(&self, sql: &str) -> Vec<String> {
        self.rows_with(sql, &Params::none())
    }

    pub fn rows_with(&self, sql: &str, params: &Params) -> Vec<String> {
        let batches = self.batches(sql, params).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        rows(&batches).into_iter().map(|r| r.join("|")).collect()
    }

    /// The error of a statement.
    pub fn error(&self, sql: &str) -> SqlError {
        match self.batches(sql, &Params::none()) {
            Err(e) => e,
            Ok(batches) => panic!("{sql}: no error but {:?}", rows(&batches)),
        }
    }
}

/// Cells as text.
pub fn rows(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let format = FormatOptions::default().with_null("NULL");
    let mut out = Vec::new();
    for batch in batches {
        let columns: Vec<_> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &format).unwrap()).collect();
        out.extend(
            (0..batch.num_rows()).map(|i| columns.iter().map(|c| c.value(i).to_string()).collect::<Vec<_>>()),
        );
    }
    out
}
