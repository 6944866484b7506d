//! Tokens of a statement: splitting a script, places in the text, and the caps that keep a hostile
//! statement from reaching the parser.

use super::error::{SqlError, SqlErrorKind};
use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, Word};

/// The dialect of asofdb's SQL.
pub(crate) static DIALECT: GenericDialect = GenericDialect;

/// A place in the user's text. Lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: u64,
    /// Column of the first character.
    pub column: u64,
    /// Characters to underline, at least 1.
    pub length: u64,
}

impl Place {
    /// The place of a span, or none for an empty one.
    pub(crate) fn of(span: Span) -> Option<Place> {
        let Span { start, end } = span;
        let length = if end.line == start.line { end.column.saturating_sub(start.column).max(1) } else { 1 };
        (start.line > 0).then_some(Place { line: start.line, column: start.column, length })
    }
}

/// Caps on one statement (before parsing).
#[derive(Clone, Copy, Debug)]
pub struct StatementLimits {
    /// Bytes of the text.
    pub bytes_max: usize,
    /// Tokens, white space not counted.
    pub tokens_max: usize,
    /// Operators in one expression: between commas, clauses and set operations.
    pub operators_max: usize,
    /// Operators in the whole statement.
    pub operators_total_max: usize,
    /// Open parentheses, brackets and CASEs at one place.
    pub nesting_max: usize,
    /// UNION, EXCEPT and INTERSECT in one statement.
    pub set_operations_max: usize,
    /// Joins in one statement.
    pub joins_max: usize,
}

impl Default for StatementLimits {
    fn default() -> Self {
        StatementLimits {
            bytes_max: 1 << 20,
            tokens_max: 200_000,
            operators_max: 500,
            operators_total_max: 2_000,
            nesting_max: 64,
            set_operations_max: 100,
            joins_max: 64,
        }
    }
}

/// Tokenizes one statement or a script.
pub(crate) fn tokenize(text: &str) -> Result<Vec<TokenWithSpan>, SqlError> {
    Tokenizer::new(&DIALECT, text).tokenize_with_location().map_err(|e| {
        let Location { line, column } = e.location;
        SqlError::new(SqlErrorKind::Syntax, e.message).at(Place { line, column, length: 1 })
    })
}

pub(crate) fn is_blank(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

/// The word if the token is an unquoted one.
pub(crate) fn bare_word(token: &Token) -> Option<&Word> {
    match token {
        Token::Word(w) if w.quote_style.is_none() => Some(w),
        _ => None,
    }
}

/// Whether the token is the unquoted word `text`, whatever its case.
pub(crate) fn is_word(token: Option<&Token>, text: &str) -> bool {
    token.and_then(bare_word).is_some_and(|w| w.value.eq_ignore_ascii_case(text))
}

/// One statement of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its text, without the semicolon, from its first token on.
    pub text: String,
    /// The line of the script that it begins in, from 1.
    pub line: u64,
    /// The column of that line, from 1.
    pub column: u64,
}

/// Splits a script into statements at semicolons outside of quotes and comments. Comments and white
/// space alone are no statement; the last statement needs no semicolon.
///
/// # Errors
/// `Syntax` if a quote or comment is not closed, `Limit` if the script is larger than `bytes_max`.
pub fn split_script(text: &str, bytes_max: usize) -> Result<Vec<Statement>, SqlError> {
    if text.len() > bytes_max {
        return Err(too_long(text.len(), bytes_max));
    }
    let tokens = tokenize(text)?;
    let offsets = LineOffsets::new(text);
    let mut statements = Vec::new();
    let mut first: Option<Span> = None;
    let mut last = Location { line: 1, column: 1 };
    let mut finish = |first: &mut Option<Span>, last: Location| {
        if let Some(span) = first.take() {
            let text = &text[offsets.byte(span.start)..offsets.byte(last)];
            let Location { line, column } = span.start;
            statements.push(Statement { text: text.trim_end().to_owned(), line, column });
        }
    };
    for TokenWithSpan { token, span } in &tokens {
        match token {
            Token::SemiColon => finish(&mut first, span.start),
            Token::EOF => {}
            blank if is_blank(blank) => {}
            _ => {
                first.get_or_insert(*span);
                last = span.end;
            }
        }
    }
    finish(&mut first, last);
    Ok(statements)
}

/// Whether a script ends inside a statement: text after the last semicolon, or an open quote.
pub fn is_incomplete(text: &str) -> bool {
    match tokenize(text) {
        Err(_) => true,
        Ok(tokens) => tokens
            .iter()
            .rfind(|t| !is_blank(&t.token) && t.token != Token::EOF)
            .is_some_and(|t| t.token != Token::SemiColon),
    }
}

struct LineOffsets<'a> {
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> LineOffsets<'a> {
    fn new(text: &'a str) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        LineOffsets { text, lines }
    }

    fn byte(&self, at: Location) -> usize {
        let start = self.lines.get((at.line as usize).saturating_sub(1)).copied().unwrap_or(self.text.len());
        let rest = &self.text[start..];
        let within = rest.char_indices().nth((at.column as usize).saturating_sub(1));
        start + within.map_or(rest.len(), |(i, _)| i)
    }
}

fn too_long(bytes: usize, bytes_max: usize) -> SqlError {
    SqlError::new(SqlErrorKind::Limit, format!("the statement has {bytes} bytes, more than {bytes_max}"))
        .hint("bring the values in as a table or as parameters")
}

/// Checks a statement against the caps. Counts only; knows no grammar.
pub(crate) fn check_limits(
    text: &str,
    tokens: &[TokenWithSpan],
    limits: &StatementLimits,
) -> Result<(), SqlError> {
    if text.len() > limits.bytes_max {
        return Err(too_long(text.len(), limits.bytes_max));
    }
    let mut count = Counts::default();
    for t in tokens.iter().filter(|t| !is_blank(&t.token)) {
        count.add(&t.token);
        if let Some((what, max)) = count.exceeded(limits) {
            let error =
                SqlError::new(SqlErrorKind::Limit, format!("the statement has more than {max} {what}"));
            let error = error.hint("use IN (...), a join with VALUES, or parts of the statement one by one");
            return Err(Place::of(t.span).map_or(error.clone(), |p| error.at(p)));
        }
    }
    Ok(())
}

#[derive(Default)]
struct Counts {
    tokens: usize,
    total: usize,
    run: Vec<usize>,
    run_here: usize,
    cases: usize,
    sets: usize,
    joins: usize,
}

impl Counts {
    fn add(&mut self, token: &Token) {
        self.tokens += 1;
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                self.run.push(std::mem::take(&mut self.run_here))
            }
            // What stood inside counts towards the outer expression too.
            Token::RParen | Token::RBracket | Token::RBrace => self.run_here += self.run.pop().unwrap_or(0),
            Token::Comma => self.run_here = 0,
            Token::Word(w) if w.quote_style.is_none() => self.add_word(w.keyword),
            t if is_operator(t) => self.operator(),
            _ => {}
        }
    }

    fn operator(&mut self) {
        self.run_here += 1;
        self.total += 1;
    }

    fn add_word(&mut self, keyword: Keyword) {
        use Keyword::*;
        match keyword {
            AND | OR | NOT | IN | LIKE | ILIKE | IS | BETWEEN | XOR | WHEN | SIMILAR => self.operator(),
            CASE => self.cases += 1,
            END => self.cases = self.cases.saturating_sub(1),
            SELECT | FROM | WHERE | GROUP | HAVING | ORDER | LIMIT => self.run_here = 0,
            JOIN => {
                self.joins += 1;
                self.run_here = 0;
            }
            UNION | EXCEPT | INTERSECT => {
                self.sets += 1;
                self.run_here = 0;
            }
            _ => {}
        }
    }

    fn exceeded(&self, limits: &StatementLimits) -> Option<(&'static str, usize)> {
        [
            (self.tokens, limits.tokens_max, "tokens"),
            (self.run_here, limits.operators_max, "operators in one expression"),
            (self.total, limits.operators_total_max, "operators"),
            (self.run.len() + self.cases, limits.nesting_max, "levels of nesting"),
            (self.sets, limits.set_operations_max, "set operations"),
            (self.joins, limits.joins_max, "joins"),
        ]
        .into_iter()
        .find(|(n, max, _)| n > max)
        .map(|(_, max, what)| (what, max))
    }
}

fn is_operator(token: &Token) -> bool {
    !matches!(
        token,
        Token::EOF
            | Token::Word(_)
            | Token::Number(..)
            | Token::Char(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::Placeholder(_)
            | Token::Period
            | Token::SemiColon
            | Token::Whitespace(_)
    )
}
