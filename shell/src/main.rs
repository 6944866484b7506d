//! `asof`: the command of asofdb.

mod outcome;
mod render;
mod text;

fn main() {}
