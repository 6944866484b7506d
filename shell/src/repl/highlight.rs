//! Colours for SQL.

use crate::text::lex::{Kind, tokens};

/// Words that are coloured as keywords and offered by completion.
pub const KEYWORDS: [&str; 70] = [
    "ALL",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COMMIT",
    "CONTAINED",
    "CROSS",
    "CURRENT_TIMESTAMP",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FILTER",
    "FIRST",
    "FOR",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LAST",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NATURAL",
    "NOT",
    "NULL",
    "NULLS",
    "OF",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "RESET",
    "RIGHT",
    "ROWS",
    "SELECT",
    "SET",
    "SHOW",
    "SYSTEM_TIME",
    "TABLES",
    "THEN",
    "TIMESTAMP",
    "TO",
    "TRUE",
    "UNION",
    "USING",
    "VALID_TIME",
    "VALUES",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Longer inputs are left plain: each key press paints the whole line anew.
const PAINTED_BYTES_MAX: usize = 20_000;

/// The line with colours.
pub fn paint(line: &str) -> String {
    if line.len() > PAINTED_BYTES_MAX || super::meta::is_meta(line) {
        return line.to_owned();
    }
    let mut out = String::with_capacity(line.len() * 2);
    for token in tokens(line) {
        let text = &line[token.start..token.end];
        let colour = match token.kind {
            Kind::Word if is_keyword(text) => "\x1b[1;34m",
            Kind::Number => "\x1b[36m",
            Kind::Text => "\x1b[32m",
            Kind::Name => "\x1b[33m",
            Kind::Comment => "\x1b[90m",
            _ => "",
        };
        match colour {
            "" => out.push_str(text),
            colour => out.extend([colour, text, "\x1b[0m"]),
        }
    }
    out
}

/// Whether a word is a keyword, whatever its case.
pub fn is_keyword(word: &str) -> bool {
    word.len() <= 20 && KEYWORDS.binary_search(&word.to_ascii_uppercase().as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_and_found() {
        assert!(KEYWORDS.is_sorted());
        assert!(is_keyword("select") && is_keyword("Valid_Time") && !is_keyword("orders"));
    }

    #[test]
    fn painting_adds_colours_only() {
        let line = "select 'x;', 1 from \"T\" -- ok";
        let painted = paint(line);
        assert!(painted.starts_with("\x1b[1;34mselect\x1b[0m \x1b[32m'x;'\x1b[0m"), "{painted:?}");
        let plain: String = ["\x1b[1;34m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\x1b[90m", "\x1b[0m"]
            .iter()
            .fold(painted, |text, code| text.replace(code, ""));
        assert_eq!(plain, line);
    }
}
