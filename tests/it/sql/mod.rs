//! Questions in SQL, over a store on disk.

mod any_text;
mod clocks;
mod documents;
mod errors;
mod explain;
mod fixture;
mod flows;
mod keyless;
mod label_joins;
mod leaves;
mod limits;
mod model;
mod model_store;
mod places;
mod pushed;
mod session;
mod shown;
mod single;
mod slt;
mod why;
