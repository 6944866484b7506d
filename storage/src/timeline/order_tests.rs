use super::*;
use std::cmp::Ordering::{Equal, Greater, Less};

fn order(valid_from: i64) -> EventOrder<'static> {
    EventOrder { valid_from, ties: None, system: 0, origin_rank: 0, position: 0, ordinal: 0 }
}

#[test]
fn each_part_decides_only_where_those_before_are_equal_b3() {
    let low = EventOrder { ties: Some(b"b"), system: 5, origin_rank: 5, position: 5, ordinal: 5, ..order(5) };
    let above = [
        EventOrder { valid_from: 6, ties: None, system: 0, origin_rank: 0, position: 0, ordinal: 0 },
        EventOrder { ties: Some(b"ba"), system: 0, origin_rank: 0, position: 0, ordinal: 0, ..low },
        EventOrder { system: 6, origin_rank: 0, position: 0, ordinal: 0, ..low },
        EventOrder { origin_rank: 6, position: 0, ordinal: 0, ..low },
        EventOrder { position: 6, ordinal: 0, ..low },
        EventOrder { ordinal: 6, ..low },
    ];
    for high in above {
        assert_eq!(low.compare(&high, true), Less, "{high:?}");
        assert_eq!(high.compare(&low, true), Greater, "{high:?}");
    }
    assert_eq!(low.compare(&low, true), Equal);
    assert_eq!(EventOrder { ties: None, ..low }.compare(&low, true), Less, "no tie-break sorts first");
}

#[test]
fn system_time_orders_only_where_it_is_declared_b3() {
    let early = EventOrder { system: 1, position: 2, ..order(5) };
    let late = EventOrder { system: 2, position: 1, ..order(5) };
    assert_eq!((early.compare(&late, true), early.compare(&late, false)), (Less, Greater));
    assert_eq!((early.compare_times(&late, true), early.compare_times(&late, false)), (Less, Equal));
}

fn kills(truncate: (i64, u32, u64), event: (i64, u32, u64), tokens: (&[u8], &[u8])) -> bool {
    let place = |(valid, rank, position)| EventOrder { origin_rank: rank, position, ..order(valid) };
    let event = KeyEvent { stream: event.1, server: 1, token: tokens.1, ..KeyEvent::new(place(event), 1, 0) };
    let order = place(truncate);
    Truncate { order, commit: 1, stream: truncate.1, server: 1, token: tokens.0 }.kills(&event, false)
}

#[test]
fn truncates_end_what_lies_before_them_b7() {
    let none: (&[u8], &[u8]) = (&[], &[]);
    assert!(kills((5, 0, 1), (4, 0, 9), none), "an earlier instant");
    assert!(!kills((5, 0, 9), (6, 0, 1), none), "a later instant");
    assert!(kills((5, 0, 9), (5, 0, 8), none), "the same stream, before");
    assert!(!kills((5, 0, 9), (5, 0, 9), none), "the truncate is first at one position");
    assert!(!kills((5, 1, 9), (5, 0, 1), none), "another stream: the truncate is first");
    assert!(kills((5, 1, 9), (5, 0, 1), (b"b", b"a")), "another stream, lower in the log");
    assert!(!kills((5, 1, 9), (5, 0, 1), (b"b", b"b")), "the same log position");
    assert!(!kills((5, 1, 9), (5, 0, 1), (b"b", b"")), "no log position");
}

#[test]
fn origins_rank_by_name_only_where_system_time_is_declared_b3() {
    let origin = |stream_name, stream, path| Origin { stream_name, stream, path };
    let origins =
        [origin("b", 1, "day=10/x"), origin("a", 2, ""), origin("b", 1, "day=9/x"), origin("b", 0, "")];
    assert_eq!(origin_ranks(&origins, true), [3, 0, 2, 1]);
    assert_eq!(origin_ranks(&origins, false), [2, 3, 1, 0]);
}

#[test]
fn files_are_in_natural_order() {
    let sorted = [
        "",
        "LOAD00000009.csv",
        "LOAD0000000A.csv",
        "01",
        "1",
        "2",
        "10",
        "99999999999999999999998",
        "99999999999999999999999",
        "LOAD0001.csv",
        "LOADED.csv",
        "a",
        "a.json",
        "a/LOAD00000001",
        "a/1",
        "a1",
        "a2",
        "a2b",
        "a02c",
        "a10",
        "aa",
        "b",
    ];
    for (i, a) in sorted.iter().enumerate() {
        for (j, b) in sorted.iter().enumerate() {
            assert_eq!(natural_cmp(a, b), i.cmp(&j), "{a} and {b}");
        }
    }
}
