//! Temporal clauses (rules D1, D2): what they say, and how one is read from tokens.

use super::error::{SqlError, SqlErrorKind, from_parser};
use super::token::{DIALECT, Place, bare_word, is_blank, is_word};
use datafusion::logical_expr::sqlparser::ast::Expr as SqlExpr;
use datafusion::logical_expr::sqlparser::dialect::{Dialect, Precedence};
use datafusion::logical_expr::sqlparser::parser::Parser;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};

/// One of the three clocks (rules A).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// When the fact held in the world.
    Valid,
    /// When the system of record knew it.
    System,
    /// When this store recorded it.
    Commit,
}

impl Axis {
    /// The word of the clause.
    pub fn word(self) -> &'static str {
        match self {
            Axis::Valid => "VALID_TIME",
            Axis::System => "SYSTEM_TIME",
            Axis::Commit => "COMMIT",
        }
    }

    fn of_word(token: Option<&Token>) -> Option<Axis> {
        let word = token.and_then(bare_word)?.value.to_ascii_uppercase();
        match word.as_str() {
            "VALID_TIME" | "BUSINESS_TIME" | "APPLICATION_TIME" => Some(Axis::Valid),
            "SYSTEM_TIME" => Some(Axis::System),
            "COMMIT" => Some(Axis::Commit),
            _ => None,
        }
    }
}

/// What a clause asks of its axis; expressions as they were typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Spec {
    AsOf(SqlExpr),
    FromTo(SqlExpr, SqlExpr),
    Between(SqlExpr, SqlExpr),
    ContainedIn(SqlExpr, SqlExpr),
    All,
}

/// One clause and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Clause {
    pub axis: Axis,
    pub spec: Spec,
    pub place: Place,
}

/// What begins at a `FOR`. Lives only while one clause is read.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Begun {
    /// Not a temporal clause: `FOR UPDATE`, `SUBSTRING(x FROM 1 FOR 2)`, …
    Nothing,
    /// A clause that ends before token `end`.
    Clause { clause: Clause, end: usize },
}

/// A cursor over tokens that skips white space.
#[derive(Clone, Copy)]
struct Cursor<'t> {
    tokens: &'t [TokenWithSpan],
    at: usize,
}

impl<'t> Cursor<'t> {
    fn skip_blanks(&mut self) {
        while self.tokens.get(self.at).is_some_and(|t| is_blank(&t.token)) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<&'t Token> {
        self.skip_blanks();
        self.tokens.get(self.at).map(|t| &t.token)
    }

    fn next(&mut self) -> Option<&'t Token> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = is_word(self.peek(), word);
        self.at += found as usize;
        found
    }

    fn place(&mut self) -> Option<Place> {
        self.skip_blanks();
        self.tokens.get(self.at).and_then(|t| Place::of(t.span))
    }

    fn error(&mut self, message: impl Into<String>) -> SqlError {
        let error = SqlError::new(SqlErrorKind::Syntax, message);
        match self.place() {
            Some(place) => error.at(place),
            None => error,
        }
    }

    fn expect_word(&mut self, word: &str, after: &str) -> Result<(), SqlError> {
        if self.take_word(word) {
            return Ok(());
        }
        Err(self.error(format!("expected {word} {after}")))
    }

    fn expect_token(&mut self, token: &Token, after: &str) -> Result<(), SqlError> {
        if self.peek() == Some(token) {
            self.at += 1;
            return Ok(());
        }
        Err(self.error(format!("expected {token} {after}")))
    }

    /// An expression; with `below_and` one that ends before `AND`.
    fn expression(&mut self, below_and: bool) -> Result<SqlExpr, SqlError> {
        let mut parser = Parser::new(&DIALECT).with_tokens_with_locations(self.tokens[self.at..].to_vec());
        let parsed = if below_and {
            parser.parse_subexpr(DIALECT.prec_value(Precedence::Between))
        } else {
            parser.parse_expr()
        };
        let expr = parsed.map_err(|e| from_parser(&e))?;
        self.at += parser.index();
        Ok(expr)
    }
}

/// Reads what stands at `tokens[at]`, which is the word `FOR`.
pub(crate) fn read_clause(tokens: &[TokenWithSpan], at: usize) -> Result<Begun, SqlError> {
    let place = Place::of(tokens[at].span).unwrap_or(Place { line: 1, column: 1, length: 1 });
    let mut c = Cursor { tokens, at: at + 1 };
    if c.take_word("ALL") {
        return match Axis::of_word(c.next()) {
            Some(axis @ (Axis::Valid | Axis::System)) => {
                Ok(Begun::Clause { clause: Clause { axis, spec: Spec::All, place }, end: c.at })
            }
            _ => Ok(Begun::Nothing),
        };
    }
    if c.take_word("SNAPSHOT") {
        return match c.peek() {
            Some(Token::SingleQuotedString(_)) => {
                Err(SqlError::unsupported("snapshots are not supported yet")
                    .at(place)
                    .hint("bound the clocks themselves: FOR VALID_TIME, FOR SYSTEM_TIME, FOR COMMIT AS OF"))
            }
            _ => Ok(Begun::Nothing),
        };
    }
    let Some(axis) = Axis::of_word(c.peek()) else { return unknown_clock(c, place) };
    c.at += 1;
    let spec = if axis == Axis::Commit { commit_spec(&mut c) } else { time_spec(&mut c, axis) };
    Ok(Begun::Clause { clause: Clause { axis, spec: spec?, place }, end: c.at })
}

/// `FOR x AS OF` with an x that is none of our clocks is an error that names the near one.
fn unknown_clock(mut c: Cursor<'_>, place: Place) -> Result<Begun, SqlError> {
    let Some(word) = c.next().and_then(bare_word) else { return Ok(Begun::Nothing) };
    if !(c.take_word("AS") && c.take_word("OF")) {
        return Ok(Begun::Nothing);
    }
    let error =
        SqlError::new(SqlErrorKind::Syntax, format!("there is no clock called {}", word.value)).at(place);
    Err(match word.value.to_ascii_uppercase().as_str() {
        "VERSION" => error.hint("write FOR COMMIT AS OF n"),
        "TIMESTAMP" => error.hint("write FOR VALID_TIME AS OF or FOR SYSTEM_TIME AS OF"),
        upper => {
            let known = ["VALID_TIME", "SYSTEM_TIME", "COMMIT", "BUSINESS_TIME", "APPLICATION_TIME"];
            match crate::near::nearest(upper, known) {
                Some(near) => error.hint(format!("did you mean {near}?")),
                None => error.hint("the clocks are VALID_TIME, SYSTEM_TIME and COMMIT"),
            }
        }
    })
}

fn commit_spec(c: &mut Cursor<'_>) -> Result<Spec, SqlError> {
    if !c.take_word("AS") {
        return Err(c
            .error("expected AS OF after FOR COMMIT")
            .hint("a question is bounded by one commit; changes('t', from, to) shows what commits changed"));
    }
    c.expect_word("OF", "after AS")?;
    Ok(Spec::AsOf(c.expression(false)?))
}

fn time_spec(c: &mut Cursor<'_>, axis: Axis) -> Result<Spec, SqlError> {
    if c.take_word("ALL") {
        return Ok(Spec::All);
    }
    if c.take_word("AS") {
        c.expect_word("OF", "after AS")?;
        return Ok(Spec::AsOf(c.expression(false)?));
    }
    if c.take_word("FROM") {
        let a = c.expression(false)?;
        c.expect_word("TO", "and an end after FROM ...")?;
        return Ok(Spec::FromTo(a, c.expression(false)?));
    }
    if c.take_word("BETWEEN") {
        let a = c.expression(true)?;
        c.expect_word("AND", "and an end after BETWEEN ...")?;
        return Ok(Spec::Between(a, c.expression(true)?));
    }
    if c.take_word("CONTAINED") {
        c.expect_word("IN", "after CONTAINED")?;
        c.expect_token(&Token::LParen, "after CONTAINED IN")?;
        let a = c.expression(false)?;
        c.expect_token(&Token::Comma, "between the two bounds of CONTAINED IN")?;
        let b = c.expression(false)?;
        c.expect_token(&Token::RParen, "after the bounds of CONTAINED IN")?;
        return Ok(Spec::ContainedIn(a, b));
    }
    let message = format!(
        "expected AS OF, FROM ... TO, BETWEEN ... AND, CONTAINED IN or ALL after FOR {}",
        axis.word()
    );
    Err(c.error(message))
}
