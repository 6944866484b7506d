//! The storage engine of asofdb: log, runs, index and the bitemporal core. Synchronous; knows no
//! SQL, no terminal, no network and no environment.
//!
//! Rules named like A1 or B3 are those of `docs/semantics.md`.

pub mod clock;
pub mod disk;
pub mod engine;
pub mod event;
pub mod hex;
pub mod id;
pub mod index;
pub mod key;
pub mod leaves;
pub mod log;
mod recycle;
pub mod run;
pub mod schema;
pub mod time;
pub mod timeline;
pub mod value;

pub use recycle::recycle;
