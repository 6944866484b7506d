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
}

/// Gives the schemas of ids.
pub trait SchemaSource: Debug + Send + Sync {
    /// The schema that was registered under that id.
    ///
    /// # Errors
    /// If there is none, or it cannot be found out.
    fn schema(&self, id: u64) -> Result<Arc<SchemaText>, NoSchema>;
}
