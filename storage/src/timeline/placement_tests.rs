use super::*;

const COMMIT: i64 = 9_000;

fn arrival(source: Option<i64>, connector: Option<i64>, broker: Option<i64>) -> Arrival<'static> {
    Arrival {
        declared: None,
        times: Times { source, connector, broker },
        snapshot_read: false,
        tombstone: false,
        server: 1,
        token: &[],
        commit_instant: COMMIT,
    }
}

fn neighbour(valid: i64, op: Op) -> Neighbour<'static> {
    Neighbour { valid, op, server: 1, token: &[] }
}

fn placed(a: &Arrival<'_>, predecessor: Option<Neighbour<'_>>, successor: Option<Neighbour<'_>>) -> Placed {
    match place(a, predecessor.as_ref(), successor.as_ref()) {
        Placement::Placed(placed) => placed,
        Placement::Ignored => panic!("{a:?} is ignored"),
    }
}

#[test]
fn the_most_trusted_usable_time_counts_a4() {
    let before = Some(neighbour(5, Op::Update));
    let cases = [
        (arrival(Some(10), Some(20), Some(30)), None, 10, TimeSource::Source),
        (arrival(Some(0), Some(20), Some(30)), None, 20, TimeSource::Connector),
        (arrival(None, Some(0), Some(30)), None, 30, TimeSource::Broker),
        (arrival(None, None, None), before, 5, TimeSource::Predecessor),
        (arrival(None, None, Some(0)), None, COMMIT, TimeSource::Commit),
    ];
    for (arrival, predecessor, valid_from, source) in cases {
        let placed = placed(&arrival, predecessor, None);
        assert_eq!((placed.valid_from, placed.source), (valid_from, source), "{arrival:?}");
        let brought = !matches!(source, TimeSource::Predecessor | TimeSource::Commit);
        assert_eq!(placed.event_time, brought.then_some(valid_from), "{arrival:?}");
        assert!(!placed.raised && !placed.lowered && !placed.late, "{placed:?}");
    }
}

#[test]
fn snapshot_reads_without_a_time_hold_from_the_beginning_a4() {
    let read = |a| Arrival { snapshot_read: true, ..a };
    let first = placed(&read(arrival(None, None, Some(30))), None, None);
    assert_eq!((first.valid_from, first.source), (BEGINNING, TimeSource::Beginning));
    let timed = placed(&read(arrival(None, Some(20), None)), None, None);
    assert_eq!((timed.valid_from, timed.source), (20, TimeSource::Connector));
    let again = placed(&read(arrival(None, None, None)), Some(neighbour(5, Op::Update)), None);
    assert_eq!((again.valid_from, again.source), (5, TimeSource::Predecessor));
    let broker = placed(&read(arrival(None, None, Some(30))), Some(neighbour(5, Op::Update)), None);
    assert_eq!((broker.valid_from, broker.source), (30, TimeSource::Broker));
}

#[test]
fn tombstones_after_deletes_are_ignored_a4() {
    let tombstone = Arrival { tombstone: true, ..arrival(None, None, Some(30)) };
    for op in [Op::Delete, Op::MovedAway] {
        assert_eq!(place(&tombstone, Some(&neighbour(5, op)), None), Placement::Ignored, "{op:?}");
        let upsert = arrival(None, None, Some(30));
        assert_eq!(placed(&upsert, Some(neighbour(5, op)), None).valid_from, 30, "{op:?}");
    }
    for op in [Op::Insert, Op::Update, Op::Upsert, Op::Read, Op::Truncate] {
        assert_eq!(placed(&tombstone, Some(neighbour(5, op)), None).valid_from, 30, "{op:?}");
    }
    assert_eq!(placed(&tombstone, None, None).valid_from, 30);
}

#[test]
fn the_order_of_the_source_wins_a5() {
    let (before, after) = (Some(neighbour(50, Op::Update)), Some(neighbour(70, Op::Truncate)));
    let flags = |p: Placed| (p.valid_from, p.event_time, p.raised, p.lowered);
    let at = |t| flags(placed(&arrival(Some(t), None, None), before, after));
    assert_eq!(at(60), (60, Some(60), false, false));
    assert_eq!(at(50), (50, Some(50), false, false));
    assert_eq!(at(40), (50, Some(40), true, false));
    assert_eq!(at(80), (70, Some(80), false, true));
    let crossed = |t| flags(placed(&arrival(Some(t), None, None), before, Some(neighbour(30, Op::Update))));
    assert_eq!(crossed(40), (30, Some(40), false, true), "the successor is heeded last");
    assert_eq!(crossed(20), (30, Some(20), true, false));
    let untimed = flags(placed(&arrival(None, None, None), None, after));
    assert_eq!(untimed, (70, None, false, true));
}

#[test]
fn declared_times_are_taken_as_they_are_a4() {
    let declared = Arrival { declared: Some(0), ..arrival(Some(10), None, None) };
    let placed = placed(&declared, Some(neighbour(50, Op::Update)), Some(neighbour(-5, Op::Update)));
    let expected = Placed {
        valid_from: 0,
        event_time: Some(0),
        source: TimeSource::Declared,
        raised: false,
        lowered: false,
        late: false,
    };
    assert_eq!(placed, expected);
}

#[test]
fn a_lower_log_position_is_late_and_not_newer_a5() {
    let at = |token: &'static [u8], server| {
        let arrival = Arrival { token, server, ..arrival(Some(40), None, None) };
        let before = Neighbour { token: b"m", ..neighbour(50, Op::Update) };
        let placed = placed(&arrival, Some(before), Some(neighbour(30, Op::Update)));
        (placed.valid_from, placed.late)
    };
    assert_eq!(at(b"a", 1), (40, true));
    assert_eq!(at(b"m", 1), (30, false));
    assert_eq!(at(b"z", 1), (30, false));
    assert_eq!(at(b"a", 2), (30, false), "positions of another server say nothing");
    assert_eq!(at(b"", 1), (30, false));
}
