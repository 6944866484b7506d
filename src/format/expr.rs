//! The small language of `--delete-when` and `--truncate-when`.
//!
//! ```text
//! or      := and { OR and }
//! and     := not { AND not }
//! not     := NOT not | test
//! test    := '(' or ')' | operand [ compare operand | IS [NOT] NULL | [NOT] IN '(' literal,… ')' | [NOT] LIKE 'text' ]
//! compare := = | == | <> | != | < | <= | > | >=
//! operand := column | "column" | 'text' | number | TRUE | FALSE | NULL
//! ```
//! Logic has three values as in SQL: a comparison with NULL, or with a column that was not sent, is
//! unknown, and a message is deleted only by what is true. Numbers compare as numbers; otherwise
//! both sides compare as the text they are shown as. An operand alone must be a boolean. In LIKE `%`
//! stands for any text and `_` for one character; there is no escape.

mod eval;
mod parse;

pub use eval::Fields;

/// A condition over the columns of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    text: String,
    node: Node,
}

/// A literal.
#[derive(Clone, Debug, PartialEq)]
enum Literal {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Column(String),
    Literal(Literal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Truth(Operand),
    Compare(Operand, Compare, Operand),
    IsNull(Operand),
    In(Operand, Vec<Literal>),
    Like(Operand, String),
}

impl Expr {
    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
#[path = "expr_tests.rs"]
mod tests;
