use super::*;
use crate::change::{Header, Message};
use crate::format::FormatOptions;
use crate::format::plain_json::tests::shown;

fn decode(message: &Message<'_>) -> String {
    let mut out = Vec::new();
    DebeziumJson::default().decode(&FormatOptions::default(), message, &mut |d| out.push(shown(d)));
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

fn value(text: &str) -> String {
    decode(&Message { value: Some(text.as_bytes()), ..Message::default() })
}

/// One column of a wrapped insert.
fn typed(field: &str, cell: &str) -> String {
    let text = format!(
        r#"{{"schema":{{"type":"struct","fields":[{{"type":"struct","field":"after","fields":[{{"field":"a",{field}}}]}}]}},"payload":{{"op":"c","after":{{"a":{cell}}}}}}}"#
    );
    let shown = value(&text);
    match shown.strip_prefix("insert [a=").and_then(|s| s.strip_suffix(']')) {
        Some(cell) => cell.to_owned(),
        None => shown,
    }
}

fn logical(name: &str, cell: &str) -> String {
    typed(&format!(r#""type":"x","name":"{name}""#), cell)
}

#[test]
fn decimals_are_two_s_complement_of_any_scale() {
    let decimal = |scale: &str, cell: &str| {
        let name = "org.apache.kafka.connect.data.Decimal";
        typed(&format!(r#""type":"bytes","name":"{name}","parameters":{{"scale":"{scale}"}}"#), cell)
    };
    assert_eq!(decimal("2", "\"/w==\""), "Decimal { unscaled: -1, scale: 2 }");
    assert_eq!(decimal("2", "\"/4A=\""), "Decimal { unscaled: -128, scale: 2 }");
    assert_eq!(decimal("0", "\"AP8=\""), "Decimal { unscaled: 255, scale: 0 }");
    assert_eq!(decimal("-2", "\"ew==\""), "Decimal { unscaled: 12300, scale: 0 }");
    assert_eq!(decimal("3", "12345.11"), "Decimal { unscaled: 12345110, scale: 3 }");
    assert_eq!(decimal("1", "1.25"), "Decimal { unscaled: 125, scale: 2 }");
    assert_eq!(decimal("0", "null"), "Null");
    // 2^128 has 39 digits.
    assert_eq!(
        decimal("2", "\"AQAAAAAAAAAAAAAAAAAAAAA=\""),
        "Text(\"3402823669209384634633746074317682114.56\")"
    );
    assert_eq!(
        decimal("0", "\"/wAAAAAAAAAAAAAAAAAAAAA=\""),
        "Text(\"-340282366920938463463374607431768211456\")"
    );
    let variable = |cell: &str| logical("io.debezium.data.VariableScaleDecimal", cell);
    assert_eq!(variable(r#"{"scale":-3,"value":"BQ=="}"#), "Decimal { unscaled: 5000, scale: 0 }");
    let bare = value(r#"{"op":"c","after":{"a":{"scale":2,"value":"5w=="}}}"#);
    assert_eq!(bare, "insert [a=Decimal { unscaled: -25, scale: 2 }]");
}

#[test]
fn times_have_the_unit_of_their_logical_name() {
    let time = |name: &str, cell: &str| logical(&format!("io.debezium.time.{name}"), cell);
    assert_eq!(time("Date", "-1"), "Date(-1)");
    assert_eq!(time("Time", "45296123"), "Text(\"12:34:56.123\")");
    assert_eq!(time("MicroTime", "-3020399000000"), "Text(\"-838:59:59\")");
    assert_eq!(time("NanoTime", "1"), "Text(\"00:00:00.000000001\")");
    assert_eq!(time("Timestamp", "-1"), "Timestamp(-1000)");
    assert_eq!(time("MicroTimestamp", "-6795364578871000"), "Timestamp(-6795364578871000)");
    assert_eq!(time("NanoTimestamp", "9223372036854775807"), "TimestampNs(9223372036854775807)");
    assert_eq!(time("ZonedTimestamp", "\"1970-01-01T05:30:00.5+05:30\""), "Instant(500000)");
    assert_eq!(
        time("ZonedTimestamp", "\"1970-01-01T00:00:00.0000001Z\""),
        "Text(\"1970-01-01T00:00:00.0000001Z\")"
    );
    assert_eq!(time("ZonedTime", "\"12:00:00+02:00\""), "Text(\"12:00:00+02:00\")");
    assert_eq!(time("Year", "2023"), "Int(2023)");
    assert!(time("Timestamp", "9223372036854775807").starts_with("quarantine the timestamp"));
}

#[test]
fn other_types_keep_what_was_sent() {
    assert_eq!(typed(r#""type":"double""#, "-0.0"), "Float(-0.0)");
    assert_eq!(typed(r#""type":"double""#, "\"-Infinity\""), "Float(-inf)");
    assert_eq!(typed(r#""type":"float""#, "4"), "Float(4.0)");
    assert_eq!(typed(r#""type":"bytes""#, "\"\""), "Bytes([])");
    assert_eq!(typed(r#""type":"int32","default":42"#, "null"), "Null");
    assert_eq!(logical("io.debezium.data.Uuid", "\"00AB\""), "Text(\"00ab\")");
    assert_eq!(logical("io.debezium.data.Json", "\"{\\\"a\\\": 1}\""), "Json(\"{\\\"a\\\": 1}\")");
    assert_eq!(logical("io.debezium.data.Json", "\"{\""), "Text(\"{\")");
}

#[test]
fn placeholders_of_every_type_are_unknown() {
    for placeholder in [
        r#""__debezium_unavailable_value""#,
        r#""X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==""#,
        r#"["__debezium_unavailable_value"]"#,
        r#"[ "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==" ]"#,
        r#"{"__debezium_unavailable_value":"__debezium_unavailable_value"}"#,
        r#"["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]"#,
    ] {
        assert_eq!(typed(r#""type":"string""#, placeholder), "Unknown", "{placeholder}");
        assert_eq!(value(&format!(r#"{{"op":"u","after":{{"a":{placeholder}}}}}"#)), "update [a=Unknown]");
    }
    assert_eq!(
        value(r#"{"op":"u","after":{"a":["x","__debezium_unavailable_value"]}}"#).matches("Json").count(),
        1
    );
}

#[test]
fn wrappers_are_looked_for_at_the_outermost_level_only() {
    let bare = r#"{"op":"c","after":{"payload":{"x":1},"schema":"s","op":"d"}}"#;
    let row = "insert [payload=Json(\"{\\\"x\\\":1}\") schema=Text(\"s\") op=Text(\"d\")]";
    assert_eq!(value(bare), row);
    assert_eq!(value(&format!(r#"{{"schema":null,"payload":{bare}}}"#)), row);
    assert_eq!(value(&format!(r#" {{ "payload" : {bare} }} "#)), row);
    let key = br#"{"schema":{"fields":[{"field":"d","name":"io.debezium.time.Date"}]},"payload":{"d":3}}"#;
    let message = Message { key: Some(key), value: None, topic: Some("srv.db.t"), ..Message::default() };
    assert_eq!(decode(&message), "delete [] key[d=Date(3)]");
    let message = Message { value: Some(br#"{"schema":null,"payload":null}"#), ..message };
    assert_eq!(decode(&message), "delete [] key[d=Date(3)]");
}

#[test]
fn broken_envelopes_are_quarantined_in_words() {
    let cases = [
        ("{}", "the object is empty @0"),
        (r#"{"a":1}"#, "there is no operation (`op`) @0"),
        (r#"{"op":"x","after":{"a":1}}"#, "unknown operation `x` @0"),
        (r#"{"op":"c","after":null}"#, "a change of kind insert without `after` @0"),
        (r#"{"op":"d","before":null}"#, "a delete with neither a key nor `before` @0"),
        (r#"{"op":"c","after":{"a":1,"a":2}}"#, "the member `a` comes twice @29"),
        (r#"{"op":"c","op":"d","after":{"a":1}}"#, "the member `op` comes twice @15"),
        (r#"{"op":"c","after":[1]}"#, "`after` is no object @18"),
        (r#"{"payload":{"op":"c","after":{"a":1}},"x":1}"#, "there is no operation (`op`) @0"),
        ("[1]", "the message is no JSON object @0"),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), format!("quarantine {expected}"), "{text}");
    }
}

#[test]
fn side_messages_are_ignored_by_kind() {
    let cases = [
        (r#"{"ts_ms":1}"#, "heartbeat"),
        (r#"{"status":"BEGIN","id":"1"}"#, "transaction"),
        (r#"{"source":{},"ddl":"DROP TABLE t"}"#, "schema_change"),
        (r#"{"op":"m","message":{}}"#, "message"),
        ("null", "null_or_empty_key_tombstone"),
    ];
    for (text, kind) in cases {
        assert_eq!(value(text), format!("ignored {kind}"));
    }
}

/// The token of an event with this source block, in hexadecimal digits.
fn token(source: &str) -> Option<(String, String)> {
    let text = format!(r#"{{"op":"c","after":{{"a":1}},"source":{{{source}}}}}"#);
    let mut out = None;
    let message = Message { value: Some(text.as_bytes()), ..Message::default() };
    DebeziumJson::default().decode(&FormatOptions::default(), &message, &mut |d| {
        let crate::change::Decoded::Changes([change]) = d else { return };
        let hex = |b: &[u8]| b.iter().map(|x| format!("{x:02x}")).collect();
        out = change.token.map(|t| (t.server.to_owned(), hex(t.position)));
    });
    out
}

#[test]
fn tokens_compare_in_log_order() {
    let mysql = |file: &str, pos: u32| {
        token(&format!(r#""connector":"mysql","name":"s","server_id":7,"file":"{file}","pos":{pos},"row":0"#))
    };
    assert!(mysql("bin.999999", 998) < mysql("bin.999999", 1002));
    assert!(mysql("bin.999999", 1002) < mysql("bin.1000000", 4));
    assert_eq!(mysql("bin.1", 4).map(|t| t.0), Some("mysql/s/7/bin".into()));
    assert_eq!(mysql("", 0), None);
    assert_eq!(mysql("bin.1", 0), None);
    let pg = |committed: &str, lsn: u32| {
        token(&format!(r#""connector":"postgresql","sequence":"[\"{committed}\",\"{lsn}\"]","lsn":{lsn}"#))
    };
    assert!(pg("-7", 1) < pg("5", 9) && pg("5", 9) < pg("8", 7));
    assert_eq!(token(r#""connector":"postgresql","lsn":0"#), None);
    assert_eq!(token(r#""connector":"postgresql","lsn":5,"snapshot":"first""#), None);
    let lsn = |commit: &str, serial: u32| {
        token(&format!(
            r#""connector":"sqlserver","db":"d","commit_lsn":"00000027:00000758:{commit}","change_lsn":"00000027:00000758:0003","event_serial_no":{serial}"#
        ))
    };
    assert!(lsn("0005", 2) < lsn("0009", 1) && lsn("0009", 1) < lsn("0009", 2));
    let scn = |commit: &str, scn: &str, ssn: u32| {
        token(&format!(
            r#""connector":"oracle","commit_scn":"{commit}","scn":"{scn}","rs_id":"0x1","ssn":{ssn}"#
        ))
    };
    assert!(scn("99", "50", 0) < scn("100", "10", 0) && scn("100", "10", 0) < scn("100", "10", 1));
    assert_eq!(token(r#""connector":"db2","commit_lsn":"1""#), None);
}

#[test]
fn the_envelope_gives_table_times_and_the_former_key() {
    let text = r#"{"op":"c","ts_ms":9,"after":{"id":10},"transaction":{"id":"t1"},
        "source":{"db":"d","schema":"public","table":"x","ts_ms":0,"ts_us":0,"snapshot":false}}"#;
    let headers = [Header { name: "__debezium.oldkey", value: br#"{"id":1}"# }];
    let message = Message {
        key: Some(br#"{"id":10}"#),
        value: Some(text.as_bytes()),
        headers: &headers,
        broker_time: Some(77),
        topic: Some("s.public.x"),
        position: 3,
    };
    let mut decoder = DebeziumJson::default();
    let mut seen = 0;
    decoder.decode(&FormatOptions::default(), &message, &mut |d| {
        let crate::change::Decoded::Changes([c]) = d else { return };
        assert_eq!((c.table, c.transaction_id, c.snapshot), (Some("public.x"), Some("t1"), false));
        assert_eq!((c.times.source, c.times.connector, c.times.broker), (None, Some(9_000), Some(77)));
        let previous = c.previous.expect("previous key");
        assert!(previous.deletes_sent && previous.key.len() == 1);
        seen += 1;
    });
    let tombstone = Message { value: None, headers: &[], ..message };
    decoder.decode(&FormatOptions::default(), &tombstone, &mut |d| {
        let crate::change::Decoded::Changes([c]) = d else { return };
        assert_eq!((c.table, c.tombstone, c.table_guessed), (Some("public.x"), true, true));
        seen += 1;
    });
    assert_eq!(seen, 2);
}
