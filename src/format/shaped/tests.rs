use super::{Shape, ShapedJson};
use crate::change::{Decoded, Message};
use crate::format::plain_json::tests::shown;
use crate::format::{Csv, Format, FormatOptions, options::parse_op_map};

fn row_with(shape: Shape, options: &FormatOptions, text: &str) -> String {
    let mut out = Vec::new();
    let message = Message { value: Some(text.as_bytes()), ..Message::default() };
    ShapedJson::new(shape).decode(options, &message, &mut |d| out.push(described(d)));
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

fn described(decoded: Decoded<'_>) -> String {
    let mut out = String::new();
    if let Decoded::Changes(changes) = decoded {
        for c in changes {
            let token = c.token.map(|t| t.position.iter().map(|b| format!("{b:02x}")).collect::<String>());
            out += &format!("{:?} {} {:?} | ", c.times.source, token.unwrap_or_default(), c.declared.ties);
        }
    }
    out + &shown(decoded)
}

fn row(shape: Shape, text: &str) -> String {
    row_with(shape, &FormatOptions::default(), text)
}

fn feed(kind: &str, version: i64) -> String {
    format!(
        r#"{{"id":1,"_change_type":"{kind}","_commit_version":{version},"_commit_timestamp":"1970-01-01T00:00:01Z"}}"#
    )
}

#[test]
fn inside_a_version_deletes_come_before_inserts() {
    let row = |kind| row(Shape::DeltaCdf, &feed(kind, 3));
    let gone = "Some(1000000) 800000000000000300 [Int(3), Int(0)] | delete [id=Int(1)]";
    assert_eq!(row("delete"), gone);
    let new = "Some(1000000) 800000000000000301 [Int(3), Int(1)] | insert [id=Int(1)]";
    assert_eq!(row("insert"), new);
    assert!(row("update_postimage").ends_with("| update [id=Int(1)]"));
}

#[test]
fn an_image_before_an_update_is_no_row_event_unless_it_is_said_to_be_one() {
    assert_eq!(row(Shape::DeltaCdf, &feed("update_preimage", 3)), "");
    let op_map = parse_op_map("update_preimage=delete").expect("map");
    let options = FormatOptions { op_map, ..FormatOptions::default() };
    let gone = row_with(Shape::DeltaCdf, &options, &feed("update_preimage", 3));
    assert!(gone.ends_with("[Int(3), Int(0)] | delete [id=Int(1)]"), "{gone}");
}

#[test]
fn rows_of_no_version_or_kind_go_to_the_quarantine() {
    assert!(row(Shape::DeltaCdf, &feed("insert", -1)).starts_with("quarantine there is no version"));
    assert!(row(Shape::DeltaCdf, &feed("x", 1)).starts_with("quarantine unknown kind of change `x`"));
    assert!(row(Shape::DeltaCdf, r#"{"id":1}"#).starts_with("quarantine there is no kind of change"));
    assert_eq!(row(Shape::DeltaCdf, "null"), "ignored null_or_empty_key_tombstone");
}

#[test]
fn deletes_of_airbyte_are_marked_by_their_time() {
    let text = r#"{"_airbyte_raw_id":"r","_airbyte_extracted_at":"1970-01-01T00:00:09Z","_ab_cdc_lsn":5,"_ab_cdc_updated_at":"1970-01-01T00:00:01Z","_ab_cdc_deleted_at":null,"id":1,"n":null}"#;
    let position = "00000000000000000000000000000005";
    assert_eq!(
        row(Shape::Airbyte, text),
        format!("Some(1000000) {position} [Int(5)] | upsert [id=Int(1) n=Null]")
    );
    let gone = text.replace("deleted_at\":null", "deleted_at\":\"1970-01-01T00:00:01Z\"");
    assert!(row(Shape::Airbyte, &gone).ends_with("| delete [id=Int(1) n=Null]"));
}

#[test]
fn raw_rows_of_airbyte_are_one_document_and_places_in_the_binlog_are_numbers() {
    let text = r#"{"_airbyte_raw_id":"r","_airbyte_extracted_at":"1970-01-01T00:00:09Z","_airbyte_data":{"id":1,"_ab_cdc_log_file":"b.000012","_ab_cdc_log_pos":4,"_ab_cdc_cursor":7}}"#;
    assert_eq!(
        row(Shape::Airbyte, text),
        "None 000000000000000c8000000000000004 [Int(7)] | upsert [id=Int(1)]"
    );
    let bad = text.replace("{\"id\":1", "[{\"id\":1").replace(":7}", ":7}]");
    assert!(row(Shape::Airbyte, &bad).starts_with("quarantine `_airbyte_data` is no row"));
}

fn record(options: &FormatOptions, header: &str, record: &str) -> String {
    let header = Csv::header(header.as_bytes(), b',').expect("header");
    let mut csv = Csv::new(header).shaped(Some(Shape::Fivetran));
    let message = Message { value: Some(record.as_bytes()), ..Message::default() };
    let mut out = String::new();
    csv.decode(options, &message, &mut |d| out += &described(d));
    out
}

#[test]
fn the_mark_of_fivetran_is_written_in_several_ways() {
    let row = |mark: &str| {
        let text = format!("h,1,{mark},1970-01-01T00:00:01Z");
        record(&FormatOptions::default(), "_fivetran_id,id,_fivetran_deleted,_fivetran_synced", &text)
    };
    for mark in ["true", "TRUE", "t", "1", "Y"] {
        assert_eq!(row(mark), "None  [] | delete [id=Int(1)]", "{mark}");
    }
    for mark in ["false", "FALSE", "f", "0", ""] {
        assert_eq!(row(mark), "None  [] | upsert [id=Int(1)]", "{mark}");
    }
    assert!(row("perhaps").starts_with("quarantine `_fivetran_deleted`"));
}

#[test]
fn a_version_of_fivetran_ends_where_its_end_says() {
    let row = |start: &str, end: &str| {
        let text = format!("1,false,1970-01-01T00:00:00.{start}Z,{end},1970-01-01T01:00:00Z");
        let header = "id,_fivetran_active,_fivetran_start,_fivetran_end,_fivetran_synced";
        record(&FormatOptions::default(), header, &text)
    };
    assert_eq!(
        row("001", "1970-01-01T00:00:00.004Z"),
        "Some(1000) 80000000000003e8 [Int(1)] | Some(5000) 8000000000001388 [Int(0)] | upsert [id=Int(1)]; delete [id=Int(1)]"
    );
    assert!(row("001", "9999-12-31T23:59:59.999Z").ends_with("| upsert [id=Int(1)]"));
}

#[test]
fn shapes_are_told_by_the_columns_that_tools_keep_for_themselves() {
    assert_eq!(Shape::of_message(&feed("insert", 1)), Some(Shape::DeltaCdf));
    assert_eq!(Shape::of_message(&feed("added", 1)), None);
    assert_eq!(Shape::of_message(r#"{"id":1,"_commit_version":1}"#), None);
    assert_eq!(Format::of_csv("id,\"_fivetran_deleted\",_fivetran_synced\r"), Format::Fivetran);
    assert_eq!(Format::of_csv("id,deleted,synced"), Format::Csv);
}

#[test]
fn any_bytes_give_an_answer() {
    let good = br#"{"_airbyte_raw_id":"r","_airbyte_extracted_at":"1970-01-01T00:00:09Z","_airbyte_data":{"id":"\u00e9","_ab_cdc_lsn":7},"_change_type":"insert","_commit_version":1,"_fivetran_start":"2020-01-01T00:00:00Z","_fivetran_end":"2020-01-01T00:00:00Z"}"#;
    for shape in [Shape::DeltaCdf, Shape::Airbyte, Shape::Fivetran] {
        let mut rows = ShapedJson::new(shape);
        let mut answers = 0;
        for at in 0..good.len() {
            for flip in [0, 1, 2, 32, 128] {
                let mut bad = good.to_vec();
                bad[at] ^= flip;
                let bad = if flip == 0 { &good[..at] } else { bad.as_slice() };
                let message = Message { value: Some(bad), ..Message::default() };
                rows.decode(&FormatOptions::default(), &message, &mut |_| answers += 1);
            }
        }
        assert_eq!(answers, good.len() * 5);
    }
}
