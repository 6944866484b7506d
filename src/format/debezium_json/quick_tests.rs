//! One pass over an envelope against reading it object by object: two spaces behind a colon are not what
//! messages look like, so a decoder that sees them takes the other way.

use super::*;
use crate::change::{Decoded, Message};
use crate::format::FormatOptions;
use crate::format::plain_json::tests::shown;
use proptest::prelude::*;

fn row() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        3 => any::<i32>().prop_map(|n| n.to_string()),
        2 => "-?[1-9][0-9]{0,9}\\.[0-9]{1,4}",
        2 => "\"[a-z é]{0,12}\"",
        1 => Just("\"__debezium_unavailable_value\"".to_owned()),
        1 => Just("null".to_owned()),
        1 => "\"a\\\\n\"|1e2|\\{\"x\":1\\}|\\{\"scale\":1,\"value\":\"Gg==\"\\}|\\[1\\]|true",
        1 => "1e|\\{\"x\"",
    ];
    let member = ("[a-d]", value).prop_map(|(name, value)| format!("\"{name}\":{value}"));
    let object = prop::collection::vec(member, 0..5).prop_map(|m| format!("{{{}}}", m.join(",")));
    prop_oneof![6 => object, 1 => Just("null".to_owned()), 1 => Just("[]".to_owned())]
}

fn envelope() -> impl Strategy<Value = String> {
    let source = prop_oneof![
        4 => (1..9u32, 1..9u64).prop_map(|(s, lsn)| format!(
            "{{\"connector\":\"postgresql\",\"name\":\"n\",\"ts_us\":{s},\"schema\":\"s\",\"table\":\"t\",\
             \"txId\":{s},\"lsn\":{lsn},\"sequence\":\"[\\\"1\\\",\\\"2\\\"]\",\"xmin\":null}}"
        )),
        1 => Just("{}".to_owned()),
        1 => Just("null".to_owned()),
        1 => Just("{\"name\":}".to_owned()),
    ];
    let op = prop_oneof![9 => "[crudt]", 1 => "m|x"].prop_map(|op| format!("\"{op}\""));
    let members = (op, source, row(), row(), 0..16u8, any::<u8>());
    members.prop_map(|(op, source, before, after, left_out, order)| {
        let mut members = vec![
            format!("\"before\":{before}"),
            format!("\"after\":{after}"),
            format!("\"source\":{source}"),
            format!("\"op\":{op}"),
            "\"ts_ms\":1767225600211".to_owned(),
        ];
        if left_out < 3 {
            members.remove(left_out as usize);
        }
        if left_out == 3 {
            members.push(format!("\"after\":{after}"));
        }
        let by = order as usize % members.len();
        members.rotate_left(by);
        format!("{{{}}}", members.join(","))
    })
}

fn decode(decoder: &mut DebeziumJson, key: Option<&str>, text: &str) -> String {
    let mut out = String::new();
    let key = key.map(str::as_bytes);
    let message = Message { key, value: Some(text.as_bytes()), topic: Some("n.s.t"), ..Message::default() };
    decoder.decode(&FormatOptions::default(), &message, &mut |d| {
        if let Decoded::Changes([c]) = d {
            let parts = (c.table, c.before, c.fields, c.previous, c.times, c.token);
            out += &format!("{parts:?} {:?} {:?} {} ", c.transaction_id, c.source, c.snapshot);
            let numbered = c.numbered.numbers.len();
            assert!(numbered == 0 || numbered == c.image.len(), "{text}");
        }
        // Where a fault stands differs by the spaces.
        out += shown(d).split(" @").next().unwrap_or("");
    });
    out
}

/// The same message with more spaces than the one pass takes.
fn spread(text: &str) -> String {
    text.replace("\":", "\":  ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn both_ways_give_the_same(
        texts in prop::collection::vec(envelope(), 1..4),
        key in prop::option::of("\\{\"a\":[0-9]\\}"),
        wrapped in any::<bool>(),
    ) {
        let (mut quick, mut other) = (DebeziumJson::default(), DebeziumJson::default());
        for text in &texts {
            let text = if wrapped { format!("{{\"payload\":{text}}}") } else { text.clone() };
            let (one, two) = (decode(&mut quick, key.as_deref(), &text), decode(&mut other, key.as_deref(), &spread(&text)));
            // Text of nested values is kept as compact JSON either way.
            prop_assert_eq!(one, two, "{}", text);
        }
    }
}
