use super::*;
use crate::change::{Header, Message};
use crate::format::options::ColumnChoice;
use crate::format::plain_json::tests::shown;
use crate::format::{Decoder, Format, FormatOptions};
use std::collections::HashMap;
use std::sync::Arc;

/// Schemas by id; 500 cannot be asked for.
#[derive(Debug, Default)]
struct Schemas(HashMap<u64, SchemaText>);

impl SchemaSource for Schemas {
    fn schema(&self, id: u64) -> Result<Arc<SchemaText>, NoSchema> {
        match self.0.get(&id) {
            Some(text) => Ok(Arc::new(text.clone())),
            None if id == 500 => Err(NoSchema::Unreachable("nobody answers".into())),
            None => Err(NoSchema::Unknown(format!("no schema {id}"))),
        }
    }
}

fn options(schemas: &[(u64, &str)]) -> FormatOptions {
    let text = |schema: &str| SchemaText { schema: schema.to_owned(), references: Vec::new() };
    let all = schemas.iter().map(|(id, schema)| (*id, text(schema))).collect();
    FormatOptions { schemas: Some(Arc::new(Schemas(all))), ..FormatOptions::default() }
}

fn run(format: Format, options: &FormatOptions, message: &Message<'_>) -> String {
    let mut decoder = Decoder::new(format, options.clone()).unwrap();
    if let Err(unready) = decoder.ready(message) {
        return format!("unready {}", unready.reason);
    }
    let mut out = Vec::new();
    decoder.decode(message, &mut |d| out.push(shown(d)));
    assert_eq!(out.len(), 1, "exactly one answer a message");
    out.remove(0)
}

/// A message of the schema 1.
fn framed(body: &[u8]) -> Vec<u8> {
    [&[0, 0, 0, 0, 1], body].concat()
}

fn of_value(value: &[u8]) -> Message<'_> {
    Message { value: Some(value), ..Message::default() }
}

/// A record with one field of that type.
fn one(ty: &str, body: &[u8]) -> String {
    one_as(Format::Avro, ty, body)
}

fn one_as(format: Format, ty: &str, body: &[u8]) -> String {
    let schema = match format {
        Format::Avro => format!(r#"{{"type":"record","name":"R","fields":[{{"name":"a","type":{ty}}}]}}"#),
        _ => format!(
            r#"{{"type":"record","name":"E","fields":[{{"name":"op","type":"string"}},{{"name":"after","type":
               {{"type":"record","name":"R","fields":[{{"name":"a","type":{ty}}}]}}}}]}}"#
        ),
    };
    let body = if format == Format::Avro { body.to_vec() } else { [b"\x02c", body].concat() };
    let shown = run(format, &options(&[(1, &schema)]), &of_value(&framed(&body)));
    let inner = shown.split_once(" [a=").and_then(|(_, s)| s.strip_suffix(']'));
    inner.map_or(shown.clone(), str::to_owned)
}

#[test]
fn every_type_has_a_cell() {
    assert_eq!(one(r#""null""#, &[]), "Null");
    assert_eq!(one(r#""boolean""#, &[1]), "Bool(true)");
    assert_eq!(one(r#""int""#, &[1]), "Int(-1)");
    assert_eq!(
        one(r#""long""#, &[0xff; 9].iter().copied().chain([1]).collect::<Vec<_>>()),
        format!("Int({})", i64::MIN)
    );
    assert_eq!(one(r#""float""#, &1.5f32.to_le_bytes()), "Float(1.5)");
    assert_eq!(one(r#""double""#, &f64::NAN.to_le_bytes()), "Float(NaN)");
    assert_eq!(one(r#""string""#, b"\x06a\"b"), r#"Text("a\"b")"#);
    assert_eq!(one(r#""bytes""#, &[4, 0, 255]), "Bytes([0, 255])");
    assert_eq!(one(r#"{"type":"fixed","name":"F","size":2}"#, &[1, 2]), "Bytes([1, 2])");
    assert_eq!(one(r#"{"type":"enum","name":"N","symbols":["x","y"]}"#, &[2]), r#"Text("y")"#);
    assert_eq!(one(r#"["null","string"]"#, &[0]), "Null");
    assert_eq!(one(r#"["string","null"]"#, &[0, 2, b'q']), r#"Text("q")"#);
    assert_eq!(one(r#"["int","string","null"]"#, &[2, 2, b'q']), r#"Text("q")"#);
}

#[test]
fn nested_values_are_json() {
    assert_eq!(one(r#"{"type":"array","items":"int"}"#, &[4, 2, 4, 0]), r#"Json("[1,2]")"#);
    // A block with its size in bytes, then another one.
    assert_eq!(one(r#"{"type":"array","items":"int"}"#, &[3, 4, 2, 4, 2, 6, 0]), r#"Json("[1,2,3]")"#);
    assert_eq!(
        one(r#"{"type":"map","values":["null","bytes"]}"#, b"\x04\x02k\x02\x02\xff\x02l\x00\x00"),
        r#"Json("{\"k\":\"/w==\",\"l\":null}")"#
    );
    let twice = one(r#"{"type":"map","values":"null"}"#, b"\x04\x02k\x02k\x00");
    assert!(twice.starts_with("quarantine a map has the key `k` twice"), "{twice}");
    let record = r#"{"type":"record","name":"S","fields":[{"name":"d","type":{"type":"int","logicalType":"date"}},
        {"name":"n","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},{"name":"s","type":"string"}]}"#;
    assert_eq!(
        one(record, b"\x02\x02\xff\x04\x0a\""),
        r#"Json("{\"d\":\"1970-01-02\",\"n\":-0.01,\"s\":\"\\n\\\"\"}")"#
    );
}

#[test]
fn negative_decimals_are_extended_by_their_sign() {
    let decimal = |bytes: &[u8]| {
        let body = [&[bytes.len() as u8 * 2], bytes].concat();
        one(r#"{"type":"bytes","logicalType":"decimal","precision":40,"scale":2}"#, &body)
    };
    assert_eq!(decimal(&[0xff]), "Decimal { unscaled: -1, scale: 2 }");
    assert_eq!(decimal(&[0xff, 0x80]), "Decimal { unscaled: -128, scale: 2 }");
    assert_eq!(decimal(&[0, 0xff]), "Decimal { unscaled: 255, scale: 2 }");
    assert_eq!(decimal(&[]), "Decimal { unscaled: 0, scale: 2 }");
    let mut wide = vec![1];
    wide.extend([0; 16]);
    assert_eq!(decimal(&wide), "Text(\"3402823669209384634633746074317682114.56\")");
    let connect = r#"{"type":"bytes","connect.name":"org.apache.kafka.connect.data.Decimal","connect.parameters":{"scale":"3"}}"#;
    assert_eq!(one_as(Format::DebeziumAvro, connect, &[2, 0xfe]), "Decimal { unscaled: -2, scale: 3 }");
    let fixed = r#"{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":4,"scale":1}"#;
    assert_eq!(one(fixed, &[0xff, 0xfe]), "Decimal { unscaled: -2, scale: 1 }");
}

#[test]
fn numbers_with_a_scale_of_their_own() {
    let ty = r#"["null",{"type":"record","name":"VariableScaleDecimal","namespace":"io.debezium.data","fields":[
        {"name":"scale","type":"int"},{"name":"value","type":"bytes"}],"connect.name":"io.debezium.data.VariableScaleDecimal"}]"#;
    let shown = |body: &[u8]| one_as(Format::DebeziumAvro, ty, body);
    assert_eq!(shown(&[2, 4, 2, 0xe7]), "Decimal { unscaled: -25, scale: 2 }");
    assert_eq!(shown(&[2, 5, 2, 5]), "Decimal { unscaled: 5000, scale: 0 }");
    assert_eq!(shown(&[0]), "Null");
}

#[test]
fn times_have_the_unit_of_their_name() {
    let named = |base: &str, name: &str, body: &[u8]| {
        let ty = format!(r#"["null",{{"type":"{base}","connect.version":1,"connect.name":"{name}"}}]"#);
        one_as(Format::DebeziumAvro, &ty, &[&[2], body].concat())
    };
    let debezium =
        |base: &str, name: &str, body: &[u8]| named(base, &format!("io.debezium.time.{name}"), body);
    assert_eq!(debezium("int", "Date", &[1]), "Date(-1)");
    assert_eq!(debezium("long", "MicroTime", &[2]), "Text(\"00:00:00.000001\")");
    assert_eq!(debezium("long", "Timestamp", &[1]), "Timestamp(-1000)");
    assert_eq!(debezium("long", "MicroTimestamp", &[1]), "Timestamp(-1)");
    assert_eq!(debezium("long", "NanoTimestamp", &[1]), "TimestampNs(-1)");
    assert_eq!(debezium("string", "ZonedTimestamp", b"\x281970-01-01T00:00:01Z"), "Instant(1000000)");
    assert_eq!(debezium("int", "Year", &[4]), "Int(2)");
    assert_eq!(named("string", "io.debezium.data.Json", b"\x04{}"), "Json(\"{}\")");
    assert_eq!(named("string", "io.debezium.data.Uuid", b"\x04AB"), "Text(\"ab\")");
    assert_eq!(named("bytes", "io.debezium.data.Bits", &[2, 5]), "Bytes([5])");
    let logical = |base: &str, name: &str, body: &[u8]| {
        one(&format!(r#"{{"type":"{base}","logicalType":"{name}"}}"#), body)
    };
    assert_eq!(logical("int", "date", &[2]), "Date(1)");
    assert_eq!(logical("int", "time-millis", &[2]), "Text(\"00:00:00.001\")");
    assert_eq!(logical("long", "timestamp-millis", &[2]), "Instant(1000)");
    assert_eq!(logical("long", "timestamp-micros", &[1]), "Instant(-1)");
    assert_eq!(logical("long", "timestamp-nanos", &[2]), "Text(\"1970-01-01T00:00:00.000000001Z\")");
    assert_eq!(logical("long", "local-timestamp-micros", &[2]), "Timestamp(1)");
    assert_eq!(logical("string", "nothing-known", b"\x02x"), "Text(\"x\")");
    let uuid = r#"{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}"#;
    let bytes: Vec<u8> = (0..16).collect();
    assert_eq!(one(uuid, &bytes), "Text(\"00010203-0405-0607-0809-0a0b0c0d0e0f\")");
}

#[test]
fn a_connect_timestamp_is_an_instant_unless_debezium_sent_it() {
    let ty = r#"{"type":"long","connect.name":"org.apache.kafka.connect.data.Timestamp","logicalType":"timestamp-millis"}"#;
    assert_eq!(one(ty, &[2]), "Instant(1000)");
    assert_eq!(one_as(Format::DebeziumAvro, ty, &[2]), "Timestamp(1000)");
}

#[test]
fn placeholders_are_known_in_every_type_and_only_of_debezium() {
    let text = "__debezium_unavailable_value";
    let body = [&[text.len() as u8 * 2], text.as_bytes()].concat();
    assert_eq!(one_as(Format::DebeziumAvro, r#""string""#, &body), "Unknown");
    assert_eq!(one_as(Format::DebeziumAvro, r#""bytes""#, &body), "Unknown");
    let list = [&[2], body.as_slice(), &[0]].concat();
    assert_eq!(one_as(Format::DebeziumAvro, r#"{"type":"array","items":"string"}"#, &list), "Unknown");
    assert_eq!(
        one_as(
            Format::DebeziumAvro,
            r#"{"type":"array","items":["null","bytes"]}"#,
            &[&[2, 2], body.as_slice(), &[0]].concat()
        ),
        "Unknown"
    );
    assert_eq!(one(r#""string""#, &body), format!("Text(\"{text}\")"));
}

#[test]
fn types_are_found_by_name_where_they_were_defined_before() {
    let two = r#"{"type":"record","name":"x.A","fields":[{"name":"f","type":{"type":"fixed","name":"F","size":1}},{"name":"g","type":"F"},{"name":"h","type":"x.F"}]}"#;
    let shown = run(Format::Avro, &options(&[(1, two)]), &of_value(&framed(&[1, 2, 3])));
    assert_eq!(shown, "upsert [f=Bytes([1]) g=Bytes([2]) h=Bytes([3])]");
    let list = r#"{"type":"record","name":"L","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","L"]}]}"#;
    let shown = run(Format::Avro, &options(&[(1, list)]), &of_value(&framed(&[2, 2, 4, 0])));
    assert_eq!(shown, r#"upsert [v=Int(1) next=Json("{\"v\":2,\"next\":null}")]"#);
    let text = SchemaText {
        schema: r#"{"type":"record","name":"o.R","fields":[{"name":"a","type":"p.F"}]}"#.into(),
        references: vec![r#"{"type":"fixed","name":"p.F","size":1}"#.into()],
    };
    let schemas = Schemas(HashMap::from([(1, text)]));
    let options = FormatOptions { schemas: Some(Arc::new(schemas)), ..FormatOptions::default() };
    assert_eq!(run(Format::Avro, &options, &of_value(&framed(&[7]))), "upsert [a=Bytes([7])]");
}

#[test]
fn a_message_is_read_with_the_schema_it_was_written_with() {
    let old = r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}"#;
    let new =
        r#"{"type":"record","name":"R","fields":[{"name":"b","type":"string"},{"name":"a","type":"int"}]}"#;
    let options = options(&[(1, old), (2, new)]);
    let mut decoder = Decoder::new(Format::Avro, options).unwrap();
    let mut out = Vec::new();
    for value in [&b"\0\0\0\0\x01\x02"[..], b"\0\0\0\0\x02\x02x\x04", b"\0\0\0\0\x01\x06"] {
        decoder.ready(&of_value(value)).unwrap();
        decoder.decode(&of_value(value), &mut |d| out.push(shown(d)));
    }
    assert_eq!(out, ["upsert [a=Int(1)]", r#"upsert [b=Text("x") a=Int(2)]"#, "upsert [a=Int(3)]"]);
}

#[test]
fn a_schema_that_is_not_there_is_asked_for_by_its_number() {
    let int = r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}"#;
    let options = options(&[(1, int), (3, r#"{"type":"record"}"#)]);
    let shown = |value: &[u8]| run(Format::Avro, &options, &of_value(value));
    assert_eq!(shown(&[0, 0, 0, 0, 9, 1]), "quarantine no schema 9 @0");
    assert_eq!(shown(&[0, 0, 0, 0, 3, 1]), "quarantine the schema 3 cannot be used: a type has no name @0");
    assert_eq!(shown(&[0, 0, 0, 1, 0xf4, 1]), "unready nobody answers");
    let bare = run(Format::Avro, &FormatOptions::default(), &of_value(&[0, 0, 0, 0, 1, 2]));
    assert!(bare.starts_with("unready the messages name the schemas"), "{bare}");
    assert_eq!(shown(b"{}"), "quarantine the message does not begin with a zero byte and a schema id @0");
    assert_eq!(shown(&[0, 0, 0]), "quarantine the message ends within its schema id @3");
    assert_eq!(
        shown(&[0, 0, 0, 0, 1]),
        "quarantine 1 bytes should follow and there are 0; the message is cut off or was written with another schema @5"
    );
    assert!(shown(&[0, 0, 0, 0, 1, 2, 4]).starts_with("quarantine 1 bytes are left"));
}

#[test]
fn ids_of_eight_bytes_and_ids_in_headers() {
    let int = r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}"#;
    let mut options = options(&[(1, int)]);
    options.framing = Framing::Apicurio;
    assert_eq!(run(Format::Avro, &options, &of_value(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 2])), "upsert [a=Int(1)]");
    options.framing = Framing::Confluent;
    let headers = [Header { name: "apicurio.value.globalId", value: &[0, 0, 0, 0, 0, 0, 0, 1] }];
    // The body begins with a zero byte by chance.
    let message = Message { value: Some(&[0]), headers: &headers, ..Message::default() };
    assert_eq!(run(Format::Avro, &options, &message), "upsert [a=Int(0)]");
}

const OP: &str = r#"{"type":"record","name":"Op","fields":[{"name":"o","type":"string"},{"name":"k","type":"int"},
    {"name":"v","type":["null","long"],"default":null}]}"#;
const KEY: &str = r#"{"type":"record","name":"K","fields":[{"name":"k","type":"int"}]}"#;

#[test]
fn nulls_that_were_not_sent_and_deletes() {
    let mut options = options(&[(1, OP), (2, KEY)]);
    options.op = Some("o".into());
    options.columns = ColumnChoice::Except(vec!["o".into()]);
    options.ignore_null = Some(ColumnChoice::All);
    let shown = |value: Option<&[u8]>| {
        let message = Message { key: Some(&[0, 0, 0, 0, 2, 2]), value, ..Message::default() };
        run(Format::Avro, &options, &message)
    };
    assert_eq!(
        shown(Some(&framed(b"\x02i\x02\x02\x0a"))),
        "insert partial [k=Int(1) v=Int(5)] key[k=Int(1)]"
    );
    assert_eq!(shown(Some(&framed(b"\x02u\x02\x00"))), "update partial [k=Int(1)] key[k=Int(1)]");
    assert_eq!(shown(Some(&framed(b"\x02d\x02\x00"))), "delete [k=Int(1) v=Null] key[k=Int(1)]");
    assert_eq!(shown(None), "delete [] key[k=Int(1)]");
    let unknown = shown(Some(&framed(b"\x02x\x02\x00")));
    assert!(unknown.starts_with("quarantine unknown operation `x`"), "{unknown}");
    assert_eq!(run(Format::Avro, &options, &Message::default()), "ignored null_or_empty_key_tombstone");
    let text = Message { key: Some(b"plain"), ..Message::default() };
    assert_eq!(run(Format::Avro, &options, &text), "delete [] key[=Text(\"plain\")]");
}

const ENVELOPE: &str = r#"{"type":"record","name":"Envelope","namespace":"t","fields":[
    {"name":"before","type":["null",{"type":"record","name":"Value","fields":[{"name":"k","type":{"type":"int","connect.default":0},"default":0},
        {"name":"s","type":[{"type":"string","connect.default":"d"},"null"],"default":"d"}]}],"default":null},
    {"name":"after","type":["null","Value"],"default":null},
    {"name":"source","type":{"type":"record","name":"Source","fields":[{"name":"connector","type":"string"},{"name":"db","type":"string"},
        {"name":"table","type":"string"},{"name":"ts_ms","type":"long"},{"name":"file","type":"string"},{"name":"pos","type":"long"},
        {"name":"snapshot","type":[{"type":"string","connect.default":"false"},"null"],"default":"false"}]}},
    {"name":"op","type":"string"},{"name":"ts_ms","type":["null","long"],"default":null}]}"#;

/// `db.t` at 1 ms, binlog position 5.
const SOURCE: &[u8] = b"\x0amysql\x04db\x02t\x02\x06b.1\x0a\x02";

fn envelope(before: &[u8], after: &[u8], op: u8) -> Vec<u8> {
    framed(&[before, after, SOURCE, &[2, op, 0]].concat())
}

#[test]
fn an_envelope_is_what_debezium_means() {
    let options = options(&[(1, ENVELOPE), (2, KEY)]);
    let shown = |value: Option<&[u8]>, headers: &[Header<'_>]| {
        let message = Message {
            key: Some(&[0, 0, 0, 0, 2, 14]),
            value,
            headers,
            topic: Some("p.db.t"),
            ..Message::default()
        };
        run(Format::DebeziumAvro, &options, &message)
    };
    let row: &[u8] = b"\x02\x0e\x00\x02x";
    // An optional column with a default has its branches the other way round, and null is null.
    assert_eq!(
        shown(Some(&envelope(&[0], b"\x02\x0e\x02", b'c')), &[]),
        "insert [k=Int(7) s=Null] key[k=Int(7)]"
    );
    assert_eq!(
        shown(Some(&envelope(&[0], row, b'u')), &[]),
        r#"update [k=Int(7) s=Text("x")] key[k=Int(7)]"#
    );
    assert_eq!(
        shown(Some(&envelope(row, &[0], b'd')), &[]),
        r#"delete [k=Int(7) s=Text("x")] key[k=Int(7)]"#
    );
    assert_eq!(shown(Some(&envelope(&[0], &[0], b'd')), &[]), "delete [] key[k=Int(7)]");
    assert_eq!(shown(Some(&envelope(&[0], &[0], b't')), &[]), "truncate [] key[k=Int(7)]");
    assert_eq!(shown(None, &[]), "delete [] key[k=Int(7)]");
    assert_eq!(shown(Some(&envelope(&[0], &[0], b'm')), &[]), "ignored message");
    let missing = shown(Some(&envelope(&[0], &[0], b'u')), &[]);
    assert!(missing.starts_with("quarantine a change of kind update without `after`"), "{missing}");
    let unknown = shown(Some(&envelope(&[0], row, b'z')), &[]);
    assert!(unknown.starts_with("quarantine unknown operation `z`"), "{unknown}");
}

#[test]
fn an_envelope_has_table_times_and_position() {
    let options = options(&[(1, ENVELOPE), (2, KEY)]);
    let value = envelope(&[0], b"\x02\x0e\x02", b'c');
    for old_key in [&b"{\"k\":6}"[..], &[0, 0, 0, 0, 2, 12]] {
        let headers = [Header { name: "__debezium.oldkey", value: old_key }];
        let message = Message { value: Some(&value), headers: &headers, ..Message::default() };
        let mut decoder = Decoder::new(Format::DebeziumAvro, options.clone()).unwrap();
        decoder.ready(&message).unwrap();
        let mut seen = 0;
        decoder.decode(&message, &mut |decoded| {
            let crate::change::Decoded::Changes([c]) = decoded else { panic!("{decoded:?}") };
            assert_eq!((c.table, c.times.source, c.snapshot), (Some("db.t"), Some(1_000), false));
            assert_eq!(c.token.map(|t| t.position.len()), Some(24));
            assert_eq!(format!("{:?}", c.previous.unwrap().key[0].cell), "Int(6)");
            assert_eq!(c.numbered.numbers.len(), c.image.len());
            seen += 1;
        });
        assert_eq!(seen, 1);
    }
}

#[test]
fn messages_are_told_apart_by_their_schemas_not_by_a_zero_byte() {
    let options = options(&[(1, ENVELOPE), (2, OP)]);
    let found = |options: &FormatOptions, value: &[u8]| framed_format(options, &of_value(value));
    assert_eq!(found(&options, &envelope(&[0], &[0], b'd')), Some(Format::DebeziumAvro));
    assert_eq!(found(&options, &[0, 0, 0, 0, 2, 1]), Some(Format::Avro));
    assert_eq!(found(&options, b"{\"op\":\"c\"}"), None);
    // Under a JSON schema; and bytes whose schema nobody knows.
    assert_eq!(found(&options, b"\0\0\0\0\x09{\"a\":1}"), None);
    assert_eq!(found(&FormatOptions::default(), &[0, 0, 0, 0, 2, 1]), Some(Format::Avro));
}

#[test]
fn hostile_bytes_are_changes_or_faults_and_end() {
    let nested = r#"{"type":"record","name":"N","fields":[{"name":"m","type":{"type":"map","values":{"type":"array","items":["null","N","string"]}}},
        {"name":"e","type":{"type":"enum","name":"E","symbols":["x"]}}]}"#;
    let options = options(&[(1, ENVELOPE), (2, KEY), (3, nested)]);
    let samples = [
        envelope(b"\x02\x0e\x00\x02x", b"\x02\x0e\x00\x02x", b'u'),
        b"\0\0\0\0\x03\x02\x02k\x04\x02\x00\x00\x04\x02s\x00\x00\x00".to_vec(),
    ];
    for format in [Format::Avro, Format::DebeziumAvro] {
        for sample in &samples {
            for at in 0..sample.len() {
                run(format, &options, &of_value(&sample[..at]));
                for bit in 0..8 {
                    let mut bytes = sample.clone();
                    bytes[at] ^= 1 << bit;
                    run(format, &options, &of_value(&bytes));
                }
            }
        }
    }
}

#[test]
fn values_without_bytes_and_endless_nesting_come_to_an_end() {
    let many = one(r#"{"type":"array","items":"null"}"#, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    assert!(many.starts_with("quarantine the message has more values"), "{many}");
    let list = r#"{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}"#;
    let deep = run(Format::Avro, &options(&[(1, list)]), &of_value(&framed(&[2; 300])));
    assert!(deep.starts_with("quarantine values are nested more than 100 deep"), "{deep}");
    let own = r#"{"type":"record","name":"L","fields":[{"name":"next","type":"L"}]}"#;
    let endless = run(Format::Avro, &options(&[(1, own)]), &of_value(&framed(&[])));
    assert!(endless.starts_with("quarantine values are nested"), "{endless}");
    let name = "n".repeat(10_000);
    let ty = format!(
        r#"{{"type":"array","items":{{"type":"record","name":"R2","fields":[{{"name":"{name}","type":"null"}}]}}}}"#
    );
    // 80,000 items of 10,000 bytes of text each.
    let large = one(&ty, &[0x80, 0xe2, 0x09, 0]);
    assert!(
        large.starts_with("quarantine the nested values of the message are too large"),
        "{}",
        &large[..80]
    );
}

#[test]
fn what_is_no_schema_is_said() {
    for (schema, what) in [
        ("{", "it is no JSON"),
        ("7", "7 is no type"),
        (r#"{"type":"array"}"#, "has no `items`"),
        (r#""Missing""#, "refers to a type Missing"),
        (
            r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}"#,
            "two fields a",
        ),
        (
            r#"[{"type":"fixed","name":"F","size":1},{"type":"fixed","name":"F","size":2}]"#,
            "defines the type F twice",
        ),
    ] {
        let shown = run(Format::Avro, &options(&[(1, schema)]), &of_value(&framed(&[0])));
        assert!(shown.contains(what), "{schema}: {shown}");
    }
    let int = run(Format::Avro, &options(&[(1, "\"int\"")]), &of_value(&framed(&[0])));
    assert!(int.starts_with("quarantine the message is no record"), "{int}");
}
