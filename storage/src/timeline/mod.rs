//! The bitemporal core: the events of one key in, beliefs, interval rows and rectangles out.
//!
//! Pure: no I/O, no Arrow, no SQL, no values. A caller lays a key's events into a [`KeyHistory`];
//! an image is, per column, *which event wrote it* ([`Writer`]; more than one where leaves of structs
//! were written), and values are compared only through a callback. Every answer is the fold of rules B2 and B5: last writer wins per column, in the total
//! order of rule B3. Where a file seems to do something else, it is the same fold made faster.

mod belief;
mod error;
mod event;
mod line;
mod multiset;
mod order;
mod placement;
mod point;
mod rectangles;
mod sweep;

pub use belief::{Belief, Tracked, Version};
pub use error::TimelineError;
pub use event::{KeyEvent, KeyHistory, Merge, Writer};
pub use multiset::{Instance, RowHistory, RowRectangle};
pub use order::{EventOrder, Origin, Truncate, full_load_number, natural_cmp, origin_ranks};
pub use placement::{Arrival, Neighbour, Placed, Placement, Times, place};
pub use point::{Bound, CHAIN_HOPS_MAX, Scratch};
pub use rectangles::{Limits, Rectangle, Rectangles};
