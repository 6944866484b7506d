//! Pure functions over text: SQL tokens and statements, instants as people write them, near names.

pub mod lex;
pub mod when;
