//! Timestamps of TiDB: milliseconds in the upper bits, a counter in the lower 18.

use super::scratch::Scratch;
use crate::change::Token;

/// A commit timestamp. TiDB gives each transaction its own, in the order of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tso(u64);

impl Tso {
    /// The timestamp of these digits; 0 is none.
    pub fn parse(digits: &str) -> Option<Tso> {
        digits.parse().ok().filter(|n| *n > 0).map(Tso)
    }

    /// When the transaction was committed, in microseconds.
    pub fn micros(self) -> i64 {
        (self.0 >> 18) as i64 * 1_000
    }
}

/// The position that a commit timestamp is.
pub fn tidb_token<'a>(tso: Tso, scratch: &mut Scratch<'a>) -> Token<'a> {
    Token { server: "tidb", position: scratch.put(&tso.0.to_be_bytes()) }
}
