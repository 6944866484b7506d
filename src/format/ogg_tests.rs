use super::*;
use crate::change::Decoded;
use crate::format::options::parse_op_map;
use crate::format::plain_json::tests::shown;

const HEAD: &str = r#""table":"HR.EMP","op_ts":"1970-01-01 00:00:01.500000","current_ts":"1970-01-01T00:00:09","pos":"00000000000000000010","primary_keys":["ID"]"#;

fn message(text: &str) -> Message<'_> {
    Message { value: Some(text.as_bytes()), ..Message::default() }
}

fn with(options: &FormatOptions, text: &str) -> String {
    let mut out = Vec::new();
    Ogg::default().decode(options, &message(text), &mut |d| out.push(shown(d)));
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

/// An operation with the usual metadata.
fn operation(rest: &str) -> String {
    with(&FormatOptions::default(), &format!("{{{HEAD},{rest}}}"))
}

#[test]
fn a_compressed_update_writes_what_it_sends() {
    let update = operation(r#""op_type":"U","before":{},"after":{"ID":1,"NOTE":null}"#);
    assert_eq!(update, "update partial [ID=Int(1) NOTE=Null] key[ID=Int(1)]");
    let insert = operation(r#""op_type":"I","after":{"ID":1,"SAL":100.50}"#);
    assert_eq!(insert, "insert [ID=Int(1) SAL=Decimal { unscaled: 10050, scale: 2 }] key[ID=Int(1)]");
    assert_eq!(
        operation(r#""op_type":"D","before":{"ID":2},"after":null"#),
        "delete [ID=Int(2)] key[ID=Int(2)]"
    );
    assert_eq!(operation(r#""op_type":"T""#), "truncate []");
}

#[test]
fn flags_tell_null_from_not_sent() {
    let text = r#""op_type":"U","after":{"ID":"1","ID_isMissing":false,"A":null,"A_isMissing":true,"B":null,"B_isMissing":false}"#;
    assert_eq!(operation(text), r#"update partial [ID=Text("1") B=Null] key[ID=Text("1")]"#);
    // Only a boolean beside its column is a flag.
    let text = r#""op_type":"U","after":{"ID":1,"A_isMissing":true,"B":1,"B_isMissing":"x"}"#;
    let row =
        r#"update partial [ID=Int(1) A_isMissing=Bool(true) B=Int(1) B_isMissing=Text("x")] key[ID=Int(1)]"#;
    assert_eq!(operation(text), row);
}

#[test]
fn the_row_format_has_columns_beside_metadata() {
    let row = operation(r#""op_type":"U","tokens":{"R":"x"},"ID":1,"after":"noon""#);
    assert_eq!(row, r#"update partial [ID=Int(1) after=Text("noon")] key[ID=Int(1)]"#);
    assert_eq!(operation(r#""op_type":"D","ID":1"#), "delete [ID=Int(1)] key[ID=Int(1)]");
}

fn change<T>(text: &str, options: &FormatOptions, take: impl Fn(&Change<'_>) -> T) -> T {
    let mut out = None;
    Ogg::default().decode(options, &message(text), &mut |d| {
        let Decoded::Changes([change]) = d else { panic!("{d:?}") };
        out = Some(take(change));
    });
    out.expect("a change")
}

#[test]
fn an_old_row_with_a_part_of_the_key_has_all_of_it() {
    let text =
        r#"{"table":"A.T","op_type":"U","primary_keys":["A","B"],"before":{"A":1},"after":{"A":2,"B":3}}"#;
    let before = change(text, &FormatOptions::default(), |c| {
        c.before.iter().map(|c| format!("{}={:?}", c.name, c.cell)).collect::<Vec<_>>()
    });
    assert_eq!(before, ["A=Int(1)", "B=Int(3)"]);
    let text = r#"{"table":"A.T","op_type":"U","primary_keys":["A"],"before":{"S":1},"after":{"A":2,"S":3}}"#;
    let before = change(text, &FormatOptions::default(), |c| c.before.len());
    assert_eq!(before, 1);
}

#[test]
fn times_without_a_zone_are_in_the_declared_one() {
    let text = format!(r#"{{{HEAD},"op_type":"I","after":{{"ID":1}},"xid":"0.1.2"}}"#);
    let plain = FormatOptions::default();
    let of = |options: &FormatOptions| change(&text, options, |c| (c.times.source, c.times.connector));
    assert_eq!(of(&plain), (Some(1_500_000), Some(9_000_000)));
    let zone = FormatOptions { zone: "Asia/Tokyo".parse().ok(), ..FormatOptions::default() };
    assert_eq!(of(&zone), (Some(1_500_000 - 9 * 3_600_000_000), Some(9_000_000 - 9 * 3_600_000_000)));
    let source = change(&text, &plain, |c| {
        (c.table.map(str::to_owned), c.source.schema.map(str::to_owned), c.transaction_id.map(str::to_owned))
    });
    assert_eq!(source, (Some("HR.EMP".into()), Some("HR".into()), Some("0.1.2".into())));
}

#[test]
fn positions_of_several_lengths_compare_as_numbers() {
    let of = |pos: &str| {
        let text = format!(r#"{{"table":"T","op_type":"I","after":{{"ID":1}},"pos":{pos}}}"#);
        change(&text, &FormatOptions::default(), |c| c.token.map(|t| t.position.to_vec()))
    };
    assert!(of("\"00000000000000000255\"") < of("\"00000000000000000000256\""));
    assert_eq!(of("\"00000000000000000099\""), of("\"99\""));
    for degenerate in ["\"\"", "\"0000\"", "\"x9\"", "null", "\"-5\""] {
        assert_eq!(of(degenerate), None, "{degenerate}");
    }
}

#[test]
fn words_of_operations_can_be_declared() {
    let text = format!(r#"{{{HEAD},"op_type":"SQL COMPUPDATE","after":{{"ID":1}}}}"#);
    assert!(
        with(&FormatOptions::default(), &text).starts_with("quarantine unknown operation `SQL COMPUPDATE`")
    );
    let op_map = parse_op_map("SQL COMPUPDATE=update").expect("map");
    let options = FormatOptions { op_map, ..FormatOptions::default() };
    assert_eq!(with(&options, &text), "update partial [ID=Int(1)] key[ID=Int(1)]");
}

#[test]
fn broken_messages_are_quarantined_in_words() {
    for (text, expected) in [
        ("{}", "there is no operation (`op_type`) @0"),
        (r#"{"op_type":"I","after":{"ID":1}}"#, "the operation names no table (`table`) @0"),
        (r#"{"op_type":"U","table":"T","after":null}"#, "an operation of kind update without columns @0"),
        (r#"{"op_type":"I","table":"T","after":{"a":1,"a":2}}"#, "the member `a` comes twice @46"),
        (r#"{"op_type":"I","table":"T","before":5,"after":{"a":1}}"#, "`before` is no object @36"),
    ] {
        assert_eq!(with(&FormatOptions::default(), text), format!("quarantine {expected}"), "{text}");
    }
}

#[test]
fn only_messages_with_all_metadata_look_like_goldengate() {
    assert!(looks_like(&format!(r#"{{{HEAD},"op_type":"T"}}"#)));
    assert!(!looks_like(r#"{"table":"t","op_type":"I","op_ts":"x","qty":1}"#));
    assert!(!looks_like(r#"{"after":{"table":"t","op_type":"I","op_ts":"x","pos":"1"}}"#));
}

#[test]
fn any_bytes_have_an_answer() {
    let text = format!(
        r#"{{{HEAD},"op_type":"U","before":{{"ID":1,"ID_isMissing":false}},"after":{{"ID":7,"A\u0041":"x"}}}}"#
    );
    let mut decoder = Ogg::default();
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
