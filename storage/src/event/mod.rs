//! Events: one change of one row, as the log keeps it and as runs hold it.
//!
//! An event is written once, as a self-describing row of bytes ([`encode_row`]): the row is what the
//! log frames carry, what commitments are computed over, and what everything else is derived from.
//! [`decode_rows`] turns rows into Arrow columns under a given schema ([`columns`]); memory table,
//! runs and scans work on those columns only.

pub mod columns;
mod decode;
mod head;
mod marks;
mod narrow;
mod recipe;
mod recode;
mod row;
mod sparse;
mod twins;
mod varint;

pub use columns::{EventColumns, event_schema, image_column_name};
pub(crate) use decode::image_column;
pub use decode::{FrameContext, content_hash, decode_rows};
pub use head::{EventHead, Op, TimeSource};
pub(crate) use recipe::{Habit, Recipe, Shape, order_of};
pub(crate) use recode::{Recoder, guess_rows};
pub(crate) use row::{CellReader, put_cell};
pub use row::{RowError, RowView, encode_row};
pub(crate) use twins::{are_twins, twin_of};
pub(crate) use varint::put_varint;
pub use varint::short_varint;
