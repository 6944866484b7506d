use super::*;
use crate::change::{Decoded, Message};
use crate::format::json;
use crate::format::options::{ColumnChoice, FormatOptions};
use crate::format::plain_json::PlainJson;
use crate::format::plain_json::tests::shown;
use proptest::prelude::*;

/// What the quick way makes of texts, one after the other; `None` where it refuses.
fn scanned(texts: &[&str]) -> Vec<Option<String>> {
    let mut layout = Layout::default();
    let mut one = |text: &&str| {
        let (mut columns, mut numbers) = (Vec::new(), Vec::new());
        let quick = layout.scan(text, &mut columns, &mut numbers);
        assert!(!quick || columns.len() == numbers.len());
        let names: Vec<&[u8]> = layout.names().collect();
        let right = columns.iter().zip(&numbers).all(|(c, n)| c.name.as_bytes() == names[*n as usize]);
        assert!(!quick || right, "numbers stand for names: {text}");
        quick.then(|| format!("{columns:?}"))
    };
    texts.iter().map(&mut one).collect()
}

#[test]
fn flat_objects_are_read_in_any_order_of_names() {
    let read = scanned(&[
        r#"{"a":1,"bb":"x","ccccccccccc":null,"d":true}"#,
        r#"{"a":2,"d":false}"#,
        r#"{"d":false,"ccccccccccc":-12.50,"bb":"","a":123456789012345678}"#,
        r#"{"a": 1, "e": "é"}"#,
    ]);
    assert!(read.iter().all(Option::is_some), "{read:?}");
    assert!(read[2].as_ref().unwrap().contains("unscaled: -1250, scale: 2"), "{read:?}");
}

#[test]
fn whatever_is_unusual_goes_the_other_way() {
    for text in [
        "",
        "{",
        "{}",
        "[1]",
        "null",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1,}",
        "{\"a\":1}x",
        "{\"a\":1} ",
        " {\"a\":1}",
        "{ \"a\":1}",
        "{\"a\" :1}",
        "{\"a\":1 }",
        "{\"a\":  1}",
        r#"{"a":"\n"}"#,
        r#"{"\u0061":1}"#,
        "{\"a\":\"\t\"}",
        r#"{"a":1,"a":2}"#,
        r#"{"a":1e3}"#,
        r#"{"a":1.5e3}"#,
        r#"{"a":01}"#,
        r#"{"a":-}"#,
        r#"{"a":1.}"#,
        r#"{"a":.5}"#,
        r#"{"a":1234567890123456789}"#,
        r#"{"a":1.123456789012345678}"#,
        r#"{"a":{}}"#,
        r#"{"a":[]}"#,
        r#"{"a":nul}"#,
        r#"{"a":truefalse}"#,
        r#"{"a":+1}"#,
        r#"{"a":"x}"#,
    ] {
        assert_eq!(scanned(&[text]), [None], "{text}");
    }
}

/// A decoder that never goes the quick way: conditions on values close it.
fn slow(options: &FormatOptions) -> FormatOptions {
    FormatOptions { delete_when: Some("_position < 0".parse().unwrap()), ..options.clone() }
}

fn decode(decoder: &mut PlainJson, options: &FormatOptions, text: &str) -> String {
    let mut out = String::new();
    let message = Message { value: Some(text.as_bytes()), ..Message::default() };
    decoder.decode(options, &message, &mut |d| {
        if let Decoded::Changes([c]) = d {
            out += &format!("id {:?} fields {:?} ", c.declared.operation_id, c.fields);
        }
        out += &shown(d);
    });
    out
}

fn text() -> impl Strategy<Value = String> {
    let name = prop_oneof![4 => "[a-f]", 1 => "operation|valid|sys|id", 1 => "[a-z\\\\\"é.]{0,12}"];
    let value = prop_oneof![
        3 => any::<i64>().prop_map(|n| n.to_string()),
        2 => "-?[0-9]{1,20}(\\.[0-9]{0,20})?(e[0-9])?",
        3 => "\"[a-z0-9 é]{0,20}\"",
        1 => "\"[iud]\"",
        1 => "\"([a-z]|\\\\n|\\\\u0041|\\\\x|\u{1}){0,12}\"",
        1 => "null|true|false|nul|\\{\\}|\\[1, 2\\]|\\{\"x\": null\\}|",
        1 => "20[0-9]{2}-01-01T00:00:00Z".prop_map(|t| format!("\"{t}\"")),
    ];
    let member = (name, " {0,2}", value).prop_map(|(n, space, v)| format!("\"{n}\":{space}{v}"));
    let members = prop::collection::vec(member, 0..8);
    let declared = prop::option::of(
        ("[iudx]", any::<u32>(), any::<i32>())
            .prop_map(|(o, v, s)| format!("\"operation\":\"{o}\",\"valid\":{v},\"sys\":{s},\"id\":{v},")),
    );
    (declared, members, ", ?", "\\}|\\} |").prop_map(|(declared, members, comma, end)| {
        format!("{{{}{}{end}", declared.unwrap_or_default(), members.join(&comma))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn both_ways_give_the_same(texts in prop::collection::vec(text(), 1..6), declared in 0..16u8, choice in 0..3u8) {
        let named = |bit: u8, name: &str| (declared >> bit & 1 == 1).then(|| name.to_owned());
        let time = |name: Option<String>| name.map(|n| format!("{n}:us").parse().unwrap());
        let options = FormatOptions {
            op: named(0, "operation"),
            valid: time(named(1, "valid")),
            system: time(named(2, "sys")),
            operation_id: named(3, "id"),
            absent: (choice == 1).then_some(crate::format::options::Absent::Unchanged),
            columns: match choice {
                0 => ColumnChoice::All,
                1 => ColumnChoice::Except(vec!["a".into(), "valid".into()]),
                _ => ColumnChoice::Only(vec!["b".into(), "c".into()]),
            },
            ..FormatOptions::default()
        };
        let (mut quick, mut other) = (PlainJson::default(), PlainJson::default());
        let closed = slow(&options);
        for text in &texts {
            prop_assert_eq!(decode(&mut quick, &options, text), decode(&mut other, &closed, text), "{}", text);
        }
    }

    #[test]
    fn what_the_quick_way_reads_is_json(text in text()) {
        if scanned(&[&text])[0].is_some() {
            let mut members = Vec::new();
            prop_assert!(json::members(&text, &mut members).is_ok(), "{}", text);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
        }
    }
}
