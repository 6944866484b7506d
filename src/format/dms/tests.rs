use super::*;
use crate::change::{Change, Decoded, Message};
use crate::format::FormatOptions;
use crate::format::plain_json::tests::shown;

fn message(text: &str) -> Message<'_> {
    Message { value: Some(text.as_bytes()), ..Message::default() }
}

fn decode(text: &str) -> String {
    let mut out = Vec::new();
    Dms::default().decode(&FormatOptions::default(), &message(text), &mut |d| out.push(shown(d)));
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

fn data(operation: &str, data: &str) -> String {
    let metadata = r#""timestamp":"1970-01-01T00:00:02.000000Z","record-type":"data","schema-name":"s","table-name":"t","transaction-id":7"#;
    format!(
        r#"{{"data":{data},"metadata":{{{metadata},"operation":"{operation}","commit-timestamp":"1970-01-01T00:00:01.900000Z"}}}}"#
    )
}

fn change<T>(text: &str, take: impl Fn(&Change<'_>) -> T) -> T {
    let mut out = None;
    Dms::default().decode(&FormatOptions::default(), &message(text), &mut |d| {
        let Decoded::Changes([change]) = d else { panic!("{d:?}") };
        out = Some(take(change));
    });
    out.expect("a change")
}

fn before(text: &str) -> Vec<String> {
    change(text, |c| c.before.iter().map(|c| format!("{}={:?}", c.name, c.cell)).collect())
}

#[test]
fn a_column_that_is_not_sent_is_null() {
    assert_eq!(decode(&data("update", r#"{"id":1}"#)), "update [id=Int(1)]");
    assert_eq!(decode(&data("load", r#"{"id":1}"#)), "read [id=Int(1)]");
    assert_eq!(decode(&data("delete", r#"{"id":1}"#)), "delete [id=Int(1)]");
    assert_eq!(decode(&data("insert", r#"{"id":1,"n":null}"#)), "insert [id=Int(1) n=Null]");
}

#[test]
fn the_old_row_is_no_column_in_either_form() {
    let flat = data("update", r#"{"id":20,"n":"b","BI_id":2,"BI_gone":"x"}"#);
    let nested = data("update", r#"{"id":20,"n":"b","before-image":{"id":2,"gone":"x"}}"#);
    let beside = data("update", r#"{"id":20,"n":"b"},"before-image":{"id":2,"gone":"x"}"#);
    for text in [flat, nested, beside] {
        assert_eq!(decode(&text), r#"update [id=Int(20) n=Text("b")]"#, "{text}");
        assert_eq!(before(&text), ["id=Int(2)", r#"gone=Text("x")"#], "{text}");
    }
}

#[test]
fn columns_of_the_table_stay_columns_whatever_they_are_called() {
    let alone = data("update", r#"{"id":1,"BI_sales":5,"before-image":"x"}"#);
    assert_eq!(decode(&alone), r#"update [id=Int(1) BI_sales=Int(5) before-image=Text("x")]"#);
    let inserted = data("insert", r#"{"id":1,"BI_id":null,"BI_sales":5}"#);
    assert_eq!(decode(&inserted), "insert [id=Int(1) BI_sales=Int(5)]");
}

#[test]
fn metadata_gives_table_and_times() {
    let of = |text: &str| {
        change(text, |c| {
            let names = [c.table, c.source.schema, c.source.table, c.transaction_id];
            (names.map(|n| n.map(str::to_owned)), c.times, c.snapshot, c.token.is_none())
        })
    };
    let (names, times, snapshot, no_token) = of(&data("load", r#"{"id":1}"#));
    assert_eq!(names, [Some("s.t".into()), Some("s".into()), Some("t".into()), Some("7".into())]);
    assert_eq!(
        (times.source, times.connector, snapshot, no_token),
        (Some(1_900_000), Some(2_000_000), true, true)
    );
    let without = data("insert", r#"{"id":1}"#).replace("commit-timestamp", "x");
    assert_eq!(of(&without).1.source, None);
}

#[test]
fn control_records_are_ignored() {
    let text =
        r#"{"metadata":{"timestamp":"x","record-type":"control","operation":"drop-table","table-name":"t"}}"#;
    assert_eq!(decode(text), "ignored control");
    assert_eq!(decode("null"), "ignored null_or_empty_key_tombstone");
}

#[test]
fn broken_messages_are_quarantined_in_words() {
    for (text, expected) in [
        ("{}".to_owned(), "there is no `metadata` @0"),
        (r#"{"metadata":1}"#.to_owned(), "`metadata` is no object @12"),
        (r#"{"metadata":{"operation":"insert"}}"#.to_owned(), "there is no `data` @0"),
        (data("merge", "{}"), "unknown operation `merge` @0"),
        (data("insert", "{}"), "`data` has no columns @0"),
        (data("insert", "[]"), "`data` is no object @8"),
        (data("insert", r#"{"a":1,"a":2}"#), "the member `a` comes twice @19"),
        (data("update", r#"{"a":1,"BI_a":1,"BI_a":2}"#), "the member `a` comes twice @31"),
    ] {
        assert_eq!(decode(&text), format!("quarantine {expected}"), "{text}");
    }
}

#[test]
fn only_metadata_tells_a_message_of_dms() {
    assert!(looks_like(&data("insert", "{}")));
    for text in [
        r#"{"metadata":{"operation":"insert"},"data":{}}"#,
        r#"{"metadata":{"record-type":"x","operation":"insert"}}"#,
        r#"{"record-type":"data","operation":"insert"}"#,
        r#"{"data":{"metadata":{"record-type":"data","operation":"insert"}}}"#,
    ] {
        assert!(!looks_like(text), "{text}");
    }
}

#[test]
fn any_bytes_have_an_answer() {
    let text = data("update", r#"{"id":20,"n\u0041":"b","BI_id":2,"before-image":{"id":3}}"#);
    let mut decoder = Dms::default();
    let mut answer = |bytes: &[u8]| {
        let mut n = 0;
        let message = Message { value: Some(bytes), ..Message::default() };
        decoder.decode(&FormatOptions::default(), &message, &mut |_| n += 1);
        assert_eq!(n, 1);
    };
    let bytes = text.as_bytes();
    for at in 0..bytes.len() {
        answer(&bytes[..at]);
        for flip in [0x01, 0x20, 0x80, b'"' ^ bytes[at], b'}' ^ bytes[at], b'9' ^ bytes[at]] {
            let mut other = bytes.to_vec();
            other[at] ^= flip;
            answer(&other);
        }
    }
}
