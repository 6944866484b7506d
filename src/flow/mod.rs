//! Declared flows: what `CREATE FLOW` says ([`definition`], [`source`]), how it is kept in the catalog
//! ([`stored`]), and how it runs ([`open`], [`run`]). The statements are read in [`crate::sql`]; see
//! `docs/flows.md`.

mod definition;
mod open;
mod run;
mod source;
mod stored;
mod text;

pub use definition::{Flow, FlowClauses, FlowTable, StoredAs, Target};
pub(crate) use open::check;
pub use open::{Opened, Opening, Variable, open};
pub use run::{FlowRun, FlowState, Runner, Trigger};
pub use source::{FlowSource, SourceKind};
pub(crate) use source::{check as check_setting, check_place};
pub use stored::{NamedFlow, find, flows};
pub(crate) use stored::{declare, drop_flow, named};

#[cfg(test)]
mod tests;
