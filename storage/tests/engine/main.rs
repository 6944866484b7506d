//! The engine against the naive model: random histories of every kind, in four states of the store.

mod commits;
mod counts;
mod faults;
mod folds;
mod guards;
mod hook;
mod keyed;
mod merging;
mod model;
mod passes;
mod power;
mod pruned;
mod readers;
mod rebuild;
mod replay;
mod salvage;
mod shrink;
mod table;
mod widen;
