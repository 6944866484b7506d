//! From the members of an envelope and its rows to a change.

use super::origin::origin;
use super::table::Topics;
use crate::change::{Change, Column, Decoded, Message, Numbered, Previous, Sink};
use crate::format::block::{Block, table_name};
use crate::format::declare::{self, Envelope, View};
use crate::format::fields::{Reject, shortened};
use crate::format::json::{self, Member, Raw};
use crate::format::options::FormatOptions;
use crate::format::scratch::Scratch;
use asofdb_storage::event::Op;
use asofdb_storage::recycle;
use asofdb_storage::value::Cell;

/// What a message is, but for its rows.
#[allow(clippy::large_enum_variant, reason = "lives for one call")]
pub enum Step<'a> {
    /// A change; with `filtered` its image is what was put aside, else all columns of the row.
    Change {
        /// Without its rows.
        change: Change<'a>,
        /// See above.
        filtered: bool,
    },
    /// No row event.
    Ignored(&'static str),
}

/// The rows of an envelope and what goes with them, kept from message to message.
#[derive(Debug, Default)]
pub struct Rows<'a> {
    /// The row of the change.
    pub row: Vec<Column<'a>>,
    /// Numbers of the names of `row`; none unless all have one.
    pub numbers: Vec<u16>,
    /// The old row of an update.
    pub before: Vec<Column<'a>>,
    /// The columns of the row that are written, if not all are.
    pub image: Vec<Column<'a>>,
    /// The record's key.
    pub key: Vec<Column<'a>>,
    /// The former key.
    pub previous: Vec<Column<'a>>,
    /// Values that break ties.
    pub ties: Vec<Cell<'a>>,
}

impl<'a> Rows<'a> {
    /// The same buffers, empty, for another message.
    pub fn recycled<'b>(self) -> Rows<'b> {
        Rows {
            row: recycle(self.row),
            numbers: recycle(self.numbers),
            before: recycle(self.before),
            image: recycle(self.image),
            key: recycle(self.key),
            previous: recycle(self.previous),
            ties: recycle(self.ties),
        }
    }

    /// Hands a message over, exactly once. `numbered` are the numbers of the names of the row.
    pub fn deliver(
        &self,
        step: Result<Step<'a>, Reject>,
        message: &Message<'a>,
        numbered: Numbered<'a>,
        sink: &mut Sink<'_>,
    ) {
        match step {
            Ok(Step::Ignored(kind)) => sink(Decoded::Ignored(kind)),
            Ok(Step::Change { mut change, filtered }) => {
                change.declared.ties = &self.ties;
                change.fields = &self.row;
                change.image = if filtered { &self.image } else { &self.row };
                if !filtered {
                    change.numbered = numbered;
                }
                change.before = if change.op == Op::Delete { &self.row } else { &self.before };
                change.key = &self.key;
                change.headers = message.headers;
                if !self.previous.is_empty() {
                    change.previous = Some(Previous { key: &self.previous, deletes_sent: true });
                }
                sink(Decoded::Changes(&[change]));
            }
            Err(reject) => sink(Decoded::Quarantine(reject.fault())),
        }
    }
}

/// What an envelope does.
pub enum Operation {
    /// A change of a row, with its code.
    Change(&'static str, Op),
    /// No row event.
    Ignored(&'static str),
}

/// The operation of an envelope.
///
/// # Errors
/// If it is not known, or there is none in a message that is none of the connector's others.
pub fn operation(block: &Block<'_, '_>) -> Result<Operation, Reject> {
    let (code, op) = match block.raw("op") {
        Some(Raw::Text(t)) => match t.text {
            "c" => ("c", Op::Insert),
            "r" => ("r", Op::Read),
            "u" => ("u", Op::Update),
            "d" => ("d", Op::Delete),
            "t" => ("t", Op::Truncate),
            "m" => return Ok(Operation::Ignored("message")),
            other => {
                return Err(Reject::new(format!("unknown operation `{}`", shortened(other)))
                    .hint("Debezium's are c, r, u, d, t and m"));
            }
        },
        Some(Raw::Null) | None => return side_message(block).map(Operation::Ignored),
        Some(_) => return Err(Reject::new("the operation is not a text")),
    };
    Ok(Operation::Change(code, op))
}

/// The names of the row of a change and of the old row beside it; empty = none. An old row is needed where
/// nothing else names the row.
pub fn row_names(op: Op, keyed: bool) -> (&'static str, &'static str) {
    match op {
        Op::Delete => ("before", ""),
        Op::Truncate => ("", ""),
        Op::Update if !keyed => ("after", "before"),
        _ => ("after", ""),
    }
}

/// Whether a change may be without its row.
///
/// # Errors
/// If not.
pub fn without_row(op: Op, keyed: bool) -> Result<(), Reject> {
    match op {
        Op::Truncate => Ok(()),
        Op::Delete if keyed => Ok(()),
        Op::Delete => Err(Reject::new("a delete with neither a key nor `before`")),
        _ => Err(Reject::new(format!("a change of kind {} without `after`", op.word()))
            .hint("only deletes and truncates have none")),
    }
}

/// The change of an envelope: its table, times and position, from its members and those of its `source`.
pub fn change<'a>(
    op: Op,
    block: &Block<'_, 'a>,
    source: &[Member<'a>],
    message: &Message<'a>,
    scratch: &mut Scratch<'a>,
) -> Change<'a> {
    let origin = origin(source, scratch);
    let mut change = Change::new(op);
    change.table = table_name(&origin.source, scratch);
    change.source = origin.source;
    change.snapshot = origin.snapshot || op == Op::Read;
    change.token = origin.token.filter(|_| op != Op::Read);
    change.times = block.times(origin.time, message.broker_time);
    change.transaction_id = transaction(block, scratch).or(origin.transaction_id);
    change
}

/// What the options make of a change whose row was read.
///
/// # Errors
/// If a declared time cannot be read.
pub fn declared<'a>(
    options: &FormatOptions,
    message: &Message<'a>,
    mut change: Change<'a>,
    code: &'static str,
    rows: &mut Rows<'a>,
    scratch: &mut Scratch<'a>,
) -> Result<Step<'a>, Reject> {
    let envelope = Envelope {
        op: Some(code),
        times: change.times,
        position: message.position,
        source: change.source,
        table: change.table,
        transaction_id: change.transaction_id,
    };
    let mut view = View { columns: &rows.row, envelope: &envelope, scratch };
    let op = declare::overridden(options, &mut view, change.op);
    change.op = op;
    change.declared = declare::declared(options, &mut view, &mut rows.ties)?;
    // An envelope holds whole values of columns.
    let (full, filtered) = declare::image(options, op, &rows.row, &mut rows.image, None)?;
    change.full = full;
    Ok(Step::Change { change, filtered })
}

/// A message without a value.
pub fn tombstone<'a>(
    options: &FormatOptions,
    message: &Message<'a>,
    topics: &Topics,
    rows: &mut Rows<'a>,
    scratch: &mut Scratch<'a>,
) -> Step<'a> {
    if rows.key.is_empty() {
        return Step::Ignored(crate::format::TOMBSTONE_WITHOUT_KEY);
    }
    let mut change = Change::new(Op::Delete);
    change.tombstone = true;
    let envelope = Envelope::of_message(message);
    change.times = envelope.times;
    change.declared = declare::declared_of_tombstone(options, &envelope, &mut rows.ties, scratch);
    change.table = message.topic.and_then(|t| topics.guess(t, scratch));
    change.table_guessed = true;
    Step::Change { change, filtered: false }
}

fn transaction<'a>(block: &Block<'_, 'a>, scratch: &mut Scratch<'a>) -> Option<&'a str> {
    let Raw::Nested { text, .. } = block.raw("transaction")? else { return None };
    match json::member(text, "id")? {
        Raw::Text(t) => Some(t.resolve(scratch)),
        Raw::Number(t) => Some(t),
        _ => None,
    }
}

/// Messages of the connector that are about no row.
fn side_message(block: &Block<'_, '_>) -> Result<&'static str, Reject> {
    let has = |name: &str| block.raw(name).is_some();
    let only = |names: &[&str]| !block.0.is_empty() && block.0.iter().all(|m| names.contains(&m.name.text));
    if only(&["ts_ms", "ts_us", "ts_ns"]) {
        return Ok("heartbeat");
    }
    if has("status") && has("id") {
        return Ok("transaction");
    }
    if has("source") && ["ddl", "tableChanges", "historyRecord", "databaseName"].into_iter().any(has) {
        return Ok("schema_change");
    }
    if has("aggregate_type") && has("type") {
        return Ok("notification");
    }
    let what = if block.0.is_empty() { "the object is empty" } else { "there is no operation (`op`)" };
    Err(Reject::new(what).hint("this is no envelope of Debezium; --format json reads plain objects"))
}
