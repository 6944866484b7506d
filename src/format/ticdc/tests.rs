use super::*;
use crate::change::{Change, Column, Decoded};
use crate::format::plain_json::tests::shown;
use asofdb_storage::value::Cell;

const VERSION: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 1];

fn frames(pieces: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in pieces {
        out.extend((piece.len() as u64).to_be_bytes());
        out.extend(piece.as_bytes());
    }
    out
}

/// A record of the open protocol with these pairs of keys and values.
fn record(events: &[(&str, &str)]) -> (Vec<u8>, Vec<u8>) {
    let keys: Vec<&str> = events.iter().map(|e| e.0).collect();
    let values: Vec<&str> = events.iter().map(|e| e.1).collect();
    ([VERSION.to_vec(), frames(&keys)].concat(), frames(&values))
}

fn decode(message: &Message<'_>) -> String {
    let mut out = Vec::new();
    Ticdc::default().decode(&FormatOptions::default(), message, &mut |d| out.push(shown(d)));
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

fn open(events: &[(&str, &str)]) -> String {
    let (key, value) = record(events);
    decode(&Message { key: Some(&key), value: Some(&value), ..Message::default() })
}

fn changes(events: &[(&str, &str)], look: impl Fn(&[Change<'_>])) {
    let (key, value) = record(events);
    let message = Message { key: Some(&key), value: Some(&value), ..Message::default() };
    let mut seen = 0;
    Ticdc::default().decode(&FormatOptions::default(), &message, &mut |d| match d {
        Decoded::Changes(changes) => {
            look(changes);
            seen += 1;
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(seen, 1);
}

fn named(columns: &[Column<'_>]) -> Vec<String> {
    columns.iter().map(|c| format!("{}={:?}", c.name, c.cell)).collect()
}

const ROW: &str = r#"{"ts":463267587948544001,"scm":"test","tbl":"t1","t":1}"#;
const INSERT: &str = r#"{"u":{"id":{"t":3,"h":true,"f":11,"v":1},"val":{"t":15,"f":64,"v":"aa"}}}"#;
const UPDATE: &str = r#"{"u":{"id":{"t":3,"h":true,"f":11,"v":1},"val":{"t":15,"f":64,"v":"bb"}},"p":{"id":{"t":3,"h":true,"f":11,"v":1},"val":{"t":15,"f":64,"v":null}}}"#;
const DELETE: &str = r#"{"d":{"id":{"t":3,"h":true,"f":11,"v":1}}}"#;

#[test]
fn one_record_holds_many_events_in_their_order() {
    let shown = open(&[(ROW, INSERT), (ROW, UPDATE), (ROW, DELETE)]);
    assert_eq!(
        shown,
        "insert [id=Int(1) val=Text(\"aa\")] key[id=Int(1)]; \
         update [id=Int(1) val=Text(\"bb\")] key[id=Int(1)]; delete [id=Int(1)] key[id=Int(1)]"
    );
    changes(&[(ROW, UPDATE)], |all| {
        assert_eq!(named(all[0].before), ["id=Int(1)", "val=Null"]);
        assert_eq!((all[0].table, all[0].times.source), (Some("test.t1"), Some(1_767_225_601_000_000)));
        let token = all[0].token.expect("a position");
        assert_eq!(token.position, 463267587948544001u64.to_be_bytes());
        assert!(all[0].one_per_key);
    });
}

#[test]
fn resolved_and_ddl_events_are_no_rows_and_a_truncate_is_one() {
    let ddl = r#"{"ts":463267587948544001,"scm":"test","tbl":"t1","t":2}"#;
    assert_eq!(open(&[(ddl, r#"{"q":"CREATE TABLE t1(id int)","t":3}"#)]), "ignored ddl");
    assert_eq!(open(&[(ddl, r#"{"q":"TRUNCATE TABLE t1","t":11}"#)]), "truncate []");
    let resolved = r#"{"ts":463267587948544002,"t":3}"#;
    assert_eq!(open(&[(resolved, "")]), "ignored resolved");
    let (key, _) = record(&[(resolved, "")]);
    assert_eq!(decode(&Message { key: Some(&key), ..Message::default() }), "ignored resolved");
}

/// The cell of a value in the open protocol.
fn typed(ty: u32, flags: u32, json: &str) -> String {
    let value = format!(r#"{{"u":{{"a":{{"t":{ty},"f":{flags},"v":{json}}}}}}}"#);
    let shown = open(&[(ROW, &value)]);
    match shown.strip_prefix("insert [a=").and_then(|s| s.strip_suffix(']')) {
        Some(cell) => cell.to_owned(),
        None => shown,
    }
}

#[test]
fn values_have_the_type_of_their_number() {
    assert_eq!(typed(8, 128, "18446744073709551615"), "Decimal { unscaled: 18446744073709551615, scale: 0 }");
    assert_eq!(typed(5, 0, "2"), "Float(2.0)");
    assert_eq!(typed(246, 0, "\"1.10\""), "Decimal { unscaled: 110, scale: 2 }");
    assert_eq!(typed(10, 0, "\"1970-01-02\""), "Date(1)");
    assert_eq!(typed(10, 0, "\"0000-00-00\""), "Text(\"0000-00-00\")");
    assert_eq!(typed(12, 0, "\"2026-01-01 00:00:00\""), "Text(\"2026-01-01 00:00:00\")");
    assert_eq!(typed(252, 0, "\"aGk=\""), "Text(\"hi\")");
    assert_eq!(typed(252, 1, "\"aGk=\""), "Bytes([104, 105])");
    assert_eq!(typed(252, 0, "\"not base64\""), "Text(\"not base64\")");
    assert_eq!(
        typed(254, 1, r#""\\x89PNG\\r\\n\\x00\\\\ü""#),
        "Bytes([137, 80, 78, 71, 13, 10, 0, 92, 195, 188])"
    );
    assert_eq!(typed(254, 1, r#""\\q""#), r#"Text("\\q")"#);
    assert_eq!(typed(254, 1, r#""\\x8""#), r#"Text("\\x8")"#);
    assert_eq!(typed(15, 0, r#""a\\n""#), r#"Text("a\\n")"#);
    assert_eq!(typed(245, 0, r#""{\"a\": 1}""#), "Json(\"{\\\"a\\\": 1}\")");
    assert_eq!(typed(247, 0, "2"), "Int(2)");
    assert_eq!(typed(15, 64, "null"), "Null");
}

#[test]
fn broken_records_are_quarantined_with_their_byte() {
    let shown = |key: Vec<u8>, value: Vec<u8>| {
        decode(&Message { key: Some(&key), value: Some(&value), ..Message::default() })
    };
    let (key, value) = record(&[(ROW, INSERT), (ROW, INSERT)]);
    let one = 8 + INSERT.len();
    assert_eq!(
        shown(key.clone(), value[..one].to_vec()),
        "quarantine there are fewer values than keys of events @0"
    );
    assert_eq!(
        shown(key[..8 + 8 + ROW.len()].to_vec(), value.clone()),
        format!("quarantine there are more values than keys of events @{}", 2 * one)
    );
    assert_eq!(
        shown(key.clone(), value[..one + 20].to_vec()),
        format!("quarantine the length of an event goes beyond the end @{one}")
    );
    assert_eq!(open(&[(ROW, "{}")]), "quarantine a row with neither `u` nor `d`, or with both @8");
    assert_eq!(open(&[(ROW, r#"{"u":{}}"#)]), "quarantine a row has no columns @8");
    assert_eq!(open(&[(ROW, r#"{"u":{"a":1}}"#)]), "quarantine a column is no object @13");
    assert_eq!(open(&[(r#"{"t":9}"#, "")]), "quarantine unknown kind 9 of an event @0");
    assert_eq!(open(&[("{}", "")]), "quarantine an event does not say its kind (`t`) @0");
    let only_key = r#"{"ts":463267587948544001,"scm":"s","tbl":"t","t":1,"ohk":true}"#;
    assert!(open(&[(only_key, INSERT)]).starts_with("quarantine the message has the key of its row only"));
    assert!(open(&[(only_key, DELETE)]).starts_with("delete"));
}

#[test]
fn any_bytes_give_one_answer() {
    let (key, value) = record(&[(ROW, INSERT), (ROW, UPDATE)]);
    let mut answers = std::collections::BTreeSet::new();
    let mut look = |key: &[u8], value: &[u8]| {
        let shown = decode(&Message { key: Some(key), value: Some(value), ..Message::default() });
        answers.insert(shown.split(' ').next().unwrap_or("").to_owned());
    };
    for at in 0..key.len().max(value.len()) {
        look(&key[..at.min(key.len())], &value);
        look(&key, &value[..at.min(value.len())]);
        for flip in [1, 0x20, 0xff] {
            let (mut bad_key, mut bad_value) = (key.clone(), value.clone());
            bad_key.get_mut(at).map(|b| *b ^= flip).unwrap_or_default();
            bad_value.get_mut(at).map(|b| *b ^= flip).unwrap_or_default();
            look(&bad_key, &value);
            look(&key, &bad_value);
        }
    }
    assert!(answers.contains("quarantine") && answers.contains("insert"), "{answers:?}");
}

#[test]
fn messages_without_such_a_key_are_canal_json() {
    let text = r#"{"data":[{"id":"2"}],"database":"shop","isDdl":false,"mysqlType":{"id":"int"},"pkNames":["id"],"table":"t","type":"DELETE","_tidb":{"commitTs":463267588210688005,"onlyHandleKey":true}}"#;
    let message = Message { value: Some(text.as_bytes()), ..Message::default() };
    assert_eq!(decode(&message), "delete [id=Int(2)] key[id=Int(2)]");
    assert_eq!(decode(&Message { key: Some(b"shop.t"), ..message }), "delete [id=Int(2)] key[id=Int(2)]");
    assert!(looks_like(text) && !looks_like(&text.replace("_tidb", "x")));
    let (key, _) = record(&[(ROW, INSERT)]);
    assert!(looks_like_open(&key) && !looks_like_open(&key[..16]) && !looks_like_open(b"shop.t"));
}

fn csv(header: &[&str], record: &str) -> String {
    let mut out = Vec::new();
    let mut decoder = TicdcCsv::new(header.iter().map(|h| (*h).to_owned()).collect());
    let message = Message { value: Some(record.as_bytes()), ..Message::default() };
    decoder.decode(&FormatOptions::default(), &message, &mut |d| out.push(shown(d)));
    assert_eq!(out.len(), 1, "exactly one answer a record");
    out.remove(0)
}

#[test]
fn csv_columns_stand_behind_three_to_five_fields() {
    let row = "insert [id=Int(1) pad=Text(\"x\")]";
    let names = ["id", "pad"];
    assert_eq!(csv(&names, "\"I\",\"t\",\"d\",1,\"x\"\r\n"), row);
    assert_eq!(csv(&names, "\"I\",\"t\",\"d\",450253245302439944,1,\"x\"\n"), row);
    assert_eq!(csv(&names, "\"I\",\"t\",\"d\",450253245302439944,true,1,\"x\""), row);
    let all = ["op", "table", "schema", "commit_ts", "is-update", "id", "pad"];
    assert_eq!(csv(&all, "\"I\",\"t\",\"d\",450253245302439944,true,1,\"x\""), row);
    let named = ["op", "table", "schema", "id", "pad"];
    assert_eq!(csv(&named, "\"I\",\"t\",\"d\",1,\"x\""), row);
}

#[test]
fn csv_has_its_table_its_time_and_its_position() {
    let mut decoder = TicdcCsv::new(vec!["id".into()]);
    let record = "\"D\",\"t\",\"d\",450253245485940746,1";
    let message = Message { value: Some(record.as_bytes()), ..Message::default() };
    let mut seen = 0;
    decoder.decode(&FormatOptions::default(), &message, &mut |d| {
        let Decoded::Changes([c]) = d else { panic!("{d:?}") };
        assert_eq!((c.table, c.source.db), (Some("d.t"), Some("d")));
        assert_eq!(c.times.source, Some(1_717_579_824_394_000));
        assert!(c.one_per_key && c.token.is_some_and(|t| t.position == 450253245485940746u64.to_be_bytes()));
        assert!(matches!(c.before, [Column { name: "id", cell: Cell::Int(1) }]));
        seen += 1;
    });
    assert_eq!(seen, 1);
}

#[test]
fn csv_nulls_and_texts_are_told_by_their_quotes() {
    let names = ["a", "b", "c", "d"];
    assert_eq!(
        csv(&names, "U,t,d,450253245302439944,\\N,\"\\N\",\"7\",\"\""),
        "update [a=Null b=Text(\"\\\\N\") c=Text(\"7\") d=Text(\"\")]"
    );
}

#[test]
fn broken_csv_is_quarantined_in_words() {
    let names = ["id", "pad"];
    for (record, reason) in [
        ("\"I\",\"t\",\"d\",1", "the record has 4 fields, and 2 columns are named"),
        ("\"I\",\"t\",\"d\",1,2,3,4,5,6", "the record has 9 fields, and 2 columns are named"),
        ("\"X\",\"t\",\"d\",1,2", "unknown operation `X`"),
        ("\"I\",\"t\",\"d\",x,1,2", "`x` is no commit timestamp"),
        ("\"I,\"t\"", "there is text after a closing quote"),
    ] {
        let shown = csv(&names, record);
        assert!(shown.starts_with(&format!("quarantine {reason}")), "{shown}");
    }
    assert!(looks_like_csv("\"I\",\"t\",\"d\",450253245302439944,1,\"x\"\r\n"));
    for other in ["I,t,d,5,1", "id,name", "op,table,schema,commit_ts,id", "", "\"I"] {
        assert!(!looks_like_csv(other), "{other}");
    }
}
