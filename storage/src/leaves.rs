//! JSON objects that are written leaf by leaf (rule B5).
//!
//! Objects are taken apart into members whose values stay slices of their text, so that numbers and
//! strings keep their spelling. Arrays and scalars are one value; objects that are nested deeper than
//! [`DEPTH_MAX`] are one value too.

use std::borrow::Cow;
use std::collections::HashMap;

/// How deep objects are taken apart.
pub const DEPTH_MAX: u32 = 128;

/// Members from which on an object finds them by a map.
const MAPPED_MEMBERS: usize = 16;

/// The object `below` with the leaves that the object `written` names: members that both have and
/// that are objects in both are merged, others are those of `written`. Members keep the order of
/// their first appearance, and of members of one name the last counts. Where `below` is no object,
/// or either is no JSON, the answer is `written`.
pub fn merge_leaves(below: &str, written: &str) -> String {
    match (Object::parse(below), Object::parse(written)) {
        (Some(mut object), Some(newer)) => {
            object.merge(newer);
            object.text()
        }
        _ => written.to_owned(),
    }
}

/// The object without its leaves that are NULL, and without the objects that hold no others; `None`
/// if nothing is left. An object without members stays. What is no object is answered as it is.
pub fn leaves_without_nulls(text: &str) -> Option<String> {
    let Some(mut object) = Object::parse(text) else { return Some(text.to_owned()) };
    object.drop_nulls().then(|| object.text())
}

/// Whether a text is a JSON object as far as its first character tells.
pub fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

enum Node<'a> {
    Object(Object<'a>),
    /// Anything else, as it stands in the text.
    Value(&'a str),
}

struct Member<'a> {
    /// The name between quotes, as it stands in the text.
    name: &'a str,
    value: Node<'a>,
}

#[derive(Default)]
struct Object<'a> {
    members: Vec<Member<'a>>,
    /// Places by name, once there are many.
    places: HashMap<Cow<'a, str>, usize>,
}

/// The name without escapes: two spellings of one name are one member.
fn plain(name: &str) -> Cow<'_, str> {
    if !name.contains('\\') {
        return Cow::Borrowed(&name[1..name.len() - 1]);
    }
    serde_json::from_str::<String>(name).map_or(Cow::Borrowed(name), Cow::Owned)
}

impl<'a> Object<'a> {
    fn parse(text: &'a str) -> Option<Object<'a>> {
        let mut scanner = Scanner { text, at: 0 };
        scanner.space();
        let object = scanner.object(1)?;
        scanner.space();
        (scanner.at == text.len()).then_some(object)
    }

    fn place(&mut self, name: &'a str) -> Option<usize> {
        let name = plain(name);
        if self.members.len() < MAPPED_MEMBERS {
            return self.members.iter().position(|m| plain(m.name) == name);
        }
        if self.places.is_empty() {
            self.places = self.members.iter().enumerate().map(|(i, m)| (plain(m.name), i)).collect();
        }
        self.places.get(&name).copied()
    }

    fn set(&mut self, member: Member<'a>) {
        match self.place(member.name) {
            Some(at) => self.members[at].value = member.value,
            None => self.push(member),
        }
    }

    fn push(&mut self, member: Member<'a>) {
        if !self.places.is_empty() {
            self.places.insert(plain(member.name), self.members.len());
        }
        self.members.push(member);
    }

    fn merge(&mut self, newer: Object<'a>) {
        for member in newer.members {
            match self.place(member.name) {
                None => self.push(member),
                Some(at) => match (&mut self.members[at].value, member.value) {
                    (Node::Object(below), Node::Object(written)) => below.merge(written),
                    (value, written) => *value = written,
                },
            }
        }
    }

    /// Whether anything is left, or there was nothing.
    fn drop_nulls(&mut self) -> bool {
        let empty = self.members.is_empty();
        self.members.retain_mut(|m| match &mut m.value {
            Node::Object(inner) => inner.drop_nulls(),
            Node::Value(text) => *text != "null",
        });
        self.places.clear();
        empty || !self.members.is_empty()
    }

    fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        out.push('{');
        for (i, member) in self.members.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            out.push_str(member.name);
            out.push(':');
            match &member.value {
                Node::Object(inner) => inner.write(out),
                Node::Value(text) => out.push_str(text),
            }
        }
        out.push('}');
    }
}

/// Reads what was checked when it was taken; of other texts it says nothing or no object.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, b: u8) -> bool {
        let hit = self.peek() == Some(b);
        self.at += hit as usize;
        hit
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn object(&mut self, depth: u32) -> Option<Object<'a>> {
        let mut object = Object::default();
        if !self.eat(b'{') {
            return None;
        }
        self.space();
        if self.eat(b'}') {
            return Some(object);
        }
        loop {
            self.space();
            let from = self.at;
            self.string()?;
            let name = &self.text[from..self.at];
            self.space();
            if !self.eat(b':') {
                return None;
            }
            self.space();
            let value = match self.peek()? {
                b'{' if depth < DEPTH_MAX => Node::Object(self.object(depth + 1)?),
                _ => Node::Value(self.value()?),
            };
            object.set(Member { name, value });
            self.space();
            if self.eat(b'}') {
                return Some(object);
            }
            if !self.eat(b',') {
                return None;
            }
        }
    }

    /// Passes over a string with its quotes.
    fn string(&mut self) -> Option<()> {
        if !self.eat(b'"') {
            return None;
        }
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        // An escape may have led into the middle of a character of a text that is no JSON.
        self.text.is_char_boundary(self.at).then_some(())
    }

    /// Passes over a value; brackets are counted, not checked.
    fn value(&mut self) -> Option<&'a str> {
        let (from, mut depth) = (self.at, 0u32);
        while let Some(b) = self.peek() {
            match b {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => break,
                _ => self.at += 1,
            }
        }
        (depth == 0 && self.at > from).then(|| &self.text[from..self.at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_merged_into_what_is_below() {
        for (below, written, merged) in [
            (r#"{"a":1,"b":2}"#, r#"{"b":3}"#, r#"{"a":1,"b":3}"#),
            (r#"{"a":1}"#, r#"{"c":3,"b":2,"a":null}"#, r#"{"a":null,"c":3,"b":2}"#),
            (r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":{"z":3}}}"#, r#"{"a":{"x":1,"y":{"z":3}}}"#),
            (r#"{"a":{"x":1}}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":{"x":1}}"#, r#"{"a":{"x":1}}"#),
            (r#"{"a":1}"#, "{}", r#"{"a":1}"#),
            ("7", r#"{"a":1}"#, r#"{"a":1}"#),
            ("null", "{}", "{}"),
            (r#"[{"a":1}]"#, r#"{"a":2}"#, r#"{"a":2}"#),
            (
                r#"{"a":1.50,"b":123456789012345678901234567890}"#,
                r#"{"c":1e400}"#,
                r#"{"a":1.50,"b":123456789012345678901234567890,"c":1e400}"#,
            ),
            (
                r#"{ "a" : "x, \" }" , "b":[ 1, {"c":2} ] }"#,
                r#"{"b2":0}"#,
                r#"{"a":"x, \" }","b":[ 1, {"c":2} ],"b2":0}"#,
            ),
            (r#"{"a":1,"b":2,"a":{"x":3}}"#, r#"{"a":{"y":4}}"#, r#"{"a":{"x":3,"y":4},"b":2}"#),
            (r#"{"\u0061":1}"#, r#"{"a":2}"#, r#"{"\u0061":2}"#),
        ] {
            assert_eq!(merge_leaves(below, written), merged, "{written} into {below}");
        }
    }

    #[test]
    fn null_leaves_are_dropped_with_what_holds_no_others() {
        for (text, left) in [
            (r#"{"a":null,"b":1}"#, Some(r#"{"b":1}"#)),
            (r#"{"a":null,"b":{"c":null}}"#, None),
            (r#"{"a":{"b":null,"c":[null]}}"#, Some(r#"{"a":{"c":[null]}}"#)),
            (r#"{"a":{}}"#, Some(r#"{"a":{}}"#)),
            ("{}", Some("{}")),
            ("[null]", Some("[null]")),
        ] {
            assert_eq!(leaves_without_nulls(text).as_deref(), left, "{text}");
        }
    }

    #[test]
    fn wide_objects_find_their_members() {
        let object = |range: std::ops::Range<usize>, v: usize| {
            let members: Vec<String> = range.map(|i| format!("\"m{i}\":{v}")).collect();
            format!("{{{}}}", members.join(","))
        };
        let merged = merge_leaves(&object(0..30, 1), &object(20..60, 2));
        let expected = format!("{},{}", object(0..20, 1).trim_end_matches('}'), &object(20..60, 2)[1..]);
        assert_eq!(merged, expected);
    }

    #[test]
    fn texts_that_are_no_json_do_no_harm() {
        let deep = "{\"a\":".repeat(100_000);
        let closed = format!("{deep}1{}", "}".repeat(100_000));
        for text in
            ["", "{", "{\"a", "{\"a\\", "{\"a\":", "{\"a\":}", "{\"a\":1]", "{,}", "{\"\\\u{e9}", &deep]
        {
            assert_eq!(merge_leaves(text, "{\"b\":1}"), "{\"b\":1}", "{text:.20}");
            assert_eq!(merge_leaves("{\"b\":1}", text), text, "{text:.20}");
        }
        assert_eq!(merge_leaves(&closed, "{\"b\":1}").len(), closed.len() + 6);
    }
}
