//! From decoded changes to commits: tables and schemas (rule B14), identity of events (rule C1),
//! placing on valid time (rules A4, A5), quarantine (rule C2), batches and their commits (rule C3).

mod arrow_rows;
mod batch;
mod check;
mod cuts;
mod driver;
mod emit;
mod files;
mod fit;
mod gap;
mod kafka;
mod keys;
mod numbers;
mod pending;
mod pull;
mod redecode;
mod replay;
mod report;
mod rows;
mod sink;
mod sources;
mod table;

pub use arrow_rows::RowMessages;
pub use driver::{Messages, Step, Take, run};
pub use files::FileMessages;
pub use gap::StreamStart;
pub(crate) use gap::accept;
pub use kafka::KafkaMessages;
pub use pull::{PullMessages, PullOptions};
pub use redecode::RawMessages;
pub use replay::{Waiting, replay};
pub use report::{IntakeReport, Progress};
pub use sink::Sink;
pub use sources::{SourceState, sources};
