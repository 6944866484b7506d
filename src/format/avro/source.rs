//! What a schema registry answers.

use std::fmt::Debug;
use std::sync::Arc;

/// A schema as it was registered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaText {
    /// The schema as JSON.
    pub schema: String,
    /// The schemas it refers to, in an order in which each refers to those before it only.
    pub references: Vec<String>,
}

/// Why there is no schema of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSchema {
    /// Nobody has registered it: the message cannot be read.
    Unknown(String),
    /// It could not be found out: the intake stops, and may go on later.
    Unreachable(String),
    /// It is another one than it was: the intake stops, since messages would be read wrongly.
    Changed(String),
}

/// Gives the schemas of ids.
pub trait SchemaSource: Debug + Send + Sync {
    /// The schema that was registered under that id.
    ///
    /// # Errors
    /// If there is none, or it cannot be found out.
    fn schema(&self, id: u64) -> Result<Arc<SchemaText>, NoSchema>;

    /// What the commit of the messages read since the last call is to keep, by keys of the catalog.
    fn take_new(&self) -> Vec<(String, serde_json::Value)> {
        Vec::new()
    }

    /// While it is the same, an id that was unknown is not asked for again.
    fn round(&self) -> u64 {
        0
    }
}
