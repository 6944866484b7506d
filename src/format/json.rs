//! A strict JSON scanner over one message: values as slices of the text, numbers as their digits.
//!
//! It holds no tree and does not recurse, so its cost is bounded by the length of the message. What
//! it accepts is RFC 8259 without duplicate members in the objects it is asked to list and without
//! lone surrogates.

use super::scratch::Scratch;
use super::swar::{Scanned, digits_end, plain_string};

/// The deepest nesting of arrays and objects that is read.
pub const DEPTH_MAX: u32 = 128;

/// Text that is not JSON, or not JSON that means one thing only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong.
    pub what: &'static str,
    /// Byte of the text, counted from 0.
    pub at: usize,
}

/// A value as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Raw<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// The digits of a number.
    Number(&'a str),
    /// What stands between the quotes of a string.
    Text(RawText<'a>),
    /// An object or array from its first to its last bracket.
    Nested {
        /// The text.
        text: &'a str,
        /// It may have white space outside of strings.
        spaced: bool,
    },
}

/// A string before its escapes are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawText<'a> {
    /// What stands between the quotes.
    pub text: &'a str,
    /// There are escapes in it.
    pub escaped: bool,
}

impl<'a> RawText<'a> {
    /// The string itself; text with escapes is written to `scratch`.
    pub fn resolve(self, scratch: &mut Scratch<'a>) -> &'a str {
        if self.escaped { scratch.put_str(|out| unescape(self.text, out)) } else { self.text }
    }
}

/// A member of an object, or an element of an array (with an empty name).
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Its name.
    pub name: RawText<'a>,
    /// Its value.
    pub value: Raw<'a>,
    /// Where the value begins in the text.
    pub at: usize,
}

/// Reads values one after the other from a text.
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// Checks that a message is UTF-8 and drops white space around it.
///
/// # Errors
/// If the bytes are not UTF-8.
pub fn message_text(bytes: &[u8]) -> Result<&str, JsonError> {
    std::str::from_utf8(bytes)
        .map_err(|e| JsonError { what: "the message is not UTF-8", at: e.valid_up_to() })
}

/// The text of a message's value; `None` if it has none, or null.
///
/// # Errors
/// If the bytes are not UTF-8.
pub fn value_text(value: Option<&[u8]>) -> Result<Option<&str>, JsonError> {
    let text = value.map(message_text).transpose()?;
    Ok(text.filter(|text| text.trim_ascii() != "null"))
}

/// The one value a text consists of.
///
/// # Errors
/// If it is not one JSON value.
pub fn single(text: &str) -> Result<Raw<'_>, JsonError> {
    let mut s = Scanner::new(text);
    s.space();
    let value = s.value()?;
    s.end()?;
    Ok(value)
}

/// Lists the members of the object that `text` consists of.
///
/// # Errors
/// If it is not one JSON object; the position is within `text`.
pub fn members<'a>(text: &'a str, out: &mut Vec<Member<'a>>) -> Result<(), JsonError> {
    members_with(text, out, |_, _| None)
}

/// The same, with objects inside that are read on the way: `inside` is given the name of a member that is an
/// object and a scanner that stands at it, and says where it ends if it has read it.
///
/// # Errors
/// If `text` is not one JSON object.
pub fn members_with<'a>(
    text: &'a str,
    out: &mut Vec<Member<'a>>,
    inside: impl FnMut(&'a str, Scanner<'a>) -> Option<usize>,
) -> Result<(), JsonError> {
    let mut s = Scanner::new(text);
    s.space();
    if s.peek() != Some(b'{') {
        let at = s.at;
        s.value()?;
        s.end()?;
        return Err(JsonError { what: "expected a JSON object", at });
    }
    s.object(out, inside)?;
    s.end()
}

/// Lists the elements of the array that `text` consists of, with empty names.
///
/// # Errors
/// If it is not one JSON array.
pub fn elements<'a>(text: &'a str, out: &mut Vec<Member<'a>>) -> Result<(), JsonError> {
    let mut s = Scanner::new(text);
    s.space();
    if s.peek() != Some(b'[') {
        return Err(s.error("expected a JSON array"));
    }
    s.at += 1;
    s.space();
    if s.eat(b']') {
        return s.end();
    }
    loop {
        s.space();
        let at = s.at;
        let value = s.value()?;
        out.push(Member { name: RawText { text: "", escaped: false }, value, at });
        s.space();
        if s.eat(b']') {
            return s.end();
        }
        if !s.eat(b',') {
            return Err(s.error("expected `,` or `]` in an array"));
        }
    }
}

/// The value of the member of that name, without listing the others for the caller.
pub fn member<'a>(text: &'a str, name: &str) -> Option<Raw<'a>> {
    let mut all = Vec::new();
    members(text, &mut all).ok()?;
    all.iter().find(|m| !m.name.escaped && m.name.text == name).map(|m| m.value)
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of a text.
    pub fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    fn error(&self, what: &'static str) -> JsonError {
        JsonError { what, at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, b: u8) -> bool {
        let hit = self.peek() == Some(b);
        self.at += hit as usize;
        hit
    }

    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn end(&mut self) -> Result<(), JsonError> {
        self.space();
        if self.at < self.text.len() { Err(self.error("there is text after the JSON value")) } else { Ok(()) }
    }

    /// The text and the byte at which the scanner stands.
    pub fn place(&self) -> (&'a str, usize) {
        (self.text, self.at)
    }

    /// Lists the members of the object that begins here; where it ends.
    ///
    /// # Errors
    /// If it is not an object.
    pub fn list(mut self, out: &mut Vec<Member<'a>>) -> Result<usize, JsonError> {
        self.object(out, |_, _| None).map(|()| self.at)
    }

    fn object(
        &mut self,
        out: &mut Vec<Member<'a>>,
        mut inside: impl FnMut(&'a str, Scanner<'a>) -> Option<usize>,
    ) -> Result<(), JsonError> {
        self.at += 1;
        self.space();
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.error("expected the name of a member in quotes"));
            }
            let name = self.string()?;
            self.space();
            if !self.eat(b':') {
                return Err(self.error("expected `:` after the name of a member"));
            }
            self.space();
            let at = self.at;
            let read = match self.peek() {
                Some(b'{') if !name.escaped => inside(name.text, self.clone()),
                _ => None,
            };
            let value = match read {
                None => self.value()?,
                Some(end) => {
                    self.at = end;
                    Raw::Nested { text: &self.text[at..end], spaced: true }
                }
            };
            out.push(Member { name, value, at });
            self.space();
            if self.eat(b'}') {
                return Ok(());
            }
            if !self.eat(b',') {
                return Err(self.error("expected `,` or `}` in an object"));
            }
        }
    }

    /// The value that begins here.
    fn value(&mut self) -> Result<Raw<'a>, JsonError> {
        match self.peek() {
            Some(b'"') => Ok(Raw::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => Ok(Raw::Number(self.number()?)),
            Some(b'{' | b'[') => self.nested(),
            Some(b'n') => self.word("null", Raw::Null),
            Some(b't') => self.word("true", Raw::Bool(true)),
            Some(b'f') => self.word("false", Raw::Bool(false)),
            None => Err(self.error("the JSON text ends too early")),
            Some(_) => Err(self.error("expected a JSON value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Raw<'a>) -> Result<Raw<'a>, JsonError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.error("expected a JSON value"));
        }
        self.at += word.len();
        Ok(value)
    }

    #[inline]
    fn digits(&mut self) -> Result<(), JsonError> {
        let from = self.at;
        self.at = digits_end(self.text.as_bytes(), from);
        if self.at == from { Err(self.error("expected a digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<&'a str, JsonError> {
        let from = self.at;
        self.eat(b'-');
        let whole = self.at;
        self.digits()?;
        if self.at - whole > 1 && self.text.as_bytes()[whole] == b'0' {
            return Err(JsonError { what: "a number begins with 0", at: whole });
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(&self.text[from..self.at])
    }

    fn string(&mut self) -> Result<RawText<'a>, JsonError> {
        let from = self.at + 1;
        let bytes = self.text.as_bytes();
        if let Scanned::Plain(end) = plain_string(bytes, from) {
            self.at = end + 1;
            return Ok(RawText { text: &self.text[from..end], escaped: false });
        }
        let (mut at, mut escaped) = (from, false);
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    at = escape_end(bytes, at)?;
                }
                Some(0..=0x1f) => return Err(JsonError { what: "a control character in a string", at }),
                Some(_) => at += 1,
                None => return Err(JsonError { what: "a string without its closing quote", at }),
            }
        }
        self.at = at + 1;
        Ok(RawText { text: &self.text[from..at], escaped })
    }

    /// Passes over an object or array, checking it. The kinds of the open brackets are kept in the
    /// bits of one number.
    fn nested(&mut self) -> Result<Raw<'a>, JsonError> {
        let from = self.at;
        let (mut open, mut depth, mut spaced) = (0u128, 0u32, false);
        loop {
            // A value begins here.
            match self.peek() {
                Some(b @ (b'{' | b'[')) => {
                    if depth == DEPTH_MAX {
                        return Err(self.error("nested more than 128 deep"));
                    }
                    open = open << 1 | (b == b'{') as u128;
                    depth += 1;
                    self.at += 1;
                    spaced |= self.space_seen();
                    if !self.eat(if b == b'{' { b'}' } else { b']' }) {
                        if b == b'{' {
                            spaced |= self.name()?;
                        }
                        continue;
                    }
                    (open, depth) = (open >> 1, depth - 1);
                }
                _ => {
                    self.value()?;
                }
            }
            // A value ended here: close what ends with it, or go on to the next.
            loop {
                if depth == 0 {
                    return Ok(Raw::Nested { text: &self.text[from..self.at], spaced });
                }
                spaced |= self.space_seen();
                let object = open & 1 == 1;
                if self.eat(b',') {
                    spaced |= self.space_seen();
                    if object {
                        spaced |= self.name()?;
                    }
                    break;
                }
                if !self.eat(if object { b'}' } else { b']' }) {
                    return Err(self.error("expected `,` or the end of an object or array"));
                }
                (open, depth) = (open >> 1, depth - 1);
            }
        }
    }

    fn space_seen(&mut self) -> bool {
        let from = self.at;
        self.space();
        self.at > from
    }

    /// Passes over the name of a member and its colon; whether there was white space.
    fn name(&mut self) -> Result<bool, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected the name of a member in quotes"));
        }
        self.string()?;
        let spaced = self.space_seen();
        if !self.eat(b':') {
            return Err(self.error("expected `:` after the name of a member"));
        }
        Ok(self.space_seen() | spaced)
    }
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |n, b| Some(n << 4 | (*b as char).to_digit(16)?))
}

/// The byte after the escape that begins at `at`.
fn escape_end(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            let lone = JsonError { what: "a lone surrogate in a string", at };
            match hex4(bytes, at + 2) {
                None => Err(JsonError { what: "\\u needs four hexadecimal digits", at }),
                Some(0xdc00..=0xdfff) => Err(lone),
                Some(0xd800..=0xdbff) => match (bytes.get(at + 6..at + 8), hex4(bytes, at + 8)) {
                    (Some(b"\\u"), Some(0xdc00..=0xdfff)) => Ok(at + 12),
                    _ => Err(lone),
                },
                Some(_) => Ok(at + 6),
            }
        }
        _ => Err(JsonError { what: "an unknown escape in a string", at }),
    }
}

/// Appends a checked string with its escapes resolved.
fn unescape(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    let (mut at, mut plain) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        out.push_str(&text[plain..at]);
        let (c, width) = match bytes.get(at + 1) {
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b't') => ('\t', 2),
            Some(b'u') => unescape_unicode(bytes, at),
            Some(b) => (*b as char, 2),
            None => break,
        };
        out.push(c);
        at += width;
        plain = at;
    }
    out.push_str(&text[plain.min(text.len())..]);
}

fn unescape_unicode(bytes: &[u8], at: usize) -> (char, usize) {
    let high = hex4(bytes, at + 2).unwrap_or(0xfffd);
    if !(0xd800..0xdc00).contains(&high) {
        return (char::from_u32(high).unwrap_or('\u{fffd}'), 6);
    }
    let low = hex4(bytes, at + 8).unwrap_or(0xdc00);
    let c = 0x10000 + ((high - 0xd800) << 10 | low.wrapping_sub(0xdc00) & 0x3ff);
    (char::from_u32(c).unwrap_or('\u{fffd}'), 12)
}

/// Appends a checked object or array without the white space outside its strings.
pub fn compact(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    let (mut at, mut from, mut quoted) = (0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => quoted = !quoted,
            b'\\' if quoted => at += 1,
            b' ' | b'\t' | b'\r' | b'\n' if !quoted => {
                out.push_str(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    out.push_str(&text[from..]);
}
