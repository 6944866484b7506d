//! From members of a JSON object to named cells.

use super::json::{JsonError, Member, Raw, compact};
use super::number::json_number;
use super::scratch::Scratch;
use crate::change::{Column, Fault};
use asofdb_storage::value::Cell;

/// Why a message goes to the quarantine, before it is handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// What is wrong.
    pub reason: String,
    /// What may help.
    pub hint: &'static str,
    /// Byte of the message.
    pub offset: usize,
}

impl Reject {
    /// A fault at the start of the message.
    pub fn new(reason: impl Into<String>) -> Reject {
        Reject { reason: reason.into(), hint: "", offset: 0 }
    }

    /// The same with a hint.
    pub fn hint(mut self, hint: &'static str) -> Reject {
        self.hint = hint;
        self
    }

    /// The same at a byte of the message.
    pub fn at(mut self, offset: usize) -> Reject {
        self.offset = offset;
        self
    }

    /// As it is handed out.
    pub fn fault(&self) -> Fault<'_> {
        Fault { reason: &self.reason, hint: self.hint, offset: self.offset as u64 }
    }
}

impl From<JsonError> for Reject {
    fn from(e: JsonError) -> Reject {
        Reject::new(e.what).at(e.at)
    }
}

/// The cell of a JSON value whose type nothing tells.
///
/// # Errors
/// If it is a number beyond a double.
pub fn untyped_cell<'a>(raw: &Raw<'a>, scratch: &mut Scratch<'a>) -> Result<Cell<'a>, Reject> {
    Ok(match *raw {
        Raw::Null => Cell::Null,
        Raw::Bool(v) => Cell::Bool(v),
        Raw::Number(text) => json_number(text)
            .ok_or_else(|| Reject::new(format!("the number {} is too large", shortened(text))))?,
        Raw::Text(text) => Cell::Text(text.resolve(scratch)),
        Raw::Nested { text, spaced: false } => Cell::Json(text),
        Raw::Nested { text, spaced: true } => Cell::Json(scratch.put_str(|out| compact(text, out))),
    })
}

/// A text cut to a length that fits a message.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Appends the members as columns; `cell` decides what a value becomes.
///
/// # Errors
/// If a name comes twice, or a value cannot be taken.
pub fn columns<'a>(
    members: &[Member<'a>],
    base: usize,
    scratch: &mut Scratch<'a>,
    out: &mut Vec<Column<'a>>,
    mut cell: impl FnMut(usize, &str, &Member<'a>, &mut Scratch<'a>) -> Result<Cell<'a>, Reject>,
) -> Result<(), Reject> {
    let first = out.len();
    let mut seen = Seen::default();
    for (i, member) in members.iter().enumerate() {
        let name = member.name.resolve(scratch);
        if seen.add(name, &out[first..]) {
            return Err(Reject::new(format!("the member `{}` comes twice", shortened(name)))
                .hint("two readings are possible; the sender must name each member once")
                .at(base + member.at));
        }
        let cell = cell(i, name, member, scratch).map_err(|e| match e.offset {
            0 => e.at(base + member.at),
            _ => e,
        })?;
        out.push(Column { name, cell });
    }
    Ok(())
}

/// Finds names that come twice: a filter of 64 bits answers for small objects, a set for large ones.
#[derive(Default)]
struct Seen<'a> {
    filter: u64,
    set: Option<std::collections::HashSet<&'a str>>,
}

impl<'a> Seen<'a> {
    fn add(&mut self, name: &'a str, before: &[Column<'a>]) -> bool {
        if before.len() >= 64 {
            let set = self.set.get_or_insert_with(|| before.iter().map(|c| c.name).collect());
            return !set.insert(name);
        }
        let b = name.as_bytes();
        let ends = b.first().map_or(0, |f| *f as usize * 31) + b.last().map_or(0, |l| *l as usize * 7);
        let bit = 1u64 << ((ends + b.len()) % 64);
        let hit = self.filter & bit != 0;
        self.filter |= bit;
        hit && before.iter().any(|c| c.name == name)
    }
}

/// The column of that name.
pub fn find<'c, 'a>(columns: &'c [Column<'a>], name: &str) -> Option<&'c Column<'a>> {
    columns.iter().find(|c| c.name == name)
}
