use super::super::options::*;
use super::*;
use crate::change::Header;
use asofdb_storage::event::Op;

/// One line a message, for comparing.
pub(crate) fn shown(decoded: Decoded<'_>) -> String {
    match decoded {
        Decoded::Ignored(kind) | Decoded::Repeat(kind) => format!("ignored {kind}"),
        Decoded::Quarantine(f) => format!("quarantine {} @{}", f.reason, f.offset),
        Decoded::Changes(changes) => changes.iter().map(shown_change).collect::<Vec<_>>().join("; "),
    }
}

fn shown_columns(columns: &[Column<'_>]) -> String {
    columns.iter().map(|c| format!("{}={:?}", c.name, c.cell)).collect::<Vec<_>>().join(" ")
}

fn shown_change(c: &Change<'_>) -> String {
    let mut out =
        format!("{}{} [{}]", c.op.word(), if c.full { "" } else { " partial" }, shown_columns(c.image));
    if !c.key.is_empty() {
        out += &format!(" key[{}]", shown_columns(c.key));
    }
    for (name, axis) in
        [("from", c.declared.valid_from), ("to", c.declared.valid_to), ("sys", c.declared.system)]
    {
        if let Some(a) = axis {
            out += &format!(" {name}={} {:?}", a.value, a.axis);
        }
    }
    out
}

fn run(options: &FormatOptions, value: &str) -> String {
    run_message(options, &Message { value: Some(value.as_bytes()), ..Message::default() })
}

fn run_message(options: &FormatOptions, message: &Message<'_>) -> String {
    let mut out = Vec::new();
    PlainJson::default().decode(options, message, &mut |d| out.push(shown(d)));
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

fn plain(value: &str) -> String {
    run(&FormatOptions::default(), value)
}

#[test]
fn numbers_never_pass_through_a_double() {
    let cases = [
        ("0", "Int(0)"),
        ("-0", "Int(0)"),
        ("9007199254740993", "Int(9007199254740993)"),
        ("9223372036854775807", "Int(9223372036854775807)"),
        ("18446744073709551615", "Decimal { unscaled: 18446744073709551615, scale: 0 }"),
        ("1.10", "Decimal { unscaled: 110, scale: 2 }"),
        ("-0.05", "Decimal { unscaled: -5, scale: 2 }"),
        (
            "99999999999999999999999999999999999999",
            "Decimal { unscaled: 99999999999999999999999999999999999999, scale: 0 }",
        ),
        ("999999999999999999999999999999999999999", "Float(1e39)"),
        ("1e3", "Float(1000.0)"),
    ];
    for (number, cell) in cases {
        assert_eq!(plain(&format!("{{\"a\":{number}}}")), format!("upsert [a={cell}]"));
    }
    assert!(plain("{\"a\":1e999}").starts_with("quarantine the number 1e999 is too large @5"));
}

#[test]
fn values_keep_their_text() {
    assert_eq!(
        plain(r#"{"a":"x\n\u00e9\ud83d\ude00","b" : [1, {"c": " d "}] }"#),
        "upsert [a=Text(\"x\\né😀\") b=Json(\"[1,{\\\"c\\\":\\\" d \\\"}]\")]"
    );
    assert_eq!(
        plain("{\"a\":\"2026-01-01\",\"b\":null,\"c\":true,\"d\":\"\\u0000\"}"),
        "upsert [a=Text(\"2026-01-01\") b=Null c=Bool(true) d=Text(\"\\0\")]"
    );
}

#[test]
fn what_is_not_json_is_quarantined_with_its_place() {
    let cases = [
        ("", "the JSON text ends too early @0"),
        ("{}", "the object is empty @0"),
        ("{\"a\":1} x", "there is text after the JSON value @8"),
        ("{\"a\":NaN}", "expected a JSON value @5"),
        ("{\"a\":1,\"a\":2}", "the member `a` comes twice @11"),
        ("{\"a\":1,\"\\u0061\":2}", "the member `a` comes twice @16"),
        ("{\"a\":\"\\ud800\"}", "a lone surrogate in a string @6"),
        ("{\"a\":{\"b\":\"\\udc00x\"}}", "a lone surrogate in a string @11"),
        ("{\"a\":01}", "a number begins with 0 @5"),
        ("{\"a\":1,}", "expected the name of a member in quotes @7"),
        ("{\"a\":[1 2]}", "expected `,` or the end of an object or array @8"),
        ("[1]", "expected a JSON object @0"),
        ("{\"a\":\"\t\"}", "a control character in a string @6"),
        ("{\"a", "a string without its closing quote @3"),
        ("{\"a\":[{]}", "expected the name of a member in quotes @7"),
    ];
    for (text, expected) in cases {
        assert_eq!(plain(text), format!("quarantine {expected}"), "{text}");
    }
    let message = Message { value: Some(b"{\"x\":\"\xff\"}"), ..Message::default() };
    assert_eq!(run_message(&FormatOptions::default(), &message), "quarantine the message is not UTF-8 @6");
}

#[test]
fn nesting_is_bounded_and_never_recursive() {
    let nested = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
    assert!(plain(&nested(128)).starts_with("upsert"));
    assert_eq!(plain(&nested(129)), "quarantine nested more than 128 deep @133");
    assert_eq!(plain(&"[".repeat(1_000_000)), "quarantine nested more than 128 deep @128");
    assert_eq!(plain(&"{\"a\":".repeat(1_000_000)), "quarantine nested more than 128 deep @645");
}

#[test]
fn a_million_names_are_checked_in_linear_time() {
    let mut text = String::from("{");
    (0..200_000).for_each(|i| text += &format!("\"c{i}\":1,"));
    assert_eq!(plain(&format!("{text}\"x\":1}}")).matches("Int(1)").count(), 200_001);
    assert!(plain(&format!("{text}\"c77\":1}}")).starts_with("quarantine the member `c77` comes twice"));
}

#[test]
fn operations_come_from_a_column_or_path() {
    let options = FormatOptions {
        op: Some("meta.op".into()),
        op_map: parse_op_map("x=delete").expect("map"),
        ..FormatOptions::default()
    };
    assert_eq!(
        run(&options, r#"{"a":1,"meta":{"op":"I"}}"#),
        "insert [a=Int(1) meta=Json(\"{\\\"op\\\":\\\"I\\\"}\")]"
    );
    assert!(run(&options, r#"{"a":1,"meta":{"op":"x"}}"#).starts_with("delete"));
    assert!(run(&options, r#"{"a":1,"meta":{"op":"+U"}}"#).starts_with("update ["));
    assert_eq!(run(&options, r#"{"a":1,"meta":{"op":"-U"}}"#), "", "a pre-image is no row event");
    assert!(run(&options, r#"{"a":1,"meta":null}"#).starts_with("upsert"));
    assert!(run(&options, r#"{"a":1,"meta":{"op":"q"}}"#).starts_with("quarantine unknown operation `q`"));
}

#[test]
fn declared_times_have_units_zones_and_types() {
    let case = |column: &str, value: &str| {
        let options =
            FormatOptions { valid: Some(column.parse().expect("column")), ..FormatOptions::default() };
        let shown = run(&options, &format!("{{\"t\":{value}}}"));
        shown.rsplit_once(" from=").map(|(_, t)| t.to_owned()).unwrap_or(shown)
    };
    assert_eq!(case("t", "7"), "7 Integer");
    assert_eq!(case("t:s", "7"), "7000000 Instant");
    assert_eq!(case("t:ms", "-7"), "-7000 Instant");
    assert_eq!(case("t:ns", "-1"), "-1 Instant");
    assert_eq!(case("t:s", "1.5"), "1500000 Instant");
    assert_eq!(case("t", "\"1970-01-01T00:00:01+01:00\""), "-3599000000 Instant");
    assert_eq!(case("t", "\"1970-01-02\""), "86400000000 Instant");
    assert!(case("t", "null").starts_with("quarantine valid time `t` is NULL or missing"));
    assert!(case("u", "1").starts_with("quarantine valid time `u` is NULL or missing"));
    assert!(case("t", "\"soon\"").starts_with("quarantine valid time `t` is `soon`, which is not a time"));
    assert!(case("t:s", "9223372036854775807").starts_with("quarantine valid time `t` is beyond"));
    let berlin = FormatOptions {
        valid: Some("t".parse().expect("column")),
        zone: Some(chrono_tz::Europe::Berlin),
        ..FormatOptions::default()
    };
    assert!(run(&berlin, "{\"t\":\"1970-01-01 01:00\"}").ends_with("from=0 Instant"));
    let twice = run(&berlin, "{\"t\":\"2026-10-25 02:30\"}");
    assert!(twice.ends_with("from=1792888200000000 Instant"), "the earlier of two: {twice}");
    assert!(run(&berlin, "{\"t\":\"2026-03-29 02:30\"}").contains("does not exist in the declared zone"));
}

#[test]
fn authorship_follows_the_options() {
    let message = r#"{"id":1,"a":null,"b":2,"cols":["a"]}"#;
    let with = |change: fn(&mut FormatOptions)| {
        let mut options = FormatOptions::default();
        change(&mut options);
        run(&options, message)
    };
    assert!(with(|o| o.absent = Some(Absent::Unchanged)).starts_with("upsert partial [id=Int(1) a=Null"));
    assert_eq!(
        with(|o| o.columns = "* except (cols)".parse().expect("columns")),
        "upsert [id=Int(1) a=Null b=Int(2)]"
    );
    assert_eq!(
        with(|o| {
            o.columns = "id,a".parse().expect("columns");
            o.ignore_null = Some(ColumnChoice::All);
        }),
        "upsert partial [id=Int(1)]"
    );
    assert_eq!(with(|o| o.columns_to_update = Some("cols".into())), "upsert partial [a=Null]");
    assert!(with(|o| o.delete_when = Some("b = 2".parse().expect("condition"))).starts_with("delete ["));
    assert!(with(|o| o.truncate_when = Some("b > 1".parse().expect("condition"))).starts_with("truncate ["));
    let options = FormatOptions { columns_to_update: Some("cols".into()), ..FormatOptions::default() };
    assert!(run(&options, r#"{"id":1,"cols":"a,id"}"#).starts_with("quarantine `cols` lists the column `a`"));
    assert_eq!(run(&options, r#"{"id":1,"cols":null}"#), "upsert partial []");
}

#[test]
fn records_without_a_value_are_deletes_by_their_key() {
    let options = FormatOptions::default();
    let headers = [Header { name: "h", value: b"v" }];
    let message =
        Message { key: Some(b"{\"ID\": 7}"), headers: &headers, broker_time: Some(5), ..Message::default() };
    assert_eq!(run_message(&options, &message), "delete [] key[ID=Int(7)]");
    let ignored = "ignored null_or_empty_key_tombstone";
    assert_eq!(run_message(&options, &Message { key: Some(b""), ..Message::default() }), ignored);
    assert_eq!(run_message(&options, &Message { key: Some(b"null"), ..Message::default() }), ignored);
    assert_eq!(plain(" null "), ignored);
}

#[test]
fn objects_of_partial_events_write_their_leaves_b5() {
    let message = r#"{"id":1,"d":{"a": null,"b":{"c":null,"n":1.50}},"e":{"f":null},"l":[{"g":1}]}"#;
    let with = |change: &dyn Fn(&mut FormatOptions)| {
        let mut options = FormatOptions::default();
        change(&mut options);
        run(&options, message)
    };
    let whole = r#"upsert [id=Int(1) d=Json("{\"a\":null,\"b\":{\"c\":null,\"n\":1.50}}") "#;
    assert!(with(&|_| {}).starts_with(whole));
    let unchanged = |o: &mut FormatOptions| o.absent = Some(Absent::Unchanged);
    assert_eq!(
        with(&unchanged),
        r#"upsert partial [id=Int(1) d=Leaves("{\"a\":null,\"b\":{\"c\":null,\"n\":1.50}}") e=Leaves("{\"f\":null}") l=Json("[{\"g\":1}]")]"#
    );
    let insert = |o: &mut FormatOptions| {
        unchanged(o);
        o.default_op = Op::Insert;
    };
    assert!(with(&insert).starts_with(&whole.replace("upsert", "insert")));
    let ignored = with(&|o| {
        o.default_op = Op::Insert;
        o.ignore_null = Some("d,e".parse().expect("columns"));
    });
    let leaves = r#"[id=Int(1) d=Leaves("{\"b\":{\"n\":1.50}}") l=Json("[{\"g\":1}]")]"#;
    assert_eq!(ignored, format!("insert partial {leaves}"));
    let some = with(&|o| o.ignore_null = Some("d".parse().expect("columns")));
    assert!(some.ends_with(r#"e=Json("{\"f\":null}") l=Json("[{\"g\":1}]")]"#), "{some}");
    let options = FormatOptions {
        columns_to_update: Some("cols".into()),
        absent: Some(Absent::Unchanged),
        ..FormatOptions::default()
    };
    assert_eq!(
        run(&options, r#"{"id":1,"d":{"a":1},"cols":"d"}"#),
        r#"upsert partial [d=Json("{\"a\":1}")]"#
    );
    let deleted = with(&|o| {
        unchanged(o);
        o.default_op = Op::Delete;
    });
    assert!(!deleted.contains("Leaves"), "{deleted}");
}
