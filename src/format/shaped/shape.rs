//! What rows say about themselves, and the changes they are.

use super::{airbyte, delta, fivetran};
use crate::change::{Change, Column, Message, Times, Token};
use crate::format::Format;
use crate::format::declare::{self, Envelope, View, zoned};
use crate::format::dms::Parts;
use crate::format::fields::{Reject, find};
use crate::format::json::{Member, Raw, members};
use crate::format::options::FormatOptions;
use crate::format::scratch::Scratch;
use crate::format::time_text::{self, TimeText};
use asofdb_storage::event::Op;
use asofdb_storage::value::Cell;

/// Which columns about itself a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `_change_type`, `_commit_version`, `_commit_timestamp`.
    DeltaCdf,
    /// `_airbyte_...`, `_ab_cdc_...`.
    Airbyte,
    /// `_fivetran_...`.
    Fivetran,
}

/// What those columns say.
#[derive(Debug)]
pub(super) struct Said<'a> {
    pub(super) op: Op,
    pub(super) code: &'a str,
    pub(super) times: Times,
    pub(super) token: Option<Token<'a>>,
    /// See [`Change::one_per_key`].
    pub(super) one_per_key: bool,
    /// Behind the ties that the options declare.
    pub(super) ties: [Option<Cell<'a>>; 2],
    /// When the row ends by itself.
    pub(super) until: Option<(i64, Token<'a>)>,
}

impl<'a> Said<'a> {
    pub(super) fn new(op: Op, times: Times) -> Said<'a> {
        let ties = [None, None];
        Said { op, code: op.word(), times, token: None, one_per_key: false, ties, until: None }
    }
}

impl Shape {
    /// The shape of rows of a format.
    pub fn of_format(format: Format) -> Option<Shape> {
        match format {
            Format::DeltaCdf => Some(Shape::DeltaCdf),
            Format::Airbyte => Some(Shape::Airbyte),
            Format::Fivetran => Some(Shape::Fivetran),
            _ => None,
        }
    }

    /// The format of its rows.
    pub fn format(self) -> Format {
        match self {
            Shape::DeltaCdf => Format::DeltaCdf,
            Shape::Airbyte => Format::Airbyte,
            Shape::Fivetran => Format::Fivetran,
        }
    }

    /// The shape that names of columns show: those which the tools keep for themselves.
    pub fn of_names(has: impl Fn(&str) -> bool) -> Option<Shape> {
        if ["_change_type", "_commit_version", "_commit_timestamp"].into_iter().all(&has) {
            return Some(Shape::DeltaCdf);
        }
        let either = |a: &str, b: &str| has(a) || has(b);
        if either("_airbyte_raw_id", "_airbyte_ab_id")
            && either("_airbyte_extracted_at", "_airbyte_emitted_at")
        {
            return Some(Shape::Airbyte);
        }
        let fivetran = ["_fivetran_deleted", "_fivetran_active", "_fivetran_id"].into_iter().any(&has);
        (has("_fivetran_synced") && fivetran).then_some(Shape::Fivetran)
    }

    /// The shape of a message.
    pub fn of_message(text: &str) -> Option<Shape> {
        let mut listed: Vec<Member<'_>> = Vec::new();
        members(text, &mut listed).ok()?;
        let raw = |name: &str| listed.iter().find(|m| m.name.text == name).map(|m| m.value);
        let shape = Shape::of_names(|name| raw(name).is_some())?;
        let feed = matches!(raw("_change_type"), Some(Raw::Text(t)) if delta::is_change_type(t.text));
        (shape != Shape::DeltaCdf || feed).then_some(shape)
    }

    fn is_metadata(self, name: &str) -> bool {
        match self {
            Shape::DeltaCdf => matches!(name, "_change_type" | "_commit_version" | "_commit_timestamp"),
            Shape::Airbyte => name.starts_with("_airbyte_") || name.starts_with("_ab_cdc_"),
            Shape::Fivetran => name.starts_with("_fivetran_"),
        }
    }

    /// The change that a row is; its image is always `parts.image`. `None` for an image before an update.
    ///
    /// # Errors
    /// If the row does not say what happened, or a declared time cannot be read.
    pub fn change<'a>(
        self,
        options: &FormatOptions,
        message: &Message<'a>,
        parts: &mut Parts<'a>,
        scratch: &mut Scratch<'a>,
    ) -> Result<Option<Change<'a>>, Reject> {
        let said = match self {
            Shape::DeltaCdf => match delta::said(options, &parts.columns, scratch)? {
                Some(said) => said,
                None => return Ok(None),
            },
            Shape::Airbyte => {
                airbyte::unpack(&mut parts.columns, scratch)?;
                airbyte::said(options, &parts.columns, scratch)
            }
            Shape::Fivetran => fivetran::said(options, &parts.columns, scratch)?,
        };
        let Parts { columns, image, before, ties, until, .. } = parts;
        let mut change = Change::new(said.op);
        change.times = Times { broker: message.broker_time, ..said.times };
        (change.token, change.one_per_key) = (said.token, said.one_per_key);
        let envelope = Envelope {
            op: Some(said.code),
            times: change.times,
            position: message.position,
            ..Envelope::default()
        };
        let mut view = View { columns, envelope: &envelope, scratch };
        change.op = declare::overridden(options, &mut view, said.op);
        change.declared = declare::declared(options, &mut view, ties)?;
        ties.extend(said.ties.into_iter().flatten());
        let (full, filtered) = declare::image(options, change.op, columns, image, None)?;
        change.full = full;
        let data = |c: &Column<'a>| !self.is_metadata(c.name);
        if filtered {
            image.retain(data);
        } else {
            image.extend(columns.iter().filter(|c| data(c)));
        }
        if change.op == Op::Delete {
            before.extend(columns.iter().filter(|c| data(c)));
        } else if !columns.iter().any(data) {
            return Err(Reject::new("the row has no columns"));
        }
        *until = said.until.filter(|_| !change.op.ends_row());
        Ok(Some(change))
    }
}

/// A column that is there and not NULL.
pub(super) fn sent<'c, 'a>(columns: &'c [Column<'a>], name: &str) -> Option<&'c Cell<'a>> {
    find(columns, name).map(|c| &c.cell).filter(|c| !declare::absent(c))
}

/// A time; one without a zone is in the declared one.
pub(super) fn time(options: &FormatOptions, columns: &[Column<'_>], name: &str) -> Option<i64> {
    match *sent(columns, name)? {
        Cell::Text(text) => match time_text::parse(text.trim())? {
            TimeText::Instant(t) => Some(t.us),
            TimeText::Local(t) => zoned(t.us, options),
            TimeText::Date(_) => None,
        },
        Cell::Instant(us) => Some(us),
        Cell::Timestamp(us) => zoned(us, options),
        Cell::TimestampNs(ns) => zoned(ns.div_euclid(1_000), options),
        _ => None,
    }
}

/// A whole number, also as text.
pub(super) fn integer(columns: &[Column<'_>], name: &str) -> Option<i128> {
    match *sent(columns, name)? {
        Cell::Int(n) => Some(n as i128),
        Cell::Decimal { unscaled, scale: 0 } => Some(unscaled),
        Cell::Text(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Bytes that compare as the number does.
pub(super) fn ordered(n: i64) -> [u8; 8] {
    ((n as u64) ^ (1 << 63)).to_be_bytes()
}
