//! Evaluating conditions.

use super::super::number::json_number;
use super::{Compare, Expr, Literal, Node, Operand};
use asofdb_storage::value::{Cell, write_text};
use std::cmp::Ordering;

/// Where the columns of a condition come from.
pub trait Fields {
    /// The cell of a column; [`Cell::Unchanged`] if it was not sent.
    fn field(&mut self, column: &str) -> Cell<'_>;
}

impl Expr {
    /// Whether the condition is true; unknown is not.
    pub fn is_true(&self, fields: &mut dyn Fields) -> bool {
        truth(&self.node, fields) == Some(true)
    }
}

fn truth(node: &Node, fields: &mut dyn Fields) -> Option<bool> {
    match node {
        Node::And(a, b) => match (truth(a, fields), truth(b, fields)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        },
        Node::Or(a, b) => match (truth(a, fields), truth(b, fields)) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        },
        Node::Not(a) => truth(a, fields).map(|v| !v),
        Node::Truth(a) => with(a, fields, |cell| match cell {
            Cell::Bool(v) => Some(*v),
            _ => None,
        }),
        Node::IsNull(a) => with(a, fields, |cell| Some(is_null(cell))),
        Node::In(a, list) => with(a, fields, |cell| {
            let mut answer = Some(false);
            for literal in list {
                match literal_order(cell, literal) {
                    Some(Ordering::Equal) => return Some(true),
                    Some(_) => {}
                    None => answer = None,
                }
            }
            answer
        }),
        Node::Like(a, pattern) => with(a, fields, |cell| {
            (!is_null(cell)).then(|| like(pattern.as_bytes(), text_of(cell).as_bytes()))
        }),
        Node::Compare(a, compare, b) => {
            let order = match (a, b) {
                (a, Operand::Literal(l)) => with(a, fields, |cell| literal_order(cell, l)),
                (Operand::Literal(l), b) => {
                    with(b, fields, |cell| literal_order(cell, l)).map(Ordering::reverse)
                }
                (Operand::Column(a), Operand::Column(b)) => {
                    let left = fields.field(a).to_value()?;
                    order(&left.as_cell(), &fields.field(b))
                }
            };
            order.map(|o| holds(*compare, o))
        }
    }
}

fn holds(compare: Compare, order: Ordering) -> bool {
    match compare {
        Compare::Equal => order.is_eq(),
        Compare::NotEqual => order.is_ne(),
        Compare::Less => order.is_lt(),
        Compare::LessOrEqual => order.is_le(),
        Compare::Greater => order.is_gt(),
        Compare::GreaterOrEqual => order.is_ge(),
    }
}

fn with<T>(operand: &Operand, fields: &mut dyn Fields, look: impl FnOnce(&Cell<'_>) -> T) -> T {
    match operand {
        Operand::Column(name) => look(&fields.field(name)),
        Operand::Literal(l) => look(&literal_cell(l)),
    }
}

fn literal_cell(literal: &Literal) -> Cell<'_> {
    match literal {
        Literal::Null => Cell::Null,
        Literal::Bool(v) => Cell::Bool(*v),
        Literal::Number(n) => json_number(n).unwrap_or(Cell::Null),
        Literal::Text(t) => Cell::Text(t),
    }
}

fn literal_order(cell: &Cell<'_>, literal: &Literal) -> Option<Ordering> {
    order(cell, &literal_cell(literal))
}

fn is_null(cell: &Cell<'_>) -> bool {
    matches!(cell, Cell::Unchanged | Cell::Unknown | Cell::Null)
}

fn text_of(cell: &Cell<'_>) -> String {
    let mut text = String::new();
    write_text(&mut text, cell);
    text
}

fn order(a: &Cell<'_>, b: &Cell<'_>) -> Option<Ordering> {
    if is_null(a) || is_null(b) {
        return None;
    }
    match (exact(a), exact(b)) {
        (Some((x, s)), Some((y, t))) => {
            let width = s.max(t);
            let scaled = |n: i128, scale: u8| n.checked_mul(10i128.checked_pow((width - scale) as u32)?);
            match (scaled(x, s), scaled(y, t)) {
                (Some(x), Some(y)) => Some(x.cmp(&y)),
                _ => float(a)?.partial_cmp(&float(b)?),
            }
        }
        _ => match (float(a), float(b)) {
            (Some(x), Some(y)) => x.partial_cmp(&y),
            _ => Some(text_of(a).cmp(&text_of(b))),
        },
    }
}

fn exact(cell: &Cell<'_>) -> Option<(i128, u8)> {
    match cell {
        Cell::Int(v) => Some((*v as i128, 0)),
        Cell::Decimal { unscaled, scale } => Some((*unscaled, *scale)),
        _ => None,
    }
}

fn float(cell: &Cell<'_>) -> Option<f64> {
    match cell {
        Cell::Float(v) => Some(*v),
        _ => exact(cell).map(|(n, scale)| n as f64 / 10f64.powi(scale as i32)),
    }
}

/// Whether the whole text matches: two pointers and one place to go back to, so never slow.
fn like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut back) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'%') => {
                back = Some((p, t));
                p += 1;
            }
            Some(b'_') => {
                p += 1;
                t += 1;
                while t < text.len() && text[t] & 0xc0 == 0x80 {
                    t += 1;
                }
            }
            Some(b) if *b == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match back {
                Some((at, from)) => {
                    (p, t) = (at + 1, from + 1);
                    back = Some((at, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|b| *b == b'%')
}
