//! The keyed index in the engine: what it answers, how it is kept up, and how it is checked.
//!
//! It holds of each key the open interval row, as far as runs go. Whatever it does not surely know is
//! answered from runs and memory: without it the engine answers the same, only slower.

mod answer;
mod changes;
mod check;
mod handle;
mod upkeep;

pub(crate) use handle::Keyed;
