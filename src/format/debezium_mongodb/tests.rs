use super::*;
use crate::change::Message;
use crate::format::FormatOptions;
use crate::format::plain_json::tests::shown;

const SOURCE: &str = r#""source":{"connector":"mongodb","name":"m","ts_ms":1000,"db":"d","rs":"rs0","collection":"c","ord":3}"#;

fn decode(message: &Message<'_>) -> String {
    let mut out = Vec::new();
    DebeziumMongo::default().decode(&FormatOptions::default(), message, &mut |d| out.push(shown(d)));
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// An envelope with these members beside its source.
fn event(members: &str) -> String {
    decode(&Message { value: Some(format!("{{{members},{SOURCE}}}").as_bytes()), ..Message::default() })
}

/// The cell of a value in a document.
fn value(extended: &str) -> String {
    let document = quoted(&format!(r#"{{"a": {extended}}}"#));
    let shown = event(&format!(r#""op":"c","after":{document}"#));
    shown.strip_prefix("insert [a=").and_then(|s| s.strip_suffix(']')).map_or(shown.clone(), str::to_owned)
}

fn with_key(key: &str, members: &str) -> String {
    let value = format!("{{{members},{SOURCE}}}");
    decode(&Message { key: Some(key.as_bytes()), value: Some(value.as_bytes()), ..Message::default() })
}

const KEY: &str = r#"{"id":"{\"$oid\": \"0a\"}"}"#;

#[test]
fn scalar_types_of_extended_json() {
    for (extended, cell) in [
        (r#"{"$oid": "596e"}"#, r#"Text("596e")"#),
        (r#"{"$numberLong": "9007199254740993"}"#, "Int(9007199254740993)"),
        (r#"{"$numberInt": "-1"}"#, "Int(-1)"),
        (r#"{"$numberDouble": "NaN"}"#, "Float(NaN)"),
        (r#"{"$numberDouble": "-Infinity"}"#, "Float(-inf)"),
        (r#"{"$numberDouble": "121.4737"}"#, "Decimal { unscaled: 1214737, scale: 4 }"),
        ("31.25", "Decimal { unscaled: 3125, scale: 2 }"),
        (r#"{"$numberDecimal": "3.140"}"#, "Decimal { unscaled: 3140, scale: 3 }"),
        (r#"{"$numberDecimal": "NaN"}"#, r#"Text("NaN")"#),
        (r#"{"$numberDecimal": "1E+3"}"#, r#"Text("1E+3")"#),
        (r#"{"$date": 1735934393769 }"#, "Instant(1735934393769000)"),
        (r#"{"$date": {"$numberLong": "-1"}}"#, "Instant(-1000)"),
        (r#"{"$date": "1970-01-01T00:00:01.5Z"}"#, "Instant(1500000)"),
        (r#"{"$timestamp": {"t": 17, "i": 2}}"#, "Instant(17000000)"),
        (r#"{"$regularExpression": {"pattern": "^p$", "options": "i"}}"#, r#"Text("/^p$/i")"#),
        (r#"{"$symbol": "s"}"#, r#"Text("s")"#),
        (r#"{"$minKey": 1}"#, r#"Text("BsonMinKey")"#),
        (r#"{"$code": "f(){}"}"#, r#"Text("f(){}")"#),
        (r#"{"$undefined": true}"#, "Null"),
        (r#"{"$binary": "AP8=", "$type": "0"}"#, "Bytes([0, 255])"),
        (r#"{"$binary": {"base64": "AP8=", "subType": "00"}}"#, "Bytes([0, 255])"),
        (
            r#"{"$binary": "uE2/4v5MSVOiJZkOo3APKQ==", "$type": "4"}"#,
            r#"Text("b84dbfe2-fe4c-4953-a225-990ea3700f29")"#,
        ),
        (
            r#"{"$binary": {"base64": "uE2/4v5MSVOiJZkOo3APKQ==", "subType": "04"}}"#,
            r#"Text("b84dbfe2-fe4c-4953-a225-990ea3700f29")"#,
        ),
        ("null", "Null"),
        ("true", "Bool(true)"),
        (r#"{"$unheard": 1}"#, r#"Json("{\"$unheard\":1}")"#),
    ] {
        assert_eq!(value(extended), cell, "{extended}");
    }
}

#[test]
fn nested_values_lose_their_types_and_no_digit() {
    let nested = r#"{ "n": [{"$numberLong": "9007199254740993"}, 1.10], "b": {"$binary": "AP8=", "$type": "0"}, "d": {"$date": 0}, "t": "a\"b", "x": {"$numberDouble": "NaN"} }"#;
    let json = r#"{"n":[9007199254740993,1.10],"b":"AP8=","d":"1970-01-01T00:00:00Z","t":"a\"b","x":"NaN"}"#;
    assert_eq!(value(nested), format!("Json({json:?})"));
}

#[test]
fn the_id_of_a_delete_is_in_the_key_only() {
    let delete = r#""op":"d","before":null,"after":null"#;
    assert_eq!(with_key(KEY, delete), r#"delete [] key[_id=Text("0a")]"#);
    assert_eq!(with_key(r#"{"id":"\"0a\""}"#, delete), r#"delete [] key[_id=Text("0a")]"#);
    assert_eq!(with_key(r#"{"id":"{\"$numberLong\": \"7\"}"}"#, delete), "delete [] key[_id=Int(7)]");
    assert_eq!(with_key(r#"{"schema":{},"payload":{"id":"7"}}"#, delete), "delete [] key[_id=Int(7)]");
    assert_eq!(event(delete), "quarantine a delete with neither a key nor `before` @0");
    let before = format!(r#""op":"d","before":{},"after":null"#, quoted(r#"{"_id": 7}"#));
    assert_eq!(event(&before), "delete [_id=Int(7)]");
    assert_eq!(
        decode(&Message { key: Some(KEY.as_bytes()), ..Message::default() }),
        r#"delete [] key[_id=Text("0a")]"#
    );
}

#[test]
fn a_field_that_a_whole_document_lacks_is_removed() {
    let after = format!(
        r#""op":"u","after":{},"updateDescription":{{"removedFields":["b"],"updatedFields":"{{}}"}}"#,
        quoted(r#"{"_id": 7, "a": 1}"#)
    );
    assert_eq!(event(&after), "update [_id=Int(7) a=Int(1)]");
}

#[test]
fn an_update_without_its_document_is_no_replacement() {
    let update = |description: &str| {
        with_key(KEY, &format!(r#""op":"u","after":null,"updateDescription":{{{description}}}"#))
    };
    let fields = quoted(r#"{"a": {"$numberLong": "5"}, "s.x.y": {"$date": 0}, "s.z": null, "q": [1]}"#);
    assert_eq!(
        update(&format!(r#""updatedFields":{fields},"removedFields":["b","s.w"],"truncatedArrays":[]"#)),
        r#"update partial [a=Int(5) s=Leaves("{\"x\":{\"y\":\"1970-01-01T00:00:00Z\"},\"z\":null,\"w\":null}") q=Json("[1]") b=Null _id=Text("0a")] key[_id=Text("0a")]"#
    );
    let truncated = update(r#""updatedFields":null,"truncatedArrays":[{"field":"a","size":2}]"#);
    assert!(truncated.starts_with("quarantine the update cuts an array"), "{truncated}");
    let element = update(&format!(r#""updatedFields":{}"#, quoted(r#"{"a.0": 1}"#)));
    assert!(element.starts_with("quarantine the update writes to a part of an array, `a.0`"), "{element}");
    let twice = update(&format!(r#""updatedFields":{},"removedFields":["a"]"#, quoted(r#"{"a.b": 1}"#)));
    assert!(twice.starts_with("quarantine the update names `a` twice"), "{twice}");
    let nothing = with_key(KEY, r#""op":"u","after":null,"updateDescription":null"#);
    assert!(nothing.starts_with("quarantine an update with neither"), "{nothing}");
}

#[test]
fn patches_of_old_connectors() {
    let patch = |text: &str| {
        event(&format!(r#""op":"u","patch":{},"filter":{}"#, quoted(text), quoted(r#"{"_id": 7}"#)))
    };
    assert_eq!(
        patch(r#"{"$v": 1, "$set": {"a": 1}, "$unset": {"b": true}}"#),
        "update partial [a=Int(1) b=Null _id=Int(7)]"
    );
    assert_eq!(patch(r#"{"_id": 7, "a": 1}"#), "update [_id=Int(7) a=Int(1)]");
}

#[test]
fn table_time_and_position() {
    let value = format!(r#"{{"schema":{{}},"payload":{{"op":"c","after":"{{}}",{SOURCE},"ts_ms":2000}}}}"#);
    let mut seen = 0;
    let message = Message { value: Some(value.as_bytes()), ..Message::default() };
    DebeziumMongo::default().decode(&FormatOptions::default(), &message, &mut |decoded| {
        let crate::change::Decoded::Changes([c]) = decoded else { panic!("{decoded:?}") };
        assert_eq!((c.table, c.source.table, c.times.source), (Some("d.c"), Some("c"), Some(1_000_000)));
        let token = c.token.unwrap();
        assert_eq!(token.server, "mongodb/m//rs0");
        assert_eq!(token.position, [&1_000u64.to_be_bytes()[..], &3u64.to_be_bytes()].concat());
        seen += 1;
    });
    assert_eq!(seen, 1);
}

#[test]
fn envelopes_are_told_from_those_of_tables() {
    let own = format!(r#"{{"op":"d",{SOURCE}}}"#);
    assert!(looks_like(&own) && looks_like(&format!(r#"{{"schema":null,"payload":{own}}}"#)));
    for other in [
        r#"{"op":"c","after":{"collection":1},"source":{"table":"t"}}"#,
        r#"{"op":"c","source":"x","collection":"c"}"#,
        r#"{"source":{"collection":"c"}}"#,
        "[]",
        "{",
    ] {
        assert!(!looks_like(other), "{other}");
    }
}

#[test]
fn hostile_bytes_are_changes_or_faults() {
    let sample = format!(
        r#"{{"op":"u","after":null,"updateDescription":{{"updatedFields":{},"removedFields":["b"]}},{SOURCE}}}"#,
        quoted(
            r#"{"a": {"$date": {"$numberLong": "1"}}, "s.x": {"$binary": {"base64": "AP8=", "subType": "04"}}}"#
        )
    );
    for at in 0..sample.len() {
        decode(&Message {
            key: Some(&KEY.as_bytes()[..at.min(KEY.len())]),
            value: Some(&sample.as_bytes()[..at]),
            ..Message::default()
        });
        for bit in 0..8 {
            let mut bytes = sample.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            decode(&Message { value: Some(&bytes), ..Message::default() });
        }
    }
}
