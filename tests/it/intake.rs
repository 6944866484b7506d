//! Rules of intake, each on a handful of changes (A2, A4, A5, B7, B8, B14, B15, C1, C2, C3).

use crate::memory::Memory;
use asofdb::change::{AxisValue, Change, Column, Decoded, Fault, Previous, Token};
use asofdb::intake::{Messages, Step, Take, run};
use asofdb::source::Place;
use asofdb::{Error, ErrorKind, IntakeOptions, IntakeReport, Progress};
use asofdb_storage::event::Op;
use asofdb_storage::time::{AxisType, BEGINNING, FOREVER};
use asofdb_storage::value::{Cell, ColumnType, Value};
use std::ops::ControlFlow;

/// A message of a test, by value.
#[derive(Clone)]
pub struct Msg {
    stream: &'static str,
    origin: &'static str,
    position: u64,
    what: What,
}

#[derive(Clone)]
enum What {
    Rows(Vec<Ev>),
    Ignored,
    Broken,
}

#[derive(Clone)]
struct Ev {
    op: Op,
    full: bool,
    key: Vec<(&'static str, Cell<'static>)>,
    image: Vec<(&'static str, Cell<'static>)>,
    before: Vec<(&'static str, Cell<'static>)>,
    previous: Option<(i64, bool)>,
    source: Option<i64>,
    broker: Option<i64>,
    valid: Option<i64>,
    snapshot: bool,
    tombstone: bool,
    token: Option<&'static [u8]>,
    id: Option<i64>,
}

fn ev(op: Op, id: i64, qty: i64) -> Ev {
    let image = match op {
        Op::Delete | Op::Truncate => vec![],
        _ => vec![("id", Cell::Int(id)), ("qty", Cell::Int(qty))],
    };
    let key = if op == Op::Truncate { vec![] } else { vec![("id", Cell::Int(id))] };
    Ev {
        op,
        full: true,
        key,
        image,
        before: vec![],
        previous: None,
        source: None,
        broker: None,
        valid: None,
        snapshot: false,
        tombstone: false,
        token: None,
        id: None,
    }
}

fn upsert(id: i64, qty: i64) -> Ev {
    ev(Op::Update, id, qty)
}

fn delete(id: i64) -> Ev {
    ev(Op::Delete, id, 0)
}

impl Ev {
    fn at(self, t: i64) -> Ev {
        Ev { source: Some(t), ..self }
    }

    fn broker(self, t: i64) -> Ev {
        Ev { broker: Some(t), ..self }
    }

    fn token(self, t: &'static [u8]) -> Ev {
        Ev { token: Some(t), ..self }
    }

    fn tombstone(self) -> Ev {
        Ev { tombstone: true, ..self }
    }

    fn msg(self, position: u64) -> Msg {
        Msg { stream: "topic/0", origin: "", position, what: What::Rows(vec![self]) }
    }
}

struct Feed {
    messages: Vec<Msg>,
    next: usize,
}

fn columns(cells: &[(&'static str, Cell<'static>)]) -> Vec<Column<'static>> {
    cells.iter().map(|(name, cell)| Column { name, cell: *cell }).collect()
}

fn deliver(m: &Msg, take: &mut Take<'_>) -> Result<(), Error> {
    let place = Place {
        number: 0,
        stream: m.stream,
        stream_generation: 0,
        origin: m.origin,
        origin_generation: 0,
        position: m.position,
        file: m.stream,
        line: m.position + 1,
        byte: 0,
        raw: b"raw",
        record: None,
    };
    let events = match &m.what {
        What::Ignored => return take(&place, Decoded::Ignored("heartbeat")),
        What::Broken => {
            return take(&place, Decoded::Quarantine(Fault { reason: "not JSON", hint: "", offset: 3 }));
        }
        What::Rows(events) => events,
    };
    let parts: Vec<_> = events
        .iter()
        .map(|e| {
            let old = e.previous.map(|(id, _)| vec![Column { name: "id", cell: Cell::Int(id) }]);
            (columns(&e.key), columns(&e.image), columns(&e.before), old)
        })
        .collect();
    let changes: Vec<Change<'_>> = events
        .iter()
        .zip(&parts)
        .map(|(e, (key, image, before, old))| {
            let mut c = Change::new(e.op);
            (c.table, c.full, c.key, c.image, c.before) = (Some("t"), e.full, key, image, before);
            c.fields = image;
            c.previous =
                old.as_ref().map(|key| Previous { key, deletes_sent: e.previous.is_some_and(|p| p.1) });
            (c.times.source, c.times.broker) = (e.source, e.broker);
            c.declared.valid_from = e.valid.map(|value| AxisValue { value, axis: AxisType::Instant });
            c.declared.operation_id = e.id.map(Cell::Int);
            (c.snapshot, c.tombstone) = (e.snapshot, e.tombstone);
            c.token = e.token.map(|position| Token { server: "s", position });
            c
        })
        .collect();
    take(&place, Decoded::Changes(&changes))
}

impl Messages for Feed {
    fn read(&mut self, room: usize, take: &mut Take<'_>) -> Result<Step, Error> {
        for _ in 0..room {
            let Some(m) = self.messages.get(self.next) else { return Ok(Step::End) };
            self.next += 1;
            deliver(m, take)?;
        }
        Ok(Step::More)
    }

    fn positions(&mut self) -> Vec<(String, serde_json::Value)> {
        vec![("source/test".into(), self.next.into())]
    }

    fn progress(&self, _: &mut Progress) {}

    fn notices(&mut self) -> Vec<String> {
        Vec::new()
    }
}

fn try_take(store: &Memory, options: &IntakeOptions, messages: Vec<Msg>) -> Result<IntakeReport, Error> {
    run(store, &mut Feed { messages, next: 0 }, options, &mut |_| ControlFlow::Continue(()))
}

fn take(store: &Memory, messages: Vec<Msg>) -> IntakeReport {
    try_take(store, &IntakeOptions::default(), messages).unwrap()
}

fn batched(batch: usize) -> IntakeOptions {
    IntakeOptions { batch: Some(batch), ..Default::default() }
}

/// (id, qty, valid) of all events of the table in the order of rule B3.
fn events(store: &Memory) -> Vec<(Op, Option<i64>, i64)> {
    let int = |v: Option<&Option<Value>>| match v {
        Some(Some(Value::Int(n))) => Some(*n),
        _ => None,
    };
    store.events("t").iter().map(|e| (e.op, int(e.cells.get(&1)), e.valid)).collect()
}

fn qty(store: &Memory, id: i64) -> Option<i64> {
    let row = store
        .rows_at("t", FOREVER, FOREVER)
        .into_iter()
        .find(|r| r.get("id") == Some(&Some(Value::Int(id))))?;
    match row.get("qty") {
        Some(Some(Value::Int(n))) => Some(*n),
        _ => None,
    }
}

#[test]
fn a4_times_come_from_source_then_connector_then_broker() {
    let store = Memory::default();
    take(&store, vec![upsert(1, 10).at(500).broker(700).msg(0), upsert(2, 20).broker(800).msg(1)]);
    assert_eq!(events(&store), [(Op::Update, Some(10), 500), (Op::Update, Some(20), 800)]);
    let sources: Vec<_> = store.events("t").iter().map(|e| e.time_source).collect();
    assert_eq!(sources, ["source", "broker"]);
}

#[test]
fn a4_without_any_time_it_is_the_predecessors_or_the_commit_instant() {
    let store = Memory::default();
    take(&store, vec![upsert(1, 1).at(500).msg(0), upsert(1, 2).msg(1), upsert(2, 3).msg(2)]);
    let found = events(&store);
    assert_eq!(found[1], (Op::Update, Some(2), 500));
    assert_eq!(found[2].2, store.0.lock().unwrap().commits[0].at);
    assert_eq!(qty(&store, 1), Some(2));
    // The same over a commit in between.
    take(&store, vec![upsert(2, 4).msg(3)]);
    assert_eq!(events(&store)[3].2, found[2].2);
}

#[test]
fn a4_a_snapshot_read_without_time_holds_from_the_beginning() {
    let store = Memory::default();
    let read = |id, position| ev(Op::Read, id, 5).broker(900).msg(position);
    take(&store, vec![read(1, 0), upsert(2, 6).at(400).msg(1), read(2, 2)]);
    let found = events(&store);
    assert_eq!(found[0], (Op::Read, Some(5), BEGINNING));
    assert_eq!(found[2], (Op::Read, Some(5), 900), "with a predecessor the broker's time counts");
}

#[test]
fn a5_a_clock_that_steps_back_does_not_bring_an_older_change_to_the_top() {
    for batch in [1, 2, 3, 100] {
        let store = Memory::default();
        let messages = vec![
            upsert(1, 1).at(500).msg(0),
            upsert(2, 2).at(600).msg(1),
            upsert(1, 3).at(450).msg(2),
            upsert(3, 4).at(450).msg(3),
        ];
        let report = try_take(&store, &batched(batch), messages).unwrap();
        let mut found = events(&store);
        found.sort_by_key(|e| e.1);
        assert_eq!(found[2], (Op::Update, Some(3), 500), "raised to its key's predecessor, batch {batch}");
        assert_eq!(found[3], (Op::Update, Some(4), 450), "another key keeps its time");
        assert_eq!((report.raised, report.late), (1, 2));
        assert_eq!(qty(&store, 1), Some(3));
    }
}

#[test]
fn a5_looks_up_only_what_lies_behind_its_stream() {
    let store = Memory::default();
    let ascending = (0..100).map(|i| upsert(i % 7, i).at(1000 + i).msg(i as u64)).collect();
    try_take(&store, &batched(10), ascending).unwrap();
    assert_eq!(store.0.lock().unwrap().lookups, 0);
}

#[test]
fn a5_a_file_behind_one_already_taken_is_lowered_to_its_successor() {
    let store = Memory::default();
    let in_file = |origin, e: Ev| Msg { stream: "dir", origin, position: 0, what: What::Rows(vec![e]) };
    take(&store, vec![in_file("f10.json", upsert(1, 10).at(500))]);
    let report = take(&store, vec![in_file("f9.json", upsert(1, 9).at(800))]);
    assert_eq!(report.lowered, 1);
    assert_eq!(qty(&store, 1), Some(10), "f9 comes before f10, whenever it arrives");
}

#[test]
fn a5_a_truncate_succeeds_and_precedes_every_key() {
    let store = Memory::default();
    take(
        &store,
        vec![upsert(1, 1).at(500).msg(0), ev(Op::Truncate, 0, 0).at(400).msg(1), upsert(2, 2).at(300).msg(2)],
    );
    let found = events(&store);
    assert_eq!((found[1].0, found[1].2), (Op::Truncate, 500));
    assert_eq!(found[2].2, 500);
    assert_eq!((qty(&store, 1), qty(&store, 2)), (None, Some(2)));
}

#[test]
fn a5_a_truncate_in_a_file_behind_one_already_taken_is_lowered_to_what_follows() {
    for batch in [1, 100] {
        let store = Memory::default();
        let in_file =
            |origin, position, e: Ev| Msg { stream: "dir", origin, position, what: What::Rows(vec![e]) };
        take(&store, vec![in_file("f2.json", 0, upsert(1, 10).at(500))]);
        take(&store, vec![in_file("f10.json", 0, upsert(2, 20).at(600))]);
        let behind = vec![
            in_file("f1.json", 0, upsert(3, 30).at(300)),
            in_file("f1.json", 1, ev(Op::Truncate, 0, 0).at(900)),
        ];
        let report = try_take(&store, &batched(batch), behind).unwrap();
        let truncate = store.events("t").into_iter().find(|e| e.op == Op::Truncate).unwrap();
        assert_eq!(truncate.valid, 500, "the first of what follows, of any key; batch {batch}");
        assert_eq!((report.lowered, report.raised), (1, 0));
        assert_eq!((qty(&store, 1), qty(&store, 2), qty(&store, 3)), (Some(10), Some(20), None));
        // One that lies between two files is raised to what precedes it, and precedes what follows.
        take(&store, vec![in_file("f9.json", 0, ev(Op::Truncate, 0, 0).at(100))]);
        assert_eq!(store.events("t").iter().filter(|e| e.op == Op::Truncate).count(), 2);
        assert_eq!((qty(&store, 1), qty(&store, 2)), (None, Some(20)), "batch {batch}");
    }
}

#[test]
fn a5_a_key_change_succeeds_the_events_of_both_keys() {
    for batch in [1, 100] {
        let store = Memory::default();
        let moved = Ev { before: vec![("id", Cell::Int(1))], ..upsert(2, 6) };
        let messages = vec![upsert(2, 5).at(500).msg(0), upsert(1, 4).at(700).msg(1), moved.at(400).msg(2)];
        try_take(&store, &batched(batch), messages).unwrap();
        assert_eq!(events(&store)[2], (Op::Update, Some(6), 700), "batch {batch}");
    }
}

#[test]
fn a_message_with_several_rows_counts_once_and_goes_aside_as_a_whole() {
    let store = Memory::default();
    let rows = |events: Vec<Ev>, position| Msg { what: What::Rows(events), ..upsert(0, 0).msg(position) };
    let null_key = Ev { image: vec![("id", Cell::Null)], key: vec![], ..upsert(1, 1) };
    let report = take(
        &store,
        vec![
            rows(vec![upsert(1, 1).at(10), upsert(2, 2).at(10)], 0),
            rows(vec![upsert(3, 3).at(11), null_key.at(11)], 1),
            rows(vec![upsert(4, 4).at(5), upsert(5, 5).at(12)], 2),
        ],
    );
    assert_eq!((report.delivered, report.accepted, report.quarantined), (3, 2, 1));
    assert_eq!((report.row_events(), qty(&store, 3), qty(&store, 4)), (4, None, Some(4)));
}

#[test]
fn a5_a_lower_log_position_is_late_and_keeps_its_time() {
    let store = Memory::default();
    let report =
        take(&store, vec![upsert(1, 1).at(500).token(b"5").msg(0), upsert(1, 2).at(400).token(b"4").msg(1)]);
    assert_eq!(events(&store)[0], (Op::Update, Some(2), 400));
    assert_eq!((report.raised, qty(&store, 1)), (0, Some(1)));
}

#[test]
fn a4_tombstones_after_a_delete_are_ignored_and_others_delete() {
    for batch in [1, 2, 100] {
        let store = Memory::default();
        let tomb = |id, t, position| delete(id).broker(t).tombstone().msg(position);
        let messages = vec![
            upsert(1, 1).at(100).msg(0),
            delete(1).at(200).msg(1),
            tomb(1, 300, 2),
            upsert(2, 2).at(400).msg(3),
            tomb(2, 500, 4),
            tomb(2, 600, 5),
        ];
        let report = try_take(&store, &batched(batch), messages).unwrap();
        assert_eq!(report.rows["delete"], 2, "batch {batch}");
        assert_eq!(report.ignored_messages(), 2);
        assert_eq!((qty(&store, 1), qty(&store, 2)), (None, None));
    }
}

#[test]
fn c1_positions_are_taken_once_also_by_a_later_run() {
    let store = Memory::default();
    let messages: Vec<Msg> = (0..6).map(|i| upsert(i % 2, i).at(100 + i).msg(i as u64)).collect();
    take(&store, messages[..4].to_vec());
    let report = take(&store, messages.clone());
    assert_eq!((report.delivered, report.accepted, report.repeats["already_taken"]), (6, 2, 4));
    assert_eq!(events(&store).len(), 6);
}

#[test]
fn c1_replayed_log_positions_are_repeats_and_new_content_is_not() {
    for batch in [1, 3, 100] {
        let store = Memory::default();
        let messages = vec![
            upsert(1, 1).at(100).token(b"a1").msg(0),
            upsert(1, 2).at(200).token(b"a2").msg(1),
            upsert(1, 1).at(100).token(b"a1").msg(2),
            upsert(1, 2).at(200).token(b"a2").msg(3),
            upsert(1, 9).at(150).token(b"a1").msg(4),
            upsert(1, 3).at(300).token(b"a3").msg(5),
        ];
        let report = try_take(&store, &batched(batch), messages).unwrap();
        assert_eq!(report.repeats["replayed"], 2, "batch {batch}");
        assert_eq!(events(&store).len(), 4);
    }
}

#[test]
fn c1_events_that_share_a_log_position_are_told_apart_by_their_number() {
    let store = Memory::default();
    let same = |p| upsert(1, 7).at(100).token(b"x").msg(p);
    let report = take(&store, vec![same(0), same(1)]);
    assert_eq!((report.accepted, report.repeated()), (2, 0));
}

#[test]
fn c1_operation_ids_are_applied_once_and_conflicts_are_put_aside() {
    for batch in [1, 100] {
        let store = Memory::default();
        let with_id = |qty, id, p| Ev { id: Some(id), ..upsert(1, qty).at(100 + p as i64) }.msg(p);
        let messages = vec![
            with_id(1, 10, 0),
            with_id(2, 11, 1),
            with_id(1, 10, 2),
            with_id(3, 11, 3),
            with_id(4, 12, 4),
            with_id(4, 12, 5),
        ];
        let options = IntakeOptions { operation_id: Some("_op".into()), ..batched(batch) };
        let report = try_take(&store, &options, messages).unwrap();
        assert_eq!(report.repeats["same_operation_id"], 2, "batch {batch}");
        assert_eq!(report.quarantined, 1);
        assert_eq!(qty(&store, 1), Some(4));
        assert!(store.0.lock().unwrap().quarantine[0].reason.contains("operation id"));
    }
}

#[test]
fn c2_bad_messages_go_aside_in_the_same_commit_and_strict_stops() {
    let store = Memory::default();
    let broken = Msg { what: What::Broken, ..upsert(0, 0).msg(1) };
    let null_key = Ev { image: vec![("id", Cell::Null), ("qty", Cell::Int(1))], key: vec![], ..upsert(1, 1) };
    let heartbeat = Msg { what: What::Ignored, ..upsert(0, 0).msg(3) };
    let messages = vec![upsert(1, 1).at(1).msg(0), broken, null_key.at(2).msg(2), heartbeat];
    let report = take(&store, messages.clone());
    assert_eq!((report.delivered, report.accepted, report.quarantined), (4, 1, 2));
    assert_eq!(report.ignored["heartbeat"], 1);
    let state = store.0.lock().unwrap();
    assert_eq!(state.commits.len(), 1);
    assert!(state.quarantine[1].reason.contains("id is NULL"));
    drop(state);
    let strict = IntakeOptions { strict: true, ..Default::default() };
    let e = try_take(&Memory::default(), &strict, messages).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Source);
    assert!(e.message().contains("line 2"), "{e}");
}

#[test]
fn c2_a_refused_message_leaves_no_column_behind() {
    let store = Memory::default();
    let bad = Ev { image: vec![("id", Cell::Null), ("odd", Cell::Int(1))], key: vec![], ..upsert(1, 1) };
    take(&store, vec![upsert(1, 1).at(1).msg(0), bad.msg(1)]);
    let names: Vec<_> = store.schema("t").columns.into_iter().map(|c| c.name).collect();
    assert_eq!(names, ["id", "qty"]);
}

#[test]
fn c3_positions_stand_in_the_commit_of_their_events() {
    let store = Memory::default();
    store.0.lock().unwrap().fail_at = Some(3);
    let messages: Vec<Msg> = (0..6).map(|i| upsert(i, i).at(i + 1).msg(i as u64)).collect();
    let e = try_take(&store, &batched(2), messages.clone()).unwrap_err();
    assert!(e.message().contains("the disk is gone"));
    assert_eq!(store.0.lock().unwrap().catalog.positions["source/test"], 4);
    store.0.lock().unwrap().fail_at = None;
    take(&store, messages);
    assert_eq!(events(&store).len(), 6);
}

#[test]
fn b14_columns_widen_over_all_values_and_versions_follow_commits() {
    let store = Memory::default();
    let with = |cell, p: u64| {
        Ev { image: vec![("id", Cell::Int(1)), ("v", cell)], ..upsert(1, 0) }.at(p as i64 + 1).msg(p)
    };
    try_take(&store, &batched(1), vec![with(Cell::Int(1), 0), with(Cell::Null, 1), with(Cell::Text("x"), 2)])
        .unwrap();
    let schema = store.schema("t");
    assert_eq!((schema.version, schema.columns[1].ty), (2, ColumnType::Text));
}

#[test]
fn b8_a_key_change_is_one_event_with_both_keys() {
    let store = Memory::default();
    let moved = Ev { before: vec![("id", Cell::Int(1)), ("qty", Cell::Int(5))], ..upsert(2, 6) };
    take(&store, vec![upsert(1, 5).at(1).msg(0), moved.at(2).msg(1)]);
    assert_eq!((qty(&store, 1), qty(&store, 2)), (None, Some(6)));
    assert!(store.events("t")[1].previous.is_some());
    // Delete and create, as Debezium sends it; the placeholder takes the old key's value.
    let create = Ev {
        image: vec![("id", Cell::Int(3)), ("qty", Cell::Unknown)],
        previous: Some((2, true)),
        ..ev(Op::Insert, 3, 0)
    };
    take(&store, vec![delete(2).at(3).msg(2), create.at(3).msg(3)]);
    assert_eq!((qty(&store, 2), qty(&store, 3)), (None, Some(6)));
}

#[test]
fn b15_without_a_key_the_old_row_must_come_along() {
    let store = Memory::default();
    let keyless = |e: Ev| Ev { key: vec![], ..e };
    let gone = Ev { before: vec![("id", Cell::Int(1)), ("qty", Cell::Int(5))], ..keyless(delete(1)) };
    let report = take(
        &store,
        vec![keyless(upsert(1, 5)).at(1).msg(0), keyless(delete(1)).at(2).msg(1), gone.at(3).msg(2)],
    );
    assert_eq!((report.accepted, report.quarantined), (1, 2), "an update needs its old row as well");
    let insert = keyless(ev(Op::Insert, 1, 5)).at(4).msg(3);
    assert_eq!(take(&store, vec![insert]).accepted, 1);
}

#[test]
fn a_key_that_changes_between_runs_is_an_error_that_says_what_to_do() {
    let store = Memory::default();
    take(&store, vec![upsert(1, 1).at(1).msg(0)]);
    let options = IntakeOptions { keys: vec!["qty".parse().unwrap()], ..Default::default() };
    let e = try_take(&store, &options, vec![upsert(1, 2).at(2).msg(1)]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Usage);
    assert!(e.message().contains("key (id)") && e.hints()[0].contains("--table"), "{e}");
}

#[test]
fn a_column_that_no_message_has_is_an_error_and_nothing_is_committed() {
    let store = Memory::default();
    let options = IntakeOptions { columns: Some("* except (qtty)".parse().unwrap()), ..Default::default() };
    let e = try_take(&store, &options, vec![upsert(1, 2).at(2).msg(0)]).unwrap_err();
    assert!(e.message().contains("qtty") && e.hints()[0].contains("qty"), "{e} {:?}", e.hints());
    assert!(store.0.lock().unwrap().commits.is_empty());
}

#[test]
fn a2_declared_valid_time_is_taken_as_it_is() {
    let store = Memory::default();
    let options = IntakeOptions { valid: Some("_v".parse().unwrap()), ..Default::default() };
    let at = |v, p| Ev { valid: Some(v), ..upsert(1, v) }.msg(p);
    let none = upsert(1, 9).msg(3);
    let report = try_take(&store, &options, vec![at(50, 0), at(20, 1), at(70, 2), none]).unwrap();
    let valids: Vec<_> = events(&store).iter().map(|e| e.2).collect();
    assert_eq!((valids, report.late, report.quarantined), (vec![20, 50, 70], 1, 1));
}

#[test]
fn progress_may_stop_the_intake_and_what_was_read_is_committed() {
    let store = Memory::default();
    let messages = (0..10).map(|i| upsert(i, i).at(i + 1).msg(i as u64)).collect();
    let mut feed = Feed { messages, next: 0 };
    let report = run(&store, &mut feed, &batched(4), &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!((report.accepted, events(&store).len()), (4, 4));
}
