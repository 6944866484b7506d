use super::*;
use crate::change::{Decoded, Message};
use crate::format::plain_json::tests::shown;
use crate::format::{Format, FormatOptions};

fn message(text: &str) -> Message<'_> {
    Message { value: Some(text.as_bytes()), ..Message::default() }
}

/// What a decoder makes of messages one after the other.
fn decode_all(texts: &[&str]) -> Vec<String> {
    let mut decoder = Wal2Json::default();
    let mut out = Vec::new();
    for text in texts {
        let before = out.len();
        decoder.decode(&FormatOptions::default(), &message(text), &mut |d| out.push(shown(d)));
        assert_eq!(out.len(), before + 1, "exactly one answer a message");
    }
    out
}

fn one(text: &str) -> String {
    decode_all(&[text]).remove(0)
}

/// A column of an insert in both formats, which have to agree.
fn typed(ty: &str, value: &str) -> String {
    let first = one(&format!(
        r#"{{"change":[{{"kind":"insert","schema":"s","table":"t","columnnames":["a"],"columntypes":["{ty}"],"columnvalues":[{value}]}}]}}"#
    ));
    let second = one(&format!(
        r#"{{"action":"I","schema":"s","table":"t","columns":[{{"name":"a","type":"{ty}","value":{value}}}]}}"#
    ));
    assert_eq!(first, second);
    match first.strip_prefix("insert [a=").and_then(|s| s.strip_suffix(']')) {
        Some(cell) => cell.to_owned(),
        None => first,
    }
}

#[test]
fn numbers_keep_every_digit_and_their_declared_scale() {
    assert_eq!(typed("bigint", "9007199254740993"), "Int(9007199254740993)");
    assert_eq!(typed("bigint", "\"-9223372036854775808\""), "Int(-9223372036854775808)");
    assert_eq!(typed("int4", "7"), "Int(7)");
    assert_eq!(typed("numeric(5,3)", "3.54"), "Decimal { unscaled: 3540, scale: 3 }");
    assert_eq!(typed("numeric(5,3)", "-1"), "Decimal { unscaled: -1000, scale: 3 }");
    assert_eq!(typed("numeric", "4.560"), "Decimal { unscaled: 4560, scale: 3 }");
    assert_eq!(
        typed("numeric", "\"1234567890987654321.1234567890987654321\""),
        "Decimal { unscaled: 12345678909876543211234567890987654321, scale: 19 }"
    );
    let wide = "12345678901234567890123456789012345678901234567890.5";
    assert_eq!(typed("numeric", wide), format!("Text(\"{wide}\")"));
    // The scale does not fit beside the digits, so they stay as they are.
    let most = "99999999999999999999999999999999999999";
    assert_eq!(typed("numeric(40,2)", most), format!("Decimal {{ unscaled: {most}, scale: 0 }}"));
    assert_eq!(typed("numeric", "\"NaN\""), "Text(\"NaN\")");
    assert_eq!(typed("real", "123.456"), "Float(123.456)");
    assert_eq!(typed("double precision", "\"-Infinity\""), "Float(-inf)");
    assert_eq!(typed("float8", "null"), "Null");
}

#[test]
fn times_are_read_as_iso_and_stay_text_in_other_date_styles() {
    assert_eq!(typed("timestamp without time zone", "\"1969-12-31 23:59:59.5\""), "Timestamp(-500000)");
    assert_eq!(typed("timestamp(3) without time zone", "\"1970-01-01 00:00:01\""), "Timestamp(1000000)");
    assert_eq!(typed("timestamp", "\"Sun Apr 26 16:23:59 2020\""), "Text(\"Sun Apr 26 16:23:59 2020\")");
    assert_eq!(typed("timestamp with time zone", "\"1970-01-01 03:00:00+03\""), "Instant(0)");
    assert_eq!(typed("timestamp(0) with time zone", "\"1970-01-01 05:30:00+05:30\""), "Instant(0)");
    assert_eq!(typed("timestamptz", "\"1970-01-01 00:53:28+00:53:28\""), "Instant(0)");
    assert_eq!(typed("timestamptz", "\"infinity\""), "Text(\"infinity\")");
    assert_eq!(typed("date", "\"1970-01-03\""), "Date(2)");
    assert_eq!(typed("date", "\"02-04-2013\""), "Text(\"02-04-2013\")");
    assert_eq!(typed("date", "\"0044-03-15 BC\""), "Text(\"0044-03-15 BC\")");
    assert_eq!(typed("time without time zone", "\"12:00:00\""), "Text(\"12:00:00\")");
}

#[test]
fn other_types_are_what_their_text_says() {
    assert_eq!(typed("bytea", "\"54617069\""), "Bytes([84, 97, 112, 105])");
    assert_eq!(typed("bytea", "\"\\\\x00ff\""), "Bytes([0, 255])");
    assert_eq!(typed("bytea", "\"abc\""), "Text(\"abc\")");
    assert_eq!(typed("character(10)", "\"teste     \""), "Text(\"teste     \")");
    assert_eq!(typed("jsonb", "\"{\\\"a\\\": 1}\""), "Json(\"{\\\"a\\\": 1}\")");
    assert_eq!(typed("json", "\"{\""), "Text(\"{\")");
    assert_eq!(typed("integer[]", "\"{1,2}\""), "Text(\"{1,2}\")");
    assert_eq!(typed("numeric(5,3)[]", "\"{1.000}\""), "Text(\"{1.000}\")");
    assert_eq!(typed("boolean", "true"), "Bool(true)");
    assert_eq!(typed("text", "\"null\""), "Text(\"null\")");
    assert_eq!(typed("smallint", "\"abc\""), "Text(\"abc\")");
}

#[test]
fn a_large_value_that_did_not_change_keeps_what_it_was() {
    let update = r#"{"kind":"update","schema":"s","table":"t","columnnames":["id","v"],"columntypes":["integer","text"],"columnvalues":[1,"b"],"oldkeys":{"keynames":["id"],"keytypes":["integer"],"keyvalues":[1]}}"#;
    let message = format!(r#"{{"change":[{update}]}}"#);
    assert_eq!(one(&message), r#"update partial [id=Int(1) v=Text("b")]"#);
    // REPLICA IDENTITY FULL: only the old row has it.
    let full = r#"{"action":"U","schema":"s","table":"t","columns":[{"name":"id","type":"integer","value":1}],"identity":[{"name":"id","type":"integer","value":1},{"name":"big","type":"text","value":"B"}]}"#;
    assert_eq!(one(full), r#"update partial [id=Int(1) big=Text("B")]"#);
}

#[test]
fn a_transaction_is_all_its_rows_in_their_order() {
    let row = |kind: &str, id: u32| {
        format!(
            r#"{{"kind":"{kind}","table":"t","columnnames":["id"],"columntypes":["integer"],"columnvalues":[{id}]}}"#
        )
    };
    let old = r#"{"kind":"delete","table":"t","oldkeys":{"keynames":["id"],"keytypes":["integer"],"keyvalues":[2]}}"#;
    let message = format!(
        r#"{{"change":[{},{{"kind":"message","prefix":"p"}},{},{old},{{"kind":"truncate","table":"t"}}]}}"#,
        row("insert", 1),
        row("insert", 2)
    );
    assert_eq!(one(&message), "insert [id=Int(1)]; insert [id=Int(2)]; delete [id=Int(2)]; truncate []");
}

#[test]
fn the_primary_key_is_the_key_where_it_is_sent() {
    let first = r#"{"change":[{"kind":"insert","table":"t","columnnames":["v","b","a"],"columntypes":["text","int4","int4"],"columnvalues":["x",2,1],"pk":{"pknames":["a","b"],"pktypes":["int4","int4"]}}]}"#;
    assert_eq!(one(first), r#"insert [v=Text("x") b=Int(2) a=Int(1)] key[a=Int(1) b=Int(2)]"#);
    let second = r#"{"action":"D","table":"t","identity":[{"name":"a","type":"integer","value":1}],"pk":[{"name":"a","type":"integer"}]}"#;
    assert_eq!(one(second), "delete [a=Int(1)] key[a=Int(1)]");
}

/// Time, transaction, and token with its server.
type OriginOf = (Option<i64>, String, Option<(String, Vec<u8>)>);

/// Where the rows of messages come from.
fn origins(texts: &[&str]) -> Vec<OriginOf> {
    let mut decoder = Wal2Json::default();
    let mut out = Vec::new();
    for text in texts {
        decoder.decode(&FormatOptions::default(), &message(text), &mut |d| {
            let Decoded::Changes(changes) = d else { return };
            out.extend(changes.iter().map(|c| {
                let token = c.token.map(|t| (t.server.to_owned(), t.position.to_vec()));
                (c.times.source, c.transaction_id.unwrap_or("").to_owned(), token)
            }));
        });
    }
    out
}

fn transaction(end: &str, rows: usize) -> String {
    let row =
        r#"{"kind":"insert","table":"t","columnnames":["a"],"columntypes":["integer"],"columnvalues":[1]}"#;
    let rows = vec![row; rows].join(",");
    format!(r#"{{"xid":7,"nextlsn":"{end}","timestamp":"1970-01-01 03:00:01.5+03","change":[{rows}]}}"#)
}

#[test]
fn positions_are_numbers_and_name_one_row_each() {
    let texts = [transaction("0/FFFFFFF8", 2), transaction("1/00000108", 1)];
    let rows = origins(&[&texts[0], &texts[1]]);
    assert_eq!(rows[0].0, Some(1_500_000));
    assert_eq!(rows[0].1, "7");
    let tokens: Vec<_> = rows.iter().map(|r| r.2.clone().expect("a token")).collect();
    assert!(tokens.is_sorted() && tokens[0] != tokens[1], "{tokens:?}");
    for degenerate in ["0/0", "", "x/1", "1", "1/123456789"] {
        assert_eq!(origins(&[&transaction(degenerate, 1)])[0].2, None, "{degenerate}");
    }
}

#[test]
fn rows_of_format_2_belong_to_the_transaction_that_began() {
    let begin =
        r#"{"action":"B","xid":9,"timestamp":"1970-01-01 00:00:02+00","lsn":"0/10","nextlsn":"0/20"}"#;
    let row = r#"{"action":"I","table":"t","columns":[{"name":"a","type":"integer","value":1}]}"#;
    let end = r#"{"action":"C","xid":9}"#;
    let rows = origins(&[row, begin, row, row, end, row]);
    assert_eq!(rows.iter().map(|r| r.0).collect::<Vec<_>>(), [None, Some(2_000_000), Some(2_000_000), None]);
    assert_eq!(rows[1].1, "9");
    assert!(rows[1].2 < rows[2].2 && rows[0].2.is_none() && rows[3].2.is_none());
    // Without its beginning a row has what it says itself.
    let own = r#"{"action":"I","xid":3,"timestamp":"1970-01-01 00:00:01+00","lsn":"0/11","table":"t","columns":[{"name":"a","type":"integer","value":1}]}"#;
    let (time, xid, token) = origins(&[own]).remove(0);
    assert_eq!((time, xid.as_str()), (Some(1_000_000), "3"));
    assert_eq!(token.map(|t| t.0), Some("wal2json/rows".to_owned()));
}

#[test]
fn a_decoder_goes_on_within_a_transaction() {
    let begin = r#"{"action":"B","timestamp":"1970-01-01 00:00:02+00","nextlsn":"0/20"}"#;
    let row = r#"{"action":"I","table":"t","columns":[{"name":"a","type":"integer","value":1}]}"#;
    let decoder = |state: Option<&serde_json::Value>| {
        crate::format::Decoder::resumed(Format::Wal2json, FormatOptions::default(), state).expect("messages")
    };
    let mut first = decoder(None);
    for text in [begin, row] {
        first.decode(&message(text), &mut |_| ());
    }
    let state = first.state().expect("a transaction is open");
    let mut second = decoder(Some(&state));
    let mut tokens = Vec::new();
    for decoder in [&mut first, &mut second] {
        decoder.decode(&message(row), &mut |d| {
            let Decoded::Changes([change]) = d else { return };
            tokens.push((change.times.source, change.token.map(|t| t.position.to_vec())));
        });
    }
    assert!(tokens.len() == 2 && tokens[0] == tokens[1] && tokens[0].1.is_some(), "{tokens:?}");
    first.decode(&message(r#"{"action":"C"}"#), &mut |_| ());
    assert_eq!(first.state(), None);
}

#[test]
fn what_is_no_row_is_ignored_by_kind() {
    for (text, kind) in [
        (r#"{"change":[]}"#, "empty_transaction"),
        (r#"{"change":[{"kind":"message","transactional":true,"prefix":"p","content":"c"}]}"#, "message"),
        (r#"{"action":"B"}"#, "begin"),
        (r#"{"action":"C"}"#, "commit"),
        (r#"{"action":"M","transactional":false,"prefix":"p","content":"c"}"#, "message"),
        ("null", "null_or_empty_key_tombstone"),
    ] {
        assert_eq!(one(text), format!("ignored {kind}"));
    }
}

#[test]
fn broken_messages_are_quarantined_in_words() {
    for (text, expected) in [
        ("{}", "there is neither `change` nor `action` @0"),
        (r#"{"change":{}}"#, "expected a JSON array @10"),
        (r#"{"change":[1]}"#, "a change is no object @11"),
        (r#"{"change":[{"kind":"merge"}]}"#, "unknown operation `merge` @11"),
        (r#"{"change":[{"kind":"insert"}]}"#, "the change names no table @11"),
        (
            r#"{"change":[{"kind":"insert","table":"t","columnnames":["a"],"columnvalues":[]}]}"#,
            "the change has 1 names of columns and 0 values @11",
        ),
        (r#"{"action":"X"}"#, "unknown operation `X` @0"),
        (r#"{"action":"I"}"#, "the change names no table @0"),
        (r#"{"action":"I","table":"t","columns":[]}"#, "a change of kind insert without columns @0"),
        (r#"{"action":"D","table":"t"}"#, "a change of kind delete without columns @0"),
        (r#"{"action":"I","table":"t","columns":[{"name":1}]}"#, "a column of `columns` has no name @37"),
        (
            r#"{"action":"I","table":"t","columns":[{"name":"a","value":1},{"name":"a","value":2}]}"#,
            "the member `a` comes twice @60",
        ),
        (r#"{"change":["#, "the JSON text ends too early @11"),
    ] {
        assert_eq!(one(text), format!("quarantine {expected}"), "{text}");
    }
}

#[test]
fn a_transaction_written_in_chunks_gets_a_hint() {
    let chunk = r#",{"kind":"insert","table":"t"}"#;
    for text in [r#"{"change":["#, chunk, "]}"] {
        let mut hint = String::new();
        Wal2Json::default().decode(&FormatOptions::default(), &message(text), &mut |d| {
            if let Decoded::Quarantine(fault) = d {
                hint = fault.hint.to_owned();
            }
        });
        assert!(hint.contains("write-in-chunks"), "{text}: {hint}");
    }
}

#[test]
fn other_messages_are_not_taken_for_those_of_wal2json() {
    for text in [
        r#"{"action":"I","sku":"x"}"#,
        r#"{"action":"B","qty":1}"#,
        r#"{"change":[1],"id":2}"#,
        r#"{"change":5}"#,
        r#"{"action":"INSERT","table":"t","columns":[]}"#,
        r#"{"op":"c","after":{"action":"I"}}"#,
        "[]",
        "{",
    ] {
        assert!(!looks_like(text), "{text}");
    }
}

#[test]
fn any_bytes_have_an_answer() {
    let second = r#"{"action":"U","xid":1,"timestamp":"1970-01-01 00:00:02+00","lsn":"0/10","schema":"s","table":"t","columns":[{"name":"a\u0041","type":"numeric(5,3)","value":"1.5"},{"name":"b","type":"bytea","value":"00ff"}],"identity":[{"name":"a","type":"integer","value":null}],"pk":[{"name":"a","type":"integer"}]}"#;
    let first = r#"{"xid":1,"nextlsn":"0/20","timestamp":"x","change":[{"kind":"update","schema":"s","table":"t","columnnames":["a","b"],"columntypes":["integer","json"],"columnvalues":[1,"[]"],"pk":{"pknames":["a"]},"oldkeys":{"keynames":["a"],"keytypes":["integer"],"keyvalues":[2]}}]}"#;
    let mut decoder = Wal2Json::default();
    let mut answer = |bytes: &[u8]| {
        let mut n = 0;
        let message = Message { value: Some(bytes), ..Message::default() };
        decoder.decode(&FormatOptions::default(), &message, &mut |_| n += 1);
        assert_eq!(n, 1);
    };
    for text in [first, second] {
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
}
