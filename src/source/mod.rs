//! Where bytes come from, and the identity of what was read (rule C1).

mod natural;
mod position;

pub use natural::natural_order;
pub use position::{Notice, Place, SourceError, SourcePosition};
