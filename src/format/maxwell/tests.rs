use super::*;
use crate::change::{Change, Decoded, Message, Op};
use crate::format::FormatOptions;
use crate::format::plain_json::tests::shown;
use asofdb_storage::value::Cell;

fn decode(message: &Message<'_>) -> String {
    let mut out = Vec::new();
    Maxwell::default().decode(&FormatOptions::default(), message, &mut |d| out.push(shown(d)));
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

fn value(text: &str) -> String {
    decode(&Message { value: Some(text.as_bytes()), ..Message::default() })
}

/// What `look` sees in the one change of a message.
fn change<T>(text: &str, look: impl Fn(&Change<'_>) -> T) -> T {
    let mut seen = None;
    let message = Message { value: Some(text.as_bytes()), ..Message::default() };
    Maxwell::default().decode(&FormatOptions::default(), &message, &mut |d| match d {
        Decoded::Changes([change]) => seen = Some(look(change)),
        other => panic!("{other:?}"),
    });
    seen.expect("one change")
}

fn named<'a>(columns: &[crate::change::Column<'a>]) -> Vec<(&'a str, Cell<'a>)> {
    columns.iter().map(|c| (c.name, c.cell)).collect()
}

const UPDATE: &str = r#"{"database":"shop","table":"items","type":"update","ts":1767225601,"xid":2,"commit":true,"position":"master.000006:200","server_id":1,"primary_key_columns":["id"],"data":{"id":1,"name":"a2","note":null},"old":{"name":"a","note":"n"}}"#;

#[test]
fn rows_have_their_table_their_key_and_seconds_as_time() {
    assert_eq!(value(UPDATE), "update [id=Int(1) name=Text(\"a2\") note=Null] key[id=Int(1)]");
    change(UPDATE, |c| {
        assert_eq!((c.table, c.source.db), (Some("shop.items"), Some("shop")));
        assert_eq!(
            (c.times.source, c.full, c.transaction_id),
            (Some(1_767_225_601_000_000), true, Some("2"))
        );
    });
}

#[test]
fn a_row_before_is_the_row_after_with_what_old_says() {
    let before = [("id", Cell::Int(1)), ("name", Cell::Text("a")), ("note", Cell::Text("n"))];
    change(UPDATE, |c| assert_eq!(named(c.before), before));
}

#[test]
fn a_former_null_is_not_an_unchanged_column() {
    let text =
        r#"{"database":"d","table":"t","type":"update","ts":1,"data":{"id":1,"c":"red"},"old":{"c":null}}"#;
    change(text, |c| assert_eq!(named(c.before), [("id", Cell::Int(1)), ("c", Cell::Null)]));
}

#[test]
fn a_column_that_became_null_and_is_not_sent_is_null() {
    // output_nulls=false: `note` is gone from `data`.
    let text = r#"{"database":"d","table":"t","type":"update","ts":1,"data":{"id":1},"old":{"note":"n"}}"#;
    change(text, |c| {
        assert!(c.full, "what is not sent is NULL");
        assert_eq!(named(c.image), [("id", Cell::Int(1))]);
        assert_eq!(named(c.before), [("id", Cell::Int(1)), ("note", Cell::Text("n"))]);
    });
}

#[test]
fn a_former_key_is_in_old() {
    let text = r#"{"database":"d","table":"t","type":"update","ts":1,"primary_key_columns":["id"],"data":{"id":20,"name":"b"},"old":{"id":2}}"#;
    change(text, |c| {
        assert_eq!(named(c.key), [("id", Cell::Int(20))]);
        assert_eq!(named(c.before)[0], ("id", Cell::Int(2)));
    });
}

#[test]
fn many_changed_columns_are_found_by_name() {
    let list = |from: usize| {
        let all: Vec<String> = (0..40).map(|i| format!("\"c{i}\":{}", from + i)).collect();
        all.join(",")
    };
    let text = format!(
        r#"{{"database":"d","table":"t","type":"update","ts":1,"data":{{"id":1,{}}},"old":{{{}}}}}"#,
        list(100),
        list(500)
    );
    change(&text, |c| {
        let before = named(c.before);
        assert_eq!((before.len(), before[0]), (41, ("id", Cell::Int(1))));
        assert_eq!(before[40], ("c39", Cell::Int(539)));
    });
}

#[test]
fn bootstrap_rows_are_reads_and_its_marks_are_no_rows() {
    let of = |kind: &str, data: &str| {
        format!(r#"{{"database":"d","table":"t","type":"{kind}","ts":7,"data":{data}}}"#)
    };
    assert_eq!(value(&of("bootstrap-insert", r#"{"id":1}"#)), "read [id=Int(1)]");
    change(&of("bootstrap-insert", r#"{"id":1}"#), |c| {
        assert!(c.snapshot && c.op == Op::Read);
        assert_eq!((c.times.source, c.token), (Some(7_000_000), None));
    });
    assert_eq!(value(&of("bootstrap-start", "{}")), "ignored bootstrap-start");
    assert_eq!(value(&of("bootstrap-complete", "{}")), "ignored bootstrap-complete");
}

#[test]
fn changes_of_tables_are_ignored_although_their_time_is_in_milliseconds() {
    for kind in ["database-create", "table-alter", "table-drop"] {
        let text = format!(r#"{{"type":"{kind}","database":"d","table":"t","ts":1767225603000,"sql":"x"}}"#);
        assert_eq!(value(&text), "ignored ddl");
    }
}

fn position(of: &str) -> Option<(String, Vec<u8>)> {
    let text = format!(r#"{{"database":"d","table":"t","type":"insert","ts":1,"data":{{"id":1}},{of}}}"#);
    change(&text, |c| c.token.map(|t| (t.server.to_owned(), t.position.to_vec())))
}

#[test]
fn positions_compare_as_numbers() {
    let at = |text: &str| position(&format!(r#""server_id":7,"position":"{text}""#));
    assert!(at("master.999999:998") < at("master.999999:1002"));
    assert!(at("master.999999:1002") < at("master.1000000:4"));
    assert!(at("master.255:4") < at("master.256:4") && at("master.1:255") < at("master.1:256"));
    assert_eq!(at("master.1:4").map(|t| t.0), Some("maxwell/7/master".into()));
    for none in ["", "master.1", "master.1:0", "master:4", "master.x:4"] {
        assert_eq!(at(none), None, "{none}");
    }
    assert_eq!(position(r#""xid":5,"xoffset":0"#), None, "numbers of transactions are no positions");
}

#[test]
fn a_record_key_names_the_key_columns() {
    let row = br#"{"database":"d","table":"t","type":"insert","ts":1,"data":{"a":1,"b":2,"c":3}}"#;
    let with = |key: &'static str| {
        decode(&Message { key: Some(key.as_bytes()), value: Some(row), ..Message::default() })
    };
    let keyed = "insert [a=Int(1) b=Int(2) c=Int(3)] key[b=Int(2) a=Int(1)]";
    assert_eq!(with(r#"{"database":"d","table":"t","pk.b":2,"pk.a":1}"#), keyed);
    assert_eq!(with(r#"["d","t",[{"b":2},{"a":1}]]"#), keyed);
    let unkeyed = "insert [a=Int(1) b=Int(2) c=Int(3)]";
    assert_eq!(with(r#"{"database":"d","table":"t","_uuid":"x"}"#), unkeyed);
    assert_eq!(with("d.t"), unkeyed);
}

#[test]
fn a_tombstone_deletes_by_its_record_key() {
    let with = |key: &'static str| decode(&Message { key: Some(key.as_bytes()), ..Message::default() });
    assert_eq!(with(r#"{"database":"d","table":"t","pk.id":1}"#), "delete [] key[id=Int(1)]");
    assert_eq!(with(r#"{"database":"d","table":"t"}"#), "ignored null_or_empty_key_tombstone");
    assert_eq!(decode(&Message::default()), "ignored null_or_empty_key_tombstone");
    assert!(with("x").starts_with("quarantine a message without a value whose key"));
}

#[test]
fn numbers_keep_their_digits_and_nested_values_are_json() {
    let text = r#"{"database":"d","table":"t","type":"insert","ts":1,"data":{"u":18446744073709551615,"d":12345678901234567.89,"s":["a","b"],"z":"0000-00-00"}}"#;
    assert_eq!(
        value(text),
        "insert [u=Decimal { unscaled: 18446744073709551615, scale: 0 } \
         d=Decimal { unscaled: 1234567890123456789, scale: 2 } s=Json(\"[\\\"a\\\",\\\"b\\\"]\") \
         z=Text(\"0000-00-00\")]"
    );
}

#[test]
fn broken_envelopes_are_quarantined_in_words() {
    let row = |rest: &str| format!(r#"{{"database":"d","table":"t","ts":1,{rest}}}"#);
    let cases = [
        ("{}".to_owned(), "there is no type of message (`type`) @0"),
        (row(r#""type":"upsert""#), "unknown type of message `upsert` @0"),
        (row(r#""type":"insert""#), "a row without `data` @0"),
        (row(r#""type":"insert","data":[1]"#), "`data` is no object @58"),
        (row(r#""type":"insert","data":{}"#), "the row has no columns @58"),
        (row(r#""type":"insert","data":{"a":1,"a":2}"#), "the member `a` comes twice @69"),
        (row(r#""type":"insert","encrypted":{"bytes":"x","iv":"y"}"#), "the row is encrypted @0"),
        (row(r#""ts":2,"type":"insert""#), "the member `ts` comes twice @40"),
        ("[1]".to_owned(), "expected a JSON object @0"),
    ];
    for (text, expected) in cases {
        assert_eq!(value(&text), format!("quarantine {expected}"), "{text}");
    }
}

#[test]
fn any_bytes_give_one_answer() {
    let mut answers = std::collections::BTreeSet::new();
    let bytes = UPDATE.as_bytes();
    let mut look = |bytes: &[u8]| {
        let shown = decode(&Message { value: Some(bytes), key: Some(bytes), ..Message::default() });
        answers.insert(shown.split(' ').next().unwrap_or("").to_owned());
        let _ = std::str::from_utf8(bytes).map(looks_like);
    };
    for at in 0..bytes.len() {
        look(&bytes[..at]);
        for flip in [1, 0x20, 0x80] {
            let mut bad = bytes.to_vec();
            bad[at] ^= flip;
            look(&bad);
        }
    }
    assert!(answers.contains("quarantine") && answers.contains("update"), "{answers:?}");
}

#[test]
fn its_envelopes_are_told_from_rows_with_such_columns() {
    assert!(looks_like(UPDATE));
    assert!(looks_like(r#"{"type":"table-drop","database":"d","table":"t","ts":1767225609000,"sql":"x"}"#));
    for other in [
        r#"{"database":"d","table":"t","type":"insert","ts":1,"data":5}"#,
        r#"{"type":"insert","ts":1,"data":{}}"#,
        r#"{"database":"d","table":"t","type":"INSERT","ts":1,"data":[{"id":"1"}]}"#,
        r#"{"op":"c","after":{"database":"d","type":"insert"}}"#,
        "[]",
        "",
    ] {
        assert!(!looks_like(other), "{other}");
    }
}
