//! Going through the tokens of a statement about flows.

use super::error::{SqlError, SqlErrorKind};
use super::token::{Place, bare_word, is_blank, is_word};
use crate::format::options::{TimeColumn, TimeUnit};
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// A place among the tokens; white space is passed over.
pub(crate) struct Cursor<'t> {
    tokens: &'t [TokenWithSpan],
    at: usize,
}

impl<'t> Cursor<'t> {
    pub fn new(tokens: &'t [TokenWithSpan]) -> Cursor<'t> {
        let mut cursor = Cursor { tokens, at: 0 };
        cursor.pass_blanks();
        cursor
    }

    fn pass_blanks(&mut self) {
        while self.tokens.get(self.at).is_some_and(|t| is_blank(&t.token)) {
            self.at += 1;
        }
    }

    /// Tokens from here on that are no white space.
    fn ahead(&self) -> impl Iterator<Item = &'t TokenWithSpan> {
        self.tokens[self.at..].iter().filter(|t| !is_blank(&t.token) && t.token != Token::EOF)
    }

    /// The token here; `None` at the end.
    pub fn token(&self) -> Option<&'t Token> {
        self.ahead().next().map(|t| &t.token)
    }

    /// The place here, or of the last token at the end.
    pub fn place(&self) -> Option<Place> {
        let here = self.ahead().next();
        let last = || self.tokens.iter().rfind(|t| !is_blank(&t.token) && t.token != Token::EOF);
        here.or_else(last).and_then(|t| Place::of(t.span))
    }

    /// Goes past the token here.
    pub fn step(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len());
        self.pass_blanks();
    }

    /// Whether these unquoted words stand here.
    pub fn sees(&self, words: &[&str]) -> bool {
        let mut ahead = self.ahead();
        words.iter().all(|word| is_word(ahead.next().map(|t| &t.token), word))
    }

    /// Goes past these words if they stand here.
    pub fn takes(&mut self, words: &[&str]) -> bool {
        let there = self.sees(words);
        if there {
            words.iter().for_each(|_| self.step());
        }
        there
    }

    /// Goes past a sign if it stands here.
    pub fn takes_sign(&mut self, sign: &Token) -> bool {
        let there = self.token() == Some(sign);
        if there {
            self.step();
        }
        there
    }

    /// Goes past these words.
    pub fn words(&mut self, words: &[&str]) -> Result<(), SqlError> {
        if self.takes(words) { Ok(()) } else { Err(self.expected(&words.join(" "))) }
    }

    /// Goes past a sign.
    pub fn sign(&mut self, sign: &Token) -> Result<(), SqlError> {
        if self.takes_sign(sign) { Ok(()) } else { Err(self.expected(&sign.to_string())) }
    }

    /// An error that says what should stand here.
    pub fn expected(&self, what: &str) -> SqlError {
        let found = match self.token() {
            None => "the end of the statement".to_owned(),
            Some(token) => token.to_string(),
        };
        self.error(format!("expected {what}, found: {found}"))
    }

    /// An error at this place.
    pub fn error(&self, message: impl Into<String>) -> SqlError {
        let error = SqlError::new(SqlErrorKind::Syntax, message);
        match self.place() {
            Some(place) => error.at(place),
            None => error,
        }
    }

    /// The end of the statement.
    pub fn end(&mut self) -> Result<(), SqlError> {
        while self.takes_sign(&Token::SemiColon) {}
        match self.token() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the statement")),
        }
    }

    /// A word, quoted or not.
    fn word(&mut self, what: &str) -> Result<String, SqlError> {
        match self.token() {
            Some(Token::Word(w)) => {
                self.step();
                Ok(w.value.clone())
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A name: a word, or words with points between them.
    pub fn name(&mut self, what: &str) -> Result<String, SqlError> {
        let mut name = self.word(what)?;
        while self.takes_sign(&Token::Period) {
            name.push('.');
            name.push_str(&self.word(what)?);
        }
        Ok(name)
    }

    /// Names with commas between them, at least one, in parentheses or not.
    pub fn names(&mut self, what: &str) -> Result<Vec<String>, SqlError> {
        let inside = self.takes_sign(&Token::LParen);
        let mut names = Vec::new();
        loop {
            let place = self.place();
            let name = self.name(what)?;
            if names.contains(&name) {
                let error = SqlError::new(SqlErrorKind::Syntax, format!("{name} stands twice in the list"));
                return Err(place.map_or(error.clone(), |p| error.at(p)));
            }
            names.push(name);
            if !self.takes_sign(&Token::Comma) {
                break;
            }
        }
        if inside {
            self.sign(&Token::RParen)?;
        }
        Ok(names)
    }

    /// A column that holds a time: `col` or `col:ms`.
    pub fn time(&mut self) -> Result<TimeColumn, SqlError> {
        let column = self.name("the name of a column")?;
        if !self.takes_sign(&Token::Colon) {
            return Ok(TimeColumn { column, unit: None });
        }
        let unit = self.token().and_then(bare_word).and_then(|w| TimeUnit::from_word(&w.value));
        let unit = unit.ok_or_else(|| self.expected("a unit of time: s, ms, us or ns"))?;
        self.step();
        Ok(TimeColumn { column, unit: Some(unit) })
    }

    /// A text, number or word as the value of a setting.
    pub fn value(&mut self) -> Result<String, SqlError> {
        let value = match self.token() {
            Some(Token::SingleQuotedString(s) | Token::Number(s, _)) => s.clone(),
            Some(Token::Word(w)) if w.quote_style.is_none() => w.value.clone(),
            _ => return Err(self.expected("a text in quotes")),
        };
        self.step();
        Ok(value)
    }

    /// The text from here to where `ends` says so outside of parentheses, and goes there. Comments are no
    /// part of it.
    pub fn text_until(&mut self, ends: impl Fn(&Cursor<'t>) -> bool) -> Result<String, SqlError> {
        let mut text = String::new();
        let mut depth = 0usize;
        while let Some(token) = self.token() {
            if depth == 0 && (*token == Token::SemiColon || ends(self)) {
                break;
            }
            match token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => return Err(self.expected("the end of the statement")),
                Token::RParen => depth -= 1,
                _ => {}
            }
            write_token(&mut text, token);
            self.at += 1;
            if self.tokens.get(self.at).is_some_and(|t| is_blank(&t.token)) {
                text.push(' ');
            }
            self.pass_blanks();
        }
        Ok(text.trim_end().to_owned())
    }
}

/// A token as it was typed: the tokenizer takes quotes apart.
fn write_token(text: &mut String, token: &Token) {
    match token {
        Token::SingleQuotedString(s) => {
            text.push('\'');
            text.push_str(&s.replace('\'', "''"));
            text.push('\'');
        }
        Token::Word(w) if w.quote_style == Some('"') => {
            text.push('"');
            text.push_str(&w.value.replace('"', "\"\""));
            text.push('"');
        }
        Token::Whitespace(Whitespace::Space) => text.push(' '),
        other => text.push_str(&other.to_string()),
    }
}
