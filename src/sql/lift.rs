//! Takes temporal clauses out of the token stream and leaves a marker at the table they belong to.
//!
//! The parser keeps `PARTITION (name)` after a table name, and nothing else of asofdb uses it; a
//! marker is such a list with a name that no one can type. The relation planner takes markers back
//! and refuses every other partition list, so no clause can be lost on the way (rule D4).

use super::clause::{Axis, Begun, Clause, read_clause};
use super::error::{SqlError, SqlErrorKind};
use super::token::{Place, bare_word, is_blank, is_word};
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

/// Begins every marker; the tokenizer makes no word with it.
const MARKER: char = '\u{1}';

/// The clauses of one table factor, at most one per axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Clauses {
    pub valid: Option<Clause>,
    pub system: Option<Clause>,
    pub commit: Option<Clause>,
}

impl Clauses {
    fn add(&mut self, clause: Clause) -> Result<(), SqlError> {
        let slot = match clause.axis {
            Axis::Valid => &mut self.valid,
            Axis::System => &mut self.system,
            Axis::Commit => &mut self.commit,
        };
        if slot.is_some() {
            let message = format!("FOR {} stands twice at one table", clause.axis.word());
            return Err(SqlError::new(SqlErrorKind::Syntax, message)
                .at(clause.place)
                .hint("BUSINESS_TIME and APPLICATION_TIME are other words for VALID_TIME"));
        }
        *slot = Some(clause);
        Ok(())
    }

    /// The place of the first clause.
    pub fn place(&self) -> Option<Place> {
        let clauses = [&self.valid, &self.system, &self.commit];
        clauses.into_iter().flatten().map(|c| c.place).min_by_key(|p| (p.line, p.column))
    }
}

/// A statement without its clauses.
pub(crate) struct Lifted {
    /// Tokens for the parser, with markers.
    pub tokens: Vec<TokenWithSpan>,
    /// The clauses, by marker number.
    pub clauses: Vec<Clauses>,
}

/// The marker number in the name of a partition, if it is one of ours.
pub(crate) fn marker_number(name: &str) -> Option<usize> {
    name.strip_prefix(MARKER)?.parse().ok()
}

/// Whether a parser's message complains about a marker: then a clause stands where none may.
pub(crate) fn complains_of_marker(message: &str) -> bool {
    message.contains("found: PARTITION") || message.contains(MARKER)
}

#[derive(Clone)]
enum Item {
    Token(TokenWithSpan),
    Marker(usize),
}

impl Item {
    fn token(&self) -> Option<&Token> {
        match self {
            Item::Token(t) => Some(&t.token),
            Item::Marker(_) => None,
        }
    }
}

/// Lifts all temporal clauses out of a statement.
pub(crate) fn lift(tokens: &[TokenWithSpan]) -> Result<Lifted, SqlError> {
    let mut lifter = Lifter { out: Vec::with_capacity(tokens.len()), clauses: Vec::new() };
    let mut at = 0;
    while at < tokens.len() {
        if is_word(Some(&tokens[at].token), "FOR")
            && !lifter.inside_other_for()
            && let Begun::Clause { clause, end } = read_clause(tokens, at)?
        {
            lifter.attach(clause)?;
            at = end;
            continue;
        }
        if !is_blank(&tokens[at].token) {
            lifter.out.push(Item::Token(tokens[at].clone()));
        }
        at += 1;
    }
    Ok(lifter.finish())
}

struct Lifter {
    out: Vec<Item>,
    clauses: Vec<Clauses>,
}

impl Lifter {
    /// Whether the innermost open parenthesis belongs to something with a FOR of its own.
    fn inside_other_for(&self) -> bool {
        let mut depth = 0usize;
        for i in (0..self.out.len()).rev() {
            match self.out[i].token() {
                Some(Token::RParen) => depth += 1,
                Some(Token::LParen) if depth > 0 => depth -= 1,
                Some(Token::LParen) => {
                    let before = i.checked_sub(1).and_then(|b| self.out[b].token());
                    return ["SUBSTRING", "OVERLAY", "PIVOT", "UNPIVOT", "XMLTABLE", "TRIM", "POSITION"]
                        .iter()
                        .any(|w| is_word(before, w));
                }
                _ => {}
            }
        }
        false
    }

    fn attach(&mut self, clause: Clause) -> Result<(), SqlError> {
        let place = clause.place;
        match self.target().map_err(|e| e.at(place))? {
            Target::Marker(number) => self.clauses[number].add(clause),
            Target::Name { end } => {
                let number = self.clauses.len();
                let mut clauses = Clauses::default();
                clauses.add(clause)?;
                self.clauses.push(clauses);
                self.out.insert(end, Item::Marker(number));
                Ok(())
            }
        }
    }

    /// The table that a clause after the tokens so far belongs to.
    fn target(&self) -> Result<Target, SqlError> {
        let last = self.out.len().checked_sub(1).ok_or_else(misplaced)?;
        match &self.out[last] {
            Item::Marker(number) => Ok(Target::Marker(*number)),
            Item::Token(t) => match &t.token {
                Token::RParen => self.target_before_parenthesis(last),
                Token::Word(_) => match self.alias_target(last) {
                    Some(end) => self.factor_ending_at(end),
                    None => self.factor_ending_at(last),
                },
                _ => Err(misplaced()),
            },
        }
    }

    /// The index of the factor's last item if the word at `at` is its alias.
    fn alias_target(&self, at: usize) -> Option<usize> {
        let before = at.checked_sub(1)?;
        match &self.out[before] {
            Item::Marker(_) => Some(before),
            Item::Token(t) => match &t.token {
                Token::RParen => Some(before),
                token if is_word(Some(token), "AS") => before.checked_sub(1),
                Token::Word(_) if !self.is_starter(before) => Some(before),
                _ => None,
            },
        }
    }

    fn factor_ending_at(&self, last: usize) -> Result<Target, SqlError> {
        match &self.out[last] {
            Item::Marker(number) => Ok(Target::Marker(*number)),
            Item::Token(t) => match &t.token {
                Token::RParen => self.target_before_parenthesis(last),
                Token::Word(_) => self.name_ending_at(last),
                _ => Err(misplaced()),
            },
        }
    }

    /// After `f(...)` the function, after `t AS x(a, b)` the table, after `(SELECT ...)` an error.
    fn target_before_parenthesis(&self, close: usize) -> Result<Target, SqlError> {
        let open = self.matching_open(close).ok_or_else(misplaced)?;
        let before = open.checked_sub(1).ok_or_else(on_subquery)?;
        match &self.out[before] {
            Item::Marker(number) => Ok(Target::Marker(*number)),
            Item::Token(TokenWithSpan { token: Token::Word(_), .. }) if !self.is_starter(before) => {
                match self.alias_target(before) {
                    Some(end) => self.factor_ending_at(end),
                    None => self.name_ending_at(before),
                }
            }
            Item::Token(t) if is_word(Some(&t.token), "USING") => Err(misplaced()),
            _ => Err(on_subquery()),
        }
    }

    fn matching_open(&self, close: usize) -> Option<usize> {
        let mut depth = 0usize;
        (0..=close).rev().find(|i| {
            match self.out[*i].token() {
                Some(Token::RParen) => depth += 1,
                Some(Token::LParen) => depth -= 1,
                _ => {}
            }
            depth == 0
        })
    }

    /// Checks that a possibly qualified name ends at `last` and stands where a table may.
    fn name_ending_at(&self, last: usize) -> Result<Target, SqlError> {
        let mut first = last;
        while first >= 2
            && self.out[first - 1].token() == Some(&Token::Period)
            && matches!(self.out[first - 2].token(), Some(Token::Word(_)))
        {
            first -= 2;
        }
        let starts = first.checked_sub(1).is_some_and(|before| {
            matches!(self.out[before].token(), Some(Token::Comma | Token::LParen)) || self.is_starter(before)
        });
        if starts { Ok(Target::Name { end: last + 1 }) } else { Err(misplaced()) }
    }

    /// Whether the word at `at` is one that a table may follow.
    fn is_starter(&self, at: usize) -> bool {
        use Keyword::*;
        self.out[at].token().and_then(bare_word).is_some_and(|w| {
            matches!(
                w.keyword,
                FROM | JOIN | INTO | UPDATE | TABLE | USING | ONLY | LATERAL | APPLY | STRAIGHT_JOIN
            )
        })
    }

    fn finish(self) -> Lifted {
        let mut tokens = Vec::with_capacity(self.out.len());
        for item in self.out {
            match item {
                Item::Token(t) => tokens.push(t),
                Item::Marker(number) => {
                    let span = self.clauses[number].place().map_or(Span::empty(), span_of);
                    let word =
                        |value: String, keyword| Token::Word(Word { value, quote_style: None, keyword });
                    let marker = [
                        word("PARTITION".into(), Keyword::PARTITION),
                        Token::LParen,
                        word(format!("{MARKER}{number}"), Keyword::NoKeyword),
                        Token::RParen,
                    ];
                    tokens.extend(marker.into_iter().map(|token| TokenWithSpan { token, span }));
                }
            }
        }
        Lifted { tokens, clauses: self.clauses }
    }
}

enum Target {
    Marker(usize),
    Name { end: usize },
}

fn span_of(place: Place) -> Span {
    use datafusion::logical_expr::sqlparser::tokenizer::Location;
    let Place { line, column, length } = place;
    Span { start: Location { line, column }, end: Location { line, column: column + length } }
}

/// The error for a clause that stands at no table.
pub(crate) fn misplaced() -> SqlError {
    SqlError::new(SqlErrorKind::Syntax, "a temporal clause cannot stand here")
        .hint("it belongs right after a table in FROM or JOIN: FROM t FOR VALID_TIME AS OF ... [AS alias]")
}

fn on_subquery() -> SqlError {
    SqlError::unsupported("a temporal clause cannot stand at a subquery")
        .hint("write it at the tables inside the subquery")
}

#[cfg(test)]
#[path = "lift_tests.rs"]
mod tests;
