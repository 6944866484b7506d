//! What the intake options make of a message, the same for every format: operation, declared times,
//! the columns that are written.

use super::expr::Fields;
use super::fields::{Reject, find, shortened, untyped_cell};
use super::json;
use super::options::{Absent, ColumnChoice, FormatOptions, OpWord, TimeColumn};
use super::scratch::Scratch;
use super::time_text::{self, TimeText};
use crate::change::{AxisValue, Change, Column, Declared, Message, SourceRef, Times};
use asofdb_storage::event::Op;
use asofdb_storage::leaves::{is_object as json_object, leaves_without_nulls};
use asofdb_storage::time::AxisType;
use asofdb_storage::value::{Cell, write_text};
use chrono::{Offset, TimeZone};

/// What the declared times are called in messages to people.
pub(super) const VALID_TIME: &str = "valid time";
pub(super) const SYSTEM_TIME: &str = "system time";

/// The fields of the envelope that options may name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Envelope<'a> {
    /// The operation as the format spells it.
    pub op: Option<&'a str>,
    /// The times.
    pub times: Times,
    /// Offset or row.
    pub position: u64,
    /// Source.
    pub source: SourceRef<'a>,
    /// Table as the change names it.
    pub table: Option<&'a str>,
    /// Transaction.
    pub transaction_id: Option<&'a str>,
}

impl<'a> Envelope<'a> {
    /// The envelope of a message that has none.
    pub fn of_message(message: &Message<'a>) -> Envelope<'a> {
        let times = Times { broker: message.broker_time, ..Times::default() };
        Envelope { times, position: message.position, ..Envelope::default() }
    }

    fn field(&self, name: &str) -> Option<Cell<'a>> {
        let time = |t: Option<i64>| t.map_or(Cell::Null, Cell::Instant);
        let text = |t: Option<&'a str>| t.map_or(Cell::Null, Cell::Text);
        Some(match name {
            "_commit_time" => time(self.times.source),
            "_connector_time" => time(self.times.connector),
            "_broker_time" => time(self.times.broker),
            "_position" => Cell::Int(self.position.min(i64::MAX as u64) as i64),
            "_db" => text(self.source.db),
            "_table" => text(self.table),
            "_transaction_id" => text(self.transaction_id),
            "_operation" => text(self.op),
            _ => return None,
        })
    }
}

/// The fields of a message under their names.
pub struct View<'v, 'a> {
    /// Columns as sent.
    pub columns: &'v [Column<'a>],
    /// Envelope.
    pub envelope: &'v Envelope<'a>,
    /// Room for values inside objects.
    pub scratch: &'v mut Scratch<'a>,
}

impl<'a> View<'_, 'a> {
    /// A column by its name, a field of the envelope, or a value inside an object by its path.
    pub fn get(&mut self, name: &str) -> Cell<'a> {
        if let Some(c) = find(self.columns, name) {
            return c.cell;
        }
        if let Some(cell) = name.starts_with('_').then(|| self.envelope.field(name)).flatten() {
            return cell;
        }
        self.inside(name).unwrap_or(Cell::Unchanged)
    }

    fn inside(&mut self, path: &str) -> Option<Cell<'a>> {
        let (head, mut rest) = path.split_once('.')?;
        let Cell::Json(mut text) = find(self.columns, head)?.cell else { return None };
        loop {
            let (name, deeper) = rest.split_once('.').map_or((rest, None), |(n, r)| (n, Some(r)));
            match (json::member(text, name)?, deeper) {
                (json::Raw::Nested { text: inner, .. }, Some(deeper)) => (text, rest) = (inner, deeper),
                (raw, None) => return untyped_cell(&raw, self.scratch).ok(),
                _ => return None,
            }
        }
    }
}

impl Fields for View<'_, '_> {
    fn field(&mut self, column: &str) -> Cell<'_> {
        self.get(column)
    }
}

pub(super) fn absent(cell: &Cell<'_>) -> bool {
    matches!(cell, Cell::Unchanged | Cell::Unknown | Cell::Null)
}

/// The operation of a message of a plain format; `None` for an image before an update.
///
/// # Errors
/// If the operation is not known.
pub fn operation(options: &FormatOptions, view: &mut View<'_, '_>) -> Result<Option<Op>, Reject> {
    let Some(column) = &options.op else { return Ok(Some(options.default_op)) };
    operation_of(options, column, &view.get(column))
}

/// The operation that a cell of the column of operations says.
pub(super) fn operation_of(
    options: &FormatOptions,
    column: &str,
    cell: &Cell<'_>,
) -> Result<Option<Op>, Reject> {
    if absent(cell) {
        return Ok(Some(options.default_op));
    }
    let mut buffer = String::new();
    let word = match *cell {
        Cell::Text(t) => t,
        _ => {
            write_text(&mut buffer, cell);
            &buffer
        }
    };
    let mapped = options.op_map.iter().find(|(value, _)| value == word).map(|(_, op)| *op);
    match mapped.or_else(|| OpWord::from_word(word)) {
        Some(OpWord::Op(op)) => Ok(Some(op)),
        Some(OpWord::PreImage) => Ok(None),
        None => Err(Reject::new(format!("unknown operation `{}` in column `{column}`", shortened(word)))
            .hint("--op-map says what the values mean, as in --op-map new=insert,gone=delete")),
    }
}

/// `--truncate-when` and `--delete-when`.
pub fn overridden(options: &FormatOptions, view: &mut View<'_, '_>, op: Op) -> Op {
    if options.truncate_when.as_ref().is_some_and(|e| e.is_true(view)) {
        return Op::Truncate;
    }
    if options.delete_when.as_ref().is_some_and(|e| e.is_true(view)) { Op::Delete } else { op }
}

/// The declared times and marks. `ties` is filled and becomes part of the answer by the caller.
///
/// # Errors
/// If a declared time is NULL, missing, or no time.
pub fn declared<'a>(
    options: &FormatOptions,
    view: &mut View<'_, 'a>,
    ties: &mut Vec<Cell<'a>>,
) -> Result<Declared<'a>, Reject> {
    let valid_from = options.valid.as_ref().map(|c| axis(c, VALID_TIME, options, view)).transpose()?;
    let system = options.system.as_ref().map(|c| axis(c, SYSTEM_TIME, options, view)).transpose()?;
    let valid_to = match &options.valid_end {
        Some(c) if !absent(&view.get(&c.column)) => Some(axis(c, "valid end", options, view)?),
        _ => None,
    };
    for name in &options.tie_break {
        let cell = view.get(name);
        ties.push(if absent(&cell) { Cell::Null } else { cell });
    }
    let operation_id = options.operation_id.as_ref().map(|c| view.get(c)).filter(|c| !absent(c));
    Ok(Declared { valid_from, valid_to, system, ties: &[], operation_id })
}

fn axis<'a>(
    column: &TimeColumn,
    role: &str,
    options: &FormatOptions,
    view: &mut View<'_, 'a>,
) -> Result<AxisValue, Reject> {
    axis_of(column, role, options, &view.get(&column.column))
}

/// The instant that a cell is as a time of the source's own; `None` if it is none.
#[cfg(feature = "pull")]
pub fn instant_of(column: &TimeColumn, options: &FormatOptions, cell: &Cell<'_>) -> Option<i64> {
    let time = axis_of(column, "time", options, cell).ok()?;
    (time.axis == AxisType::Instant).then_some(time.value)
}

/// The declared time that a cell of its column is.
pub(super) fn axis_of(
    column: &TimeColumn,
    role: &str,
    options: &FormatOptions,
    cell: &Cell<'_>,
) -> Result<AxisValue, Reject> {
    let name = &column.column;
    let bad = |what: &str| Reject::new(format!("{role} `{name}` {what}"));
    let instant = |value: i64| AxisValue { value, axis: AxisType::Instant };
    let local = |us: i64| zoned(us, options).ok_or_else(|| bad("does not exist in the declared zone"));
    let range = || bad("is beyond the range of times");
    match *cell {
        Cell::Unchanged | Cell::Unknown | Cell::Null => Err(bad("is NULL or missing")),
        Cell::Int(value) => match column.unit {
            None => Ok(AxisValue { value, axis: AxisType::Integer }),
            Some(unit) => unit.micros(value).map(instant).ok_or_else(range),
        },
        Cell::Decimal { unscaled, scale } => match column.unit {
            None => Err(bad("is not a whole number").hint("a unit makes it a time: COL:s")),
            Some(unit) => decimal_micros(unscaled, scale, unit).map(instant).ok_or_else(range),
        },
        Cell::Instant(us) => Ok(instant(us)),
        Cell::Timestamp(us) => local(us).map(instant),
        Cell::TimestampNs(ns) => local(ns.div_euclid(1_000)).map(instant),
        Cell::Date(days) => local(days as i64 * 86_400_000_000).map(instant),
        Cell::Text(text) => match time_text::parse(text.trim()) {
            Some(TimeText::Instant(t)) => Ok(instant(t.us)),
            Some(TimeText::Local(t)) => local(t.us).map(instant),
            Some(TimeText::Date(days)) => local(days as i64 * 86_400_000_000).map(instant),
            None => number_text(text.trim(), column).ok_or_else(|| {
                bad(&format!("is `{}`, which is not a time", shortened(text)))
                    .hint("times as text are ISO 8601 or RFC 3339, as 2026-01-31T10:00:00Z")
            }),
        },
        _ => Err(bad("is neither a number nor a time").hint("a column of text or numbers can be a time")),
    }
}

/// A time sent as digits in quotes.
fn number_text(text: &str, column: &TimeColumn) -> Option<AxisValue> {
    let value: i64 = text.parse().ok()?;
    Some(match column.unit {
        None => AxisValue { value, axis: AxisType::Integer },
        Some(unit) => AxisValue { value: unit.micros(value)?, axis: AxisType::Instant },
    })
}

fn decimal_micros(unscaled: i128, scale: u8, unit: super::options::TimeUnit) -> Option<i64> {
    use super::options::TimeUnit;
    let (factor, divisor) = match unit {
        TimeUnit::S => (1_000_000, 1),
        TimeUnit::Ms => (1_000, 1),
        TimeUnit::Us => (1, 1),
        TimeUnit::Ns => (1, 1_000),
    };
    let divisor = 10i128.checked_pow(scale as u32)?.checked_mul(divisor)?;
    i64::try_from(unscaled.checked_mul(factor)?.div_euclid(divisor)).ok()
}

/// A wall-clock time in the declared zone; the earlier of two where clocks were set back.
pub fn zoned(us: i64, options: &FormatOptions) -> Option<i64> {
    let Some(zone) = options.zone else { return Some(us) };
    let local = chrono::DateTime::from_timestamp_micros(us)?.naive_utc();
    let offset = zone.offset_from_local_datetime(&local).earliest()?.fix().local_minus_utc();
    us.checked_sub(offset as i64 * 1_000_000)
}

/// The columns that are written: `--columns`, `--ignore-null-updates`, `--columns-to-update`.
/// Says whether columns that are missing are NULL, and whether the columns were put into `out`; if not,
/// they are all of those sent. With `leaves` objects are written leaf by leaf where an event does not
/// write whole columns (rule B5): under `--absent unchanged` and `--ignore-null-updates`.
///
/// # Errors
/// If the list of columns to update names a column that was not sent, or is no list.
pub fn image<'a>(
    options: &FormatOptions,
    op: Op,
    columns: &[Column<'a>],
    out: &mut Vec<Column<'a>>,
    mut leaves: Option<&mut Scratch<'a>>,
) -> Result<(bool, bool), Reject> {
    let partial = is_partial(options, op);
    let mut full = op.ends_row() || !partial;
    let listed = match &options.columns_to_update {
        Some(name) if !op.ends_row() => Some(list(columns, name)?),
        _ => None,
    };
    let ignored = options.ignore_null.as_ref().filter(|_| !op.ends_row());
    full &= listed.is_none() && ignored.is_none();
    let by_leaf = |c: &Column<'a>| match c.cell {
        Cell::Json(text) if listed.is_none() && json_object(text) => {
            partial || ignored.is_some_and(|i| i.contains(c.name))
        }
        _ => false,
    };
    let has_leaves = leaves.is_some() && !full && columns.iter().any(by_leaf);
    let filtered = listed.is_some() || ignored.is_some() || options.columns != ColumnChoice::All;
    if !filtered && !has_leaves {
        return Ok((full, false));
    }
    for c in columns.iter().filter(|c| options.columns.contains(c.name)) {
        let unauthored = c.cell == Cell::Null && ignored.is_some_and(|i| i.contains(c.name))
            || listed.as_ref().is_some_and(|l| !l.iter().any(|n| n == c.name));
        if unauthored {
            continue;
        }
        match (c.cell, leaves.as_deref_mut()) {
            (Cell::Json(text), Some(scratch)) if has_leaves && by_leaf(c) => {
                let ignored = ignored.is_some_and(|i| i.contains(c.name));
                out.extend(leaves_of(text, ignored, scratch).map(|cell| Column { cell, ..*c }));
            }
            _ => out.push(*c),
        }
    }
    Ok((full, true))
}

/// The leaves of an object that are written; `None` if they are all NULL and so not authored.
fn leaves_of<'a>(text: &'a str, nulls_ignored: bool, scratch: &mut Scratch<'a>) -> Option<Cell<'a>> {
    if !nulls_ignored || !text.contains("null") {
        return Some(Cell::Leaves(text));
    }
    let left = leaves_without_nulls(text)?;
    Some(Cell::Leaves(scratch.put_str(|out| out.push_str(&left))))
}

/// Whether an operation writes only the columns that are sent.
pub(super) fn is_partial(options: &FormatOptions, op: Op) -> bool {
    options.absent == Some(Absent::Unchanged) && matches!(op, Op::Update | Op::Upsert)
}

fn list(columns: &[Column<'_>], name: &str) -> Result<Vec<String>, Reject> {
    let text = match find(columns, name).map(|c| c.cell) {
        None | Some(Cell::Null | Cell::Unchanged | Cell::Unknown) => return Ok(Vec::new()),
        Some(Cell::Json(text) | Cell::Text(text)) => text,
        Some(_) => return Err(Reject::new(format!("`{name}` is not a list of columns"))),
    };
    let names: Vec<String> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(|_| Reject::new(format!("`{name}` is not a list of columns")))?
    } else {
        text.split(',').map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect()
    };
    match names.iter().find(|n| find(columns, n).is_none()) {
        Some(unknown) => Err(Reject::new(format!(
            "`{name}` lists the column `{}`, which the message does not have",
            shortened(unknown)
        ))),
        None => Ok(names),
    }
}

/// What the envelope alone declares: the columns of a message without a value are not there, and
/// times that need them are left out.
pub fn declared_of_tombstone<'a>(
    options: &FormatOptions,
    envelope: &Envelope<'a>,
    ties: &mut Vec<Cell<'a>>,
    scratch: &mut Scratch<'a>,
) -> Declared<'a> {
    let mut view = View { columns: &[], envelope, scratch };
    let axis = |c: &Option<TimeColumn>, view: &mut View<'_, 'a>| axis(c.as_ref()?, "", options, view).ok();
    let (valid_from, system) = (axis(&options.valid, &mut view), axis(&options.system, &mut view));
    ties.extend(options.tie_break.iter().map(|name| match view.get(name) {
        cell if absent(&cell) => Cell::Null,
        cell => cell,
    }));
    Declared { valid_from, valid_to: None, system, ties: &[], operation_id: None }
}

/// The delete that a message without a value is in a plain format; `None` without a key.
pub fn plain_tombstone<'a>(
    options: &FormatOptions,
    message: &Message<'a>,
    key: &[Column<'a>],
    ties: &mut Vec<Cell<'a>>,
    scratch: &mut Scratch<'a>,
) -> Option<Change<'a>> {
    if key.is_empty() {
        return None;
    }
    let envelope = Envelope::of_message(message);
    let mut change = Change::new(Op::Delete);
    change.tombstone = true;
    change.times = envelope.times;
    change.declared = declared_of_tombstone(options, &envelope, ties, scratch);
    Some(change)
}

/// The change a plain row is; `None` for an image before an update. The flag says whether the image
/// is what was put into `image` rather than all columns.
///
/// # Errors
/// If the operation is unknown or a declared time cannot be read.
pub fn plain_change<'a>(
    options: &FormatOptions,
    message: &Message<'a>,
    columns: &[Column<'a>],
    image_out: &mut Vec<Column<'a>>,
    ties: &mut Vec<Cell<'a>>,
    scratch: &mut Scratch<'a>,
) -> Result<Option<(Change<'a>, bool)>, Reject> {
    let envelope = Envelope::of_message(message);
    let mut view = View { columns, envelope: &envelope, scratch };
    let Some(op) = operation(options, &mut view)? else { return Ok(None) };
    let op = overridden(options, &mut view, op);
    let mut change = Change::new(op);
    change.declared = declared(options, &mut view, ties)?;
    change.times = envelope.times;
    let (full, filtered) = image(options, op, columns, image_out, Some(scratch))?;
    change.full = full;
    Ok(Some((change, filtered)))
}
