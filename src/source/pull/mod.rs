//! Tables of SQL databases: where one is, what its columns are, and its rows as text and bytes that
//! become exact values. Everything is read in one transaction, without writing anything.

#![cfg_attr(
    not(feature = "pull"),
    allow(dead_code, unused_imports, reason = "it serves the reader, which is not built")
)]

mod address;
mod mark;
mod value;

#[cfg(feature = "pull")]
mod mysql;
#[cfg(feature = "pull")]
mod postgres;
#[cfg(feature = "pull")]
mod reader;
#[cfg(feature = "pull")]
mod sqlite;
#[cfg(feature = "pull")]
mod statement;

pub(crate) use address::Address;
pub use address::is_address;
pub(crate) use mark::{Mark, MarkKind, Overlap};
#[cfg(feature = "pull")]
pub(crate) use reader::{Described, Reading, Row, Scope};

#[cfg(all(test, feature = "pull"))]
pub(crate) mod tests;
