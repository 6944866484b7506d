use super::{DmsFile, header};
use crate::change::{Change, Decoded, Message};
use crate::format::plain_json::tests::shown;
use crate::format::{Csv, FormatOptions};
use asofdb_storage::timeline::natural_cmp;

const LOAD: &str = "bucket/retail/customers/LOAD0000000A.csv";
const CHANGES: &str = "bucket/retail/customers/20260101-001000123.csv";

fn decode(options: &FormatOptions, path: &str, header: &str, record: &str) -> Vec<String> {
    let mut csv = Csv::new(Csv::header(header.as_bytes(), b',').expect("header")).of_dms(path);
    let message = Message { value: Some(record.as_bytes()), ..Message::default() };
    let mut out = Vec::new();
    csv.decode(options, &message, &mut |decoded| {
        if let Decoded::Changes([change]) = decoded {
            out.push(details(change));
        }
        out.push(shown(decoded));
    });
    out
}

fn details(c: &Change<'_>) -> String {
    let before: Vec<String> = c.before.iter().map(|c| format!("{}={:?}", c.name, c.cell)).collect();
    let table = c.table.unwrap_or("?");
    format!("{table} {:?} {:?} {}", c.times.source, c.times.connector, before.join(" "))
}

fn plain(path: &str, header: &str, record: &str) -> Vec<String> {
    decode(&FormatOptions::default(), path, header, record)
}

#[test]
fn a_full_load_has_no_operation_and_no_commit_time() {
    let row = plain(LOAD, "dmsTimestamp,id,city", "1970-01-01 00:00:01.000001,7,");
    assert_eq!(row, ["retail.customers None Some(1000001) ", "read [id=Int(7) city=Null]"]);
    // `IncludeOpForFullLoad`
    let row = plain(LOAD, "Op,id", "I,7");
    assert_eq!(row[1], "read [id=Int(7)]");
}

#[test]
fn changes_have_an_operation_and_a_commit_time() {
    let row = plain(CHANGES, "Op,dmsTimestamp,id", "U,1970-01-01 00:00:01.000000,7");
    assert_eq!(row, ["retail.customers Some(1000000) None ", "update [id=Int(7)]"]);
    assert_eq!(plain(CHANGES, "Op,id", "D,7")[1], "delete [id=Int(7)]");
    assert_eq!(plain(CHANGES, "id,n", "7,x")[1], r#"insert [id=Int(7) n=Text("x")]"#);
    assert!(plain(CHANGES, "Op,id", "X,7")[0].starts_with("quarantine unknown operation `X` in column `Op`"));
}

#[test]
fn a_column_of_the_table_may_be_called_op() {
    assert_eq!(plain(CHANGES, "id,Op", "7,D")[1], r#"insert [id=Int(7) Op=Text("D")]"#);
}

#[test]
fn columns_of_the_old_row_are_no_columns() {
    let row = plain(CHANGES, "Op,id,n,BI_id,BI_other", "U,8,x,7,z");
    assert_eq!(row[0], "retail.customers None None id=Int(7)");
    assert_eq!(row[1], r#"update [id=Int(8) n=Text("x") BI_other=Text("z")]"#);
}

#[test]
fn another_column_of_times_can_be_declared() {
    let options = FormatOptions { valid: Some("ts".parse().expect("column")), ..FormatOptions::default() };
    let row = decode(&options, CHANGES, "Op,ts,id", "I,1970-01-01 00:00:01,7");
    assert_eq!(row[1], r#"insert [ts=Text("1970-01-01 00:00:01") id=Int(7)] from=1000000 Instant"#);
}

#[test]
fn folders_name_the_table() {
    let table = |path: &str| DmsFile::of_path(path);
    assert_eq!(table("a/b/LOAD00000001.csv"), table("/x/a/b/LOAD00000002.csv.gz"));
    assert_eq!(table("a/b/2026/01/05/x.csv"), table("./a/b/2026-01-05/x.csv"));
    assert_ne!(table("b/x.csv"), table("a/b/x.csv"));
    assert_eq!(table("x.csv"), table("../x.csv"));
    assert_ne!(table("a/b/LOAD00000001.csv"), table("a/b/LOADED.csv"));
}

#[test]
fn the_full_load_comes_first_in_hexadecimal_order() {
    let mut files = [
        "t/20260101-001000123.csv",
        "t/2026/01/01/20260101-000000000.csv",
        "t/LOAD0000000A.csv",
        "t/LOAD00000010.csv",
        "t/LOADED.csv",
        "t/LOAD00000009.csv",
        "s/20260101-001000123.csv",
    ];
    files.sort_by(|a, b| natural_cmp(a, b));
    assert_eq!(
        files,
        [
            "s/20260101-001000123.csv",
            "t/LOAD00000009.csv",
            "t/LOAD0000000A.csv",
            "t/LOAD00000010.csv",
            "t/2026/01/01/20260101-000000000.csv",
            "t/20260101-001000123.csv",
            "t/LOADED.csv",
        ]
    );
    assert_ne!(natural_cmp("LOAD0000000A", "LOAD0000000a"), std::cmp::Ordering::Equal);
}

#[test]
fn files_without_a_header_take_the_names_that_are_given() {
    let texts = |fields: &[&str]| fields.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
    let names = texts(&["id", "city"]);
    let found = |fields: &[&str]| header(&texts(fields), Some(&names)).map(|h| h.map(|h| h.join(",")));
    assert_eq!(found(&["Op", "dmsTimestamp", "id", "city"]), Ok(None));
    assert_eq!(found(&["id", "city"]), Ok(None));
    assert_eq!(found(&["7", "Oslo"]), Ok(Some("id,city".into())));
    assert_eq!(found(&["7", "city"]), Ok(Some("id,city".into())));
    assert_eq!(found(&["U", "7", "Oslo"]), Ok(Some("Op,id,city".into())));
    assert_eq!(found(&["2026-01-01 00:00:00", "7", "Oslo"]), Ok(Some("dmsTimestamp,id,city".into())));
    let all = Ok(Some("Op,dmsTimestamp,id,city".into()));
    assert_eq!(found(&["D", "2026-01-01 00:00:00", "7", "Oslo"]), all);
    assert!(found(&["7"]).is_err() && found(&["7", "a", "b", "c"]).is_err());
    assert!(header(&texts(&["U", "7"]), None).is_err_and(|e| e.contains("--header")));
    assert_eq!(header(&texts(&["id", "city"]), None), Ok(None));
}
