use super::mysql_type::MysqlType;
use super::*;
use crate::change::{Change, Column, Decoded, Message};
use crate::format::FormatOptions;
use crate::format::plain_json::tests::shown;
use asofdb_storage::value::Cell;

fn decode(message: &Message<'_>) -> String {
    let mut out = Vec::new();
    Canal::default().decode(&FormatOptions::default(), message, &mut |d| out.push(shown(d)));
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

fn value(text: &str) -> String {
    decode(&Message { value: Some(text.as_bytes()), ..Message::default() })
}

/// What `look` sees in the changes of a message.
fn changes<T>(text: &str, look: impl Fn(&[Change<'_>]) -> T) -> T {
    let mut seen = None;
    let message = Message { value: Some(text.as_bytes()), ..Message::default() };
    Canal::default().decode(&FormatOptions::default(), &message, &mut |d| match d {
        Decoded::Changes(changes) => seen = Some(look(changes)),
        other => panic!("{other:?}"),
    });
    seen.expect("changes")
}

fn named<'a>(columns: &[Column<'a>]) -> Vec<(String, Cell<'a>)> {
    columns.iter().map(|c| (c.name.to_owned(), c.cell)).collect()
}

/// One column of an insert, of this type.
fn typed(ty: &str, json: &str) -> String {
    let ty = ty.replace('\\', "\\\\");
    let shown = value(&format!(r#"{{"type":"INSERT","mysqlType":{{"a":"{ty}"}},"data":[{{"a":{json}}}]}}"#));
    match shown.strip_prefix("insert [a=").and_then(|s| s.strip_suffix(']')) {
        Some(cell) => cell.to_owned(),
        None => shown,
    }
}

const UPDATE: &str = r#"{"data":[{"id":"1","d":"x"},{"id":"3","d":null}],"database":"shop","es":1767225601000,"id":2,"isDdl":false,"mysqlType":{"id":"int(11)","d":"varchar(9)"},"old":[{"d":null},{"id":"2"}],"pkNames":["id"],"sql":"","sqlType":null,"table":"t","ts":1767225601350,"type":"UPDATE"}"#;

#[test]
fn all_rows_of_a_message_come_out_in_their_order() {
    let row = |id: u32, d: &str| format!("update [id=Int({id}) d={d}] key[id=Int({id})]");
    assert_eq!(value(UPDATE), format!("{}; {}", row(1, "Text(\"x\")"), row(3, "Null")));
    changes(UPDATE, |all| {
        for c in all {
            assert_eq!((c.table, c.source.db, c.full), (Some("shop.t"), Some("shop"), true));
            assert_eq!(c.times.source, Some(1_767_225_601_000_000));
            assert_eq!((c.times.connector, c.token), (Some(1_767_225_601_350_000), None));
        }
    });
}

#[test]
fn a_former_null_is_told_from_an_unchanged_column() {
    changes(UPDATE, |all| {
        assert_eq!(named(all[0].before), [("id".into(), Cell::Int(1)), ("d".into(), Cell::Null)]);
        assert_eq!(named(all[1].before), [("id".into(), Cell::Int(2)), ("d".into(), Cell::Null)]);
    });
}

#[test]
fn an_insert_with_a_list_of_null_as_old_is_an_insert() {
    let text = r#"{"type":"INSERT","data":[{"id":"1"}],"old":[null]}"#;
    changes(text, |all| assert!(all[0].before.is_empty() && all.len() == 1));
    changes(&text.replace("INSERT", "UPDATE"), |all| assert!(all[0].before.is_empty()));
}

#[test]
fn numbers_are_exact_and_without_filling_zeros() {
    assert_eq!(typed("int(11)", "\"-5\""), "Int(-5)");
    assert_eq!(typed("SMALLINT(4) unsigned zerofill", "\"0007\""), "Int(7)");
    assert_eq!(
        typed("bigint(20) unsigned", "\"18446744073709551615\""),
        "Decimal { unscaled: 18446744073709551615, scale: 0 }"
    );
    assert_eq!(typed("bit(1)", "\"1\""), "Int(1)");
    assert_eq!(typed("BOOLEAN", "\"0\""), "Int(0)");
    assert_eq!(typed("year(4)", "\"2023\""), "Int(2023)");
    assert_eq!(typed("decimal(8, 3) unsigned", "\"1.1\""), "Decimal { unscaled: 1100, scale: 3 }");
    assert_eq!(typed("decimal(4,1)", "\"1.25\""), "Decimal { unscaled: 125, scale: 2 }");
    assert_eq!(typed("decimal", "\"1.2\""), "Decimal { unscaled: 12, scale: 1 }");
    assert_eq!(typed("double precision", "\"1.5\""), "Float(1.5)");
    assert_eq!(typed("int", "\"x\""), "Text(\"x\")");
    assert_eq!(typed("int", "\"1.5\""), "Text(\"1.5\")");
    assert_eq!(typed("int", "7"), "Int(7)");
    let wide = "1".repeat(60);
    assert_eq!(typed("decimal(60,0)", &format!("\"{wide}\"")), format!("Text(\"{wide}\")"));
}

#[test]
fn enums_are_sent_by_number_and_sets_by_mask() {
    let paid = "enum('new','it''s paid','a,b)','\\'q')";
    assert_eq!(typed(paid, "\"1\""), "Text(\"new\")");
    assert_eq!(typed(paid, "\"2\""), "Text(\"it's paid\")");
    assert_eq!(typed(paid, "\"3\""), "Text(\"a,b)\")");
    assert_eq!(typed(paid, "\"4\""), "Text(\"'q\")");
    assert_eq!(typed(paid, "\"0\""), "Text(\"\")", "0 is the invalid value");
    assert_eq!(typed(paid, "\"5\""), "Text(\"5\")", "there is no fifth");
    assert_eq!(typed(paid, "\"new\""), "Text(\"new\")");
    assert_eq!(typed("ENUM('x')", "\"1\""), "Text(\"x\")", "in any case of letters");
    assert_eq!(typed("enum", "\"1\""), "Text(\"1\")", "without labels");
    assert_eq!(typed("set('a','b','c')", "\"5\""), "Text(\"a,c\")");
    assert_eq!(typed("set('a','b','c')", "\"0\""), "Text(\"\")");
    assert_eq!(typed("set('a','b','c')", "\"8\""), "Text(\"8\")");
    assert_eq!(typed("set('a','b','c')", "\"a,b\""), "Text(\"a,b\")");
    assert_eq!(typed("set('a')", "null"), "Null");
}

#[test]
fn bytes_are_characters_of_latin_1() {
    assert_eq!(typed("varbinary(8)", r#""\u0005ÿþ<""#), "Bytes([5, 255, 254, 60])");
    assert_eq!(typed("longblob", "\"\""), "Bytes([])");
    assert_eq!(typed("point", r#""\u0000ð""#), "Bytes([0, 240])");
    assert_eq!(typed("blob", "\"Ā\""), "Text(\"Ā\")");
    assert_eq!(typed("text", "\"ÿ\""), "Text(\"ÿ\")");
}

#[test]
fn times_stay_as_they_were_sent_and_zero_dates_are_no_error() {
    assert_eq!(typed("date", "\"1970-01-02\""), "Date(1)");
    assert_eq!(typed("date", "\"0000-00-00\""), "Text(\"0000-00-00\")");
    assert_eq!(typed("datetime(6)", "\"2026-01-01 00:00:00.5\""), "Text(\"2026-01-01 00:00:00.5\")");
    assert_eq!(typed("time", "\"-838:59:59\""), "Text(\"-838:59:59\")");
    assert_eq!(typed("json", r#""{\"a\": 1}""#), "Json(\"{\\\"a\\\": 1}\")");
    assert_eq!(typed("json", "\"{\""), "Text(\"{\")");
    assert_eq!(typed("varchar(3)", "\"5\""), "Text(\"5\")");
}

#[test]
fn labels_are_read_with_any_quoting() {
    assert_eq!(MysqlType::parse(" Enum ( 'a' , 'b' ) "), MysqlType::Enum(vec!["a".into(), "b".into()]));
    assert_eq!(MysqlType::parse("set("), MysqlType::Set(vec![]));
    assert_eq!(MysqlType::parse("enum('a"), MysqlType::Enum(vec!["a".into()]));
    assert_eq!(MysqlType::parse("DECIMAL(8, 0)"), MysqlType::Decimal { scale: Some(0) });
    assert_eq!(MysqlType::parse("decimal(999,999)"), MysqlType::Decimal { scale: None });
    assert_eq!(MysqlType::parse("int8range"), MysqlType::Text);
    assert_eq!(MysqlType::parse(""), MysqlType::Text);
}

#[test]
fn a_truncate_is_no_mere_ddl() {
    let ddl = |kind: &str| {
        format!(
            r#"{{"data":null,"database":"d","table":"t","es":1000,"isDdl":true,"type":"{kind}","sql":"x"}}"#
        )
    };
    assert_eq!(value(&ddl("TRUNCATE")), "truncate []");
    changes(&ddl("TRUNCATE"), |all| {
        assert_eq!((all[0].table, all[0].times.source), (Some("d.t"), Some(1_000_000)));
    });
    for kind in ["CREATE", "ALTER", "ERASE", "RENAME", "QUERY", "CINDEX", "DINDEX", "SOMETHING"] {
        assert_eq!(value(&ddl(kind)), "ignored ddl", "{kind}");
    }
    assert!(
        value(&ddl("TRUNCATE").replace("\"t\"", "\"\"")).starts_with("quarantine a truncate that names no")
    );
}

#[test]
fn side_messages_are_ignored_by_kind() {
    let of = |kind: &str| format!(r#"{{"data":null,"isDdl":false,"type":"{kind}"}}"#);
    for (kind, ignored) in [
        ("QUERY", "query"),
        ("GTID", "gtid"),
        ("XACOMMIT", "xa"),
        ("MHEARTBEAT", "heartbeat"),
        ("TIDB_WATERMARK", "watermark"),
    ] {
        assert_eq!(value(&of(kind)), format!("ignored {ignored}"));
    }
    assert_eq!(decode(&Message::default()), "ignored null_or_empty_key_tombstone");
}

#[test]
fn names_of_key_columns_may_differ_in_case() {
    let text = r#"{"type":"DELETE","data":[{"ID":"1","v":"a"}],"pkNames":["id"],"mysqlType":{"ID":"int"}}"#;
    assert_eq!(value(text), "delete [ID=Int(1) v=Text(\"a\")] key[ID=Int(1)]");
    let none = text.replace(r#"["id"]"#, "null");
    assert_eq!(value(&none), "delete [ID=Int(1) v=Text(\"a\")]");
}

#[test]
fn a_message_with_data_and_type_alone_is_taken() {
    assert_eq!(value(r#"{"data":[{"k":"1"}],"type":"INSERT"}"#), "insert [k=Text(\"1\")]");
    changes(r#"{"data":[{"k":"1"}],"type":"INSERT"}"#, |all| {
        assert_eq!((all[0].table, all[0].times.source), (None, None));
    });
}

#[test]
fn tidb_s_commit_timestamp_is_position_and_time() {
    let with = |tidb: &str| UPDATE.replace("\"id\":2,", &format!("\"id\":0,\"_tidb\":{tidb},"));
    changes(&with(r#"{"commitTs":463267587948544001}"#), |all| {
        let token = all[1].token.expect("a position");
        assert_eq!(token.position, 463267587948544001u64.to_be_bytes());
        assert!(all[1].one_per_key);
        assert_eq!(all[1].times.source, Some(1_767_225_601_000_000));
    });
    changes(&with("{}"), |all| assert!(all[0].token.is_none() && !all[0].one_per_key));
    let cut = value(&with(r#"{"commitTs":463267587948544001,"onlyHandleKey":true}"#));
    assert!(cut.starts_with("quarantine the message has the key of its row only"), "{cut}");
    let claim = value(&with(r#"{"claimCheckLocation":"s3:/b/x"}"#));
    assert!(claim.starts_with("quarantine the row is stored elsewhere"), "{claim}");
}

#[test]
fn broken_envelopes_are_quarantined_in_words() {
    let cases = [
        ("{}", "there is no type of message (`type`) @0"),
        (r#"{"type":"UPSERT"}"#, "unknown type of message `UPSERT` @0"),
        (r#"{"type":"INSERT"}"#, "a message of type INSERT without `data` @0"),
        (r#"{"type":"INSERT","data":{}}"#, "`data` is no list @24"),
        (r#"{"type":"INSERT","data":[1]}"#, "a row is no object @25"),
        (r#"{"type":"INSERT","data":[{}]}"#, "a row has no columns @25"),
        (r#"{"type":"INSERT","data":[{"a":"1","a":"2"}]}"#, "the member `a` comes twice @38"),
        (r#"{"type":"INSERT","data":[{"a":"1"}],"pkNames":[1]}"#, "`pkNames` is no list of names @1"),
        ("[1]", "expected a JSON object @0"),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), format!("quarantine {expected}"), "{text}");
    }
    let message = Message { key: Some(b"k"), ..Message::default() };
    assert_eq!(decode(&message), "quarantine a message without a value @0");
}

#[test]
fn labels_cannot_blow_up_the_memory() {
    let label = "x".repeat(100_000);
    let rows = vec![r#"{"a":"1"}"#; 3_000].join(",");
    let text = format!(r#"{{"type":"INSERT","mysqlType":{{"a":"set('{label}')"}},"data":[{rows}]}}"#);
    assert_eq!(value(&text), "quarantine the message needs more room than it should @0");
}

#[test]
fn more_rows_than_a_message_may_have_are_refused() {
    let rows = vec![r#"{"a":"1"}"#; 100_001].join(",");
    let shown = value(&format!(r#"{{"type":"INSERT","data":[{rows}]}}"#));
    assert!(shown.starts_with("quarantine the message has more than 100000 rows"), "{shown}");
}

#[test]
fn any_bytes_give_one_answer() {
    let text = UPDATE.replace("varchar(9)", "enum('x')").replace("\"d\":\"x\"", "\"d\":\"1\"");
    let bytes = text.as_bytes();
    let mut answers = std::collections::BTreeSet::new();
    let mut look = |bytes: &[u8]| {
        let shown = decode(&Message { value: Some(bytes), ..Message::default() });
        answers.insert(shown.split(' ').next().unwrap_or("").to_owned());
        let _ = std::str::from_utf8(bytes).map(extension);
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
fn its_envelopes_are_told_from_others() {
    assert_eq!(extension(UPDATE), Some(false));
    assert_eq!(extension(&UPDATE.replace("\"id\":2,", "\"_tidb\":{},")), Some(true));
    assert_eq!(extension(r#"{"data":[{"k":"1"}],"type":"INSERT"}"#), Some(false));
    assert_eq!(extension(r#"{"data":null,"isDdl":true,"type":"ALTER","sql":"x"}"#), Some(false));
    for other in [
        r#"{"type":"INSERT","data":{"id":1}}"#,
        r#"{"type":"insert","database":"d","table":"t","ts":1,"data":{"id":1}}"#,
        r#"{"type":"ALTER","data":null}"#,
        r#"{"data":[{"type":"INSERT"}]}"#,
        "[]",
        "",
    ] {
        assert_eq!(extension(other), None, "{other}");
    }
}
