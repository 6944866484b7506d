use super::*;
use crate::change::{Decoded, Header, Message};
use crate::format::plain_json::tests::shown;
use crate::format::{Format, FormatOptions};

fn decode(events: &mut CloudEvents, message: &Message<'_>) -> String {
    let mut out = Vec::new();
    events.decode(&FormatOptions::default(), message, &mut |d| {
        let mut details = String::new();
        if let Decoded::Changes(changes) = d {
            for c in changes {
                let table = c.table.unwrap_or("?");
                let id = c.declared.operation_id;
                details += &format!("{table} {:?} {} {id:?} | ", c.times.source, c.token.is_some());
            }
        }
        out.push(details + &shown(d));
    });
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

fn value(text: &str) -> String {
    decode(&mut CloudEvents::default(), &Message { value: Some(text.as_bytes()), ..Message::default() })
}

fn event(rest: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"7","source":"/s","type":"t"{rest}}}"#)
}

#[test]
fn a_plain_row_takes_time_and_identity_from_its_event() {
    let row = value(&event(r#","time":"1970-01-01T01:00:01+01:00","data":{"id":1,"n":"x"}"#));
    assert_eq!(row, r#"? Some(1000000) false Some(Text("/s 7")) | upsert [id=Int(1) n=Text("x")]"#);
}

#[test]
fn what_is_inside_is_decoded_by_its_own_format() {
    let maxwell = r#"{"database":"d","table":"t","type":"insert","ts":5,"data":{"id":1}}"#;
    let row = value(&event(&format!(r#","time":"1970-01-01T00:00:09Z","data":{maxwell}"#)));
    assert_eq!(row, "d.t Some(5000000) false None | insert [id=Int(1)]");
    let debezium = r#"{"op":"c","after":{"id":1},"source":{"schema":"s","table":"t"}}"#;
    let row = value(&event(&format!(r#","time":"1970-01-01T00:00:09Z","data":{debezium}"#)));
    assert_eq!(row, "s.t Some(9000000) false None | insert [id=Int(1)]");
}

const CONVERTER: &str = r#","iodebeziumop":"u","iodebeziumconnector":"postgresql","iodebeziumname":"n","iodebeziumtsms":"5","iodebeziumschema":"s","iodebeziumtable":"t","iodebeziumlsn":"8","iodebeziumxmin":null,"iodebeziumtxid":"3""#;

#[test]
fn attributes_of_debezium_s_converter_are_its_envelope() {
    let row = value(&event(&format!(r#"{CONVERTER},"data":{{"before":null,"after":{{"id":1}}}}"#)));
    assert_eq!(row, "s.t Some(5000) true None | update [id=Int(1)]");
    let schema = r#"{"fields":[{"field":"after","type":"struct","fields":[{"field":"d","name":"io.debezium.time.Date"}]}]}"#;
    let wrapped = format!(r#"{{"schema":{schema},"payload":{{"before":null,"after":{{"d":1}}}}}}"#);
    let row = value(&event(&format!(r#"{CONVERTER},"data":{wrapped}"#)));
    assert_eq!(row, "s.t Some(5000) true None | update [d=Date(1)]");
}

#[test]
fn rows_of_one_snapshot_share_an_id_and_are_no_repeats() {
    let snapshot = CONVERTER.replace(r#""iodebeziumop":"u""#, r#""iodebeziumop":"r""#);
    let row = value(&event(&format!(r#"{snapshot},"data":{{"before":null,"after":{{"id":1}}}}"#)));
    assert_eq!(row, "s.t Some(5000) false None | read [id=Int(1)]");
}

#[test]
fn data_may_be_text_or_base64() {
    let text = value(&event(r#","data":"{\"id\":1}""#));
    assert_eq!(text, r#"? None false Some(Text("/s 7")) | upsert [id=Int(1)]"#);
    let base64 = value(&event(r#","data_base64":"eyJpZCI6MX0=""#));
    assert_eq!(base64, text);
    assert!(value(&event(r#","data_base64":"!""#)).starts_with("quarantine `data_base64` is not base64"));
    assert!(value(&event(r#","data":1"#)).starts_with("quarantine the data of the event is no object"));
}

#[test]
fn many_events_in_one_array_are_one_message_in_their_order() {
    let (one, two) = (event(r#","data":{"id":1,"n":"a\n"}"#), event(r#","data":{"id":2}"#));
    let rows = value(&format!("[{one}, {}]", two.replace("\"7\"", "\"8\"")));
    assert_eq!(
        rows,
        r#"? None false Some(Text("/s 7")) | ? None false Some(Text("/s 8")) | upsert [id=Int(1) n=Text("a\n")]; upsert [id=Int(2)]"#
    );
    assert_eq!(value("[]"), "ignored empty_batch");
    let bad = value(&format!(r#"[{one},{}]"#, event(r#","data":{"#)));
    assert!(bad.starts_with("quarantine"), "{bad}");
    let bad = value(&format!(r#"[{one},{}]"#, event(r#","data":{}"#)));
    assert!(bad.starts_with("quarantine event 2 of the batch: the object is empty"), "{bad}");
}

#[test]
fn attributes_may_be_headers_of_a_record() {
    let header = |name, value: &'static str| Header { name, value: value.as_bytes() };
    let headers = [
        header("ce_specversion", "1.0"),
        header("ce_id", "7"),
        header("ce_source", "/s"),
        header("ce_type", "io.debezium.connector.postgresql.DataChangeEvent"),
        header("ce_time", "1970-01-01T00:00:01Z"),
        header("ce_iodebeziumop", "c"),
        header("ce_iodebeziumtable", "a\"b"),
    ];
    let message = Message {
        value: Some(br#"{"before":null,"after":{"id":1}}"#),
        headers: &headers,
        ..Message::default()
    };
    assert_eq!(Format::of_record(None, message.value, &headers), Format::CloudEvents);
    let row = decode(&mut CloudEvents::default(), &message);
    assert_eq!(row, "a\"b Some(1000000) false None | insert [id=Int(1)]");
}

#[test]
fn a_record_without_a_value_is_a_tombstone_of_what_is_inside() {
    let mut events = CloudEvents::default();
    let key = Some(br#"{"id":1}"#.as_slice());
    let row = event(r#","data":{"id":1}"#);
    decode(&mut events, &Message { key, value: Some(row.as_bytes()), ..Message::default() });
    let gone = decode(&mut events, &Message { key, ..Message::default() });
    assert_eq!(gone, "? None false None | delete [] key[id=Int(1)]");
}

#[test]
fn events_without_what_they_need_go_to_the_quarantine() {
    assert!(value(r#"{"id":1}"#).starts_with("quarantine the event has no `specversion`"));
    let nested = event(&format!(r#","data":{}"#, event(r#","data":{"id":1}"#)));
    assert!(value(&nested).starts_with("quarantine the data of the event are an event again"));
    let broken = event(r#","data":{"op":"x","after":{"id":1},"source":{}}"#);
    assert!(value(&broken).starts_with("quarantine unknown operation `x`"), "{}", value(&broken));
}

#[test]
fn other_rows_with_an_id_and_a_type_are_no_events() {
    assert!(looks_like(&event("")) && looks_like(&format!("[{}]", event(""))));
    assert!(!looks_like(r#"{"id":"1","source":"a","type":"b"}"#));
    assert!(!looks_like(r#"{"specversion":1,"id":"1","source":"a","type":"b"}"#));
    assert!(!looks_like("[1]") && !looks_like("[]"));
}

#[test]
fn any_bytes_give_an_answer() {
    let good = format!("[{}]", event(&format!(r#"{CONVERTER},"data":{{"after":{{"id":"\u00e9"}}}}"#)));
    let mut events = CloudEvents::default();
    for good in [good.as_bytes(), &good.as_bytes()[1..good.len() - 1]] {
        for at in 0..good.len() {
            decode(&mut events, &Message { value: Some(&good[..at]), ..Message::default() });
            for flip in [1, 2, 32, 128] {
                let mut bad = good.to_vec();
                bad[at] ^= flip;
                decode(&mut events, &Message { value: Some(&bad), ..Message::default() });
            }
        }
    }
}
