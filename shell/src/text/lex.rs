//! A small SQL lexer: enough to know where statements end, what to colour and what to complete. It
//! takes any text and never fails.

/// What a stretch of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A keyword, a name or a function.
    Word,
    /// A number.
    Number,
    /// `'text'`, `E'text'` or `$tag$text$tag$`.
    Text,
    /// `"name"`.
    Name,
    /// `-- to the end of the line` or `/* nested */`.
    Comment,
    /// White space.
    Space,
    /// `;`.
    End,
    /// Anything else, one character each.
    Other,
}

/// A stretch of the input, by byte offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Whether a quote or comment was closed; true for everything else.
    pub closed: bool,
}

/// Splits `text` into tokens that cover it without gaps.
pub fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (kind, end, closed) = next(text, bytes, at);
        found.push(Token { kind, start: at, end, closed });
        at = end;
    }
    found
}

fn next(text: &str, bytes: &[u8], at: usize) -> (Kind, usize, bool) {
    let peek = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let done = |kind, end| (kind, end, true);
    match bytes[at] {
        b'\'' => quoted(bytes, at, b'\'', false, Kind::Text),
        b'"' => quoted(bytes, at, b'"', false, Kind::Name),
        b'e' | b'E' if peek(at + 1) == b'\'' => quoted(bytes, at + 1, b'\'', true, Kind::Text),
        b'-' if peek(at + 1) == b'-' => {
            let end = text[at..].find('\n').map_or(bytes.len(), |n| at + n);
            done(Kind::Comment, end)
        }
        b'/' if peek(at + 1) == b'*' => block_comment(bytes, at),
        b'$' => dollar(text, at),
        b';' => done(Kind::End, at + 1),
        b'0'..=b'9' => done(Kind::Number, run(bytes, at, |b| b.is_ascii_alphanumeric() || b == b'.')),
        b if b.is_ascii_whitespace() => done(Kind::Space, run(bytes, at, |b| b.is_ascii_whitespace())),
        b if is_word(b) => done(Kind::Word, run(bytes, at, |b| is_word(b) || b.is_ascii_digit())),
        _ => done(Kind::Other, at + 1),
    }
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}

fn run(bytes: &[u8], at: usize, wanted: impl Fn(u8) -> bool) -> usize {
    bytes[at..].iter().position(|&b| !wanted(b)).map_or(bytes.len(), |n| at + n)
}

/// `at` is the opening quote; a doubled quote, and a backslash where `escapes`, stand for themselves.
fn quoted(bytes: &[u8], at: usize, quote: u8, escapes: bool, kind: Kind) -> (Kind, usize, bool) {
    let mut i = at + 1;
    while i < bytes.len() {
        if escapes && bytes[i] == b'\\' {
            i += 2;
        } else if bytes[i] == quote {
            if bytes.get(i + 1) != Some(&quote) {
                return (kind, i + 1, true);
            }
            i += 2;
        } else {
            i += 1;
        }
    }
    (kind, bytes.len(), false)
}

fn block_comment(bytes: &[u8], at: usize) -> (Kind, usize, bool) {
    let (mut i, mut depth) = (at, 0usize);
    while i + 1 < bytes.len() {
        match (bytes[i], bytes[i + 1]) {
            (b'/', b'*') => (depth, i) = (depth + 1, i + 2),
            (b'*', b'/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return (Kind::Comment, i, true);
        }
    }
    (Kind::Comment, bytes.len(), false)
}

/// `$1` and `$name` are parameters; `$$` and `$tag$` open a text.
fn dollar(text: &str, at: usize) -> (Kind, usize, bool) {
    let bytes = text.as_bytes();
    let end = run(bytes, at + 1, |b| is_word(b) || b.is_ascii_digit());
    let is_tag = bytes.get(end) == Some(&b'$') && !bytes[at + 1..].first().is_some_and(u8::is_ascii_digit);
    if !is_tag {
        return (Kind::Other, end, true);
    }
    let tag = &text[at..=end];
    match text[end + 1..].find(tag) {
        Some(n) => (Kind::Text, end + 1 + n + tag.len(), true),
        None => (Kind::Text, bytes.len(), false),
    }
}

/// One statement of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its text without the closing `;` and without blanks around it.
    pub text: &'a str,
    /// Where it begins in the script, in bytes.
    pub start: usize,
}

/// The statements of a script; stretches of blanks and comments are none.
pub fn statements(text: &str) -> Vec<Statement<'_>> {
    let mut found = Vec::new();
    let mut first: Option<usize> = None;
    let mut last = 0;
    for token in tokens(text) {
        match token.kind {
            Kind::End => {
                if let Some(start) = first.take() {
                    found.push(Statement { text: &text[start..last], start });
                }
            }
            Kind::Space | Kind::Comment => {}
            _ => {
                first.get_or_insert(token.start);
                last = token.end;
            }
        }
    }
    if let Some(start) = first {
        found.push(Statement { text: &text[start..last], start });
    }
    found
}

/// Whether an interactive input is finished: it ends with `;` outside of quotes and comments, or
/// holds nothing to run.
pub fn is_complete(text: &str) -> bool {
    let tokens = tokens(text);
    if tokens.iter().any(|t| !t.closed) {
        return false;
    }
    let last = tokens.iter().rev().find(|t| !matches!(t.kind, Kind::Space | Kind::Comment));
    last.is_none_or(|t| t.kind == Kind::End)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        statements(text).into_iter().map(|s| s.text).collect()
    }

    #[test]
    fn semicolons_inside_quotes_comments_and_dollars_do_not_end() {
        let script = "select ';', \"a;b\" -- ; no\n; select $$x;y$$, $t$;$u$;$t$ /* ; /* ; */ ; */;";
        assert_eq!(split(script), ["select ';', \"a;b\"", "select $$x;y$$, $t$;$u$;$t$"]);
        assert_eq!(
            split("select 'it''s; fine'; select E'a\\';b'"),
            ["select 'it''s; fine'", "select E'a\\';b'"]
        );
    }

    #[test]
    fn last_statement_needs_no_semicolon_and_blanks_are_none() {
        assert_eq!(split("select 1;;\n -- done\n; select 2 -- two"), ["select 1", "select 2"]);
        assert_eq!(split(" \n/* nothing */ -- here"), Vec::<&str>::new());
        assert_eq!(statements("a;\n  b")[1].start, 5);
    }

    #[test]
    fn parameters_are_no_dollar_quotes() {
        assert_eq!(split("select $1, $name; select 2"), ["select $1, $name", "select 2"]);
        assert_eq!(split("select $1$; select 2").len(), 2);
    }

    #[test]
    fn input_is_complete_only_at_an_outer_semicolon() {
        for done in ["", "  ", "select 1;", "select 1; -- so", "select ';';", "-- only a remark"] {
            assert!(is_complete(done), "{done:?}");
        }
        for open in ["select 1", "select ';", "select 1; select", "select /* ;", "select $$;", "select \";"] {
            assert!(!is_complete(open), "{open:?}");
        }
    }

    #[test]
    fn tokens_cover_any_text() {
        for text in ["", "a'b", "$", "$$", "/*", "\u{e4}\u{1f600};\u{301}", "E'\\", "1.5e3x", "/**/*/"] {
            let mut at = 0;
            for token in tokens(text) {
                assert_eq!(token.start, at);
                assert!(text.is_char_boundary(token.end), "{text:?}");
                at = token.end;
            }
            assert_eq!(at, text.len());
        }
    }
}
