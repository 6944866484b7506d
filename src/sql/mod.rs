//! SQL over a store: sessions, temporal clauses, table functions. See `docs/sql.md`.
//!
//! A statement passes through: tokens ([`token`]) - one spelling per name ([`names`]) - temporal
//! clauses lifted out and marked ([`clause`], [`lift`]) - parser - DataFusion's planner, with every
//! table factor seen by [`relation`] first - per-row joins ([`per_row`]) - execution on the
//! engine's streams ([`table`], [`scan`]). One that asks for the row of one key is answered from its
//! tokens ([`single`]).

mod answer;
mod arithmetic;
mod ask;
mod bound;
mod catalog;
mod clause;
mod clock;
mod context;
mod deadline;
mod error;
mod flow;
mod flow_answer;
mod flow_clauses;
mod flow_cursor;
mod following;
mod functions;
mod key_ranges;
mod keys;
mod left_rows;
mod lift;
mod names;
mod one_key;
mod owner;
mod per_row;
mod per_row_exec;
mod per_row_keys;
mod per_row_node;
mod per_row_piece;
mod per_row_plan;
mod plan;
mod reader;
mod relation;
mod scan;
mod scan_metrics;
mod scan_name;
mod session;
mod settings;
mod single;
mod table;
mod texts;
mod token;
mod yielding;

pub(crate) use following::Following;
pub(crate) use functions::HISTORY_COLUMNS;
pub(crate) use names::set_apart;

pub use answer::{Answer, AnswerStream, Params};
pub use ask::Rows;
pub use clause::Axis;
pub use clock::{Applied, AppliedCommit, AppliedTime, Point, describe_range, parse_point};
pub use context::SessionClocks;
pub use error::{SqlError, SqlErrorKind};
pub use functions::TableFunction;
pub use one_key::OneKey;
pub use owner::Owner;
pub use reader::{Changed, MakeChange, Reader, ReaderSource};
pub use session::Session;
pub use settings::{Clock, Settings};
pub use token::{Place, Statement, StatementLimits, is_incomplete, split_script};
