use super::*;
use crate::change::Decoded;
use crate::format::options::parse_op_map;
use crate::format::plain_json::tests::shown;

fn message(text: &str) -> Message<'_> {
    Message { value: Some(text.as_bytes()), ..Message::default() }
}

fn with(options: &FormatOptions, text: &str) -> String {
    let mut out = Vec::new();
    Striim::default().decode(options, &message(text), &mut |d| out.push(shown(d)));
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

/// An operation of that name with these images.
fn operation(name: &str, images: &str) -> String {
    with(
        &FormatOptions::default(),
        &format!(r#"{{"metadata":{{"OperationName":"{name}","TableName":"QA.T"}},{images}}}"#),
    )
}

fn change<T>(metadata: &str, rest: &str, take: impl Fn(&Change<'_>) -> T) -> T {
    let text = format!(
        r#"{{"metadata":{{"OperationName":"UPDATE","TableName":"QA.T"{metadata}}},"data":{{"ID":2,"A":1}}{rest}}}"#
    );
    let mut out = None;
    Striim::default().decode(&FormatOptions::default(), &message(&text), &mut |d| {
        let Decoded::Changes([change]) = d else { panic!("{d:?}") };
        out = Some(take(change));
    });
    out.expect("a change")
}

#[test]
fn operations_write_the_image_that_they_name() {
    assert_eq!(operation("INSERT", r#""data":{"ID":1,"A":null},"before":null"#), "insert [ID=Int(1) A=Null]");
    assert_eq!(operation("UPDATE", r#""data":{"ID":1}"#), "update partial [ID=Int(1)]");
    assert_eq!(operation("DELETE", r#""data":{"ID":1,"A":2},"before":null"#), "delete [ID=Int(1) A=Int(2)]");
    assert_eq!(operation("DELETE", r#""data":null,"before":{"ID":1}"#), "delete [ID=Int(1)]");
    assert_eq!(operation("delete", r#""data":{"ID":3},"before":{"ID":1}"#), "delete [ID=Int(3)]");
    assert_eq!(operation("TRUNCATE", r#""data":null"#), "truncate []");
}

#[test]
fn an_old_row_has_what_did_not_change() {
    let columns = |rest: &str| {
        change("", rest, |c| c.before.iter().map(|c| format!("{}={:?}", c.name, c.cell)).collect::<Vec<_>>())
    };
    assert_eq!(columns(r#","before":{"ID":1}"#), ["ID=Int(1)", "A=Int(1)"]);
    assert!(columns(r#","before":null"#).is_empty() && columns("").is_empty());
}

#[test]
fn metadata_says_when_and_where() {
    let times = |metadata: &str| change(metadata, "", |c| c.times.source);
    assert_eq!(times(r#","CommitTimestamp":1500"#), Some(1_500_000));
    assert_eq!(times(r#","CommitTimestamp":"1500""#), Some(1_500_000));
    assert_eq!(times(r#","CommitTimestamp":"1970-01-01T00:00:02Z""#), Some(2_000_000));
    assert_eq!(times(r#","CommitTimestamp":"1970-01-01 00:00:03""#), Some(3_000_000));
    for none in [
        "",
        r#","CommitTimestamp":0"#,
        r#","CommitTimestamp":9223372036854775807"#,
        r#","CommitTimestamp":"soon""#,
    ] {
        assert_eq!(times(none), None, "{none}");
    }
    let token = |metadata: &str| {
        change(metadata, "", |c| c.token.map(|t| (t.server.to_owned(), t.position.to_vec())))
    };
    let at = |n: u128| Some(("striim".to_owned(), n.to_be_bytes().to_vec()));
    assert_eq!(token(r#","SCN":"900719925474099301""#), at(900_719_925_474_099_301));
    assert_eq!(token(r#","SCN":17"#), at(17));
    for none in ["", r#","SCN":"""#, r#","SCN":0"#, r#","SCN":"0/16B""#, r#","LSN":"17""#] {
        assert_eq!(token(none), None, "{none}");
    }
    let who = change(r#","TxnID":"7.1""#, "", |c| {
        (c.table.map(str::to_owned), c.source.schema.map(str::to_owned), c.transaction_id.map(str::to_owned))
    });
    assert_eq!(who, (Some("QA.T".into()), Some("QA".into()), Some("7.1".into())));
}

#[test]
fn values_without_names_take_them_from_the_header() {
    let text = r#"{"metadata":{"OperationName":"INSERT","TableName":"T"},"data":[1,"x",null]}"#;
    assert!(with(&FormatOptions::default(), text).contains("`data` has values without names"));
    let header = |names: &[&str]| FormatOptions {
        header: Some(names.iter().map(|n| (*n).to_owned()).collect()),
        ..FormatOptions::default()
    };
    assert_eq!(with(&header(&["id", "a", "b"]), text), r#"insert [id=Int(1) a=Text("x") b=Null]"#);
    assert!(with(&header(&["id", "a"]), text).contains("`data` has 3 values for 2 columns"));
}

#[test]
fn what_is_no_row_is_ignored_and_what_is_unknown_a_fault() {
    assert_eq!(operation("COMMIT", r#""data":null"#), "ignored transaction");
    assert_eq!(operation("ALTER", r#""data":null"#), "ignored schema_change");
    assert!(operation("MERGE", r#""data":{"ID":1}"#).contains("unknown operation `MERGE`"));
    let mapped = FormatOptions { op_map: parse_op_map("MERGE=upsert").unwrap(), ..FormatOptions::default() };
    let text = r#"{"metadata":{"OperationName":"MERGE","TableName":"T"},"data":{"ID":1}}"#;
    assert_eq!(with(&mapped, text), "upsert [ID=Int(1)]");
    for (text, reason) in [
        ("{}", "no object `metadata`"),
        (r#"{"metadata":[],"data":{}}"#, "no object `metadata`"),
        (r#"{"metadata":{"TableName":"T"},"data":{}}"#, "there is no operation"),
        (r#"{"metadata":{"OperationName":"INSERT"},"data":{"ID":1}}"#, "names no table"),
        (r#"{"metadata":{"OperationName":"INSERT","TableName":"T"},"data":{}}"#, "without columns"),
        (r#"{"metadata":{"OperationName":"INSERT","TableName":"T"},"data":7}"#, "`data` is no object"),
        (r#"{"metadata":{"#, "expected the name of a member"),
    ] {
        let found = with(&FormatOptions::default(), text);
        assert!(found.contains(reason), "{text}: {found}");
    }
    assert_eq!(with(&FormatOptions::default(), "null"), "ignored null_or_empty_key_tombstone");
}

#[test]
fn it_is_known_by_its_metadata() {
    assert!(looks_like(r#"{"metadata":{"OperationName":"INSERT"},"data":{}}"#));
    for other in [
        r#"{"metadata":{"operation":"insert","record-type":"data"},"data":{}}"#,
        r#"{"metadata":{"OperationName":"INSERT"}}"#,
        r#"{"metadata":{"OperationName":1},"data":{}}"#,
        r#"{"metadata":["OperationName"],"data":{}}"#,
        "{",
    ] {
        assert!(!looks_like(other), "{other}");
    }
}
