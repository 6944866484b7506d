//! End-to-end tests of the library.

mod bench;
mod corpus;
mod expect;
mod export;
mod gap;
mod intake;
mod memory;
mod named_columns;
mod quarantine;
mod rows;
mod shapes;
mod sql;
mod stored;
mod tidy;
