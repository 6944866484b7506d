//! `asof`: the command of asofdb.

mod args;
mod backend;
mod interrupt;
mod outcome;
mod render;
mod repl;
mod runner;
#[cfg(test)]
mod testing;
mod text;

fn main() {}
