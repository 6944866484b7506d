//! A naive model of asofdb for its tests: what a table should answer, computed as plainly as can be
//! and without any code of the store. Histories are lists of [`Change`]s; [`Model`] answers points by
//! filtering, sorting and replaying them, and interval rows by asking at every instant of change.
//! [`generate`] has proptest strategies for random histories.

pub mod change;
pub mod generate;
pub mod model;
pub mod object;
pub mod rows;

pub use change::{Act, Cell, Change};
pub use generate::Shape;
pub use model::{Image, Model};
pub use object::Object;
pub use rows::{Rectangle, Version};
