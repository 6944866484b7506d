//! The members of an envelope by name, as formats of several makers need them.

use super::fields::{Reject, shortened};
use super::json::{Member, Raw, RawText};
use super::scratch::Scratch;
use crate::change::{SourceRef, Times};

/// The members of an object by name, resolved where they are texts.
pub struct Block<'m, 'a>(pub &'m [Member<'a>]);

impl<'a> Block<'_, 'a> {
    /// The value of a member.
    pub fn raw(&self, name: &str) -> Option<Raw<'a>> {
        self.0.iter().find(|m| m.name.text == name).map(|m| m.value)
    }

    /// A text that is not empty.
    pub fn text(&self, name: &str, scratch: &mut Scratch<'a>) -> Option<&'a str> {
        match self.raw(name)? {
            Raw::Text(t) => Some(t.resolve(scratch)).filter(|t| !t.is_empty()),
            _ => None,
        }
    }

    /// An integer, also one in quotes.
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.digits(name)?.parse().ok()
    }

    /// The text of a number, also one in quotes.
    pub fn digits(&self, name: &str) -> Option<&'a str> {
        match self.raw(name)? {
            Raw::Number(text) | Raw::Text(RawText { text, escaped: false }) => Some(text),
            _ => None,
        }
    }

    /// A time from the members `<prefix>us`, `<prefix>ms`, `<prefix>ns`; 0 is none.
    pub fn time(&self, us: &str, ms: &str, ns: &str) -> Option<i64> {
        let us = self.integer(us).filter(|t| *t != 0);
        let ms = || self.integer(ms).filter(|t| *t != 0).and_then(|t| t.checked_mul(1_000));
        let ns = || self.integer(ns).filter(|t| *t != 0).map(|t| t.div_euclid(1_000));
        us.or_else(ms).or_else(ns)
    }

    /// The outer times of an envelope.
    pub fn times(&self, source: Option<i64>, broker: Option<i64>) -> Times {
        Times { source, connector: self.time("ts_us", "ts_ms", "ts_ns"), broker }
    }
}

/// An envelope says each thing once.
///
/// # Errors
/// If a member comes twice.
pub fn unique(members: &[Member<'_>], at: usize) -> Result<(), Reject> {
    for (i, m) in members.iter().enumerate().take(64) {
        if members[..i].iter().any(|o| o.name.text == m.name.text) {
            return Err(
                Reject::new(format!("the member `{}` comes twice", shortened(m.name.text))).at(at + m.at)
            );
        }
    }
    Ok(())
}

/// `schema.table`, or `db.table` where the source has no schemas.
pub fn table_name<'a>(source: &SourceRef<'a>, scratch: &mut Scratch<'a>) -> Option<&'a str> {
    let table = source.table?;
    let Some(space) = source.schema.or(source.db) else { return Some(table) };
    Some(scratch.put_str(|out| {
        out.push_str(space);
        out.push('.');
        out.push_str(table);
    }))
}
