//! Results as people and programs read them. Table modes escape what would drive a terminal; `csv`,
//! `json` and the file formats carry values as they are.

pub mod cell;
mod delimited;
pub mod escape;
mod files;
mod json;
mod mode;
mod plan;
mod table;
#[cfg(test)]
mod tests;
mod vertical;

pub use mode::{Mode, Options, Renderer, Sink, renderer};
pub use table::{clip, display_width};
