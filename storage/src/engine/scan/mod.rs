//! Answering questions from sorted sources.

mod batches;
mod cast;
mod counted;
mod counts;
mod events;
mod fold;
mod gather;
mod group;
mod intervals;
mod keys;
mod lineage;
mod loaded;
mod look_up;
mod open_rows;
mod plan;
mod points;
mod rows;
mod same;
mod single;
mod source;
mod stored;
mod tape;
mod values;

pub(crate) use cast::{cast_batch, extend_batch};
pub use counts::{ScanCounts, ScanFigures};
pub(crate) use gather::{internal, projected_fields};
pub(crate) use lineage::{Names, StoredTruncate, truncates_of_source};
pub(crate) use look_up::PointReader;
pub(crate) use open_rows::KeysOf;
pub(crate) use plan::TableScan;
pub(crate) use points::{PointScan, SINGLE_KEYS};
pub(crate) use source::{BatchIter, RowReader, SortedSource, Traits};
pub(crate) use tape::Tapes;
