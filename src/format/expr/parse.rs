//! Reading conditions.

use super::{Compare, Expr, Literal, Node, Operand};

/// The deepest nesting of parentheses and NOTs.
const DEPTH_MAX: u32 = 64;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A bare word: a column or a word of the language.
    Word(String),
    /// `"column"`.
    Quoted(String),
    Text(String),
    Number(String),
    Sign(&'static str),
}

impl std::str::FromStr for Expr {
    type Err = String;

    fn from_str(text: &str) -> Result<Expr, String> {
        let mut p = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
        let node = p.or()?;
        match p.tokens.get(p.at) {
            None => Ok(Expr { text: text.to_owned(), node }),
            Some(t) => Err(format!("{} is not expected here, in `{text}`", shown(t))),
        }
    }
}

fn shown(t: &Token) -> String {
    match t {
        Token::Word(w) | Token::Number(w) => format!("`{w}`"),
        Token::Quoted(w) => format!("`\"{w}\"`"),
        Token::Text(w) => format!("`'{w}'`"),
        Token::Sign(w) => format!("`{w}`"),
    }
}

const SIGNS: &[&str] = &["<>", "!=", "<=", ">=", "==", "=", "<", ">", "(", ")", ","];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
        if let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(**s)) {
            out.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else if c == '\'' || c == '"' {
            let (inner, after) = quoted(rest, c)?;
            out.push(if c == '"' { Token::Quoted(inner) } else { Token::Text(inner) });
            rest = after;
        } else if c.is_ascii_digit() || c == '-' {
            let end = rest[1..]
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '.')
                .map_or(rest.len(), |n| n + 1);
            if super::super::number::json_number(&rest[..end]).is_none() {
                return Err(format!("`{}` is not a number", &rest[..end]));
            }
            out.push(Token::Number(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if word(c) {
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
            out.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        } else {
            return Err(format!("`{c}` is not expected in a condition"));
        }
        rest = rest.trim_start();
    }
    Ok(out)
}

fn quoted(text: &str, quote: char) -> Result<(String, &str), String> {
    let mut inner = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            inner.push(c);
        } else if chars.next_if(|(_, next)| *next == quote).is_some() {
            inner.push(quote);
        } else {
            return Ok((inner, &text[at + 1..]));
        }
    }
    Err(format!("a {quote} is not closed"))
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
}

impl Parser {
    fn word(&mut self, word: &str) -> bool {
        let hit = matches!(self.tokens.get(self.at), Some(Token::Word(w)) if w.eq_ignore_ascii_case(word));
        self.at += hit as usize;
        hit
    }

    fn sign(&mut self, sign: &str) -> bool {
        let hit = matches!(self.tokens.get(self.at), Some(Token::Sign(s)) if *s == sign);
        self.at += hit as usize;
        hit
    }

    fn expected(&self, what: &str) -> String {
        match self.tokens.get(self.at) {
            Some(t) => format!("expected {what} before {}", shown(t)),
            None => format!("expected {what} at the end"),
        }
    }

    fn or(&mut self) -> Result<Node, String> {
        let mut node = self.and()?;
        while self.word("or") {
            node = Node::Or(Box::new(node), Box::new(self.and()?));
        }
        Ok(node)
    }

    fn and(&mut self) -> Result<Node, String> {
        let mut node = self.not()?;
        while self.word("and") {
            node = Node::And(Box::new(node), Box::new(self.not()?));
        }
        Ok(node)
    }

    fn not(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("the condition is nested too deep".to_owned());
        }
        let node = if self.word("not") { Node::Not(Box::new(self.not()?)) } else { self.test()? };
        self.depth -= 1;
        Ok(node)
    }

    fn test(&mut self) -> Result<Node, String> {
        if self.sign("(") {
            let node = self.or()?;
            return if self.sign(")") { Ok(node) } else { Err(self.expected("`)`")) };
        }
        let left = self.operand()?;
        if self.word("is") {
            let not = self.word("not");
            if !self.word("null") {
                return Err(self.expected("NULL"));
            }
            return Ok(negated(not, Node::IsNull(left)));
        }
        let not = self.word("not");
        if self.word("in") {
            return Ok(negated(not, Node::In(left, self.list()?)));
        }
        if self.word("like") {
            return match self.operand()? {
                Operand::Literal(Literal::Text(pattern)) => Ok(negated(not, Node::Like(left, pattern))),
                _ => Err("LIKE needs a text in quotes".to_owned()),
            };
        }
        if not {
            return Err(self.expected("IN or LIKE"));
        }
        match self.compare() {
            Some(compare) => Ok(Node::Compare(left, compare, self.operand()?)),
            None => Ok(Node::Truth(left)),
        }
    }

    fn compare(&mut self) -> Option<Compare> {
        const COMPARES: &[(&str, Compare)] = &[
            ("=", Compare::Equal),
            ("==", Compare::Equal),
            ("<>", Compare::NotEqual),
            ("!=", Compare::NotEqual),
            ("<", Compare::Less),
            ("<=", Compare::LessOrEqual),
            (">", Compare::Greater),
            (">=", Compare::GreaterOrEqual),
        ];
        COMPARES.iter().find(|(sign, _)| self.sign(sign)).map(|(_, c)| *c)
    }

    fn list(&mut self) -> Result<Vec<Literal>, String> {
        if !self.sign("(") {
            return Err(self.expected("`(`"));
        }
        let mut out = Vec::new();
        loop {
            match self.operand()? {
                Operand::Literal(l) => out.push(l),
                Operand::Column(c) => return Err(format!("IN takes literals, and `{c}` is a column")),
            }
            if self.sign(")") {
                return Ok(out);
            }
            if !self.sign(",") {
                return Err(self.expected("`,` or `)`"));
            }
        }
    }

    fn operand(&mut self) -> Result<Operand, String> {
        let operand = match self.tokens.get(self.at) {
            Some(Token::Quoted(c)) => Operand::Column(c.clone()),
            Some(Token::Text(t)) => Operand::Literal(Literal::Text(t.clone())),
            Some(Token::Number(n)) => Operand::Literal(Literal::Number(n.clone())),
            Some(Token::Word(w)) => match w.to_ascii_lowercase().as_str() {
                "true" => Operand::Literal(Literal::Bool(true)),
                "false" => Operand::Literal(Literal::Bool(false)),
                "null" => Operand::Literal(Literal::Null),
                "and" | "or" | "not" | "is" | "in" | "like" => {
                    return Err(self.expected("a column or a value"));
                }
                _ => Operand::Column(w.clone()),
            },
            _ => return Err(self.expected("a column or a value")),
        };
        self.at += 1;
        Ok(operand)
    }
}

fn negated(not: bool, node: Node) -> Node {
    if not { Node::Not(Box::new(node)) } else { node }
}
