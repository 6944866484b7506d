//! Questions in SQL, over a store on disk.

mod any_text;
mod documents;
mod errors;
mod fixture;
mod limits;
mod places;
mod session;
mod slt;
