use super::super::plain_json::tests::shown;
use super::*;

fn decode(options: &FormatOptions, header: &str, record: &[u8]) -> String {
    let names = Csv::header(header.as_bytes(), options.delimiter).expect("header");
    let mut out = Vec::new();
    let message = Message { value: Some(record), ..Message::default() };
    Csv::new(names).decode(options, &message, &mut |d| out.push(shown(d)));
    assert_eq!(out.len(), 1, "exactly one answer a record");
    out.remove(0)
}

fn record(text: &str) -> String {
    decode(&FormatOptions::default(), "a,b", text.as_bytes())
}

#[test]
fn fields_are_told_apart() {
    assert_eq!(record("1,x\r\n"), "upsert [a=Int(1) b=Text(\"x\")]");
    assert_eq!(record(",\"\""), "upsert [a=Null b=Text(\"\")]");
    assert_eq!(record("\"a\"\"b\",\"x\r\ny,z\"\n"), "upsert [a=Text(\"a\\\"b\") b=Text(\"x\\r\\ny,z\")]");
    assert_eq!(record("\"5\",NULL"), "upsert [a=Int(5) b=Text(\"NULL\")]");
    assert_eq!(record("x\"y,="), "upsert [a=Text(\"x\\\"y\") b=Text(\"=\")]");
    let options =
        FormatOptions { null_text: Some("\\N".into()), delimiter: b';', ..FormatOptions::default() };
    assert_eq!(decode(&options, "a;b", b"\\N;\"\\N\""), "upsert [a=Null b=Text(\"\\\\N\")]");
}

#[test]
fn broken_records_are_quarantined_in_words() {
    assert_eq!(record("1"), "quarantine the record has 1 field, the header 2 columns @0");
    assert_eq!(record("1,2,3"), "quarantine the record has 3 fields, the header 2 columns @0");
    assert_eq!(record("1,\"x"), "quarantine a quote is not closed @2");
    assert_eq!(record("\"x\"y,1"), "quarantine there is text after a closing quote @3");
    let bad = decode(&FormatOptions::default(), "a,b", b"1,\xff");
    assert_eq!(bad, "quarantine the record is not UTF-8 @2");
}

#[test]
fn headers_are_checked() {
    assert_eq!(Csv::header(b"a,\"b c\",\n", b','), Ok(vec!["a".into(), "b c".into(), "column3".into()]));
    assert_eq!(Csv::header(b"a,a", b','), Err("the header names the column `a` twice".into()));
}

#[test]
fn records_end_at_line_breaks_outside_of_quotes() {
    assert_eq!(record_end(b"a,b\nc", b','), RecordEnd::At(4));
    assert_eq!(record_end(b"a,\"x\ny\"\nc", b','), RecordEnd::At(8));
    assert_eq!(record_end(b"a,\"x\"\"\ny\"\nc", b','), RecordEnd::At(10));
    assert_eq!(record_end(b"a,x\"\nc", b','), RecordEnd::At(5));
    assert_eq!(record_end(b"a,\"x\ny", b','), RecordEnd::Open { quoted: true });
    assert_eq!(record_end(b"a,x", b','), RecordEnd::Open { quoted: false });
}
