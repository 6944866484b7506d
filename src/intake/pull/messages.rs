//! Rows of a table as messages. What the last pull took already is recognised by comparing each row with
//! the last event of its key, so that an overlap stores nothing twice and rows of one instant are neither
//! lost nor doubled. The watermark is stored in the commit of the rows up to it.

use super::PullOptions;
use super::stored::{Last, Lasts, OpenRow, OpenRows, Stored};
use crate::change::{AxisValue, Change, Column, Decoded};
use crate::error::{Error, ErrorKind, Result};
use crate::format::declare;
use crate::format::fields::Reject;
use crate::format::options::{FormatOptions, TimeColumn};
use crate::format::scratch::ScratchBuffer;
use crate::intake::driver::{Messages, Step, Take};
use crate::intake::gap::next_in;
use crate::intake::numbers::Numbers;
use crate::intake::report::Progress;
use crate::near::near_names_hint;
use crate::options::IntakeOptions;
use crate::source::Place;
use crate::source::pull::{Described, Mark, MarkKind, Reading, Row, Scope};
use asofdb_storage::engine::{Catalog, Snapshot};
use asofdb_storage::event::Op;
use asofdb_storage::key::put_key_cell;
use asofdb_storage::recycle;
use asofdb_storage::time::AxisType;
use asofdb_storage::value::{Cell, Value};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_128;

/// Room for the text of one row's declared times.
const ROW_BYTES: usize = 4 << 10;
/// Kind of the repeats of a pull.
const UNCHANGED: &str = "unchanged";

/// How far a table was pulled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    /// The column with the watermark.
    watermark: String,
    /// The highest one, as the database writes it.
    high: String,
}

fn position_key(stream: &str) -> String {
    format!("pull/{stream}")
}

/// Rows of a table of a database.
pub struct PullMessages {
    reading: Reading,
    described: Described,
    shown: String,
    options: FormatOptions,
    watermark: Option<TimeColumn>,
    stream: String,
    /// The key columns, by their place in a row.
    key: Vec<usize>,
    /// The key is the source's own, which no two rows share.
    own_key: bool,
    stored: Option<Stored>,
    snapshot: bool,
    next: u64,
    /// The highest watermark of what was delivered, and whether it is to be stored.
    high: Option<String>,
    high_new: bool,
    /// The highest one of the whole table, for its end.
    highest: Option<String>,
    state: State,
    /// Keys that came, where it matters.
    seen: HashSet<u128>,
    nulls: u64,
    scratch: ScratchBuffer,
    parts: Parts<'static>,
    /// Operations are told as far as they are known.
    plain_ops: bool,
}

enum State {
    Rows,
    Page { rows: Vec<(Vec<u8>, Row)>, next: usize, lasts: Lasts },
    Deletes(OpenRows),
    End,
}

#[derive(Default)]
struct Parts<'a> {
    columns: Vec<Column<'a>>,
    image: Vec<Column<'a>>,
    key: Vec<Column<'a>>,
    ties: Vec<Cell<'a>>,
}

impl PullMessages {
    /// Connects and finds the table. `stored` is the store as it is; `None` if there is none yet.
    ///
    /// # Errors
    /// `Usage` for options that make no sense, `Source` if the database cannot be reached or the table or
    /// the watermark is not there. No error shows a password.
    pub fn open(
        pull: &PullOptions,
        intake: &IntakeOptions,
        stored: Option<Snapshot>,
    ) -> Result<PullMessages> {
        let plan = pull.plan(intake)?;
        let place = plan.address.shown();
        let (reading, described) = Reading::open(plan.address, plan.table, plan.watermark.clone())?;
        let stream = match &intake.source_name {
            Some(name) => name.clone(),
            None => format!("{place}/{}", described.table),
        };
        let table = intake.table.as_deref().unwrap_or(&described.name).to_owned();
        let catalog = stored.as_ref().map(|s| s.catalog().clone()).unwrap_or_default();
        let stored = stored.and_then(|s| Stored::of(s, &table, &stream));
        let key = key_columns(&described, intake.key_of(&table), stored.as_ref(), &table)?;
        if plan.snapshot {
            check_axes(intake, stored.as_ref())?;
        }
        let position = stored_position(&catalog, &stream)?;
        let column = plan.watermark.as_ref().map(|w| w.column.as_str());
        let high = position.filter(|p| Some(p.watermark.as_str()) == column).map(|p| p.high);
        let own: HashSet<&str> = described.key.iter().map(String::as_str).collect();
        let own_key = !own.is_empty() && own.iter().all(|k| key.iter().any(|i| described.columns[*i] == *k));
        let numbers = Numbers::of_catalog(&catalog, None);
        reading.start(match (&high, &described.mark) {
            _ if plan.snapshot => Scope::Whole,
            (Some(high), Some(mark)) => Scope::From(mark.from(high, plan.overlap)?),
            (None, Some(mark)) => {
                // An overlap of the wrong kind is found by the first pull, not by the second.
                mark.from("0", plan.overlap).map(|_| Scope::Ordered).or_else(|e| match mark.kind {
                    MarkKind::Text => Ok(Scope::Ordered),
                    _ => Err(e),
                })?
            }
            _ => Scope::Whole,
        })?;
        Ok(PullMessages {
            reading,
            shown: format!("{place}/{}", described.table),
            options: intake.format_options()?,
            watermark: plan.watermark,
            next: next_in(&catalog, &numbers, &stream, 0).unwrap_or(0),
            stream,
            key,
            own_key,
            stored,
            snapshot: plan.snapshot,
            high,
            high_new: false,
            highest: None,
            state: State::Rows,
            seen: HashSet::new(),
            nulls: 0,
            scratch: ScratchBuffer::default(),
            parts: Parts::default(),
            plain_ops: intake.op.is_none() && intake.default_op.is_none(),
            described,
        })
    }

    fn failure(&self, what: &str) -> Error {
        Error::new(ErrorKind::Source, format!("{}: {what}", self.shown))
    }

    /// The next page of rows, with what the store has of them.
    fn page(&mut self) -> Result<State> {
        let Some(rows) = self.reading.rows(&mut self.highest)? else { return self.end() };
        let mut keyed = Vec::with_capacity(rows.len());
        for row in rows {
            let mut key = Vec::new();
            self.key.iter().for_each(|i| put_key_cell(&mut key, &row.values[*i].as_cell()));
            // A key with a NULL goes to the quarantine; it is no key that could come twice.
            let is_key = self.key.iter().all(|i| row.values[*i] != Value::Null);
            let matters = is_key && (self.snapshot || !self.own_key);
            if matters && !self.seen.insert(xxh3_128(&key)) && !self.own_key {
                return Err(self.twice(&row));
            }
            keyed.push((key, row));
        }
        let lasts = match &self.stored {
            Some(stored) => stored.lasts(keyed.iter().map(|(key, _)| key.clone()).collect())?,
            None => Lasts::default(),
        };
        Ok(State::Page { rows: keyed, next: 0, lasts })
    }

    fn twice(&self, row: &Row) -> Error {
        let mut shown = String::new();
        for i in &self.key {
            let separator = if shown.is_empty() { "" } else { ", " };
            shown.push_str(&format!("{separator}{} = ", self.described.columns[*i]));
            asofdb_storage::value::write_text(&mut shown, &row.values[*i].as_cell());
        }
        Error::usage(format!("{}: key ({shown}) comes twice", self.shown))
            .hint("--key names columns that together identify a row")
    }

    /// All rows came. A snapshot goes on with the rows that the store has and the table has not.
    fn end(&mut self) -> Result<State> {
        if let (Some(mark), Some(highest)) = (&self.described.mark, self.highest.take())
            && mark.is_above(&highest, self.high.as_deref())
        {
            (self.high, self.high_new) = (Some(highest), true);
        }
        match &self.stored {
            Some(stored) if self.snapshot => Ok(State::Deletes(stored.rows()?)),
            _ => Ok(State::End),
        }
    }

    /// Notes the watermark of a row that was delivered.
    fn advance(&mut self, row: &Row) -> Result<()> {
        let Some(mark) = &self.described.mark else { return Ok(()) };
        let Some(text) = &row.mark else {
            self.nulls += 1;
            return Ok(());
        };
        if matches!(mark.kind, MarkKind::Number(_)) && text.parse::<i128>().is_err() {
            let what = format!("watermark {} is `{text}`, which is not a whole number", mark.column);
            return Err(self.failure(&what).hint("a watermark is a column of times or whole numbers"));
        }
        if !self.snapshot && mark.is_above(text, self.high.as_deref()) {
            (self.high, self.high_new) = (Some(text.clone()), true);
        }
        Ok(())
    }

    /// Delivers a row.
    fn deliver(&mut self, row: &Row, last: Option<&Last>, take: &mut Take<'_>) -> Result<()> {
        let PullMessages { described, options, stored, scratch, watermark, .. } = self;
        let mut p = std::mem::take(&mut self.parts).recycled();
        for (name, value) in described.columns.iter().zip(&row.values) {
            p.columns.push(Column { name, cell: value.as_cell() });
        }
        p.key.extend(self.key.iter().map(|i| p.columns[*i]));
        let mut scratch = scratch.scratch(ROW_BYTES);
        let message = crate::change::Message { position: self.next, ..Default::default() };
        let place = Place::in_stream(&self.stream, self.next);
        let made =
            declare::plain_change(options, &message, &p.columns, &mut p.image, &mut p.ties, &mut scratch);
        let decoded = match made {
            _ if scratch.overflowed() => Err(Reject::new("the row needs more room than it should")),
            other => other,
        };
        let mut took = true;
        match decoded {
            Err(reject) => take(&place, Decoded::Quarantine(reject.fault()))?,
            Ok(None) => take(&place, Decoded::Changes(&[]))?,
            Ok(Some((mut change, filtered))) => {
                change.declared.ties = &p.ties;
                change.fields = &p.columns;
                change.image = if filtered { &p.image } else { &p.columns };
                change.key = &p.key;
                change.table = Some(&described.name);
                change.times.connector = Some(described.at);
                let time = watermark.as_ref().and_then(|w| {
                    let column = p.columns.iter().find(|c| c.name == w.column)?;
                    declare::instant_of(w, options, &column.cell)
                });
                change.times.source = time;
                took = !is_repeat(stored.as_ref(), &change, last);
                if self.plain_ops && change.op == Op::Upsert {
                    change.op = if matches!(last, Some(Last::Row { .. })) { Op::Update } else { Op::Insert };
                }
                match took {
                    true => take(&place, Decoded::Changes(&[change]))?,
                    false => take(&place, Decoded::Repeat(UNCHANGED))?,
                }
            }
        }
        self.next += u64::from(took);
        self.parts = p.recycled();
        Ok(())
    }

    /// Delivers the end of a row that the table does not have any more.
    fn deliver_delete(&mut self, row: &OpenRow, take: &mut Take<'_>) -> Result<()> {
        let names = self.key.iter().map(|i| self.described.columns[*i].as_str());
        let key: Vec<Column<'_>> =
            names.zip(&row.cells).map(|(name, value)| Column { name, cell: value.as_cell() }).collect();
        // It ended when that was seen, and not before it began.
        let at = self.described.at.max(row.valid_from.saturating_add(1));
        let time = Some(AxisValue { value: at, axis: AxisType::Instant });
        let mut change = Change::new(Op::Delete);
        (change.key, change.fields, change.image) = (&key, &key, &key);
        change.table = Some(&self.described.name);
        change.times.connector = Some(at);
        change.declared.valid_from = time.filter(|_| self.options.valid.is_some());
        change.declared.system = time.filter(|_| self.options.system.is_some());
        take(&Place::in_stream(&self.stream, self.next), Decoded::Changes(&[change]))?;
        self.next += 1;
        Ok(())
    }
}

impl<'a> Parts<'a> {
    fn recycled<'b>(self) -> Parts<'b> {
        Parts {
            columns: recycle(self.columns),
            image: recycle(self.image),
            key: recycle(self.key),
            ties: recycle(self.ties),
        }
    }
}

/// Rule C1: in a pull, a row equal to its key's predecessor there is a repeat.
fn is_repeat(stored: Option<&Stored>, change: &Change<'_>, last: Option<&Last>) -> bool {
    match (last, change.op.ends_row()) {
        (Some(Last::Ended), ends) => ends,
        (Some(Last::Row { batch, row }), false) => stored.is_some_and(|s| s.is_same(change, batch, *row)),
        _ => false,
    }
}

fn stored_position(catalog: &Catalog, stream: &str) -> Result<Option<Position>> {
    let key = position_key(stream);
    let Some(value) = catalog.positions.get(&key) else { return Ok(None) };
    serde_json::from_value(value.clone())
        .map(Some)
        .map_err(|e| Error::new(ErrorKind::Damaged, format!("the stored position {key} cannot be read: {e}")))
}

/// The places of the key columns in a row: in the order of the store's table if there is one.
fn key_columns(
    described: &Described,
    declared: Option<&[String]>,
    stored: Option<&Stored>,
    table: &str,
) -> Result<Vec<usize>> {
    let key: Vec<&str> = declared.unwrap_or(&described.key).iter().map(String::as_str).collect();
    if key.is_empty() {
        return Err(Error::usage(format!("table {} has no primary key", described.table))
            .hint("--key names the columns that identify a row"));
    }
    let mut names = key.clone();
    if let Some(stored) = stored {
        let known = stored.key();
        let same = known.len() == key.len() && known.iter().all(|k| key.contains(k));
        if !same && !stored.meta().schemas.is_empty() {
            return Err(Error::usage(format!(
                "table {table} has key ({}), and this pull has key ({})",
                known.join(", "),
                key.join(", ")
            ))
            .hint("--key gives the same key; --table takes the rows into another table"));
        }
        if same {
            names = known;
        }
    }
    let place = |name: &&str| {
        described.columns.iter().position(|c| c == name).ok_or_else(|| {
            Error::usage(format!("table {} has no column {name}, which --key names", described.table))
                .hint(near_names_hint(name, described.columns.iter().map(String::as_str)))
        })
    };
    names.iter().map(place).collect()
}

/// Deletes that a snapshot finds hold from an instant.
fn check_axes(intake: &IntakeOptions, stored: Option<&Stored>) -> Result<()> {
    let integer = |declared: bool, axis| declared && axis == AxisType::Integer;
    let is_integer = stored.is_some_and(|s| {
        integer(intake.valid.is_some(), s.meta().valid_axis)
            || integer(intake.system.is_some(), s.meta().system_axis)
    });
    match is_integer {
        true => Err(Error::usage(
            "a snapshot finds deletes at an instant, and the times of this table are plain numbers",
        )
        .hint("a unit makes numbers instants: --valid COL:ms, into another table")),
        false => Ok(()),
    }
}

impl Messages for PullMessages {
    fn read(&mut self, room: usize, take: &mut Take<'_>) -> Result<Step> {
        match std::mem::replace(&mut self.state, State::End) {
            State::End => return Ok(Step::End),
            State::Rows => self.state = self.page()?,
            State::Page { rows, mut next, lasts } => {
                for (key, row) in rows.iter().skip(next).take(room.max(1)) {
                    self.deliver(row, lasts.of(key), take)?;
                    self.advance(row)?;
                    next += 1;
                }
                self.state = if next == rows.len() { State::Rows } else { State::Page { rows, next, lasts } };
            }
            State::Deletes(mut open) => {
                for _ in 0..room.max(1) {
                    let Some(row) = open.next()? else { return Ok(Step::End) };
                    if !self.seen.contains(&xxh3_128(&row.key)) {
                        self.deliver_delete(&row, take)?;
                    }
                }
                self.state = State::Deletes(open);
            }
        }
        Ok(Step::More)
    }

    fn positions(&mut self) -> Vec<(String, serde_json::Value)> {
        match (&self.described.mark, &self.high) {
            (Some(Mark { column, .. }), Some(high)) if std::mem::take(&mut self.high_new) => {
                let position = Position { watermark: column.clone(), high: high.clone() };
                vec![(position_key(&self.stream), serde_json::json!(position))]
            }
            _ => Vec::new(),
        }
    }

    fn progress(&self, progress: &mut Progress) {
        progress.source.clone_from(&self.shown);
    }

    fn notices(&mut self) -> Vec<String> {
        let (Some(mark), 1..) = (&self.described.mark, self.nulls) else { return Vec::new() };
        vec![format!(
            "{}: {} without {}, which every pull reads again",
            self.shown,
            crate::count::of(self.nulls, "row"),
            mark.column
        )]
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
