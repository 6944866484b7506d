//! Topics of Apache Kafka. Offsets are the store's: they go into the commit of their messages, and reading
//! begins where the store is. Of librdkafka only `assign` is used, once a client; its group is never
//! committed to.

#![cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "it serves the reader, which is not built"))]

#[cfg(feature = "kafka")]
mod client;
mod options;
#[cfg(feature = "kafka")]
mod partition;
#[cfg(feature = "kafka")]
mod reader;
#[cfg(feature = "kafka")]
mod trouble;
#[cfg(not(feature = "kafka"))]
mod without;

pub use options::{KafkaOptions, Start, Until};
#[cfg(feature = "kafka")]
pub use reader::TopicReader;
#[cfg(not(feature = "kafka"))]
pub use without::TopicReader;

/// A partition as the store knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// The offset to go on from; `None` = nothing was taken or decided.
    pub next: Option<u64>,
    /// What the message before `next` was, as [`TopicReader::positions`] said.
    pub digest: String,
    /// What the next message may depend on.
    pub state: Option<serde_json::Value>,
    /// The format of the messages before.
    pub format: Option<crate::format::Format>,
    /// How many other topics of the name came before.
    pub generation: u32,
}

/// How far reading came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// There may be more at once.
    More,
    /// Nothing came for a while; what was delivered is worth a commit.
    Idle,
    /// The end that was asked for, or of what there is.
    End,
}

#[cfg(all(test, feature = "kafka"))]
mod tests;
