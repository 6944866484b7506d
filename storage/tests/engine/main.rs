//! The engine against the naive model: random histories of every kind, in four states of the store.

mod model;
mod power;
mod table;
mod widen;
