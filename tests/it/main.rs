//! End-to-end tests of the library.

mod intake;
mod memory;
