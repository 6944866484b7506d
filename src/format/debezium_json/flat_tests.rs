use super::flat::looks_like;
use super::*;
use crate::change::{Decoded, Header, Message};
use crate::format::FormatOptions;
use crate::format::plain_json::tests::shown;

fn decode(decoder: &mut DebeziumJson, message: &Message<'_>) -> String {
    let mut out = Vec::new();
    decoder.decode(&FormatOptions::default(), message, &mut |d| {
        let mut detail = String::new();
        if let Decoded::Changes([c]) = d {
            let before: Vec<_> = c.before.iter().map(|c| format!("{}={:?}", c.name, c.cell)).collect();
            let token = c.token.map(|t| (t.server, t.position.len()));
            let table = c.table.unwrap_or("?");
            detail = format!(
                "{table} {:?} {token:?} {:?} {} | ",
                c.times.source,
                c.transaction_id,
                before.join(" ")
            );
        }
        out.push(detail + &shown(d));
    });
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

fn value(text: &str) -> String {
    decode(&mut DebeziumJson::flat(), &Message { value: Some(text.as_bytes()), ..Message::default() })
}

#[test]
fn columns_of_metadata_are_no_columns_of_the_table() {
    let row = value(
        r#"{"id":1,"__op":"u","__table":"t","__lsn":7,"__source_ts_ms":5,"__transaction_id":"9","__x":1,"__deleted":"false"}"#,
    );
    assert_eq!(row, r#"t Some(5000) Some(("postgresql///", 16)) Some("9")  | update [id=Int(1)]"#);
}

#[test]
fn the_mark_of_deletes_is_text_and_its_nulls_are_no_values() {
    let gone = value(r#"{"id":1,"n":null,"__deleted":"true","__table":"t"}"#);
    assert_eq!(gone, "t None None None id=Int(1) n=Null | delete [id=Int(1) n=Null]");
    assert!(value(r#"{"id":1,"__deleted":"false"}"#).ends_with("| upsert [id=Int(1)]"));
    assert!(value(r#"{"id":1,"__deleted":true}"#).ends_with("| delete [id=Int(1)]"));
    assert!(value(r#"{"id":1,"__op":"d"}"#).ends_with("| delete [id=Int(1)]"));
    assert!(value(r#"{"id":1,"__deleted":"no"}"#).starts_with("quarantine `__deleted` is `no`"));
    assert!(value(r#"{"__op":"d"}"#).starts_with("quarantine the row has no columns"));
    assert!(value(r#"{"__op":"u"}"#).starts_with("quarantine the row has no columns"));
    assert!(value(r#"{"id":1,"__op":"x"}"#).starts_with("quarantine unknown operation `x`"));
}

#[test]
fn a_null_value_deletes_by_the_record_key() {
    let mut decoder = DebeziumJson::flat();
    let key = Some(br#"{"id":1}"#.as_slice());
    let topic = Some("shop.public.customers");
    let row = br#"{"id":1,"__table":"customers","__op":"c"}"#.as_slice();
    let row = Message { key, topic, value: Some(row), ..Message::default() };
    assert!(decode(&mut decoder, &row).starts_with("customers None"));
    let gone = decode(&mut decoder, &Message { value: None, ..row });
    assert_eq!(gone, "customers None None None  | delete [] key[id=Int(1)]");
    let gone = decode(&mut decoder, &Message::default());
    assert_eq!(gone, "ignored null_or_empty_key_tombstone");
}

#[test]
fn without_added_fields_a_row_is_an_upsert_of_the_table_of_its_topic() {
    let message =
        Message { value: Some(br#"{"id":1}"#), topic: Some("shop.public.customers"), ..Message::default() };
    let row = decode(&mut DebeziumJson::flat(), &message);
    assert_eq!(row, "public.customers None None None  | upsert [id=Int(1)]");
}

#[test]
fn metadata_may_come_in_headers() {
    let header = |name, value: &'static str| Header { name, value: value.as_bytes() };
    let headers = [
        header("__op", "\"d\""),
        header("__table", "t"),
        header("__source_ts_ms", r#"{"schema":{"type":"int64"},"payload":5}"#),
    ];
    let message = Message { value: Some(br#"{"id":1}"#), headers: &headers, ..Message::default() };
    let row = decode(&mut DebeziumJson::flat(), &message);
    assert_eq!(row, "t Some(5000) None None id=Int(1) | delete [id=Int(1)]");
}

#[test]
fn logical_types_are_those_of_the_embedded_schema() {
    let schema =
        r#"{"type":"struct","fields":[{"field":"d","type":"int32","name":"io.debezium.time.Date"}]}"#;
    let row = value(&format!(r#"{{"schema":{schema},"payload":{{"d":1,"__op":"r","__table":"t"}}}}"#));
    assert!(row.ends_with("| read [d=Date(1)]"), "{row}");
}

#[test]
fn placeholders_are_unknown() {
    let row = value(r#"{"id":1,"big":"__debezium_unavailable_value","__op":"u"}"#);
    assert!(row.ends_with("| update [id=Int(1) big=Unknown]"), "{row}");
}

#[test]
fn positions_in_the_binlog_name_their_database() {
    let row = value(r#"{"id":1,"__op":"c","__db":"shop","__table":"t","__file":"b.000012","__pos":4}"#);
    assert!(row.starts_with(r#"shop.t None Some(("mysql///b", 24))"#), "{row}");
    let row = value(r#"{"id":1,"__op":"c","__db":"shop","__table":"t"}"#);
    assert!(row.starts_with("t None None"), "{row}");
}

#[test]
fn one_column_with_underscores_is_no_metadata() {
    assert!(looks_like(r#"{"id":1,"__op":"c","__table":"t"}"#));
    assert!(looks_like(r#"{"schema":{},"payload":{"id":1,"__deleted":"false","__lsn":1}}"#));
    assert!(!looks_like(r#"{"id":1,"__op":"c"}"#));
    assert!(!looks_like(r#"{"id":1,"__op":"plus","__table":"t"}"#));
    assert!(!looks_like(r#"{"id":1,"__table":"t","__lsn":1}"#));
    assert!(!looks_like(r#"{"id":1,"op":"c","table":"t"}"#));
}

#[test]
fn any_bytes_give_an_answer() {
    let good = br#"{"schema":{"fields":[]},"payload":{"id":1,"n":"\u00e9","__op":"u","__table":"t","__lsn":1,"__deleted":"false"}}"#;
    let mut decoder = DebeziumJson::flat();
    for at in 0..good.len() {
        decode(&mut decoder, &Message { value: Some(&good[..at]), ..Message::default() });
        for flip in [1, 2, 32, 128] {
            let mut bad = good.to_vec();
            bad[at] ^= flip;
            decode(&mut decoder, &Message { value: Some(&bad), key: Some(&bad[at..]), ..Message::default() });
        }
    }
}
